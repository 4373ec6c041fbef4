//! Closing finishes what was accepted and refuses the rest; nothing submitted is ever stranded.
//!
//! Observes KE-40, KE-41, KE-43, KF-9; scenarios T4, T6, T47. Force closing is force_close.rs.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{Cause, KeyedExecutor, RejectReason, SubmitRefusal, Terminated};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use wow_testkit::{Counter, History, Latch, Message, Script, Source, Tally, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Holds a worker in a task until the latch that is returned opens.
fn hold(executor: &KeyedExecutor, affinity: i64) -> Latch {
    let (held, go_on) = (Latch::new(), Latch::new());
    let (entered, until) = (held.clone(), go_on.clone());
    let task = move || {
        entered.release();
        until.wait();
    };
    executor.execute_pinned(affinity, task).expect("the executor is open");
    held.wait();
    go_on
}

#[test]
fn a_close_lets_every_accepted_task_run_and_rejects_the_others() {
    let executor = executor("shut-close", 1);
    let go_on = hold(&executor, 0);
    let ran = Counter::new();
    for _ in 0..10 {
        let ran = ran.clone();
        executor.execute_pinned(0, move || ran.add(1)).expect("the executor is open");
    }
    assert!(!executor.is_closed());
    executor.close();
    assert!(executor.is_closed());
    let text = "handed back".to_owned();
    let rejected = executor.execute_pinned(0, move || drop(text)).expect_err("the executor is closed");
    assert_eq!((&rejected.reason, ran.get()), (&RejectReason::Closed, 0));
    executor.execute(|| ()).expect_err("the executor is closed");
    go_on.release();
    executor.close();
    finish(executor.terminated());
    assert_eq!(ran.get(), 10);
    executor.close();
    executor.join().expect("this is no worker thread");
}

#[test]
fn a_close_lets_every_accepted_message_run() {
    let executor = executor("shut-msg", 2);
    let history = History::new(0, 10);
    let open = Latch::new();
    let gate = open.clone();
    let keyspace =
        executor.keyspace(move |message: Message| message.start().play(Script::ready().until(&gate)));
    for n in 0..100 {
        keyspace.try_submit(n % 10, history.issue(n % 10, 0)).expect("the window has room");
    }
    executor.close();
    let refused = keyspace.try_submit(0, history.issue(0, 0)).expect_err("the executor is closed");
    assert_eq!(refused.reason, SubmitRefusal::Closed);
    refused.into_message().refuse();
    let refused = finish(keyspace.submit(0, history.issue(0, 0))).expect_err("the executor is closed");
    refused.into_message().refuse();
    open.release();
    assert_eq!(finish(keyspace.drained()).handled, 100);
    finish(executor.terminated());
    let tally = history.verify();
    assert_eq!((tally.handled, tally.refused), (100, 2));
}

#[test]
fn a_close_ends_a_dispatch_once_what_it_accepted_is_done() {
    let executor = executor("shut-src", 2);
    let history = History::new(0, 10);
    let open = Latch::new();
    let gate = open.clone();
    let (source, feed) = Source::fed();
    feed.extend((0..20).map(|n| history.issue(n % 10, 0)));
    let dispatch = executor.dispatch(source, Message::key, move |message: Message| {
        message.start().play(Script::ready().until(&gate))
    });
    feed.taken().wait_for(20);
    executor.close();
    open.release();
    let error = finish(dispatch).expect_err("the source had not ended");
    assert!(matches!(error.cause, Cause::Closed), "the cause is {:?}", error.cause);
    assert_eq!((error.ledger.accepted, error.ledger.handled), (20, 20));
    assert_eq!(history.verify().handled, 20);
    finish(executor.terminated());
}

#[test]
fn a_dispatch_on_a_closed_executor_fails_and_handles_nothing() {
    let executor = executor("shut-late", 1);
    executor.close();
    let history = History::new(0, 1);
    let messages = [history.issue(0, 0)];
    let dispatch = executor.dispatch(stream::iter(messages), Message::key, |message: Message| async move {
        message.start().finish();
    });
    let error = finish(dispatch).expect_err("the executor is closed");
    assert!(matches!(error.cause, Cause::Closed), "the cause is {:?}", error.cause);
    assert_eq!(error.ledger.handled, 0);
    assert_eq!(history.verify(), Tally { issued: 1, discarded: 1, ..Tally::default() });
    let keyspace = executor.keyspace(|message: Message| async move { message.start().finish() });
    let refused = keyspace.try_submit(0, history.issue(0, 0)).expect_err("the executor is closed");
    assert_eq!(refused.reason, SubmitRefusal::Closed);
    refused.into_message().refuse();
    finish(executor.terminated());
}

