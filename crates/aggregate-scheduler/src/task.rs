//! `Task`: a future that one worker polls, and the word that says who may touch it.
//!
//! Every serial group is a task, and so is every source. The word decides who acts next; the future's lock is never
//! waited for. SCHEDULED: the task is in its worker's queue, or will be put there by whoever polls it. RUNNING: the worker
//! polls it. ENDED is final: it is never polled again.
//!
//! | event | from | to | duty of the caller |
//! |---|---|---|---|
//! | wake | nothing set | SCHEDULED | `Push` it to its worker |
//! | wake | RUNNING | + SCHEDULED | `Nothing`, the worker pushes it |
//! | wake | SCHEDULED or ENDED | same | `Nothing` |
//! | begin | SCHEDULED | RUNNING | `Poll` it |
//! | begin | ENDED | ENDED | `Nothing`, it is a leftover of the queue |
//! | pend | RUNNING | nothing set | `Nothing` |
//! | pend | RUNNING + SCHEDULED | SCHEDULED | `Push` it behind the others |
//! | pend | RUNNING + ENDED | ENDED | `Drop` its future |
//! | finish | RUNNING | ENDED | `Drop` its future |
//! | cancel | RUNNING | + ENDED | `Nothing`, the worker drops it after its step |
//! | cancel | not RUNNING | ENDED | `Drop` its future, here and now |
//! | cancel | ENDED | same | `Nothing` |

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use crate::contain::{contain, drop_contained};
use crate::sync::{Arc, AtomicU8, Mutex, Ordering, lock};
use crate::worker::Worker;

const SCHEDULED: u8 = 1;
const RUNNING: u8 = 2;
const ENDED: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Wake,
    Begin,
    Pend,
    Finish,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the one who changed the word has to act on it"]
enum Duty {
    Nothing,
    Push,
    Poll,
    Drop,
}

/// The table of the header.
fn next(state: u8, event: Event) -> (u8, Duty) {
    let (scheduled, running, ended) = (state & SCHEDULED != 0, state & RUNNING != 0, state & ENDED != 0);
    match event {
        Event::Wake if ended || scheduled => (state, Duty::Nothing),
        Event::Wake if running => (state | SCHEDULED, Duty::Nothing),
        Event::Wake => (SCHEDULED, Duty::Push),
        Event::Begin if ended => (ENDED, Duty::Nothing),
        Event::Begin => (RUNNING, Duty::Poll),
        Event::Pend if ended => (ENDED, Duty::Drop),
        Event::Pend if scheduled => (SCHEDULED, Duty::Push),
        Event::Pend => (0, Duty::Nothing),
        Event::Finish => (ENDED, Duty::Drop),
        Event::Cancel if ended => (state, Duty::Nothing),
        Event::Cancel if running => (state | ENDED, Duty::Nothing),
        Event::Cancel => (ENDED, Duty::Drop),
    }
}

/// A future with its worker.
pub(crate) struct Task {
    state: AtomicU8,
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    worker: Arc<Worker>,
}

impl Task {
    /// A task that nobody has woken yet.
    pub(crate) fn new(worker: Arc<Worker>, future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(0), future: Mutex::new(Some(Box::pin(future))), worker })
    }

    /// Has it polled once more.
    pub(crate) fn schedule(self: &Arc<Self>) {
        if self.change(Event::Wake) == Duty::Push {
            self.worker.push(Arc::clone(self));
        }
    }

    /// One poll, on its worker's thread.
    pub(crate) fn run(self: Arc<Self>) {
        if self.change(Event::Begin) != Duty::Poll {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        let polled = match lock(&self.future).as_mut() {
            Some(future) => contain(|| future.as_mut().poll(&mut Context::from_waker(&waker))),
            None => Ok(Poll::Ready(())),
        };
        let event = if matches!(polled, Ok(Poll::Pending)) { Event::Pend } else { Event::Finish };
        match self.change(event) {
            Duty::Drop => self.drop_future(),
            Duty::Push => Arc::clone(&self.worker).push(self),
            Duty::Nothing | Duty::Poll => {}
        }
        if let Err(panic) = polled {
            // What the task was part of has ended itself while it was unwound.
            tracing::error!(panic, "a task ended by a panic");
        }
    }

    /// Has its future dropped: on this thread, or by the worker after the step that it is in.
    pub(crate) fn cancel(&self) {
        if self.change(Event::Cancel) == Duty::Drop {
            self.drop_future();
        }
    }

    fn drop_future(&self) {
        let future = lock(&self.future).take();
        drop_contained("a handler or a source", future);
    }

    fn change(&self, event: Event) -> Duty {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let (to, duty) = next(state, event);
            // AcqRel: whoever polls, drops or looks again because of this change sees all that was done before it. Also
            // if nothing changes: a wake that finds SCHEDULED publishes to the poll that follows.
            match self.state.compare_exchange_weak(state, to, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return duty,
                Err(now) => state = now,
            }
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.schedule();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.schedule();
    }
}

