//! A force close drops what no handler runs, on the thread that calls it; what runs ends its step and goes no further.
//!
//! Observes KE-34, KE-42, KM-22, KF-10; scenarios T5, T13, T50.
#![cfg(not(keyed_loom))]

use keyed_executor::{Cause, KeyedExecutor};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use wow_testkit::{Counter, History, Latch, Message, Script, Source, Tally, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Holds a worker in a task until the latch that is returned opens.
fn hold(executor: &KeyedExecutor, affinity: i64) -> Latch {
    let (held, go_on) = (Latch::new(), Latch::new());
    let (entered, until) = (held.clone(), go_on.clone());
    let task = move || {
        entered.release();
        until.wait();
    };
    executor.execute_pinned(affinity, task).expect("the executor is open");
    held.wait();
    go_on
}

/// Notes the thread on which it is dropped, and may panic there.
struct Discard {
    threads: Arc<Mutex<Vec<ThreadId>>>,
    fails: bool,
}

impl Drop for Discard {
    fn drop(&mut self) {
        self.threads.lock().expect("nothing panics here").push(std::thread::current().id());
        assert!(!self.fails, "this discard fails");
    }
}

#[test]
fn a_force_close_drops_queued_tasks_on_the_calling_thread() {
    let executor = executor("shut-force", 1);
    let go_on = hold(&executor, 0);
    let (threads, ran) = (Arc::new(Mutex::new(Vec::new())), Counter::new());
    for n in 0..7 {
        let (discard, ran) = (Discard { threads: Arc::clone(&threads), fails: n == 2 }, ran.clone());
        let task = move || {
            ran.add(1);
            drop(discard);
        };
        executor.execute_pinned(0, task).expect("the executor is open");
    }
    // The one whose discard panics does not keep the others from theirs.
    executor.force_close();
    assert_eq!(*threads.lock().expect("nothing panics here"), [std::thread::current().id(); 7]);
    assert!(executor.is_closed());
    executor.execute_pinned(0, || ()).expect_err("the executor is closed");
    executor.force_close();
    go_on.release();
    finish(executor.terminated());
    assert_eq!(ran.get(), 0);
}

#[test]
fn a_force_close_discards_what_no_handler_runs() {
    // Without spares: one that took the worker over would start the next key's handler.
    let builder = KeyedExecutor::builder().name("shut-t50").workers(1).rescue_threads(0);
    let executor = builder.build().expect("the settings are in range");
    let history = History::new(0, 4);
    let (entered, go_on) = (Latch::new(), Latch::new());
    let (inside, until) = (entered.clone(), go_on.clone());
    let keyspace = executor.keyspace(move |message: Message| {
        inside.release();
        message.start().play(Script::ready().blocks_until(&until))
    });
    for n in 0..20 {
        keyspace.try_submit(n % 4, history.issue(n % 4, 0)).expect("the window has room");
    }
    entered.wait();
    executor.force_close();
    // Before it returned, and while the one handler still runs.
    let tally = history.tally();
    assert_eq!((tally.discarded, tally.open()), (19, 1));
    go_on.release();
    finish(executor.terminated());
    let expected = Tally { issued: 20, handled: 1, discarded: 19, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.handled, ledger.discarded), (20, 1, 19));
}

#[test]
fn a_force_close_ends_a_dispatch_and_drops_its_waiting_handlers() {
    let executor = executor("shut-wait", 2);
    let history = History::new(0, 10);
    let started = Counter::new();
    let begun = started.clone();
    let (source, feed) = Source::fed();
    feed.extend((0..30).map(|n| history.issue(n % 10, 0)));
    let dispatch = executor.dispatch(source, Message::key, move |message: Message| {
        begun.add(1);
        message.start().play(Script::ready().never())
    });
    feed.taken().wait_for(30);
    started.wait_for(10);
    executor.force_close();
    let error = finish(dispatch).expect_err("the executor was force closed");
    assert!(matches!(error.cause, Cause::Closed), "the cause is {:?}", error.cause);
    assert_eq!((error.ledger.accepted, error.ledger.cancelled, error.ledger.discarded), (30, 10, 20));
    assert!(feed.dropped().is_released());
    let expected = Tally { issued: 30, cancelled: 10, discarded: 20, ..Tally::default() };
    assert_eq!(history.verify(), expected);
    finish(executor.terminated());
}

