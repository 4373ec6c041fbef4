//! A message whose thread lost its seat: detached when the seat is adopted, put back in order when its outcome comes.
//!
//! The stuck key stays exclusive: its mailbox is Detached and starts nothing; messages queue behind it. The thread that
//! lost the seat touches the message's future and nothing else, then leaves the outcome here and goes.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::cx::Cx;
use crate::engine::{Engine, ErrorOf};
use crate::error::Outcome;
use crate::mailbox::NONE;
use crate::mailbox::state::{Duty, Event};
use crate::sync::lock;
use crate::turn::{Lost, Ran};

/// # Safety
/// Every `unsafe` method asks the caller to hold the seat of `cx` (rule 1 of seat/README.md).
impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Whether something waits on this lane that another thread could go on with.
    ///
    /// The inbox is taken for the occupant: only in their mailboxes can messages be told that wait behind the stuck one.
    pub(crate) unsafe fn lane_waits(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let (unshown, seen) = unsafe {
            self.take_inbox(cx);
            self.plain(cx.worker.index(), |plain| (plain.written > plain.shown, plain.seen_phase))
        };
        self.lanes[cx.worker.index()].figures.ready.get() > 0 || unshown || self.phase() != seen
    }

    /// Whether a thread that lost this seat is inside a handler of this lane, and so of what the seat keeps alive.
    pub(crate) unsafe fn lane_has_detached(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            let worker = cx.worker.index();
            let residents = self.plain(worker, |plain| plain.residents.len() as u32);
            (0..residents).any(|entry| self.is_detached(worker, entry))
        }
    }

    /// Detaches the message whose turn it was when the seat was taken.
    pub(crate) unsafe fn adopt_lane(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            let entry = self.plain(worker, |plain| std::mem::replace(&mut plain.turn, NONE));
            if entry != NONE {
                // What it finished before is not known here.
                self.lanes[worker].figures.turn_ended(0);
                self.detach(worker, entry);
            }
        }
    }

    /// Marks a running message as detached.
    pub(crate) unsafe fn detach(&self, worker: usize, entry: u32) {
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Take));
            debug_assert_eq!(duty, Duty::Release);
            let marked = self.resident(worker, entry, |resident| resident.detached = true);
            debug_assert!(marked.is_some(), "what runs was given its waker before");
        }
    }

    /// Whether a thread that lost this seat is inside the handler of an entry.
    pub(crate) unsafe fn is_detached(&self, worker: usize, entry: u32) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.resident(worker, entry, |resident| resident.detached) == Some(true) }
    }

    /// Leaves the outcome of a detached message, from the thread that lost the seat.
    pub(crate) fn hand_in(&self, lost: Lost<ErrorOf<F>>) {
        lock(&self.handed_in).push(lost);
    }

    /// Puts detached messages of this worker whose outcome came back in order.
    pub(crate) unsafe fn take_handed_in(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        loop {
            let lost = {
                let mut handed_in = lock(&self.handed_in);
                let at = handed_in.iter().position(|lost| lost.worker == worker);
                at.map(|at| handed_in.swap_remove(at))
            };
            let Some(Lost { entry, ran, .. }) = lost else { return };
            // SAFETY: rules 1 to 4 of seat/README.md: the entry is placed on this worker and nobody is inside its
            // handler any more: its outcome is here.
            unsafe {
                self.resident(worker, entry, |resident| resident.detached = false);
                if let Ran::Pending { .. } = ran {
                    let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::HandInPending));
                    debug_assert_eq!(duty, Duty::Queue);
                    self.push_ready(worker, entry);
                    continue;
                }
                let failed = self.account(cx, ran, || self.key_text(entry));
                let (duty, slot) = self.mailbox(entry, |mailbox| {
                    let slot = std::mem::replace(&mut mailbox.running, NONE);
                    let event = if mailbox.head == NONE { Event::HandInLast } else { Event::HandInMore };
                    (mailbox.on(event), slot)
                });
                match duty {
                    Duty::Queue => self.push_ready(worker, entry),
                    _ => self.lanes[worker].figures.live.down(),
                }
                self.complete(cx, entry, slot, |tally| {
                    if failed {
                        tally.failed += 1;
                    } else {
                        tally.handled += 1;
                    }
                });
            }
        }
    }
}
