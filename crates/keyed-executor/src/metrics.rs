//! Plain counters of an executor, read by whoever exports them; no exporter here.
//!
//! Each worker writes its own counters (one writer, so a relaxed load and store is enough) and publishes them with its
//! completions; a reader sees each of them slightly late and never torn. What is counted of one dispatch is `figures.rs`.

use std::time::Duration;

use crate::figures::{Counter, DispatchMetrics};

/// What one worker counts.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    pub(crate) messages: Counter,
    pub(crate) in_place: Counter,
    pub(crate) turns: Counter,
    pub(crate) tasks: Counter,
    pub(crate) panics: Counter,
    pub(crate) failures: Counter,
    pub(crate) discards: Counter,
    pub(crate) placements: Counter,
    pub(crate) parks: Counter,
    /// Nanoseconds asleep.
    pub(crate) asleep: Counter,
}

impl WorkerCounters {
    /// What was counted; what its lanes have is added by the caller.
    pub(crate) fn read(&self, running: bool, parked: bool) -> WorkerMetrics {
        WorkerMetrics {
            running,
            parked,
            messages: self.messages.get(),
            in_place: self.in_place.get(),
            turns: self.turns.get(),
            tasks: self.tasks.get(),
            panics: self.panics.get(),
            failures: self.failures.get(),
            discards: self.discards.get(),
            placements: self.placements.get(),
            live_mailboxes: 0,
            ready: 0,
            parks: self.parks.get(),
            parked_for: Duration::from_nanos(self.asleep.get()),
        }
    }
}

/// What an executor counted, worker by worker and dispatch by dispatch.
///
/// ```
/// use keyed_executor::KeyedExecutor;
///
/// let executor = KeyedExecutor::builder().workers(2).build()?;
/// let orders = executor.keyspace(|_: u64| async {});
/// orders.try_submit("order-1", 7)?;
/// let metrics = executor.metrics();
/// assert_eq!(metrics.dispatches[0].label, "keyspace");
/// assert!(metrics.in_flight() <= 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExecutorMetrics {
    /// One for each worker, in the order of their numbers.
    pub workers: Vec<WorkerMetrics>,
    /// One for each dispatch and keyspace that something of is left, in the order in which they were opened.
    pub dispatches: Vec<DispatchMetrics>,
    /// Tasks that came back to whoever gave them.
    pub rejected_tasks: u64,
    /// What the monitor saw and did.
    pub monitor: MonitorMetrics,
}

impl ExecutorMetrics {
    /// Workers whose thread runs and does not sleep.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.workers.iter().filter(|worker| worker.running && !worker.parked).count()
    }

    /// Workers whose thread sleeps.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.workers.iter().filter(|worker| worker.running && worker.parked).count()
    }

    /// Messages accepted whose permits have not come back, of all dispatches.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.dispatches.iter().map(|dispatch| dispatch.in_flight).sum()
    }

    /// Keys with an unfinished message that their worker has taken in, of all dispatches.
    #[must_use]
    pub fn live_mailboxes(&self) -> u64 {
        self.dispatches.iter().map(|dispatch| dispatch.live_mailboxes).sum()
    }

    /// For how long the oldest unfinished message of all dispatches has been on its worker.
    #[must_use]
    pub fn oldest_unfinished(&self) -> Option<Duration> {
        self.dispatches.iter().filter_map(|dispatch| dispatch.oldest_unfinished).max()
    }

    /// Mailboxes in the run queues of all workers.
    #[must_use]
    pub fn ready(&self) -> u64 {
        self.dispatches.iter().map(|dispatch| dispatch.ready).sum()
    }
}

/// What one worker counted since the executor was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerMetrics {
    /// Its thread was started and has not ended.
    pub running: bool,
    /// It sleeps.
    pub parked: bool,
    /// Messages whose handler ended on it, well or not; like turns and placements they are counted with the completions, in batches.
    pub messages: u64,
    /// Those of them that ran where their source yielded them, without a mailbox.
    pub in_place: u64,
    /// Turns of mailboxes.
    pub turns: u64,
    /// Tasks run.
    pub tasks: u64,
    /// Handlers and tasks that panicked.
    pub panics: u64,
    /// Messages whose handler failed or panicked.
    pub failures: u64,
    /// Messages it dropped without a handler.
    pub discards: u64,
    /// Mailboxes that were placed on it.
    pub placements: u64,
    /// Gauge: mailboxes on it now.
    pub live_mailboxes: u64,
    /// Gauge: its run queue, the mailboxes on it that are ready.
    pub ready: u64,
    /// Times it went to sleep.
    pub parks: u64,
    /// For how long it slept, the sleep it is in not included: the rest of a second it was awake.
    pub parked_for: Duration,
}

/// What the monitor saw and did since the executor was built, and its spare threads now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorMetrics {
    /// Seats taken from under a stuck thread.
    pub rescues: u64,
    /// Gauge: threads that lost their seat and have not come back.
    pub stuck: usize,
    /// Gauge: threads beside the workers, stuck ones among them.
    pub spares: usize,
    /// Gauge: threads without a seat that wait for one.
    pub idle_spares: usize,
    /// Pieces of user code that were named because they held their thread for `stuck_after`.
    pub named: u64,
    /// Workers that slept beside work for a second and were woken: a bug of this crate, each of them.
    pub stranded: u64,
    /// Looks at the threads, one every few milliseconds; none while all of them sleep.
    pub looks: u64,
}
