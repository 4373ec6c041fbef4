//! No more messages are unfinished than the window allows, and those that are stuck leave the rest of it usable.
//!
//! Observes KW-1 to KW-9, KD-4; scenarios T22, T23, T33, X4, X10.
#![cfg(not(keyed_loom))]

#[path = "common/settle.rs"]
mod settle;
#[path = "common/windowed.rs"]
mod windowed;

use keyed_executor::{Keyspace, SubmitRefusal};
use settle::settle;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use windowed::executor;
use wow_testkit::{Counter, History, Latch, Level, Message, Script, Source, finish};

#[test]
fn a_source_is_asked_for_the_window_and_not_for_more() {
    let executor = executor("bp-exact", 1, 8);
    let (started, open) = (Counter::new(), Latch::new());
    let (begun, gate) = (started.clone(), open.clone());
    let (source, feed) = Source::over(0..100_u32);
    let dispatch = executor.dispatch(
        source,
        |n: &u32| *n,
        move |_| {
            begun.add(1);
            Script::ready().until(&gate)
        },
    );
    started.wait_for(8);
    settle(&executor);
    assert_eq!((feed.taken().get(), started.get()), (8, 8));
    open.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 100);
    executor.close();
}

#[test]
fn stuck_keys_leave_the_rest_of_the_window_to_others() {
    let executor = executor("bp-stuck", 1, 16);
    let (fast, open) = (Counter::new(), Latch::new());
    let (done, gate) = (fast.clone(), open.clone());
    let (source, _feed) = Source::over(0..108_u32);
    let dispatch = executor.dispatch(
        source,
        |n: &u32| *n,
        move |n| {
            let (done, gate) = (done.clone(), gate.clone());
            async move {
                if n < 8 {
                    gate.released().await;
                } else {
                    Script::ready().yields(1).await.expect("this script does not fail");
                    done.add(1);
                }
            }
        },
    );
    fast.wait_for(100);
    open.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 108);
    executor.close();
}

#[test]
fn a_window_of_one_is_strictly_serial_and_alive() {
    let executor = executor("bp-one", 3, 1);
    let history = History::bounded(0, 10, 1);
    let level = Arc::new(Level::new());
    let (issued, taken) = (Arc::clone(&history), Arc::clone(&level));
    let (source, _feed) = Source::over((0..100).map(move |n| {
        taken.rise();
        issued.issue(n % 10, 0)
    }));
    let handled = Arc::clone(&level);
    let dispatch = executor.dispatch(source, Message::key, move |message: Message| {
        let handled = Arc::clone(&handled);
        async move {
            let elsewhere = message.id().number % 2 == 0;
            let script = if elsewhere { Script::ready().elsewhere() } else { Script::ready() };
            message.start().play(script).await.expect("this script does not fail");
            handled.fall();
        }
    });
    finish(dispatch).expect("no handler fails");
    assert_eq!((history.verify().handled, level.peak()), (100, 1));

    let keyspace: Keyspace<u32, u32> = executor.keyspace(|_| Script::ready().elsewhere());
    finish(async {
        for n in 0..100 {
            keyspace.submit(n % 10, n).await.expect("the keyspace is open");
        }
    });
    assert_eq!(finish(keyspace.drained()).handled, 100);
    executor.close();
}

#[test]
fn more_keys_than_the_window_never_stop_progress() {
    const KEYS: usize = 100_000;
    let executor = executor("bp-x4", 4, 256);
    let history = History::bounded(0, KEYS, 256);
    let level = Arc::new(Level::new());
    let (issued, taken) = (Arc::clone(&history), Arc::clone(&level));
    let (source, _feed) = Source::over((0..KEYS).chain((0..KEYS).rev()).map(move |key| {
        taken.rise();
        issued.issue(key, 0)
    }));
    let ended = Arc::clone(&level);
    let dispatch = executor.dispatch(source, Message::key, move |message: Message| {
        let ended = Arc::clone(&ended);
        async move {
            let script = if message.key() % 5 == 0 { Script::ready().yields(1) } else { Script::ready() };
            message.start().play(script).await.expect("this script does not fail");
            ended.fall();
        }
    });
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 2 * KEYS as u64);
    assert_eq!(history.verify().handled, 2 * KEYS as u64);
    assert!(level.peak() <= 256, "{} were unfinished at once", level.peak());
    executor.close();
}

