//! Counters and gauges tell what the workers act on: never below zero, and zero again when nothing is left.
//!
//! Observes X10, B-6, MT-6: gauges under load through both doors, turns by their lengths, refusals by reason, failures,
//! panics and discards, busy and parked workers, and the age of the oldest unfinished message.
#![cfg(not(keyed_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream;
use keyed_executor::{
    DispatchMetrics, KeyedExecutor, Keyspace, Ledger, OnFailure, Options, Refused, SubmitRefusal,
};
use wow_testkit::{Latch, Script, Source, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

fn of(executor: &KeyedExecutor, label: &str) -> DispatchMetrics {
    let found = executor.metrics().dispatches.into_iter().find(|dispatch| dispatch.label == label);
    found.expect("something of the dispatch is left")
}

#[test]
fn gauges_stay_within_the_window_under_load_and_are_zero_when_nothing_is_left() {
    const MESSAGES: u64 = 20_000;
    let executor = executor("fig-load", 2);
    let options = |label: &str| Options::new(label).max_in_flight(32).on_failure(OnFailure::Continue);
    let handler = |n: u64| match n % 5 {
        0 => Script::ready().yields(2),
        1 => Script::ready().elsewhere(),
        _ => Script::ready(),
    };
    let keyspace = executor.keyspace_with(options("submitted"), handler);
    let dispatch = executor.dispatch_with(options("pulled"), stream::iter(0..MESSAGES), |n| *n % 50, handler);
    let done = Arc::new(AtomicBool::new(false));
    let (looked, over) = (executor.clone(), Arc::clone(&done));
    let looker = std::thread::spawn(move || {
        let mut looks = 0;
        while !over.load(Ordering::Relaxed) || looks == 0 {
            for dispatch in looked.metrics().dispatches {
                assert!(dispatch.in_flight <= 32, "{dispatch:?}");
                assert!(dispatch.live_mailboxes <= 32, "{dispatch:?}");
                assert!(dispatch.ready <= 32 && dispatch.waiting <= 32, "{dispatch:?}");
            }
            looks += 1;
        }
    });
    // Half of the submitters give up while they wait.
    for n in 0..MESSAGES / 4 {
        if let Err(refused) = keyspace.try_submit(n % 40, n) {
            let submission = keyspace.submit(n % 40, refused.into_message());
            if n % 2 == 0 {
                finish(submission).expect("the keyspace is open");
            }
        }
    }
    finish(keyspace.drained());
    finish(dispatch).expect("no handler fails");
    done.store(true, Ordering::Relaxed);
    looker.join().expect("no gauge left its bounds");
    let metrics = keyspace.metrics();
    assert_eq!((metrics.in_flight, metrics.oldest_unfinished), (0, None));
    eventually("every gauge is zero", || {
        let metrics = executor.metrics();
        let gauges = [metrics.in_flight(), metrics.live_mailboxes(), metrics.ready()];
        gauges == [0; 3] && metrics.workers.iter().all(|worker| worker.ready + worker.live_mailboxes == 0)
    });
    executor.close();
}

#[test]
fn refusals_are_counted_by_reason() {
    let executor = executor("fig-refuse", 1);
    let options = Options::new("orders").max_in_flight(2).on_failure(OnFailure::Fail);
    let keyspace: Keyspace<u32, Option<Latch>> =
        executor.keyspace_with(options, |gate: Option<Latch>| match gate {
            Some(gate) => Script::ready().until(&gate),
            None => Script::ready().fails("told to"),
        });
    let gate = Latch::new();
    for key in 0..2 {
        keyspace.try_submit(key, Some(gate.clone())).expect("there is room");
    }
    for _ in 0..3 {
        let refused = keyspace.try_submit(2, None).expect_err("the window is full");
        assert_eq!(refused.reason, SubmitRefusal::Full);
    }
    gate.release();
    finish(keyspace.drained());
    finish(keyspace.submit(0, None)).expect("there is room");
    finish(keyspace.drained());
    let refused = finish(keyspace.submit(0, None)).expect_err("it failed");
    assert_eq!(refused.reason, SubmitRefusal::Failed);
    keyspace.close();
    let refused = keyspace.try_submit(0, None).expect_err("it is closed");
    assert_eq!(refused.reason, SubmitRefusal::Closed);
    let counted = keyspace.metrics().refused;
    assert_eq!(counted, Refused { full: 3, closed: 1, failed: 1, ..Refused::default() });
    assert_eq!(counted.total(), 5);
    executor.close();
    executor.execute(|| {}).expect_err("it is closed");
    assert_eq!(executor.metrics().rejected_tasks, 1);
}

#[test]
fn the_sum_of_the_refusals_has_every_reason() {
    let refused =
        Refused { full: 1, key_full: 2, bytes_full: 4, too_large: 8, closed: 16, failed: 32, no_worker: 64 };
    assert_eq!(refused.total(), 127);
}

#[test]
fn the_live_keys_of_a_keyspace_are_those_with_a_message_in_flight() {
    let executor = executor("fig-live", 2);
    let gate = Latch::new();
    let held = gate.clone();
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| Script::ready().until(&held));
    assert_eq!(keyspace.live_keys(), 0);
    for n in 0..9 {
        keyspace.try_submit(n % 3, n).expect("there is room");
    }
    assert_eq!((keyspace.live_keys(), keyspace.in_flight()), (3, 9));
    gate.release();
    finish(keyspace.drained());
    assert_eq!(keyspace.live_keys(), 0);
    executor.close();
}

