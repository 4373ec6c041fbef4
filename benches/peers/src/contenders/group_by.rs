//! The stream idiom: one task groups its source by key and drives one future for each busy group.
//!
//! Everything happens on the thread that polls the task, so nothing is handed over and nothing runs in parallel; a slow
//! key holds up its group.

use std::collections::VecDeque;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Runtime;

use crate::contender::Contender;
use crate::course::Course;
use crate::feed::Feed;
use crate::message::{Message, lane_of};

const GROUPS: usize = 64;

pub(crate) fn open(course: &'static Course) -> Box<dyn Contender> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime with one thread");
    Box::new(GroupBy { course, runtime })
}

struct GroupBy {
    course: &'static Course,
    runtime: Runtime,
}

impl Contender for GroupBy {
    fn feed(&mut self, feed: Feed) {
        let grouped = self.runtime.spawn(group(self.course, feed));
        self.runtime.block_on(grouped).expect("a handler does not panic");
    }
}

/// A group is busy while its future is among the running ones; its messages wait in its queue meanwhile.
async fn group(course: &'static Course, mut feed: Feed) {
    let mut waiting: Vec<VecDeque<Message>> = (0..GROUPS).map(|_| VecDeque::new()).collect();
    let mut busy = [false; GROUPS];
    let mut running = FuturesUnordered::new();
    let mut unfinished = 0;
    let mut more = true;
    let run = |group: usize, message: Message| async move {
        course.handle(message).await;
        group
    };
    loop {
        while more && unfinished < course.window.size() {
            let Some(message) = Iterator::next(&mut feed) else {
                more = false;
                break;
            };
            unfinished += 1;
            let group = lane_of(message.key, GROUPS);
            if busy[group] {
                waiting[group].push_back(message);
            } else {
                busy[group] = true;
                running.push(run(group, message));
            }
        }
        let Some(group) = running.next().await else { break };
        unfinished -= 1;
        match waiting[group].pop_front() {
            Some(message) => running.push(run(group, message)),
            None => busy[group] = false,
        }
    }
}
