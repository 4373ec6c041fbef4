//! Spare threads are few, named apart, and there only while a stuck thread leaves work behind.
//!
//! B-9, B-11. Observed: the bound, and what waits beyond it; no thread is started for a stuck handler or source that nothing waits
//! for; a spare that nobody needs ends, and so does the rest with the executor; nobody looks while all is parked; tasks stay
//! on their worker; a close waits for a stuck handler, a forced close does not touch it. Every test gives its executor a name of
//! its own, so that threads of tests that run beside it are not counted.
#![cfg(all(not(keyed_loom), target_os = "linux"))]

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace};
use wow_testkit::{Counter, Latch, Script, eventually, finish, threads};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name(name)
        .workers(workers)
        .rescue_threads(4)
        .build()
        .expect("the settings are in range")
}

/// The spares of an executor whose name is short: the kernel keeps 15 bytes, and the monitor's has no number.
fn spares(name: &str) -> usize {
    let monitor: String = format!("rescue:{name}").chars().take(15).collect();
    let found = threads::named(&monitor);
    found.len() - usize::from(found.iter().any(|thread| thread.name == monitor))
}

/// Long enough for several looks of a monitor; a test that passes because it was too short is not wrong.
fn some_looks() {
    finish(wow_testkit::after(Duration::from_millis(40)));
}

/// A keyspace whose first message, 0, blocks its thread; it is inside.
struct Stuck {
    keyspace: Keyspace<u32, u32>,
    /// Lets it go.
    gate: Latch,
    /// The messages handled beside it.
    others: Counter,
}

fn stuck_at_zero(executor: &KeyedExecutor) -> Stuck {
    let (gate, entered, others) = (Latch::new(), Latch::new(), Counter::new());
    let (held, inside, count) = (gate.clone(), entered.clone(), others.clone());
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
    Stuck { keyspace, gate, others }
}

