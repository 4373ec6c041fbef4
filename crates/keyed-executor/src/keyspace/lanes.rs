//! A keyspace as its workers see it: every lane is like every other, the intake is behind its lock.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::core::{Core, Side};
use crate::credit::{Then, wake_contained};
use crate::cx::Cx;
use crate::error::{Cause, Outcome};
use crate::figures::{DispatchMetrics, LaneFigures};
use crate::hot::Gathered;
use crate::lanes::{Lanes, Round, Shut};
use crate::look::Look;
use crate::seat::AttachId;
use crate::watchdog::StuckCode;

impl<K, M, H, F> Lanes for Core<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    unsafe fn attached(&self, cx: &Cx<'_>, id: AttachId) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.plain(cx.worker.index(), |plain| plain.attached = Some(id)) };
    }

    unsafe fn round(&self, cx: &Cx<'_>) -> Round {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        match unsafe { self.engine.lane_round(cx) } {
            Ok(round) => round,
            Err(lost) => {
                // Before anything is left: once it is taken, nothing else keeps this core alive for this thread.
                let me = self.me();
                self.engine.hand_in(lost);
                self.engine.shared.tell_handed_in(cx.worker, me);
                Round::Lost
            }
        }
    }

    unsafe fn waits(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.lane_waits(cx) }
    }

    unsafe fn running(&self, cx: &Cx<'_>) -> Option<StuckCode> {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.lane_runs(cx) }
    }

    unsafe fn adopt(&self, cx: &Cx<'_>) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.adopt_lane(cx) };
    }

    unsafe fn handed_in(&self, cx: &Cx<'_>) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.take_handed_in(cx) };
    }

    unsafe fn wake(&self, cx: &Cx<'_>, entry: u32) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.woken(cx, entry) };
    }

    unsafe fn settle(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.publish(cx, Then::Dry) };
        false
    }

    unsafe fn rest(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let (shown, rested) = unsafe { self.engine.plain(worker, |plain| (plain.shown, plain.rested)) };
        if shown == rested {
            return;
        }
        // Keys that have no message left are forgotten before the worker sleeps, unless somebody is at the intake anyway:
        // waiting for a lock that is held around a key's comparison would hold the seat for it.
        let Ok(mut guard) = self.side.try_lock() else { return };
        self.take_back(&mut guard);
        let Side { dead, waiting, .. } = &mut *guard;
        let (dead, due) = (std::mem::take(dead), std::mem::take(&mut waiting.due));
        drop(guard);
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.plain(worker, |plain| plain.rested = shown) };
        if !dead.is_empty() {
            cx.drop_user("keys", dead);
        }
        if !due.is_empty() {
            // Wakers of waiting submitters are theirs: user code. Each is contained.
            let _ = cx.user(|| due.into_iter().for_each(wake_contained));
        }
    }

    unsafe fn has_news(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.lane_has_news(cx) }
    }

    unsafe fn look(&self, cx: &Cx<'_>, look: &mut Look) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.look_at_lane(cx, look) };
    }

    unsafe fn key_line(&self, _cx: &Cx<'_>, entry: u32) -> String {
        self.engine.key_line(entry)
    }

    unsafe fn hot_keys(&self, cx: &Cx<'_>, dispatch: usize, gathered: &mut Gathered) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            self.engine.plain(cx.worker.index(), |plain| gathered.add(dispatch, self.label(), &plain.hot));
        }
    }

    unsafe fn discard(&self, cx: &Cx<'_>) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.discard_lane(cx) };
    }

    unsafe fn bury(&self, cx: &Cx<'_>) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.bury_lane(cx) };
    }

    fn label(&self) -> &str {
        &self.engine.options.label
    }

    fn figures(&self) -> DispatchMetrics {
        self.engine.figures()
    }

    fn lane_figures(&self, worker: usize) -> &LaneFigures {
        &self.engine.lanes[worker].figures
    }

    fn shut(&self, how: Shut) {
        self.close_intake();
        if how == Shut::Force {
            self.engine.stop(Cause::Closed);
        }
    }
}
