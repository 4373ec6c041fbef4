//! The end of a keyspace: its door is shut, and the dispatch ends with the last of what was accepted.
//!
//! It owns the waiter that looks after that, one of the credit's like every submitter, under a ticket that no submitter
//! has. What was accepted when the door was shut is all there will ever be: the end waits for exactly that. How the engine
//! itself ends is `engine/life.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::task::{Wake, Waker};

use super::core::Core;
use crate::credit::{Need, Ticket};
use crate::error::Outcome;
use crate::sync::{Arc, Weak};

/// No submitter's ticket, since those are counted from zero; the one before is the watch's.
const END: Ticket = Ticket::MAX;

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
        let all = Need::all(self.accepted);
        let accepted = self.accepted;
        let returned = core.engine.credit.register(END, all, &Waker::from(self));
        if returned >= accepted && core.engine.credit.forget(END) {
            core.with_side(|side| core.take_back(side));
            core.engine.end();
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
