//! An engine with its intake behind a lock: what a keyspace's handles talk to.
//!
//! The lock is held for directory, permits and the push, and for nothing of the user's but the comparison of keys; no
//! waker and no `Drop` of the user's runs under it.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Wake, Waker};

use super::waiting::Waiting;
use super::{Door, Given, Handle, Keyspace};
use crate::contain::drop_contained;
use crate::credit::{Need, Ticket, wake_contained};
use crate::engine::Engine;
use crate::error::{Cause, Ledger, Outcome, SubmitRefusal};
use crate::executor::Guard;
use crate::figures::DispatchMetrics;
use crate::hot::{HotKey, Samples};
use crate::inspect::Inspection;
use crate::intake::bounds::Lack;
use crate::intake::{Intake, Place};
use crate::lane::Item;
use crate::lanes::Lanes;
use crate::prefetch::Access;
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, OnceLock, Ordering, Weak, lock};
use crate::weigh::{Scale, TooMuch, Weigh};

/// An engine with an intake behind a lock.
pub(super) struct Core<K, M, H, F: Future>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    pub(super) engine: Engine<K, M, H, F>,
    pub(super) side: Mutex<Side<K>>,
    pub(super) scale: Option<Scale<K, M>>,
    tickets: AtomicU64,
    /// Looks at what comes back on behalf of those that wait for a key; made with the first of them.
    pub(super) watcher: OnceLock<Waker>,
    pub(super) me: Weak<Self>,
}

/// What is left to do for a submission that was accepted.
struct Accepted {
    /// Which worker to notify.
    worker: usize,
    /// The slot that the next submission will write, if it is one.
    next_slot: usize,
}

/// Why a submission was not accepted.
enum Refused {
    /// The submitter keeps its message.
    ForGood(SubmitRefusal),
    /// The key lives on a worker whose thread is gone; it is free once that worker was swept.
    ByTheDead { worker: usize },
}

/// What is known of a submission beside its key and message, where more than the window bounds what may come in.
#[derive(Clone, Copy, Default)]
struct Waited {
    /// What the message weighs with its key.
    bytes: usize,
    /// Its submitter's, if it waited.
    ticket: Option<Ticket>,
}

/// What the lock is for.
pub(super) struct Side<K> {
    pub(super) intake: Intake,
    /// Keys that were forgotten, to be dropped outside the lock; kept for its room.
    pub(super) dead: Vec<K>,
    /// Who waits for room of a key, or for bytes.
    pub(super) waiting: Waiting,
}