#[test]
fn without_rescue_the_worker_waits() {
    let executor = KeyedExecutor::builder()
        .name("resc-off")
        .workers(1)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let Stuck { keyspace, gate, others } = stuck_at_zero(&executor);
    keyspace.try_submit(1, 1).expect("there is room");
    // Nothing may run beside it, however long one waits; a few looks of a monitor are long enough to show one.
    some_looks();
    assert_eq!(others.get(), 0);
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn spare_threads_are_bounded_and_named_apart() {
    const SPARES: usize = 2;
    let executor = KeyedExecutor::builder()
        .name("rt-bound")
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
    some_looks();
    assert_eq!(inside.get(), 1 + SPARES as u64, "one worker and its spares are stuck, no thread more");
    assert_eq!(threads::count("rt-bound-"), 1, "spares have another prefix");
    assert_eq!(spares("rt-bound"), SPARES);
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 10);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_close_waits_for_a_stuck_handler_and_a_forced_one_leaves_it_alone() {
    for forced in [false, true] {
        let executor = executor("resc-close", 1);
        let Stuck { keyspace, gate, others } = stuck_at_zero(&executor);
        keyspace.try_submit(0, 2).expect("there is room");
        keyspace.try_submit(1, 1).expect("there is room");
        others.wait_for(1);
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

#[test]
fn a_stuck_handler_that_nothing_waits_for_takes_no_thread() {
    let executor = executor("rt-lone", 2);
    let Stuck { keyspace, gate, .. } = stuck_at_zero(&executor);
    // Behind the stuck one of the same key: nobody else could run it.
    keyspace.try_submit(0, 1).expect("there is room");
    some_looks();
    assert_eq!(spares("rt-lone"), 0, "another thread could not go on with anything");
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_source_that_blocks_alone_takes_no_thread() {
    let executor = executor("rt-src", 1);
    let (gate, entered) = (Latch::new(), Latch::new());
    let (held, inside) = (gate.clone(), entered.clone());
    let mut polls = 0_u32;
    let source = stream::poll_fn(move |_| {
        polls += 1;
        if polls == 1 {
            inside.release();
            held.wait();
        }
        Poll::Ready((polls < 3).then_some(polls))
    });
    let dispatch = executor.dispatch(source, |n| *n, |_| async {});
    entered.wait();
    some_looks();
    assert_eq!(spares("rt-src"), 0, "another thread could not go on with anything");
    gate.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 2);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_spare_that_nobody_needs_ends() {
    let executor = executor("rt-end", 1);
    let Stuck { keyspace, gate, others } = stuck_at_zero(&executor);
    keyspace.try_submit(1, 1).expect("there is room");
    others.wait_for(1);
    assert_eq!(threads::count("rt-end-") + spares("rt-end"), 2, "the stuck thread and its successor");
    gate.release();
    eventually("one of the two threads ends", || threads::count("rt-end-") + spares("rt-end") == 1);
    // What is left does the work, and another rescue is possible.
    keyspace.try_submit(2, 2).expect("there is room");
    others.wait_for(2);
    assert_eq!(finish(keyspace.drained()).handled, 3);
    executor.close();
    finish(executor.terminated());
    eventually("no thread is left", || threads::count("rt-end-") + threads::count("rescue:rt-end") == 0);
}

#[test]
fn nobody_looks_while_all_threads_sleep() {
    let executor = executor("rt-quiet", 2);
    let looks = || executor.metrics().monitor.looks;
    // None before there is a thread; then as long as one is on its seat.
    some_looks();
    assert_eq!(looks(), 0);
    for _ in 0..2 {
        let Stuck { keyspace, gate, .. } = stuck_at_zero(&executor);
        let before = looks();
        eventually("it looks again and again at a thread that does not come back", || looks() > before + 10);
        gate.release();
        assert_eq!(finish(keyspace.drained()).handled, 1);
        // A handler that waits holds no thread: all of them sleep beside it.
        let open = Latch::new();
        let until = open.clone();
        let waiting: Keyspace<u32, u32> = executor.keyspace(move |_| Script::ready().until(&until));
        for n in 0..20 {
            waiting.try_submit(n, n).expect("there is room");
        }
        eventually("it looks no more", || {
            let before = looks();
            (0..15).for_each(|_| some_looks());
            looks() == before && executor.metrics().busy() == 0
        });
        open.release();
        assert_eq!(finish(waiting.drained()).handled, 20);
    }
    executor.close();
    finish(executor.terminated());
}

#[test]
fn tasks_are_never_taken_from_their_worker() {
    let executor = executor("rt-task", 1);
    let (gate, entered) = (Latch::new(), Latch::new());
    let (held, inside) = (gate.clone(), entered.clone());
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    executor
        .execute_pinned(0, move || {
            inside.release();
            held.wait();
            log.lock().expect("nothing panics").push(0);
        })
        .expect("it is open");
    entered.wait();
    let log = Arc::clone(&order);
    executor.execute_pinned(0, move || log.lock().expect("nothing panics").push(1)).expect("it is open");
    some_looks();
    assert_eq!((order.lock().expect("nothing panics").len(), spares("rt-task")), (0, 0));
    gate.release();
    executor.close();
    finish(executor.terminated());
    assert_eq!(*order.lock().expect("nothing panics"), [0, 1]);
}

#[test]
fn a_handler_that_gets_stuck_after_a_close_is_rescued_too() {
    let executor = executor("rt-after", 1);
    let (begun, held) = (Latch::new(), Latch::new());
    let (told, until) = (begun.clone(), held.clone());
    executor
        .execute(move || {
            told.release();
            until.wait();
        })
        .expect("it is open");
    begun.wait();
    let (gate, others) = (Latch::new(), Counter::new());
    let (stays, count) = (gate.clone(), others.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        if n == 0 {
            stays.wait();
        } else {
            count.add(1);
        }
        std::future::ready(())
    });
    for n in 0..3 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    executor.close();
    held.release();
    others.wait_for(2);
    gate.release();
    finish(executor.terminated());
}
