//! How submitters that wait for a key, or for bytes, learn of what comes back: one waiter on the credit looks for all.
//!
//! A worker that gives messages back knows nothing of keys' limits, and the submitters of a stuck key must not be woken for
//! every batch of the others'. So there is one waiter for all of them, the *watch*: it waits on the credit for anything
//! that comes back, takes it back behind the lock, has `waiting.rs` wake those who can use it, and waits again while
//! somebody is left. Any number of threads may look at once; the last one to register has seen all that the others saw.
//!
//! It is the protocol of `credit.rs` like that of any waiter: read the completions, register, look at `returned` again.
//! A watch that is not needed any more stays registered and costs one look.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::task::{Wake, Waker};

use super::core::Core;
use super::waiting::For;
use crate::brief::lock_brief;
use crate::contain::drop_contained;
use crate::credit::{Need, Then, Ticket};
use crate::error::Outcome;
use crate::intake::Place;
use crate::intake::bounds::Lack;
use crate::sync::{Arc, Weak};

/// No submitter's ticket, since those are counted from zero; the last one is the end's.
const WATCH: Ticket = Ticket::MAX - 1;

/// Wakes the look of [`Core::watch`].
struct Watch<K, M, H, F: Future>
where
    F::Output: Outcome,
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
{
    core: Weak<Core<K, M, H, F>>,
}

impl<K, M, H, F> Wake for Watch<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    fn wake(self: Arc<Self>) {
        if let Some(core) = self.core.upgrade() {
            core.watch();
        }
    }
}

impl<K, M, H, F> Core<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    /// Registers a submitter whose key has its limit of messages, or whose message lacks bytes; false if it should look
    /// again at once.
    pub(super) fn wait_beside_window(&self, ticket: Ticket, key: &K, message: &M, waker: &Waker) -> bool {
        let hash = self.engine.hash(key);
        // One that will be refused for good looks again, and is.
        let Ok(bytes) = self.weigh(key, message) else { return false };
        // Cloned here and dropped below, outside the lock: both are the user's code.
        let mut own = Some(waker.clone());
        let (waits, replaced) = self.with_side(|side| {
            if self.refusal(&side.intake).is_some() {
                return (false, None);
            }
            self.take_back(side);
            let place = self.engine.find(&side.intake, hash, key);
            let lacks = match (side.intake.lack(place, bytes), place) {
                (Some(Lack::Key), Place::Live { entry, .. }) => For::Key(entry),
                (Some(Lack::Bytes), _) => For::Bytes,
                _ => return (false, None),
            };
            let waker = own.take().expect("it is registered once");
            (true, side.waiting.insert(&mut side.intake, ticket, lacks, bytes, waker))
        });
        drop_contained("a waker", (own, replaced));
        if waits {
            self.watch();
        }
        waits
    }

    /// Takes a submitter off the list; who waits there may go on in its place.
    pub(super) fn leave_list(&self, ticket: Ticket) {
        let left = self.with_side(|side| side.waiting.leave(&mut side.intake, ticket));
        drop_contained("a waker", left);
    }

    /// Takes a submitter off the credit; who waits for the window may go on in its place.
    pub(super) fn leave_window(&self, ticket: Ticket) {
        if !self.engine.credit.forget(ticket) {
            // It was woken, if it ever waited; and what its worker left for it to take back is taken back.
            let _ = self.engine.credit.check(Then::Dry);
            self.with_side(|side| self.take_back(side));
        }
    }

    /// Wakes who can go on, and waits for more on behalf of those who cannot.
    pub(super) fn watch(&self) {
        loop {
            let returned = self.with_side(|side| {
                if self.refusal(&side.intake).is_some() {
                    side.waiting.all(&mut side.intake);
                } else {
                    self.take_back(side);
                }
                (!side.waiting.is_empty()).then_some(side.intake.returned)
            });
            let Some(returned) = returned else { return };
            let need = Need::anything(returned, self.engine.window);
            let watcher =
                self.watcher.get_or_init(|| Waker::from(Arc::new(Watch { core: Weak::clone(&self.me) })));
            let now = self.engine.credit.register(WATCH, need, watcher);
            // Looked at again after the registration: a completion, or a door that was shut meanwhile.
            if now <= returned && self.refusal(&lock_brief(&self.side).intake).is_none() {
                return;
            }
        }
    }
}
