//! Where a message of the source goes: to its live key, to a worker chosen for its new one, or into its handler at once.
//!
//! The home decides alone, with the intake as its own (rule 5 of seat/README.md). A message is taken in exactly once: it is
//! queued, run in place, or refused with its cause, and never moved before that is settled. Workers that were given
//! something are notified together, at the end of the turn or before a handler runs in place. Whether there is room at all is
//! `aside.rs` where more than the window says so; how a message runs in place is `in_place.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::Core;
use super::pull::{IN_PLACE_NS, take};
use crate::contain::contain;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::{Cause, Outcome};
use crate::intake::bounds::Permit;
use crate::intake::{Intake, Place};
use crate::lane::Item;
use crate::placement::{Doing, LaneView, SHORT_NS};
use crate::prefetch::Access;
use crate::turn::Lost;

/// Where a message of a new key may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Where it is, if nothing is queued here.
    InPlace,
    /// On the worker it is placed on.
    Queued,
}

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
    /// Takes one message in: in place, to its live key, or to a worker chosen for its new key.
    #[inline]
    pub(super) unsafe fn accept(
        &self,
        cx: &Cx<'_>,
        key: K,
        hash: u64,
        message: &mut Option<M>,
        start: Start,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let mut found = self.find(hash, &key);
            if let Ok(Place::Live { worker, .. }) = found {
                if self.engine.shared.workers[worker].sleeper().is_gone() {
                    found = self.find_anew(cx, hash, &key);
                }
            }
            match found {
                Ok(place) if self.side(|side| side.is_careful) => {
                    return self.let_in_if_room(cx, key, hash, message, start, place);
                }
                Ok(place) => return self.let_in::<false>(cx, key, hash, message, start, place),
                Err(panic) => self.refuse(cx, take(message), Cause::KeyPanicked { message: panic }),
            }
        }
        Ok(())
    }

    /// Lets a message in, its key being there; `CAREFUL` if something is counted or checked for each message.
    #[inline]
    pub(super) unsafe fn let_in<const CAREFUL: bool>(
        &self,
        cx: &Cx<'_>,
        key: K,
        hash: u64,
        message: &mut Option<M>,
        start: Start,
        place: Place,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            match place {
                Place::Live { entry, worker } => {
                    self.queue::<CAREFUL>(cx, entry, worker, false, hash, take(message))
                }
                Place::Absent => {
                    if start == Start::InPlace && self.engine.lanes[self.home].figures.ready.get() == 0 {
                        return self.run_in_place::<CAREFUL>(cx, key, hash, message);
                    }
                    match self.choose(hash) {
                        Some(worker) => {
                            let entry =
                                self.side(|side| self.engine.admit(&mut side.intake, hash, key, worker));
                            self.queue::<CAREFUL>(cx, entry, worker, true, hash, take(message));
                        }
                        None => {
                            let message_text = "every worker is dead".to_owned();
                            self.refuse(cx, take(message), Cause::NoWorker { message: message_text });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Where a key is. The comparison is the user's and may panic; nothing is changed by it.
    #[inline]
    unsafe fn find(&self, hash: u64, key: &K) -> Result<Place, String> {
        contain(|| {
            // SAFETY: rule 5 of seat/README.md: this function's contract; the intake is only read.
            self.side.with(|side| unsafe { self.engine.find(&(*side).intake, hash, key) })
        })
    }

    /// The worker of a new key. The home itself is between two handlers, so an empty queue here is no wait at all.
    #[inline]
    unsafe fn choose(&self, hash: u64) -> Option<usize> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let here = self.engine.plain(self.home, |plain| LaneView {
                queued: self.engine.lanes[self.home].figures.ready.get(),
                cost: plain.cost,
                worker: Doing::Looking,
            });
            let here = if here.cost > SHORT_NS { self.look_elsewhere(here) } else { here };
            self.side(|side| {
                let Intake { placement, pushed, .. } = &mut side.intake;
                placement.choose(
                    hash,
                    &self.engine.shared.workers,
                    |worker| {
                        if worker == self.home { here } else { self.engine.view(pushed[worker], worker) }
                    },
                    |worker| self.engine.shared.ensure_started(worker).is_ok(),
                )
            })
        }
    }

    /// What a message costs here, where the last ones were dear: no more than by what another worker has found. It is one handler,
    /// and while its messages go elsewhere nothing is measured here: a first one that was slow would count for ever.
    ///
    /// Each finding is believed once, and only a first or a lower one: what was cheap long ago says nothing about what is dear here
    /// now. A message runs in place only by what is found here.
    #[cold]
    unsafe fn look_elsewhere(&self, here: LaneView) -> LaneView {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let found = self.side(|side| {
                let others = side.heard.iter_mut().enumerate().filter(|(worker, _)| *worker != self.home);
                let found = others.filter_map(|(worker, heard)| {
                    let cost = self.engine.view(0, worker).cost;
                    let before = std::mem::replace(heard, cost);
                    (before == 0 || cost < before).then_some(cost).filter(|cost| *cost > 0)
                });
                found.min()
            });
            let Some(found) = found else { return here };
            let cost = here.cost.min(found.max(IN_PLACE_NS + 1));
            self.engine.plain(self.home, |plain| plain.cost = cost);
            LaneView { cost, ..here }
        }
    }

    /// Puts a message behind the others of its key.
    #[inline]
    unsafe fn queue<const CAREFUL: bool>(
        &self,
        cx: &Cx<'_>,
        entry: u32,
        worker: usize,
        fresh: bool,
        hash: u64,
        message: M,
    ) {
        // SAFETY: rules 1, 4 and 5 of seat/README.md: this function's contract.
        unsafe {
            let item = self.side(|side| {
                side.budget -= 1;
                let slot = side.intake.take_slot().expect("the budget is within the window");
                if CAREFUL {
                    if side.intake.charge(entry, slot, side.arriving) == Permit::Overflow {
                        // The permit that it was asked for is free again.
                        side.budget += 1;
                    }
                    self.engine.note(slot, side.intake.accepted, hash);
                }
                self.engine.put(slot, message);
                let item = if fresh { Item::fresh(entry, slot) } else { Item::new(entry, slot) };
                if worker == self.home {
                    side.intake.add(entry);
                } else {
                    side.touched[worker] = true;
                    self.engine.push(&mut side.intake, worker, item, || self.me());
                    self.engine.foresee(side.intake.next_slot(), Access::Write);
                }
                item
            });
            if worker == self.home {
                self.engine.lanes[worker].figures.kept.add(1);
                self.engine.enqueue(cx, item);
            }
        }
    }

    /// Notifies every worker that was given something since this was last called.
    #[inline]
    pub(super) unsafe fn notify_touched(&self) {
        for worker in 0..self.engine.lanes.len() {
            // SAFETY: rule 5 of seat/README.md: this function's contract.
            if unsafe { self.side(|side| std::mem::replace(&mut side.touched[worker], false)) } {
                self.engine.notify(worker);
            }
        }
    }
}
