//! `Counters`: what a dispatcher accepted and what became of it.
//!
//! Invariant: at any time accepted = handled + failed + discarded + in flight, the last being the difference.

use std::sync::atomic::{AtomicU64, Ordering};

use wow_runtime::WorkLedger;

use crate::kind::Handled;

// Relaxed throughout: the numbers order nothing; a report is read after the work has ended.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    accepted: AtomicU64,
    handled: AtomicU64,
    failed: AtomicU64,
    discarded: AtomicU64,
}

impl Counters {
    pub(crate) fn accept(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn settle(&self, handled: Handled) {
        let counter = match handled {
            Handled::Succeeded => &self.handled,
            Handled::Failed => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn discard(&self) {
        self.discarded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ledger(&self) -> WorkLedger {
        // The ends are read before the beginnings, so that the difference is never negative.
        let handled = self.handled.load(Ordering::Acquire);
        let failed = self.failed.load(Ordering::Acquire);
        let discarded = self.discarded.load(Ordering::Acquire);
        let accepted = self.accepted.load(Ordering::Acquire);
        let in_flight = accepted.saturating_sub(handled + failed + discarded);
        WorkLedger { accepted, handled, failed, discarded, in_flight }
    }
}
