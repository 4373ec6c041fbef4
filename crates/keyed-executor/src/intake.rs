//! The one place where a key becomes live and is forgotten: directory, permits and placement of one dispatch.
//!
//! Plain data with one owner at a time (rule 5 of seat/README.md): whoever holds the keyspace's lock, or the worker
//! that is home to the source. A permit *is* a slot: an intake without a free slot accepts nothing. An entry is live
//! while messages of it are outstanding; retiring it and adding to it are both decided here, so they never race.
//!
//! It does not move messages: the engine's arrays hold them, and `engine.rs` pushes what the intake decided.

pub(crate) mod bounds;

use crossbeam_utils::CachePadded;

use crate::directory::{Directory, Tag};
use crate::lane::Lane;
use crate::mailbox::NONE;
use crate::placement::Placement;
use bounds::{Bounds, Lack, Limits, Permit};

/// What the intake knows about a live key; the key itself lies beside it in the engine's array.
#[derive(Clone, Copy)]
struct Entry {
    tag: Tag,
    outstanding: u32,
    worker: u32,
}

/// A stack of small numbers that were given back, over those that never were given out.
struct Free {
    returned: Vec<u32>,
    fresh: u32,
    end: u32,
}

impl Free {
    fn new(end: usize) -> Self {
        Self { returned: Vec::new(), fresh: 0, end: end as u32 }
    }

    /// The number that `take` would give.
    #[inline]
    fn peek(&self) -> Option<u32> {
        match self.returned.last() {
            Some(number) => Some(*number),
            None if self.fresh < self.end => Some(self.fresh),
            None => None,
        }
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        if let Some(number) = self.returned.pop() {
            return Some(number);
        }
        if self.fresh == self.end {
            return None;
        }
        self.fresh += 1;
        Some(self.fresh - 1)
    }

    #[inline]
    fn give(&mut self, number: u32) {
        self.returned.push(number);
    }

    fn len(&self) -> usize {
        self.returned.len() + (self.end - self.fresh) as usize
    }
}

/// Where a message's key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Live on this worker.
    Live { entry: u32, worker: usize },
    /// Not live.
    Absent,
}

/// Directory, permits, placement.
pub(crate) struct Intake {
    directory: Directory,
    entries: Vec<Entry>,
    free_entries: Free,
    free_slots: Free,
    pub(crate) placement: Placement,
    /// What is counted beside the window, if anything is.
    pub(crate) bounds: Bounds,
    /// Per worker: inbox items pushed, completions reclaimed.
    pub(crate) pushed: Box<[u64]>,
    pub(crate) reclaimed: Box<[u64]>,
    /// Messages accepted and messages that came back.
    pub(crate) accepted: u64,
    pub(crate) returned: u64,
    /// No message is accepted any more.
    pub(crate) closed: bool,
    /// Submissions since the completions were last looked at.
    pub(crate) since_reclaim: usize,
}

impl Intake {
    pub(crate) fn new(window: usize, limits: Limits, workers: usize, start: usize) -> Self {
        Self {
            directory: Directory::new(window),
            entries: Vec::new(),
            free_entries: Free::new(window),
            free_slots: Free::new(window + limits.overflow as usize),
            placement: Placement::new(workers, start),
            bounds: Bounds::new(limits, window + limits.overflow as usize),
            pushed: vec![0; workers].into_boxed_slice(),
            reclaimed: vec![0; workers].into_boxed_slice(),
            accepted: 0,
            returned: 0,
            closed: false,
            since_reclaim: 0,
        }
    }

    /// Counts a submission; whether the completions are looked at for it because that was last done a batch ago.
    #[inline]
    pub(crate) fn reclaim_is_due(&mut self, batch: usize) -> bool {
        self.since_reclaim += 1;
        self.since_reclaim >= batch
    }