#[test]
fn a_force_close_that_comes_from_a_handler_ends_everything_else() {
    let executor = executor("shut-self", 2);
    let history = History::new(0, 10);
    let itself = executor.clone();
    let keyspace = executor.keyspace(move |message: Message| {
        let running = message.start();
        if running.id().key == 0 {
            itself.force_close();
        }
        running.play(Script::ready().yields(3))
    });
    let mut refused = 0_u64;
    for n in 0..100 {
        let key = (n + 1) % 10;
        if let Err(error) = keyspace.try_submit(key, history.issue(key, 0)) {
            refused += 1;
            error.into_message().refuse();
        }
    }
    finish(executor.terminated());
    let (tally, ledger) = (history.verify(), finish(keyspace.drained()));
    assert_eq!((tally.refused, ledger.accepted), (refused, 100 - refused));
    assert_eq!(
        (ledger.handled, ledger.cancelled, ledger.discarded),
        (tally.handled, tally.cancelled, tally.discarded)
    );
}

#[test]
fn messages_that_race_with_a_force_close_end_exactly_once() {
    for round in 0..200 {
        let executor = executor("shut-race3", 2);
        let history = History::bounded(round, 16, 256);
        let keyspace = executor.keyspace(|message: Message| {
            let script = match message.id().number % 5 {
                0 => Script::ready().elsewhere(),
                1 => Script::ready().yields(2),
                2 => Script::ready().never(),
                _ => Script::ready(),
            };
            message.start().play(script)
        });
        let submitters: Vec<_> = (0..2)
            .map(|producer| {
                let (history, keyspace) = (Arc::clone(&history), keyspace.clone());
                std::thread::spawn(move || {
                    for n in 0..100 {
                        if let Err(error) = keyspace.try_submit(n % 16, history.issue(n % 16, producer)) {
                            error.into_message().refuse();
                        }
                    }
                })
            })
            .collect();
        while history.tally_of(0).issued < round % 10 {
            std::thread::yield_now();
        }
        executor.force_close();
        submitters.into_iter().for_each(|thread| thread.join().expect("no submitter panics"));
        finish(executor.terminated());
        let (ledger, tally) = (finish(keyspace.drained()), history.verify());
        assert_eq!(ledger.accepted + tally.refused, 200);
        assert_eq!(
            (ledger.handled, ledger.cancelled, ledger.discarded),
            (tally.handled, tally.cancelled, tally.discarded)
        );
    }
}

#[test]
fn a_force_close_drops_what_another_discard_has_in_hand() {
    const QUEUED: u64 = 9;
    /// The first one that is dropped takes its time.
    struct Slow {
        first: Latch,
        go_on: Latch,
        dropped: Counter,
    }
    impl Drop for Slow {
        fn drop(&mut self) {
            if self.dropped.next() == 1 {
                self.first.release();
                self.go_on.wait();
            }
        }
    }
    let executor = executor("shut-hand", 1);
    let (first, go_on, dropped) = (Latch::new(), Latch::new(), Counter::new());
    let started = Latch::new();
    let begun = started.clone();
    let keyspace = executor.keyspace(move |_: Option<Slow>| {
        begun.release();
        std::future::pending::<()>()
    });
    keyspace.try_submit(0, None).expect("the window has room");
    started.wait();
    for _ in 0..QUEUED {
        let slow = Slow { first: first.clone(), go_on: go_on.clone(), dropped: dropped.clone() };
        keyspace.try_submit(0, Some(slow)).expect("the window has room");
    }
    keyspace.cancel();
    // The worker drops one of them, and has the others to drop after it.
    first.wait();
    executor.force_close();
    assert_eq!(dropped.get(), QUEUED, "not all were dropped before the call returned");
    go_on.release();
    finish(executor.terminated());
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (QUEUED + 1, 1, QUEUED));
}

#[test]
fn a_force_close_after_a_close_drops_a_handler_that_comes_back_to_wait() {
    let executor = executor("shut-after", 1);
    let history = History::new(0, 1);
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let keyspace = executor.keyspace(move |message: Message| {
        let running = message.start();
        inside.release();
        running.play(Script::ready().blocks_until(&held).never())
    });
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    entered.wait();
    executor.close();
    executor.force_close();
    gate.release();
    finish(executor.terminated());
    assert_eq!(history.verify(), Tally { issued: 1, cancelled: 1, ..Tally::default() });
    assert_eq!(finish(keyspace.drained()).cancelled, 1);
}
