//! The byte budget of a dispatcher: what is handled at once weighs no more, everything is handled, the heaviest message too. On
//! the keyed executor only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use keyed_executor::Config;
use wow_dispatch::{
    DispatchConfig, Dispatcher, Event, Handled, Processed, Service, ServiceBuilder, ServiceProblem, Strategy,
};
use wow_eventsourcing::MemoryEventStore;
use wow_message::{AggregateId, Command, EventStream};
use wow_runtime::{Component, Ending};
use wow_testkit::{Counter, Latch, eventually, finish};
use wow_transport::Exchange;

use crate::bank::{Account, Open};
use crate::support::{Doing, ReceiverScript, ScriptedBus, Steps, id, named, number, numbered, runtime_of};

/// A command that came in with so many bytes.
fn of_bytes(id: AggregateId, bytes: usize) -> Exchange<Command> {
    let number = u32::try_from(bytes).expect("small");
    Exchange::new(numbered(id, number)).with_encoded_bytes(bytes)
}

fn weigh(exchange: &Exchange<Command>) -> usize {
    exchange.encoded_bytes().expect("every message of these tests has a size")
}

#[test]
fn no_more_bytes_than_the_budget_are_handled_at_once_and_everything_is_handled() {
    const BUDGET: usize = 100;
    const MESSAGES: usize = 400;
    let (script, feed) = ReceiverScript::<Command>::fed();
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (latch, handled) = (Latch::new(), Counter::new());
    let kind = Doing::new([named("test", "thing")], {
        let (now, peak, latch, handled) = (now.clone(), peak.clone(), latch.clone(), handled.clone());
        move |exchange: Exchange<Command>| {
            let (now, peak, latch, handled) = (now.clone(), peak.clone(), latch.clone(), handled.clone());
            async move {
                let bytes = exchange.encoded_bytes().expect("it has a size");
                peak.fetch_max(now.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
                latch.released().await;
                if number(exchange.message()) % 3 == 0 {
                    wow_testkit::after(Duration::from_micros(200)).await;
                }
                now.fetch_sub(bytes, Ordering::SeqCst);
                handled.add(1);
                Handled::Succeeded
            }
        }
    });
    let bus = ScriptedBus::of([script]);
    let dispatcher = Arc::new(Dispatcher::new("test.Doing", kind, bus).max_bytes(BUDGET, weigh));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..MESSAGES {
        let id = AggregateId::new(named("test", "thing"), format!("id-{}", n % 16));
        feed.push(Ok(of_bytes(id, 1 + n * 7 % 60)));
    }
    // The sixth weighs 36 and is set aside; behind it nothing is asked for.
    eventually("as many are handled as there is room for", || {
        now.load(Ordering::SeqCst) == 1 + 8 + 15 + 22 + 29
    });
    eventually("and one is set aside", || dispatcher.work().expect("a ledger").accepted == 6);
    latch.release();
    handled.wait_for(MESSAGES as u64);
    assert!(finish(runtime.stop()).is_clean());
    let peak = peak.load(Ordering::SeqCst);
    assert!(peak <= BUDGET, "{peak} bytes were handled at once");
    assert_eq!(dispatcher.work().expect("a ledger").handled, MESSAGES as u64);
}

#[test]
fn a_message_heavier_than_the_budget_is_handled_alone() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let (steps, light, heavy) = (Steps::default(), Latch::new(), Latch::new());
    let kind = Doing::new([named("test", "thing")], {
        let (steps, light, heavy) = (steps.clone(), light.clone(), heavy.clone());
        move |exchange: Exchange<Command>| {
            let (steps, light, heavy) = (steps.clone(), light.clone(), heavy.clone());
            async move {
                steps.note(exchange.message().aggregate_id().id().to_string());
                match number(exchange.message()) {
                    1_000 => heavy.released().await,
                    _ => light.released().await,
                }
                Handled::Succeeded
            }
        }
    });
    let bus = ScriptedBus::of([script]);
    let dispatcher = Arc::new(Dispatcher::new("test.Doing", kind, bus).max_bytes(100, weigh));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for (of, bytes) in [("light", 10), ("heavy", 1_000), ("last", 10)] {
        feed.push(Ok(of_bytes(id(of), bytes)));
    }
    let accepted = || dispatcher.work().expect("a ledger").accepted;
    eventually("the heavy one is set aside", || accepted() == 2);
    assert_eq!(steps.taken(), ["light"], "it has no room beside any other");
    light.release();
    eventually("it is handled, and the last one is set aside", || accepted() == 3);
    eventually("the heavy one runs", || steps.taken() == ["light", "heavy"]);
    heavy.release();
    eventually("all are handled", || steps.taken() == ["light", "heavy", "last"]);
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn a_weigher_that_panics_ends_the_runtime_with_its_text() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let kind = Doing::new([named("test", "thing")], |_| async { Handled::Succeeded });
    let bus = ScriptedBus::of([script]);
    let weigh = |_: &Exchange<Command>| -> usize { panic!("no scales") };
    let dispatcher = Arc::new(Dispatcher::new("test.Doing", kind, bus).max_bytes(100, weigh));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    feed.push(Ok(of_bytes(id("1"), 1)));
    let report = finish(runtime.termination());
    assert!(report.failure.as_ref().expect("it failed").to_string().contains("no scales"), "{report}");
    assert_eq!((report.ending, report.open_activities), (Ending::Drained, 0));
    let work = dispatcher.work().expect("a ledger");
    assert_eq!((work.accepted, work.discarded), (1, 1), "what was admitted is accounted for");
}

fn builder(config: DispatchConfig) -> ServiceBuilder {
    Service::builder("bank")
        .aggregate::<Account>(|account| account.command::<Open>())
        .projection("all", |p| p.each(|_: &Event<Account>| ()))
        .store(MemoryEventStore::new())
        .config(config)
        .quiet_period(Duration::ZERO)
}

fn of(max_bytes: usize, strategy: Strategy) -> DispatchConfig {
    let executor = Config { workers: 2, ..Config::default() };
    DispatchConfig { executor, strategy, max_bytes: Some(max_bytes), ..DispatchConfig::default() }
}

#[test]
fn a_budget_without_a_weigher_or_out_of_range_is_refused_and_groups_need_none() {
    let refused = builder(of(0, Strategy::Keyed)).build().expect_err("nothing weighs");
    assert_eq!(
        refused.to_string(),
        "max-bytes is 0, accepted is 1 to 4294967295; \
         max-bytes is set, but nothing says what commands weigh: ServiceBuilder::weigh_commands; \
         max-bytes is set, but nothing says what event streams weigh: ServiceBuilder::weigh_events"
    );
    assert!(matches!(refused.problems()[0], ServiceProblem::MaxBytes(0)));
    builder(of(1, Strategy::Grouped)).build().expect("hash groups have no budget");
}

#[test]
fn a_service_weighs_commands_and_events() {
    let (commands, events) = (Counter::new(), Counter::new());
    let (of_commands, of_events) = (commands.clone(), events.clone());
    let builder = builder(of(64, Strategy::Keyed))
        .weigh_commands(move |_: &Exchange<Command>| usize::try_from(of_commands.next()).expect("small"))
        .weigh_events(move |stream: &Exchange<EventStream>| {
            of_events.add(1);
            stream.message().events().len() * 100
        });
    let running = finish(builder.build().expect("a valid service").start()).expect("starts");
    for account in ["1", "2", "3"] {
        finish(running.send(Open { account }).wait_for(Processed)).expect("opened");
    }
    commands.wait_for(3);
    events.wait_for(3);
    assert!(finish(running.stop()).is_clean());
}