#[test]
fn demand_returns_in_batches_of_a_sixteenth_of_the_window() {
    let executor = executor("bp-batch", 1, 64);
    let started = Counter::new();
    let gates: Arc<Vec<Latch>> = Arc::new((0..64).map(|_| Latch::new()).collect());
    let (begun, held) = (started.clone(), Arc::clone(&gates));
    let (source, feed) = Source::fed();
    feed.extend(0..1_000_usize);
    let dispatch = executor.dispatch(
        source,
        |n: &usize| *n,
        move |n| {
            begun.add(1);
            held.get(n).map_or_else(|| Script::ready().never(), |gate| Script::ready().until(gate))
        },
    );
    started.wait_for(64);
    settle(&executor);
    assert_eq!(feed.taken().get(), 64);
    for (finished, gate) in (1_u64..).zip(gates.iter().take(12)) {
        gate.release();
        let batches = finished / 4;
        feed.taken().wait_for(64 + batches * 4);
        settle(&executor);
        assert_eq!(feed.taken().get(), 64 + batches * 4, "after {finished} messages had finished");
    }
    dispatch.cancel();
    finish(dispatch).expect_err("it was cancelled");
    executor.close();
}

#[test]
fn a_full_keyspace_hands_the_message_back() {
    let executor = executor("bp-full", 1, 4);
    let open = Latch::new();
    let gate = open.clone();
    let keyspace: Keyspace<u32, String> = executor.keyspace(move |_| Script::ready().until(&gate));
    for n in 0..4 {
        keyspace.try_submit(n, n.to_string()).expect("the window has room");
    }
    let refused = keyspace.try_submit(0, "one too many".to_owned()).expect_err("the window is full");
    assert_eq!((refused.reason, refused.message.as_str()), (SubmitRefusal::Full, "one too many"));
    assert_eq!(refused.into_message(), "one too many");
    assert_eq!(keyspace.in_flight(), 4);
    open.release();
    assert_eq!(finish(keyspace.drained()).handled, 4);
    executor.close();
}

#[test]
fn submit_waits_for_room() {
    let executor = executor("bp-wait", 2, 4);
    let open = Latch::new();
    let gate = open.clone();
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| Script::ready().until(&gate));
    for n in 0..4 {
        finish(keyspace.submit(n, n)).expect("the keyspace is open");
    }
    let mut fifth = Box::pin(keyspace.submit(4, 4));
    assert!(fifth.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    open.release();
    finish(fifth).expect("the keyspace is open");
    assert_eq!(finish(keyspace.drained()).handled, 5);
    executor.close();
}

#[test]
fn a_waiting_submission_that_is_dropped_takes_no_room_and_stops_nobody() {
    const WINDOW: usize = 16;
    let executor = executor("bp-drop", 2, WINDOW);
    let history = History::bounded(0, 200, WINDOW);
    let open = Latch::new();
    let gate = open.clone();
    let keyspace =
        executor.keyspace(move |message: Message| message.start().play(Script::ready().until(&gate)));
    for key in 0..WINDOW {
        keyspace.try_submit(key, history.issue(key, 0)).expect("the window has room");
    }
    let mut waiting: Vec<_> = (WINDOW..WINDOW + 100)
        .map(|key| {
            let mut submit = Box::pin(keyspace.submit(key, history.issue(key, 0)));
            let poll = submit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(poll.is_pending(), "there was room in a full window");
            Some(submit)
        })
        .collect();
    // Half of them go before there is room, and ten more after it, when they may have been woken but have not looked.
    waiting.iter_mut().step_by(2).for_each(|submit| *submit = None);
    open.release();
    wow_testkit::eventually("room for those that wait", || keyspace.in_flight() < WINDOW);
    waiting.iter_mut().skip(1).step_by(10).for_each(|submit| *submit = None);
    for submit in waiting.into_iter().flatten() {
        finish(submit).expect("the keyspace is open");
    }
    let ledger = finish(keyspace.drained());
    let tally = history.verify();
    assert_eq!((tally.handled, tally.discarded), (WINDOW as u64 + 40, 60));
    assert_eq!((ledger.accepted, ledger.handled, keyspace.in_flight()), (tally.handled, tally.handled, 0));

    // The whole window is there again, and not one permit more.
    let stuck = Latch::new();
    let gate = stuck.clone();
    let again: Keyspace<usize, usize> = executor.keyspace(move |_| Script::ready().until(&gate));
    let accepted = (0..2 * WINDOW).filter(|&n| again.try_submit(n, n).is_ok()).count();
    assert_eq!(accepted, WINDOW);
    stuck.release();
    executor.close();
}

