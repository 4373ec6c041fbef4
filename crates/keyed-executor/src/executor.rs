//! The executor: its workers, its two doors, its tasks. How it shuts down is `shutdown.rs`.

use std::fmt::{self, Debug};
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use futures_core::Stream;

use crate::config::{Config, ConfigError};
use crate::dispatch::Dispatch;
use crate::engine::Lanes;
use crate::error::{Outcome, RejectReason, Rejected};
use crate::keyspace::{self, Keyspace};
use crate::metrics::ExecutorMetrics;
use crate::options::{OnFailure, Options};
use crate::shutdown::{Terminated, Threads};
use crate::sleep::Notified;
use crate::source::{self, Items};
use crate::sync::{
    Arc, AtomicBool, AtomicUsize, Condvar, Mutex, OnceLock, Ordering, Weak, lock, spawn_named,
};
use crate::task::{Task, TaskCell};
use crate::worker::{self, Job, Worker};

/// Starts a worker's thread; tests put a failing one here.
pub(crate) type Spawn = fn(String, Box<dyn FnOnce() + Send>) -> std::io::Result<()>;

/// Who ends an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Its handles: the last one dropped, or a call of `close`.
    Handles,
    /// Nobody: the process-wide one serves whoever has none of their own.
    Process,
}

/// What every part of an executor shares.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) lifetime: Lifetime,
    pub(crate) workers: Box<[Arc<Worker>]>,
    pub(crate) guard: OnceLock<Weak<Guard>>,
    pub(crate) closed: AtomicBool,
    pub(crate) forced: AtomicBool,
    /// Every intake was told to close: a worker without work may end.
    pub(crate) draining: AtomicBool,
    pub(crate) open_intakes: AtomicUsize,
    pub(crate) dispatches: Mutex<Vec<Weak<dyn Lanes>>>,
    pub(crate) threads: Mutex<Threads>,
    pub(crate) thread_ended: Condvar,
    spawn: Spawn,
    round_robin: AtomicUsize,
    #[cfg(feature = "tokio")]
    tokio: Option<tokio::runtime::Handle>,
}

impl Shared {
    /// The handle's guard, for a worker that wants to know its executor.
    pub(crate) fn guard(&self) -> Weak<Guard> {
        self.guard.get().cloned().unwrap_or_default()
    }

    /// Where the next intake or task starts to look for a worker.
    pub(crate) fn next_start(&self) -> usize {
        // Relaxed: only the spread counts.
        self.round_robin.fetch_add(1, Ordering::Relaxed) % self.workers.len()
    }

    /// Starts a worker's thread if it has none; exactly one caller does.
    pub(crate) fn ensure_started(self: &Arc<Self>, worker: &Arc<Worker>) -> Result<(), RejectReason> {
        if worker.is_running() {
            return Ok(());
        }
        let mut threads = lock(&self.threads);
        if worker.is_running() {
            return Ok(());
        }
        if let Some(cause) = threads.unstartable.get(&worker.index()) {
            return Err(RejectReason::Unstartable(cause.clone()));
        }
        if worker.sleeper().is_gone() {
            return Err(if threads.closed { RejectReason::Closed } else { RejectReason::Dead });
        }
        if threads.closed {
            return Err(RejectReason::Closed);
        }
        let name = format!("{}-{}", self.config.name, worker.index() + 1);
        let (shared, started) = (Arc::clone(self), Arc::clone(worker));
        let body = Box::new(move || {
            #[cfg(feature = "tokio")]
            let _entered = shared.tokio.as_ref().map(tokio::runtime::Handle::enter);
            worker::run(&shared, &started);
        });
        match (self.spawn)(name, body) {
            Ok(()) => {
                threads.live += 1;
                worker.mark_started();
                Ok(())
            }
            Err(error) => {
                tracing::error!(worker = worker.index() + 1, %error, "a worker thread could not be started");
                // Tried once only: the worker is dead from here on.
                worker.sleeper().leave();
                threads.unstartable.insert(worker.index(), error.to_string());
                Err(RejectReason::Unstartable(error.to_string()))
            }
        }
    }

    /// A worker with a thread, the next in turn that can have one.
    pub(crate) fn a_started_worker(self: &Arc<Self>) -> Result<usize, RejectReason> {
        let start = self.next_start();
        let mut refused = RejectReason::Closed;
        for offset in 0..self.workers.len() {
            let index = (start + offset) % self.workers.len();
            match self.ensure_started(&self.workers[index]) {
                Ok(()) => return Ok(index),
                Err(reason) => refused = reason,
            }
        }
        Err(refused)
    }

