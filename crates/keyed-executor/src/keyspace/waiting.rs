//! Submitters that wait for room of their key, or for bytes, not for the window: who they are, and whose turn it is.
//!
//! Plain data behind the keyspace's lock. Waiters of one key stand in a *group*: under the key's entry while the key is live,
//! under none once its last message came back, for the entry may be another key's next. Those that wait for bytes stand in a
//! line of their own. What comes back is told one by one ([`Eased`]), and for each thing at most one waiter is woken: the first
//! of all keys if a permit of the overflow is free, else the first of a group whose key is below its limit, if the window has
//! room; else the first for whose bytes there is room. Groups take turns. Who is too heavy for the bytes that are free is
//! passed over: a heavy message holds nobody up.
//!
//! A woken waiter is off the list. It may find that somebody was faster and come back, or not need what it was woken for, or
//! be dropped: so once it is done, whoever could go on is looked for again. It also tells its group where its key is live
//! now. Invariant, at every release of the lock: if a waiter here could go on, one that was woken has not looked yet. It
//! holds at a registration (the caller just looked), whatever comes back keeps it, and so does the end of a look.
//!
//! The wakers are collected here and called after the lock; cloning and dropping them is the caller's, outside it too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Waker;

use crate::credit::Ticket;
use crate::intake::Intake;
use crate::intake::bounds::Eased;

type GroupId = u64;

/// The group of those that wait for bytes.
const BYTES: GroupId = 0;

/// What a submitter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Room of the key of this entry.
    Key(u32),
    /// Bytes.
    Bytes,
}

struct Waiter {
    group: GroupId,
    bytes: usize,
    waker: Waker,
}

/// The waiters of one key.
#[derive(Default)]
struct Group {
    /// Where the key is live; None if nobody of the group knows of it.
    entry: Option<u32>,
    tickets: BTreeSet<Ticket>,
    /// Whether it stands in the line of groups whose key may be below its limit.
    is_ready: bool,
}

/// Who waits for room of a key, or for bytes.
#[derive(Default)]
pub(super) struct Waiting {
    waiters: BTreeMap<Ticket, Waiter>,
    /// Those that wait for bytes, the lightest first.
    by_bytes: BTreeSet<(usize, Ticket)>,
    groups: BTreeMap<GroupId, Group>,
    of_entry: BTreeMap<u32, GroupId>,
    /// May name groups that are gone.
    ready: VecDeque<GroupId>,
    /// Who was woken and has not looked yet, with the group that it came from.
    woken: BTreeMap<Ticket, GroupId>,
    groups_made: GroupId,
    /// Wakers of those whose turn it is, to be called outside the lock.
    pub(super) due: Vec<Waker>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Puts a waiter into the group of its key, or into the line for bytes. A waker that it replaces comes back, to be
    /// dropped outside the lock.
    pub(super) fn insert(
        &mut self,
        intake: &mut Intake,
        ticket: Ticket,
        lacks: For,
        bytes: usize,
        waker: Waker,
    ) -> Option<Waker> {
        let was_woken = match lacks {
            For::Key(entry) => self.bind(ticket, entry),
            For::Bytes => self.woken.remove(&ticket).is_some(),
        };
        let replaced = self.take(intake, ticket);
        let group = match lacks {
            For::Key(entry) => self.join(ticket, entry),
            For::Bytes => {
                self.by_bytes.insert((bytes, ticket));
                BYTES
            }
        };
        self.waiters.insert(ticket, Waiter { group, bytes, waker });
        intake.bounds.is_watched = true;
        if was_woken {
            self.recheck(intake);
        }
        replaced
    }

    fn join(&mut self, ticket: Ticket, entry: u32) -> GroupId {
        let made = &mut self.groups_made;
        let id = *self.of_entry.entry(entry).or_insert_with(|| {
            *made += 1;
            *made
        });
        let group = self.groups.entry(id).or_default();
        group.entry = Some(entry);
        group.tickets.insert(ticket);
        id
    }

    /// A submitter went in, under this entry.
    pub(super) fn went_in(&mut self, intake: &mut Intake, ticket: Ticket, entry: u32) {
        if self.bind(ticket, entry) {
            self.recheck(intake);
        }
    }

    /// A submitter waits here no more. Its waker comes back, to be dropped outside the lock.
    pub(super) fn leave(&mut self, intake: &mut Intake, ticket: Ticket) -> Option<Waker> {
        if self.woken.remove(&ticket).is_some() {
            self.recheck(intake);
        }
        self.take(intake, ticket)
    }

