//! The service: typed replies, refusals and stages, what a build refuses, and how it ends.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyed_executor::Config;
use wow_aggregate_scheduler::Groups;
use wow_dispatch::{
    Buses, CommandError, CommandFailure, DispatchConfig, Event, NotSentReason, Processed, Running, Sent,
    Service, ServiceProblem,
};
use wow_eventsourcing::MemoryEventStore;
use wow_message::{AggregateId, Version, codes};
use wow_runtime::Ending;
use wow_testkit::{Latch, eventually};
use wow_transport::{Capacity, NoOpBus, Subscription};

use crate::bank::{Account, Change, Explode, Move, Open, Overdrawn, Recover, moving};
use crate::support::config;

/// Awaits anything that can be awaited.
fn finish<F: IntoFuture>(future: F) -> F::Output {
    wow_testkit::finish(future.into_future())
}

fn builder() -> wow_dispatch::ServiceBuilder {
    Service::builder("bank")
        .aggregate::<Account>(|a| a.command::<Open>().command::<Move>())
        .store(MemoryEventStore::new())
        .config(config())
        .quiet_period(Duration::ZERO)
}

fn start(builder: wow_dispatch::ServiceBuilder) -> Running {
    finish(builder.build().expect("a valid service").start()).expect("starts")
}

#[test]
fn a_sender_gets_the_typed_reply_or_the_typed_refusal() {
    let running = start(builder());
    finish(running.send(Open { account: "1" }).wait_for(Processed)).expect("opened");
    assert_eq!(finish(running.send(moving("1", 5)).wait_for(Processed)).expect("moved"), 5);
    match finish(running.send(moving("1", -7)).wait_for(Processed)) {
        Err(CommandError::Refused(refusal)) => assert_eq!(refusal, Overdrawn { missing: 2 }),
        other => panic!("not refused: {other:?}"),
    }
    assert!(finish(running.stop()).is_clean());
}

#[test]
fn a_reply_can_be_awaited_later_or_never() {
    let running = start(builder());
    let opened = finish(running.send(Open { account: "1" })).expect("sent");
    let moved = finish(running.send(moving("1", 5))).expect("sent");
    finish(running.send(moving("1", 1)).wait_for(Sent)).expect("sent");
    drop(finish(running.send(moving("1", 2))).expect("sent"));
    assert_ne!(opened.command_id(), moved.command_id());
    assert_eq!(finish(moved).expect("moved"), 5);
    assert!(opened.is_answered(), "commands of one account are answered in order");
    finish(opened).expect("opened");
    assert_eq!(finish(running.send(moving("1", 0)).wait_for(Processed)).expect("moved"), 8, "none was lost");
    assert!(finish(running.stop()).is_clean());
}

#[test]
fn a_service_tells_what_became_of_the_messages_of_each_dispatcher() {
    let builder = builder().projection("all", |p| p.each(|_: &Event<Account>| ()));
    let running = start(builder);
    finish(running.send(Open { account: "1" }).wait_for(Processed)).expect("opened");
    finish(running.send(moving("1", 5)).wait_for(Processed)).expect("moved");
    assert!(finish(running.send(moving("1", -7)).wait_for(Processed)).is_err(), "refused");
    let work = |dispatcher: usize| running.metrics().dispatchers[dispatcher].work;
    eventually("all has ended", || work(0).in_flight == 0 && work(1).handled == 2);
    let names: Vec<_> = running.metrics().dispatchers.into_iter().map(|dispatcher| dispatcher.name).collect();
    assert_eq!(names, ["bank.CommandDispatcher", "bank.ProjectionDispatcher"]);
    assert_eq!((work(0).accepted, work(0).handled, work(0).failed), (3, 2, 1));
    assert_eq!((work(1).accepted, work(1).failed), (2, 0));
    assert!(finish(running.stop()).is_clean());
}

