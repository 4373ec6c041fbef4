//! A mailbox's turn: one message after the other is started, polled and ended, at most `throughput` of them.
//!
//! A message whose handler is pending leaves the mailbox waiting and the worker free. Everything of the user's runs with
//! the seat lent, so nothing here keeps a reference into the seat across it: what is needed afterwards is looked up again.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::contain::contain;
use crate::credit::Then;
use crate::cx::Cx;
use crate::engine::{Engine, ErrorOf};
use crate::error::{Cause, Outcome};
use crate::figures::SHOWS;
use crate::lane::{Item, Tally};
use crate::mailbox::NONE;
use crate::mailbox::state::{Duty, Event};
use crate::meter::Meter;
use crate::seat::token::Back;
use crate::wake::{CellRef, Resident, WakeCell, polling};

/// Completions are not held back for longer than this much expected work.
const HELD_UP_NS: u64 = 20_000;

/// What one poll of a handler brought, written where it is read: the way through the value of a contained closure costs
/// more than a cheap handler.
struct Stepped<E> {
    /// How the handler ended, if it did.
    ended: Option<Result<(), E>>,
    /// Whether it woke itself.
    woken: bool,
    written: Written,
}

/// Whether a future is in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

impl<E> Stepped<E> {
    #[inline]
    fn new(written: Written) -> Self {
        Self { ended: None, woken: false, written }
    }
}

/// How one step of a message ended.
pub(crate) enum Ran<E> {
    /// Its handler ended.
    Done(Result<(), E>),
    /// Its handler waits; whether it woke itself meanwhile.
    Pending { woken: bool },
    /// Its handler panicked; the future is gone.
    Panicked(String),
}

