//! Order by a lock: an async mutex for each key with a task for each message, or a map of queues behind one mutex with
//! a task for each live key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Mutex;
use tokio::task::coop::consume_budget;

use crate::contender::Peer;
use crate::contenders::live_keys::{Counted, LiveKeys};
use crate::course::Course;
use crate::message::Message;

/// A task for each message, which takes its key's mutex.
pub(crate) fn spawned(course: &'static Course) -> Spawned {
    Spawned { course, live: LiveKeys::new() }
}

/// A task for each live key, which takes its messages from the key's queue.
pub(crate) fn queued(course: &'static Course) -> Queued {
    Queued { course, live: LiveKeys::new() }
}

pub(crate) struct Spawned {
    course: &'static Course,
    live: LiveKeys<Counted<Arc<Mutex<()>>>>,
}

impl Peer for Spawned {
    fn hand_in(&mut self, message: Message) {
        let (course, live) = (self.course, self.live.clone());
        let key = message.key;
        let mut mutex = None;
        self.live.with(key, Arc::default, |value| mutex = Some(Arc::clone(value)));
        let Some(mutex) = mutex else { return };
        // The mutex is fair: who asks first has it first. Asking here, before the task runs, is what keeps the order.
        let mut lock = Box::pin(mutex.lock_owned());
        let at_once = match lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => None,
        };
        tokio::spawn(async move {
            let guard = match at_once {
                Some(guard) => guard,
                None => lock.await,
            };
            course.handle(message).await;
            drop(guard);
            live.handled(key);
        });
    }
}

pub(crate) struct Queued {
    course: &'static Course,
    live: LiveKeys<VecDeque<Message>>,
}

impl Peer for Queued {
    fn hand_in(&mut self, message: Message) {
        let key = message.key;
        let mut table = self.live.lock();
        if let Some(queue) = table.get_mut(&key) {
            queue.push_back(message);
            return;
        }
        table.insert(key, VecDeque::new());
        drop(table);
        tokio::spawn(until_empty(self.course, self.live.clone(), message));
    }
}

async fn until_empty(course: &'static Course, live: LiveKeys<VecDeque<Message>>, first: Message) {
    let key = first.key;
    let mut next = Some(first);
    while let Some(message) = next {
        course.handle(message).await;
        next = {
            let mut table = live.lock();
            let waiting = table.get_mut(&key).and_then(VecDeque::pop_front);
            if waiting.is_none() {
                table.remove(&key);
            }
            waiting
        };
        consume_budget().await;
    }
}
