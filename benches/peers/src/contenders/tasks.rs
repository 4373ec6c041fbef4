//! A tokio task with a channel for each key: removed when it runs dry, or kept for ever.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::coop::consume_budget;

use crate::contender::Peer;
use crate::contenders::live_keys::{LiveKeys, Table};
use crate::course::Course;
use crate::message::Message;

/// A task ends when its channel is empty; it looks once more under the lock that its producer sends under.
pub(crate) fn removed(course: &'static Course) -> Removed {
    Removed { course, live: LiveKeys::new() }
}

/// A task stays; only the producer knows the table, so there is no lock.
pub(crate) fn kept(course: &'static Course) -> Kept {
    Kept { course, senders: Table::default() }
}

pub(crate) struct Removed {
    course: &'static Course,
    live: LiveKeys<UnboundedSender<Message>>,
}

impl Peer for Removed {
    fn hand_in(&mut self, message: Message) {
        let key = message.key;
        let (course, live) = (self.course, &self.live);
        let mut table = live.lock();
        let sender = table.entry(key).or_insert_with(|| {
            let (sender, receiver) = unbounded_channel();
            tokio::spawn(until_empty(course, live.clone(), key, receiver));
            sender
        });
        assert!(sender.send(message).is_ok(), "a task lives as long as its sender is in the table");
    }
}

async fn until_empty(
    course: &'static Course,
    live: LiveKeys<UnboundedSender<Message>>,
    key: u32,
    mut receiver: UnboundedReceiver<Message>,
) {
    loop {
        while let Ok(message) = receiver.try_recv() {
            course.handle(message).await;
            consume_budget().await;
        }
        let last = {
            let mut table = live.lock();
            let last = receiver.try_recv();
            if last.is_err() {
                table.remove(&key);
            }
            last
        };
        match last {
            Ok(message) => course.handle(message).await,
            Err(_) => return,
        }
    }
}

pub(crate) struct Kept {
    course: &'static Course,
    senders: Table<UnboundedSender<Message>>,
}

impl Peer for Kept {
    fn hand_in(&mut self, message: Message) {
        let course = self.course;
        let sender = self.senders.entry(message.key).or_insert_with(|| {
            let (sender, mut receiver) = unbounded_channel();
            tokio::spawn(async move {
                while let Some(message) = receiver.recv().await {
                    course.handle(message).await;
                }
            });
            sender
        });
        assert!(sender.send(message).is_ok(), "a task lives as long as its sender");
    }
}
