//! A source's message that finds its key full is kept until there is room; the source waits, and what was accepted goes on.
//!
//! Observes B-1 and KW-2 at the source's door: the back-pressure of a full key, and that the message that was set aside ends
//! exactly once whatever happens: room, a cancel, a failure, a close, a forced close, a stuck thread.
#![cfg(not(keyed_loom))]

#[path = "common/settle.rs"]
mod settle;

use keyed_executor::{Cause, KeyedExecutor, Options};
use settle::settle;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use wow_testkit::{Counter, Feed, History, Latch, Message, Source, after, eventually, finish};

fn options(limit: usize, overflow: usize) -> Options {
    Options::new("aside").max_per_key(limit).overflow(overflow)
}

/// A dispatch whose messages of key 0 wait for a latch, with one of them set aside.
struct Aside {
    executor: KeyedExecutor,
    history: Arc<History>,
    feed: Feed<Message>,
    open: Latch,
    started: Counter,
    done: Counter,
    dispatch: keyed_executor::Dispatch<&'static str>,
}

/// What the messages of key 0 do once their latch is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    End,
    Fail,
}

impl Aside {
    /// Two of key 0 are in, one more is set aside, two of key 1 are behind it in the source.
    fn new(name: &str, workers: usize, then: Then) -> Self {
        let executor = KeyedExecutor::builder()
            .name(name)
            .workers(workers)
            .max_in_flight(16)
            .build()
            .expect("the settings are in range");
        let history = History::bounded(0, 8, 16);
        let (open, started, done) = (Latch::new(), Counter::new(), Counter::new());
        let (gate, begun, ended) = (open.clone(), started.clone(), done.clone());
        let (source, feed) = Source::fed();
        let dispatch =
            executor.dispatch_with(options(1, 1), source, Message::key, move |message: Message| {
                let (gate, ended) = (gate.clone(), ended.clone());
                begun.add(1);
                let running = message.start();
                async move {
                    if running.id().key == 0 {
                        gate.released().await;
                        if then == Then::Fail {
                            running.fail();
                            return Err("told to");
                        }
                    }
                    running.finish();
                    ended.add(1);
                    Ok(())
                }
            });
        for key in [0, 0, 2, 0, 1, 1] {
            feed.push(history.issue(key, 0));
        }
        // The message before the one that is set aside ends beside the full key.
        done.wait_for(1);
        feed.taken().wait_for(4);
        Self { executor, history, feed, open, started, done, dispatch }
    }

    /// Nothing behind the message that was set aside has been asked for.
    fn is_set_aside(&self) {
        settle(&self.executor);
        assert_eq!((self.feed.taken().get(), self.started.get(), self.done.get()), (4, 2, 1));
    }
}

#[test]
fn the_source_of_a_full_key_waits_and_goes_on_in_order_when_the_key_has_room() {
    for workers in [1, 3] {
        let aside = Aside::new("as-room", workers, Then::End);
        aside.is_set_aside();
        aside.open.release();
        aside.feed.end();
        let ledger = finish(aside.dispatch).expect("no handler fails");
        assert_eq!((ledger.accepted, ledger.handled), (6, 6));
        assert_eq!(aside.history.verify().handled, 6);
        aside.executor.close();
    }
}

#[test]
fn room_that_another_worker_makes_is_taken_though_the_sources_worker_sleeps() {
    let executor = KeyedExecutor::builder()
        .name("as-wake")
        .workers(2)
        // What comes back makes a batch of demand by fours: a single message is none.
        .max_in_flight(64)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let thread = || std::thread::current().id();
    let (open, done) = (Latch::new(), Counter::new());
    let (polled_on, ran_on) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let (gate, ended, asked, ran) = (open.clone(), done.clone(), Arc::clone(&polled_on), Arc::clone(&ran_on));
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch_with(
        options(1, 0),
        source,
        move |n: &u32| {
            *asked.lock().expect("nothing panics here") = Some(thread());
            *n
        },
        move |n| {
            let (gate, ended, ran) = (gate.clone(), ended.clone(), Arc::clone(&ran));
            async move {
                if n == 0 {
                    // It costs more than a wake-up, so that the next new key goes to a worker that sleeps.
                    finish(after(Duration::from_millis(1)));
                } else {
                    ran.lock().expect("nothing panics here").push(thread());
                    gate.released().await;
                }
                ended.add(1);
            }
        },
    );
    feed.push(0);
    done.wait_for(1);
    // The second one of this key finds it full.
    feed.extend([1, 1]);
    feed.taken().wait_for(3);
    eventually("both workers sleep", || {
        let metrics = executor.metrics();
        metrics.parked() == 2 && metrics.in_flight() == 1
    });
    open.release();
    done.wait_for(3);
    let (home, ran_on) = (*polled_on.lock().expect("nothing panics"), ran_on.lock().expect("nothing panics"));
    assert_ne!(home, Some(ran_on[0]), "the room was made by the source's own worker");
    feed.end();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 3);
    executor.close();
}