#[test]
fn what_a_ledger_has_in_flight_is_what_has_not_ended() {
    let ledger = Ledger { accepted: 100, handled: 1, failed: 2, cancelled: 4, discarded: 8 };
    assert_eq!(ledger.in_flight(), 85);
    assert_eq!(Ledger { accepted: 15, ..ledger }.in_flight(), 0);
    assert_eq!(Ledger { accepted: 14, ..ledger }.in_flight(), 0, "read while they change");
}

#[test]
fn the_gauges_of_the_workers_the_dispatches_and_the_executor_add_up() {
    let executor =
        KeyedExecutor::builder().name("fig-sum").workers(1).rescue_threads(0).build().expect("in range");
    let waits = |_: u32| Script::ready().never();
    let submitted: Keyspace<u32, u32> = executor.keyspace_with(Options::new("submitted"), waits);
    for key in 0..3 {
        submitted.try_submit(key, key).expect("there is room");
        submitted.try_submit(key, key).expect("there is room");
    }
    let (source, feed) = Source::fed();
    let pulled = executor.dispatch_with(Options::new("pulled"), source, |n: &u32| *n, waits);
    feed.extend([1, 2]);
    eventually("all of them wait", || {
        of(&executor, "submitted").waiting == 3 && of(&executor, "pulled").waiting == 2
    });
    // A task keeps the worker until the messages of a third one lie in its inbox; the first of them then holds it.
    let (arrived, entered, gate) = (Latch::new(), Latch::new(), Latch::new());
    let (begun, held) = (Latch::new(), arrived.clone());
    let told = begun.clone();
    executor
        .execute(move || {
            told.release();
            held.wait();
        })
        .expect("it is open");
    begun.wait();
    let (inside, stays) = (entered.clone(), gate.clone());
    let ready: Keyspace<u32, u32> = executor.keyspace_with(Options::new("ready"), move |n| {
        if n == 0 {
            inside.release();
            stays.wait();
        }
        std::future::ready(())
    });
    for key in 0..3 {
        ready.try_submit(key, key).expect("there is room");
    }
    arrived.release();
    entered.wait();
    let metrics = executor.metrics();
    let told: Vec<_> = metrics
        .dispatches
        .iter()
        .map(|of| (&*of.label, of.in_flight, of.live_mailboxes, of.ready, of.waiting))
        .collect();
    assert_eq!(told, [("submitted", 6, 3, 0, 3), ("pulled", 2, 2, 0, 2), ("ready", 3, 3, 2, 0)]);
    assert_eq!((metrics.in_flight(), metrics.live_mailboxes(), metrics.ready()), (11, 8, 2));
    assert_eq!((metrics.workers[0].live_mailboxes, metrics.workers[0].ready), (8, 2));
    gate.release();
    drop(pulled);
    executor.close();
}

#[test]
fn however_many_dispatches_are_open_each_is_told_and_none_that_is_gone() {
    let executor = executor("fig-many", 1);
    let mut open = Vec::new();
    for n in 0..100 {
        let keyspace: Keyspace<u32, u32> = executor.keyspace_with(Options::new(n.to_string()), |_| async {});
        if n % 3 == 0 {
            open.push(keyspace);
        }
    }
    let expected: Vec<String> = (0..100).step_by(3).map(|n: u32| n.to_string()).collect();
    eventually("those that were let go are gone", || executor.metrics().dispatches.len() == open.len());
    let labels: Vec<String> =
        executor.metrics().dispatches.into_iter().map(|dispatch| dispatch.label).collect();
    assert_eq!(labels, expected);
    executor.close();
}

