//! Dropping what waits on a lane: for a dispatch that failed, was cancelled or forced, and for a worker that died.
//!
//! Each thing is taken off the lane before its `Drop`, which is the user's, runs with the seat held or borrowed: whoever
//! works on the seat meanwhile does not find it again. The message that runs right now is left alone.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::credit::Then;
use crate::cx::Cx;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::lane::Item;
use crate::mailbox::state::{Duty, Event, State};
use crate::mailbox::{Mailbox, NONE};

/// # Safety
/// Every `unsafe` method asks the caller to hold the seat of `cx` (rule 1 of seat/README.md).
impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Drops what waits on this lane: messages in the inbox and in mailboxes, futures that wait. The message that runs
    /// right now is left alone.
    pub(crate) unsafe fn discard_lane(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 to 4 of seat/README.md: the caller holds the seat. Each thing is taken off the lane before
        // the user's `Drop` runs with the seat held, so whoever borrows the seat meanwhile does not find it again.
        unsafe {
            self.take_inbox(cx);
            self.discard_doomed(cx);
            while let Some(entry) = self.pop_ready(worker) {
                let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Begin));
                self.discard_mailbox(cx, entry, duty);
            }
            let residents = self.plain(worker, |plain| plain.residents.len());
            for entry in 0..residents as u32 {
                if self.take_waiting(worker, entry) {
                    let _ = self.mailbox(entry, |mailbox| mailbox.on(Event::Wake));
                    let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Begin));
                    self.discard_mailbox(cx, entry, duty);
                }
            }
            for entry in 0..residents as u32 {
                if self.is_detached(worker, entry) {
                    self.discard_queue(cx, entry);
                }
            }
            let running = self.plain(worker, |plain| plain.turn);
            if running != NONE {
                self.discard_queue(cx, running);
            }
            self.publish(cx, Then::Dry);
        }
    }

    /// Drops a mailbox's future if it has one, then its queue. The mailbox is Running when this is called.
    unsafe fn discard_mailbox(&self, cx: &Cx<'_>, entry: u32, duty: Duty) {
        // SAFETY: rules 2 to 4 of seat/README.md: this function's contract.
        unsafe {
            if duty == Duty::Poll {
                self.drop_future(cx, entry);
            }
            let (running, queue) = self.mailbox(entry, |mailbox| {
                let lists = (std::mem::replace(&mut mailbox.running, NONE), mailbox.take_queue());
                let duty = mailbox.on(Event::FinishLast);
                debug_assert_eq!(duty, Duty::Forget);
                lists
            });
            self.lanes[cx.worker.index()].figures.live.down();
            if running != NONE {
                self.complete(cx, entry, running, |tally| tally.cancelled += 1);
            }
            self.discard_slots(cx, entry, queue);
        }
    }

    /// Drops the queue of a mailbox whose running message is left alone.
    unsafe fn discard_queue(&self, cx: &Cx<'_>, entry: u32) {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract.
        unsafe {
            let queue = self.mailbox(entry, Mailbox::take_queue);
            self.discard_slots(cx, entry, queue);
        }
    }

    /// Drops the messages of a list that was taken off its mailbox.
    ///
    /// They stand on the lane until each one's turn comes, where whoever borrows the seat during a slow drop finds the
    /// rest and drops it.
    unsafe fn discard_slots(&self, cx: &Cx<'_>, entry: u32, (mut slot, last): (u32, u32)) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 4 of seat/README.md: the list was taken off its mailbox, it is on this lane alone.
        unsafe {
            while slot != NONE {
                self.plain(worker, |plain| plain.doomed.push(Item::new(entry, slot)));
                slot = self.behind(slot, last);
            }
            self.discard_doomed(cx);
        }
    }

    unsafe fn discard_doomed(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 4 of seat/README.md, as above.
        unsafe {
            while let Some(item) = self.plain(worker, |plain| plain.doomed.pop()) {
                let message = self.take(item.slot());
                cx.drop_user("a message", message);
                self.complete(cx, item.entry(), item.slot(), |tally| tally.discarded += 1);
            }
        }
    }

    /// Gives up the message that ran when this worker's thread died of a bug: its future is leaked, not touched.
    pub(crate) unsafe fn bury_lane(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 2 of seat/README.md: the caller holds the seat of a thread that will run nothing more.
        unsafe {
            let running = self.plain(worker, |plain| std::mem::replace(&mut plain.turn, NONE));
            if running == NONE || self.mailbox(running, |mailbox| mailbox.state()) != State::Running {
                return;
            }
            self.discard_queue(cx, running);
            let slot = self.mailbox(running, |mailbox| {
                let _ = mailbox.on(Event::FinishLast);
                std::mem::replace(&mut mailbox.running, NONE)
            });
            self.lanes[worker].figures.live.down();
            if slot != NONE {
                self.complete(cx, running, slot, |tally| tally.cancelled += 1);
            }
        }
    }
}
