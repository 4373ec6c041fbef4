//! Cancelling ends what runs, drops what waits, and leaves nothing behind.
//!
//! Observes KM-22, KM-24, KF-7, KF-8, KF-11, KF-12; scenarios T46, T48.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{Cause, KeyedExecutor, SubmitRefusal};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;
use wow_testkit::{Counter, History, Latch, Message, Script, Seed, Source, Tally, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Notes the thread on which it is dropped.
struct DroppedOn(Arc<Mutex<Vec<String>>>);

impl Drop for DroppedOn {
    fn drop(&mut self) {
        let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
        self.0.lock().expect("nothing panics here").push(name);
    }
}

#[test]
fn cancelling_a_dispatch_drops_its_source_its_handlers_and_its_queue() {
    let executor = executor("can-all", 1);
    let history = History::new(0, 1);
    let threads = Arc::new(Mutex::new(Vec::new()));
    let started = Counter::new();
    let (source, feed) = Source::fed();
    let (begun, noted) = (started.clone(), Arc::clone(&threads));
    let dispatch = executor.dispatch(source, Message::key, move |message: Message| {
        begun.add(1);
        let dropped_on = DroppedOn(Arc::clone(&noted));
        let playing = message.start().play(Script::ready().never());
        async move {
            let _dropped_on = dropped_on;
            playing.await
        }
    });
    feed.extend((0..2).map(|_| history.issue(0, 0)));
    feed.taken().wait_for(2);
    started.wait_for(1);
    let canceller = dispatch.canceller();
    dispatch.cancel();
    dispatch.cancel();
    canceller.cancel();
    let error = finish(dispatch).expect_err("it was cancelled");
    assert!(matches!(error.cause, Cause::Cancelled), "the cause is {:?}", error.cause);
    assert_eq!((error.ledger.accepted, error.ledger.cancelled, error.ledger.discarded), (2, 1, 1));
    let expected = Tally { issued: 2, cancelled: 1, discarded: 1, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    assert!(feed.dropped().is_released());
    // After the end a cancel means nothing.
    canceller.cancel();
    let threads = threads.lock().expect("nothing panics here");
    assert_eq!(*threads, ["can-all-1"], "a running handler has to be dropped on its worker");
    executor.close();
}

#[test]
fn a_message_behind_a_busy_worker_is_dropped_and_never_handled() {
    let executor = executor("can-busy", 1);
    let history = History::new(0, 10);
    let (held, go_on) = (Latch::new(), Latch::new());
    let (entered, until) = (held.clone(), go_on.clone());
    let keyspace = executor.keyspace(|message: Message| async move { message.start().finish() });
    executor
        .execute_pinned(0, move || {
            entered.release();
            until.wait();
        })
        .expect("the executor is open");
    held.wait();
    for n in 0..10 {
        keyspace.try_submit(n, history.issue(n, 0)).expect("the window has room");
    }
    keyspace.cancel();
    go_on.release();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.handled, ledger.discarded), (10, 0, 10));
    assert_eq!(history.verify().discarded, 10);
    executor.close();
}

#[test]
fn dropping_a_dispatch_cancels_it() {
    let executor = executor("can-drop", 2);
    let history = History::new(0, 50);
    let messages: Vec<_> = (0..50).map(|key| history.issue(key, 0)).collect();
    let started = Counter::new();
    let begun = started.clone();
    let dispatch = executor.dispatch(stream::iter(messages), Message::key, move |message: Message| {
        begun.add(1);
        message.start().play(Script::ready().never())
    });
    started.wait_for(10);
    drop(dispatch);
    eventually("every message ended", || history.tally().open() == 0);
    let tally = history.verify();
    assert_eq!(tally.cancelled + tally.discarded, 50);
    executor.close();
}

#[test]
fn a_detached_dispatch_goes_on() {
    let executor = executor("can-detach", 2);
    let history = History::new(0, 50);
    let messages: Vec<_> = (0..50).map(|key| history.issue(key, 0)).collect();
    let open = Latch::new();
    let gate = open.clone();
    let dispatch = executor.dispatch(stream::iter(messages), Message::key, move |message: Message| {
        message.start().play(Script::ready().until(&gate))
    });
    dispatch.detach();
    open.release();
    eventually("every message ended", || history.tally().open() == 0);
    assert_eq!(history.verify().handled, 50);
    executor.close();
}

