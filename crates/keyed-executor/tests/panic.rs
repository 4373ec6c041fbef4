//! A panic ends its message and nothing else: not the worker, not the key, not the window.
//!
//! Observes KE-30, KE-34, KF-3, KF-5; scenarios T9, T12, T13, T41, T42, T43.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{Cause, KeyedExecutor, Keyspace};
use std::hash::{Hash, Hasher};
use std::panic::panic_any;
use std::sync::{Arc, Mutex};
use wow_testkit::{Counter, History, Message, Script, Tally, finish};

fn executor(name: &str) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(1).build().expect("the settings are in range")
}

/// Panics when it is dropped, unless a panic drops it.
#[derive(Debug)]
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

#[test]
fn a_key_goes_on_after_a_panic_wherever_it_comes_from() {
    let executor = executor("pan-key");
    let history = History::bounded(0, 3, 256);
    let keyspace = executor.keyspace(|message: Message| {
        let number = message.id().number;
        let running = message.start();
        if number % 5 == 1 {
            panic!("in the call");
        }
        let script = match number % 5 {
            0 => Script::ready(),
            2 => Script::ready().panics("at the first poll"),
            3 => Script::ready().yields(2).panics("after a wake of its own"),
            _ => Script::ready().elsewhere().panics("after a wake from elsewhere"),
        };
        running.play(script)
    });
    finish(async {
        for n in 0..300 {
            let key = n % 3;
            keyspace.submit(key, history.issue(key, 0)).await.expect("the keyspace goes on");
        }
    });
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.handled, ledger.failed), (300, 60, 240));
    assert_eq!(history.verify(), Tally { issued: 300, handled: 60, panicked: 240, ..Tally::default() });
    assert_eq!(keyspace.in_flight(), 0);
    executor.close();
}

#[test]
fn the_text_of_a_panic_is_told_whatever_its_payload() {
    let executor = executor("pan-text");
    let told = |panic: fn()| {
        let dispatch =
            executor.dispatch(stream::iter([1_u32]), |n: &u32| *n, move |_| async move { panic() });
        match finish(dispatch).expect_err("the handler panicked").cause {
            Cause::HandlerPanicked { key, message } if key == "1" => message,
            other => panic!("the cause is {other:?}"),
        }
    };
    assert_eq!(told(|| panic!("a literal")), "a literal");
    assert_eq!(told(|| panic!("made of {}", 2)), "made of 2");
    assert_eq!(told(|| panic_any("a text".to_owned())), "a text");
    assert!(!told(|| panic_any(42_u64)).is_empty(), "a payload without a text has to be told somehow");
    executor.close();
}

#[test]
fn a_payload_that_panics_when_dropped_does_no_more_harm_than_another() {
    let executor = executor("pan-load");
    let keyspace: Keyspace<u32, u32> = executor.keyspace(|n| async move {
        if n == 0 {
            panic_any(Bomb("the payload"));
        }
    });
    for n in 0..10 {
        keyspace.try_submit(0, n).expect("the window has room");
    }
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.handled, ledger.failed), (9, 1));
    executor.close();
}

#[test]
fn a_future_that_panics_when_dropped_ends_its_own_message_only() {
    let executor = executor("pan-drop");
    let done = Counter::new();
    let counted = done.clone();
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        let bomb = (n == 0).then(|| Bomb("the future"));
        let counted = counted.clone();
        async move {
            // Dropped with the future's last step, after its work was done.
            let _at_the_end = bomb;
            counted.add(1);
        }
    });
    for n in 0..10 {
        keyspace.try_submit(0, n).expect("the window has room");
    }
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.handled + ledger.failed, done.get()), (10, 10, 10));
    assert_eq!(keyspace.in_flight(), 0);
    executor.close();
}

