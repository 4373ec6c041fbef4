//! Few threads, named, started when first needed, and none lost to a panic.
//!
//! Observes KE-2, KE-5, KE-12, KE-13, KE-30, KE-40; scenarios T3, T7, T8, T9, T12. Every test gives its executor a name of
//! its own, so that threads of tests that run beside it are not counted.
#![cfg(all(not(keyed_loom), target_os = "linux"))]

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use wow_testkit::threads;
use wow_testkit::{Counter, History, Latch, Message, Script, eventually, finish, finish_within};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Runs one task and waits for it.
fn run_one(executor: &KeyedExecutor, affinity: i64) {
    let done = Latch::new();
    let ran = done.clone();
    executor.execute_pinned(affinity, move || ran.release()).expect("the executor is open");
    done.wait();
}

#[test]
fn no_thread_starts_before_there_is_work() {
    let executor = executor("wrk-lazy", 3);
    assert_eq!(threads::count("wrk-lazy-"), 0);
    let keyspace: Keyspace<u32, u32> = executor.keyspace(|_| async {});
    assert_eq!(threads::count("wrk-lazy-"), 0);
    run_one(&executor, 1);
    assert_eq!(threads::count("wrk-lazy-"), 1);
    run_one(&executor, 1);
    assert_eq!(threads::count("wrk-lazy-"), 1);
    drop(keyspace);
    executor.close();
    finish(executor.terminated());
    eventually("the threads are gone", || threads::count("wrk-lazy-") == 0);
}

#[test]
fn closing_starts_no_thread() {
    for force in [false, true] {
        let executor = executor("wrk-none", 3);
        let keyspace: Keyspace<u32, u32> = executor.keyspace(|_| async {});
        if force {
            executor.force_close();
        } else {
            executor.close();
        }
        executor.execute(|| ()).expect_err("the executor is closed");
        keyspace.try_submit(0, 0).expect_err("the executor is closed");
        finish(executor.terminated());
        executor.join().expect("this is no worker thread");
        assert_eq!(threads::count("wrk-none-"), 0);
    }
}

#[test]
fn threads_are_named_after_the_executor_and_counted_from_one() {
    let executor = executor("wrk-name", 3);
    (0..3).for_each(|affinity| run_one(&executor, affinity));
    let names: Vec<_> = threads::named("wrk-name-").into_iter().map(|thread| thread.name).collect();
    assert_eq!(names, ["wrk-name-1", "wrk-name-2", "wrk-name-3"]);
    executor.close();
}

#[test]
fn thirty_dispatches_share_the_threads_of_one_executor() {
    let executor = executor("wrk-many", 2);
    let open = Latch::new();
    let started = Counter::new();
    let dispatches: Vec<_> = (0..30)
        .map(|_| {
            let (gate, begun) = (open.clone(), started.clone());
            executor.dispatch(
                stream::iter(0..7_u32),
                |n: &u32| *n,
                move |_| {
                    begun.add(1);
                    Script::ready().until(&gate)
                },
            )
        })
        .collect();
    started.wait_for(30 * 7);
    assert_eq!(threads::count("wrk-many-"), 2);
    open.release();
    for dispatch in dispatches {
        assert_eq!(finish(dispatch).expect("no handler fails").handled, 7);
    }
    assert_eq!(threads::count("wrk-many-"), 2);
    executor.close();
}

#[test]
fn tasks_without_affinity_go_round_the_workers() {
    let executor = executor("wrk-round", 3);
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let done = Counter::new();
    for _ in 0..9 {
        let (seen, done) = (Arc::clone(&threads), done.clone());
        let task = move || {
            seen.lock().expect("no task panics").push(std::thread::current().id());
            done.add(1);
        };
        executor.execute(task).expect("the executor is open");
    }
    done.wait_for(9);
    let seen = threads.lock().expect("no task panics");
    let count = |thread| seen.iter().filter(|&&other| other == thread).count();
    assert!(
        seen.iter().all(|&thread| count(thread) == 3),
        "three workers did not get three tasks each: {seen:?}"
    );
    executor.close();
}

#[test]
fn a_panicking_task_does_not_cost_a_thread() {
    let executor = executor("wrk-panic", 2);
    let done = Counter::new();
    executor.execute_pinned(0, || panic!("the first task")).expect("the executor is open");
    for affinity in [0, 1, 0, 1] {
        let done = done.clone();
        executor.execute_pinned(affinity, move || done.add(1)).expect("the executor is open");
    }
    done.wait_for(4);
    let names: Vec<_> = threads::named("wrk-panic-").into_iter().map(|thread| thread.name).collect();
    assert_eq!(names, ["wrk-panic-1", "wrk-panic-2"]);
    executor.close();
}

#[test]
fn worker_threads_never_keep_the_process_alive() {
    let executor = executor("wrk-daemon", 1);
    let history = History::new(0, 1);
    let keyspace = executor.keyspace(|message: Message| message.start().play(Script::ready().never()));
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    let drained = keyspace.drained();
    assert!(finish_within(Duration::ZERO, drained).is_none());
    // The test process ends although this worker still has a handler: nothing joins it.
    std::mem::forget((keyspace, executor));
}