#[test]
fn turns_are_told_by_the_messages_they_finished() {
    // Without spares: a turn whose seat was taken ends otherwise.
    let builder = KeyedExecutor::builder().name("fig-turns").workers(1).throughput(4).rescue_threads(0);
    let executor = builder.build().expect("in range");
    let (inside, gate) = (Latch::new(), Latch::new());
    let (entered, held) = (inside.clone(), gate.clone());
    let keyspace: Keyspace<&str, u32> = executor.keyspace(move |n| {
        if n == 0 {
            entered.release();
            held.wait();
        }
        std::future::ready(())
    });
    keyspace.try_submit("held", 0).expect("there is room");
    inside.wait();
    for n in 1..=10 {
        keyspace.try_submit("hot", n).expect("there is room");
    }
    let waiting = keyspace.metrics();
    assert_eq!((waiting.in_flight, waiting.live_mailboxes), (11, 1), "{waiting:?}");
    gate.release();
    finish(keyspace.drained());
    let metrics = keyspace.metrics();
    // "held": one turn of one; "hot": 4, 4 and 2.
    let turns: Vec<_> = metrics.turns.buckets().filter(|(_, turns)| *turns > 0).collect();
    assert_eq!(turns, [(1..=1, 1), (2..=3, 1), (4..=7, 2)]);
    assert_eq!((metrics.turns.total(), executor.metrics().workers[0].turns), (4, 4));
    executor.close();
}

#[test]
fn failures_panics_and_what_is_dropped_are_counted() {
    let executor = executor("fig-ends", 1);
    let keyspace: Keyspace<u32, u32> = executor.keyspace(|n| match n {
        0 => Script::ready().fails("told to"),
        1 => Script::ready().panics("told to"),
        2 => Script::ready(),
        _ => Script::ready().never(),
    });
    for n in [0, 0, 1, 2, 3] {
        keyspace.try_submit(n, n).expect("there is room");
    }
    // Behind the one that never ends.
    for _ in 0..4 {
        keyspace.try_submit(3, 3).expect("there is room");
    }
    eventually("one waits", || keyspace.metrics().waiting == 1);
    keyspace.cancel();
    finish(keyspace.drained());
    let DispatchMetrics { handled, failed, panicked, cancelled, discarded, .. } = keyspace.metrics();
    assert_eq!((handled, failed, panicked, cancelled, discarded), (1, 3, 1, 1, 4));
    let worker = &executor.metrics().workers[0];
    assert_eq!((worker.failures, worker.panics, worker.discards), (3, 1, 4));
    executor.close();
}

#[test]
fn workers_are_told_busy_or_parked() {
    let executor = executor("fig-busy", 2);
    assert_eq!((executor.metrics().busy(), executor.metrics().parked()), (0, 0), "no thread yet");
    let (inside, gate) = (Latch::new(), Latch::new());
    let (entered, held) = (inside.clone(), gate.clone());
    executor
        .execute(move || {
            entered.release();
            held.wait();
        })
        .expect("it is open");
    inside.wait();
    assert_eq!((executor.metrics().busy(), executor.metrics().parked()), (1, 0));
    gate.release();
    eventually("it sleeps", || (executor.metrics().busy(), executor.metrics().parked()) == (0, 1));
    let parks = executor.metrics().workers.iter().map(|worker| worker.parks).sum::<u64>();
    assert!(parks >= 1, "its sleep was counted");
    executor.execute(|| {}).expect("it is open");
    executor.execute(|| {}).expect("it is open");
    eventually("the sleep was measured", || {
        executor.metrics().workers.iter().any(|worker| worker.parked_for > Duration::ZERO)
    });
    executor.close();
}

#[test]
fn the_oldest_unfinished_message_has_an_age_whatever_holds_it() {
    const OLD: Duration = Duration::from_millis(20);
    let executor = executor("fig-age", 2);
    let gate = Latch::new();
    let (waits, blocks) = (gate.clone(), gate.clone());
    let waiting: Keyspace<u32, u32> =
        executor.keyspace_with(Options::new("waits"), move |_| Script::ready().until(&waits));
    let blocking: Keyspace<u32, u32> =
        executor.keyspace_with(Options::new("blocks"), move |_| Script::ready().blocks_until(&blocks));
    let idle: Keyspace<u32, u32> = executor.keyspace_with(Options::new("idle"), |_| async {});
    waiting.try_submit(1, 1).expect("there is room");
    eventually("it waits", || waiting.metrics().waiting == 1);
    blocking.try_submit(1, 1).expect("there is room");
    for label in ["waits", "blocks"] {
        eventually("its message is old", || {
            of(&executor, label).oldest_unfinished.is_some_and(|age| age > OLD)
        });
    }
    assert_eq!(idle.metrics().oldest_unfinished, None);
    assert!(executor.metrics().oldest_unfinished().is_some_and(|age| age > OLD));
    gate.release();
    finish(waiting.drained());
    finish(blocking.drained());
    assert_eq!(executor.metrics().oldest_unfinished(), None);
    executor.close();
}
