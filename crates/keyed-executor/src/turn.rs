//! Running messages: a lane's round, a mailbox's turn, one message's start, poll and end.
//!
//! A round takes what the inbox brought, then runs ready mailboxes in the order in which they became ready, each for at
//! most `throughput` messages, for about [`SHORT_NS`](crate::placement::SHORT_NS) of measured work. A message whose
//! handler is pending leaves the mailbox waiting and the worker free. Everything of the user's runs with the seat lent,
//! so nothing here keeps a reference into the seat across it: what is needed afterwards is looked up again.
//!
//! A dispatch that is stopping starts nothing: its lanes drop what they have (`discard`).

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::credit::Then;
use crate::engine::{Engine, ErrorOf, Round, phase};
use crate::error::{Cause, Outcome};
use crate::lane::{Item, Resident};
use crate::mailbox::state::{Duty, Event, State};
use crate::mailbox::{Mailbox, NONE};
use crate::placement::SHORT_NS;
use crate::sync::Ordering;
use crate::time::nanos;
use crate::wake::{CellRef, WakeCell, polling};
use crate::worker::Cx;

/// Messages of a round while a message's cost is unknown.
const UNMEASURED_MESSAGES: u32 = 8;
/// The most messages of a round.
const MOST_MESSAGES: u64 = 256;
/// Messages between two measurements of a cheap handler.
const MEASURE_EVERY: u32 = 32;
/// A handler that costs more is measured in every round.
const MEASURE_ALWAYS_NS: u64 = 1_000;

/// How a message's run ended for now.
pub(crate) enum Ran<E> {
    /// Its handler ended.
    Done(Result<(), E>),
    /// Its handler waits; whether it woke itself meanwhile.
    Pending { woken: bool },
    /// Its handler panicked; the future is gone.
    Panicked(String),
}

/// Measures what a message costs, at most one clock read in and one out of a round.
pub(crate) struct Meter {
    started: Option<u64>,
    pub(crate) messages: u32,
    limit: u32,
    cost: u64,
}

impl Meter {
    /// Starts a round of a lane with this cost and this many messages since it was measured.
    #[inline]
    pub(crate) fn start(cost: u64, unmeasured: u32, budget_ns: u64) -> Self {
        let measure = cost == 0 || cost >= MEASURE_ALWAYS_NS || unmeasured >= MEASURE_EVERY;
        let limit = match cost {
            0 => UNMEASURED_MESSAGES,
            _ => (budget_ns / cost).clamp(1, MOST_MESSAGES) as u32,
        };
        Self { started: measure.then(nanos), messages: 0, limit, cost }
    }

