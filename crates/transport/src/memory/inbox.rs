//! `Inbox`: the queue of one receiver, fed by the routes of all its aggregates.
//!
//! Many threads push, one stream takes. Invariant: queued + reserved + the batch the stream took last never exceed the limit;
//! a batch counts until its last message is handed out, so the bound holds for everything not yet handed out. Order is that
//! of the pushes. A push never waits: who finds no room registers here and is woken when a batch is given back.
//! Every waker is called outside of the lock. Deliberately knows no route and no delivery.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::error::ReceiveError;
use crate::exchange::Exchange;

/// Taken per look at the shared queue, so that senders get room back early and the lock is not taken per message.
const MAX_BATCH: usize = 64;

pub(super) struct Inbox<M> {
    limit: usize,
    state: Mutex<State<M>>,
}

struct State<M> {
    queue: VecDeque<Exchange<M>>,
    reserved: usize,
    batch: usize,
    phase: Phase,
    consumer: Option<Waker>,
    waiting: VecDeque<(u64, Waker)>,
    next_waiter: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// No more pushes; the stream ends after what is queued.
    Ending,
    /// The stream is gone; what would be pushed is dropped.
    Gone,
}

/// What a push leaves to do after the caller released its own locks.
#[must_use = "the stream sleeps until it is woken"]
pub(super) struct Pushed<M> {
    /// The stream, if it waits.
    pub(super) consumer: Option<Waker>,
    /// The exchange, if the stream is gone; dropping it may reject a ticket.
    pub(super) orphan: Option<Exchange<M>>,
}

/// A place in the inbox that was set aside: to be used or released.
#[must_use = "a place that is neither used nor released is lost"]
pub(super) struct Reservation<M>(Arc<Inbox<M>>);

impl<M> Inbox<M> {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let state = State {
            queue: VecDeque::new(),
            reserved: 0,
            batch: 0,
            phase: Phase::Open,
            consumer: None,
            waiting: VecDeque::new(),
            next_waiter: 0,
        };
        Arc::new(Self { limit, state: Mutex::new(state) })
    }

    /// Sets a place aside; `None` if there is no room. An inbox without a stream has room for everything.
    pub(super) fn reserve(self: &Arc<Self>) -> Option<Reservation<M>> {
        let mut state = self.lock();
        if state.room(self.limit) == 0 {
            return None;
        }
        state.reserved += 1;
        Some(Reservation(Arc::clone(self)))
    }

    /// Pushes in one step.
    ///
    /// # Errors
    /// The exchange, if there is no room.
    pub(super) fn push(&self, exchange: Exchange<M>) -> Result<Pushed<M>, Exchange<M>> {
        let mut state = self.lock();
        if state.room(self.limit) == 0 {
            return Err(exchange);
        }
        Ok(state.accept(exchange))
    }

    /// Registers a sender that found no room, or renews its waker. `None` if there is room after all.
    pub(super) fn wait_for_room(&self, waiter: Option<u64>, waker: &Waker) -> Option<u64> {
        let mut state = self.lock();
        if state.room(self.limit) > 0 {
            return None;
        }
        if let Some(id) = waiter {
            if let Some((_, old)) = state.waiting.iter_mut().find(|(queued, _)| *queued == id) {
                old.clone_from(waker);
                return Some(id);
            }
        }
        let id = state.next_waiter;
        state.next_waiter += 1;
        state.waiting.push_back((id, waker.clone()));
        Some(id)
    }

    /// A registered sender stops waiting. If it had been woken already, its turn passes to the next one.
    pub(super) fn stop_waiting(&self, waiter: u64) {
        let passed_on = {
            let mut state = self.lock();
            let before = state.waiting.len();
            state.waiting.retain(|(id, _)| *id != waiter);
            let was_woken = state.waiting.len() == before;
            if was_woken && state.room(self.limit) > 0 { state.waiting.pop_front() } else { None }
        };
        if let Some((_, waker)) = passed_on {
            waker.wake();
        }
    }

    /// Ends the stream after what is queued. Returns everyone to be woken.
    pub(super) fn end(&self) -> Vec<Waker> {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Ending;
        }
        let mut wakers: Vec<_> = mem::take(&mut state.waiting).into_iter().map(|(_, waker)| waker).collect();
        wakers.extend(state.consumer.take());
        wakers
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> State<M> {
    fn room(&self, limit: usize) -> usize {
        match self.phase {
            Phase::Open => limit.saturating_sub(self.queue.len() + self.reserved + self.batch),
            Phase::Ending | Phase::Gone => usize::MAX,
        }
    }

    fn accept(&mut self, exchange: Exchange<M>) -> Pushed<M> {
        match self.phase {
            Phase::Open => {
                self.queue.push_back(exchange);
                Pushed { consumer: self.consumer.take(), orphan: None }
            }
            Phase::Ending | Phase::Gone => Pushed { consumer: None, orphan: Some(exchange) },
        }
    }
}

