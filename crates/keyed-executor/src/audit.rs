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
//! Without [`Audit::On`](crate::Audit) none of it exists, and what would call it is a branch that is never taken: hence `cold`.

use std::fmt::{self, Debug};
use std::future::Future;
use std::hash::Hash;

use crate::contain::line;
use crate::cx::Cx;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::look::IN_PLACE;
use crate::mailbox::NONE;
use crate::sync::{Arc, AtomicU32, AtomicU64, Figure, Ordering, yield_now};

/// Cells that a claim may lie in, from its hash on.
const REACH: usize = 4;
/// The most cells.
const MOST_CELLS: usize = 1 << 18;
/// A cell nobody has claimed.
const FREE: u64 = 0;
/// A claim.
const CLAIMED: u64 = 1;
/// A claim whose message must not end: somebody reads its key.
const PINNED: u64 = 2;

/// What an auditor found: a defect of the executor, or of a key that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misorder {
    /// The label of the dispatch or keyspace.
    pub dispatch: String,
    /// The key as its `Debug` writes it, cut to a line of at most 200 bytes.
    pub key: String,
    /// What happened.
    pub what: Violation,
}

/// What happened to the order of a key. Messages are numbered as their dispatch or keyspace accepted them, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A message was started after one that had been accepted later.
    Overtaken {
        /// The message that was started.
        started: u64,
        /// The one that was started before it.
        after: u64,
    },
    /// A message was started while another one of its key had not ended.
    Overlap {
        /// The message that was started.
        started: u64,
    },
}

impl fmt::Display for Misorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dispatch, key, what } = self;
        match what {
            Violation::Overtaken { started, after } => {
                write!(f, "{dispatch} {key}: message {started} was started after message {after}")
            }
            Violation::Overlap { started } => {
                write!(f, "{dispatch} {key}: message {started} was started before another one had ended")
            }
        }
    }
}

/// What an auditor counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Messages that were checked at their start.
    pub checked: u64,
    /// Those of them whose overlap could not be ruled out: no cell was free, or the other key could not be read.
    pub unclear: u64,
    /// Violations found.
    pub violations: u64,
}

/// What the intake's owner noted of a message, and the cell that its start claimed.
struct Note {
    number: AtomicU64,
    hash: AtomicU64,
    cell: AtomicU32,
}

/// A message as its dispatch accepted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) number: u64,
    pub(crate) hash: u64,
}

struct Cell {
    /// [`FREE`], or the claimant's hash with [`CLAIMED`], with [`PINNED`] while its key is read.
    claim: AtomicU64,
    entry: AtomicU32,
}

/// The auditor of one dispatch or keyspace. Its memory is bounded by the window and the overflow.
pub(crate) struct Auditor {
    notes: Box<[Note]>,
    /// The number of the message that was last started in each place.
    last: Box<[AtomicU64]>,
    cells: Box<[Cell]>,
    unclear: Figure,
    violations: Figure,
}

/// What claiming a cell brought.
enum Claim {
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

    fn claim(&self, hash: u64, entry: u32) -> Claim {
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

/// An injected fault: a message that gets a number of one that was accepted later.
#[cfg(all(test, not(keyed_loom), not(keyed_shuttle)))]
pub(crate) mod fault {
    use std::cell::Cell;

    crate::sync::local! {
        static NUMBER: Cell<Option<u64>> = Cell::new(None);
    }

    /// What the next message is numbered that this thread has accepted.
    pub(crate) fn number_next(number: u64) {
        NUMBER.with(|next| next.set(Some(number)));
    }

    pub(super) fn of(number: u64) -> u64 {
        NUMBER.with(|next| next.take()).unwrap_or(number)
    }
}

/// Who is told of violations.
#[derive(Clone)]
pub(crate) struct OnMisorder(Arc<dyn Fn(&Misorder) + Send + Sync>);

impl OnMisorder {
    pub(crate) fn new(hook: impl Fn(&Misorder) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    fn tell(&self, misorder: &Misorder) {
        (self.0)(misorder);
    }
}

impl Debug for OnMisorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnMisorder")
    }
}

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
            #[cfg(all(test, not(keyed_loom), not(keyed_shuttle)))]
            let number = fault::of(number);
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
        match auditor.claim(hash, IN_PLACE) {
            Claim::Cell(cell) if cell != NONE => cell,
            _ => {
                auditor.unclear.fetch_add(1, Ordering::Relaxed);
                NONE
            }
        }
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
        // Acquire: pairs with the Release in `claim`, whose entry is read below.
        let pinned = cell.claim.compare_exchange(claim, claim | PINNED, Ordering::Acquire, Ordering::Relaxed);
        if pinned.is_err() {
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
