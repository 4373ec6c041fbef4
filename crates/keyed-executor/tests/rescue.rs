//! Where spare threads are allowed, a handler that blocks its thread hurts only its own key; the rest of its worker goes on.
//!
//! B-11. Observed: other keys and the source go on beside a stuck handler, a stuck poll and a stuck source; the stuck key stays
//! exclusive and in order; its one outcome is counted when it returns, panics included; a wake during the stuck poll is
//! not lost; threads are bounded; a close waits for it, a forced close does not touch it.
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
fn a_source_that_blocks_holds_nothing_but_itself() {
    let executor = executor("resc-source", 1);
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let mut next = 0_u32;
    let source = stream::poll_fn(move |_| {
        next += 1;
        if next == 3 {
            inside.release();
            held.wait();
        }
        Poll::Ready((next <= 5).then_some(next))
    });
    let blocked = executor.dispatch(source, |n| *n, |_| async {});
    entered.wait();
    let other = executor.dispatch(stream::iter(0..100_u32), |n| *n, |_| async {});
    assert_eq!(finish(other).expect("no handler fails").handled, 100);
    gate.release();
    assert_eq!(finish(blocked).expect("no handler fails").handled, 5);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_cancelled_dispatch_ends_when_its_blocked_source_comes_back() {
    let executor = executor("resc-csrc", 1);
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let source = stream::poll_fn(move |_| {
        inside.release();
        held.wait();
        Poll::Ready(Some(7_u32))
    });
    let blocked = executor.dispatch(source, |n| *n, |_| async {});
    entered.wait();
    // Something else runs, so the seat was taken.
    let other = executor.dispatch(stream::iter(0..10_u32), |n| *n, |_| async {});
    assert_eq!(finish(other).expect("no handler fails").handled, 10);
    blocked.cancel();
    gate.release();
    let failed = finish(blocked).expect_err("it was cancelled");
    assert!(matches!(failed.cause, Cause::Cancelled));
    assert_eq!((failed.ledger.accepted, failed.ledger.discarded), (1, 1));
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
fn without_rescue_the_worker_waits() {
    let executor = KeyedExecutor::builder()
        .name("resc-off")
        .workers(1)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let (gate, entered, other) = (Latch::new(), Latch::new(), Counter::new());
    let (held, inside, count) = (gate.clone(), entered.clone(), other.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
        let (held, inside, count) = (held.clone(), inside.clone(), count.clone());
        async move {
            if n == 0 {
                inside.release();
                held.wait();
            } else {
                count.add(1);
            }
        }
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    keyspace.try_submit(1, 1).expect("there is room");
    // Nothing may run beside it, however long one waits; a few looks of a monitor are long enough to show one.
    finish(wow_testkit::after(std::time::Duration::from_millis(30)));
    assert_eq!(other.get(), 0);
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn spare_threads_are_bounded_and_named_apart() {
    const SPARES: usize = 2;
    let executor = KeyedExecutor::builder()
        .name("resc-bound")
        .workers(1)
        .rescue_threads(SPARES)
        .build()
        .expect("the settings are in range");
    let (gate, inside) = (Latch::new(), Counter::new());
    let (held, count) = (gate.clone(), inside.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
        let (held, count) = (held.clone(), count.clone());
        async move {
            count.add(1);
            held.wait();
        }
    });
    for n in 0..10 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    inside.wait_for(1 + SPARES as u64);
    finish(wow_testkit::after(std::time::Duration::from_millis(30)));
    assert_eq!(inside.get(), 1 + SPARES as u64, "one worker and its spares are stuck, no thread more");
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 10);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_close_waits_for_a_stuck_handler_and_a_forced_one_leaves_it_alone() {
    for forced in [false, true] {
        let executor = executor("resc-close", 1);
        let (gate, entered, other) = (Latch::new(), Latch::new(), Counter::new());
        let (held, inside, count) = (gate.clone(), entered.clone(), other.clone());
        let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
            let (held, inside, count) = (held.clone(), inside.clone(), count.clone());
            async move {
                if n == 0 {
                    inside.release();
                    held.wait();
                } else {
                    count.add(1);
                }
            }
        });
        keyspace.try_submit(0, 0).expect("there is room");
        entered.wait();
        keyspace.try_submit(0, 2).expect("there is room");
        keyspace.try_submit(1, 1).expect("there is room");
        other.wait_for(1);
        if forced {
            executor.force_close();
        } else {
            executor.close();
        }
        gate.release();
        let ledger = finish(keyspace.drained());
        let expected = if forced { (2, 1) } else { (3, 0) };
        assert_eq!((ledger.handled, ledger.discarded), expected, "forced: {forced}");
        finish(executor.terminated());
    }
}
