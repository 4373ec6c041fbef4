//! Building an executor: values are checked here, threads are started by the first work.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::config::{Config, ConfigError};
use crate::executor::{Guard, KeyedExecutor};
use crate::rescue::Rescue;
use crate::seat::token::Token;
use crate::shared::{Lifetime, Shared, Spawn, spawn};
use crate::shutdown::Threads;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Condvar, Figure, Mutex, OnceLock};
use crate::worker::Worker;

/// Builds an executor; made by [`KeyedExecutor::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder builds nothing until `build`"]
pub struct Builder {
    config: Config,
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
            rescue: Rescue::new(workers..workers + spares),
            spawn,
            round_robin: AtomicUsize::new(0),
            rejected: Figure::new(0),
            #[cfg(feature = "tokio")]
            tokio: self.tokio,
        });
        let guard = Guard::new(Arc::clone(&shared));
        let _ = shared.guard.set(Arc::downgrade(&guard));
        KeyedExecutor { guard }
    }
}
