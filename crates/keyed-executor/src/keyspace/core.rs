//! An engine with its intake behind a lock: what a keyspace's handles talk to.
//!
//! The lock is held for directory, permits and the push, and for nothing of the user's but the comparison of keys; no
//! waker and no `Drop` of the user's runs under it.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::task::{Wake, Waker};

use super::{Door, Handle, Keyspace};
use crate::contain::drop_contained;
use crate::credit::{Need, Then, Ticket};
use crate::engine::Engine;
use crate::error::{Cause, Ledger, Outcome, SubmitError, SubmitRefusal};
use crate::executor::Guard;
use crate::figures::DispatchMetrics;
use crate::inspect::Inspection;
use crate::intake::{Intake, Place};
use crate::lane::Item;
use crate::lanes::Lanes;
use crate::prefetch::Access;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Weak, lock};

/// An engine with an intake behind a lock.
pub(super) struct Core<K, M, H, F: Future>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    pub(super) engine: Engine<K, M, H, F>,
    pub(super) side: Mutex<Side<K>>,
    tickets: AtomicU64,
    me: Weak<Self>,
}

/// What is left to do for a submission that was accepted.
struct Accepted {
    /// Which worker to notify.
    worker: usize,
    /// The slot that the next submission will write.
    next_slot: Option<u32>,
}

/// Why a submission was not accepted.
enum Refused<K, M> {
    /// The submitter gets its message back.
    ForGood(K, SubmitError<M>),
    /// The key lives on a worker whose thread is gone; it is free once that worker was swept.
    ByTheDead { worker: usize, key: K, message: M },
}

/// What the lock is for.
pub(super) struct Side<K> {
    pub(super) intake: Intake,
    /// Keys that were forgotten, to be dropped outside the lock; kept for its room.
    pub(super) dead: Vec<K>,
}

/// Makes a keyspace on an executor; one that is closed refuses every submission.
pub(crate) fn open<K, M, H, F>(guard: Arc<Guard>, options: crate::Options, handler: H) -> Keyspace<K, M>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    let shared = Arc::clone(guard.shared());
    let workers = shared.workers.len();
    let start = shared.next_start();
    let core = Arc::new_cyclic(|me| {
        let engine = Engine::new(Arc::clone(&shared), options, handler);
        let intake = Intake::new(engine.window, workers, start);
        Core {
            engine,
            side: Mutex::new(Side { intake, dead: Vec::new() }),
            tickets: AtomicU64::new(0),
            me: Weak::clone(me),
        }
    });
    let registered: Weak<Core<K, M, H, F>> = Arc::downgrade(&core);
    if !shared.register(registered) {
        core.with_intake(|intake, _| intake.closed = true);
        core.engine.end();
    }
    Keyspace { handle: Arc::new(Handle { door: core, _executor: guard }) }
}

impl<K, M, H, F> Core<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    pub(super) fn me(&self) -> Arc<dyn Lanes> {
        self.me.upgrade().expect("a core that is used is alive")
    }

    /// What refuses every submission now, with the intake in hand.
    fn refusal(&self, intake: &Intake) -> Option<SubmitRefusal> {
        if intake.closed {
            return Some(SubmitRefusal::Closed);
        }
        self.engine.has_failed().then_some(SubmitRefusal::Failed)
    }

    /// Works on the intake. Keys that are forgotten meanwhile are the user's to drop: that happens after the lock.
    #[inline]
    fn with_intake<R>(&self, work: impl FnOnce(&mut Intake, &mut Vec<K>) -> R) -> R {
        let mut guard = lock(&self.side);
        let Side { intake, dead } = &mut *guard;
        let result = work(intake, dead);
        if dead.is_empty() {
            return result;
        }
        let mut dead = std::mem::take(dead);
        drop(guard);
        for key in dead.drain(..) {
            drop_contained("a key", key);
        }
        // Its room is of use to the next one, unless somebody was faster.
        let mut guard = lock(&self.side);
        if guard.dead.capacity() == 0 {
            guard.dead = dead;
        }
        result
    }

    /// Takes the permit and shows the message.
    fn accept(&self, hash: u64, key: K, message: M) -> Result<Accepted, Refused<K, M>> {
        self.with_intake(|intake, dead| self.accept_into(intake, dead, hash, key, message))
    }

    fn accept_into(
        &self,
        intake: &mut Intake,
        dead: &mut Vec<K>,
        hash: u64,
        key: K,
        message: M,
    ) -> Result<Accepted, Refused<K, M>> {
        let engine = &self.engine;
        let refuse = |key, reason, message| Err(Refused::ForGood(key, SubmitError { reason, message }));
        if let Some(reason) = self.refusal(intake) {
            return refuse(key, reason, message);
        }
        intake.since_reclaim += 1;
        if intake.room() == 0 || intake.since_reclaim >= engine.batch {
            engine.reclaim(intake, dead);
        }
        if intake.room() == 0 {
            return refuse(key, SubmitRefusal::Full, message);
        }
        // The comparison is the user's and may panic: nothing was changed yet.
        let (entry, worker, fresh) = match engine.find(intake, hash, &key) {
            Place::Live { worker, .. } if engine.shared.workers[worker].sleeper().is_gone() => {
                return Err(Refused::ByTheDead { worker, key, message });
            }
            Place::Live { entry, worker } => (entry, worker, false),
            Place::Absent => {
                let Some(worker) = engine.choose(intake) else {
                    // A closed executor starts no thread; it is about to close this door too.
                    let closed = engine.shared.is_closed();
                    let reason = if closed { SubmitRefusal::Closed } else { SubmitRefusal::NoWorker };
                    return refuse(key, reason, message);
                };
                (engine.admit(intake, hash, key, worker), worker, true)
            }
        };
        let slot = intake.take_slot().expect("there was room");
        engine.put(slot, message);
        let item = if fresh { Item::fresh(entry, slot) } else { Item::new(entry, slot) };
        engine.push(intake, worker, item, || self.me());
        Ok(Accepted { worker, next_slot: intake.next_slot() })
    }

    /// Shuts the door; the dispatch ends with its last message.
    pub(super) fn close_intake(&self) {
        let accepted = {
            let mut side = lock(&self.side);
            if std::mem::replace(&mut side.intake.closed, true) {
                return;
            }
            side.intake.accepted
        };
        self.engine.credit.wake_all();
        let end = Arc::new(End { core: Weak::clone(&self.me), accepted });
        Arc::clone(&end).wake();
        self.engine.shared.intake_closed();
    }
}