/// A message whose thread lost its seat while it ran; its outcome has to be handed in.
pub(crate) struct Lost<E> {
    pub(crate) worker: usize,
    pub(crate) entry: u32,
    pub(crate) ran: Ran<E>,
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
    /// Runs up to `throughput` messages of one mailbox.
    ///
    /// The next message is taken off the queue in the step that ends the one before: whoever borrows the seat while a
    /// completion is published finds a mailbox that either runs something or is in order.
    #[inline]
    pub(crate) unsafe fn turn(
        &self,
        cx: &Cx<'_>,
        entry: u32,
        meter: &mut Meter<'_>,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        let worker = cx.worker.index();
        // SAFETY: rules 1 to 4 of seat/README.md: the caller holds the seat and the entry is placed on it.
        unsafe {
            self.plain(worker, |plain| {
                plain.turn = entry;
                plain.tally.turns += u64::from(SHOWS);
            });
            let cell = self.cell(cx, entry);
            let throughput = self.shared.config.throughput;
            let figures = &self.lanes[worker].figures;
            let mut left = throughput;
            let mut duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Begin));
            if duty == Duty::Start {
                self.start_next(entry);
            }
            loop {
                let slot = self.mailbox(entry, |mailbox| mailbox.running);
                let (ran, back) = if duty == Duty::Poll {
                    self.resume(cx, entry, cell)
                } else {
                    if let Some(auditor) = &self.auditor {
                        self.audit_start(auditor, cx, entry, slot);
                    }
                    self.begin(cx, entry, cell, || self.take(slot))
                };
                if back == Back::Lost {
                    return Err(Lost { worker, entry, ran });
                }
                meter.ran();
                if let Ran::Pending { woken } = ran {
                    self.suspend(worker, entry, woken);
                    figures.turn_ended(throughput - left);
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
                    Duty::Forget => figures.live.down(),
                    Duty::Queue => self.push_ready(worker, entry),
                    _ => self.start_next(entry),
                }
                // After the mailbox, and not its turn any more: once its last completion is published it may be another
                // worker's, and whoever borrows this seat then must not find it here.
                if duty != Duty::Start {
                    self.plain(worker, |plain| plain.turn = NONE);
                    figures.turn_ended(throughput - left);
                }
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
                    figures.turn_ended(throughput - left);
                    break;
                }
            }
            self.plain(worker, |plain| plain.turn = NONE);
        }
        Ok(())
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
            if head != NONE {
                self.link(slot, head);
            }
            let duty = self.mailbox(entry, |mailbox| mailbox.on(Event::Yield));
            debug_assert_eq!(duty, Duty::Queue);
            self.push_ready(worker, entry);
        }
    }

    /// Acts on a message's end; true if it failed. The message is still outstanding.
    #[inline]
    pub(crate) fn account(&self, cx: &Cx<'_>, ran: Ran<ErrorOf<F>>, key: impl FnOnce() -> String) -> bool {
        let cause = match ran {
            Ran::Done(Ok(())) => return false,
            Ran::Done(Err(error)) => Cause::Handler { key: key(), error },
            Ran::Panicked(message) => Cause::HandlerPanicked { key: key(), message },
            Ran::Pending { .. } => unreachable!("a message that waits has not ended"),
        };
        self.failed(cx, cause);
        true
    }

    /// Puts a completion beside the others. They are published once they are a batch, or once the messages behind them
    /// would hold them up for [`HELD_UP_NS`]; an unknown cost counts as that much.
    #[inline]
    pub(crate) unsafe fn complete(&self, cx: &Cx<'_>, entry: u32, slot: u32, count: impl FnOnce(&mut Tally)) {
        if let Some(auditor) = &self.auditor {
            auditor.ended(slot);
        }
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md, this function's contract: the holder of the seat is the completions' only
        // producer; rule 4 hands the slot back with it.
        unsafe {
            let (position, unshown, cost) = self.plain(worker, |plain| {
                count(&mut plain.tally);
                let position = plain.written;
                plain.written += 1;
                (position, plain.written - plain.shown, if plain.cost == 0 { HELD_UP_NS } else { plain.cost })
            });
            self.lanes[worker].completions.write(position, Item::new(entry, slot));
            if cost >= HELD_UP_NS {
                // The next message alone holds up for longer than it costs to wake who waits.
                self.publish(cx, Then::Dry);
            } else if unshown >= self.batch as u64 || unshown * cost >= HELD_UP_NS {
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
                self.resident(worker, entry, |resident| resident.waiting = true);
                self.lanes[worker].figures.waiting.up();
            }
        }
    }

    /// The waker of an entry on this worker; made with its first poll here and kept.
    #[inline]
    pub(crate) unsafe fn cell(&self, cx: &Cx<'_>, entry: u32) -> CellRef {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            self.plain(cx.worker.index(), |plain| {
                if let Some(Some(cell)) = plain.residents.get(entry as usize) {
                    return cell.borrowed();
                }
                let attached = plain.attached.expect("a lane runs only while it is attached");
                if plain.residents.len() <= entry as usize {
                    let room = (entry as usize + 1).next_power_of_two().min(self.window);
                    plain.residents.resize_with(room, || None);
                }
                let cell = WakeCell::new(crate::sync::Arc::clone(cx.worker), attached, entry);
                plain.residents[entry as usize].insert(cell).borrowed()
            })
        }
    }

    /// Works on what the lane keeps for an entry; None if the entry was never polled there.
    #[inline]
    pub(crate) unsafe fn resident<R>(
        &self,
        worker: usize,
        entry: u32,
        access: impl FnOnce(&mut Resident) -> R,
    ) -> Option<R> {
        // SAFETY: rule 1 of seat/README.md: this function's contract, for the lane and for its cells.
        unsafe {
            self.plain(worker, |plain| {
                let cell = plain.residents.get(entry as usize)?.as_ref()?;
                Some(cell.resident(access))
            })
        }
    }

    /// Starts a message in an entry's place: handler call and first poll. The message is moved only there.
    #[inline]
    pub(crate) unsafe fn begin(
        &self,
        cx: &Cx<'_>,
        entry: u32,
        cell: CellRef,
        message: impl FnOnce() -> M,
    ) -> (Ran<ErrorOf<F>>, Back) {
        let place = &self.places[entry as usize].future;
        let mut stepped = Stepped::new(Written::No);
        let into = &mut stepped;
        let (contained, back) = cx.lent(move || {
            let future = (self.handler)(message());
            // SAFETY: rule 3 of seat/README.md: the place is empty and its mailbox is Running, or it is the place of
            // rule 7.
            place.with_mut(|place| unsafe { (*place).write(future) });
            into.written = Written::Yes;
            // SAFETY: rule 3: the future was just written.
            unsafe { self.poll(entry, cell, into) };
        });
        // SAFETY: rule 3, as above.
        (unsafe { self.ran(entry, contained, stepped) }, back)
    }

    /// Polls a message that was started before.
    #[inline]
    unsafe fn resume(&self, cx: &Cx<'_>, entry: u32, cell: CellRef) -> (Ran<ErrorOf<F>>, Back) {
        let mut stepped = Stepped::new(Written::Yes);
        let into = &mut stepped;
        // SAFETY: rule 3 of seat/README.md: the mailbox was Resumed, so its future is in its place.
        let (contained, back) = cx.lent(move || unsafe { self.poll(entry, cell, into) });
        // SAFETY: rule 3, as above.
        (unsafe { self.ran(entry, contained, stepped) }, back)
    }

    /// Polls the future of an entry; one that ended is dropped.
    #[inline]
    unsafe fn poll(&self, entry: u32, cell: CellRef, into: &mut Stepped<ErrorOf<F>>) {
        self.places[entry as usize].future.with_mut(|place| {
            // SAFETY: rule 3 of seat/README.md: the future is in its place, it is never moved out of it, and this
            // thread is the one that polls it.
            let future = unsafe { Pin::new_unchecked((*place).assume_init_mut()) };
            // SAFETY: rule 8 of seat/README.md: the lane keeps the cell as long as the engine lives.
            let (polled, woken) =
                unsafe { polling(cell, |waker| future.poll(&mut Context::from_waker(waker))) };
            into.woken = woken;
            if let Poll::Ready(output) = polled {
                into.written = Written::No;
                // SAFETY: rule 3: it ended, and nobody else drops it.
                unsafe { (*place).assume_init_drop() };
                // Last: if that drop panics, the output is dropped here as well.
                into.ended = Some(output.into_result());
            }
        });
    }

    #[inline]
    unsafe fn ran(
        &self,
        entry: u32,
        contained: Result<(), String>,
        stepped: Stepped<ErrorOf<F>>,
    ) -> Ran<ErrorOf<F>> {
        match contained {
            Ok(()) => match stepped.ended {
                Some(result) => Ran::Done(result),
                None => Ran::Pending { woken: stepped.woken },
            },
            Err(panic) => {
                if stepped.written == Written::Yes {
                    // Before the outcome is handed in, and whether or not the seat is still this thread's: nobody else
                    // touches a future that is not waiting.
                    // SAFETY: rule 3 of seat/README.md: the poll panicked, the future is still in its place.
                    self.future_dropped(contain(|| unsafe { self.drop_in_place(entry) }));
                }
                Ran::Panicked(panic)
            }
        }
    }

    /// Drops a future that did not end.
    ///
    /// # Safety
    /// Rule 3 of seat/README.md: it is in its place and is not being polled.
    pub(crate) unsafe fn drop_future(&self, cx: &Cx<'_>, entry: u32) {
        // SAFETY: rule 3 of seat/README.md: this function's contract.
        self.future_dropped(cx.user(|| unsafe { self.drop_in_place(entry) }));
    }

    /// # Safety
    /// Rule 3 of seat/README.md: the future is in its place and is not being polled.
    unsafe fn drop_in_place(&self, entry: u32) {
        // SAFETY: rule 3 of seat/README.md: this function's contract.
        self.places[entry as usize].future.with_mut(|place| unsafe { (*place).assume_init_drop() });
    }

    fn future_dropped(&self, dropped: Result<(), String>) {
        if let Err(panic) = dropped {
            tracing::error!(label = &*self.options.label, panic, "dropping a handler's future panicked");
        }
    }
}
