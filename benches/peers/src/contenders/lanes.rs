//! Hash partition: a key belongs to one of a fixed number of lanes, each a tokio task with a channel.
//!
//! A lane takes up to 32 messages at once and runs them one after the other, so that one slow key holds up every key of
//! its lane.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::contender::{Peer, WORKERS};
use crate::course::Course;
use crate::message::{Message, lane_of};

const TAKEN_AT_ONCE: usize = 32;

/// As many lanes as workers.
pub(crate) fn one(course: &'static Course) -> Lanes {
    Lanes { course, count: WORKERS, senders: Vec::new() }
}

/// 64 times as many lanes as workers.
pub(crate) fn many(course: &'static Course) -> Lanes {
    Lanes { course, count: 64 * WORKERS, senders: Vec::new() }
}

pub(crate) struct Lanes {
    course: &'static Course,
    count: usize,
    /// Filled with the first message, inside the runtime.
    senders: Vec<UnboundedSender<Message>>,
}

impl Peer for Lanes {
    fn hand_in(&mut self, message: Message) {
        if self.senders.is_empty() {
            let course = self.course;
            self.senders.extend((0..self.count).map(|_| {
                let (sender, receiver) = unbounded_channel();
                tokio::spawn(lane(course, receiver));
                sender
            }));
        }
        let lane = lane_of(message.key, self.count);
        assert!(self.senders[lane].send(message).is_ok(), "a lane lives as long as its sender");
    }
}

async fn lane(course: &'static Course, mut receiver: UnboundedReceiver<Message>) {
    let mut taken = Vec::with_capacity(TAKEN_AT_ONCE);
    while receiver.recv_many(&mut taken, TAKEN_AT_ONCE).await > 0 {
        for message in taken.drain(..) {
            course.handle(message).await;
        }
    }
}
