//! The slots of an engine: a message, its link, and when it reached its worker.
//!
//! Rule 4 of seat/README.md says who touches a slot when. Which slot is free is the intake's; what a message is put into
//! when it runs is `turn.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::Engine;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::figures::SHOWS;
use crate::mailbox::NONE;
use crate::prefetch::{Access, prefetch};
use crate::time::ticks;

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Writes a message into its slot.
    #[inline]
    pub(crate) fn put(&self, slot: u32, message: M) {
        // SAFETY: rule 4 of seat/README.md: the caller owns the intake and took the slot off the free list.
        self.slots[slot as usize].with_mut(|place| unsafe { (*place).write(message) });
    }

    /// Moves a message out of its slot.
    ///
    /// # Safety
    /// Rule 4 of seat/README.md: the slot holds a message and belongs to the caller.
    #[inline]
    pub(crate) unsafe fn take(&self, slot: u32) -> M {
        // SAFETY: the caller's contract; the slot counts as empty from here on.
        self.slots[slot as usize].with_mut(|place| unsafe { (*place).assume_init_read() })
    }

    /// Asks for a slot's memory before it is needed, if there is such a slot: it was last used by another thread.
    #[inline]
    pub(crate) fn foresee(&self, slot: usize, access: Access) {
        // In a model every look at a slot is an access; this is none.
        if cfg!(any(keyed_loom, keyed_shuttle)) {
            return;
        }
        if let Some(slot) = self.slots.get(slot) {
            slot.with(|place| prefetch(place, access));
        }
    }

    /// The message behind this one in a list that ends with `last`.
    ///
    /// The last one's link is not looked at: links of several slots, which may belong to several workers, share a line.
    ///
    /// # Safety
    /// Rule 4 of seat/README.md: the slots of the list belong to the caller, and `last` is one of them.
    #[inline]
    pub(crate) unsafe fn behind(&self, slot: u32, last: u32) -> u32 {
        if slot == last {
            return NONE;
        }
        // SAFETY: the caller's contract.
        self.links[slot as usize].with(|next| unsafe { *next })
    }

    /// Says which message is behind this one in its mailbox; the last one needs no link.
    ///
    /// # Safety
    /// Rule 4 of seat/README.md: the slot belongs to the caller.
    #[inline]
    pub(crate) unsafe fn link(&self, slot: u32, to: u32) {
        // SAFETY: the caller's contract.
        self.links[slot as usize].with_mut(|next| unsafe { *next = to });
    }

    /// Notes when a message reached its worker, in ticks.
    ///
    /// # Safety
    /// Rule 4 of seat/README.md: the slot belongs to the caller.
    #[inline]
    pub(crate) unsafe fn reached(&self, cx: &Cx<'_>, slot: u32) {
        if !SHOWS {
            return;
        }
        let now = ticks(cx.worker.clock().last());
        // SAFETY: the caller's contract.
        unsafe {
            // Mostly it is the tick in which the slot's last message came. Several slots share a line: it is not written for nothing.
            if self.reached_at(slot) != now {
                self.reached[slot as usize].with_mut(|at| *at = now);
            }
        }
    }

    /// When a message reached its worker.
    ///
    /// # Safety
    /// Rule 4 of seat/README.md: the slot belongs to the caller.
    pub(crate) unsafe fn reached_at(&self, slot: u32) -> u32 {
        // SAFETY: the caller's contract.
        self.reached[slot as usize].with(|at| unsafe { *at })
    }
}