    /// Permits of the window that are free.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.free_slots.len() - self.bounds.overflow_free()
    }

    /// Messages of a live key that are outstanding.
    #[inline]
    pub(crate) fn outstanding_of(&self, entry: u32) -> u32 {
        self.entries[entry as usize].outstanding
    }

    /// Whether a key has its limit of messages.
    pub(crate) fn is_full(&self, entry: u32) -> bool {
        self.bounds.is_full(self.outstanding_of(entry))
    }

    /// What a message of so many bytes lacks.
    #[inline]
    pub(crate) fn lack(&self, place: Place, bytes: usize) -> Option<Lack> {
        let outstanding = match place {
            Place::Live { entry, .. } => self.outstanding_of(entry),
            Place::Absent => 0,
        };
        self.bounds.lack(outstanding, bytes, self.room())
    }

    /// Charges a message of a live key, before it is added, and says which permit it holds.
    #[inline]
    pub(crate) fn charge(&mut self, entry: u32, slot: u32, bytes: usize) -> Permit {
        if !self.bounds.is_on {
            return Permit::Window;
        }
        self.bounds.charge(self.entries[entry as usize].outstanding, slot, bytes)
    }

    /// Messages that came back and had held a permit of the window.
    #[inline]
    pub(crate) fn window_returned(&self) -> u64 {
        self.returned - self.bounds.overflow_returned()
    }

    /// Messages accepted and not come back yet.
    pub(crate) fn outstanding(&self) -> u64 {
        self.accepted - self.returned
    }

    /// Keys with a message outstanding.
    pub(crate) fn live(&self) -> usize {
        self.directory.live()
    }

    /// Where a key is; `same` compares with the key of an entry.
    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl FnMut(u32) -> bool) -> Place {
        match self.directory.find(Tag::of(hash), same) {
            Some(entry) => Place::Live { entry, worker: self.entries[entry as usize].worker as usize },
            None => Place::Absent,
        }
    }

    /// The entry that the next new key would get; None without room. It stays free.
    #[inline]
    pub(crate) fn next_entry(&self) -> Option<u32> {
        self.free_entries.peek()
    }

    /// The slot that is given out next; no slot's number if all are taken.
    #[inline]
    pub(crate) fn next_slot(&self) -> usize {
        self.free_slots.peek().unwrap_or(NONE) as usize
    }

    /// A slot for a message, None if all are taken. Without bounds a slot is a permit of the window; with them the caller
    /// has asked what the message lacks, and charges it.
    #[inline]
    pub(crate) fn take_slot(&mut self) -> Option<u32> {
        let slot = self.free_slots.take()?;
        self.accepted += 1;
        Some(slot)
    }

    /// Makes a key live on a worker, with no message yet.
    ///
    /// # Panics
    /// If there is no entry left, which is a bug: entries are as many as permits, and the caller holds a permit.
    #[inline]
    pub(crate) fn admit(&mut self, hash: u64, worker: usize) -> u32 {
        let entry = self.free_entries.take().expect("a permit was taken, so an entry is free");
        let fresh = Entry { tag: Tag::of(hash), outstanding: 0, worker: worker as u32 };
        match self.entries.get_mut(entry as usize) {
            Some(known) => *known = fresh,
            None => self.entries.push(fresh),
        }
        self.directory.insert(fresh.tag, entry);
        entry
    }

    /// One more message of a live key.
    #[inline]
    pub(crate) fn add(&mut self, entry: u32) {
        self.entries[entry as usize].outstanding += 1;
    }

    /// A message came back; true if its key is not live any more and its entry is free again.
    #[inline]
    pub(crate) fn give_back(&mut self, entry: u32, slot: u32) -> bool {
        self.free_slots.give(slot);
        self.returned += 1;
        let known = &mut self.entries[entry as usize];
        known.outstanding -= 1;
        if self.bounds.is_on {
            self.bounds.give_back(entry, slot, known.outstanding);
        }
        if known.outstanding > 0 {
            return false;
        }
        let tag = known.tag;
        self.directory.remove(tag, entry);
        self.free_entries.give(entry);
        true
    }

    /// Whether completions wait to be taken back.
    pub(crate) fn returned_elsewhere(&self, lanes: &[CachePadded<Lane>]) -> bool {
        lanes.iter().zip(&self.reclaimed).any(|(lane, reclaimed)| lane.completions.published() != *reclaimed)
    }

    /// Counts a message that ran in place and ended there: it never had a permit of its own for others to see.
    #[inline]
    pub(crate) fn passed_through(&mut self) {
        self.accepted += 1;
        self.returned += 1;
    }

    /// Every live entry, for the end of a dispatch whose keys are still here.
    pub(crate) fn live_entries(&self) -> impl Iterator<Item = u32> + '_ {
        self.directory.entries()
    }
}

const _: () = assert!(NONE == u32::MAX, "an entry's number never reaches NONE");
