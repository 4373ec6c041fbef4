//! `Pump`: brings the messages of a source into their groups, in the order in which they come.
//!
//! Owns the source and the table of groups. Invariants: the source is polled only while the window has room, on the
//! source thread of the first scheduler, and never again after its end; a message is accepted before its group is
//! asked for, so it is accounted for also if that panics. It handles nothing itself.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use keyed_executor::{Cause, Outcome};

use crate::contain::{contain, drop_contained};
use crate::dispatch::Route;
use crate::group::Group;
use crate::hash::Groups;
use crate::run::{Phase, Run};
use crate::scheduler::Scheduler;
use crate::sync::{Arc, thread};

/// Messages taken in one poll before other sources of the thread get their turn.
const TURN: u32 = 256;

/// Fields are dropped in this order: the source first, its place in the run last.
pub(crate) struct Pump<S, R, H, M: Send + 'static, E: Send + 'static> {
    source: Option<Pin<Box<S>>>,
    route: R,
    handler: Arc<H>,
    schedulers: Vec<Arc<Scheduler>>,
    groups: Groups,
    used: HashMap<(usize, u32), Arc<Group<M>>>,
    place: Place<M, E>,
}

/// The source's place in its run, given back when it is dropped.
struct Place<M: Send + 'static, E: Send + 'static>(Arc<Run<M, E>>);

impl<M: Send + 'static, E: Send + 'static> Drop for Place<M, E> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Only a logger that panics comes here; what it left behind must not look like the end of the source.
            let message = "the source's task was unwound".to_owned();
            self.0.abort(Cause::SourcePanicked { message });
        }
        self.0.source_ended();
    }
}

/// What a source has come to.
enum Step<M, E> {
    Message(M),
    Ended(Option<Cause<E>>),
}

impl<S, R, H, F, M, E> Pump<S, R, H, M, E>
where
    S: Stream<Item = Result<M, E>> + Send + 'static,
    R: Fn(&M) -> Route<'_> + Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome<Error = E>,
    M: Send + 'static,
    E: Send + 'static,
{
    pub(crate) fn new(
        run: &Arc<Run<M, E>>,
        schedulers: Vec<Arc<Scheduler>>,
        groups: Groups,
        source: S,
        route: R,
        handler: H,
    ) -> Self {
        Self {
            source: Some(Box::pin(source)),
            route,
            handler: Arc::new(handler),
            schedulers,
            groups,
            used: HashMap::new(),
            place: Place(Arc::clone(run)),
        }
    }

    /// The body of the source's task.
    pub(crate) async fn drive(mut self) {
        let mut turn = 0;
        let cause = loop {
            let step = poll_fn(|cx| {
                if turn == TURN {
                    turn = 0;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                self.poll(cx)
            });
            match step.await {
                Step::Message(message) => {
                    turn += 1;
                    self.accept(message);
                }
                Step::Ended(cause) => break cause,
            }
        };
        drop_contained("a source", self.source.take());
        match cause {
            None => {}
            // What was accepted is finished first.
            Some(Cause::Closed) => self.run().blame(Cause::Closed),
            Some(cause) => self.run().abort(cause),
        }
    }

    fn run(&self) -> &Arc<Run<M, E>> {
        &self.place.0
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step<M, E>> {
        match self.run().phase() {
            Phase::Open => {}
            Phase::Quiescing => return Poll::Ready(Step::Ended(Some(Cause::Closed))),
            Phase::Cancelled => return Poll::Ready(Step::Ended(None)),
        }
        if !self.run().has_room() {
            return Poll::Pending;
        }
        let Some(source) = &mut self.source else { return Poll::Ready(Step::Ended(None)) };
        match contain(|| source.as_mut().poll_next(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Some(Ok(message)))) => Poll::Ready(Step::Message(message)),
            Ok(Poll::Ready(Some(Err(error)))) => Poll::Ready(Step::Ended(Some(Cause::Source(error)))),
            Ok(Poll::Ready(None)) => Poll::Ready(Step::Ended(None)),
            Err(message) => Poll::Ready(Step::Ended(Some(Cause::SourcePanicked { message }))),
        }
    }

    fn accept(&mut self, message: M) {
        self.run().accept();
        let place = contain(|| {
            let route = (self.route)(&message);
            let known = route.scheduler < self.schedulers.len();
            assert!(known, "there is no scheduler {}", route.scheduler);
            (route.scheduler, self.groups.of(route.id))
        });
        let (scheduler, number) = match place {
            Ok(place) => place,
            Err(panic) => {
                self.run().abort(Cause::KeyPanicked { message: panic });
                return self.run().discard(message);
            }
        };
        let (run, handler, schedulers) = (&self.place.0, &self.handler, &self.schedulers);
        let group = self.used.entry((scheduler, number)).or_insert_with(|| {
            let group = Group::new(number, schedulers[scheduler].next_worker(), run, handler);
            run.add(&group);
            group
        });
        if let Err(message) = group.push(message) {
            self.run().discard(message);
        }
    }
}