#[test]
fn permits_all_return_whatever_becomes_of_a_message() {
    const WINDOW: usize = 8;
    let executor = executor("bp-back", 2, WINDOW);
    let history = History::bounded(0, WINDOW, WINDOW);
    let stuck = Latch::new();
    let gate = stuck.clone();
    let keyspace = executor.keyspace(move |message: Message| {
        let script = match message.id().number % 4 {
            0 => Script::ready(),
            1 => Script::ready().fails("told to"),
            2 => Script::ready().elsewhere().panics("told to"),
            _ => Script::ready().until(&gate),
        };
        message.start().play(script)
    });
    for _ in 0..3 {
        for key in 0..WINDOW {
            finish(keyspace.submit(key, history.issue(key, 0))).expect("the keyspace goes on");
        }
    }
    finish(keyspace.drained());
    assert_eq!(keyspace.in_flight(), 0);
    for key in 0..WINDOW {
        keyspace.try_submit(key, history.issue(key, 0)).expect("the whole window is free");
    }
    let over = keyspace.try_submit(0, history.issue(0, 0)).expect_err("the window is full");
    over.into_message().refuse();
    stuck.release();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.handled, ledger.failed), (32, 16, 16));
    let tally = history.verify();
    assert_eq!((tally.handled, tally.failed, tally.panicked), (16, 8, 8));
    executor.close();
}

#[test]
fn each_dispatch_has_a_window_of_its_own() {
    let executor = executor("bp-own", 1, 4);
    let open = Latch::new();
    let gate = open.clone();
    let stuck: Keyspace<u32, u32> = executor.keyspace(move |_| Script::ready().until(&gate));
    for n in 0..4 {
        stuck.try_submit(n, n).expect("the window has room");
    }
    let (source, _feed) = Source::over(0..100_u32);
    let other = executor.dispatch(source, |n: &u32| *n, |_| Script::ready().yields(1));
    assert_eq!(finish(other).expect("no handler fails").handled, 100);
    assert_eq!(stuck.in_flight(), 4);
    open.release();
    assert_eq!(finish(stuck.drained()).handled, 4);
    executor.close();
}

#[test]
fn a_submission_that_was_never_polled_was_never_made() {
    let executor = executor("bp-lazy", 1, 4);
    let keyspace: Keyspace<u32, Arc<()>> = executor.keyspace(|_| async {});
    let message = Arc::new(());
    drop(keyspace.submit(0, Arc::clone(&message)));
    assert_eq!((Arc::strong_count(&message), keyspace.in_flight()), (1, 0));
    assert_eq!(finish(keyspace.drained()).accepted, 0);
    let polled_once: Pin<Box<dyn Future<Output = _>>> = Box::pin(keyspace.submit(0, message));
    finish(polled_once).expect("the keyspace is open");
    assert_eq!(finish(keyspace.drained()).handled, 1);
    executor.close();
}

#[test]
fn drained_resolves_when_nothing_is_in_flight_and_not_before() {
    let executor = executor("bp-drain", 1, 16);
    let (open, done) = (Latch::new(), Counter::new());
    let (gate, counted) = (open.clone(), done.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        let (gate, counted) = (gate.clone(), counted.clone());
        async move {
            if n == 0 {
                gate.released().await;
            }
            counted.add(1);
        }
    });
    keyspace.try_submit(0, 0).expect("the window has room");
    let mut drained = Box::pin(keyspace.drained());
    let mut resolves = || drained.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    // As many messages come back as had been accepted when it was asked for, and when it was first polled: later ones.
    for n in 1..4 {
        keyspace.try_submit(n, n).expect("the window has room");
        done.wait_for(n.into());
        settle(&executor);
        assert!(!resolves(), "the first message is still in flight, {n} later ones have ended");
    }
    open.release();
    assert_eq!(finish(drained).handled, 4);
    executor.close();
}