    /// Queues a task on a worker; it comes back if it will not be run.
    fn submit<T: FnOnce() + Send + 'static>(
        self: &Arc<Self>,
        worker: usize,
        task: T,
    ) -> Result<(), Rejected<T>> {
        if self.is_closed() {
            return Err(Rejected { task, reason: RejectReason::Closed });
        }
        let worker = &self.workers[worker];
        if let Err(reason) = self.ensure_started(worker) {
            return Err(Rejected { task, reason });
        }
        let cell = Arc::new(TaskCell::new(task));
        worker.jobs().push(Job::Task(Arc::clone(&cell) as Arc<dyn Task>));
        if worker.sleeper().notify() == Notified::Gone {
            // The thread ended after the look above. Either its last look at the queue found the task, or nobody did.
            if let Some(task) = cell.claim() {
                let reason = if self.is_closed() { RejectReason::Closed } else { RejectReason::Dead };
                return Err(Rejected { task, reason });
            }
        }
        Ok(())
    }

    /// Adds a dispatch whose intake is open; false on a closed executor.
    pub(crate) fn register<L: Lanes + 'static>(&self, dispatch: Weak<L>) -> bool {
        let mut dispatches = lock(&self.dispatches);
        // Acquire: pairs with the swap in `close`, which comes before it takes this lock.
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        if dispatches.len() == dispatches.capacity() {
            dispatches.retain(|dispatch| dispatch.strong_count() > 0);
        }
        dispatches.push(dispatch);
        self.open_intakes.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Whether later submissions are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether nothing is started any more.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Acquire)
    }
}

/// What the handles of an executor share: the last one dropped closes it.
pub(crate) struct Guard {
    shared: Arc<Shared>,
}

impl Guard {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Runs messages in order per key, in parallel across keys, on worker threads of its own.
///
/// A handle: clones are the same executor. The last handle dropped closes it; running dispatches and open keyspaces
/// hold one.
///
/// ```
/// use futures_util::stream;
/// use keyed_executor::KeyedExecutor;
///
/// let executor = KeyedExecutor::builder().workers(2).max_in_flight(64).build()?;
/// let words = ["ant", "bee", "asp", "bat"];
/// // Words with the same first letter run in order; the two letters run in parallel.
/// let dispatch = executor.dispatch(
///     stream::iter(words),
///     |word| word.chars().next(),
///     |word| async move { assert!(!word.is_empty()) },
/// );
/// assert_eq!(dispatch.wait()??.handled, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct KeyedExecutor {
    guard: Arc<Guard>,
}

impl Debug for KeyedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { name, workers, max_in_flight, throughput, spin } = self.config();
        f.debug_struct("KeyedExecutor")
            .field("name", name)
            .field("workers", workers)
            .field("max_in_flight", max_in_flight)
            .field("throughput", throughput)
            .field("spin", spin)
            .finish()
    }
}

