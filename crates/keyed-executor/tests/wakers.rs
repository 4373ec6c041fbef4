//! A waker is user code: one that panics, or owns another waiter, costs nobody else a wake-up and no door its end.
//!
//! Observes KE-30, KE-40, KE-41, KW-6; beside user_code.rs, which does the same for keys, messages and handlers.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace, Submit};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use wow_testkit::{Latch, PATIENCE, Source, finish, finish_within};

const WINDOW: usize = 64;

fn executor(name: &str, window: usize) -> KeyedExecutor {
    let builder = KeyedExecutor::builder().name(name).workers(1).max_in_flight(window);
    builder.build().expect("the settings are in range")
}

/// Opens a latch when it wakes, and panics.
struct Panics(Latch);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.release();
        panic!("a waker");
    }
}

/// Opens a latch when it wakes.
struct Opens(Latch);

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.0.release();
    }
}

/// Polls something that has to wait; the latch opens when it is woken, which panics.
fn waits_badly(future: impl Future + Unpin) -> Latch {
    let woken = Latch::new();
    waits_with(future, &Waker::from(Arc::new(Panics(woken.clone()))));
    woken
}

/// Polls something that has to wait; the latch opens when it is woken.
fn waits_well(future: impl Future + Unpin) -> Latch {
    let woken = Latch::new();
    waits_with(future, &Waker::from(Arc::new(Opens(woken.clone()))));
    woken
}

fn waits_with(future: impl Future + Unpin, waker: &Waker) {
    let polled = pin!(future).poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending(), "there was nothing to wait for");
}

/// A keyspace whose messages below `held` are handled when the latch opens, on the thread.
fn gated(executor: &KeyedExecutor, held: usize) -> (Keyspace<usize, usize>, Latch) {
    let open = Latch::new();
    let until = open.clone();
    let keyspace = executor.keyspace(move |n: usize| {
        if n < held {
            until.wait();
        }
        async {}
    });
    (keyspace, open)
}

