//! The order auditor: whether messages of a key start in the order of their acceptance and never overlap, checked while
//! the executor runs.
//!
//! It trusts nothing of what it checks. The intake's owner numbers each message as it accepts it, and notes number and
//! hash of the key beside the message's slot. A message that starts has to have a higher number than the one that was last
//! started in its place; and it claims a cell, found by its hash, with one compare-and-swap, which it gives back when its
//! outcome is taken. Whoever meets a cell of the same hash compares the two keys' texts, with the other message kept from
//! ending meanwhile: the same text is an overlap, whatever mailboxes, directory and placement believe. What is found is
//! counted, logged and told; nothing is stopped by it.
//!
//! | not seen | why |
//! |---|---|
//! | an overlap with a message that runs where its source yielded it | its key is not where others may read it |
//! | an overlap whose starts fall into the same few instructions | both may look before either has claimed |
//! | a key whose `Hash` or `Debug` differs from one message to the next | two keys, for anybody |
//!
//! Cells and notes are `audit/cells.rs`, what is told of a violation is `audit/misorder.rs`.
//! Without [`Audit::On`](crate::Audit) none of it exists, and what would call it is a branch that is never taken: hence `cold`.

mod cells;
mod misorder;
#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests;

pub(crate) use cells::{Accepted, Auditor};
pub(crate) use misorder::OnMisorder;
pub use misorder::{Audited, Misorder, Violation};

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::contain::line;
use crate::cx::Cx;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::look::IN_PLACE;
use crate::mailbox::NONE;
use crate::sync::Ordering;
use cells::{CLAIMED, Cell, Claim};

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Notes a message that was accepted, if there is an auditor.
    #[inline]
    pub(crate) fn note(&self, slot: u32, number: u64, hash: u64) {
        if let Some(auditor) = &self.auditor {
            #[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
            let number = crate::tests::breaks::number(number);
            auditor.accepted(slot, Accepted { number, hash }, NONE);
        }
    }

    /// Checks a message that is about to be started from its mailbox.
    #[cold]
    #[inline(never)]
    pub(crate) fn audit_start(&self, auditor: &Auditor, cx: &Cx<'_>, entry: u32, slot: u32) {
        self.lanes[cx.worker.index()].figures.audited.add(1);
        let note = &auditor.notes[slot as usize];
        let started = note.number.load(Ordering::Relaxed);
        // Relaxed: a place is one worker's at a time, handed over with its slots. Whoever had it before had lower numbers.
        let after = auditor.last[entry as usize].swap(started, Ordering::Relaxed);
        if after >= started {
            self.violated(auditor, cx, entry, Violation::Overtaken { started, after });
        }
        let hash = note.hash.load(Ordering::Relaxed);
        match auditor.claim(hash, entry) {
            Claim::Cell(cell) => {
                if cell == NONE {
                    auditor.unclear.fetch_add(1, Ordering::Relaxed);
                }
                note.cell.store(cell, Ordering::Relaxed);
            }
            Claim::Met(cell) => self.met(auditor, cx, entry, &auditor.cells[cell as usize], hash, started),
        }
    }

    /// Checks a message that is about to run where its source yielded it; the cell that it claimed.
    #[inline(never)]
    pub(crate) fn audit_in_place(&self, auditor: &Auditor, cx: &Cx<'_>, hash: u64) -> u32 {
        self.lanes[cx.worker.index()].figures.audited.add(1);
        auditor.claim_in_place(hash)
    }

    /// A message that was started in place has a slot and a place from here on.
    #[cold]
    #[inline(never)]
    pub(crate) fn audit_settled(
        &self,
        auditor: &Auditor,
        entry: u32,
        slot: u32,
        accepted: Accepted,
        cell: u32,
    ) {
        auditor.accepted(slot, accepted, cell);
        auditor.last[entry as usize].store(accepted.number, Ordering::Relaxed);
        if let Some(cell) = auditor.cells.get(cell as usize) {
            cell.entry.store(entry, Ordering::Release);
        }
    }

    /// Somebody of the same hash has not ended: the same key, or another one with its hash.
    #[cold]
    fn met(&self, auditor: &Auditor, cx: &Cx<'_>, entry: u32, cell: &Cell, hash: u64, started: u64) {
        let claim = hash << 2 | CLAIMED;
        if !cell.pin(claim) {
            // It ended meanwhile, or somebody else looks: it may have been an overlap.
            auditor.unclear.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let other = cell.entry.load(Ordering::Acquire);
        let is_same = match other {
            // Its key is not where others may read it, or not yet.
            IN_PLACE => None,
            other if other == entry => Some(true),
            // Rule 6 of seat/README.md: its message is outstanding as long as it is pinned.
            other => Some(self.with_key(other, line) == self.with_key(entry, line)),
        };
        cell.claim.store(claim, Ordering::Release);
        match is_same {
            Some(true) => self.violated(auditor, cx, entry, Violation::Overlap { started }),
            Some(false) => {}
            None => {
                auditor.unclear.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[cold]
    fn violated(&self, auditor: &Auditor, cx: &Cx<'_>, entry: u32, what: Violation) {
        auditor.violations.fetch_add(1, Ordering::Relaxed);
        let misorder =
            Misorder { dispatch: self.options.label.clone(), key: self.with_key(entry, line), what };
        tracing::error!(
            label = misorder.dispatch,
            key = misorder.key,
            violation = ?misorder.what,
            "the order of a key was violated: {misorder}"
        );
        if let Some(hook) = &self.shared.on_misorder {
            if let Err(panic) = cx.user(|| hook.tell(&misorder)) {
                tracing::error!(panic, "telling a violation of the order panicked");
            }
        }
    }
}
