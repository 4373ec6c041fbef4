//! kameo: an actor for each live key, stopped when it has handled everything.

use std::convert::Infallible;

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::mailbox;
use kameo::message::Context;

use crate::contender::Peer;
use crate::contenders::live_keys::{Counted, LiveKeys};
use crate::course::Course;
use crate::message::Message;

type Live = LiveKeys<Counted<ActorRef<OfKey>>>;

pub(crate) fn open(course: &'static Course) -> Actors {
    Actors { course, live: LiveKeys::new() }
}

pub(crate) struct Actors {
    course: &'static Course,
    live: Live,
}

impl Peer for Actors {
    fn hand_in(&mut self, message: Message) {
        let make = || {
            let actor = OfKey { course: self.course, live: self.live.clone() };
            OfKey::spawn_with_mailbox(actor, mailbox::unbounded())
        };
        let key = message.key;
        self.live.with(key, make, |actor| {
            assert!(actor.tell(message).try_send().is_ok(), "an actor in the table takes messages");
        });
    }
}

pub(crate) struct OfKey {
    course: &'static Course,
    live: Live,
}

impl Actor for OfKey {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(args: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(args)
    }
}

impl kameo::message::Message<Message> for OfKey {
    type Reply = ();

    async fn handle(&mut self, message: Message, context: &mut Context<Self, ()>) {
        let key = message.key;
        self.course.handle(message).await;
        if self.live.handled(key).is_some() {
            context.stop();
        }
    }
}