#[test]
fn a_waker_that_panics_costs_no_other_submitter_its_wake_up() {
    let executor = executor("wak-sub", WINDOW);
    let (keyspace, _) = gated(&executor, 0);
    // Handlers that are known to be quick give their permits back together, and so wake many at once.
    for _ in 0..10 {
        for n in 0..WINDOW {
            finish(keyspace.submit(n, n)).expect("the keyspace is open");
        }
    }
    finish(keyspace.drained());
    for _ in 0..20 {
        let (held, go_on) = (Latch::new(), Latch::new());
        let (entered, until) = (held.clone(), go_on.clone());
        let task = move || {
            entered.release();
            until.wait();
        };
        executor.execute_pinned(0, task).expect("the executor is open");
        held.wait();
        for n in 0..WINDOW {
            keyspace.try_submit(n, n).expect("the window has room");
        }
        let (mut bad, mut good) = (keyspace.submit(0, 0), keyspace.submit(1, 1));
        let tried = waits_badly(&mut bad);
        let woken = waits_well(&mut good);
        go_on.release();
        tried.wait();
        woken.wait();
        finish(good).expect("the keyspace is open");
        finish(bad).expect("the keyspace is open");
        finish(keyspace.drained());
    }
    assert!(executor.metrics().workers[0].running);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_waker_that_panics_costs_a_full_window_of_slow_handlers_nothing() {
    let executor = executor("wak-slow", 4);
    let (keyspace, open) = gated(&executor, 4);
    for n in 0..4 {
        keyspace.try_submit(n, n).expect("the window has room");
    }
    let (mut bad, mut good) = (keyspace.submit(10, 10), keyspace.submit(11, 11));
    let tried = waits_badly(&mut bad);
    let woken = waits_well(&mut good);
    open.release();
    tried.wait();
    woken.wait();
    finish(good).expect("the keyspace is open");
    drop(bad);
    assert_eq!(finish(keyspace.drained()).handled, 5);
    executor.close();
}

#[test]
fn a_close_shuts_every_door_whatever_the_wakers_behind_them_do() {
    for force in [false, true] {
        let executor = executor("wak-close", 1);
        let doors: Vec<_> = (0..3).map(|_| gated(&executor, 1)).collect();
        let mut waiting = Vec::new();
        for (keyspace, _) in &doors {
            keyspace.try_submit(0, 0).expect("the window has room");
            let (mut bad, mut good) = (keyspace.submit(1, 1), keyspace.submit(2, 2));
            let latches = (waits_badly(&mut bad), waits_well(&mut good));
            waiting.push((bad, good, latches));
        }
        if force {
            executor.force_close();
        } else {
            executor.close();
        }
        for (bad, good, (tried, woken)) in waiting {
            tried.wait();
            woken.wait();
            finish(good).expect_err("the executor is closed");
            finish(bad).expect_err("the executor is closed");
        }
        doors.iter().for_each(|(_, open)| open.release());
        finish(executor.terminated());
    }
}

#[test]
fn a_waker_that_panics_does_not_lose_the_end_of_a_keyspace() {
    for closed_first in [false, true] {
        let executor = executor("wak-end", 2);
        let (keyspace, open) = gated(&executor, 1);
        keyspace.try_submit(0, 0).expect("the window has room");
        let (mut bad, mut good) = (keyspace.drained(), keyspace.drained());
        if closed_first {
            keyspace.close();
        }
        let (tried, woken) = (waits_badly(&mut bad), waits_well(&mut good));
        if !closed_first {
            keyspace.close();
        }
        open.release();
        tried.wait();
        woken.wait();
        assert_eq!(finish(good).handled, 1);
        assert_eq!(finish(bad).handled, 1);
        drop(keyspace);
        executor.close();
        finish(executor.terminated());
    }
}

#[test]
fn a_waker_that_panics_does_not_lose_the_end_of_a_dispatch_or_of_the_threads() {
    let executor = executor("wak-term", 4);
    let (source, feed) = Source::fed();
    let mut dispatch = executor.dispatch(source, |n: &u32| *n, |_| async {});
    let (mut bad, mut good) = (executor.terminated(), executor.terminated());
    let ended = waits_badly(&mut dispatch);
    let (tried, woken) = (waits_badly(&mut bad), waits_well(&mut good));
    feed.push(1);
    feed.end();
    ended.wait();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 1);
    let ran = Latch::new();
    let run = ran.clone();
    executor.execute_pinned(0, move || run.release()).expect("its worker lives");
    ran.wait();
    executor.close();
    tried.wait();
    woken.wait();
    finish(good);
    finish(bad);
}

/// A task of somebody's executor: its waker owns its future.
struct Task(#[expect(dead_code, reason = "it is there to be dropped")] Mutex<Option<Submit<usize, usize>>>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_may_own_another_waiter_of_the_same_door() {
    let tested = Latch::new();
    let done = tested.clone();
    // On a thread of its own: a lock taken twice never returns.
    let thread = std::thread::spawn(move || {
        for polled_by_another in [true, false] {
            let executor = executor("wak-own", 1);
            let (keyspace, open) = gated(&executor, 1);
            keyspace.try_submit(0, 0).expect("the window has room");
            let mut owned = keyspace.submit(2, 2);
            let _never_asked = waits_well(&mut owned);
            let waker = Waker::from(Arc::new(Task(Mutex::new(Some(owned)))));
            let mut moved = keyspace.submit(1, 1);
            waits_with(&mut moved, &waker);
            // The one that is registered is its last owner now.
            drop(waker);
            if polled_by_another {
                let woken = waits_well(&mut moved);
                open.release();
                woken.wait();
                finish(moved).expect("the keyspace is open");
            } else {
                drop(moved);
                open.release();
            }
            let ledger = finish(keyspace.drained());
            assert_eq!(ledger.handled, if polled_by_another { 2 } else { 1 });
            executor.close();
        }
        done.release();
    });
    assert!(finish_within(PATIENCE, tested.released()).is_some(), "it did not return, or it panicked");
    thread.join().expect("it said that it was done");
}
