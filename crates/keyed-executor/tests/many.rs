//! However many dispatches and keyspaces are open on an executor, each of them is served: those that were idle for long,
//! beside one that never runs dry, and after any of them ended.
//!
//! Observes KE-1, KE-2, KM-28.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wow_testkit::{Counter, Latch, Script, Source, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

fn counting(executor: &KeyedExecutor, handled: &Arc<AtomicU64>) -> Keyspace<u64, u64> {
    let handled = Arc::clone(handled);
    executor.keyspace(move |n: u64| {
        handled.fetch_add(n, Ordering::Relaxed);
        async {}
    })
}

/// A source that always has a message, until it is told to stop.
fn endless(stop: &Arc<AtomicBool>) -> impl futures_core::Stream<Item = u64> + Send + 'static {
    let (stop, mut next) = (Arc::clone(stop), 0);
    futures_util::stream::poll_fn(move |_| {
        next += 1;
        std::task::Poll::Ready((!stop.load(Ordering::Relaxed)).then_some(next))
    })
}

#[test]
fn an_idle_keyspace_is_served_beside_a_source_that_never_runs_dry() {
    let executor = executor("many-busy", 1);
    let handled = Arc::new(AtomicU64::new(0));
    let idle: Vec<_> = (0..500).map(|_| counting(&executor, &handled)).collect();
    for keyspace in &idle {
        keyspace.try_submit(1, 1).expect("the window has room");
    }
    eventually("each had a message", || handled.load(Ordering::Relaxed) == 500);
    let stop = Arc::new(AtomicBool::new(false));
    let busy = executor.dispatch(endless(&stop), |n: &u64| n % 7, |_| async {});
    // Its worker has no moment without work: it never looks around because it ran dry.
    for (n, keyspace) in idle.iter().enumerate() {
        keyspace.try_submit(2, 1).expect("the window has room");
        eventually("a message of an idle keyspace was handled", || {
            handled.load(Ordering::Relaxed) == 501 + n as u64
        });
    }
    stop.store(true, Ordering::Relaxed);
    finish(busy).expect("no handler fails");
    executor.close();
}

#[test]
fn handlers_that_wait_go_on_in_every_keyspace() {
    let executor = executor("many-waiting", 2);
    let (entered, open) = (Counter::new(), Latch::new());
    let keyspaces: Vec<Keyspace<u64, u64>> = (0..200)
        .map(|_| {
            let (entered, open) = (entered.clone(), open.clone());
            executor.keyspace(move |_| {
                entered.add(1);
                Script::ready().until(&open)
            })
        })
        .collect();
    for keyspace in &keyspaces {
        for key in 0..3 {
            keyspace.try_submit(key, key).expect("the window has room");
        }
    }
    entered.wait_for(600);
    open.release();
    for keyspace in &keyspaces {
        assert_eq!(finish(keyspace.drained()).handled, 3);
    }
    executor.close();
}

#[test]
fn those_that_end_leave_the_others_served() {
    let executor = executor("many-end", 2);
    let handled = Arc::new(AtomicU64::new(0));
    let mut keyspaces: Vec<_> = (0..300).map(|_| counting(&executor, &handled)).collect();
    for round in 1..=3_u64 {
        let before = handled.load(Ordering::Relaxed);
        for keyspace in &keyspaces {
            keyspace.try_submit(round, 1).expect("the window has room");
        }
        eventually("each had a message", || {
            handled.load(Ordering::Relaxed) == before + keyspaces.len() as u64
        });
        // Every third one ends; new ones take their places.
        let mut at = 0;
        keyspaces.retain(|_| {
            at += 1;
            at % 3 != 0
        });
        keyspaces.extend((0..50).map(|_| counting(&executor, &handled)));
    }
    let sources: Vec<_> = (0..100)
        .map(|n| {
            let (source, feed) = Source::fed();
            let dispatch = executor.dispatch(source, |n: &u64| *n, |_| async {});
            feed.push(n);
            (dispatch, feed)
        })
        .collect();
    for (dispatch, feed) in sources {
        feed.end();
        assert_eq!(finish(dispatch).expect("no handler fails").handled, 1);
    }
    drop(keyspaces);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_cancelled_dispatch_among_many_idle_ones_ends_at_once() {
    let executor = executor("many-cancel", 1);
    let handled = Arc::new(AtomicU64::new(0));
    let idle: Vec<_> = (0..100).map(|_| counting(&executor, &handled)).collect();
    for keyspace in &idle {
        keyspace.try_submit(1, 1).expect("the window has room");
    }
    eventually("each had a message", || handled.load(Ordering::Relaxed) == 100);
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch(source, |n: &u64| *n, |_| Script::ready().never());
    let canceller = dispatch.canceller();
    feed.push(1_u64);
    feed.taken().wait_for(1);
    canceller.cancel();
    let ended = finish(dispatch).expect_err("it was cancelled");
    assert_eq!(ended.ledger.accepted, ended.ledger.cancelled + ended.ledger.discarded);
    for keyspace in &idle {
        keyspace.cancel();
        finish(keyspace.drained());
    }
    executor.close();
}
