//! The home's round, and the life of a dispatch: what came back, what was handed in, and the end.
//!
//! The home owns the intake and the source (rule 5 of seat/README.md). It takes completions back, runs its own lane,
//! turns to the source (`pull.rs`), and ends the dispatch when the source is gone and nothing is outstanding.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::accept::Start;
use super::pull::Brought;
use super::{Core, HOME, Home, Input, LostAt, OnSeat};
use crate::credit::{Need, Then};
use crate::cx::Cx;
use crate::engine::{ErrorOf, phase};
use crate::error::{Cause, DispatchError, Outcome};
use crate::lanes::{Lanes, Round};
use crate::sync::{Arc, Ordering, lock};
use crate::wake::waker;
use crate::worker::Worker;

impl<S, KF, K, M, H, F> Core<S, KF, K, M, H, F>
where
    S: Stream<Item = Result<M, ErrorOf<F>>> + Send + 'static,
    KF: Fn(&M) -> K + Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    /// Works on what the home owns.
    ///
    /// # Safety
    /// Rule 5 of seat/README.md: the caller holds the home's seat; `access` calls no user code and not this function.
    #[inline]
    pub(super) unsafe fn side<R>(&self, access: impl FnOnce(&mut Home<K, M>) -> R) -> R {
        // SAFETY: the caller's contract.
        self.side.with_mut(|side| access(unsafe { &mut *side }))
    }

    /// One round of the home: queued work, then the source.
    #[inline]
    pub(super) unsafe fn home_round(&self, cx: &Cx<'_>) -> OnSeat<Round, K, M, ErrorOf<F>> {
        // SAFETY: rules 1 and 5 of seat/README.md: the caller holds the home's seat.
        unsafe {
            let phase = self.engine.see_phase(cx);
            if phase == phase::ENDED {
                return Ok(Round::Ended);
            }
            if self.closing.load(Ordering::Relaxed) && self.side(|side| side.input != Input::Gone) {
                self.side(|side| side.shut_early = true);
                self.drop_source(cx);
            }
            if phase == phase::STOPPING {
                self.drop_source(cx);
                self.discard_aside(cx);
                if self.engine.lane_holds_something(cx) {
                    self.engine.discard_lane(cx);
                }
                self.take_back(cx);
                return Ok(if self.ended(cx) { Round::Ended } else { Round::Dry });
            }
            self.engine.run_lane(cx).map_err(LostAt::Message)?;
            // Between the two: a key whose messages just ended here is free to run in place again.
            self.take_back(cx);
            self.retry_aside(cx);
            let more = self.pull(cx)?;
            if self.ended(cx) {
                return Ok(Round::Ended);
            }
            // After the pull: what it queued here, or what ran in place and woke itself, is ready too.
            let backlog_ns = self.engine.backlog(self.home);
            Ok(if more || backlog_ns > 0 { Round::Busy { backlog_ns } } else { Round::Dry })
        }
    }

    /// Takes completions back and raises the budget by whole batches; true if anything came back.
    #[inline]
    pub(super) unsafe fn take_back(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        let came_back = unsafe {
            self.side(|side| {
                let before = (side.intake.returned, side.intake.window_returned());
                self.engine.reclaim(&mut side.intake, &mut side.dead);
                let came_back = side.intake.returned - before.0;
                side.came_back += came_back;
                // Only a permit of the window is demand: those of the overflow were never asked with.
                side.earn((side.intake.window_returned() - before.1) as usize, self.engine.batch);
                came_back > 0
            })
        };
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        while let Some(key) = unsafe { self.side(|side| side.dead.pop()) } {
            cx.drop_user("a key", key);
        }
        came_back
    }

    /// Discards a message that cannot be taken in, and ends the dispatch.
    #[cold]
    pub(super) unsafe fn refuse(&self, cx: &Cx<'_>, message: M, cause: Cause<ErrorOf<F>>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.side(|side| side.intake.passed_through());
            self.engine.plain(self.home, |plain| plain.tally.discarded += 1);
            cx.drop_user("a message", message);
            self.fail(cx, cause);
        }
    }

    #[cold]
    pub(super) unsafe fn fail(&self, cx: &Cx<'_>, cause: Cause<ErrorOf<F>>) {
        self.engine.stop(cause);
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        unsafe { self.drop_source(cx) };
    }

    /// Drops the source and shuts the door; once.
    #[cold]
    pub(super) unsafe fn drop_source(&self, cx: &Cx<'_>) {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        let input = unsafe {
            self.side(|side| match side.input {
                Input::Detached => {
                    side.unwanted = true;
                    Input::Detached
                }
                _ => std::mem::replace(&mut side.input, Input::Gone),
            })
        };
        // One that somebody is inside of is dropped when that thread is back.
        if matches!(input, Input::Gone | Input::Detached) {
            return;
        }
        let dropped = cx.user(|| {
            // SAFETY: rules 5 and 9 of seat/README.md: the input is Gone, so nobody polls the source any more; it is
            // dropped in its place.
            self.source.with_mut(|source| unsafe { *source = None });
        });
        if let Err(panic) = dropped {
            tracing::error!(label = &*self.engine.options.label, panic, "dropping the source panicked");
        }
        self.engine.shared.intake_closed();
    }

    /// Ends the dispatch if nothing of it is left.
    #[inline]
    pub(super) unsafe fn ended(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        unsafe {
            if self.side(|side| {
                side.input != Input::Gone || side.intake.outstanding() > 0 || side.aside.is_some()
            }) {
                return false;
            }
            self.finish(cx);
        }
        true
    }

    #[cold]
    pub(super) unsafe fn finish(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        let (accepted, shut_early) = unsafe {
            self.engine.publish(cx, Then::Dry);
            self.side(|side| (side.intake.accepted, side.shut_early))
        };
        let ledger = self.engine.ledger(accepted);
        let cause = self.engine.take_failure().or(shut_early.then_some(Cause::Closed));
        self.engine.end();
        let result = match cause {
            None => Ok(ledger),
            Some(cause) => Err(DispatchError { cause, ledger }),
        };
        // The waker of whoever waits is theirs: user code.
        if let Err(panic) = cx.user(|| self.completion.resolve(result)) {
            tracing::error!(
                label = &*self.engine.options.label,
                panic,
                "waking who awaits a dispatch panicked"
            );
        }
    }

    /// The home runs dry: what it waits for besides its source.
    pub(super) unsafe fn settle_home(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.publish(cx, Then::Dry);
            if self.take_back(cx) {
                return true;
            }
            let batch = self.engine.batch as u64;
            let half = (self.engine.window / 2).max(self.engine.batch) as u64;
            let wanted = self.side(|side| {
                let outstanding = side.intake.outstanding();
                let lasts = side.input == Input::Gone || !self.engine.is_running();
                // The end takes everything; a full window asks for what makes a batch of demand (KW-3); and keys are
                // forgotten within one batch while the source has nothing.
                let earned = if side.budget == 0 { side.earned as u64 } else { 0 };
                let need = |messages: u64| side.came_back + messages.saturating_sub(earned).max(1);
                match outstanding {
                    0 => None,
                    // Anything that comes back may be what a message that was set aside waits for.
                    _ if side.aside.is_some() => {
                        let any = side.came_back + 1;
                        Some(Need { busy: any, dry: any, empty_at: None })
                    }
                    all if lasts => Some(Need { busy: need(all), dry: need(all), empty_at: None }),
                    _ => Some(Need { busy: need(half), dry: need(batch), empty_at: None }),
                }
            });
            let Some(need) = wanted else {
                self.engine.credit.forget(HOME);
                return false;
            };
            let waker = self.side(|side| side.cell.as_ref().map(waker));
            let Some(waker) = waker else { return false };
            self.engine.credit.register(HOME, need, &waker) > self.side(|side| side.came_back)
                && self.take_back(cx)
        }
    }

    pub(super) fn me(&self) -> Arc<dyn Lanes> {
        self.me.upgrade().expect("a core that is used is alive")
    }

    /// Leaves what a thread brought that lost the seat, and wakes the seat's new occupant for it.
    pub(super) fn hand_in(&self, worker: &Arc<Worker>, lost: LostAt<K, M, ErrorOf<F>>) {
        // Before anything is left: once it is taken, nothing else keeps this core alive for this thread.
        let me = self.me();
        match lost {
            LostAt::Message(lost) => self.engine.hand_in(lost),
            LostAt::Source(brought) => *lock(&self.handed_step) = Some(brought),
        }
        self.engine.shared.tell_handed_in(worker, me);
    }

    /// Drops what the source brought, and the source: nothing is taken in any more.
    #[cold]
    pub(super) unsafe fn turn_away(&self, cx: &Cx<'_>, brought: Brought<K, M, ErrorOf<F>>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if brought.message.is_some() {
                self.side(|side| side.intake.passed_through());
                self.engine.plain(self.home, |plain| plain.tally.discarded += 1);
            }
            cx.drop_user("what a source brought", brought);
            self.drop_source(cx);
        }
    }

    /// Acts on what was polled by a thread that lost the seat meanwhile.
    pub(super) unsafe fn take_handed_step(&self, cx: &Cx<'_>) {
        let Some(mut brought) = lock(&self.handed_step).take() else { return };
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract; nobody is inside the source any more.
        unsafe {
            let unwanted = self.side(|side| {
                side.input = Input::Ready;
                std::mem::replace(&mut side.unwanted, false)
            });
            if unwanted || !self.engine.is_running() {
                self.turn_away(cx, brought);
                return;
            }
            // A wake that came while the source was detached meant nothing then: it is asked once more instead.
            if brought.waits() {
                return;
            }
            // Never in place: this is not the home's turn at its source.
            let stepped = self.step(cx, &mut brought, Start::Queued);
            debug_assert!(stepped.is_ok(), "nothing is run where it was handed in");
            self.notify_touched();
        }
    }
}

impl<K, M> Home<K, M> {
    /// Messages ended; the budget goes up by all that ended once they are a batch (KW-3).
    #[inline]
    pub(super) fn earn(&mut self, ended: usize, batch: usize) {
        self.earned += ended;
        if self.earned >= batch {
            self.budget += std::mem::take(&mut self.earned);
        }
    }
}
