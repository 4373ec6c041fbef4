//! A handler that blocks its thread hurts only its own key; a spare thread goes on with the rest of its worker.
//!
//! B-11. Observed: other keys and the source go on beside a stuck handler and a stuck poll; the stuck key stays
//! exclusive and in order; its one outcome is counted when it returns, panics included; a wake during the stuck poll is
//! not lost; a successor that gets stuck is rescued too. Stuck sources: `rescue_source.rs`; what becomes of threads, and of an
//! executor that is closed meanwhile: `rescue_threads.rs`.
#![cfg(not(keyed_loom))]

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures_util::stream;
use keyed_executor::{Cause, KeyedExecutor, Keyspace};
use wow_testkit::{Counter, Latch, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name(name)
        .workers(workers)
        .rescue_threads(64)
        .build()
        .expect("the settings are in range")
}

#[test]
fn other_keys_of_the_worker_go_on_beside_a_stuck_handler() {
    let executor = executor("resc-keys", 1);
    let (stuck, entered, order) = (Latch::new(), Latch::new(), Arc::new(Mutex::new(Vec::new())));
    let (gate, inside, log) = (stuck.clone(), entered.clone(), Arc::clone(&order));
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
        let (gate, inside, log) = (gate.clone(), inside.clone(), Arc::clone(&log));
        async move {
            if n == 0 {
                inside.release();
                gate.wait();
            }
            log.lock().expect("no handler panics").push(n);
        }
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    // Behind the stuck message of the same key, and beside it.
    keyspace.try_submit(0, 100).expect("there is room");
    for n in 1..=50 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    eventually("the other keys are done", || order.lock().expect("no handler panics").len() == 50);
    assert!(!order.lock().expect("no handler panics").contains(&100), "the stuck key stays exclusive");
    stuck.release();
    assert_eq!(finish(keyspace.drained()).handled, 52);
    let order = order.lock().expect("no handler panics");
    assert_eq!(order[50..], [0, 100], "the stuck key goes on in order");
    executor.close();
    finish(executor.terminated());
}

#[test]
fn handlers_that_block_until_later_ones_are_done_finish() {
    const GROUP: u64 = 20;
    let executor = executor("resc-mutual", 2);
    let later = Counter::new();
    let done = later.clone();
    let dispatch = executor.dispatch(
        stream::iter(0..2 * GROUP),
        |n| *n,
        move |n| {
            let done = done.clone();
            async move {
                if n < GROUP {
                    done.wait_for(GROUP);
                } else {
                    done.add(1);
                }
            }
        },
    );
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 2 * GROUP);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn the_source_goes_on_beside_a_message_that_is_stuck_where_it_arrived() {
    const MESSAGES: u64 = 20_000;
    const STUCK: u64 = 10_000;
    let executor = executor("resc-place", 1);
    let handled = Counter::new();
    let count = handled.clone();
    let dispatch = executor.dispatch(
        stream::iter(0..MESSAGES),
        |n| *n % 1_000,
        move |n| {
            if n == STUCK {
                // Ends only if the messages far behind it ran: the source was asked for them meanwhile.
                count.wait_for(STUCK + 100);
            }
            count.add(1);
            std::future::ready(())
        },
    );
    let ledger = finish(dispatch).expect("no handler fails");
    assert_eq!((ledger.accepted, ledger.handled), (MESSAGES, MESSAGES));
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_panic_of_a_stuck_handler_is_its_one_outcome() {
    let executor = executor("resc-panic", 1);
    let (gate, others) = (Latch::new(), Counter::new());
    let (held, count) = (gate.clone(), others.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
        let (held, count) = (held.clone(), count.clone());
        async move {
            if n == 0 {
                held.wait();
                panic!("stuck, then broken");
            }
            count.add(1);
        }
    });
    for n in 0..20 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    keyspace.try_submit(0, 20).expect("there is room");
    others.wait_for(19);
    gate.release();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.handled, ledger.failed), (20, 1));
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_wake_during_a_stuck_poll_is_not_lost() {
    let executor = executor("resc-wake", 1);
    let (entered, gate, polls) = (Latch::new(), Latch::new(), Arc::new(AtomicU32::new(0)));
    let waker = Arc::new(Mutex::new(None));
    let (inside, held, counted, kept) =
        (entered.clone(), gate.clone(), Arc::clone(&polls), Arc::clone(&waker));
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
        let (inside, held, counted, kept) =
            (inside.clone(), held.clone(), Arc::clone(&counted), Arc::clone(&kept));
        poll_fn(move |context| {
            if n > 0 || counted.fetch_add(1, Ordering::Relaxed) > 0 {
                return Poll::Ready(());
            }
            *kept.lock().expect("nobody panics") = Some(context.waker().clone());
            inside.release();
            held.wait();
            Poll::Pending
        })
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    keyspace.try_submit(1, 1).expect("there is room");
    eventually("the seat was taken", || executor.metrics().workers[0].messages == 1);
    let taken = waker.lock().expect("nobody panics").take();
    taken.expect("the handler left its waker").wake();
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn an_error_of_a_stuck_handler_ends_its_dispatch_with_the_key() {
    let executor = executor("resc-fail", 1);
    let (gate, others) = (Latch::new(), Counter::new());
    let (held, count) = (gate.clone(), others.clone());
    let dispatch = executor.dispatch(
        stream::iter(0..20_u32),
        |n| *n,
        move |n| {
            let (held, count) = (held.clone(), count.clone());
            async move {
                if n == 3 {
                    held.wait();
                    return Err("stuck, then refused");
                }
                count.add(1);
                Ok(())
            }
        },
    );
    others.wait_for(19);
    gate.release();
    let failed = finish(dispatch).expect_err("a handler failed");
    assert!(
        matches!(&failed.cause, Cause::Handler { key, error } if key == "3" && *error == "stuck, then refused")
    );
    assert_eq!((failed.ledger.handled, failed.ledger.failed), (19, 1));
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_successor_that_gets_stuck_is_rescued_too() {
    const STUCK: u32 = 4;
    let executor = executor("resc-nest", 1);
    let entered = Counter::new();
    let gates: Vec<Latch> = (0..STUCK).map(|_| Latch::new()).collect();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (inside, held, log) = (entered.clone(), gates.clone(), Arc::clone(&order));
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
        let (inside, held, log) = (inside.clone(), held.clone(), Arc::clone(&log));
        async move {
            if let Some(gate) = held.get(n as usize) {
                inside.add(1);
                gate.wait();
            }
            log.lock().expect("no handler panics").push(n);
        }
    });
    // Each of them gets stuck on the thread that took the seat from the one before.
    for n in 0..STUCK {
        keyspace.try_submit(n, n).expect("there is room");
        entered.wait_for(u64::from(n) + 1);
        keyspace.try_submit(n, 100 + n).expect("there is room");
    }
    keyspace.try_submit(50, 50).expect("there is room");
    eventually("another key goes on", || *order.lock().expect("no handler panics") == [50]);
    // Back in another order than they were lost; each key goes on behind its own message.
    for (done, n) in [1, 3, 0, 2].into_iter().enumerate() {
        gates[n as usize].release();
        eventually("the key went on", || order.lock().expect("no handler panics").len() == 3 + 2 * done);
        assert_eq!(order.lock().expect("no handler panics")[1 + 2 * done..], [n, 100 + n]);
    }
    assert_eq!(finish(keyspace.drained()).handled, u64::from(2 * STUCK + 1));
    executor.close();
    finish(executor.terminated());
}
