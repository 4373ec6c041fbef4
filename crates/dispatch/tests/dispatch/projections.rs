//! Event streams handed to projections (FM-3 to FM-6, ED-2, ED-5, ED-9, PJ-1, T90).

use std::sync::Arc;

use wow_dispatch::{Dispatcher, Event, Projection, ProjectionKind, UnrecordedFailure};
use wow_message::{EventStream, Header, Version, keys};
use wow_runtime::{Component, Runtime};
use wow_testkit::{Feed, Latch, Level, eventually, finish};
use wow_transport::{Exchange, ReceiveError};

use crate::bank::{Account, Moved, account_id};
use crate::support::{ReceiverScript, ScriptedBus, Steps, execution, noted, runtime_of};

/// A projection dispatcher that is fed by the test.
struct Desk {
    steps: Steps,
    dispatcher: Arc<Dispatcher<ProjectionKind>>,
    feed: Feed<Result<Exchange<EventStream>, ReceiveError>>,
    runtime: Runtime,
}

impl Desk {
    fn new(steps: &Steps, kind: ProjectionKind) -> Self {
        let (script, feed) = ReceiverScript::<EventStream>::fed();
        let kind = kind.on_error({
            let steps = steps.clone();
            Arc::new(move |function, _, failure| steps.note(format!("{function} failed: {failure}")))
        });
        let dispatcher = Dispatcher::new("bank.ProjectionDispatcher", kind, ScriptedBus::of([script]));
        let dispatcher = Arc::new(dispatcher.execution(execution()));
        let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
        finish(runtime.start()).expect("starts");
        Self { steps: steps.clone(), dispatcher, feed, runtime }
    }

    fn push(&self, stream: EventStream) {
        self.feed.push(Ok(noted(stream, &self.steps)));
    }

    /// Hands a stream in and waits for its end; the ticket aside, these are its steps.
    fn handle(&self, stream: EventStream) -> Vec<String> {
        let before = self.steps.taken().len();
        let ended = || {
            let work = self.dispatcher.work().expect("a ledger");
            work.handled + work.failed
        };
        let n_ended = ended();
        self.push(stream);
        eventually("the stream ends", || ended() == n_ended + 1);
        self.steps.taken().split_off(before).into_iter().filter(|step| step != "confirmed").collect()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let report = finish(self.runtime.stop());
            assert!(report.is_clean(), "a failed function never fails the dispatcher: {report}");
        }
    }
}

fn stream(amounts: &[i64]) -> EventStream {
    let mut stream = EventStream::builder(account_id("1"), Version::INITIAL);
    for amount in amounts {
        stream = stream.event("moved", Moved(*amount));
    }
    stream.build().expect("an event")
}

