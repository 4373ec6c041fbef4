//! The hand-over of messages: which worker a new key goes to, the push into its lane, and the word that something is there.
//!
//! Rule 5 of seat/README.md says who pushes. A worker has the dispatch attached before it gets its first message, and is
//! notified after the push, once for as many messages as the caller likes. Whether a message is accepted at all is the
//! doors'; what a worker makes of it is `round.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::Engine;
use crate::error::Outcome;
use crate::intake::Intake;
use crate::lane::Item;
use crate::lanes::Lanes;
use crate::placement::{Doing, LaneView};
use crate::sleep::Notified;
use crate::sync::{Arc, Ordering};
use crate::worker::Job;

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// What the intake knows of a worker's lane.
    #[inline]
    pub(crate) fn view(&self, pushed: u64, worker: usize) -> LaneView {
        let lane = &self.lanes[worker];
        LaneView {
            queued: pushed.saturating_sub(lane.taken.load(Ordering::Relaxed)),
            cost: lane.cost.load(Ordering::Relaxed),
            worker: Doing::Anything,
        }
    }

    /// Chooses the worker of a new key and starts its thread if it has none.
    #[inline]
    pub(crate) fn choose(&self, hash: u64, intake: &mut Intake) -> Option<usize> {
        let Intake { placement, pushed, .. } = intake;
        placement.choose(
            hash,
            &self.shared.workers,
            |worker| self.view(pushed[worker], worker),
            |worker| self.shared.ensure_started(worker).is_ok(),
        )
    }

    /// Shows a message to its worker, which `me` has to hand the dispatch to first if it never had a message.
    #[inline]
    pub(crate) fn push(
        &self,
        intake: &mut Intake,
        worker: usize,
        item: Item,
        me: impl FnOnce() -> Arc<dyn Lanes>,
    ) {
        let lane = &self.lanes[worker];
        // Relaxed: only the intake's owner writes it.
        if !lane.attached.load(Ordering::Relaxed) {
            self.attach(worker, me());
        }
        intake.add(item.entry());
        let position = intake.pushed[worker];
        // SAFETY: rule 5 of seat/README.md: the caller owns the intake, so it is the inbox's only producer.
        unsafe { lane.inbox.write(position, item) };
        intake.pushed[worker] = position + 1;
        lane.inbox.publish(position + 1);
    }

    /// Hands the dispatch to a worker, before its first message goes there.
    #[cold]
    pub(crate) fn attach(&self, worker: usize, me: Arc<dyn Lanes>) {
        // Release: pairs with the Acquire in `notify_lanes`.
        self.lanes[worker].attached.store(true, Ordering::Release);
        self.shared.workers[worker].jobs().push(Job::Attach(me));
    }

    /// Makes sure a worker looks at what was pushed. If its thread died meanwhile, what it will never take is dropped
    /// here.
    #[inline]
    pub(crate) fn notify(&self, worker: usize) {
        if self.shared.workers[worker].sleeper().notify() == Notified::Gone {
            self.shared.sweep(worker);
        }
    }

    /// Makes every worker that has a lane of this dispatch look at it.
    pub(crate) fn notify_lanes(&self) {
        for (lane, worker) in self.lanes.iter().zip(&self.shared.workers) {
            if lane.attached.load(Ordering::Acquire) {
                let _ = worker.sleeper().notify();
            }
        }
    }
}
