//! Breaks of the production code that a test turns on, each for one thread and once.
//!
//! A break stands where a bug could, and does what it would do. The code that asks for one is there in tests of this crate only;
//! those of the models and of shuttle, which check every order anyway, are built without it.

use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::engine::Engine;
use crate::error::Outcome;
use crate::mailbox::NONE;

/// What is to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// The next message that this thread accepts is noted with this number.
    Numbered(u64),
    /// The second message of a mailbox is taken off its queue before the first one.
    SecondFirst,
    /// A key that is live is not found.
    KeyMissed,
}

crate::sync::local! {
    static NEXT: Cell<Option<Break>> = Cell::new(None);
}

/// Lets it go wrong the next time this thread comes by.
pub(crate) fn next(what: Break) {
    NEXT.with(|next| next.set(Some(what)));
}

/// Whether this is to go wrong now; once.
pub(crate) fn happens(what: Break) -> bool {
    NEXT.with(|next| {
        let now = next.get() == Some(what);
        if now {
            next.set(None);
        }
        now
    })
}

/// The number of a message that is accepted.
pub(crate) fn number(number: u64) -> u64 {
    match NEXT.with(Cell::get) {
        Some(Break::Numbered(wrong)) if happens(Break::Numbered(wrong)) => wrong,
        _ => number,
    }
}

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Takes the second message of a mailbox off its queue, if that is to go wrong and there is one.
    ///
    /// # Safety
    /// Rules 2 and 4 of seat/README.md: the caller holds the seat on which the entry is placed.
    pub(crate) unsafe fn second_first(&self, entry: u32, head: u32) -> Option<u32> {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract.
        unsafe {
            let last = self.mailbox(entry, |mailbox| mailbox.tail);
            let second = self.behind(head, last);
            if second == NONE || !happens(Break::SecondFirst) {
                return None;
            }
            self.link(head, self.behind(second, last));
            self.mailbox(entry, |mailbox| {
                if mailbox.tail == second {
                    mailbox.tail = head;
                }
            });
            Some(second)
        }
    }
}