#[test]
fn a_detached_dispatch_keeps_its_executor_open_until_it_ended() {
    let executor = executor("can-keep", 1);
    let (source, feed) = Source::fed();
    let handled = Counter::new();
    let count = handled.clone();
    executor
        .dispatch(
            source,
            |n: &u32| *n,
            move |_| {
                count.add(1);
                Script::ready()
            },
        )
        .detach();
    feed.dry().wait_for(1);
    // The last handle of the executor: nothing else would keep it open.
    drop(executor);
    feed.extend(0..100);
    handled.wait_for(100);
    feed.end();
    feed.dropped().wait();
}

#[test]
fn a_cancelled_keyspace_hands_later_messages_back() {
    let executor = executor("can-door", 2);
    let history = History::new(0, 4);
    let started = Counter::new();
    let begun = started.clone();
    let keyspace = executor.keyspace(move |message: Message| {
        begun.add(1);
        message.start().play(Script::ready().never())
    });
    for n in 0..8 {
        keyspace.try_submit(n % 4, history.issue(n % 4, 0)).expect("the window has room");
    }
    started.wait_for(4);
    keyspace.cancel();
    keyspace.clone().cancel();
    let refused = keyspace.try_submit(0, history.issue(0, 0)).expect_err("it was cancelled");
    assert_eq!(refused.reason, SubmitRefusal::Closed);
    refused.into_message().refuse();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (8, 4, 4));
    let tally = history.verify();
    assert_eq!((tally.cancelled, tally.discarded, tally.refused), (4, 4, 1));
    executor.close();
}

#[test]
fn a_submission_that_waits_is_woken_by_a_cancel_and_handed_back() {
    let executor = KeyedExecutor::builder()
        .name("can-wait")
        .workers(1)
        .max_in_flight(1)
        .build()
        .expect("the settings are in range");
    let history = History::new(0, 1);
    let keyspace = executor.keyspace(|message: Message| message.start().play(Script::ready().never()));
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    let mut waiting = Box::pin(keyspace.submit(0, history.issue(0, 0)));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let canceller = keyspace.clone();
    let thread = std::thread::spawn(move || canceller.cancel());
    let refused = finish(waiting).expect_err("it was cancelled");
    assert_eq!(refused.reason, SubmitRefusal::Closed);
    refused.into_message().refuse();
    thread.join().expect("cancelling does not panic");
    finish(keyspace.drained());
    let tally = history.verify();
    assert_eq!((tally.cancelled + tally.discarded, tally.refused), (1, 1));
    executor.close();
}

#[test]
fn an_arrival_that_races_with_a_cancel_ends_exactly_once() {
    let seed = Seed::from_env("CANCEL_SEED");
    let _told = seed.told_on_panic("CANCEL_SEED");
    let mut rng = seed.rng();
    let executor = executor("can-race", 2);
    for _ in 0..200 {
        let history = History::bounded(seed.0, 4, 256);
        let (source, feed) = Source::fed();
        let dispatch = executor.dispatch(source, Message::key, |message: Message| {
            let script = match message.id().number % 3 {
                0 => Script::ready().never(),
                1 => Script::ready().elsewhere(),
                _ => Script::ready(),
            };
            message.start().play(script)
        });
        let (pushed, cancel_at) = (Arc::clone(&history), rng.below(60));
        let taken = feed.taken().clone();
        let canceller = dispatch.canceller();
        let producer = std::thread::spawn(move || {
            for n in 0..100 {
                feed.push(pushed.issue(n % 4, 0));
            }
        });
        taken.wait_for(cancel_at);
        canceller.cancel();
        let error = finish(dispatch).expect_err("it was cancelled");
        producer.join().expect("pushing does not panic");
        let tally = history.verify();
        let ledger = error.ledger;
        assert_eq!((tally.issued, tally.handled, tally.cancelled), (100, ledger.handled, ledger.cancelled));
        assert_eq!(ledger.accepted, ledger.handled + ledger.cancelled + ledger.discarded);
        assert!(tally.discarded >= ledger.discarded);
    }
    executor.close();
}