#[test]
fn an_arrival_after_a_close_is_discarded_once() {
    let executor = executor("shut-arrive", 1);
    let history = History::new(0, 1);
    let (source, feed) = Source::fed();
    let dispatch =
        executor.dispatch(source, Message::key, |message: Message| async move { message.start().finish() });
    feed.push(history.issue(0, 0));
    eventually("the first message is handled", || history.tally().handled == 1);
    // A poll that began before the close may bring a message; a worker that sleeps is in none.
    eventually("the worker sleeps", || executor.metrics().workers[0].parked);
    executor.close();
    feed.push(history.issue(0, 0));
    let error = finish(dispatch).expect_err("the executor is closed");
    assert!(matches!(error.cause, Cause::Closed), "the cause is {:?}", error.cause);
    drop(feed);
    let expected = Tally { issued: 2, handled: 1, discarded: 1, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    finish(executor.terminated());
}

#[test]
fn tasks_that_race_with_a_close_run_or_are_rejected() {
    for round in 0..200 {
        let executor = executor("shut-race", 2);
        let ran = Counter::new();
        let submitters: Vec<_> = (0..3)
            .map(|submitter: i64| {
                let (executor, ran) = (executor.clone(), ran.clone());
                std::thread::spawn(move || {
                    (0..200)
                        .filter(|n| {
                            let ran = ran.clone();
                            executor.execute_pinned(submitter + n, move || ran.add(1)).is_err()
                        })
                        .count() as u64
                })
            })
            .collect();
        while round % 4 > 0 && ran.get() < round {
            std::thread::yield_now();
        }
        executor.close();
        let rejected: u64 =
            submitters.into_iter().map(|thread| thread.join().expect("no submitter panics")).sum();
        finish(executor.terminated());
        assert_eq!(ran.get() + rejected, 600, "in round {round} a task was stranded or ran twice");
    }
}

#[test]
fn messages_that_race_with_a_close_run_or_come_back() {
    for round in 0..200 {
        let executor = executor("shut-race2", 2);
        let history = History::bounded(round, 16, 256);
        let keyspace = executor.keyspace(|message: Message| {
            let elsewhere = message.id().number % 8 == 0;
            message.start().play(if elsewhere { Script::ready().elsewhere() } else { Script::ready() })
        });
        let submitters: Vec<_> = (0..3)
            .map(|producer| {
                let (history, keyspace) = (Arc::clone(&history), keyspace.clone());
                std::thread::spawn(move || {
                    for n in 0..200 {
                        let message = history.issue(n % 16, producer);
                        if let Err(error) = finish(keyspace.submit(n % 16, message)) {
                            assert_eq!(error.reason, SubmitRefusal::Closed);
                            error.into_message().refuse();
                        }
                    }
                })
            })
            .collect();
        while round % 4 > 0 && history.tally_of(0).handled < round % 30 {
            std::thread::yield_now();
        }
        executor.close();
        submitters.into_iter().for_each(|thread| thread.join().expect("no submitter panics"));
        let ledger = finish(keyspace.drained());
        finish(executor.terminated());
        let tally = history.verify();
        assert_eq!((tally.handled + tally.refused, ledger.handled), (600, tally.handled));
    }
}

#[test]
fn a_closed_keyspace_finishes_what_it_accepted() {
    let executor = executor("shut-keys", 1);
    let open = Latch::new();
    let gate = open.clone();
    let history = History::new(0, 5);
    let keyspace =
        executor.keyspace(move |message: Message| message.start().play(Script::ready().until(&gate)));
    for n in 0..10 {
        keyspace.try_submit(n % 5, history.issue(n % 5, 0)).expect("the window has room");
    }
    keyspace.close();
    keyspace.close();
    let refused = keyspace.try_submit(0, history.issue(0, 0)).expect_err("it is closed");
    assert_eq!(refused.reason, SubmitRefusal::Closed);
    refused.into_message().refuse();
    open.release();
    assert_eq!(finish(keyspace.drained()).handled, 10);
    assert_eq!(history.verify().handled, 10);
    // The executor is not closed with it.
    let next = executor.dispatch(stream::iter(0..10_u32), |n: &u32| *n, |_| async {});
    assert_eq!(finish(next).expect("no handler fails").handled, 10);
    executor.close();
}

#[test]
fn the_last_clone_of_a_keyspace_closes_it() {
    let executor = executor("shut-clone", 1);
    let handler_dropped = Latch::new();
    struct Handler(Latch);
    impl Drop for Handler {
        fn drop(&mut self) {
            self.0.release();
        }
    }
    let handler = Handler(handler_dropped.clone());
    let history = History::new(0, 1);
    let keyspace = executor.keyspace(move |message: Message| {
        let _held = &handler;
        message.start().play(Script::ready().yields(1))
    });
    let other = keyspace.clone();
    drop(keyspace);
    finish(other.submit(0, history.issue(0, 0))).expect("one clone is left");
    let drained = other.drained();
    drop(other);
    assert_eq!(finish(drained).handled, 1);
    handler_dropped.wait();
    assert_eq!(history.verify().handled, 1);
    executor.close();
}

#[test]
fn waiting_for_an_executor_is_refused_on_its_own_worker() {
    let executor = executor("shut-join", 1);
    let (itself, refused) = (executor.clone(), Latch::new());
    let done = refused.clone();
    let task = move || {
        itself.join().expect_err("this is a worker thread");
        done.release();
    };
    executor.execute(task).expect("the executor is open");
    refused.wait();
    executor.close();
    executor.join().expect("this is no worker thread");
}

/// Counts its wakes.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn everybody_who_waits_for_the_threads_is_woken_by_the_last_waker_that_was_given() {
    let executor = executor("shut-wakers", 1);
    let go_on = hold(&executor, 0);
    let woken: [Arc<Woken>; 3] = Default::default();
    let wakers = woken.clone().map(Waker::from);
    let (mut one, mut other) = (executor.terminated(), executor.terminated());
    // One of them is polled again, with another waker.
    let poll = |waiting: &mut Terminated, waker: &Waker| {
        let polled = Pin::new(waiting).poll(&mut Context::from_waker(waker));
        assert!(polled.is_pending(), "a thread is there");
    };
    poll(&mut one, &wakers[0]);
    poll(&mut other, &wakers[1]);
    poll(&mut one, &wakers[2]);
    // One that waits no more takes nobody else off the list.
    let mut gone = executor.terminated();
    poll(&mut gone, &wakers[0]);
    drop((wakers, gone));
    assert_eq!(Arc::strong_count(&woken[0]), 1, "the wakers that were replaced or given up are dropped");
    executor.close();
    go_on.release();
    executor.join().expect("this is no worker thread");
    let times = || woken.each_ref().map(|woken| woken.0.load(Ordering::Relaxed));
    eventually("both are woken", || times() == [0, 1, 1]);
    finish(one);
    finish(other);
}

#[test]
fn workers_that_sleep_end_when_the_last_source_of_a_closed_executor_is_gone() {
    let executor = KeyedExecutor::builder()
        .name("shut-last")
        .workers(2)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let (source, feed) = Source::<u32>::fed();
    let dispatch = executor.dispatch(source, |n| *n, |_| async {});
    feed.dry().wait_for(1);
    // The worker that asks the source is the one that was started for it; the other one is started by a task.
    let home =
        executor.metrics().workers.iter().position(|worker| worker.running).expect("it asks the source");
    let go_on = hold(&executor, home as i64);
    let other = 1 - home;
    executor.execute_pinned(other as i64, || ()).expect("the executor is open");
    let parks = || executor.metrics().workers[other].parks;
    eventually("the other one sleeps", || parks() >= 1 && executor.metrics().workers[other].parked);
    let before = parks();
    executor.close();
    eventually("it looked and sleeps again", || parks() > before && executor.metrics().workers[other].parked);
    go_on.release();
    finish(dispatch).expect_err("the executor was closed");
    executor.join().expect("this is no worker thread");
}