#[test]
fn what_is_said_beside_the_body_reaches_the_guards() {
    let running = start(builder());
    finish(running.send(Open { account: "1" }).owner("ann").wait_for(Processed)).expect("opened");
    let failure = |sending: wow_dispatch::Sending<'_, Move>| match finish(sending.wait_for(Processed)) {
        Err(CommandError::Failed(failure)) => failure.code(),
        other => panic!("no failure: {other:?}"),
    };
    assert_eq!(failure(running.send(moving("1", 1)).owner("bob")), codes::ILLEGAL_ACCESS_OWNER);
    let stale = running.send(moving("1", 1)).expect_version(Version::new(7));
    assert_eq!(failure(stale), codes::COMMAND_EXPECT_VERSION_CONFLICT);
    assert_eq!(failure(running.send(moving("1", 1)).tenant("acme")), codes::NOT_FOUND);
    finish(running.send(moving("1", 1)).request_id("r").wait_for(Processed)).expect("moved");
    assert_eq!(failure(running.send(moving("1", 1)).request_id("r")), codes::DUPLICATE_REQUEST_ID);
    finish(running.stop());
}

#[test]
fn a_projection_sees_every_stored_event_in_order_per_aggregate() {
    const ACCOUNTS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let view = Arc::new(Mutex::new(HashMap::<String, Vec<i64>>::new()));
    let balances = Arc::clone(&view);
    let running = start(builder().projection("balances", |p| {
        p.each(move |event: &Event<Account>| {
            let account = event.aggregate_id().id().to_string();
            balances.lock().expect("not poisoned").entry(account).or_default().push(event.0);
        })
    }));
    let mut replies = Vec::new();
    for account in ACCOUNTS {
        drop(finish(running.send(Open { account })).expect("sent"));
    }
    for n in 1..=200 {
        for account in ACCOUNTS {
            replies.push(finish(running.send(moving(account, n))).expect("sent"));
        }
    }
    for reply in replies {
        finish(reply).expect("moved");
    }
    let report = finish(running.stop());
    assert!(report.is_clean(), "{report}");
    let expected: Vec<i64> = (0..=200).collect();
    let view = view.lock().expect("not poisoned");
    for account in ACCOUNTS {
        assert_eq!(view[account], expected, "{account}");
    }
    let ledgers: Vec<_> = report.components.iter().filter_map(|c| c.work).collect();
    assert_eq!(ledgers.len(), 2);
    for ledger in ledgers {
        assert_eq!((ledger.accepted, ledger.handled, ledger.in_flight), (1_005, 1_005, 0));
    }
}

#[test]
fn a_stop_handles_everything_that_was_sent() {
    let running = start(builder());
    finish(running.send(Open { account: "1" }).wait_for(Processed)).expect("opened");
    let mut replies = Vec::new();
    for _ in 0..2_000 {
        replies.push(finish(running.send(moving("1", 1))).expect("sent"));
    }
    for _ in 0..500 {
        finish(running.send(moving("1", 1)).wait_for(Sent)).expect("sent");
    }
    let report = finish(running.stop());
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.ending, Ending::Drained);
    for (reply, balance) in replies.into_iter().zip(1..) {
        assert!(reply.is_answered(), "every answer is there when the stop has ended");
        assert_eq!(finish(reply).expect("moved"), balance);
    }
    let work = report.components[0].work.expect("a ledger");
    assert_eq!((work.accepted, work.handled), (2_501, 2_501));
}

#[test]
fn a_command_to_a_stopped_service_comes_back() {
    let running = start(builder());
    let sender = running.sender();
    finish(running.stop());
    let not_sent = finish(sender.send(moving("1", 5))).expect_err("it is stopped");
    assert!(matches!(not_sent.reason(), NotSentReason::Stopped));
    assert_eq!(not_sent.into_command().body_as::<Move>().map(|m| m.amount), Some(5));
    match finish(sender.send(moving("1", 6)).wait_for(Processed)) {
        Err(CommandError::NotSent(not_sent)) => {
            assert_eq!(not_sent.into_command().body_as::<Move>().map(|m| m.amount), Some(6));
        }
        other => panic!("sent: {other:?}"),
    }
}

#[test]
fn a_command_to_an_aggregate_of_another_service_comes_back() {
    let running = start(Service::builder("empty").config(config()).quiet_period(Duration::ZERO));
    let not_sent = finish(running.send(moving("1", 5))).expect_err("no such aggregate here");
    assert!(matches!(not_sent.reason(), NotSentReason::UnknownAggregate));
    finish(running.stop());
}