/// Ends a closed keyspace once everything came back: a waiter like any other.
struct End<K, M, H, F: Future>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    core: Weak<Core<K, M, H, F>>,
    accepted: u64,
}

/// No submitter's ticket: those are counted from zero.
const END: Ticket = Ticket::MAX;

impl<K, M, H, F> Wake for End<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    fn wake(self: Arc<Self>) {
        let Some(core) = self.core.upgrade() else { return };
        let all = Need { busy: self.accepted, dry: self.accepted, empty_at: None };
        let accepted = self.accepted;
        let returned = core.engine.credit.register(END, all, &Waker::from(self));
        if returned >= accepted && core.engine.credit.forget(END) {
            core.with_intake(|intake, dead| core.engine.reclaim(intake, dead));
            core.engine.end();
        }
    }
}

impl<K, M, H, F> Door<K, M> for Core<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    fn try_submit(&self, key: K, message: M) -> Result<(), (K, SubmitError<M>)> {
        let hash = self.engine.hash(&key);
        let (mut key, mut message) = (key, message);
        loop {
            match self.accept(hash, key, message) {
                Ok(Accepted { worker, next_slot }) => {
                    if let Some(slot) = next_slot {
                        self.engine.foresee(slot, Access::Write);
                    }
                    self.engine.notify(worker);
                    return Ok(());
                }
                Err(Refused::ForGood(key, error)) => return Err((key, error)),
                Err(Refused::ByTheDead { worker, key: back, message: unsent }) => {
                    // What the dead worker still held is dropped, outside the lock; then its keys are free.
                    (key, message) = (back, unsent);
                    self.engine.shared.sweep(worker);
                    self.with_intake(|intake, dead| self.engine.reclaim(intake, dead));
                }
            }
        }
    }

    fn register(&self, ticket: Ticket, waker: &Waker) -> bool {
        let (returned, refused) = {
            let intake = &lock(&self.side).intake;
            (intake.returned, self.refusal(intake).is_some() || intake.room() > 0)
        };
        if refused {
            return false;
        }
        let half = (self.engine.window / 2).max(1) as u64;
        let need = Need {
            busy: returned + half,
            dry: returned + (self.engine.batch as u64).min(half),
            empty_at: Some(returned),
        };
        let now = self.engine.credit.register(ticket, need, waker);
        // Looked at again after the registration: a completion, or a door that was shut meanwhile.
        if now > returned || self.refusal(&lock(&self.side).intake).is_some() {
            // Woken already, or not: either way this submitter looks again.
            self.engine.credit.forget(ticket);
            return false;
        }
        true
    }

    fn forget(&self, ticket: Ticket, pass_on: bool) {
        let waited = self.engine.credit.forget(ticket);
        if pass_on && !waited {
            // It was woken: whoever waits behind it may go on if there is room left, and what its worker left for it
            // to take back is taken back.
            let _ = self.engine.credit.check(Then::Dry);
            self.with_intake(|intake, dead| self.engine.reclaim(intake, dead));
        }
    }

    fn ticket(&self) -> Ticket {
        // Relaxed: only uniqueness and each caller's own order count.
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    fn in_flight(&self) -> usize {
        self.with_intake(|intake, dead| {
            self.engine.reclaim(intake, dead);
            intake.outstanding() as usize
        })
    }

    fn live_keys(&self) -> usize {
        self.with_intake(|intake, dead| {
            self.engine.reclaim(intake, dead);
            intake.live()
        })
    }

    fn drained(&self, ticket: Ticket, waker: &Waker) -> Option<Ledger> {
        loop {
            let (accepted, outstanding) = self.with_intake(|intake, dead| {
                self.engine.reclaim(intake, dead);
                (intake.accepted, intake.outstanding())
            });
            // The completions are taken back just before they are counted, so `returned` may lag behind them.
            if outstanding == 0 && self.engine.credit.returned() >= accepted {
                self.engine.credit.forget(ticket);
                return Some(self.engine.ledger(accepted));
            }
            let all = Need { busy: accepted, dry: accepted, empty_at: None };
            if self.engine.credit.register(ticket, all, waker) < accepted {
                return None;
            }
        }
    }

    fn refused(&self, reason: SubmitRefusal) {
        self.engine.refusals.count(reason);
    }

    fn metrics(&self) -> DispatchMetrics {
        self.engine.shared.figures(&[self.me()]).pop().unwrap_or_default()
    }

    fn inspect(&self, limit: usize) -> Inspection {
        self.engine.shared.inspect(&[self.me()], limit)
    }

    fn close(&self) {
        self.close_intake();
    }

    fn cancel(&self) {
        // The door first: whoever waits at it finds it closed, not failed.
        self.close_intake();
        self.engine.stop(Cause::Cancelled);
    }
}

impl<K, M, H, F: Future> Drop for Core<K, M, H, F>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    fn drop(&mut self) {
        let side = &mut *lock(&self.side);
        self.engine.drop_keys(&mut side.intake, &mut side.dead);
    }
}