#[cfg(test)]
mod tests {
    use super::{Duty, ENDED, Event, RUNNING, SCHEDULED, next};

    #[test]
    fn the_word_follows_the_table() {
        let table = [
            (Event::Wake, 0, SCHEDULED, Duty::Push),
            (Event::Wake, RUNNING, RUNNING | SCHEDULED, Duty::Nothing),
            (Event::Wake, SCHEDULED, SCHEDULED, Duty::Nothing),
            (Event::Wake, ENDED, ENDED, Duty::Nothing),
            (Event::Begin, SCHEDULED, RUNNING, Duty::Poll),
            (Event::Begin, ENDED, ENDED, Duty::Nothing),
            (Event::Pend, RUNNING, 0, Duty::Nothing),
            (Event::Pend, RUNNING | SCHEDULED, SCHEDULED, Duty::Push),
            (Event::Pend, RUNNING | ENDED, ENDED, Duty::Drop),
            (Event::Finish, RUNNING, ENDED, Duty::Drop),
            (Event::Cancel, RUNNING, RUNNING | ENDED, Duty::Nothing),
            (Event::Cancel, 0, ENDED, Duty::Drop),
            (Event::Cancel, SCHEDULED, ENDED, Duty::Drop),
            (Event::Cancel, ENDED, ENDED, Duty::Nothing),
        ];
        for (event, from, to, duty) in table {
            assert_eq!(next(from, event), (to, duty), "{event:?} in {from:03b}");
        }
    }

    #[test]
    fn every_path_polls_in_one_place_and_drops_once() {
        // All interleavings of wakes, one cancel and one worker: (word, queued, polling, dropped, cancelled).
        let mut open = vec![(0_u8, 0_u8, false, 0_u8, false)];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(now) = open.pop() {
            if !seen.insert(now) {
                continue;
            }
            let (word, queued, polling, dropped, cancelled) = now;
            assert!(queued <= 1, "queued twice: {now:?}");
            assert!(dropped <= 1, "dropped twice: {now:?}");
            assert!(!(polling && dropped > 0), "dropped under the poll: {now:?}");
            assert!(!cancelled || dropped == 1 || polling, "a cancelled future is left behind: {now:?}");
            assert!(
                word & SCHEDULED == 0 || word & ENDED != 0 || queued == 1 || polling,
                "a wake is lost: {now:?}"
            );
            let mut go = |event, (queued, polling, cancelled)| {
                let (word, duty) = next(word, event);
                let queued = queued + u8::from(duty == Duty::Push);
                let dropped = dropped + u8::from(duty == Duty::Drop);
                open.push((word, queued, polling || duty == Duty::Poll, dropped, cancelled));
            };
            go(Event::Wake, (queued, polling, cancelled));
            go(Event::Cancel, (queued, polling, true));
            if polling {
                go(Event::Pend, (queued, false, cancelled));
                go(Event::Finish, (queued, false, cancelled));
            } else if queued > 0 {
                go(Event::Begin, (queued - 1, polling, cancelled));
            }
        }
        assert_eq!(seen.len(), 9, "the walk is of the whole table: {seen:?}");
    }
}
