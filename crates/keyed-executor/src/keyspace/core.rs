//! An engine with its intake behind a lock: what a keyspace's handles talk to.
//!
//! It owns the lock and what is behind it. The lock is held for directory, permits and the push, and for nothing of the
//! user's but the comparison of keys; no waker and no `Drop` of the user's runs under it. How a message is accepted is
//! `accept.rs`, what the handles may ask is `door.rs`, and how it all ends is `end.rs`.

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests;

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use crossbeam_utils::CachePadded;

use super::waiting::Waiting;
use super::{Handle, Keyspace};
use crate::brief::lock_brief;
use crate::contain::drop_contained;
use crate::credit::wake_contained;
use crate::engine::Engine;
use crate::error::{Outcome, SubmitRefusal};
use crate::executor::Guard;
use crate::hot::Samples;
use crate::intake::Intake;
use crate::lanes::Lanes;
use crate::shared::Shared;
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, OnceLock, Weak};
use crate::weigh::{Scale, Weigh};

/// An engine with an intake behind a lock.
pub(super) struct Core<K, M, H, F: Future>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    pub(super) engine: Engine<K, M, H, F>,
    /// Written with every submission, so apart from what the workers read.
    pub(super) side: CachePadded<Mutex<Side<K>>>,
    pub(super) scale: Option<Scale<K, M>>,
    pub(super) tickets: AtomicU64,
    /// Looks at what comes back on behalf of those that wait for a key; made with the first of them.
    pub(super) watcher: OnceLock<Waker>,
    pub(super) me: Weak<Self>,
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
    let core = Core::new(guard.shared(), options, handler);
    let registered: Weak<Core<K, M, H, F>> = Arc::downgrade(&core);
    if !guard.shared().register(registered) {
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
    fn new<W: Weigh<K, M>>(shared: &Arc<Shared>, options: crate::Options<W>, handler: H) -> Arc<Self> {
        let (workers, start) = (shared.workers.len(), shared.next_start());
        let (scale, options) = options.take_scale();
        Arc::new_cyclic(|me| {
            let engine = Engine::new(Arc::clone(shared), options, scale.is_some(), Samples::Inboxes, handler);
            let intake = Intake::new(engine.window, engine.limits, workers, start);
            Self {
                engine,
                side: CachePadded::new(Mutex::new(Side {
                    intake,
                    dead: Vec::new(),
                    waiting: Waiting::default(),
                })),
                scale,
                tickets: AtomicU64::new(0),
                watcher: OnceLock::new(),
                me: Weak::clone(me),
            }
        })
    }

    pub(super) fn me(&self) -> Arc<dyn Lanes> {
        self.me.upgrade().expect("a core that is used is alive")
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
        let mut guard = lock_brief(&self.side);
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
        let mut guard = lock_brief(&self.side);
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
}

impl<K, M, H, F: Future> Drop for Core<K, M, H, F>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    fn drop(&mut self) {
        let side = &mut *lock_brief(&self.side);
        side.intake.bounds.is_watched = false;
        self.engine.drop_keys(&mut side.intake, &mut side.dead);
    }
}
