//! A new key goes where it waits least: to another worker when one is held, to different ones when all sleep.
//!
//! Observes KE-20, KE-21, KE-22 as refined by B-11; scenario T3. Which of several free workers gets a key is not
//! promised; that a key does not wait behind a handler known to hold its thread is.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wow_testkit::{Counter, Latch, after, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

fn thread() -> String {
    std::thread::current().name().unwrap_or("unnamed").to_owned()
}

/// Longer than a wake-up costs, so that a handler that runs for so long is known to hold its worker. It may take
/// longer: nothing is concluded from when it ends.
fn a_while() {
    finish(after(Duration::from_millis(5)));
}

/// Starts every worker and waits until all of them sleep.
fn all_asleep(executor: &KeyedExecutor) {
    let workers = executor.config().workers;
    let done = Counter::new();
    for affinity in 0..workers {
        let done = done.clone();
        let affinity = i64::try_from(affinity).expect("few workers");
        executor.execute_pinned(affinity, move || done.add(1)).expect("the executor is open");
    }
    done.wait_for(workers as u64);
    eventually("all workers sleep", || executor.metrics().workers.iter().all(|worker| worker.parked));
}

#[test]
fn each_handler_that_holds_its_thread_gets_a_worker_of_its_own() {
    const WORKERS: usize = 4;
    let executor = executor("plc-own", WORKERS);
    let (held_on, started, go_on) = (Arc::new(Mutex::new(BTreeSet::new())), Counter::new(), Latch::new());
    let (names, begun, until) = (Arc::clone(&held_on), started.clone(), go_on.clone());
    let keyspace: Keyspace<usize, usize> = executor.keyspace(move |_| {
        let (names, begun, until) = (Arc::clone(&names), begun.clone(), until.clone());
        async move {
            names.lock().expect("nothing panics here").insert(thread());
            begun.add(1);
            until.wait();
        }
    });
    for key in 0..WORKERS {
        keyspace.try_submit(key, key).expect("the window has room");
        // Would not come to pass if this key were placed behind one that is held.
        started.wait_for(key as u64 + 1);
        a_while();
    }
    assert_eq!(held_on.lock().expect("nothing panics here").len(), WORKERS);
    go_on.release();
    finish(keyspace.drained());
    executor.close();
}

#[test]
fn a_held_worker_gets_no_new_key_while_another_is_free() {
    let executor = executor("plc-held", 2);
    let (started, go_on, others) = (Latch::new(), Latch::new(), Counter::new());
    let (begun, until, done) = (started.clone(), go_on.clone(), others.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        let (begun, until, done) = (begun.clone(), until.clone(), done.clone());
        async move {
            if n == 0 {
                begun.release();
                until.wait();
            } else {
                done.add(1);
            }
        }
    });
    keyspace.try_submit(0, 0).expect("the window has room");
    started.wait();
    a_while();
    for n in 1..=200 {
        keyspace.try_submit(n, n).expect("the window has room");
    }
    others.wait_for(200);
    assert_eq!(keyspace.in_flight(), 1);
    go_on.release();
    assert_eq!(finish(keyspace.drained()).handled, 201);
    executor.close();
}

#[test]
fn a_source_beside_a_held_worker_goes_on() {
    let executor = executor("plc-src", 2);
    let (others, go_on) = (Counter::new(), Latch::new());
    let (done, until) = (others.clone(), go_on.clone());
    let (source, feed) = wow_testkit::Source::fed();
    let hold: Keyspace<u32, Latch> = executor.keyspace(move |entered: Latch| {
        let until = until.clone();
        async move {
            entered.release();
            until.wait();
        }
    });
    let entered = Latch::new();
    hold.try_submit(0, entered.clone()).expect("the window has room");
    entered.wait();
    a_while();
    let dispatch = executor.dispatch(
        source,
        |n: &u32| *n,
        move |_| {
            let done = done.clone();
            async move {
                done.add(1);
            }
        },
    );
    feed.extend(0..200);
    others.wait_for(200);
    feed.end();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 200);
    go_on.release();
    assert_eq!(finish(hold.drained()).handled, 1);
    executor.close();
}

#[test]
fn two_keys_for_two_sleeping_workers_go_to_different_ones() {
    let executor = executor("plc-two", 2);
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&names);
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
        seen.lock().expect("nothing panics here").push(thread());
        async {}
    });
    for n in 0..2 {
        all_asleep(&executor);
        keyspace.try_submit(n, n).expect("the window has room");
        finish(keyspace.drained());
    }
    let names = names.lock().expect("nothing panics here");
    assert_ne!(names[0], names[1], "both keys went to one of two sleeping workers");
    executor.close();
}

#[test]
fn long_handlers_spread_over_the_workers() {
    const WORKERS: usize = 3;
    const EACH: usize = 20;
    let executor = executor("plc-share", WORKERS);
    let placements: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let counted = Arc::clone(&placements);
    let gates: Arc<Vec<Latch>> = Arc::new((0..EACH).map(|_| Latch::new()).collect());
    let begun: Arc<Vec<Counter>> = Arc::new((0..EACH).map(|_| Counter::new()).collect());
    let (held, started) = (Arc::clone(&gates), Arc::clone(&begun));
    let keyspace: Keyspace<usize, usize> = executor.keyspace(move |round: usize| {
        let (counted, held, started) = (Arc::clone(&counted), Arc::clone(&held), Arc::clone(&started));
        async move {
            *counted.lock().expect("nothing panics here").entry(thread()).or_default() += 1;
            started[round].add(1);
            held[round].wait();
        }
    });
    for round in 0..EACH {
        for n in 0..WORKERS {
            keyspace.try_submit(round * WORKERS + n, round).expect("the window has room");
            begun[round].wait_for(n as u64 + 1);
            a_while();
        }
        gates[round].release();
        finish(keyspace.drained());
    }
    let placements = placements.lock().expect("nothing panics here");
    assert_eq!(
        placements.values().copied().collect::<Vec<_>>(),
        [EACH; WORKERS],
        "placements: {placements:?}"
    );
    executor.close();
}

#[test]
fn a_mailbox_keeps_its_worker_for_its_whole_life() {
    let executor = executor("plc-keep", 3);
    let names: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let (started, open) = (Counter::new(), Latch::new());
    let (seen, begun, gate) = (Arc::clone(&names), started.clone(), open.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
        seen.lock().expect("nothing panics here").insert(thread());
        begun.add(1);
        let (seen, gate) = (Arc::clone(&seen), gate.clone());
        async move {
            gate.released().await;
            seen.lock().expect("nothing panics here").insert(thread());
        }
    });
    for n in 0..50 {
        keyspace.try_submit(0, n).expect("the window has room");
    }
    started.wait_for(1);
    open.release();
    finish(keyspace.drained());
    assert_eq!(names.lock().expect("nothing panics here").len(), 1);
    executor.close();
}
