//! ractor: an actor for each live key, stopped when it has handled everything.

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::contender::Peer;
use crate::contenders::live_keys::{Counted, LiveKeys};
use crate::course::Course;
use crate::message::Message;

type Live = LiveKeys<Counted<ActorRef<Message>>>;

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
            ractor::ActorRuntime::spawn_instant(None, actor, ()).expect("an actor without a name can start").0
        };
        let key = message.key;
        self.live.with(key, make, |actor| {
            assert!(actor.cast(message).is_ok(), "an actor in the table takes messages");
        });
    }
}

struct OfKey {
    course: &'static Course,
    live: Live,
}

impl Actor for OfKey {
    type Msg = Message;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let key = message.key;
        self.course.handle(message).await;
        if let Some(actor) = self.live.handled(key) {
            actor.stop(None);
        }
        Ok(())
    }
}
