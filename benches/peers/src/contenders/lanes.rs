//! Hash partition: a key belongs to one of a fixed number of lanes, and a lane to one of two tokio tasks.
//!
//! Each task takes up to 32 messages at once from one channel. With one lane a task it runs them one after the other;
//! with 64 it polls a lane's message where it arrives and keeps the lane busy only if the handler waits. Either way a
//! slow key holds up every key of its lane. More lanes as tasks of their own were slower: every message then wakes one.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::contender::{Peer, WORKERS};
use crate::course::Course;
use crate::handling::Handling;
use crate::message::{Message, lane_of};

const TAKEN_AT_ONCE: usize = 32;
const LANES: usize = 64;

/// As many lanes as workers.
pub(crate) fn one(course: &'static Course) -> Lanes {
    Lanes { course, kind: Kind::One, senders: Vec::new() }
}

/// 64 times as many lanes as workers.
pub(crate) fn many(course: &'static Course) -> Lanes {
    Lanes { course, kind: Kind::Many, senders: Vec::new() }
}

#[derive(Clone, Copy)]
enum Kind {
    One,
    Many,
}

pub(crate) struct Lanes {
    course: &'static Course,
    kind: Kind,
    /// Filled with the first message, inside the runtime.
    senders: Vec<UnboundedSender<Message>>,
}

impl Peer for Lanes {
    fn hand_in(&mut self, message: Message) {
        if self.senders.is_empty() {
            self.start();
        }
        let worker = lane_of(message.key, WORKERS);
        assert!(self.senders[worker].send(message).is_ok(), "a worker lives as long as its sender");
    }
}

impl Lanes {
    #[cold]
    fn start(&mut self) {
        let course = self.course;
        for _ in 0..WORKERS {
            let (sender, receiver) = unbounded_channel();
            match self.kind {
                Kind::One => tokio::spawn(one_lane(course, receiver)),
                Kind::Many => tokio::spawn(Worker::new(course, receiver).run()),
            };
            self.senders.push(sender);
        }
    }
}

async fn one_lane(course: &'static Course, mut receiver: UnboundedReceiver<Message>) {
    let mut taken = Vec::with_capacity(TAKEN_AT_ONCE);
    while receiver.recv_many(&mut taken, TAKEN_AT_ONCE).await > 0 {
        for message in taken.drain(..) {
            course.handle(message).await;
        }
    }
}

/// A worker with its lanes.
struct Worker {
    course: &'static Course,
    receiver: UnboundedReceiver<Message>,
    taken: Vec<Message>,
    lanes: [Lane; LANES],
    /// The handlers that wait, each with its lane.
    suspended: FuturesUnordered<OfLane>,
}

#[derive(Default)]
struct Lane {
    busy: bool,
    waiting: VecDeque<Message>,
}

/// A handler that waits; it yields its lane.
struct OfLane {
    lane: usize,
    handling: Handling,
}

impl Future for OfLane {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let lane = self.lane;
        Pin::new(&mut self.handling).poll(cx).map(|()| lane)
    }
}

impl Worker {
    fn new(course: &'static Course, receiver: UnboundedReceiver<Message>) -> Self {
        let lanes = std::array::from_fn(|_| Lane::default());
        let taken = Vec::with_capacity(TAKEN_AT_ONCE);
        Self { course, receiver, taken, lanes, suspended: FuturesUnordered::new() }
    }

    async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut idle = true;
            while let Poll::Ready(Some(lane)) = self.suspended.poll_next_unpin(cx) {
                idle = false;
                self.go_on(lane, cx);
            }
            match self.receiver.poll_recv_many(cx, &mut self.taken, TAKEN_AT_ONCE) {
                Poll::Ready(0) => return Poll::Ready(()),
                Poll::Ready(_) => {
                    let mut taken = std::mem::take(&mut self.taken);
                    taken.drain(..).for_each(|message| self.arrive(message, cx));
                    self.taken = taken;
                }
                Poll::Pending if idle => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }

    fn arrive(&mut self, message: Message, cx: &mut Context<'_>) {
        let lane = lane_of(message.key, WORKERS * LANES) % LANES;
        if self.lanes[lane].busy {
            self.lanes[lane].waiting.push_back(message);
        } else {
            self.start(lane, message, cx);
        }
    }

    /// A lane's handler ended: the messages behind it, as far as they do not wait.
    fn go_on(&mut self, lane: usize, cx: &mut Context<'_>) {
        self.lanes[lane].busy = false;
        while !self.lanes[lane].busy {
            let Some(message) = self.lanes[lane].waiting.pop_front() else { return };
            self.start(lane, message, cx);
        }
    }

    fn start(&mut self, lane: usize, message: Message, cx: &mut Context<'_>) {
        let mut handling = self.course.handle(message);
        if Pin::new(&mut handling).poll(cx).is_pending() {
            self.lanes[lane].busy = true;
            self.suspended.push(OfLane { lane, handling });
        }
    }
}
