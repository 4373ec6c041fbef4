//! Ordering and admission: what the engine does to each message (T35, T52, T62, T63, DP-10 to DP-14).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyed_executor::{Config, KeyedExecutor};
use wow_dispatch::{Handled, Strategy};
use wow_message::{AggregateId, Command};
use wow_runtime::{Component, Ending, Runtime, Stage};
use wow_testkit::{Counter, Latch, Level, eventually, finish};
use wow_transport::{Capacity, Exchange, HandOff, LocalBus, MemoryBus, MessageBus};

use crate::support::{
    Doing, ReceiverScript, ScriptedBus, Steps, id, named, noted, number, numbered, runtime_of,
};

#[test]
fn messages_of_one_id_run_in_order_and_alone_whatever_their_tenant() {
    const MESSAGES: u32 = 500;
    let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
    let (running, seen) = (Arc::new(Level::new()), Arc::new(Mutex::new(Vec::new())));
    let handled = Counter::new();
    let dispatcher = Doing::new([named("test", "thing")], {
        let (running, seen, handled) = (running.clone(), seen.clone(), handled.clone());
        move |exchange: Exchange<Command>| {
            let (running, seen, handled) = (running.clone(), seen.clone(), handled.clone());
            async move {
                running.rise();
                let n = number(exchange.message());
                if n % 3 == 0 {
                    wow_testkit::after(Duration::from_micros(50)).await;
                }
                seen.lock().expect("not poisoned").push(n);
                running.fall();
                handled.add(1);
                Handled::Succeeded
            }
        }
    })
    .on(bus.clone());
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..MESSAGES {
        let id = if n % 2 == 0 { id("1") } else { id("1").with_tenant("acme") };
        finish(bus.send(numbered(id, n))).expect("taken");
    }
    handled.wait_for(u64::from(MESSAGES));
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!(
        *seen.lock().expect("not poisoned"),
        (0..MESSAGES).collect::<Vec<_>>(),
        "one order over both tenants"
    );
    assert_eq!(running.peak(), 1, "never two at a time");
}

#[test]
fn the_same_id_of_another_type_or_context_does_not_wait() {
    let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
    let (latch, handled) = (Latch::new(), Counter::new());
    let types = [named("a", "thing"), named("a", "other"), named("b", "thing")];
    let dispatcher = Doing::new(types, {
        let (latch, handled) = (latch.clone(), handled.clone());
        move |exchange: Exchange<Command>| {
            let (latch, handled) = (latch.clone(), handled.clone());
            async move {
                if number(exchange.message()) == 0 {
                    latch.released().await;
                }
                handled.add(1);
                Handled::Succeeded
            }
        }
    })
    .on(bus.clone());
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for (n, named) in (0..).zip(types) {
        finish(bus.send(numbered(AggregateId::new(named, "1"), n))).expect("taken");
    }
    finish(bus.send(numbered(AggregateId::new(types[0], "2"), 9))).expect("taken");
    // Everything but the stuck key gets through.
    handled.wait_for(3);
    latch.release();
    handled.wait_for(4);
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn thirty_aggregate_types_keep_their_orders_on_the_threads_of_the_strategy() {
    const EACH: u32 = 20;
    let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
    let types: Vec<_> =
        (0..30).map(|n| wow_message::NamedAggregate::new("many", format!("type-{n}"))).collect();
    let seen = Arc::new(Mutex::new(HashMap::<AggregateId, Vec<u32>>::new()));
    let on_threads = Arc::new(Mutex::new(std::collections::HashSet::new()));
    let dispatcher = Doing::new(types.clone(), {
        let (seen, on_threads) = (seen.clone(), on_threads.clone());
        move |exchange: Exchange<Command>| {
            let (seen, on_threads) = (seen.clone(), on_threads.clone());
            async move {
                // A handler that is preempted for long may have been taken for stuck: spares do not count.
                let thread = std::thread::current();
                if !thread.name().is_some_and(|name| name.starts_with("rescue:")) {
                    on_threads.lock().expect("not poisoned").insert(thread.id());
                }
                let message = exchange.message();
                let id = message.aggregate_id().clone();
                seen.lock().expect("not poisoned").entry(id).or_default().push(number(message));
                Handled::Succeeded
            }
        }
    })
    .on(bus.clone());
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..EACH {
        for named in &types {
            for k in 0..7 {
                finish(bus.send(numbered(AggregateId::new(*named, format!("id-{k}")), n))).expect("taken");
            }
        }
    }
    let all = 30 * 7 * u64::from(EACH);
    eventually("all are handled", || dispatcher.work().expect("a ledger").handled == all);
    assert!(finish(runtime.stop()).is_clean());
    let seen = seen.lock().expect("not poisoned");
    assert_eq!(seen.len(), 30 * 7);
    for (id, numbers) in seen.iter() {
        assert_eq!(*numbers, (0..EACH).collect::<Vec<_>>(), "{id} keeps its order");
    }
    let n_threads = on_threads.lock().expect("not poisoned").len();
    match crate::STRATEGY {
        Strategy::Keyed => assert!(n_threads <= 2, "two workers serve all types"),
        Strategy::Grouped => assert!((30..=60).contains(&n_threads), "two threads a type: {n_threads}"),
    }
}

#[test]
fn a_closed_admission_leaves_the_message_unhandled_unacknowledged_and_rejected() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let bus = ScriptedBus::of([script]);
    let steps = Steps::default();
    let dispatcher = Doing::new([named("test", "thing")], {
        let steps = steps.clone();
        move |mut exchange: Exchange<Command>| {
            let steps = steps.clone();
            async move {
                steps.note("handled");
                exchange.acknowledge();
                Handled::Succeeded
            }
        }
    })
    .on(bus);
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    feed.push(Ok(noted(numbered(id("1"), 1), &steps)));
    eventually("the first is handled", || steps.count("acknowledged") == 1);
    runtime.activities().close();
    feed.push(Ok(noted(numbered(id("1"), 2), &steps)));
    eventually("the second is refused", || steps.count("rejected") == 1);
    assert_eq!(steps.taken(), ["confirmed", "handled", "acknowledged", "rejected"]);
    assert_eq!(dispatcher.work().expect("a ledger").accepted, 1, "what is not admitted uses no window");
    finish(runtime.stop());
    assert_eq!(steps.taken().len(), 4, "and nothing becomes of it later");
}

