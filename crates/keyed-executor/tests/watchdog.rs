//! A handler or a source that holds its thread for too long is named while it does, once; one that waits is not.
//!
//! B-5, X9. Observed: label, key, worker and how long, with the rescue on and off, whether or not anything waits for the worker,
//! and for code whose seat was taken before it was named; the other workers go on; a hook that panics does no harm. Nothing
//! here is measured: each test waits for the hook, or shows that it was not called when something later was named.
#![cfg(not(keyed_loom))]

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace, Options, Stuck, StuckCode};
use std::task::Poll;
use wow_testkit::{Counter, Latch, eventually, finish};

const LONG: Duration = Duration::from_secs(30);

/// An executor that tells soon, and what it tells.
fn executor(name: &str, workers: usize, rescue_threads: usize) -> (KeyedExecutor, Receiver<Stuck>) {
    let (sender, told) = channel();
    let executor = KeyedExecutor::builder()
        .name(name)
        .workers(workers)
        .rescue_threads(rescue_threads)
        .stuck_after(Duration::from_millis(10))
        .on_stuck(move |stuck| drop(sender.send(stuck.clone())))
        .build()
        .expect("the settings are in range");
    (executor, told)
}

/// A keyspace whose messages below 10 block until the latch opens, and the latch.
fn blocking(executor: &KeyedExecutor, handled: &Counter) -> (Keyspace<String, u32>, Latch) {
    let gate = Latch::new();
    let (held, count) = (gate.clone(), handled.clone());
    let keyspace = executor.keyspace_with(Options::new("orders"), move |n: u32| {
        let (held, count) = (held.clone(), count.clone());
        async move {
            if n < 10 {
                held.wait();
            }
            count.add(1);
        }
    });
    (keyspace, gate)
}

fn of_key(key: &str) -> StuckCode {
    handler_of("orders", &format!("{key:?}"))
}

fn handler_of(label: &str, key: &str) -> StuckCode {
    StuckCode::Handler { label: label.to_owned(), key: key.to_owned() }
}

#[test]
fn a_handler_that_blocks_is_named_once_with_label_and_key_and_the_others_go_on() {
    for rescue_threads in [0, 4] {
        let (executor, told) = executor("wd-name", 2, rescue_threads);
        let handled = Counter::new();
        let (keyspace, gate) = blocking(&executor, &handled);
        keyspace.try_submit("order-7".to_owned(), 0).expect("there is room");
        let stuck = told.recv_timeout(LONG).expect("it is named while it is blocked");
        assert_eq!(stuck.code, of_key("order-7"));
        assert!(stuck.held >= Duration::from_millis(10), "{stuck:?}");
        assert_eq!(
            stuck.to_string(),
            format!(
                "handler of key \"order-7\" (orders) on worker {} for {:?}",
                stuck.worker + 1,
                stuck.held
            )
        );
        let other_worker = Counter::new();
        for _ in 0..100 {
            let count = other_worker.clone();
            executor.execute_pinned(1 - stuck.worker as i64, move || count.add(1)).expect("it is open");
        }
        other_worker.wait_for(100);
        // Another one is named after it, so the first one would have been named again by now.
        // A key may be placed behind the held worker before that is known, and does not run then.
        let mut submitted = 1;
        let next = (0..100).find_map(|n| {
            submitted += 1;
            keyspace.try_submit(format!("later-{n}"), 1).expect("there is room");
            told.recv_timeout(Duration::from_millis(100)).ok()
        });
        let next = next.expect("the second one is named too");
        assert!(
            matches!(&next.code, StuckCode::Handler { label, key } if label == "orders" && key.starts_with("\"later-")),
            "{next}"
        );
        assert_eq!(executor.metrics().monitor.named, 2);
        gate.release();
        assert_eq!(finish(keyspace.drained()).handled, submitted);
        executor.close();
        finish(executor.terminated());
        assert_eq!(told.try_iter().count(), 0);
    }
}

#[test]
fn a_handler_whose_seat_was_taken_is_named_from_the_thread_that_lost_it() {
    let (executor, told) = executor("wd-lost", 1, 4);
    let handled = Counter::new();
    let (keyspace, gate) = blocking(&executor, &handled);
    keyspace.try_submit("order-7".to_owned(), 0).expect("there is room");
    keyspace.try_submit("other".to_owned(), 10).expect("there is room");
    handled.wait_for(1);
    let metrics = executor.metrics().monitor;
    assert_eq!((metrics.rescues, metrics.stuck), (1, 1), "its thread is on no seat any more");
    let stuck = told.recv_timeout(LONG).expect("it is named all the same");
    assert_eq!((stuck.code, stuck.worker), (of_key("order-7"), 0));
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    eventually("nobody is stuck any more", || executor.metrics().monitor.stuck == 0);
    executor.close();
    finish(executor.terminated());
    assert_eq!(told.try_iter().count(), 0, "it was named once");
}

