//! The watchdog: a piece of user code that holds its thread for too long is named while it does, once.
//!
//! Owns what is told and to whom: a line in the log, the hook of the builder, a counter. When it looks is `monitor.rs`. A
//! handler that waits holds no thread, so there is no false alarm for it; one whose seat was taken is on no seat any more
//! and is named from what was noted when it was taken. It ends nothing and rescues nobody.

use std::fmt::{self, Debug};
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use crate::contain::contain;
use crate::cx::Cx;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::mailbox::NONE;
use crate::metrics::MonitorMetrics;
use crate::shared::Shared;
use crate::sync::{Arc, AtomicU64, Figure, Ordering};
use crate::worker::Worker;

/// What holds its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StuckCode {
    /// One poll of a handler, or the call that makes its future.
    Handler {
        /// The label of its dispatch or keyspace.
        label: String,
        /// The key of its message, as its `Debug` writes it.
        key: String,
    },
    /// One poll of a source, or the selection of a key for what it yielded.
    Source {
        /// The label of its dispatch.
        label: String,
    },
    /// A task, or user code that the executor runs on the way: a drop, a waker.
    Other,
}

/// User code that has held its thread for longer than `stuck_after`, told while it does:
/// [`Builder::on_stuck`](crate::Builder::on_stuck).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// What it is.
    pub code: StuckCode,
    /// Whose worker it came to: an index into [`ExecutorMetrics::workers`](crate::ExecutorMetrics::workers).
    pub worker: usize,
    /// For how long it was seen there, so far.
    pub held: Duration,
    /// Whether the rest of its worker goes on elsewhere meanwhile.
    pub rescued: bool,
}

/// As a log line would say it: `handler of key 7 (orders) on worker 1 for 1.2s`.
impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            StuckCode::Handler { label, key } => write!(f, "handler of key {key} ({label})")?,
            StuckCode::Source { label } => write!(f, "source ({label})")?,
            StuckCode::Other => f.write_str("a task, a drop or a waker")?,
        }
        write!(f, " on worker {} for {:?}", self.worker + 1, self.held)
    }
}

/// What the user wants to be called with.
#[derive(Clone)]
pub(crate) struct OnStuck(Arc<dyn Fn(&Stuck) + Send + Sync>);

impl OnStuck {
    pub(crate) fn new(hook: impl Fn(&Stuck) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for OnStuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStuck")
    }
}

/// Whom to tell, and what was told.
pub(crate) struct Watchdog {
    hook: Option<OnStuck>,
    named: AtomicU64,
    pub(crate) stranded: AtomicU64,
    /// Looks of the monitor.
    pub(crate) looks: Figure,
}

impl Watchdog {
    pub(crate) fn new(hook: Option<OnStuck>) -> Self {
        Self { hook, named: AtomicU64::new(0), stranded: AtomicU64::new(0), looks: Figure::new(0) }
    }

    /// Tells of a piece of code; the hook runs on this thread, the monitor's.
    pub(crate) fn tell(&self, stuck: &Stuck) {
        // Relaxed: only the monitor writes it, and readers take it alone.
        self.named.fetch_add(1, Ordering::Relaxed);
        let (worker, rescued) = (stuck.worker + 1, stuck.rescued);
        let held_ms = millis(stuck.held);
        match &stuck.code {
            StuckCode::Handler { label, key } => {
                tracing::warn!(label, key, worker, held_ms, rescued, "a handler holds its thread");
            }
            StuckCode::Source { label } => {
                tracing::warn!(label, worker, held_ms, rescued, "a source holds its thread");
            }
            StuckCode::Other => {
                tracing::warn!(worker, held_ms, rescued, "a task, a drop or a waker holds its thread");
            }
        }
        if let Some(OnStuck(hook)) = &self.hook {
            if let Err(panic) = contain(|| hook(stuck)) {
                tracing::error!(panic, "the hook for stuck code panicked");
            }
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A piece of code that was named has let its thread go.
pub(crate) fn log_end(code: &StuckCode, worker: usize, held: Duration) {
    let (worker, held_ms) = (worker + 1, millis(held));
    match code {
        StuckCode::Handler { label, key } => {
            tracing::info!(label, key, worker, held_ms, "a handler that held its thread is back");
        }
        StuckCode::Source { label } => {
            tracing::info!(label, worker, held_ms, "a source that held its thread is back");
        }
        StuckCode::Other => {
            tracing::info!(worker, held_ms, "a task, a drop or a waker that held its thread is back");
        }
    }
}

impl Shared {
    /// What the monitor saw and did.
    pub(crate) fn monitor_metrics(&self) -> MonitorMetrics {
        MonitorMetrics {
            named: self.watchdog.named.load(Ordering::Relaxed),
            stranded: self.watchdog.stranded.load(Ordering::Relaxed),
            looks: self.watchdog.looks.load(Ordering::Relaxed),
            ..self.rescue.metrics()
        }
    }

    /// Names what a worker's thread is inside of, if it is still the same piece of code.
    pub(crate) fn name_stuck(worker: &Arc<Worker>, word: u64) -> Option<StuckCode> {
        let (token, borrowed) = worker.try_borrow()?;
        let code = if !borrowed.is(word) {
            None
        } else if borrowed.may_be_taken() {
            // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back after the last use.
            let cx = unsafe { Cx::borrower(worker) };
            Some(cx.running())
        } else {
            Some(StuckCode::Other)
        };
        token.give_back(borrowed);
        code
    }
}

impl Cx<'_> {
    /// What the thread of this seat is inside of; the caller borrowed the seat while it was lent.
    pub(crate) fn running(&self) -> StuckCode {
        (0..self.attachments())
            .find_map(|index| {
                // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `discard_all`.
                self.lanes(index).and_then(|lanes| unsafe { (*lanes).running(self) })
            })
            .unwrap_or(StuckCode::Other)
    }
}

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// What runs on this lane, if anything does.
    ///
    /// # Safety
    /// Rule 1 of seat/README.md: the caller borrowed the seat of `cx` while it was lent.
    pub(crate) unsafe fn lane_runs(&self, cx: &Cx<'_>) -> Option<StuckCode> {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let entry = unsafe { self.plain(cx.worker.index(), |plain| plain.turn) };
        // Rule 6: a mailbox whose turn it is while the seat is lent has a message that runs.
        (entry != NONE)
            .then(|| StuckCode::Handler { label: self.options.label.clone(), key: self.key_text(entry) })
    }
}