#[test]
fn a_cancelled_future_that_panics_when_dropped_stops_no_cancel() {
    let executor = executor("pan-cancel");
    let started = Counter::new();
    let begun = started.clone();
    let history = History::new(0, 10);
    let keyspace = executor.keyspace(move |message: Message| {
        begun.add(1);
        let bomb = Bomb("the cancelled future");
        let playing = message.start().play(Script::ready().never());
        async move {
            let _bomb = bomb;
            playing.await.expect("it never ends");
        }
    });
    for n in 0..20 {
        keyspace.try_submit(n % 10, history.issue(n % 10, 0)).expect("the window has room");
    }
    started.wait_for(10);
    keyspace.cancel();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (20, 10, 10));
    assert_eq!(history.verify().discarded, 10);
    let task_ran = Counter::new();
    let ran = task_ran.clone();
    executor.execute_pinned(0, move || ran.add(1)).expect("the worker lives");
    task_ran.wait_for(1);
    executor.close();
}

#[test]
fn a_message_that_panics_when_dropped_stops_no_discard() {
    let executor = executor("pan-msg");
    let discarded = Counter::new();
    struct Last(Counter, bool);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.add(1);
            assert!(!self.1, "the message");
        }
    }
    let started = Counter::new();
    let begun = started.clone();
    let keyspace: Keyspace<u32, Last> = executor.keyspace(move |message: Last| {
        begun.add(1);
        // Only those that never reach the handler are to be counted.
        std::mem::forget(message);
        std::future::pending::<()>()
    });
    for n in 0..10 {
        keyspace.try_submit(0, Last(discarded.clone(), n % 3 == 1)).expect("the window has room");
    }
    started.wait_for(1);
    keyspace.cancel();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.cancelled + ledger.discarded, discarded.get()), (10, 10, 9));
    executor.close();
}

#[test]
fn a_source_that_panics_ends_its_dispatch_with_that_cause() {
    let executor = executor("pan-src");
    let items = (0..10_u32).inspect(|&n| assert!(n != 5, "the source is broken"));
    let dispatch = executor.dispatch(stream::iter(items), |n: &u32| *n, |_| async {});
    let error = finish(dispatch).expect_err("the source panicked");
    assert!(
        matches!(&error.cause, Cause::SourcePanicked { message } if message == "the source is broken"),
        "the cause is {:?}",
        error.cause
    );
    assert_eq!((error.ledger.accepted, error.ledger.handled + error.ledger.discarded), (5, 5));
    executor.close();
}

/// A key whose hash panics for one value.
#[derive(Debug, PartialEq, Eq)]
struct Moody(u32);

impl Hash for Moody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(self.0 != 13, "not this one");
        self.0.hash(state);
    }
}

#[test]
fn a_key_whose_hash_panics_ends_a_dispatch_and_leaves_the_executor_whole() {
    let executor = executor("pan-hash");
    let dispatch = executor.dispatch(stream::iter(0..20_u32), |n: &u32| Moody(*n), |_| async {});
    let error = finish(dispatch).expect_err("the hash panicked");
    assert!(matches!(&error.cause, Cause::KeyPanicked { .. }), "the cause is {:?}", error.cause);
    let next = executor.dispatch(stream::iter(14..20_u32), |n: &u32| Moody(*n), |_| async {});
    assert_eq!(finish(next).expect("no key panics").handled, 6);
    executor.close();
}

#[test]
fn a_task_that_panics_leaves_its_worker_alive_and_in_order() {
    let executor = executor("pan-task");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let done = Counter::new();
    let note = |n: u32| {
        let (seen, done) = (Arc::clone(&seen), done.clone());
        move || {
            let thread = std::thread::current().id();
            seen.lock().expect("no task panics here").push((n, thread));
            done.add(1);
        }
    };
    executor.execute_pinned(0, note(0)).expect("the executor is open");
    executor.execute_pinned(0, || panic!("a task")).expect("the executor is open");
    executor.execute_pinned(0, || panic_any(Bomb("a task's payload"))).expect("the executor is open");
    for n in 1..3 {
        executor.execute_pinned(0, note(n)).expect("the executor is open");
    }
    done.wait_for(3);
    let seen = seen.lock().expect("no task panics here");
    assert!(seen.iter().map(|(n, _)| *n).eq(0..3));
    assert!(seen.iter().all(|(_, thread)| *thread == seen[0].1), "the tasks moved to another thread");
    executor.close();
}