#[test]
fn a_handler_that_waits_is_not_named() {
    let (executor, told) = executor("wd-wait", 1, 4);
    let opened = Latch::new();
    let waits: Keyspace<u32, u32> = executor.keyspace({
        let opened = opened.clone();
        move |_| opened.released()
    });
    waits.try_submit(1, 0).expect("there is room");
    let handled = Counter::new();
    let (keyspace, gate) = blocking(&executor, &handled);
    // Blocks later than the other waits, and is named: the other would have been.
    for n in 0..2 {
        keyspace.try_submit(format!("order-{n}"), n).expect("there is room");
        let stuck = told.recv_timeout(LONG).expect("it is named");
        assert_eq!(stuck.code, of_key(&format!("order-{n}")));
    }
    gate.release();
    opened.release();
    assert_eq!(finish(waits.drained()).handled, 1);
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
    finish(executor.terminated());
    assert_eq!(told.try_iter().count(), 0);
}

#[test]
fn a_source_and_a_task_that_block_are_named() {
    for rescue_threads in [0, 4] {
        let (executor, told) = executor("wd-src", 1, rescue_threads);
        let gate = Latch::new();
        let held = gate.clone();
        let mut polls = 0;
        let source = stream::poll_fn(move |_| {
            polls += 1;
            if polls == 1 {
                held.wait();
            }
            Poll::Ready((polls < 3).then_some(polls))
        });
        let dispatch = executor.dispatch_with(Options::new("lines"), source, |n| *n, |_: u32| async {});
        let stuck = told.recv_timeout(LONG).expect("the source is named");
        assert_eq!(stuck.code, StuckCode::Source { label: "lines".to_owned() });
        gate.release();
        assert_eq!(finish(dispatch).expect("no handler fails").handled, 2);
        let gate = Latch::new();
        let held = gate.clone();
        executor.execute(move || held.wait()).expect("the executor is open");
        let stuck = told.recv_timeout(LONG).expect("the task is named");
        assert_eq!((stuck.code, stuck.rescued), (StuckCode::Other, false));
        gate.release();
        executor.close();
        finish(executor.terminated());
    }
}

#[test]
fn a_message_that_is_stuck_where_it_arrived_is_named_with_its_key() {
    const MESSAGES: u64 = 20_000;
    const STUCK: u64 = 10_000;
    for rescue_threads in [0, 4] {
        let (executor, told) = executor("wd-place", 1, rescue_threads);
        let gate = Latch::new();
        let held = gate.clone();
        let dispatch = executor.dispatch_with(
            Options::new("lines"),
            stream::iter(0..MESSAGES),
            |n| *n,
            move |n| {
                if n == STUCK {
                    held.wait();
                }
                std::future::ready(())
            },
        );
        let stuck = told.recv_timeout(LONG).expect("it is named");
        assert_eq!(stuck.code, handler_of("lines", "10000"));
        gate.release();
        assert_eq!(finish(dispatch).expect("no handler fails").handled, MESSAGES);
        executor.close();
        finish(executor.terminated());
    }
}

#[test]
fn a_hook_that_panics_and_a_key_whose_debug_panics_do_no_harm() {
    struct Odd;
    impl std::fmt::Debug for Odd {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("a key that cannot be written");
        }
    }
    impl PartialEq for Odd {
        fn eq(&self, _: &Self) -> bool {
            true
        }
    }
    impl Eq for Odd {}
    impl std::hash::Hash for Odd {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }
    let (sender, told) = channel();
    let executor = KeyedExecutor::builder()
        .name("wd-panic")
        .workers(1)
        .stuck_after(Duration::from_millis(5))
        .on_stuck(move |stuck| {
            drop(sender.send(stuck.clone()));
            panic!("a hook that breaks");
        })
        .build()
        .expect("the settings are in range");
    let gates = [Latch::new(), Latch::new()];
    let held = gates.clone();
    let keyspace: Keyspace<Odd, usize> = executor.keyspace(move |n: usize| {
        held[n].wait();
        std::future::ready(())
    });
    for (n, gate) in gates.iter().enumerate() {
        keyspace.try_submit(Odd, n).expect("there is room");
        let stuck = told.recv_timeout(LONG).expect("each of them is named, whatever the hook did");
        assert_eq!(stuck.code, handler_of("keyspace", "<its Debug panicked>"));
        gate.release();
    }
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
    finish(executor.terminated());
}