/// Makes a keyspace on an executor; one that is closed refuses every submission.
pub(crate) fn open<W, K, M, H, F>(guard: Arc<Guard>, options: crate::Options<W>, handler: H) -> Keyspace<K, M>
where
    W: Weigh<K, M>,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    let shared = Arc::clone(guard.shared());
    let workers = shared.workers.len();
    let start = shared.next_start();
    let (scale, options) = options.take_scale();
    let core = Arc::new_cyclic(|me| {
        let engine = Engine::new(Arc::clone(&shared), options, scale.is_some(), Samples::Inboxes, handler);
        let intake = Intake::new(engine.window, engine.limits, workers, start);
        Core {
            engine,
            side: Mutex::new(Side { intake, dead: Vec::new(), waiting: Waiting::default() }),
            scale,
            tickets: AtomicU64::new(0),
            watcher: OnceLock::new(),
            me: Weak::clone(me),
        }
    });
    let registered: Weak<Core<K, M, H, F>> = Arc::downgrade(&core);
    if !shared.register(registered) {
        core.with_side(|side| side.intake.closed = true);
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

    /// What a message weighs with its key; a message that never has room is refused. The weigher is the user's.
    #[inline]
    pub(super) fn weigh(&self, key: &K, message: &M) -> Result<usize, SubmitRefusal> {
        let Some(scale) = &self.scale else { return Ok(0) };
        scale.weigh(key, message).map_err(|too_much| match too_much {
            TooMuch::Key { bytes, max } => SubmitRefusal::KeyTooLong { bytes, max },
            TooMuch::Weight { bytes, max } => SubmitRefusal::TooHeavy { bytes, max },
        })
    }

    /// What refuses every submission now, with the intake in hand.
    pub(super) fn refusal(&self, intake: &Intake) -> Option<SubmitRefusal> {
        if intake.closed {
            return Some(SubmitRefusal::Closed);
        }
        self.engine.has_failed().then_some(SubmitRefusal::Failed)
    }

    /// Works behind the lock. Keys that are forgotten meanwhile are the user's to drop, and so are the wakers of those
    /// whose turn has come: both happen after the lock.
    #[inline]
    pub(super) fn with_side<R>(&self, work: impl FnOnce(&mut Side<K>) -> R) -> R {
        let mut guard = lock(&self.side);
        if guard.intake.bounds.is_watched {
            // A comparison of keys that panics must not cost a wake-up that was found before it.
            let result = catch_unwind(AssertUnwindSafe(|| work(&mut guard)));
            self.leave_side(guard);
            return result.unwrap_or_else(|panic| resume_unwind(panic));
        }
        let result = work(&mut guard);
        if !guard.dead.is_empty() || !guard.waiting.due.is_empty() {
            self.leave_side(guard);
        }
        result
    }

    /// Drops the user's keys and calls the user's wakers that were found behind the lock.
    #[inline(never)]
    fn leave_side(&self, mut guard: MutexGuard<'_, Side<K>>) {
        let mut dead = std::mem::take(&mut guard.dead);
        let due = std::mem::take(&mut guard.waiting.due);
        drop(guard);
        for key in dead.drain(..) {
            drop_contained("a key", key);
        }
        due.into_iter().for_each(wake_contained);
        // Its room is of use to the next one, unless somebody was faster.
        let mut guard = lock(&self.side);
        if guard.dead.capacity() == 0 {
            guard.dead = dead;
        }
    }

    /// Takes completions back, and gives what came with them to those who wait for it.
    #[inline]
    pub(super) fn take_back(&self, side: &mut Side<K>) {
        let Side { intake, dead, waiting } = side;
        self.engine.reclaim(intake, dead);
        if intake.bounds.is_watched {
            waiting.serve(intake);
        }
    }

    /// Takes the permit and shows the message.
    fn accept(&self, hash: u64, given: &mut Given<K, M>, waited: Waited) -> Result<Accepted, Refused> {
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
        side.intake.since_reclaim += 1;
        if side.intake.room() == 0 || side.intake.since_reclaim >= engine.batch {
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
        side.intake.since_reclaim += 1;
        let mut is_fresh_look = false;
        if side.intake.since_reclaim >= engine.batch {
            is_fresh_look = true;
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
                let Some(worker) = engine.choose(intake) else {
                    // A closed executor starts no thread; it is about to close this door too.
                    let closed = engine.shared.is_closed();
                    let reason = if closed { SubmitRefusal::Closed } else { SubmitRefusal::NoWorker };
                    return Err(Refused::ForGood(reason));
                };
                (engine.admit(intake, hash, given.take_key(), worker), worker, true)
            }
        };
        let slot = intake.take_slot(worker).expect("there was room");
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
        Ok(Accepted { worker, next_slot: intake.next_slot(worker) })
    }

    /// Shuts the door; the dispatch ends with its last message.
    pub(super) fn close_intake(&self) {
        let accepted = self.with_side(|side| {
            if std::mem::replace(&mut side.intake.closed, true) {
                return None;
            }
            side.waiting.all(&mut side.intake);
            Some(side.intake.accepted)
        });
        let Some(accepted) = accepted else { return };
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

/// No submitter's tickets: those are counted from zero.
const END: Ticket = Ticket::MAX;
pub(super) const WATCH: Ticket = Ticket::MAX - 1;

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
            core.with_side(|side| core.take_back(side));
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
    fn try_submit(&self, given: &mut Given<K, M>, ticket: Option<Ticket>) -> Result<(), SubmitRefusal> {
        let hash = self.engine.hash(given.key());
        let bytes = self.weigh(given.key(), given.message())?;
        loop {
            match self.accept(hash, given, Waited { bytes, ticket }) {
                Ok(Accepted { worker, next_slot }) => {
                    self.engine.foresee(next_slot, Access::Write);
                    self.engine.notify(worker);
                    return Ok(());
                }
                Err(Refused::ForGood(reason)) => return Err(reason),
                Err(Refused::ByTheDead { worker }) => {
                    // What the dead worker still held is dropped, outside the lock; then its keys are free.
                    self.engine.shared.sweep(worker);
                    self.with_side(|side| self.take_back(side));
                }
            }
        }
    }

    fn register(&self, ticket: Ticket, waker: &Waker) -> bool {
        if self.engine.limits.is_on() {
            self.leave_list(ticket);
        }
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

    fn register_beside_window(&self, ticket: Ticket, key: &K, message: &M, waker: &Waker) -> bool {
        // It may have been woken for a permit of the window that it does not take.
        self.leave_window(ticket);
        self.wait_beside_window(ticket, key, message, waker)
    }

    fn forget(&self, ticket: Ticket, submits: bool) {
        if !submits {
            self.engine.credit.forget(ticket);
            return;
        }
        if self.engine.limits.is_on() {
            self.leave_list(ticket);
        }
        self.leave_window(ticket);
    }

    fn ticket(&self) -> Ticket {
        // Relaxed: only uniqueness and each caller's own order count.
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    fn in_flight(&self) -> usize {
        self.with_side(|side| {
            self.take_back(side);
            side.intake.outstanding() as usize
        })
    }

    fn live_keys(&self) -> usize {
        self.with_side(|side| {
            self.take_back(side);
            side.intake.live()
        })
    }

    fn drained(&self, ticket: Ticket, waker: &Waker) -> Option<Ledger> {
        loop {
            let (accepted, outstanding) = self.with_side(|side| {
                self.take_back(side);
                (side.intake.accepted, side.intake.outstanding())
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

    fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        self.engine.shared.hot_keys(&[self.me()], limit)
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
        side.intake.bounds.is_watched = false;
        self.engine.drop_keys(&mut side.intake, &mut side.dead);
    }
}
