//! Plain counters of an executor, read by whoever exports them; no exporter here.
//!
//! Each worker writes its own counters (one writer, so a relaxed load and store is enough) and publishes them with its
//! completions; a reader sees each of them slightly late and never torn.

use crate::sync::{AtomicU64, Ordering};

/// A counter with one writer at a time: whoever owns the seat.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // A load and a store instead of a read-modify-write: rule 1 of seat/README.md gives the counter one writer at
        // a time, handed over with the token.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one worker counts.
#[derive(Debug)]
pub(crate) struct WorkerCounters {
    pub(crate) messages: Counter,
    pub(crate) in_place: Counter,
    pub(crate) turns: Counter,
    pub(crate) tasks: Counter,
    pub(crate) panics: Counter,
    pub(crate) placements: Counter,
    pub(crate) begun: Counter,
    pub(crate) forgotten: Counter,
    pub(crate) parks: Counter,
}

impl WorkerCounters {
    pub(crate) fn new() -> Self {
        Self {
            messages: Counter::new(),
            in_place: Counter::new(),
            turns: Counter::new(),
            tasks: Counter::new(),
            panics: Counter::new(),
            placements: Counter::new(),
            begun: Counter::new(),
            forgotten: Counter::new(),
            parks: Counter::new(),
        }
    }

    pub(crate) fn read(&self, running: bool, parked: bool) -> WorkerMetrics {
        let forgotten = self.forgotten.get();
        let begun = self.begun.get();
        WorkerMetrics {
            running,
            parked,
            messages: self.messages.get(),
            in_place: self.in_place.get(),
            turns: self.turns.get(),
            tasks: self.tasks.get(),
            panics: self.panics.get(),
            placements: self.placements.get(),
            live_mailboxes: begun.saturating_sub(forgotten),
            parks: self.parks.get(),
        }
    }
}

/// What an executor counted, worker by worker.
#[derive(Clone, Debug, Default)]
pub struct ExecutorMetrics {
    /// One for each worker, in the order of their numbers.
    pub workers: Vec<WorkerMetrics>,
}

/// What one worker counted since the executor was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerMetrics {
    /// Its thread was started and has not ended.
    pub running: bool,
    /// It sleeps.
    pub parked: bool,
    /// Messages whose handler ended on it, well or not.
    pub messages: u64,
    /// Those of them that ran where their source yielded them, without a mailbox.
    pub in_place: u64,
    /// Turns of mailboxes.
    pub turns: u64,
    /// Tasks run.
    pub tasks: u64,
    /// Handlers and tasks that panicked.
    pub panics: u64,
    /// Mailboxes that were placed on it.
    pub placements: u64,
    /// Mailboxes on it now.
    pub live_mailboxes: u64,
    /// Times it went to sleep.
    pub parks: u64,
}
