//! A look at a lane: which mailboxes are live on it, in which state, with how many messages, for how long.
//!
//! Whoever looks has borrowed the seat, as a forced close does, and changes nothing: what the inbox brought and its worker
//! has not taken yet is counted where it lies. A look keeps the oldest mailboxes up to its limit and forgets the others,
//! and asks only for the keys of those it kept. Which seats are looked at, and what is told, is `inspect.rs`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::cx::Cx;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::inspect::MailboxState;
use crate::mailbox::state::State;
use crate::mailbox::{Mailbox, NONE};
use crate::time::{since, ticks};

/// Stands for the message that runs where its source yielded it in place of an entry.
pub(crate) const IN_PLACE: u32 = NONE;

/// A mailbox that was looked at.
pub(crate) struct Found {
    pub(crate) dispatch: usize,
    pub(crate) worker: usize,
    pub(crate) entry: u32,
    pub(crate) state: MailboxState,
    /// Messages that are not started.
    pub(crate) queued: usize,
    /// Nanoseconds since its oldest unfinished message reached its worker.
    pub(crate) age: u64,
    pub(crate) key: Option<String>,
}

/// What was seen of one dispatch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) mailboxes: usize,
    /// Messages that run where their source yielded them, which hold no permit yet.
    pub(crate) in_place: u64,
    pub(crate) oldest: Option<u64>,
}

/// A look at one worker after the other.
pub(crate) struct Look {
    limit: usize,
    pub(crate) found: Vec<Found>,
    pub(crate) sums: Vec<Sum>,
    /// Who is looked at.
    pub(crate) dispatch: usize,
    pub(crate) worker: usize,
    pub(crate) now: u64,
    /// What came after this has not been seen by its worker.
    pub(crate) looked_at: u64,
}

impl Look {
    /// A look at so many dispatches that keeps at most `limit` mailboxes.
    pub(crate) fn new(dispatches: usize, limit: usize) -> Self {
        let sums = vec![Sum::default(); dispatches];
        Self { limit, found: Vec::new(), sums, dispatch: 0, worker: 0, now: 0, looked_at: 0 }
    }

    fn add(&mut self, entry: u32, state: MailboxState, queued: usize, age: u64) {
        let sum = &mut self.sums[self.dispatch];
        sum.mailboxes += 1;
        sum.oldest = sum.oldest.max(Some(age));
        if self.limit == 0 {
            return;
        }
        let (dispatch, worker) = (self.dispatch, self.worker);
        self.found.push(Found { dispatch, worker, entry, state, queued, age, key: None });
        if self.found.len() >= self.limit.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    /// The message that runs in place, which began after its worker last looked at the clock, or with it.
    pub(crate) fn add_in_place(&mut self) {
        self.sums[self.dispatch].in_place += 1;
        self.add(IN_PLACE, MailboxState::Running, 0, self.now.saturating_sub(self.looked_at));
    }

    /// Forgets all but the oldest, up to the limit.
    pub(crate) fn cut(&mut self) {
        let age_first = |found: &Found| Reverse((found.age, found.queued));
        if self.found.len() > self.limit {
            self.found.select_nth_unstable_by_key(self.limit, age_first);
            self.found.truncate(self.limit);
        }
    }

    /// The oldest first.
    pub(crate) fn sort(&mut self) {
        self.cut();
        self.found.sort_by_key(|found| Reverse((found.age, found.queued)));
    }
}

/// # Safety
/// Every `unsafe` method asks the caller to hold the seat of `cx` (rule 1 of seat/README.md).
impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Looks at every mailbox that is live on this lane.
    pub(crate) unsafe fn look_at_lane(&self, cx: &Cx<'_>, look: &mut Look) {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md, this function's contract; rule 2 for the mailboxes: they are in the lane's
        // ring, wait on it, are detached or have their turn on it, so their first message was taken out of its inbox.
        unsafe {
            let mut coming = self.coming(worker);
            let (mut ready, turn, residents) =
                self.plain(worker, |plain| (plain.ready_head, plain.turn, plain.residents.len()));
            while ready != NONE {
                self.look_at(ready, &mut coming, look);
                ready = self.mailbox(ready, |mailbox| mailbox.next_ready);
            }
            for entry in 0..residents as u32 {
                let is_held = self.resident(worker, entry, |resident| resident.waiting || resident.detached);
                if is_held == Some(true) {
                    self.look_at(entry, &mut coming, look);
                }
            }
            if turn != NONE {
                self.look_at(turn, &mut coming, look);
            }
            for (entry, queued) in coming {
                // They came after the worker last looked at the clock, or with it: they cannot be older.
                look.add(entry, MailboxState::Ready, queued, look.now.saturating_sub(look.looked_at));
            }
        }
    }

    /// How many messages of each entry lie in the inbox.
    unsafe fn coming(&self, worker: usize) -> HashMap<u32, usize> {
        let inbox = &self.lanes[worker].inbox;
        let mut coming = HashMap::new();
        // SAFETY: rule 1 of seat/README.md: the holder of the seat is the inbox's only consumer; nothing is taken.
        unsafe {
            for position in self.plain(worker, |plain| plain.taken)..inbox.published() {
                *coming.entry(inbox.read(position).entry()).or_default() += 1;
            }
        }
        coming
    }

    unsafe fn look_at(&self, entry: u32, coming: &mut HashMap<u32, usize>, look: &mut Look) {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract; the slots in the mailbox are its worker's.
        unsafe {
            let Mailbox { running, head, tail, .. } = self.mailbox(entry, |mailbox| *mailbox);
            let state = self.mailbox(entry, |mailbox| mailbox.state());
            let state = match state {
                State::Idle => return,
                State::Ready => MailboxState::Ready,
                State::Running => MailboxState::Running,
                State::Waiting => MailboxState::Waiting,
                State::Resumed => MailboxState::Resumed,
                State::Detached => MailboxState::Detached,
            };
            let oldest = if running == NONE { head } else { running };
            let age = match oldest {
                // Between two of its messages.
                NONE => 0,
                slot => since(self.reached_at(slot), ticks(look.now)),
            };
            let mut queued = coming.remove(&entry).unwrap_or(0);
            let mut slot = head;
            while slot != NONE {
                queued += 1;
                slot = self.behind(slot, tail);
            }
            look.add(entry, state, queued, age);
        }
    }

    /// A key as its `Debug` writes it, cut to a line.
    pub(crate) fn key_line(&self, entry: u32) -> String {
        self.with_key(entry, |key| crate::contain::line(key))
    }
}
