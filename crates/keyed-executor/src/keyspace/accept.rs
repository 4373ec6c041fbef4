//! The acceptance of a submission: what it needs, what refuses it, and the push to its worker.
//!
//! All of it happens behind the core's lock, but weighing a message, which calls the user. A message leaves its submitter
//! at one place, `let_in`, when nothing can refuse it any more: whatever refuses it before leaves it where it was, and its
//! key too. Who waits for what was lacking is `watch.rs`; the worker is notified by `door.rs`, after the lock.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::Given;
use super::core::{Core, Side};
use crate::credit::Ticket;
use crate::error::{Outcome, SubmitRefusal};
use crate::intake::Place;
use crate::intake::bounds::Lack;
use crate::lane::Item;
use crate::weigh::TooMuch;

/// What is left to do for a submission that was accepted.
pub(super) struct Accepted {
    /// Which worker to notify.
    pub(super) worker: usize,
    /// The slot that the next submission will write, if it is one.
    pub(super) next_slot: usize,
}

/// Why a submission was not accepted.
pub(super) enum Refused {
    /// The submitter keeps its message.
    ForGood(SubmitRefusal),
    /// The key lives on a worker whose thread is gone; it is free once that worker was swept.
    ByTheDead { worker: usize },
}

/// What is known of a submission beside its key and message, where more than the window bounds what may come in.
#[derive(Clone, Copy, Default)]
pub(super) struct Waited {
    /// What the message weighs with its key.
    pub(super) bytes: usize,
    /// Its submitter's, if it waited.
    pub(super) ticket: Option<Ticket>,
}

impl<K, M, H, F> Core<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    /// What a message weighs with its key; a message that never has room is refused. The weigher is the user's.
    #[inline]
    pub(super) fn weigh(&self, key: &K, message: &M) -> Result<usize, SubmitRefusal> {
        let Some(scale) = &self.scale else { return Ok(0) };
        scale.weigh(key, message).map_err(|too_much| match too_much {
            TooMuch::Key { bytes, max } => SubmitRefusal::KeyTooLong { bytes, max },
            TooMuch::Weight { bytes, max } => SubmitRefusal::TooHeavy { bytes, max },
        })
    }

    /// Takes the permit and shows the message.
    pub(super) fn accept(
        &self,
        hash: u64,
        given: &mut Given<K, M>,
        waited: Waited,
    ) -> Result<Accepted, Refused> {
        self.with_side(|side| {
            if side.intake.bounds.is_on {
                self.accept_bounded(side, hash, given, waited)
            } else {
                self.accept_into(side, hash, given)
            }
        })
    }

    #[inline]
    fn accept_into(
        &self,
        side: &mut Side<K>,
        hash: u64,
        given: &mut Given<K, M>,
    ) -> Result<Accepted, Refused> {
        let engine = &self.engine;
        if let Some(reason) = self.refusal(&side.intake) {
            return Err(Refused::ForGood(reason));
        }
        if side.intake.reclaim_is_due(engine.batch) || side.intake.room() == 0 {
            self.take_back(side);
        }
        if side.intake.room() == 0 {
            return Err(Refused::ForGood(SubmitRefusal::Full));
        }
        // The comparison is the user's and may panic: nothing was changed yet.
        let place = engine.find(&side.intake, hash, given.key());
        self.let_in::<false>(side, hash, given, place, Waited::default())
    }

    /// As [`accept_into`](Self::accept_into), where more than the window bounds what may come in.
    #[inline(never)]
    fn accept_bounded(
        &self,
        side: &mut Side<K>,
        hash: u64,
        given: &mut Given<K, M>,
        waited: Waited,
    ) -> Result<Accepted, Refused> {
        let engine = &self.engine;
        if let Some(reason) = self.refusal(&side.intake) {
            return Err(Refused::ForGood(reason));
        }
        let mut is_fresh_look = side.intake.reclaim_is_due(engine.batch);
        if is_fresh_look {
            self.take_back(side);
        }
        loop {
            let place = engine.find(&side.intake, hash, given.key());
            let reason = match side.intake.lack(place, waited.bytes) {
                None => return self.let_in::<true>(side, hash, given, place, waited),
                Some(_) if !is_fresh_look => {
                    is_fresh_look = true;
                    self.take_back(side);
                    continue;
                }
                Some(Lack::Window) => SubmitRefusal::Full,
                Some(Lack::Key) => SubmitRefusal::KeyFull,
                Some(Lack::Bytes) => SubmitRefusal::BytesFull,
            };
            // What a dead worker still holds is in nobody's way.
            if let Place::Live { worker, .. } = place {
                if engine.shared.workers[worker].sleeper().is_gone() {
                    return Err(Refused::ByTheDead { worker });
                }
            }
            return Err(Refused::ForGood(reason));
        }
    }

    /// Lets a message in that has room, its key being there.
    #[inline]
    fn let_in<const BOUNDED: bool>(
        &self,
        side: &mut Side<K>,
        hash: u64,
        given: &mut Given<K, M>,
        place: Place,
        waited: Waited,
    ) -> Result<Accepted, Refused> {
        let engine = &self.engine;
        let intake = &mut side.intake;
        let (entry, worker, fresh) = match place {
            Place::Live { worker, .. } if engine.shared.workers[worker].sleeper().is_gone() => {
                return Err(Refused::ByTheDead { worker });
            }
            Place::Live { entry, worker } => (entry, worker, false),
            Place::Absent => {
                let Some(worker) = engine.choose(hash, intake) else {
                    // A closed executor starts no thread; it is about to close this door too.
                    let closed = engine.shared.is_closed();
                    let reason = if closed { SubmitRefusal::Closed } else { SubmitRefusal::NoWorker };
                    return Err(Refused::ForGood(reason));
                };
                (engine.admit(intake, hash, given.take_key(), worker), worker, true)
            }
        };
        let slot = intake.take_slot().expect("there was room");
        if BOUNDED {
            let _ = intake.charge(entry, slot, waited.bytes);
        }
        engine.note(slot, intake.accepted, hash);
        engine.put(slot, given.take_message());
        let item = if fresh { Item::fresh(entry, slot) } else { Item::new(entry, slot) };
        engine.push(intake, worker, item, || self.me());
        if BOUNDED {
            if let Some(ticket) = waited.ticket {
                side.waiting.went_in(intake, ticket, entry);
            }
        }
        Ok(Accepted { worker, next_slot: intake.next_slot() })
    }
}
