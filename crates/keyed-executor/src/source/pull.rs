//! The home's turn at its source: poll, key, and where each message goes.
//!
//! Bounded by [`TURN_NS`] of measured work and [`MOST_PULLED`] messages, so that several dispatches and mailboxes share a
//! worker fairly. It takes messages in; what becomes of a dispatch is the parent file.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::{Core, Input, LostAt, OnSeat};
use crate::audit::Accepted;
use crate::contain::contain;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::{Cause, Outcome};
use crate::intake::bounds::Permit;
use crate::intake::{Intake, Place};
use crate::lane::Item;
use crate::mailbox::state::Event;
use crate::mailbox::{Mailbox, NONE};
use crate::meter::Meter;
use crate::placement::{Doing, LaneView, SHORT_NS};
use crate::prefetch::Access;
use crate::seat::token::Back;
use crate::sync::Ordering;
use crate::turn::{Lost, Ran};
use crate::wake::polling;

/// A message runs where it arrives only if one costs less than this.
const IN_PLACE_NS: u64 = 1_000;
/// The home comes back to its other work after about this much work of the source.
const TURN_NS: u64 = 10_000;
/// The most messages taken from the source in one turn.
const MOST_PULLED: usize = 256;
/// Where a message of a new key may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Where it is, if nothing is queued here.
    InPlace,
    /// On the worker it is placed on.
    Queued,
}

/// What one poll of the source brought. Each part is written once, where it is read: the way through the value of a
/// contained closure costs more than a cheap handler, and a message is moved only into its future or its slot.
pub(super) struct Brought<K, M, E> {
    pub(super) message: Option<M>,
    /// The message's key, with its hash.
    pub(super) key: Option<(K, u64)>,
    /// Anything but a message with its key.
    other: Option<Other<E>>,
}

impl<K, M, E> Brought<K, M, E> {
    fn nothing() -> Self {
        Self { message: None, key: None, other: None }
    }

    /// Whether the source has nothing and will wake its cell.
    pub(super) fn waits(&self) -> bool {
        matches!(self.other, Some(Other::Pending { .. }))
    }
}

/// What a source brings beside messages.
enum Other<E> {
    /// The message's key could not be told: the text of a panic.
    NoKey(String),
    Failed(E),
    Panicked(String),
    Pending {
        woken: bool,
    },
    End,
}

