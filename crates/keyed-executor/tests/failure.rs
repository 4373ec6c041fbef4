//! The first failure ends a dispatch: its cause is told, what runs is cancelled, what waits is dropped once.
//!
//! Observes KF-1 to KF-5, KF-8; scenarios T38 to T43, T45, T49.
#![cfg(not(keyed_loom))]

use futures_util::{StreamExt, stream};
use keyed_executor::{Cause, DispatchError, KeyedExecutor, OnFailure, Options, SubmitRefusal};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;
use wow_testkit::{Counter, Failure, History, Latch, Message, Script, Source, Tally, finish, finish_within};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

fn failure(text: &str) -> Failure {
    Failure(text.to_owned())
}

#[test]
fn a_failing_handler_ends_the_dispatch_with_its_own_error() {
    let executor = executor("fail-own", 2);
    let history = History::new(0, 10);
    let (source, feed) = Source::fed();
    let started = Counter::new();
    let begun = started.clone();
    let dispatch = executor.dispatch(source, Message::key, move |message: Message| {
        let script =
            if message.key() == 0 { Script::ready().never() } else { Script::ready().fails("no such thing") };
        let running = message.start();
        begun.add(1);
        running.play(script)
    });
    feed.extend((0..3).map(|_| history.issue(0, 0)));
    feed.taken().wait_for(3);
    started.wait_for(1);
    feed.push(history.issue(9, 0));
    let DispatchError { cause, ledger } = finish(dispatch).expect_err("key 9 failed");
    match cause {
        Cause::Handler { key, error } => assert_eq!((key.as_str(), error), ("9", failure("no such thing"))),
        other => panic!("the cause is {other:?}"),
    }
    assert_eq!(
        (ledger.accepted, ledger.handled, ledger.failed, ledger.cancelled, ledger.discarded),
        (4, 0, 1, 1, 2)
    );
    let expected = Tally { issued: 4, failed: 1, cancelled: 1, discarded: 2, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    feed.dropped().wait();
    executor.close();
}

#[test]
fn a_failing_source_cancels_what_runs() {
    let executor = executor("fail-src", 1);
    let history = History::new(0, 2);
    let (source, feed) = Source::fed();
    let started = Counter::new();
    let begun = started.clone();
    let dispatch = executor.try_dispatch(source, Message::key, move |message: Message| {
        let running = message.start();
        begun.add(1);
        running.play(Script::ready().never())
    });
    feed.push(Ok(history.issue(0, 0)));
    feed.push(Ok(history.issue(0, 0)));
    started.wait_for(1);
    feed.push(Err(failure("connection lost")));
    let DispatchError { cause, ledger } = finish(dispatch).expect_err("the source failed");
    assert!(
        matches!(&cause, Cause::Source(error) if *error == failure("connection lost")),
        "the cause is {cause:?}"
    );
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (2, 1, 1));
    let expected = Tally { issued: 2, cancelled: 1, discarded: 1, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    assert!(feed.dropped().is_released());
    executor.close();
}

#[test]
fn a_key_selector_that_panics_discards_its_message_and_ends_the_dispatch() {
    let executor = executor("fail-key", 1);
    let history = History::new(0, 3);
    let messages: Vec<_> = (0..3).map(|key| history.issue(key, 0)).collect();
    let selector = |message: &Message| {
        assert!(message.key() != 1, "no key for this one");
        message.key()
    };
    let dispatch = executor.dispatch(stream::iter(messages), selector, |message: Message| async move {
        message.start().finish();
    });
    let DispatchError { cause, .. } = finish(dispatch).expect_err("the selector panicked");
    assert!(
        matches!(&cause, Cause::KeyPanicked { message } if message.contains("no key for this one")),
        "the cause is {cause:?}"
    );
    let tally = history.verify();
    assert_eq!(tally.handled + tally.discarded, 3);
    assert_eq!((history.tally_of(1).discarded, history.tally_of(2).discarded), (1, 1));
    executor.close();
}

#[test]
fn a_handler_that_panics_instead_of_returning_counts_as_failed() {
    let executor = executor("fail-call", 1);
    let history = History::new(0, 1);
    let dispatch =
        executor.dispatch(stream::iter([history.issue(0, 0)]), Message::key, |message: Message| {
            let running = message.start();
            if running.id().number == 0 {
                panic!("before any future");
            }
            running.play(Script::ready())
        });
    let DispatchError { cause, ledger } = finish(dispatch).expect_err("the handler panicked");
    match cause {
        Cause::HandlerPanicked { key, message } => {
            assert_eq!((key.as_str(), message.as_str()), ("0", "before any future"));
        }
        other => panic!("the cause is {other:?}"),
    }
    assert_eq!((ledger.accepted, ledger.failed), (1, 1));
    assert_eq!(history.verify().panicked, 1);
    executor.close();
}

#[test]
fn a_panic_ends_its_dispatch_and_neither_the_worker_nor_another_dispatch() {
    // At the first poll, and after the handler had been waiting.
    for script in [Script::ready, || Script::ready().elsewhere().yields(1)] {
        let executor = executor("fail-panic", 1);
        let sick = executor.dispatch(stream::iter([7_u32]), |n: &u32| *n, move |_| script().panics("sick"));
        let error = finish(sick).expect_err("the handler panicked");
        assert!(
            matches!(&error.cause, Cause::HandlerPanicked { key, message } if key == "7" && message == "sick"),
            "the cause is {:?}",
            error.cause
        );
        let healthy =
            executor.dispatch(stream::iter(0..100_u32), |n: &u32| *n % 7, |_| Script::ready().yields(1));
        assert_eq!(finish(healthy).expect("no handler fails").handled, 100);
        executor.close();
    }
}

#[test]
fn the_first_failure_is_the_result_and_a_later_one_is_only_counted() {
    // One handler is to hold its worker, and all that was placed there with it.
    let executor = KeyedExecutor::builder()
        .name("fail-first")
        .workers(2)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let (entered, second_may_fail) = (Counter::new(), Latch::new());
    let source_thread: Arc<OnceLock<ThreadId>> = Arc::default();
    let (source, feed) = Source::fed();
    let (noted, begun, gate) = (Arc::clone(&source_thread), entered.clone(), second_may_fail.clone());
    let source = source.inspect(move |_| {
        noted.get_or_init(|| thread::current().id());
    });
    let dispatch = executor.dispatch(
        source,
        |text: &String| text.clone(),
        move |text| {
            let beside_the_source = source_thread.get() != Some(&thread::current().id());
            let (begun, gate) = (begun.clone(), gate.clone());
            async move {
                if text.starts_with("first") {
                    begun.add(1);
                    return Err(Failure(text));
                }
                // Work enough that not all of it stays with the source.
                black_box((0..100_000).fold(0, |sum: u64, n| black_box(sum.wrapping_add(n))));
                if !beside_the_source {
                    return Script::ready().never().await;
                }
                // Holds its worker inside one step: it cannot be cancelled before it fails by itself.
                begun.add(1);
                gate.wait();
                Err(Failure("second".to_owned()))
            }
        },
    );
    feed.extend((0..100).map(|n| format!("work {n}")));
    entered.wait_for(1);
    // A key may be placed behind the held worker before that is known; it fails nothing and will be dropped.
    for n in 0..100 {
        feed.push(format!("first {n}"));
        if finish_within(Duration::from_millis(10), entered.reached(2)).is_some() {
            break;
        }
    }
    feed.dropped().wait();
    second_may_fail.release();
    let DispatchError { cause, ledger } = finish(dispatch).expect_err("both failed");
    match cause {
        Cause::Handler { error: Failure(text), .. } => {
            assert!(text.starts_with("first"), "{text} is the result")
        }
        other => panic!("the cause is {other:?}"),
    }
    assert_eq!((ledger.failed, ledger.accepted), (2, 2 + ledger.cancelled + ledger.discarded));
    executor.close();
}

#[test]
fn a_source_is_left_alone_after_its_end() {
    let executor = executor("fail-end", 2);
    let open = Latch::new();
    let gate = open.clone();
    let (source, feed) = Source::over(0..20_u32);
    let dispatch = executor.dispatch(source, |n: &u32| *n, move |_| Script::ready().until(&gate));
    feed.taken().wait_for(20);
    wow_testkit::eventually("the end was seen", || feed.polls().get() == 21);
    open.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 20);
    assert_eq!(feed.polls_after_end(), 0);
    executor.close();
}