impl KeyedExecutor {
    /// Builds an executor step by step.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Builds an executor from plain configuration. No thread is started before the first work.
    ///
    /// # Errors
    /// Every value that is out of range, at once.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::builder().config(config).build()
    }

    /// The process-wide executor with all defaults, named `wow-dispatch-shared`; made at the first call. It is never
    /// closed: [`close`](Self::close) and [`force_close`](Self::force_close) do nothing to it (KE-7).
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<KeyedExecutor> = OnceLock::new();
        SHARED.get_or_init(|| {
            let config = Config { name: "wow-dispatch-shared".to_owned(), ..Config::default() };
            Builder::default().config(config).start_for(Lifetime::Process, spawn)
        })
    }

    /// The executor that runs the calling handler or task.
    #[must_use]
    pub fn current() -> Option<Self> {
        worker::current().map(|guard| Self { guard })
    }

    /// What the executor was told.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.guard.shared.config
    }

    /// Runs every message of `source` through `handler`, in order per `key`, until the source and everything accepted
    /// ended.
    ///
    /// The source is polled only while the window has room. The first failed message ends the dispatch.
    ///
    /// # Errors
    /// The handle resolves with the first failure: the handler's, the key selector's, or a closed executor.
    pub fn dispatch<S, K, M, KF, H, F, E>(&self, source: S, key: KF, handler: H) -> Dispatch<E>
    where
        S: Stream<Item = M> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        self.dispatch_with(Options::new("dispatch"), source, key, handler)
    }

    /// [`dispatch`](Self::dispatch) with a label, a window and a failure policy of its own.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), as far as the policy lets a failed message end it.
    pub fn dispatch_with<S, K, M, KF, H, F, E>(
        &self,
        options: Options,
        source: S,
        key: KF,
        handler: H,
    ) -> Dispatch<E>
    where
        S: Stream<Item = M> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        self.try_dispatch_with(options, Items::new(source), key, handler)
    }

    /// [`dispatch`](Self::dispatch) of a source that can fail; its error ends the dispatch.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), and the source's.
    pub fn try_dispatch<S, K, M, KF, H, F, E>(&self, source: S, key: KF, handler: H) -> Dispatch<E>
    where
        S: Stream<Item = Result<M, E>> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        self.try_dispatch_with(Options::new("dispatch"), source, key, handler)
    }

    /// [`try_dispatch`](Self::try_dispatch) with a label, a window and a failure policy of its own.
    ///
    /// # Errors
    /// As [`try_dispatch`](Self::try_dispatch), as far as the policy lets a failed message end it.
    pub fn try_dispatch_with<S, K, M, KF, H, F, E>(
        &self,
        options: Options,
        source: S,
        key: KF,
        handler: H,
    ) -> Dispatch<E>
    where
        S: Stream<Item = Result<M, E>> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        source::start(Arc::clone(&self.guard), options, source, key, handler)
    }

    /// A door for direct submission: `handler` runs in order per key. A failed message is counted and logged, and its
    /// key goes on ([`OnFailure::Continue`]).
    pub fn keyspace<K, M, H, F>(&self, handler: H) -> Keyspace<K, M>
    where
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        self.keyspace_with(Options::new("keyspace").on_failure(OnFailure::Continue), handler)
    }

    /// [`keyspace`](Self::keyspace) with a label, a window and a failure policy of its own.
    pub fn keyspace_with<K, M, H, F>(&self, options: Options, handler: H) -> Keyspace<K, M>
    where
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        keyspace::open(Arc::clone(&self.guard), options, handler)
    }

    /// Runs a task on some worker, round robin. A panic ends the task, not the worker.
    ///
    /// # Errors
    /// The task comes back if the executor is closed or the worker cannot run it.
    pub fn execute<T: FnOnce() + Send + 'static>(&self, task: T) -> Result<(), Rejected<T>> {
        let shared = &self.guard.shared;
        let worker = shared.next_start();
        shared.submit(worker, task)
    }

    /// Runs a task on the worker of `affinity`; tasks of one affinity run in submission order on one thread.
    ///
    /// # Errors
    /// The task comes back if the executor is closed or that worker cannot run it.
    pub fn execute_pinned<T: FnOnce() + Send + 'static>(
        &self,
        affinity: i64,
        task: T,
    ) -> Result<(), Rejected<T>> {
        let shared = &self.guard.shared;
        let worker = affinity.rem_euclid(shared.workers.len() as i64) as usize;
        shared.submit(worker, task)
    }

    /// Refuses later work and lets every worker finish what was accepted; idempotent. No thread is started by it.
    ///
    /// A source that has not ended is dropped, and its dispatch resolves with [`Cause::Closed`](crate::Cause::Closed)
    /// after its accepted messages were handled.
    pub fn close(&self) {
        self.guard.shared.close();
    }

    /// Closes, and drops everything that waits: tasks, messages and suspended handlers are dropped on the calling
    /// thread before this returns. A handler that is running finishes its step and starts nothing further. Idempotent.
    pub fn force_close(&self) {
        self.guard.shared.force_close();
    }

    /// Whether [`close`](Self::close) or [`force_close`](Self::force_close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.guard.shared.is_closed()
    }

    /// Waits until the executor is closed and every worker thread ended.
    pub fn terminated(&self) -> Terminated {
        Terminated::new(Arc::clone(&self.guard.shared))
    }

    /// Blocks until the executor is closed and every worker thread ended.
    ///
    /// # Errors
    /// On a worker thread of an executor the wait is refused: it could wait for itself.
    pub fn join(&self) -> Result<(), crate::WouldBlockWorker> {
        if worker::on_worker() {
            return Err(crate::WouldBlockWorker);
        }
        self.guard.shared.wait_for_threads();
        Ok(())
    }

    /// What the workers counted.
    #[must_use]
    pub fn metrics(&self) -> ExecutorMetrics {
        let workers = self.guard.shared.workers.iter();
        ExecutorMetrics {
            workers: workers
                .map(|worker| worker.counters().read(worker.is_running(), worker.sleeper().sleeps()))
                .collect(),
        }
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Arc<Shared> {
        &self.guard.shared
    }
}

fn spawn(name: String, body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    spawn_named(name, body)
}

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
        let shared = Arc::new(Shared {
            lifetime,
            workers: (0..self.config.workers).map(Worker::new).collect(),
            config: self.config,
            guard: OnceLock::new(),
            closed: AtomicBool::new(false),
            forced: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            open_intakes: AtomicUsize::new(0),
            dispatches: Mutex::new(Vec::new()),
            threads: Mutex::new(Threads::default()),
            thread_ended: Condvar::new(),
            spawn,
            round_robin: AtomicUsize::new(0),
            #[cfg(feature = "tokio")]
            tokio: self.tokio,
        });
        let guard = Arc::new(Guard { shared: Arc::clone(&shared) });
        let _ = shared.guard.set(Arc::downgrade(&guard));
        KeyedExecutor { guard }
    }
}
