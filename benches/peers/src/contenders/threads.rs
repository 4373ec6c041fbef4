//! Hash partition on plain threads: each takes from a crossbeam channel of its own.

use std::thread::JoinHandle;

use crossbeam_channel::{Sender, unbounded};

use crate::contender::{Contender, WORKERS, hand_in_all};
use crate::course::Course;
use crate::feed::Feed;
use crate::message::{Message, lane_of};

pub(crate) fn open(course: &'static Course) -> Box<dyn Contender> {
    let (senders, threads) = (0..WORKERS)
        .map(|_| {
            let (sender, receiver) = unbounded::<Message>();
            let thread = std::thread::spawn(move || {
                receiver.iter().for_each(|message| course.handle_blocking(&message));
            });
            (sender, thread)
        })
        .unzip();
    Box::new(Threads { course, senders, threads })
}

struct Threads {
    course: &'static Course,
    senders: Vec<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
}

impl Contender for Threads {
    fn feed(&mut self, feed: Feed) {
        hand_in_all(self.course, feed, |message| {
            let lane = lane_of(message.key, WORKERS);
            self.senders[lane].send(message).expect("a thread lives as long as its sender");
        });
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.senders.clear();
        for thread in self.threads.drain(..) {
            thread.join().expect("a handler does not panic");
        }
    }
}
