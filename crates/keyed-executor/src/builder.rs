//! Building an executor: values are checked here, threads are started by the first work.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::audit::{Misorder, OnMisorder};
use crate::config::{Config, ConfigError};
use crate::executor::{Guard, KeyedExecutor};
use crate::rescue::Rescue;
use crate::seat::token::Token;
use crate::shared::{Lifetime, Shared, Spawn, spawn};
use crate::shutdown::Threads;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Condvar, Figure, Mutex, OnceLock};
use crate::watchdog::{OnStuck, Stuck, Watchdog};
use crate::worker::Worker;

/// Builds an executor; made by [`KeyedExecutor::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder builds nothing until `build`"]
pub struct Builder {
    config: Config,
    on_stuck: Option<OnStuck>,
    on_misorder: Option<OnMisorder>,
    #[cfg(feature = "tokio")]
    tokio: Option<tokio::runtime::Handle>,
}

impl Builder {
    /// Takes every value from a configuration.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Prefix of the worker threads' names.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// Number of worker threads.
    pub fn workers(mut self, workers: usize) -> Self {
        self.config.workers = workers;
        self
    }

    /// Messages of one dispatch or keyspace accepted and not finished.
    pub fn max_in_flight(mut self, window: usize) -> Self {
        self.config.max_in_flight = window;
        self
    }

    /// Messages of one key that may hold permits of a window; see [`Options::max_per_key`](crate::Options::max_per_key).
    pub fn max_per_key(mut self, messages: usize) -> Self {
        self.config.max_per_key = Some(messages);
        self
    }

    /// Messages beyond the limits of their keys; see [`Options::overflow`](crate::Options::overflow).
    pub fn overflow(mut self, messages: usize) -> Self {
        self.config.overflow = messages;
        self
    }

    /// Messages a turn.
    pub fn throughput(mut self, messages: usize) -> Self {
        self.config.throughput = messages;
        self
    }

    /// How long a worker that ran dry polls before it parks.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.config.spin = spin;
        self
    }

    /// Threads that may take over for stuck ones; 0 turns the rescue off.
    pub fn rescue_threads(mut self, threads: usize) -> Self {
        self.config.rescue_threads = threads;
        self
    }

    /// How long a handler may hold its thread before another one goes on with the rest of its worker.
    pub fn rescue_after(mut self, held: Duration) -> Self {
        self.config.rescue_after = held;
        self
    }

    /// How long a piece of user code may hold its thread before it is named; None names none.
    pub fn stuck_after(mut self, held: impl Into<Option<Duration>>) -> Self {
        self.config.stuck_after = held.into();
        self
    }

    /// What is called, beside the line in the log, when a handler or a source holds its thread for
    /// [`stuck_after`](Self::stuck_after): once for each time, while it does. The last one given counts.
    ///
    /// It runs on a thread of its own, between two looks at all workers, so it must not block; a panic of it is logged.
    /// The key's `Debug` is called on that thread too, while its worker cannot go on: it must not block either.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use keyed_executor::KeyedExecutor;
    ///
    /// let (sender, told) = mpsc::channel();
    /// let executor = KeyedExecutor::builder()
    ///     .workers(1)
    ///     .stuck_after(Duration::from_millis(5))
    ///     .on_stuck(move |stuck| sender.send(stuck.to_string()).expect("somebody listens"))
    ///     .build()?;
    /// let (release, blocked) = mpsc::channel::<()>();
    /// let blocked = std::sync::Mutex::new(blocked);
    /// let keyspace = executor.keyspace(move |_: ()| {
    ///     let _ = blocked.lock().map(|blocked| blocked.recv());
    ///     std::future::ready(())
    /// });
    /// keyspace.try_submit("order-7", ())?;
    /// assert!(told.recv()?.starts_with("handler of key \"order-7\" (keyspace) on worker 1"));
    /// release.send(())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_stuck(mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) -> Self {
        self.on_stuck = Some(OnStuck::new(hook));
        self
    }

    /// Whom an auditor tells what breaks the order of a key ([`Audit::On`](crate::Audit::On)), on the worker that found it.
    pub fn on_misorder(mut self, hook: impl Fn(&Misorder) + Send + Sync + 'static) -> Self {
        self.on_misorder = Some(OnMisorder::new(hook));
        self
    }

    /// A tokio runtime that every worker thread enters, so that tokio's timers and I/O work inside handlers.
    #[cfg(feature = "tokio")]
    pub fn tokio(mut self, handle: tokio::runtime::Handle) -> Self {
        self.tokio = Some(handle);
        self
    }

    /// Builds the executor. No thread is started before the first work.
    ///
    /// # Errors
    /// Every value that is out of range, at once.
    pub fn build(self) -> Result<KeyedExecutor, ConfigError> {
        self.config.validate()?;
        Ok(self.start_for(Lifetime::Handles, spawn))
    }

    /// Builds with a way of its own to start threads, from values that were checked.
    pub(crate) fn start_for(self, lifetime: Lifetime, spawn: Spawn) -> KeyedExecutor {
        let (workers, spares) = (self.config.workers, self.config.rescue_threads);
        let is_watched = self.config.stuck_after.is_some();
        let tokens: Arc<[CachePadded<Token>]> = (0..workers + spares)
            .map(|thread| {
                CachePadded::new(if thread < workers { Token::parked() } else { Token::without_seat() })
            })
            .collect();
        let shared = Arc::new(Shared {
            lifetime,
            workers: (0..self.config.workers).map(|index| Worker::new(index, Arc::clone(&tokens))).collect(),
            config: self.config,
            guard: OnceLock::new(),
            closed: AtomicBool::new(false),
            forced: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            open_intakes: AtomicUsize::new(0),
            dispatches: Mutex::new(Vec::new()),
            threads: Mutex::new(Threads::default()),
            last_thread: Condvar::new(),
            rescue: Rescue::new(workers..workers + spares, is_watched),
            watchdog: Watchdog::new(self.on_stuck),
            spawn,
            round_robin: AtomicUsize::new(0),
            rejected: Figure::new(0),
            on_misorder: self.on_misorder,
            #[cfg(feature = "tokio")]
            tokio: self.tokio,
        });
        if shared.rescue.is_on() {
            for worker in &shared.workers {
                worker.watched_by(Arc::clone(shared.rescue.monitor()), shared.config.rescue_after);
            }
        }
        let guard = Guard::new(Arc::clone(&shared));
        let _ = shared.guard.set(Arc::downgrade(&guard));
        KeyedExecutor { guard }
    }
}