    #[inline]
    pub(crate) fn ran(&mut self) {
        self.messages += 1;
    }

    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.messages >= self.limit
    }

    /// The cost after this round, and the messages since it was measured.
    #[inline]
    pub(crate) fn finish(self, unmeasured: u32) -> (u64, u32) {
        let Some(started) = self.started else { return (self.cost, unmeasured + self.messages) };
        if self.messages == 0 {
            return (self.cost, unmeasured);
        }
        let sample = ((nanos() - started) / u64::from(self.messages)).max(1);
        let cost = if self.cost == 0 { sample } else { (self.cost * 3 + sample).div_ceil(4) };
        (cost, 0)
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
    /// One round of a lane whose dispatch has its intake elsewhere.
    pub(crate) unsafe fn lane_round(&self, cx: &Cx<'_>) -> Round {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            match self.see_phase(cx) {
                phase::ENDED => Round::Ended,
                phase::STOPPING => {
                    if self.lane_holds_something(cx) {
                        self.discard_lane(cx);
                    }
                    Round::Dry
                }
                _ => {
                    self.run_lane(cx);
                    match self.backlog(cx.worker.index()) {
                        0 => Round::Dry,
                        backlog_ns => Round::Busy { backlog_ns },
                    }
                }
            }
        }
    }

    /// Whether something waits on this lane.
    pub(crate) unsafe fn lane_holds_something(&self, cx: &Cx<'_>) -> bool {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let (held, taken) = unsafe { self.plain(worker, |plain| (plain.ready + plain.waiting, plain.taken)) };
        held > 0 || self.lanes[worker].inbox.published() != taken
    }

    /// What a lane has ready, in nanoseconds as far as a message's cost is known; 0 only if nothing is.
    #[inline]
    pub(crate) unsafe fn backlog(&self, worker: usize) -> u64 {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.plain(worker, |plain| plain.ready as u64 * plain.cost.max(1)) }
    }

    /// Takes what the inbox brought and runs ready mailboxes.
    #[inline]
    pub(crate) unsafe fn run_lane(&self, cx: &Cx<'_>) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            self.take_inbox(cx);
            let worker = cx.worker.index();
            let (ready, cost, unmeasured) =
                self.plain(worker, |plain| (plain.ready, plain.cost, plain.unmeasured));
            if ready == 0 {
                return;
            }
            let mut meter = Meter::start(cost, unmeasured, SHORT_NS);
            while !meter.is_used_up() && self.is_running() {
                let Some(entry) = self.pop_ready(worker) else { break };
                self.turn(cx, entry, &mut meter);
            }
            self.measured(cx, meter);
            let unshown = self.plain(worker, |plain| plain.written - plain.shown);
            if unshown >= self.batch as u64 {
                self.publish(cx, Then::Busy);
            }
        }
    }

    /// Stores what a round measured, for the next one and for placement.
    #[inline]
    pub(crate) unsafe fn measured(&self, cx: &Cx<'_>, meter: Meter) {
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
    unsafe fn take_inbox(&self, cx: &Cx<'_>) {
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
                self.enqueue(cx, lane.inbox.read(position));
            }
        }
        lane.taken.store(published, Ordering::Relaxed);
    }

    /// Puts a message behind the others of its key.
    #[inline]
    pub(crate) unsafe fn enqueue(&self, cx: &Cx<'_>, item: Item) {
        let (entry, slot) = (item.entry(), item.slot());
        let worker = cx.worker.index();
        if item.is_fresh() {
            cx.worker.counters().mailboxes.add(1);
        }
        // SAFETY: rules 2 and 4 of seat/README.md: the item came to this worker, whose seat the caller holds.
        unsafe {
            self.slots[slot as usize].next.with_mut(|next| *next = NONE);
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
                self.slots[last as usize].next.with_mut(|next| *next = slot);
            }
            if duty == Duty::Queue {
                self.push_ready(worker, entry);
            }
        }
    }

    #[inline]
    unsafe fn push_ready(&self, worker: usize, entry: u32) {
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            self.mailbox(entry, |mailbox| mailbox.next_ready = NONE);
            let last = self.plain(worker, |plain| {
                plain.ready += 1;
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
    unsafe fn pop_ready(&self, worker: usize) -> Option<u32> {
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            let entry = self.plain(worker, |plain| plain.ready_head);
            if entry == NONE {
                return None;
            }
            let next = self.mailbox(entry, |mailbox| mailbox.next_ready);
            self.plain(worker, |plain| {
                plain.ready_head = next;
                plain.ready -= 1;
            });
            Some(entry)
        }
    }

    /// Takes the next message of a mailbox off its queue.
    #[inline]
    unsafe fn pop_message(&self, entry: u32) -> Option<u32> {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract.
        unsafe {
            let head = self.mailbox(entry, |mailbox| mailbox.head);
            if head == NONE {
                return None;
            }
            let next = self.slots[head as usize].next.with(|next| *next);
            self.mailbox(entry, |mailbox| mailbox.head = next);
            Some(head)
        }
    }

    /// Runs up to `throughput` messages of one mailbox.
    ///
    /// The next message is taken off the queue in the step that ends the one before: whoever borrows the seat while a
    /// completion is published finds a mailbox that either runs something or is in order.
    #[inline]
    unsafe fn turn(&self, cx: &Cx<'_>, entry: u32, meter: &mut Meter) {
        let worker = cx.worker.index();
        cx.worker.counters().turns.add(1);
        // SAFETY: rules 1 to 4 of seat/README.md: the caller holds the seat and the entry is placed on it.
        unsafe {
            self.plain(worker, |plain| plain.turn = entry);
            let cell = self.cell(cx, entry);
            let mut left = self.shared.config.throughput;
            let mut duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Begin));
            if duty == Duty::Start {
                self.start_next(entry);
            }
            loop {
                let slot = self.mailbox(entry, |mailbox| mailbox.running);
                let ran = if duty == Duty::Poll {
                    self.resume(cx, entry, cell)
                } else {
                    let message = self.take(slot);
                    self.begin(cx, entry, cell, message)
                };
                meter.ran();
                if let Ran::Pending { woken } = ran {
                    self.suspend(worker, entry, woken);
                    break;
                }
                let failed = self.account(cx, ran, || self.key_text(entry));
                left -= 1;
                duty = self.mailbox(entry, |mailbox| {
                    mailbox.running = NONE;
                    mailbox.on(match mailbox.head {
                        NONE => Event::FinishLast,
                        _ if left == 0 => Event::Yield,
                        _ => Event::FinishMore,
                    })
                });
                match duty {
                    Duty::Forget => cx.worker.counters().forgotten.add(1),
                    Duty::Queue => self.push_ready(worker, entry),
                    _ => self.start_next(entry),
                }
                // After the mailbox: once its last completion is published it may be another's.
                self.complete(
                    cx,
                    entry,
                    slot,
                    |tally| if failed { tally.failed += 1 } else { tally.handled += 1 },
                );
                if duty != Duty::Start {
                    break;
                }
                if !self.is_running() {
                    self.put_back(worker, entry);
                    break;
                }
            }
            self.plain(worker, |plain| plain.turn = NONE);
        }
    }

    /// Takes the next message off the queue: it is the running one from here on.
    #[inline]
    unsafe fn start_next(&self, entry: u32) {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract.
        unsafe {
            let slot = self.pop_message(entry);
            debug_assert!(slot.is_some(), "a mailbox that is to start has a message: mailbox/state.rs");
            self.mailbox(entry, |mailbox| mailbox.running = slot.unwrap_or(NONE));
        }
    }

    /// Puts the message that was to start next back to the front: the dispatch is stopping.
    unsafe fn put_back(&self, worker: usize, entry: u32) {
        // SAFETY: rules 2 and 4 of seat/README.md: this function's contract.
        unsafe {
            let (slot, head) = self.mailbox(entry, |mailbox| {
                let slot = std::mem::replace(&mut mailbox.running, NONE);
                let head = std::mem::replace(&mut mailbox.head, slot);
                if head == NONE {
                    mailbox.tail = slot;
                }
                (slot, head)
            });
            self.slots[slot as usize].next.with_mut(|next| *next = head);
            let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Yield));
            debug_assert_eq!(duty, Duty::Queue);
            self.push_ready(worker, entry);
        }
    }

    /// Acts on a message's end; true if it failed. The message is still outstanding.
    #[inline]
    pub(crate) fn account(&self, cx: &Cx<'_>, ran: Ran<ErrorOf<F>>, key: impl FnOnce() -> String) -> bool {
        cx.worker.counters().messages.add(1);
        let cause = match ran {
            Ran::Done(Ok(())) => return false,
            Ran::Done(Err(error)) => Cause::Handler { key: key(), error },
            Ran::Panicked(message) => Cause::HandlerPanicked { key: key(), message },
            Ran::Pending { .. } => unreachable!("a message that waits has not ended"),
        };
        self.failed(cx, cause);
        true
    }

    /// Puts a completion beside the others; a full batch is published.
    #[inline]
    unsafe fn complete(
        &self,
        cx: &Cx<'_>,
        entry: u32,
        slot: u32,
        count: impl FnOnce(&mut crate::lane::Tally),
    ) {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md, this function's contract: the holder of the seat is the completions' only
        // producer; rule 4 hands the slot back with it.
        unsafe {
            let (position, unshown) = self.plain(worker, |plain| {
                count(&mut plain.tally);
                let position = plain.written;
                plain.written += 1;
                (position, plain.written - plain.shown)
            });
            self.lanes[worker].completions.write(position, Item::new(entry, slot));
            if unshown >= self.batch as u64 {
                self.publish(cx, Then::Busy);
            }
        }
    }

    /// Leaves a started message until it is woken, or behind the ready mailboxes if it woke itself.
    #[inline]
    pub(crate) unsafe fn suspend(&self, worker: usize, entry: u32, woken: bool) {
        // SAFETY: rules 1 and 2 of seat/README.md: this function's contract.
        unsafe {
            let event = if woken { Event::SuspendWoken } else { Event::Suspend };
            if self.mailbox(entry, |mailbox| mailbox.on(event)) == Duty::Queue {
                self.push_ready(worker, entry);
            } else {
                self.plain(worker, |plain| {
                    plain.residents[entry as usize].waiting = true;
                    plain.waiting += 1;
                });
            }
        }
    }

    /// The waker of an entry on this worker; made with its first poll here and kept.
    #[inline]
    pub(crate) unsafe fn cell(&self, cx: &Cx<'_>, entry: u32) -> CellRef {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            self.plain(cx.worker.index(), |plain| {
                if let Some(Resident { cell: Some(cell), .. }) = plain.residents.get(entry as usize) {
                    return cell.borrowed();
                }
                let attached = plain.attached.expect("a lane runs only while it is attached");
                if plain.residents.len() <= entry as usize {
                    plain.residents.resize_with(entry as usize + 1, Resident::default);
                }
                let cell = WakeCell::new(crate::sync::Arc::clone(cx.worker), attached, entry);
                plain.residents[entry as usize].cell.insert(cell).borrowed()
            })
        }
    }

    /// Starts a message in an entry's place: handler call and first poll.
    #[inline]
    pub(crate) unsafe fn begin(&self, cx: &Cx<'_>, entry: u32, cell: CellRef, message: M) -> Ran<ErrorOf<F>> {
        let place = &self.places[entry as usize].future;
        let mut written = false;
        let flag = &mut written;
        let ran = cx.user(move || {
            let future = (self.handler)(message);
            // SAFETY: rule 3 of seat/README.md: the place is empty and its mailbox is Running, or it is the place of
            // rule 7.
            place.with_mut(|place| unsafe { (*place).write(future) });
            *flag = true;
            // SAFETY: rule 3: the future was just written.
            let ended = unsafe { self.poll(entry, cell) };
            if ended.0.is_ready() {
                *flag = false;
                // SAFETY: rule 3: it ended, and nobody else drops it.
                place.with_mut(|place| unsafe { (*place).assume_init_drop() });
            }
            ended
        });
        // SAFETY: rule 3, as above.
        unsafe { self.ran(cx, entry, ran, written) }
    }

    /// Polls a message that was started before.
    #[inline]
    unsafe fn resume(&self, cx: &Cx<'_>, entry: u32, cell: CellRef) -> Ran<ErrorOf<F>> {
        let place = &self.places[entry as usize].future;
        let mut written = true;
        let flag = &mut written;
        let ran = cx.user(move || {
            // SAFETY: rule 3 of seat/README.md: the mailbox was Resumed, so its future is in its place.
            let ended = unsafe { self.poll(entry, cell) };
            if ended.0.is_ready() {
                *flag = false;
                // SAFETY: rule 3: it ended, and nobody else drops it.
                place.with_mut(|place| unsafe { (*place).assume_init_drop() });
            }
            ended
        });
        // SAFETY: rule 3, as above.
        unsafe { self.ran(cx, entry, ran, written) }
    }

    #[inline]
    unsafe fn poll(&self, entry: u32, cell: CellRef) -> (Poll<F::Output>, bool) {
        self.places[entry as usize].future.with_mut(|place| {
            // SAFETY: rule 3 of seat/README.md: the future is in its place, it is never moved out of it, and this
            // thread is the one that polls it.
            let future = unsafe { Pin::new_unchecked((*place).assume_init_mut()) };
            // SAFETY: rule 8 of seat/README.md: the lane keeps the cell as long as the engine lives.
            unsafe { polling(cell, |waker| future.poll(&mut Context::from_waker(waker))) }
        })
    }

    #[inline]
    unsafe fn ran(
        &self,
        cx: &Cx<'_>,
        entry: u32,
        ran: Result<(Poll<F::Output>, bool), String>,
        written: bool,
    ) -> Ran<ErrorOf<F>> {
        match ran {
            Ok((Poll::Ready(output), _)) => Ran::Done(output.into_result()),
            Ok((Poll::Pending, woken)) => Ran::Pending { woken },
            Err(panic) => {
                if written {
                    // SAFETY: rule 3 of seat/README.md: the poll panicked, the future is still in its place.
                    unsafe { self.drop_future(cx, entry) };
                }
                Ran::Panicked(panic)
            }
        }
    }

    /// Drops a future that did not end.
    ///
    /// # Safety
    /// Rule 3 of seat/README.md: it is in its place and is not being polled.
    unsafe fn drop_future(&self, cx: &Cx<'_>, entry: u32) {
        let dropped = cx.user(|| {
            // SAFETY: rule 3 of seat/README.md: this function's contract.
            self.places[entry as usize].future.with_mut(|place| unsafe { (*place).assume_init_drop() });
        });
        if let Err(panic) = dropped {
            tracing::error!(label = &*self.options.label, panic, "dropping a handler's future panicked");
        }
    }

    /// A waker of an entry on this worker fired; true if the mailbox is ready now.
    pub(crate) unsafe fn woken(&self, cx: &Cx<'_>, entry: u32) -> bool {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 2 of seat/README.md: `waiting` says that the entry is placed here and its future waits;
        // a mailbox that is not is another worker's and is not looked at.
        unsafe {
            let waited = self.plain(worker, |plain| {
                let waited = plain
                    .residents
                    .get_mut(entry as usize)
                    .is_some_and(|resident| std::mem::replace(&mut resident.waiting, false));
                plain.waiting -= usize::from(waited);
                waited
            });
            if waited && self.mailbox(entry, |mailbox| mailbox.on(Event::Wake)) == Duty::Queue {
                self.push_ready(worker, entry);
            }
            waited
        }
    }

    /// Whether the lane has something to do that its last round did not see.
    pub(crate) unsafe fn lane_has_news(&self, cx: &Cx<'_>) -> bool {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        let (taken, seen, ready) =
            unsafe { self.plain(worker, |plain| (plain.taken, plain.seen_phase, plain.ready)) };
        debug_assert_eq!(ready, 0, "a worker with a ready mailbox is not dry");
        self.lanes[worker].inbox.published() != taken || self.phase() != seen
    }

    /// Notes the phase that this round acts on.
    #[inline]
    pub(crate) unsafe fn see_phase(&self, cx: &Cx<'_>) -> u8 {
        let seen = self.phase();
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.plain(cx.worker.index(), |plain| plain.seen_phase = seen) };
        seen
    }

    /// Drops what waits on this lane: messages in the inbox and in mailboxes, futures that wait. The message that runs
    /// right now is left alone.
    pub(crate) unsafe fn discard_lane(&self, cx: &Cx<'_>) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 to 4 of seat/README.md: the caller holds the seat. Each thing is taken off the lane before
        // the user's `Drop` runs with the seat lent, so whoever borrows the seat meanwhile does not find it again.
        unsafe {
            self.take_inbox(cx);
            while let Some(entry) = self.pop_ready(worker) {
                let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Begin));
                self.discard_mailbox(cx, entry, duty);
            }
            let residents = self.plain(worker, |plain| plain.residents.len());
            for entry in 0..residents as u32 {
                let waited = self.plain(worker, |plain| {
                    let waited = std::mem::replace(&mut plain.residents[entry as usize].waiting, false);
                    plain.waiting -= usize::from(waited);
                    waited
                });
                if waited {
                    let _ = self.mailbox(entry, |mailbox| mailbox.on(Event::Wake));
                    let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Begin));
                    self.discard_mailbox(cx, entry, duty);
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
                let lists = (
                    std::mem::replace(&mut mailbox.running, NONE),
                    std::mem::replace(&mut mailbox.head, NONE),
                );
                let duty = mailbox.on(Event::FinishLast);
                debug_assert_eq!(duty, Duty::Forget);
                lists
            });
            cx.worker.counters().forgotten.add(1);
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
            let queue = self.mailbox(entry, |mailbox| std::mem::replace(&mut mailbox.head, NONE));
            self.discard_slots(cx, entry, queue);
        }
    }

    /// Drops the messages of a list that was taken off its mailbox.
    unsafe fn discard_slots(&self, cx: &Cx<'_>, entry: u32, mut slot: u32) {
        while slot != NONE {
            // SAFETY: rule 4 of seat/README.md: the list was taken off its mailbox, it is this thread's alone.
            unsafe {
                let next = self.slots[slot as usize].next.with(|next| *next);
                let message = self.take(slot);
                cx.drop_user("a message", message);
                self.complete(cx, entry, slot, |tally| tally.discarded += 1);
                slot = next;
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
            cx.worker.counters().forgotten.add(1);
            if slot != NONE {
                self.complete(cx, running, slot, |tally| tally.cancelled += 1);
            }
        }
    }
}
