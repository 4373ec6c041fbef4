//! No peers, but limits: what the machine charges for less than the promise.
//!
//! One queue that both threads take from (no order), a ring for each thread (no key of its own can wait), and the
//! handler called where the message is made (no hand-over at all).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{JoinHandle, Thread};

use crossbeam_channel::{Sender, unbounded};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::contender::{Contender, WORKERS, hand_in_all};
use crate::course::{Course, WINDOW};
use crate::feed::Feed;
use crate::message::{Message, lane_of};
use crate::time::Clock;

const TAKEN_AT_ONCE: usize = 32;
/// How long a thread of a ring polls before it parks, in nanoseconds.
const SPIN: u64 = 20_000;

/// One crossbeam channel, taken from by both threads.
pub(crate) fn shared_queue(course: &'static Course) -> Box<dyn Contender> {
    let (sender, receiver) = unbounded::<Message>();
    let threads = (0..WORKERS)
        .map(|_| {
            let receiver = receiver.clone();
            std::thread::spawn(move || receiver.iter().for_each(|message| course.handle_blocking(&message)))
        })
        .collect();
    Box::new(SharedQueue { course, sender: Some(sender), threads })
}

struct SharedQueue {
    course: &'static Course,
    sender: Option<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
}

impl Contender for SharedQueue {
    fn feed(&mut self, feed: Feed) {
        let Some(sender) = &self.sender else { return };
        hand_in_all(self.course, feed, |message| sender.send(message).expect("the threads take messages"));
    }
}

impl Drop for SharedQueue {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            thread.join().expect("a handler does not panic");
        }
    }
}

/// A ring for each thread, by the hash of the key.
pub(crate) fn rings(course: &'static Course) -> Box<dyn Contender> {
    let lanes = (0..WORKERS).map(|_| Lane::new(course)).collect();
    Box::new(Rings { course, lanes })
}

struct Rings {
    course: &'static Course,
    lanes: Vec<Lane>,
}

struct Lane {
    ring: Option<Producer<Message>>,
    asleep: Arc<AtomicBool>,
    handle: Thread,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    fn new(course: &'static Course) -> Self {
        // What is taken frees its places only when all of it is handled.
        let (ring, taken) = RingBuffer::new(WINDOW as usize + TAKEN_AT_ONCE);
        let asleep = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&asleep);
        let thread = std::thread::spawn(move || take(course, taken, &seen));
        Self { ring: Some(ring), asleep, handle: thread.thread().clone(), thread: Some(thread) }
    }

    fn wake(&self) {
        // The fence pairs with the one in `take`: either the sleeper sees the message, or it is seen asleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::SeqCst) {
            self.handle.unpark();
        }
    }
}

fn take(course: &'static Course, mut ring: Consumer<Message>, asleep: &AtomicBool) {
    let clock = Clock::new();
    let mut idle_since = None;
    loop {
        let ready = ring.slots().min(TAKEN_AT_ONCE);
        if ready > 0 {
            idle_since = None;
            let chunk = ring.read_chunk(ready).expect("that many are ready");
            chunk.into_iter().for_each(|message| course.handle_blocking(&message));
        } else if ring.is_abandoned() {
            return;
        } else if idle_for(clock, &mut idle_since) < SPIN {
            std::hint::spin_loop();
        } else {
            asleep.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if ring.is_empty() && !ring.is_abandoned() {
                std::thread::park();
            }
            asleep.store(false, Ordering::SeqCst);
            idle_since = None;
        }
    }
}

/// How long the thread has been idle, which begins with the first call.
fn idle_for(clock: Clock, since: &mut Option<u64>) -> u64 {
    let now = clock.nanos();
    now - *since.get_or_insert(now)
}

impl Contender for Rings {
    fn feed(&mut self, feed: Feed) {
        let lanes = &mut self.lanes;
        hand_in_all(self.course, feed, |message| {
            let lane = &mut lanes[lane_of(message.key, WORKERS)];
            let ring = lane.ring.as_mut().expect("the ring is open until the run ends");
            assert!(ring.push(message).is_ok(), "a ring has room for the window");
            lane.wake();
        });
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        for lane in &mut self.lanes {
            lane.ring = None;
            lane.handle.unpark();
            if let Some(thread) = lane.thread.take() {
                thread.join().expect("a handler does not panic");
            }
        }
    }
}

/// No hand-over: each thread makes and handles the messages of its own keys.
pub(crate) fn alone(_: &'static Course) -> Box<dyn Contender> {
    Box::new(Alone)
}

struct Alone;

impl Contender for Alone {
    fn feed(&mut self, feed: Feed) {
        let course = feed.course();
        std::thread::scope(|scope| {
            for part in feed.split(WORKERS) {
                scope.spawn(move || part.for_each(|message| course.handle_blocking(&message)));
            }
        });
    }
}