#[test]
fn a_message_that_was_set_aside_is_dropped_once_when_its_dispatch_is_cancelled_or_fails() {
    for then in [Then::End, Then::Fail] {
        let aside = Aside::new("as-stop", 1, then);
        match then {
            Then::End => aside.dispatch.cancel(),
            Then::Fail => aside.open.release(),
        }
        let error = finish(aside.dispatch).expect_err("it was stopped");
        let (failed, cancelled) = if then == Then::Fail { (1, 0) } else { (0, 1) };
        match (then, &error.cause) {
            (Then::End, Cause::Cancelled) | (Then::Fail, Cause::Handler { .. }) => {}
            (_, other) => panic!("{then:?}: {other}"),
        }
        let ledger = error.ledger;
        assert_eq!((ledger.handled, ledger.failed, ledger.cancelled), (1, failed, cancelled), "{then:?}");
        // One waited behind the running one, one was aside.
        assert_eq!((ledger.accepted, ledger.discarded), (4, 2), "{then:?}");
        drop(aside.feed);
        eventually("what the source still held is gone", || aside.history.tally().discarded == 4);
        aside.history.verify();
        aside.executor.close();
    }
}

#[test]
fn a_close_handles_what_was_set_aside() {
    let aside = Aside::new("as-close", 1, Then::End);
    aside.executor.close();
    aside.feed.dropped().wait();
    aside.open.release();
    let error = finish(aside.dispatch).expect_err("its source had not ended");
    assert!(matches!(error.cause, Cause::Closed), "{}", error.cause);
    assert_eq!((error.ledger.accepted, error.ledger.handled), (4, 4));
    finish(aside.executor.terminated());
}

/// Holds the worker in a task until the latch that is returned opens.
fn hold(executor: &KeyedExecutor) -> Latch {
    let (held, go_on) = (Latch::new(), Latch::new());
    let (entered, until) = (held.clone(), go_on.clone());
    let task = move || {
        entered.release();
        until.wait();
    };
    executor.execute_pinned(0, task).expect("the executor is open");
    held.wait();
    go_on
}

/// Notes the thread on which it is dropped.
struct Noting(u32, Arc<Mutex<Vec<(u32, ThreadId)>>>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.1.lock().expect("nothing panics here").push((self.0, std::thread::current().id()));
    }
}

#[test]
fn a_force_close_drops_what_was_set_aside_on_the_calling_thread() {
    let executor = KeyedExecutor::builder()
        .name("as-force")
        .workers(1)
        .max_in_flight(16)
        .build()
        .expect("the settings are in range");
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let (source, feed) = Source::fed();
    feed.extend((0..4).map(|n| Noting(n, Arc::clone(&dropped))));
    let begun = Counter::new();
    let started = begun.clone();
    let dispatch = executor.dispatch_with(
        options(1, 1),
        source,
        |_: &Noting| 0,
        move |noting| {
            started.add(1);
            async move {
                std::future::pending::<()>().await;
                drop(noting);
            }
        },
    );
    feed.taken().wait_for(3);
    begun.wait_for(1);
    let go_on = hold(&executor);
    executor.force_close();
    let here = std::thread::current().id();
    let on: Vec<(u32, ThreadId)> = dropped.lock().expect("nothing panics here").clone();
    for n in 0..3 {
        assert!(on.contains(&(n, here)), "{n} was not dropped by this thread before it returned: {on:?}");
    }
    go_on.release();
    let ledger = finish(dispatch).expect_err("it was closed").ledger;
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (3, 1, 2));
    finish(executor.terminated());
}

#[test]
fn what_was_set_aside_survives_the_loss_of_the_seat() {
    let executor = KeyedExecutor::builder()
        .name("as-rescue")
        .workers(1)
        .max_in_flight(16)
        .rescue_threads(4)
        .build()
        .expect("the settings are in range");
    let history = History::bounded(0, 8, 16);
    let (open, stuck, inside, done) = (Latch::new(), Latch::new(), Latch::new(), Counter::new());
    let (gate, hold, entered, ended) = (open.clone(), stuck.clone(), inside.clone(), done.clone());
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch_with(options(1, 1), source, Message::key, move |message: Message| {
        let (gate, hold, entered, ended) = (gate.clone(), hold.clone(), entered.clone(), ended.clone());
        let running = message.start();
        async move {
            match running.id().key {
                0 => gate.released().await,
                1 => {
                    // Holds its thread until the seat has gone on without it.
                    entered.release();
                    hold.wait();
                }
                _ => {}
            }
            running.finish();
            ended.add(1);
        }
    });
    // Key 0 is full and one of it is aside; key 1 is queued on the same worker and then blocks it.
    for key in [0, 0, 1, 0, 2] {
        feed.push(history.issue(key, 0));
    }
    inside.wait();
    feed.taken().wait_for(4);
    open.release();
    // All but the stuck one, on another thread: what was aside, and what was behind it in the source.
    done.wait_for(4);
    stuck.release();
    feed.end();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 5);
    assert_eq!(history.verify().handled, 5);
    executor.close();
    finish(executor.terminated());
}
