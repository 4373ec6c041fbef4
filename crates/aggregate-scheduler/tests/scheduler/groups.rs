//! A group is serial, groups are concurrent, ids of one group share its fate (LS-6 to LS-9), and what is known to be weak
//! about that (LS-13).

use std::convert::Infallible;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::stream;
use keyed_executor::Options;
use wow_aggregate_scheduler::{Grouped, NamedAggregate, Route, SchedulerSupplier};
use wow_testkit::{Counter, Failure, History, Latch, Level, Message, Script, Seed, Source, finish};

use crate::common::{ORDER, everything, grouped, groups, id_in, ids_in, supplier};

/// A message: its id, and what its handler does.
struct Step {
    id: String,
    script: Script,
}

fn step(id: &str, script: Script) -> Result<Step, Failure> {
    Ok(Step { id: id.to_owned(), script })
}

#[test]
fn a_group_runs_serially_and_in_order_whatever_its_handlers_do() {
    const GROUPS: u32 = 8;
    let seed = Seed(20_261_130);
    let mut rng = seed.rng();
    let history = History::new(seed.0, GROUPS as usize);
    let ids: Vec<Vec<String>> = (0..GROUPS).map(|group| ids_in(group, GROUPS, 5)).collect();
    let messages: Vec<Result<(String, Message, Script), Failure>> = (0..3_000)
        .map(|_| {
            let group = rng.index(ids.len());
            let id = ids[group][rng.index(5)].clone();
            let script = match rng.index(8) {
                0 => Script::ready().yields(1 + rng.index(3)),
                1 => Script::ready().elsewhere(),
                2 => Script::ready().after(Duration::from_micros(200)),
                3 => Script::ready().yields(1).elsewhere().yields(1),
                _ => Script::ready(),
            };
            Ok((id, history.issue(group, 0), script))
        })
        .collect();
    let supplier = supplier("serial", 3);
    let dispatch = grouped(&supplier, GROUPS).dispatch(
        Options::new("serial"),
        stream::iter(messages),
        |(id, ..)| id.as_str(),
        |(_, message, script)| message.start().play(script),
    );
    let ledger = finish(dispatch).expect("no handler fails");
    assert_eq!((ledger.accepted, ledger.handled), (3_000, 3_000));
    assert_eq!(history.verify().handled, 3_000);
}

#[test]
fn two_ids_of_one_group_share_its_order_and_another_group_does_not_wait() {
    let supplier = supplier("share", 2);
    let colliding = ids_in(3, 16, 2);
    let other = id_in(4, 16);
    let latch = Latch::new();
    let messages = [
        step(&colliding[0], Script::ready().until(&latch)),
        step(&colliding[1], Script::ready()),
        step(&other, Script::ready()),
    ];
    let (done, order) = mpsc::channel();
    let dispatch = grouped(&supplier, 16).dispatch(
        Options::new("share"),
        stream::iter(messages),
        |step| step.id.as_str(),
        move |step| {
            let done = done.clone();
            async move {
                step.script.await?;
                done.send(step.id).expect("the test listens");
                Ok(())
            }
        },
    );
    let first = order.recv_timeout(wow_testkit::PATIENCE).expect("the other group is not held up");
    assert_eq!(first, other);
    latch.release();
    finish(dispatch).expect("no handler fails");
    assert_eq!(everything(&order), colliding);
}

#[test]
fn a_waiting_group_holds_no_thread() {
    let supplier = supplier("waits", 1);
    let latch = Latch::new();
    let (slow, fast) = (id_in(0, 2), id_in(1, 2));
    let mut messages = vec![step(&slow, Script::ready().until(&latch))];
    messages.extend((0..100).map(|_| step(&fast, Script::ready())));
    let handled = Counter::new();
    let dispatch = {
        let handled = handled.clone();
        grouped(&supplier, 2).dispatch(
            Options::new("waits"),
            stream::iter(messages),
            |step| step.id.as_str(),
            move |step| {
                let handled = handled.clone();
                async move {
                    step.script.await?;
                    handled.add(1);
                    Ok(())
                }
            },
        )
    };
    handled.wait_for(100);
    latch.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 101);
}

#[test]
fn groups_run_at_once_on_the_threads_of_their_pool() {
    let supplier = supplier("meet", 2);
    let ids: Vec<_> = (0..2).map(|group| Ok::<_, Infallible>(id_in(group, 2))).collect();
    let (meeting, met) = (Arc::new(Barrier::new(2)), Counter::new());
    let dispatch = {
        let met = met.clone();
        grouped(&supplier, 2).dispatch(
            Options::new("meet"),
            stream::iter(ids),
            |id| id.as_str(),
            move |_| {
                // Both handlers hold their threads here until the other one is there too.
                meeting.wait();
                met.add(1);
                async { Ok(()) }
            },
        )
    };
    met.wait_for(2);
    finish(dispatch).expect("no handler fails");
}

#[test]
fn as_many_groups_wait_at_once_as_there_are_whatever_the_threads() {
    const GROUPS: u32 = 8;
    let supplier = supplier("many", 1);
    let (latch, started) = (Latch::new(), Counter::new());
    let ids: Vec<_> = (0..GROUPS).map(|group| Ok::<_, Failure>(id_in(group, GROUPS))).collect();
    let dispatch = {
        let (latch, started) = (latch.clone(), started.clone());
        grouped(&supplier, GROUPS).dispatch(
            Options::new("many"),
            stream::iter(ids),
            |id| id.as_str(),
            move |_| {
                started.add(1);
                Script::ready().until(&latch)
            },
        )
    };
    started.wait_for(u64::from(GROUPS));
    latch.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, u64::from(GROUPS));
}