    /// A submitter found its key live at an entry. If it was woken it has looked now, and the rest of its group learns
    /// where the key is.
    fn bind(&mut self, ticket: Ticket, entry: u32) -> bool {
        let Some(id) = self.woken.remove(&ticket) else { return false };
        if let Some(group) = self.groups.get_mut(&id) {
            if group.entry.is_none() && !self.of_entry.contains_key(&entry) {
                group.entry = Some(entry);
                self.of_entry.insert(entry, id);
            }
        }
        true
    }

    /// Takes a waiter off the list.
    fn take(&mut self, intake: &mut Intake, ticket: Ticket) -> Option<Waker> {
        let Waiter { group: id, bytes, waker } = self.waiters.remove(&ticket)?;
        if id == BYTES {
            self.by_bytes.remove(&(bytes, ticket));
        } else if let Some(group) = self.groups.get_mut(&id) {
            group.tickets.remove(&ticket);
            if group.tickets.is_empty() {
                if let Some(entry) = group.entry {
                    self.of_entry.remove(&entry);
                }
                self.groups.remove(&id);
            }
        }
        intake.bounds.is_watched = !self.is_empty();
        Some(waker)
    }

    /// Everybody's turn: the door was shut.
    pub(super) fn all(&mut self, intake: &mut Intake) {
        let due = std::mem::take(&mut self.due);
        let all = std::mem::replace(self, Self { due, ..Self::default() });
        self.due.extend(all.waiters.into_values().map(|waiter| waiter.waker));
        intake.bounds.is_watched = false;
        intake.bounds.eased.clear();
    }

    /// Gives what came back to those who wait for it. Called after every look at the completions, before an entry that
    /// is free now is given to another key.
    pub(super) fn serve(&mut self, intake: &mut Intake) {
        let came_back = intake.bounds.eased.len();
        while let Some(eased) = intake.bounds.eased.pop() {
            let Eased::Key(entry) = eased else { continue };
            let Some(id) = self.of_entry.get(&entry).copied() else { continue };
            let Some(group) = self.groups.get_mut(&id) else { continue };
            if intake.outstanding_of(entry) == 0 {
                group.entry = None;
                self.of_entry.remove(&entry);
            }
            if !std::mem::replace(&mut group.is_ready, true) {
                self.ready.push_back(id);
            }
        }
        for _ in 0..came_back {
            if !self.recheck(intake) {
                return;
            }
        }
    }

    /// Calls the first waiter that could go on; false if there is none.
    fn recheck(&mut self, intake: &mut Intake) -> bool {
        match self.next_of_keys(intake).or_else(|| self.next_for_bytes(intake)) {
            Some(ticket) => self.call(intake, ticket),
            None => false,
        }
    }

    fn next_of_keys(&mut self, intake: &Intake) -> Option<Ticket> {
        if intake.bounds.overflow_free() > 0 {
            let of_key = |waiter: &Waiter| waiter.group != BYTES && intake.bounds.has_bytes(waiter.bytes);
            let first = self.waiters.iter().find(|(_, waiter)| of_key(waiter));
            if let Some((ticket, _)) = first {
                return Some(*ticket);
            }
        }
        if intake.room() == 0 {
            return None;
        }
        // Each group at most once: those whose messages are too heavy now stay in the line.
        for _ in 0..self.ready.len() {
            let id = self.ready.pop_front()?;
            let Some(group) = self.groups.get_mut(&id) else { continue };
            if group.entry.is_some_and(|entry| intake.is_full(entry)) {
                group.is_ready = false;
                continue;
            }
            // It may have room for more: behind the others, until it is found full.
            self.ready.push_back(id);
            let fits = |ticket: &&Ticket| {
                self.waiters.get(ticket).is_some_and(|waiter| intake.bounds.has_bytes(waiter.bytes))
            };
            if let Some(ticket) = group.tickets.iter().find(fits) {
                return Some(*ticket);
            }
        }
        None
    }

    fn next_for_bytes(&self, intake: &Intake) -> Option<Ticket> {
        let (lightest, _) = self.by_bytes.first()?;
        if !intake.bounds.has_bytes(*lightest) || (intake.room() == 0 && intake.bounds.overflow_free() == 0) {
            return None;
        }
        let fits = |waiter: &Waiter| waiter.group == BYTES && intake.bounds.has_bytes(waiter.bytes);
        self.waiters.iter().find(|(_, waiter)| fits(waiter)).map(|(ticket, _)| *ticket)
    }

    fn call(&mut self, intake: &mut Intake, ticket: Ticket) -> bool {
        let Some(id) = self.waiters.get(&ticket).map(|waiter| waiter.group) else { return false };
        let waker = self.take(intake, ticket);
        self.woken.insert(ticket, id);
        self.due.extend(waker);
        true
    }
}

#[cfg(all(test, not(keyed_loom), not(keyed_shuttle)))]
mod tests;