#[test]
fn a_ticket_is_confirmed_when_the_message_is_admitted_not_when_it_is_handled() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let (steps, latch) = (Steps::default(), Latch::new());
    let dispatcher = Doing::new([named("test", "thing")], {
        let (steps, latch) = (steps.clone(), latch.clone());
        move |_exchange: Exchange<Command>| {
            let (steps, latch) = (steps.clone(), latch.clone());
            async move {
                latch.released().await;
                steps.note("handled");
                Handled::Succeeded
            }
        }
    })
    .on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    feed.push(Ok(noted(numbered(id("1"), 1), &steps)));
    feed.push(Ok(noted(numbered(id("1"), 2), &steps)));
    eventually("both are admitted", || steps.count("confirmed") == 2);
    assert_eq!(steps.taken(), ["confirmed", "confirmed"], "neither is handled yet");
    latch.release();
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!(steps.count("handled"), 2);
    assert_eq!(steps.count("acknowledged"), 0, "acknowledging is for the kind to do");
}

#[test]
fn a_key_that_cannot_be_computed_releases_its_activity_and_fails_the_runtime() {
    type Fails = fn(&Command) -> Result<wow_message::AggregateKey, wow_runtime::ComponentError>;
    let ways: [(&str, Fails); 2] = [
        ("an error", |_| Err("the id cannot be read".into())),
        ("a panic", |_| panic!("the id cannot be read")),
    ];
    for (way, fails) in ways {
        let (script, feed) = ReceiverScript::<Command>::fed();
        let steps = Steps::default();
        let dispatcher = Doing::new([named("test", "thing")], |_| async { Handled::Succeeded })
            .keyed_by(fails)
            .on(ScriptedBus::of([script]));
        let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
        finish(runtime.start()).expect("starts");
        feed.push(Ok(noted(numbered(id("1"), 1), &steps)));
        let report = finish(runtime.termination());
        let failure = report.failure.as_ref().expect("the runtime failed").to_string();
        assert!(failure.contains("the id cannot be read"), "{way}: {failure}");
        assert_eq!(
            (report.ending, report.open_activities),
            (Ending::Drained, 0),
            "{way}: nothing is left open"
        );
        assert_eq!(steps.taken(), ["rejected"], "{way}");
        assert_eq!(dispatcher.work().expect("a ledger").accepted, 0);
    }
}

