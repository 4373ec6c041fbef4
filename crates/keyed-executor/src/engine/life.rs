//! The life of a dispatch, and what is counted of it: it runs, stops once for a first cause, and ends.
//!
//! Any thread may stop it; the lanes see it at their next look. Who decides that nothing is left are the doors.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::{Engine, ErrorOf, phase};
use crate::cx::Cx;
use crate::error::{Cause, Ledger, Outcome};
use crate::figures::DispatchMetrics;
use crate::options::OnFailure;
use crate::sync::{Ordering, lock};

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    #[inline]
    pub(crate) fn phase(&self) -> u8 {
        // Relaxed where it is read for each message; `stop` notifies every lane, and the fences of `sleep.rs` make
        // the worker's next look see it.
        self.phase.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.phase() == phase::RUNNING
    }

    /// Ends the dispatch early; the first cause stays, later ones are logged.
    pub(crate) fn stop(&self, cause: Cause<ErrorOf<F>>) {
        let dropped = {
            let mut failure = lock(&self.failure);
            if failure.is_none() && self.phase.load(Ordering::Acquire) != phase::ENDED {
                *failure = Some(cause);
                None
            } else {
                Some(cause)
            }
        };
        if let Some(dropped) = dropped {
            self.report_dropped(&dropped);
            crate::contain::drop_contained("a dropped error", dropped);
            return;
        }
        // AcqRel: a lane that sees STOPPING sees why.
        let stopped =
            self.phase.compare_exchange(phase::RUNNING, phase::STOPPING, Ordering::AcqRel, Ordering::Acquire);
        if stopped.is_ok() {
            self.notify_lanes();
            self.credit.wake_all();
        }
    }

    fn report_dropped(&self, cause: &Cause<ErrorOf<F>>) {
        let label = &*self.options.label;
        match cause {
            // Asked for, not failed: nothing to report.
            Cause::Closed | Cause::Cancelled => {}
            Cause::Source(_) => tracing::error!(label, "the source failed after the dispatch had ended"),
            Cause::Handler { key, .. } => {
                tracing::error!(label, key, "a handler failed after the dispatch had failed");
            }
            Cause::HandlerPanicked { key, message } => {
                tracing::error!(label, key, message, "a handler panicked after the dispatch had failed");
            }
            Cause::KeyTooLong { .. } | Cause::TooHeavy { .. } => {
                tracing::error!(label, "a message that never has room came to a dispatch that had failed");
            }
            Cause::KeyPanicked { message }
            | Cause::SourcePanicked { message }
            | Cause::NoWorker { message } => {
                tracing::error!(label, message, "a second failure of a dispatch that had failed");
            }
        }
    }

    /// A message failed.
    #[cold]
    pub(crate) fn failed(&self, cx: &Cx<'_>, cause: Cause<ErrorOf<F>>) {
        cx.worker.counters().failures.add(1);
        if let Cause::HandlerPanicked { key, message } = &cause {
            cx.worker.counters().panics.add(1);
            self.counts.panicked.fetch_add(1, Ordering::Relaxed);
            tracing::error!(label = &*self.options.label, key, message, "a handler panicked");
        }
        match self.options.on_failure {
            // Waiting submitters are woken in there: user code.
            OnFailure::Fail => {
                if let Err(panic) = cx.user(|| self.stop(cause)) {
                    tracing::error!(panic, "waking a submitter panicked");
                }
            }
            OnFailure::Continue => {
                if let Cause::Handler { key, .. } = &cause {
                    tracing::warn!(label = &*self.options.label, key, "a handler failed, its key goes on");
                }
                cx.drop_user("a handler's error", cause);
            }
        }
    }

    /// Nothing is left: the workers may forget the dispatch.
    pub(crate) fn end(&self) {
        self.phase.store(phase::ENDED, Ordering::Release);
        self.notify_lanes();
    }

    /// The first failure, once.
    pub(crate) fn take_failure(&self) -> Option<Cause<ErrorOf<F>>> {
        lock(&self.failure).take()
    }

    /// Whether a message of this dispatch failed it.
    pub(crate) fn has_failed(&self) -> bool {
        !self.is_running()
    }

    /// Where the messages went, of which `accepted` were accepted.
    pub(crate) fn ledger(&self, accepted: u64) -> Ledger {
        // Acquire is not needed: whoever asks for the final figures saw the last completion (Acquire), and the counts
        // were added before it.
        Ledger {
            accepted,
            handled: self.counts.handled.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            cancelled: self.counts.cancelled.load(Ordering::Relaxed),
            discarded: self.counts.discarded.load(Ordering::Relaxed),
        }
    }

    /// What is counted of it, read from any thread.
    pub(crate) fn figures(&self) -> DispatchMetrics {
        let mut metrics = DispatchMetrics {
            label: self.options.label.clone(),
            window: self.window,
            overflow: self.limits.overflow as usize,
            handled: self.counts.handled.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            panicked: self.counts.panicked.load(Ordering::Relaxed),
            cancelled: self.counts.cancelled.load(Ordering::Relaxed),
            discarded: self.counts.discarded.load(Ordering::Relaxed),
            refused: self.refusals.read(),
            ..DispatchMetrics::default()
        };
        let mut checked = 0;
        for lane in &self.lanes {
            // First what came back, then what went in: the completions' tail (Acquire) is published after the worker saw
            // what it completes, so the second figure is never behind the first.
            let back = lane.completions.published();
            let given = lane.inbox.published() + lane.figures.kept.get();
            metrics.in_flight += given.saturating_sub(back);
            metrics.live_mailboxes += lane.figures.live.get();
            metrics.ready += lane.figures.ready.get();
            metrics.waiting += lane.figures.waiting.get();
            metrics.turns.add(&lane.figures);
            checked += lane.figures.audited.get();
        }
        metrics.audited = self.auditor.as_ref().map(|auditor| auditor.read(checked));
        // The lanes were read one after the other: a permit may have been seen on two.
        metrics.in_flight = metrics.in_flight.min((self.window + metrics.overflow) as u64);
        metrics
    }
}
