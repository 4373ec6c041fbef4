//! A source dispatch as its workers see it: the home's lane is special, the others are like a keyspace's.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::{Core, Input, LostAt};
use crate::credit::Then;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::{Cause, DispatchError, Outcome};
use crate::figures::{DispatchMetrics, LaneFigures};
use crate::hot::Gathered;
use crate::lanes::{Lanes, Round, Shut};
use crate::look::{IN_PLACE, Look};
use crate::seat::AttachId;
use crate::sync::{Arc, Ordering};
use crate::wake::{SOURCE, WakeCell};
use crate::watchdog::StuckCode;

impl<S, KF, K, M, H, F> Lanes for Core<S, KF, K, M, H, F>
where
    S: Stream<Item = Result<M, ErrorOf<F>>> + Send + 'static,
    KF: Fn(&M) -> K + Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    unsafe fn attached(&self, cx: &Cx<'_>, id: AttachId) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.plain(worker, |plain| plain.attached = Some(id));
            if worker == self.home {
                let cell = WakeCell::new(Arc::clone(cx.worker), id, SOURCE);
                self.side(|side| side.cell = Some(cell));
            }
        }
    }

    unsafe fn round(&self, cx: &Cx<'_>) -> Round {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            let worker = cx.worker.index();
            let round = if worker == self.home {
                self.home_round(cx)
            } else {
                self.engine.lane_round(cx).map_err(LostAt::Message)
            };
            let round = match round {
                Ok(round) => round,
                Err(lost) => {
                    self.hand_in(cx.worker, lost);
                    return Round::Lost;
                }
            };
            if worker == self.home {
                return round;
            }
            let orphaned = self.orphaned.load(Ordering::Acquire)
                && !self.engine.lane_holds_something(cx)
                && !self.engine.lane_has_detached(cx);
            if orphaned { Round::Ended } else { round }
        }
    }

    unsafe fn wake(&self, cx: &Cx<'_>, entry: u32) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if entry != SOURCE {
                self.engine.woken(cx, entry);
                return;
            }
            self.side(|side| {
                if side.input == Input::Waiting {
                    side.input = Input::Ready;
                }
            });
        }
    }

    unsafe fn settle(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            if cx.worker.index() == self.home {
                return self.settle_home(cx);
            }
            self.engine.publish(cx, Then::Dry);
        }
        false
    }

    unsafe fn rest(&self, _cx: &Cx<'_>) {
        // The home takes its keys back itself, in `settle_home`.
    }

    unsafe fn has_news(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.lane_has_news(cx)
                || if cx.worker.index() == self.home {
                    // A source that somebody is inside of is dropped later: there is nothing to do about it now.
                    self.closing.load(Ordering::Relaxed)
                        && self.side(|side| side.input != Input::Gone && !side.unwanted)
                } else {
                    // Nobody else will end it: its next round here does.
                    self.orphaned.load(Ordering::Acquire)
                        && !self.engine.lane_holds_something(cx)
                        && !self.engine.lane_has_detached(cx)
                }
        }
    }

    unsafe fn waits(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if self.engine.lane_waits(cx) {
                return true;
            }
            if cx.worker.index() != self.home {
                return false;
            }
            let closing = self.closing.load(Ordering::Relaxed);
            self.side(|side| {
                // While the thread is inside the source itself, nobody else can ask it.
                let for_the_source = !side.polling
                    && (side.intake.returned_elsewhere(&self.engine.lanes)
                        || (side.input == Input::Ready && side.budget > 0)
                        || (closing && matches!(side.input, Input::Ready | Input::Waiting | Input::Held)));
                // Workers that were given something are told at the end of this turn, which may be far.
                for_the_source || side.touched.contains(&true)
            })
        }
    }

    unsafe fn running(&self, cx: &Cx<'_>) -> Option<StuckCode> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let queued = self.engine.lane_runs(cx);
            if queued.is_some() || cx.worker.index() != self.home {
                return queued;
            }
            let label = self.engine.options.label.clone();
            if self.side(|side| side.polling) {
                return Some(StuckCode::Source { label });
            }
            self.side.with(|side| {
                // The key of what runs in place; nobody changes the home while its seat is borrowed.
                let (key, _) = (*side).in_place.as_ref()?;
                Some(StuckCode::Handler { label, key: crate::engine::text_of(key) })
            })
        }
    }

    unsafe fn adopt(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.adopt_lane(cx);
            if cx.worker.index() != self.home {
                return;
            }
            if let Some(entry) = self.settle_in_place(cx) {
                self.engine.detach(self.home, entry);
            }
            self.side(|side| {
                if std::mem::replace(&mut side.polling, false) {
                    side.input = Input::Detached;
                }
            });
            self.notify_touched();
        }
    }

    unsafe fn handed_in(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.take_handed_in(cx);
            if cx.worker.index() == self.home {
                self.take_handed_step(cx);
            }
        }
    }

    unsafe fn look(&self, cx: &Cx<'_>, look: &mut Look) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.look_at_lane(cx, look);
            if cx.worker.index() == self.home && self.side(|side| side.in_place.is_some()) {
                look.add_in_place();
            }
        }
    }

    unsafe fn key_line(&self, _cx: &Cx<'_>, entry: u32) -> String {
        if entry != IN_PLACE {
            return self.engine.key_line(entry);
        }
        self.side.with(|side| {
            // SAFETY: rules 1 and 5 of seat/README.md: this function's contract; the side is only read, and the key's
            // `Debug` cannot reach it: whoever looks again meanwhile is refused (`worker::look_at`).
            let key = unsafe { &(*side).in_place };
            key.as_ref().map(|(key, _)| crate::contain::line(key)).unwrap_or_default()
        })
    }

    unsafe fn hot_keys(&self, cx: &Cx<'_>, dispatch: usize, gathered: &mut Gathered) {
        if cx.worker.index() == self.home {
            // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
            unsafe { self.side(|side| gathered.add(dispatch, self.label(), &side.hot)) };
        }
    }

    unsafe fn discard(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.discard_lane(cx);
            if cx.worker.index() == self.home {
                self.discard_aside(cx);
            }
        }
    }

    unsafe fn bury(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.bury_lane(cx);
            if cx.worker.index() != self.home {
                return;
            }
            self.engine.stop(Cause::NoWorker { message: "the source's worker died".to_owned() });
            self.drop_source(cx);
            self.discard_aside(cx);
            self.engine.publish(cx, Then::Dry);
            self.orphaned.store(true, Ordering::Release);
            self.engine.notify_lanes();
            let ledger = self.engine.ledger(self.side(|side| side.intake.accepted));
            let cause = self.engine.take_failure().unwrap_or(Cause::Closed);
            if let Err(panic) = cx.user(|| self.completion.resolve(Err(DispatchError { cause, ledger }))) {
                tracing::error!(panic, "waking who awaits a dispatch panicked");
            }
        }
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
        if how == Shut::Force {
            self.engine.stop(Cause::Closed);
        }
        self.closing.store(true, Ordering::Release);
        self.engine.notify_lanes();
    }
}