fn noting(steps: &Steps, name: &'static str) -> impl Fn(&Event<Account>) + Send + Sync + 'static {
    let steps = steps.clone();
    move |event| steps.note(format!("{name} {}", event.0))
}

#[test]
fn the_events_of_a_stream_are_handled_in_order_and_then_acknowledged() {
    let steps = Steps::default();
    let desk = Desk::new(
        &steps,
        ProjectionKind::new().projection(Projection::new("bank", "p").each(noting(&steps, "p"))),
    );
    assert_eq!(desk.handle(stream(&[1, 2, 3])), ["p 1", "p 2", "p 3", "acknowledged"]);
}

#[test]
fn the_next_event_waits_until_every_function_of_the_last_one_has_ended() {
    let (steps, latch) = (Steps::default(), Latch::new());
    let slow = {
        let (steps, latch) = (steps.clone(), latch.clone());
        move |event: Event<Account>| {
            let (steps, latch) = (steps.clone(), latch.clone());
            async move {
                if event.0 == 1 {
                    latch.released().await;
                }
                steps.note(format!("slow {}", event.0));
            }
        }
    };
    let projection = Projection::new("bank", "p").on(slow).each(noting(&steps, "fast"));
    let desk = Desk::new(&steps, ProjectionKind::new().projection(projection));
    desk.push(stream(&[1, 2]));
    eventually("the other function of the first event has run", || steps.count("fast 1") == 1);
    assert_eq!(steps.count("fast 2"), 0);
    latch.release();
    eventually("the stream ends", || steps.count("acknowledged") == 1);
    let order: Vec<_> = steps.taken().into_iter().filter(|s| s.contains(' ')).collect();
    assert_eq!(order[..2], ["fast 1", "slow 1"]);
    assert!(order[2..].contains(&"fast 2".to_owned()) && order[2..].contains(&"slow 2".to_owned()));
}

#[test]
fn functions_of_one_event_run_at_the_same_time() {
    let (steps, latch, running) = (Steps::default(), Latch::new(), Arc::new(Level::new()));
    let waiting = || {
        let (latch, running) = (latch.clone(), running.clone());
        move |_: Event<Account>| {
            let (latch, running) = (latch.clone(), running.clone());
            async move {
                running.rise();
                latch.released().await;
            }
        }
    };
    let projection = Projection::new("bank", "p").on(waiting()).on(waiting()).on(waiting());
    let desk = Desk::new(&steps, ProjectionKind::new().projection(projection));
    desk.push(stream(&[1]));
    eventually("all three run", || running.now() == 3);
    latch.release();
}

#[test]
fn streams_of_one_aggregate_keep_their_order_and_others_do_not_wait() {
    let (steps, latch) = (Steps::default(), Latch::new());
    let slow = {
        let (steps, latch) = (steps.clone(), latch.clone());
        move |event: Event<Account>| {
            let (steps, latch) = (steps.clone(), latch.clone());
            async move {
                if event.aggregate_id().id() == "1" {
                    latch.released().await;
                }
                steps.note(format!("{} {}", event.aggregate_id().id(), event.version()));
            }
        }
    };
    let desk = Desk::new(&steps, ProjectionKind::new().projection(Projection::new("bank", "p").on(slow)));
    for version in 1..=3 {
        for id in ["1", "2"] {
            let stream = EventStream::builder(account_id(id), Version::new(version)).event("moved", Moved(0));
            desk.push(stream.build().expect("an event"));
        }
    }
    eventually("the others get through", || steps.count("2 3") == 1);
    assert_eq!(steps.count("1 1"), 0);
    latch.release();
    eventually("all get through", || steps.count("acknowledged") == 6);
    let of = |id: &str| steps.taken().into_iter().filter(|s| s.starts_with(id)).collect::<Vec<_>>();
    assert_eq!(of("1 "), ["1 1", "1 2", "1 3"]);
    assert_eq!(of("2 "), ["2 1", "2 2", "2 3"]);
}

#[test]
fn a_failing_function_stops_neither_the_others_nor_the_next_event_nor_the_acknowledgement() {
    let steps = Steps::default();
    let failing = |event: Event<Account>| async move {
        match event.0 {
            1 => Err("no such row"),
            2 => panic!("a bug of the view"),
            _ => Ok(()),
        }
    };
    let projection = Projection::new("bank", "p").on(failing).each(noting(&steps, "other"));
    let desk = Desk::new(&steps, ProjectionKind::new().projection(projection));
    let handled = desk.handle(stream(&[1, 2, 3]));
    assert_eq!(handled.iter().filter(|s| s.starts_with("other")).count(), 3);
    assert!(handled.contains(&"bank.p.account failed: no such row".to_owned()), "{handled:?}");
    assert!(
        handled.contains(&"bank.p.account failed: panicked: a bug of the view".to_owned()),
        "{handled:?}"
    );
    assert_eq!(handled.last().map(String::as_str), Some("acknowledged"));
    assert_eq!(desk.dispatcher.work().expect("a ledger").failed, 1, "the stream counts once");
}

#[test]
fn an_unrecorded_failure_withholds_the_acknowledgement_if_that_is_wanted() {
    let steps = Steps::default();
    let failing = |event: &Event<Account>| if event.0 == 1 { Err("no such row") } else { Ok(()) };
    let kind = ProjectionKind::new()
        .projection(Projection::new("bank", "p").each(failing))
        .projection(Projection::new("bank", "q").each(noting(&steps, "q")))
        .unrecorded_failure(UnrecordedFailure::Withhold);
    let desk = Desk::new(&steps, kind);
    let mut steps = desk.handle(stream(&[1, 2]));
    steps.sort_unstable();
    assert_eq!(steps, ["bank.p.account failed: no such row", "q 1", "q 2"], "and no acknowledgement");
    assert_eq!(desk.handle(stream(&[2])), ["q 2", "acknowledged"], "the next stream is not affected");
}

#[test]
fn an_event_without_function_is_a_success() {
    let steps = Steps::default();
    let desk = Desk::new(
        &steps,
        ProjectionKind::new().projection(Projection::new("bank", "p").each(noting(&steps, "p"))),
    );
    let foreign = EventStream::builder(account_id("1"), Version::INITIAL)
        .event("renamed", "a body of another type")
        .event("moved", Moved(1))
        .build()
        .expect("events");
    assert_eq!(desk.handle(foreign), ["p 1", "acknowledged"]);
    assert_eq!(desk.dispatcher.work().expect("a ledger").failed, 0);
}

#[test]
fn a_compensation_reaches_only_the_function_it_names() {
    let steps = Steps::default();
    let kind = ProjectionKind::new()
        .projection(Projection::new("bank", "p").each(noting(&steps, "p")))
        .projection(Projection::new("bank", "q").each(noting(&steps, "q")).each(noting(&steps, "q-2")));
    let desk = Desk::new(&steps, kind);
    let compensation = |processor: &'static str, function: &'static str| {
        let mut header = Header::new();
        for (key, value) in [
            (keys::COMPENSATE_ID, "c-1"),
            (keys::COMPENSATE_CONTEXT, "bank"),
            (keys::COMPENSATE_PROCESSOR, processor),
            (keys::COMPENSATE_FUNCTION, function),
        ] {
            header.set(key, value).expect("writable");
        }
        let stream = EventStream::builder(account_id("1"), Version::INITIAL).header(header);
        stream.event("moved", Moved(1)).build().expect("an event")
    };
    assert_eq!(desk.handle(compensation("q", "account")), ["q 1", "acknowledged"]);
    assert_eq!(desk.handle(compensation("q", "account-2")), ["q-2 1", "acknowledged"]);
    assert_eq!(desk.handle(compensation("r", "account")), ["acknowledged"]);
}