#[test]
fn a_handler_that_blocks_its_thread_delays_the_groups_of_that_thread_and_not_the_source() {
    // The first and third group that are used are served by the first thread, the second by the other one.
    let supplier = supplier("block", 2);
    let (held, free) = (Latch::new(), Latch::new());
    let messages = [
        step(&id_in(0, 3), Script::ready().blocks_until(&held)),
        step(&id_in(1, 3), Script::ready()),
        step(&id_in(2, 3), Script::ready()),
        step(&id_in(1, 3), Script::ready().until(&free)),
    ];
    free.release();
    let (done, order) = mpsc::channel();
    let (source, feed) = Source::over(messages);
    let dispatch = grouped(&supplier, 3).dispatch(
        Options::new("block"),
        source,
        |step| step.id.as_str(),
        move |step| {
            let done = done.clone();
            async move {
                step.script.await?;
                done.send(step.id).expect("the test listens");
                Ok(())
            }
        },
    );
    let next = || order.recv_timeout(wow_testkit::PATIENCE).expect("a message of the free thread");
    assert_eq!([next(), next()], [id_in(1, 3), id_in(1, 3)]);
    feed.dropped().wait();
    assert!(order.try_recv().is_err(), "the third group waits for its thread");
    held.release();
    assert_eq!([next(), next()], [id_in(0, 3), id_in(2, 3)]);
    finish(dispatch).expect("no handler fails");
}

#[test]
fn a_busy_group_gives_way_to_the_others_of_its_thread() {
    let supplier = supplier("turns", 1);
    let held = Latch::new();
    let (busy, other) = (id_in(0, 2), id_in(1, 2));
    let mut messages = vec![step(&busy, Script::ready().blocks_until(&held))];
    messages.extend((1..1_000).map(|_| step(&busy, Script::ready())));
    messages.push(step(&other, Script::ready()));
    let (source, feed) = Source::over(messages);
    let order = Arc::new(Mutex::new(Vec::new()));
    let dispatch = {
        let order = Arc::clone(&order);
        grouped(&supplier, 2).dispatch(
            Options::new("turns").max_in_flight(2_000),
            source,
            |step| step.id.as_str(),
            move |step| {
                let order = Arc::clone(&order);
                async move {
                    step.script.await?;
                    order.lock().expect("no panic under it").push(step.id);
                    Ok(())
                }
            },
        )
    };
    feed.dropped().wait();
    held.release();
    finish(dispatch).expect("no handler fails");
    let order = order.lock().expect("no panic under it");
    let place = order.iter().position(|id| *id == other).expect("it was handled");
    assert_eq!(place, 256, "after one turn of the busy group");
}

#[test]
fn no_more_messages_than_the_window_are_taken_and_unfinished() {
    for window in [1, 4, 64] {
        let supplier = supplier("window", 2);
        let unfinished = Arc::new(Level::new());
        let counted = Arc::clone(&unfinished);
        let ids = (0..2_000).map(move |n| {
            counted.rise();
            Ok::<_, Failure>(format!("id-{n}"))
        });
        let ended = Arc::clone(&unfinished);
        let dispatch = grouped(&supplier, 32).dispatch(
            Options::new("window").max_in_flight(window),
            stream::iter(ids),
            |id| id.as_str(),
            move |_| {
                let ended = Arc::clone(&ended);
                async move {
                    let played = Script::ready().elsewhere().await;
                    ended.fall();
                    played
                }
            },
        );
        assert_eq!(finish(dispatch).expect("no handler fails").handled, 2_000, "window {window}");
        assert!(unfinished.peak() <= window, "{} unfinished in a window of {window}", unfinished.peak());
    }
}

#[test]
fn one_dispatch_over_several_aggregates_uses_the_pool_of_each() {
    let supplier = supplier("over", 1);
    let cart = NamedAggregate { aggregate: "cart", ..ORDER };
    let schedulers = [ORDER, cart].map(|named| supplier.get_or_initialize(named).expect("open"));
    let (seen, threads) = mpsc::channel();
    let messages = [("x", 0), ("x", 1), ("x", 0)].map(Ok::<_, Infallible>);
    let dispatch = Grouped::over(schedulers, groups(4)).dispatch_routed(
        Options::new("over"),
        stream::iter(messages),
        |&(id, scheduler)| Route { scheduler, id },
        move |(_, scheduler)| {
            let thread = thread::current().name().map(str::to_owned).expect("it has a name");
            seen.send((scheduler, thread)).expect("the test listens");
            async { Ok::<(), Infallible>(()) }
        },
    );
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 3);
    let mut threads = everything(&threads);
    threads.sort();
    let (order, cart) = ("over-order-1".to_owned(), "over-cart-1".to_owned());
    assert_eq!(threads, [(0, order.clone()), (0, order), (1, cart)]);
}

#[test]
fn dispatches_of_one_scheduler_are_independent_of_each_other() {
    let supplier = supplier("two", 1);
    let grouped = grouped(&supplier, 1);
    let latch = Latch::new();
    let held = latch.clone();
    let slow = grouped.dispatch(
        Options::new("slow"),
        stream::iter([Ok::<_, Failure>("id")]),
        |id| id,
        move |_| Script::ready().until(&held),
    );
    // The same id in another dispatch does not wait: LS-9 holds in one dispatcher.
    let fast = grouped.dispatch(
        Options::new("fast"),
        stream::iter([Ok::<_, Failure>("id")]),
        |id| id,
        |_| Script::ready(),
    );
    assert_eq!(finish(fast).expect("no handler fails").handled, 1);
    latch.release();
    assert_eq!(finish(slow).expect("no handler fails").handled, 1);
}