impl<M> Reservation<M> {
    /// Uses the place.
    pub(super) fn push(self, exchange: Exchange<M>) -> Pushed<M> {
        let mut state = self.0.lock();
        state.reserved -= 1;
        state.accept(exchange)
    }

    /// Gives the place back. Returns a sender that waits for it, to be woken after the caller's own locks.
    pub(super) fn release(self) -> Option<Waker> {
        let mut state = self.0.lock();
        state.reserved -= 1;
        state.waiting.pop_front().map(|(_, waker)| waker)
    }
}

/// The receiving end of an inbox.
pub(super) struct InboxStream<M> {
    inbox: Arc<Inbox<M>>,
    batch: VecDeque<Exchange<M>>,
}

// Exchanges are moved out of the batch, never pinned in it.
impl<M> Unpin for InboxStream<M> {}

impl<M> InboxStream<M> {
    pub(super) fn new(inbox: Arc<Inbox<M>>) -> Self {
        Self { inbox, batch: VecDeque::new() }
    }

    /// Gives the last batch's places back, takes the next one and wakes who waits for the room.
    ///
    /// Returns whether more can come, in which case `waiting` is woken for it.
    fn refill(&mut self, waiting: Option<&Waker>) -> bool {
        let mut state = self.inbox.lock();
        let n_taken = if self.inbox.limit == usize::MAX {
            mem::swap(&mut state.queue, &mut self.batch);
            self.batch.len()
        } else {
            let n = state.queue.len().min(MAX_BATCH).min((self.inbox.limit / 4).max(1));
            self.batch.extend(state.queue.drain(..n));
            n
        };
        state.batch = n_taken;
        if n_taken == 0 {
            state.consumer = waiting.cloned();
        }
        let is_open = state.phase == Phase::Open;
        let n_woken = state.room(self.inbox.limit).min(state.waiting.len());
        let senders: VecDeque<_> =
            if n_woken == 0 { VecDeque::new() } else { state.waiting.drain(..n_woken).collect() };
        drop(state);
        senders.into_iter().for_each(|(_, waker)| waker.wake());
        is_open
    }
}

impl<M> Stream for InboxStream<M> {
    type Item = Result<Exchange<M>, ReceiveError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.batch.is_empty() {
            let is_open = self.refill(Some(cx.waker()));
            if self.batch.is_empty() {
                return if is_open { Poll::Pending } else { Poll::Ready(None) };
            }
        }
        let next = self.batch.pop_front();
        if self.batch.is_empty() {
            // The receiver may not come back before a sender got room: give it back now.
            self.refill(None);
        }
        Poll::Ready(next.map(Ok))
    }
}

impl<M> Drop for InboxStream<M> {
    fn drop(&mut self) {
        let (left, senders) = {
            let mut state = self.inbox.lock();
            state.phase = Phase::Gone;
            (mem::take(&mut state.queue), mem::take(&mut state.waiting))
        };
        senders.into_iter().for_each(|(_, waker)| waker.wake());
        // Outside of the lock: dropping an exchange rejects its ticket, which takes a route's lock.
        drop(left);
    }
}