/// Takes the message that a poll brought.
#[inline]
pub(super) fn take<M>(message: &mut Option<M>) -> M {
    message.take().expect("a message lies where its poll left it")
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
    /// Asks the source while the window has room; true if there is more to do at once.
    #[inline]
    pub(super) unsafe fn pull(&self, cx: &Cx<'_>) -> OnSeat<bool, K, M, ErrorOf<F>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if self.side(|side| side.input != Input::Ready || side.budget == 0) {
                return Ok(false);
            }
            let cost = self.engine.plain(self.home, |plain| plain.cost);
            let (step_cost, unmeasured) = self.side(|side| (side.step_cost, side.unmeasured_steps));
            let is_cheap = cost > 0 && cost <= IN_PLACE_NS && step_cost <= IN_PLACE_NS;
            let start = if is_cheap { Start::InPlace } else { Start::Queued };
            // A step is the source's work and, in place, the handler's: both are bounded by it.
            let mut meter = Meter::start(cx.worker.clock(), step_cost, unmeasured, TURN_NS);
            let mut pulled = 0;
            let mut yielded = false;
            let mut brought = Brought::nothing();
            let mut sample_at = self.side(|side| side.hot.left());
            while self.side(|side| side.input == Input::Ready && side.budget > 0)
                && self.engine.is_running()
                // A poll that began before the close may still bring a message, which is taken in; none begins after it.
                && !self.closing.load(Ordering::Acquire)
                && pulled < MOST_PULLED
                && !meter.is_used_up()
                && !yielded
            {
                pulled += 1;
                if self.poll_source(cx, &mut brought) == Back::Lost {
                    return Err(LostAt::Source(brought));
                }
                // A source that woke itself has nothing yet: the others get their turn first.
                yielded = matches!(brought.other, Some(Other::Pending { woken: true }));
                if pulled >= sample_at {
                    sample_at = pulled + self.sample_pulled(&brought);
                }
                self.step(cx, &mut brought, start).map_err(LostAt::Message)?;
                meter.ran();
            }
            self.side(|side| {
                (side.step_cost, side.unmeasured_steps) = meter.finish(side.unmeasured_steps);
                // What ends a turn and is no message is the last that was asked for.
                let no_message = yielded || side.input == Input::Waiting;
                side.hot.set_left(sample_at - (pulled - usize::from(no_message)));
            });
            self.notify_touched();
            Ok(self.side(|side| side.input == Input::Ready && side.budget > 0))
        }
    }

    /// Acts on what one poll of the source brought.
    #[inline]
    pub(super) unsafe fn step(
        &self,
        cx: &Cx<'_>,
        brought: &mut Brought<K, M, ErrorOf<F>>,
        start: Start,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if let Some((key, hash)) = brought.key.take() {
                return self.accept(cx, key, hash, &mut brought.message, start);
            }
            match brought.other.take().expect("a poll brings something") {
                Other::NoKey(panic) => {
                    self.refuse(cx, take(&mut brought.message), Cause::KeyPanicked { message: panic });
                }
                Other::Pending { woken } => {
                    if !woken {
                        self.side(|side| side.input = Input::Waiting);
                    }
                }
                Other::End => self.drop_source(cx),
                Other::Failed(error) => self.fail(cx, Cause::Source(error)),
                Other::Panicked(message) => self.fail(cx, Cause::SourcePanicked { message }),
            }
        }
        Ok(())
    }

    /// One poll of the source, with the key of what it brought.
    #[inline]
    unsafe fn poll_source(&self, cx: &Cx<'_>, into: &mut Brought<K, M, ErrorOf<F>>) -> Back {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        let cell = unsafe {
            self.side(|side| {
                side.polling = true;
                side.cell.as_ref().expect("the home runs only while it is attached").borrowed()
            })
        };
        let (contained, back) = cx.lent(|| {
            // SAFETY: rule 8 of seat/README.md: the home keeps the source's cell as long as this core lives.
            let (polled, woken) = unsafe {
                polling(cell, |waker| {
                    self.source.with_mut(|source| {
                        // SAFETY: rules 5 and 9 of seat/README.md: only the home polls the source, with its seat lent;
                        // the source is never moved out of its cell.
                        let source = (*source).as_mut().expect("a source that is asked is there");
                        Pin::new_unchecked(source).poll_next(&mut Context::from_waker(waker))
                    })
                })
            };
            match polled {
                Poll::Ready(Some(Ok(message))) => {
                    let message = into.message.insert(message);
                    // Contained on its own: the message survives it and is discarded by the caller, once.
                    let told = contain(|| {
                        let key = (self.key)(message);
                        let hash = self.engine.hash(&key);
                        into.key = Some((key, hash));
                    });
                    if let Err(panic) = told {
                        into.other = Some(Other::NoKey(panic));
                    }
                }
                Poll::Ready(Some(Err(error))) => into.other = Some(Other::Failed(error)),
                Poll::Ready(None) => into.other = Some(Other::End),
                Poll::Pending => into.other = Some(Other::Pending { woken }),
            }
        });
        if let Err(panic) = contained {
            into.other = Some(Other::Panicked(panic));
        }
        if back == Back::Mine {
            // SAFETY: rule 5 of seat/README.md: this function's contract.
            unsafe { self.side(|side| side.polling = false) };
        }
        back
    }

    /// Takes one message in: in place, to its live key, or to a worker chosen for its new key.
    #[inline]
    unsafe fn accept(
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
                    match self.choose() {
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
    unsafe fn choose(&self) -> Option<usize> {
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
                    &self.engine.shared.workers,
                    |worker| {
                        if worker == self.home { here } else { self.engine.view(pushed[worker], worker) }
                    },
                    |worker| self.engine.shared.ensure_started(worker).is_ok(),
                )
            })
        }
    }

    /// What a message costs here, where the last ones were dear: no more than by what other workers found since. It is one handler,
    /// and while its messages go elsewhere nothing is measured here: a first one that was slow would count for ever.
    #[cold]
    unsafe fn look_elsewhere(&self, here: LaneView) -> LaneView {
        let others = (0..self.engine.lanes.len()).filter(|worker| *worker != self.home);
        let costs = others.map(|worker| self.engine.view(0, worker).cost).filter(|cost| *cost > 0);
        let cost = costs.min().map_or(here.cost, |cost| cost.min(here.cost));
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe { self.engine.plain(self.home, |plain| plain.cost = cost) };
        LaneView { cost, ..here }
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

    /// Runs a message where it arrived; only one whose handler waits gets a mailbox.
    #[inline]
    unsafe fn run_in_place<const CAREFUL: bool>(
        &self,
        cx: &Cx<'_>,
        key: K,
        hash: u64,
        message: &mut Option<M>,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        let here = self.home;
        // SAFETY: rules 1, 5 and 7 of seat/README.md: this function's contract; the place is the one that the intake
        // would give out next, and this thread owns the intake.
        unsafe {
            // A worker that was given something must not wait for the end of this handler.
            self.notify_touched();
            if CAREFUL {
                self.audit_in_place(cx, hash);
            }
            let entry = self.side(|side| {
                side.budget -= 1;
                if CAREFUL {
                    side.intake.bounds.take_bytes(side.arriving);
                }
                // Where whoever takes the seat meanwhile finds it.
                side.in_place = Some((key, hash));
                side.intake.next_entry().expect("the budget is within the window")
            });
            let cell = self.engine.cell(cx, entry);
            let (ran, back) = self.engine.begin(cx, entry, cell, || take(message));
            if back == Back::Lost {
                return Err(Lost { worker: here, entry, ran });
            }
            if let Ran::Pending { woken } = ran {
                let placed = self.settle_in_place(cx);
                debug_assert_eq!(placed, Some(entry), "nobody else gives places out");
                self.engine.suspend(here, entry, woken);
                return Ok(());
            }
            let key = self.side(|side| side.in_place.take());
            if CAREFUL {
                self.audit_passed();
            }
            cx.worker.counters().in_place.add(1);
            let failed = self.engine.account(cx, ran, || {
                contain(|| match &key {
                    Some((key, _)) => format!("{key:?}"),
                    None => String::new(),
                })
                .unwrap_or_else(|_| "<its Debug panicked>".to_owned())
            });
            self.engine.plain(here, |plain| {
                if failed {
                    plain.tally.failed += 1;
                } else {
                    plain.tally.handled += 1;
                }
            });
            self.side(|side| {
                if CAREFUL {
                    side.intake.bounds.give_bytes(side.arriving);
                }
                side.intake.passed_through();
                side.earn(1, self.engine.batch);
            });
            if std::mem::needs_drop::<K>() {
                cx.drop_user("a key", key);
            }
        }
        Ok(())
    }

    /// Gives a message that was started in place a mailbox, Running, and says which; None if none was started.
    pub(super) unsafe fn settle_in_place(&self, cx: &Cx<'_>) -> Option<u32> {
        // SAFETY: rules 1, 5 and 7 of seat/README.md: this function's contract.
        unsafe {
            let entry = self.side(|side| {
                let (key, hash) = side.in_place.take()?;
                let entry = self.engine.admit(&mut side.intake, hash, key, self.home);
                let slot = side.intake.take_slot().expect("the budget is within the window");
                if side.intake.bounds.is_on {
                    side.intake.bounds.settle(slot, side.arriving);
                }
                side.intake.add(entry);
                self.engine.mailbox(entry, |mailbox| {
                    *mailbox = Mailbox::new();
                    let _ = mailbox.on(Event::Enqueue);
                    let _ = mailbox.on(Event::Begin);
                    mailbox.running = slot;
                });
                self.engine.reached(cx, slot);
                if let Some(auditor) = &self.engine.auditor {
                    let claimed = std::mem::replace(&mut side.audited, NONE);
                    let number = side.intake.accepted;
                    self.engine.audit_settled(auditor, entry, slot, Accepted { number, hash }, claimed);
                }
                Some(entry)
            })?;
            cx.worker.counters().placements.add(1);
            let figures = &self.engine.lanes[self.home].figures;
            figures.kept.add(1);
            figures.live.up();
            Some(entry)
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
