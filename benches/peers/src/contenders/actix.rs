//! actix: an actor for each key on one of two arbiters, stopped when it has handled everything, or kept.
//!
//! A handler that may wait has to be an `AtomicResponse`, since actix else runs the handlers of one actor interleaved.

use actix::{Actor, Addr, Arbiter, AtomicResponse, Context, Handler, System, SystemRunner, WrapFuture};

use crate::contender::{Contender, WORKERS, hand_in_all};
use crate::contenders::live_keys::{Counted, LiveKeys, Table};
use crate::course::Course;
use crate::feed::Feed;
use crate::message::{Message, lane_of};

type Live = LiveKeys<Counted<Addr<OfKey>>>;

/// An actor ends with its last address, which goes with its last message.
pub(crate) fn removed(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Actors { course, arbiters: Arbiters::new(), known: Known::Live(LiveKeys::new()) })
}

/// An actor stays.
pub(crate) fn kept(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Actors { course, arbiters: Arbiters::new(), known: Known::Kept(Table::default()) })
}

struct Actors {
    course: &'static Course,
    arbiters: Arbiters,
    known: Known,
}

enum Known {
    Live(Live),
    Kept(Table<Addr<OfKey>>),
}

impl Contender for Actors {
    fn feed(&mut self, feed: Feed) {
        let (course, arbiters) = (self.course, &self.arbiters);
        let known = &mut self.known;
        hand_in_all(course, feed, |message| {
            let key = message.key;
            match known {
                Known::Live(live) => {
                    let make = || arbiters.start(key, OfKey { course, live: Some(live.clone()) });
                    live.with(key, make, |actor| actor.do_send(Carried(message)));
                }
                Known::Kept(table) => {
                    let make = || arbiters.start(key, OfKey { course, live: None });
                    table.entry(key).or_insert_with(make).do_send(Carried(message));
                }
            }
        });
    }
}

/// The threads of actix, ended with the run.
struct Arbiters {
    arbiters: Vec<Arbiter>,
    /// Arbiters belong to a system, which stays on the thread that made it.
    _system: SystemRunner,
}

impl Arbiters {
    fn new() -> Self {
        let system = System::new();
        Self { arbiters: (0..WORKERS).map(|_| Arbiter::new()).collect(), _system: system }
    }

    fn start(&self, key: u32, actor: OfKey) -> Addr<OfKey> {
        let arbiter = &self.arbiters[lane_of(key, WORKERS)];
        OfKey::start_in_arbiter(&arbiter.handle(), |_| actor)
    }
}

impl Drop for Arbiters {
    fn drop(&mut self) {
        for arbiter in self.arbiters.drain(..) {
            arbiter.stop();
            arbiter.join().expect("a handler does not panic");
        }
    }
}

struct Carried(Message);

impl actix::Message for Carried {
    type Result = ();
}

struct OfKey {
    course: &'static Course,
    live: Option<Live>,
}

impl Actor for OfKey {
    type Context = Context<Self>;
}

impl Handler<Carried> for OfKey {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, Carried(message): Carried, _: &mut Context<Self>) -> Self::Result {
        let (course, live) = (self.course, self.live.clone());
        let handled = async move {
            let key = message.key;
            course.handle(message).await;
            if let Some(live) = live {
                live.handled(key);
            }
        };
        AtomicResponse::new(Box::pin(handled.into_actor(self)))
    }
}
