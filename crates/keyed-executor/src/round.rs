//! A lane's round: what the inbox brought goes into mailboxes, and ready mailboxes get their turns.
//!
//! Ready mailboxes stand in a ring in the order in which they became ready; a round ends after about
//! [`ROUND_NS`] of measured work. A dispatch that is stopping starts nothing: its lanes drop
//! what they have (`discard.rs`). What a turn is, is `turn.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::credit::Then;
use crate::cx::Cx;
use crate::engine::{Engine, ErrorOf, phase};
use crate::error::Outcome;
use crate::figures::SHOWS;
use crate::hot::Samples;
use crate::lane::Item;
use crate::lanes::Round;
use crate::mailbox::state::{Duty, Event};
use crate::mailbox::{Mailbox, NONE};
use crate::meter::Meter;
use crate::prefetch::Access;
use crate::sync::Ordering;
use crate::turn::Lost;

/// A round of a lane ends after about this much measured work.
const ROUND_NS: u64 = 20_000;

/// # Safety
/// Every `unsafe` method asks the caller to hold the seat of `cx` (rule 1 of seat/README.md).
impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// One round of a lane whose dispatch has its intake elsewhere.
    pub(crate) unsafe fn lane_round(&self, cx: &Cx<'_>) -> Result<Round, Lost<ErrorOf<F>>> {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            Ok(match self.see_phase(cx) {
                phase::ENDED => Round::Ended,
                phase::STOPPING => {
                    if self.lane_holds_something(cx) {
                        self.discard_lane(cx);
                    }
                    Round::Dry
                }
                _ => {
                    self.run_lane(cx)?;
                    match self.backlog(cx.worker.index()) {
                        0 => Round::Dry,
                        backlog_ns => Round::Busy { backlog_ns },
                    }
                }
            })
        }
    }

    /// Whether something waits on this lane.
    pub(crate) unsafe fn lane_holds_something(&self, cx: &Cx<'_>) -> bool {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let taken = unsafe { self.plain(worker, |plain| plain.taken) };
        let figures = &self.lanes[worker].figures;
        figures.ready.get() + figures.waiting.get() > 0 || self.lanes[worker].inbox.published() != taken
    }

    /// Whether the lane has something to do that its last round did not see.
    pub(crate) unsafe fn lane_has_news(&self, cx: &Cx<'_>) -> bool {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let (taken, seen) = unsafe { self.plain(worker, |plain| (plain.taken, plain.seen_phase)) };
        // Ready ones too: who looked whether this seat is worth a rescue, while it was lent after the lane's last round, has
        // taken the inbox for it.
        self.lanes[worker].figures.ready.get() > 0
            || self.lanes[worker].inbox.published() != taken
            || self.phase() != seen
    }

    /// Notes the phase that this round acts on.
    #[inline]
    pub(crate) unsafe fn see_phase(&self, cx: &Cx<'_>) -> u8 {
        let seen = self.phase();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.plain(cx.worker.index(), |plain| plain.seen_phase = seen) };
        seen
    }

    /// What a lane has ready, in nanoseconds as far as a message's cost is known; 0 only if nothing is.
    #[inline]
    pub(crate) unsafe fn backlog(&self, worker: usize) -> u64 {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.lanes[worker].figures.ready.get() * self.plain(worker, |plain| plain.cost.max(1)) }
    }

    /// Takes what the inbox brought and runs ready mailboxes.
    #[inline]
    pub(crate) unsafe fn run_lane(&self, cx: &Cx<'_>) -> Result<(), Lost<ErrorOf<F>>> {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            self.take_inbox(cx);
            let worker = cx.worker.index();
            let (cost, unmeasured) = self.plain(worker, |plain| (plain.cost, plain.unmeasured));
            if self.lanes[worker].figures.ready.get() == 0 {
                return Ok(());
            }
            let mut meter = Meter::start(cx.worker.clock(), cost, unmeasured, ROUND_NS);
            while !meter.is_used_up() && self.is_running() {
                let Some(entry) = self.pop_ready(worker) else { break };
                self.turn(cx, entry, &mut meter)?;
            }
            self.measured(cx, meter);
            let unshown = self.plain(worker, |plain| plain.written - plain.shown);
            if self.lanes[worker].figures.ready.get() == 0 && unshown > 0 {
                // Whatever the worker's other lanes have to do: this one is dry.
                self.publish(cx, Then::Dry);
            } else if unshown >= self.batch as u64 {
                self.publish(cx, Then::Busy);
            }
        }
        Ok(())
    }

    /// Stores what a round measured, for the next one and for placement.
    #[inline]
    pub(crate) unsafe fn measured(&self, cx: &Cx<'_>, meter: Meter<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            let cost = self.plain(worker, |plain| {
                let before = plain.cost;
                (plain.cost, plain.unmeasured) = meter.finish(plain.unmeasured);
                (plain.cost != before).then_some(plain.cost)
            });
            if let Some(cost) = cost {
                self.lanes[worker].cost.store(cost, Ordering::Relaxed);
            }
        }
    }

    /// Moves what the inbox brought into mailboxes.
    #[inline]
    pub(crate) unsafe fn take_inbox(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        let lane = &self.lanes[worker];
        let published = lane.inbox.published();
        // SAFETY: rule 1 of seat/README.md, this function's contract; rule 2 for the mailboxes: their first message
        // came out of this worker's inbox; rule 4 for the slots.
        unsafe {
            let from = self.plain(worker, |plain| std::mem::replace(&mut plain.taken, published));
            if from == published {
                return;
            }
            for position in from..published {
                let item = lane.inbox.read(position);
                // Read by a turn after this loop: all of them are fetched at once meanwhile.
                self.foresee(item.slot() as usize, Access::Read);
                self.enqueue(cx, item);
            }
            if self.samples == Samples::Inboxes
                && self.plain(worker, |plain| plain.hot.is_due(published - from))
                && cx.is_occupant()
            {
                self.sample_inbox(cx, from, published);
            }
        }
        lane.taken.store(published, Ordering::Relaxed);
    }

    /// Puts a message behind the others of its key.
    #[inline]
    pub(crate) unsafe fn enqueue(&self, cx: &Cx<'_>, item: Item) {
        let (entry, slot) = (item.entry(), item.slot());
        let worker = cx.worker.index();
        // SAFETY: rules 2 and 4 of seat/README.md: the item came to this worker, whose seat the caller holds.
        unsafe {
            if SHOWS && item.is_fresh() {
                self.plain(worker, |plain| plain.tally.placements += 1);
            }
            self.reached(cx, slot);
            let (duty, last) = self.mailbox(entry, |mailbox| {
                if item.is_fresh() {
                    *mailbox = Mailbox::new();
                }
                let last = if mailbox.head == NONE { NONE } else { mailbox.tail };
                if last == NONE {
                    mailbox.head = slot;
                }
                mailbox.tail = slot;
                (mailbox.on(Event::Enqueue), last)
            });
            if last != NONE {
                self.link(last, slot);
            }
            if duty == Duty::Queue {
                self.lanes[worker].figures.live.up();
                self.push_ready(worker, entry);
            }
        }
    }

    #[inline]
    pub(crate) unsafe fn push_ready(&self, worker: usize, entry: u32) {
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            self.mailbox(entry, |mailbox| mailbox.next_ready = NONE);
            self.lanes[worker].figures.ready.up();
            let last = self.plain(worker, |plain| {
                let last = if plain.ready_head == NONE { NONE } else { plain.ready_tail };
                if last == NONE {
                    plain.ready_head = entry;
                }
                plain.ready_tail = entry;
                last
            });
            if last != NONE {
                self.mailbox(last, |mailbox| mailbox.next_ready = entry);
            }
        }
    }

    #[inline]
    pub(crate) unsafe fn pop_ready(&self, worker: usize) -> Option<u32> {
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            let entry = self.plain(worker, |plain| plain.ready_head);
            if entry == NONE {
                return None;
            }
            let next = self.mailbox(entry, |mailbox| mailbox.next_ready);
            self.plain(worker, |plain| plain.ready_head = next);
            self.lanes[worker].figures.ready.down();
            Some(entry)
        }
    }

    /// Takes the next message of a mailbox off its queue.
    #[inline]
    pub(crate) unsafe fn pop_message(&self, entry: u32) -> Option<u32> {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract.
        unsafe {
            let (head, tail) = self.mailbox(entry, |mailbox| (mailbox.head, mailbox.tail));
            if head == NONE {
                return None;
            }
            #[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
            if let Some(second) = self.second_first(entry, head) {
                return Some(second);
            }
            let next = self.behind(head, tail);
            self.mailbox(entry, |mailbox| mailbox.head = next);
            Some(head)
        }
    }

    /// A waker of an entry on this worker fired: a mailbox that waits for it is ready now.
    pub(crate) unsafe fn woken(&self, cx: &Cx<'_>, entry: u32) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 2 of seat/README.md: `waiting` says that the entry is placed here and its future waits;
        // a mailbox that is not is another worker's and is not looked at.
        unsafe {
            if self.take_waiting(worker, entry)
                && self.mailbox(entry, |mailbox| mailbox.on(Event::Wake)) == Duty::Queue
            {
                self.push_ready(worker, entry);
            }
        }
    }

    /// Ends an entry's waiting on this lane; false if it does not wait here.
    pub(crate) unsafe fn take_waiting(&self, worker: usize, entry: u32) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let waited = unsafe {
            self.resident(worker, entry, |resident| std::mem::replace(&mut resident.waiting, false))
        };
        let waited = waited == Some(true);
        if waited {
            self.lanes[worker].figures.waiting.down();
        }
        waited
    }
}