#[test]
fn a_submission_that_races_with_a_cancel_ends_exactly_once() {
    let executor = executor("can-race2", 2);
    for round in 0..200 {
        let history = History::bounded(round, 4, 256);
        let keyspace = executor.keyspace(|message: Message| {
            let never = message.id().number % 3 == 0;
            message.start().play(if never { Script::ready().never() } else { Script::ready().yields(1) })
        });
        let producers: Vec<_> = (0..2)
            .map(|producer| {
                let (history, keyspace) = (Arc::clone(&history), keyspace.clone());
                std::thread::spawn(move || {
                    for n in 0..50 {
                        if let Err(refused) = keyspace.try_submit(n % 4, history.issue(n % 4, producer)) {
                            refused.into_message().refuse();
                        }
                    }
                })
            })
            .collect();
        keyspace.cancel();
        producers.into_iter().for_each(|producer| producer.join().expect("submitting does not panic"));
        let ledger = finish(keyspace.drained());
        let tally = history.verify();
        assert_eq!(ledger.accepted + tally.refused, 100);
        assert_eq!(
            (ledger.handled, ledger.cancelled, ledger.discarded),
            (tally.handled, tally.cancelled, tally.discarded)
        );
    }
    executor.close();
}

#[test]
fn cancelling_one_dispatch_leaves_another_alone() {
    let executor = executor("can-one", 1);
    let open = Latch::new();
    let gate = open.clone();
    let other =
        executor.dispatch(stream::iter(0..50_u32), |n: &u32| *n, move |_| Script::ready().until(&gate));
    let (source, _feed) = Source::<u32>::fed();
    let cancelled = executor.dispatch(source, |n: &u32| *n, |_| async {});
    cancelled.cancel();
    finish(cancelled).expect_err("it was cancelled");
    open.release();
    assert_eq!(finish(other).expect("no handler fails").handled, 50);
    executor.close();
}

#[test]
fn a_cancel_that_comes_while_a_handler_runs_lets_it_end_its_step() {
    let executor = executor("can-step", 1);
    let history = History::new(0, 1);
    let (entered, go_on) = (Latch::new(), Latch::new());
    let (inside, until) = (entered.clone(), go_on.clone());
    let keyspace = executor.keyspace(move |message: Message| {
        let (inside, until) = (inside.clone(), until.clone());
        async move {
            let running = message.start();
            inside.release();
            until.wait();
            // Its step goes on to here, and no further: the wait that follows never ends.
            running.play(Script::ready().after(Duration::ZERO).never()).await
        }
    });
    for _ in 0..3 {
        keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    }
    entered.wait();
    keyspace.cancel();
    go_on.release();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (3, 1, 2));
    let tally = history.verify();
    assert_eq!((tally.cancelled, tally.discarded), (1, 2));
    executor.close();
}

/// Polls `future` so many times and drops it.
fn cut<F: Future>(future: F, polls: usize) {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
}

#[test]
fn our_own_futures_may_be_dropped_after_any_number_of_polls() {
    for polls in 0..4 {
        let executor = KeyedExecutor::builder()
            .name("can-cut")
            .workers(1)
            .max_in_flight(2)
            .build()
            .expect("the settings are in range");
        let history = History::bounded(0, 2, 2);
        let open = Latch::new();
        let gate = open.clone();
        let keyspace =
            executor.keyspace(move |message: Message| message.start().play(Script::ready().until(&gate)));
        for key in 0..2 {
            keyspace.try_submit(key, history.issue(key, 0)).expect("the window has room");
        }
        for key in 0..2 {
            cut(keyspace.submit(key, history.issue(key, 0)), polls);
            cut(keyspace.drained(), polls);
            cut(executor.terminated(), polls);
        }
        open.release();
        for key in 0..2 {
            finish(keyspace.submit(key, history.issue(key, 0))).expect("the keyspace is open");
        }
        assert_eq!(finish(keyspace.drained()).handled, 4);
        let expected = Tally { issued: 6, handled: 4, discarded: 2, ..Tally::default() };
        assert_eq!(history.verify(), expected);
        executor.close();
        finish(executor.terminated());
    }
}