#[test]
fn a_command_with_an_id_that_is_too_long_comes_back() {
    let running = start(builder());
    let longest: &str = "4".repeat(AggregateId::MAX_PART_BYTES).leak();
    finish(running.send(Open { account: longest }).wait_for(Sent)).expect("it is just short enough");
    let not_sent = finish(running.send(Open { account: "5".repeat(1_025).leak() })).expect_err("too long");
    assert!(matches!(not_sent.reason(), NotSentReason::IdTooLong(error) if error.bytes() == 1_025));
    assert!(not_sent.to_string().contains("has 1025 bytes, and ids may have 1024"), "{not_sent}");
    finish(running.stop());
}

#[test]
fn a_forced_stop_tells_every_waiting_sender() {
    let entered = Latch::new();
    let never = Latch::new();
    let running = start(builder().transport(Buses::memory(Capacity::Bounded(4))).projection("stuck", {
        let (entered, never) = (entered.clone(), never.clone());
        move |p| {
            p.on(move |_: Event<Account>| {
                entered.release();
                let never = never.clone();
                async move {
                    never.released().await;
                }
            })
        }
    }));
    let mut replies = vec![];
    finish(running.send(Open { account: "1" }).wait_for(Sent)).expect("sent");
    entered.wait();
    // The projection is stuck, so its queue fills, then the commands', then senders wait.
    let sender = running.sender();
    let sending = std::thread::spawn(move || {
        loop {
            match finish(sender.send(moving("1", 1))) {
                Ok(reply) => replies.push(reply),
                Err(not_sent) => return (replies, not_sent),
            }
        }
    });
    let report = finish(running.force_stop());
    assert_eq!(report.ending, Ending::Forced);
    let (replies, not_sent) = sending.join().expect("no panic");
    assert!(matches!(not_sent.reason(), NotSentReason::Stopped | NotSentReason::Bus(_)));
    for reply in replies {
        match finish(reply) {
            Ok(_) | Err(CommandError::Failed(CommandFailure::Dropped | CommandFailure::Stopped)) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
}

#[test]
fn commands_that_are_dropped_while_they_run_or_wait_tell_their_senders() {
    let (store, buses) = (Arc::new(MemoryEventStore::new()), Buses::memory(Capacity::Bounded(1)));
    // Somebody subscribes to the events and takes none: the second command cannot publish, the third waits behind it.
    let mut reader = buses.events.receiver(Subscription::to([crate::bank::account()])).expect("a receiver");
    let unread = reader.messages().expect("first subscriber");
    let service = builder().shared_store(store.clone()).transport(buses);
    let running = start(service);
    finish(running.send(Open { account: "1" }).wait_for(Processed)).expect("opened");
    let publishing = finish(running.send(moving("1", 1))).expect("sent");
    let waiting = finish(running.send(moving("1", 1))).expect("sent");
    eventually("the second command is stored", || store.n_streams() == 2);
    let report = finish(running.force_stop());
    assert_eq!(report.ending, Ending::Forced);
    for reply in [publishing, waiting] {
        match finish(reply) {
            Err(CommandError::Failed(CommandFailure::Dropped | CommandFailure::Stopped)) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
    drop(unread);
}

#[test]
fn a_command_on_its_way_keeps_its_service_from_stopping() {
    // A bus that takes commands and delivers none.
    let buses = Buses { commands: Arc::new(NoOpBus), ..Buses::default() };
    let service = builder().transport(buses).build().expect("a valid service");
    let activities = service.runtime().activities().clone();
    let running = finish(service.start()).expect("starts");
    let reply = finish(running.send(moving("1", 1))).expect("sent");
    finish(running.send(moving("1", 1)).wait_for(Sent)).expect("sent");
    assert_eq!(activities.active(), 2, "one for each command that is not answered");
    finish(running.force_stop());
    assert!(matches!(finish(reply), Err(CommandError::Failed(CommandFailure::Stopped))));
    assert_eq!(activities.active(), 0);
}

#[test]
fn a_bounded_bus_makes_senders_wait_and_loses_nothing() {
    let running = start(builder().transport(Buses::memory(Capacity::Bounded(2))));
    finish(running.send(Open { account: "1" }).wait_for(Processed)).expect("opened");
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let sender = running.sender();
            std::thread::spawn(move || {
                let mut replies = Vec::new();
                for _ in 0..500 {
                    replies.push(finish(sender.send(moving("1", 1))).expect("sent"));
                }
                replies.into_iter().map(|reply| finish(reply).expect("moved")).max()
            })
        })
        .collect();
    let highest = senders.into_iter().filter_map(|s| s.join().expect("no panic")).max();
    assert_eq!(highest, Some(2_000));
    assert!(finish(running.stop()).is_clean());
}

#[test]
fn a_panicking_aggregate_answers_its_sender() {
    let running = start(
        Service::builder("bank")
            .aggregate::<Account>(|a| a.command::<Explode>())
            .store(MemoryEventStore::new())
            .config(config())
            .quiet_period(Duration::ZERO),
    );
    match finish(running.send(Explode { account: "1" }).wait_for(Processed)) {
        Err(CommandError::Failed(CommandFailure::Panicked(text))) => assert_eq!(text, "a bug of the account"),
        other => panic!("no panic: {other:?}"),
    }
    assert!(finish(running.stop()).is_clean());
}

#[test]
fn dropping_a_running_service_ends_it_and_its_replies() {
    let running = start(builder());
    finish(running.send(Open { account: "1" }).wait_for(Processed)).expect("opened");
    let reply = finish(running.send(moving("1", 1))).expect("sent");
    let termination = running.termination();
    drop(running);
    finish(termination);
    match finish(reply) {
        Ok(1) | Err(CommandError::Failed(CommandFailure::Dropped | CommandFailure::Stopped)) => {}
        other => panic!("unexpected: {other:?}"),
    }
}

#[test]
fn a_build_names_every_problem_at_once() {
    let workers_and_groups = DispatchConfig {
        executor: Config { workers: 0, ..Config::default() },
        groups: Groups::new(NonZeroU32::MAX),
        ..config()
    };
    let failed = Service::builder(" ")
        .aggregate::<Account>(|a| a.command::<Open>().command::<Open>())
        .aggregate::<Account>(|a| a)
        .projection("p", |p| p.each(|_: &Event<Account>| {}))
        .projection("p", |p| p)
        .projection("", |p| p.each(|_: &Event<Account>| {}))
        .config(workers_and_groups)
        .build()
        .expect_err("much is wrong");
    let kinds: Vec<_> = failed
        .problems()
        .iter()
        .map(|problem| match problem {
            ServiceProblem::BlankContext => "blank context",
            ServiceProblem::CommandTwice { .. } => "command twice",
            ServiceProblem::AggregateTwice(_) => "aggregate twice",
            ServiceProblem::NoCommands(_) => "no commands",
            ServiceProblem::ProjectionTwice(_) => "projection twice",
            ServiceProblem::NoFunctions(_) => "no functions",
            ServiceProblem::BlankProjection => "blank projection",
            ServiceProblem::NoStore => "no store",
            ServiceProblem::Config(_) => "config",
            ServiceProblem::Groups(_) => "groups",
            _ => "other",
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "blank context",
            "command twice",
            "aggregate twice",
            "no commands",
            "projection twice",
            "no functions",
            "blank projection",
            "no store",
            "config",
            "groups",
        ]
    );
    assert!(
        failed.to_string().contains("command 'open' of aggregate  .account is registered twice"),
        "{failed}"
    );
    assert!(failed.to_string().ends_with("groups is 4294967295, accepted is 1 to 1048576"), "{failed}");
}

#[test]
fn wrong_times_of_the_runtime_are_refused() {
    let failed =
        builder().quiet_period(Duration::from_secs(90)).build().expect_err("longer than the timeout");
    assert!(matches!(failed.problems(), [ServiceProblem::Runtime(_)]), "{failed}");
}

#[test]
fn every_command_of_the_sample_can_be_registered() {
    let service = Service::builder("bank").aggregate::<Account>(|a| {
        a.command::<Open>().command::<Move>().command::<Change>().command::<Recover>().command::<Explode>()
    });
    let service = service.store(MemoryEventStore::new()).build().expect("a valid service");
    assert_eq!(service.runtime().components().collect::<Vec<_>>(), ["bank.CommandDispatcher"]);
    eventually("it is new", || !service.runtime().is_running());
}
