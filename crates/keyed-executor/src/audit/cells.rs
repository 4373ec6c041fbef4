//! What an auditor knows: a note beside each message's slot, the last number of each place, and a cell for each message that runs.
//!
//! A cell belongs to who changed it from free to claimed, until that one gives it back; who pins a claim in between keeps its
//! message from ending. Memory is bounded by the window and the overflow, and never grows: without a free cell in reach a claim is
//! given up, and counted. What is concluded from a claim that met another one is the parent file.

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests;

use super::Audited;
use crate::look::IN_PLACE;
use crate::mailbox::NONE;
use crate::sync::{AtomicU32, AtomicU64, Figure, Ordering, yield_now};

/// Cells that a claim may lie in, from its hash on.
const REACH: usize = 4;
/// The most cells.
const MOST_CELLS: usize = 1 << 18;
/// A cell nobody has claimed.
const FREE: u64 = 0;
/// A claim.
pub(super) const CLAIMED: u64 = 1;
/// A claim whose message must not end: somebody reads its key.
const PINNED: u64 = 2;

/// What the intake's owner noted of a message, and the cell that its start claimed.
pub(super) struct Note {
    pub(super) number: AtomicU64,
    pub(super) hash: AtomicU64,
    pub(super) cell: AtomicU32,
}

/// A message as its dispatch accepted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) number: u64,
    pub(crate) hash: u64,
}

pub(super) struct Cell {
    /// [`FREE`], or the claimant's hash with [`CLAIMED`], with [`PINNED`] while its key is read.
    pub(super) claim: AtomicU64,
    pub(super) entry: AtomicU32,
}

impl Cell {
    /// Keeps the claimant's message from ending; false if it has ended meanwhile, or somebody else keeps it.
    pub(super) fn pin(&self, claim: u64) -> bool {
        // Acquire: pairs with the Release in `Auditor::claim`, whose entry is read next.
        self.claim.compare_exchange(claim, claim | PINNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// The auditor of one dispatch or keyspace. Its memory is bounded by the window and the overflow.
pub(crate) struct Auditor {
    pub(super) notes: Box<[Note]>,
    /// The number of the message that was last started in each place.
    pub(super) last: Box<[AtomicU64]>,
    pub(super) cells: Box<[Cell]>,
    pub(super) unclear: Figure,
    pub(super) violations: Figure,
}

/// What claiming a cell brought.
pub(super) enum Claim {
    /// The cell, or [`NONE`] if none was free.
    Cell(u32),
    /// Somebody of the same hash has that one.
    Met(u32),
}

impl Auditor {
    pub(crate) fn new(window: usize, slots: usize) -> Self {
        let cells = (window * 4).next_power_of_two().clamp(64, MOST_CELLS);
        let note =
            |_| Note { number: AtomicU64::new(0), hash: AtomicU64::new(0), cell: AtomicU32::new(NONE) };
        Self {
            notes: (0..slots).map(note).collect(),
            last: (0..window).map(|_| AtomicU64::new(0)).collect(),
            cells: (0..cells)
                .map(|_| Cell { claim: AtomicU64::new(FREE), entry: AtomicU32::new(NONE) })
                .collect(),
            unclear: Figure::new(0),
            violations: Figure::new(0),
        }
    }

    pub(crate) fn read(&self, checked: u64) -> Audited {
        Audited {
            checked,
            unclear: self.unclear.load(Ordering::Relaxed),
            violations: self.violations.load(Ordering::Relaxed),
        }
    }

    /// A message was accepted into a slot. The caller owns the intake and has not handed the slot over yet.
    #[cold]
    #[inline(never)]
    pub(crate) fn accepted(&self, slot: u32, accepted: Accepted, cell: u32) {
        let Accepted { number, hash } = accepted;
        let note = &self.notes[slot as usize];
        // Relaxed: handed over with the slot, by the inbox's tail.
        note.number.store(number, Ordering::Relaxed);
        note.hash.store(hash, Ordering::Relaxed);
        note.cell.store(cell, Ordering::Relaxed);
    }

    /// A message ended, or was dropped before it was started. Its completion is published after this.
    #[cold]
    #[inline(never)]
    pub(crate) fn ended(&self, slot: u32) {
        let cell = self.notes[slot as usize].cell.swap(NONE, Ordering::Relaxed);
        self.give_back(cell);
    }

    pub(crate) fn give_back(&self, cell: u32) {
        let Some(cell) = self.cells.get(cell as usize) else { return };
        // Whoever meets the next claim before that one has named its entry must not take this one for it.
        cell.entry.store(NONE, Ordering::Relaxed);
        loop {
            let seen = cell.claim.load(Ordering::Relaxed);
            // Release: pairs with the Acquire in `claim`. A pin is waited out: its owner reads this message's key.
            if seen & PINNED == 0
                && cell.claim.compare_exchange(seen, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
            {
                return;
            }
            yield_now();
        }
    }

    /// Claims a cell for a message that runs where its source yielded it, of which others cannot read the key; [`NONE`] where that
    /// is given up.
    pub(super) fn claim_in_place(&self, hash: u64) -> u32 {
        match self.claim(hash, IN_PLACE) {
            Claim::Cell(cell) if cell != NONE => cell,
            _ => {
                self.unclear.fetch_add(1, Ordering::Relaxed);
                NONE
            }
        }
    }

    pub(super) fn claim(&self, hash: u64, entry: u32) -> Claim {
        let mine = hash << 2 | CLAIMED;
        let home = (hash >> 32) as usize;
        'look: loop {
            let mut free = None;
            for offset in 0..REACH {
                let at = home.wrapping_add(offset) & (self.cells.len() - 1);
                match self.cells[at].claim.load(Ordering::Relaxed) {
                    FREE => free = free.or(Some(at)),
                    claim if claim & !PINNED == mine => return Claim::Met(at as u32),
                    _ => {}
                }
            }
            let Some(at) = free else { return Claim::Cell(NONE) };
            let cell = &self.cells[at];
            // Acquire: pairs with the Release of who gave it back.
            if cell.claim.compare_exchange(FREE, mine, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue 'look;
            }
            cell.entry.store(entry, Ordering::Release);
            return Claim::Cell(at as u32);
        }
    }
}