#[test]
fn a_panic_that_leaves_a_kind_ends_the_runtime_and_what_was_accepted_elsewhere_is_finished() {
    let (failing, feed) = ReceiverScript::<Command>::fed();
    let broken = Doing::new([named("test", "thing")], |_| async { panic!("a bug of the kind") });
    let broken = broken.on(ScriptedBus::of([failing]));
    let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
    let (latch, handled) = (Latch::new(), Counter::new());
    let healthy = Doing::new([named("test", "other")], {
        let (latch, handled) = (latch.clone(), handled.clone());
        move |_| {
            let (latch, handled) = (latch.clone(), handled.clone());
            async move {
                latch.released().await;
                handled.add(1);
                Handled::Succeeded
            }
        }
    })
    .on(bus.clone());
    let runtime = runtime_of([broken as Arc<dyn Component>, healthy.clone()]);
    finish(runtime.start()).expect("starts");
    for n in 0..20 {
        finish(bus.send(numbered(AggregateId::new(named("test", "other"), "1"), n))).expect("taken");
    }
    eventually("the healthy one accepted all", || healthy.work().expect("a ledger").accepted == 20);
    feed.push(Ok(Exchange::new(numbered(id("1"), 1))));
    eventually("admission closes", || runtime.activities().is_closed());
    latch.release();
    let report = finish(runtime.termination());
    assert!(
        report.failure.as_ref().expect("it failed").to_string().contains("a bug of the kind"),
        "{report}"
    );
    assert_eq!(handled.get(), 20, "what was accepted elsewhere is finished");
}

#[test]
fn a_local_delivery_is_admitted_by_a_running_dispatcher_and_by_no_other() {
    let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
    let dispatcher = Doing::new([named("test", "thing")], |_| async { Handled::Succeeded }).on(bus.clone());
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    assert!(matches!(bus.hand_off(numbered(id("1"), 1)), HandOff::Refused(_)), "nobody is there");
    finish(runtime.start()).expect("starts");
    let HandOff::Accepted(admission) = bus.hand_off(numbered(id("1"), 2)) else { panic!("refused") };
    assert!(finish(admission), "admitted");
    runtime.activities().close();
    let HandOff::Accepted(admission) = bus.hand_off(numbered(id("1"), 3)) else { panic!("refused") };
    assert!(!finish(admission), "admission is closed");
    finish(runtime.stop());
    let HandOff::Refused(back) = bus.hand_off(numbered(id("1"), 4)) else { panic!("accepted") };
    assert_eq!(number(&back), 4);
    assert!(!back.header().is_read_only());
}

#[test]
fn no_more_messages_than_the_window_are_admitted_and_unfinished() {
    const WINDOW: u64 = 4;
    let (script, feed) = ReceiverScript::<Command>::fed();
    let (unfinished, handled, latch) = (Arc::new(Level::new()), Counter::new(), Latch::new());
    let dispatcher = Doing::new([named("test", "thing")], {
        let (unfinished, handled, latch) = (unfinished.clone(), handled.clone(), latch.clone());
        move |_| {
            let (unfinished, handled, latch) = (unfinished.clone(), handled.clone(), latch.clone());
            async move {
                latch.released().await;
                unfinished.fall();
                handled.add(1);
                Handled::Succeeded
            }
        }
    })
    // The key is computed when the message is admitted.
    .keyed_by({
        let unfinished = unfinished.clone();
        move |command| {
            unfinished.rise();
            Ok(command.aggregate_id().key().clone())
        }
    })
    .on(ScriptedBus::of([script]));
    let config = Config { workers: 2, max_in_flight: 4, ..Config::default() };
    let runtime = Runtime::builder(KeyedExecutor::new(config).expect("a valid configuration"))
        .quiet_period(Duration::ZERO)
        .component(Stage::COMMANDS, dispatcher.clone() as Arc<dyn Component>)
        .build()
        .expect("a valid runtime");
    finish(runtime.start()).expect("starts");
    for n in 0..200 {
        let id = AggregateId::new(named("test", "thing"), format!("id-{}", n % 16));
        feed.push(Ok(Exchange::new(numbered(id, n))));
    }
    eventually("the window is full", || dispatcher.work().expect("a ledger").in_flight == WINDOW);
    latch.release();
    handled.wait_for(200);
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!(unfinished.peak() as u64, WINDOW);
}
