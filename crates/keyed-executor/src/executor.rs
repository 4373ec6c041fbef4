//! The executor's handle: how it is had, its tasks, its end, and what is seen of it.
//!
//! The last handle dropped closes it. The two doors for messages are `executor/doors.rs`; what a handle stands for is `shared.rs`,
//! how it shuts down is `shutdown.rs`. It decides nothing.

mod doors;

use std::fmt::{self, Debug};

use crate::builder::Builder;
use crate::config::{Config, ConfigError};
use crate::error::Rejected;
use crate::hot::HotKey;
use crate::inspect::Inspection;
use crate::metrics::ExecutorMetrics;
use crate::shared::{Lifetime, Shared, let_go, spawn};
use crate::shutdown::Terminated;
use crate::sync::{Arc, OnceLock};
use crate::worker;

/// What the handles of an executor share: the last one dropped closes it.
pub(crate) struct Guard {
    shared: Arc<Shared>,
}

impl Guard {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared })
    }

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
    pub(crate) guard: Arc<Guard>,
}

impl Debug for KeyedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config {
            name,
            workers,
            max_in_flight,
            max_per_key,
            overflow,
            throughput,
            spin,
            rescue_threads,
            rescue_after,
            stuck_after,
        } = self.config();
        f.debug_struct("KeyedExecutor")
            .field("name", name)
            .field("workers", workers)
            .field("max_in_flight", max_in_flight)
            .field("max_per_key", max_per_key)
            .field("overflow", overflow)
            .field("throughput", throughput)
            .field("spin", spin)
            .field("rescue_threads", rescue_threads)
            .field("rescue_after", rescue_after)
            .field("stuck_after", stuck_after)
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

    /// Runs a task on some worker, round robin. A panic ends the task, not the worker.
    ///
    /// # Errors
    /// The task comes back if the executor is closed or the worker cannot run it.
    pub fn execute<T: FnOnce() + Send + 'static>(&self, task: T) -> Result<(), Rejected<T>> {
        let shared = &self.guard.shared;
        let worker = shared.next_start();
        shared.submit(worker, task)
    }

    /// Runs a task on the worker of `affinity`; tasks of one affinity run one at a time, in submission order.
    ///
    /// They share that worker's thread; it is another one after a handler got stuck there (`rescue_threads`).
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

    /// What the workers, and each dispatch and keyspace, counted, and the age of what is unfinished.
    ///
    /// Made for being asked every few seconds: each worker is looked at for an instant, as by
    /// [`inspect`](Self::inspect), for the age.
    #[must_use]
    pub fn metrics(&self) -> ExecutorMetrics {
        self.guard.shared.metrics()
    }

    /// The live mailboxes, oldest unfinished message first, at most `limit` of them: which keys are stuck, starved or
    /// long.
    ///
    /// It may be called from anywhere, inside a handler too, on a stuck executor and on a closed one, and never waits for
    /// a handler. Each worker is held for as long as it takes to walk through the messages that live on it, some tens of
    /// nanoseconds each, and to write the keys that are told. Inside a key's own `Debug`, hash or comparison it may see
    /// nothing ([`Inspection::unseen`]). Neither tasks nor sources are listed.
    ///
    /// ```
    /// use keyed_executor::{KeyedExecutor, MailboxState};
    ///
    /// let executor = KeyedExecutor::builder().workers(1).build()?;
    /// let orders = executor.keyspace(|_: u64| std::future::pending::<()>());
    /// orders.try_submit("order-1", 7)?;
    /// orders.try_submit("order-1", 8)?;
    /// let seen = loop {
    ///     let seen = executor.inspect(10);
    ///     if seen.mailboxes.iter().any(|mailbox| mailbox.state == MailboxState::Waiting) {
    ///         break seen;
    ///     }
    /// };
    /// assert_eq!((seen.mailboxes[0].key.as_str(), seen.mailboxes[0].queued), ("\"order-1\"", 1));
    /// executor.force_close();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn inspect(&self, limit: usize) -> Inspection {
        let shared = &self.guard.shared;
        let dispatches = shared.dispatches();
        let inspection = shared.inspect(&dispatches, limit);
        let_go(dispatches);
        inspection
    }

    /// The keys that most of the last messages were for, the hottest first, at most `limit` of them.
    ///
    /// Of each dispatch and keyspace one message in about 128 is looked at; a dispatch keeps 32 keys, a keyspace 32
    /// for each worker, and what was counted is halved every half a million messages. A key that more than a thirtieth of them
    /// are for is always among them; how far an estimate may be off is told with it. A worker that cannot be looked at, as in
    /// [`inspect`](Self::inspect), is left out.
    ///
    /// ```
    /// use keyed_executor::KeyedExecutor;
    ///
    /// let executor = KeyedExecutor::builder().workers(2).build()?;
    /// let orders = executor.keyspace(|_: u64| async {});
    /// orders.try_submit("order-1", 7)?;
    /// // Too few messages: none was looked at.
    /// assert!(executor.hot_keys(10).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        let shared = &self.guard.shared;
        let dispatches = shared.dispatches();
        let hottest = shared.hot_keys(&dispatches, limit);
        let_go(dispatches);
        hottest
    }

    #[cfg(all(test, not(keyed_shuttle)))]
    pub(crate) fn inner(&self) -> &Arc<Shared> {
        &self.guard.shared
    }
}
