//! The timer of the harness: finer than the millisecond of tokio's, so that what workload T measures is the contender.
//!
//! All its waits are of one length, so they end in the order in which they began, and a queue is all that it keeps: no
//! wheel, no heap, and no allocation once the queue is as long as the window. One thread sleeps until the first of them
//! is due and then wakes everybody whose time has come. Its slack is a nanosecond in place of the 50 us that Linux gives
//! a thread, and it sets out to wake 20 us before the time, since it oversleeps by more than that; where it does not, it
//! polls the clock for the rest, and for no longer, since the processor belongs to who is measured.
//!
//! Invariant: a wait whose ticket is below `ended` is over, and whoever is woken finds it so.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::time::Clock;

/// How much earlier than the time the thread means to wake, in nanoseconds.
const EARLIER: u64 = 20_000;

/// A timer whose waits are all of the same length.
#[derive(Debug)]
pub struct Timer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// One wait, by its number.
#[derive(Debug)]
#[must_use = "a wait is over when its ticket says so"]
pub struct Ticket(u64);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    nanos: u64,
    /// How many waits are over; written under the lock.
    ended: AtomicU64,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    /// Those that are not over, in the order of their tickets and of their deadlines.
    waits: VecDeque<Wait>,
    /// The thread sleeps until somebody wakes it.
    asleep: bool,
    closed: bool,
}

#[derive(Debug)]
struct Wait {
    until: u64,
    waker: Waker,
}

/// What the thread does next.
enum Next {
    LookAgain,
    Sleep,
    SleepUntil(u64),
    End,
}

impl Timer {
    /// Starts a timer whose waits take so long, with room for so many of them at once.
    #[must_use]
    pub fn start(clock: Clock, length: Duration, room: usize) -> Self {
        let waits = VecDeque::with_capacity(room);
        let shared = Arc::new(Shared {
            clock,
            nanos: length.as_nanos() as u64,
            ended: AtomicU64::new(0),
            queue: Mutex::new(Queue { waits, asleep: false, closed: false }),
        });
        let turned = Arc::clone(&shared);
        let thread = std::thread::spawn(move || turned.turn(Vec::with_capacity(room)));
        Self { shared, thread: Some(thread) }
    }

    /// Begins a wait, whose end wakes the task.
    pub fn wait(&self, cx: &Context<'_>) -> Ticket {
        let waker = cx.waker().clone();
        let mut queue = self.shared.queue();
        // The time is asked under the lock: that keeps the deadlines in order.
        let until = self.shared.clock.nanos() + self.shared.nanos;
        let ticket = Ticket(self.shared.ended.load(Ordering::Relaxed) + queue.waits.len() as u64);
        queue.waits.push_back(Wait { until, waker });
        let asleep = std::mem::take(&mut queue.asleep);
        drop(queue);
        if asleep {
            self.unpark();
        }
        ticket
    }

    /// Whether the wait is over; if not, its end wakes this task.
    pub fn poll(&self, ticket: &Ticket, cx: &Context<'_>) -> Poll<()> {
        // Acquire pairs with the store in `take`: what happened before the end is seen after it.
        if ticket.0 < self.shared.ended.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let mut queue = self.shared.queue();
        match ticket.0.checked_sub(self.shared.ended.load(Ordering::Relaxed)) {
            None => Poll::Ready(()),
            Some(place) => {
                queue.waits[place as usize].waker.clone_from(cx.waker());
                Poll::Pending
            }
        }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Timer {
    /// Ends the thread; nobody who still waits is woken.
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.unpark();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a waker does not panic");
        }
    }
}

impl Shared {
    fn turn(&self, mut due: Vec<Waker>) {
        // Where it is refused the timer oversleeps as every thread does, which the rates then show.
        let _ = nix::sys::prctl::set_timerslack(1);
        loop {
            let next = self.take(&mut due);
            due.drain(..).for_each(Waker::wake);
            match next {
                Next::LookAgain => {}
                Next::Sleep => std::thread::park(),
                Next::SleepUntil(time) => self.sleep_until(time),
                Next::End => return,
            }
        }
    }

    fn sleep_until(&self, time: u64) {
        let left = time.saturating_sub(self.clock.nanos());
        if left > EARLIER {
            std::thread::park_timeout(Duration::from_nanos(left - EARLIER));
        }
        while self.clock.nanos() < time {
            std::hint::spin_loop();
        }
    }

    /// Takes everybody whose time has come out of the queue.
    fn take(&self, due: &mut Vec<Waker>) -> Next {
        let mut queue = self.queue();
        if queue.closed {
            return Next::End;
        }
        let now = self.clock.nanos();
        while let Some(wait) = queue.waits.pop_front_if(|wait| wait.until <= now) {
            due.push(wait.waker);
        }
        if !due.is_empty() {
            // Release pairs with the load in `poll`. To wake takes time, in which more may have become due.
            self.ended.fetch_add(due.len() as u64, Ordering::Release);
            return Next::LookAgain;
        }
        match queue.waits.front() {
            Some(first) => Next::SleepUntil(first.until),
            None => {
                queue.asleep = true;
                Next::Sleep
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc::channel;

    use futures_executor::block_on;

    use super::*;

    const LENGTH: Duration = Duration::from_millis(1);

    async fn wait(timer: &Timer) {
        let mut ticket = None;
        poll_fn(|cx| match &ticket {
            None => {
                ticket = Some(timer.wait(cx));
                Poll::Pending
            }
            Some(ticket) => timer.poll(ticket, cx),
        })
        .await;
    }

    #[test]
    fn no_wait_is_shorter_than_its_length() {
        let clock = Clock::new();
        let timer = Timer::start(clock, LENGTH, 8);
        let lengths = || {
            (0..50).map(|_| {
                let began_at = clock.nanos();
                block_on(wait(&timer));
                clock.nanos() - began_at
            })
        };
        std::thread::scope(|scope| {
            let threads = [0; 3].map(|_| scope.spawn(|| lengths().min()));
            for thread in threads {
                let shortest = thread.join().expect("no wait panics").expect("there were some");
                assert!(shortest >= LENGTH.as_nanos() as u64, "{shortest}");
            }
        });
    }

    #[test]
    fn waits_that_begin_together_all_end_also_beyond_the_room() {
        let timer = Timer::start(Clock::new(), LENGTH, 8);
        block_on(futures_util::future::join_all((0..1_000).map(|_| wait(&timer))));
        assert!(timer.shared.queue().waits.is_empty());
    }

    #[test]
    fn the_task_that_asked_last_is_woken() {
        let (ended, told) = channel();
        std::thread::spawn(move || {
            let timer = Timer::start(Clock::new(), Duration::from_millis(100), 8);
            let ticket = timer.wait(&Context::from_waker(Waker::noop()));
            block_on(poll_fn(|cx| timer.poll(&ticket, cx)));
            ended.send(()).expect("the test waits");
        });
        told.recv_timeout(Duration::from_secs(60)).expect("the waker of the last poll is woken");
    }
}