#[test]
fn what_arrives_after_the_failure_is_dropped_and_never_handled() {
    let executor = executor("fail-late", 1);
    let history = History::new(0, 1);
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch(source, Message::key, |message: Message| async move {
        message.start().play(Script::ready().fails("at once")).await
    });
    feed.extend((0..10).map(|_| history.issue(0, 0)));
    finish(dispatch).expect_err("the first message failed");
    feed.push(history.issue(0, 0));
    drop(feed);
    let expected = Tally { issued: 11, failed: 1, discarded: 10, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    executor.close();
}

#[test]
fn told_to_continue_a_dispatch_counts_failures_and_its_keys_go_on() {
    let executor = executor("fail-on", 2);
    let history = History::bounded(0, 5, 256);
    let messages: Vec<_> = (0..100).map(|n| history.issue(n % 5, 0)).collect();
    let options = Options::new("test").on_failure(OnFailure::Continue);
    let dispatch =
        executor.dispatch_with(options, stream::iter(messages), Message::key, |message: Message| {
            let script = match message.id().number % 4 {
                0 => Script::ready(),
                1 => Script::ready().fails("told to"),
                2 => Script::ready().panics("told to"),
                _ => Script::ready().yields(1).fails("told to"),
            };
            message.start().play(script)
        });
    let ledger = finish(dispatch).expect("it was told to continue");
    assert_eq!((ledger.accepted, ledger.handled, ledger.failed), (100, 25, 75));
    let tally = history.verify();
    assert_eq!((tally.handled, tally.failed, tally.panicked), (25, 50, 25));
    executor.close();
}

#[test]
fn told_to_fail_a_keyspace_refuses_what_comes_after_the_failure() {
    let executor = executor("fail-door", 1);
    let history = History::new(0, 2);
    let options = Options::new("test").on_failure(OnFailure::Fail);
    let keyspace = executor.keyspace_with(options, |message: Message| {
        let script =
            if message.key() == 0 { Script::ready().never() } else { Script::ready().fails("the end") };
        message.start().play(script)
    });
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    keyspace.try_submit(1, history.issue(1, 0)).expect("the window has room");
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.failed, ledger.cancelled, ledger.discarded), (3, 1, 1, 1));
    let refused = keyspace.try_submit(0, history.issue(0, 0)).expect_err("the keyspace failed");
    assert_eq!(refused.reason, SubmitRefusal::Failed);
    refused.into_message().refuse();
    let waiting = keyspace.submit(0, history.issue(0, 0));
    let refused = finish(waiting).expect_err("the keyspace failed");
    assert_eq!(refused.reason, SubmitRefusal::Failed);
    refused.into_message().refuse();
    let expected = Tally { issued: 5, failed: 1, cancelled: 1, discarded: 1, refused: 2, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    executor.close();
}

#[test]
fn a_failure_is_shared_by_nobody_else() {
    let executor = executor("fail-alone", 2);
    let open = Latch::new();
    let gate = open.clone();
    let other =
        executor.dispatch(stream::iter(0..50_u32), |n: &u32| *n, move |_| Script::ready().until(&gate));
    let sick = executor.dispatch(stream::iter(0..50_u32), |n: &u32| *n, |_| Script::ready().fails("sick"));
    finish(sick).expect_err("the first handler failed");
    open.release();
    assert_eq!(finish(other).expect("no handler of it fails").handled, 50);
    executor.close();
}
