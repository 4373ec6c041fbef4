//! User code may panic, submit, close or drop anything wherever it runs: no worker dies of it, nothing accepted is lost.
//!
//! Observes KE-30, KE-34, KE-40, KE-42, KM-9. Panics of handlers are in panic.rs, keys in keys.rs,
//! wakers in wakers.rs.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{Cause, KeyedExecutor, Keyspace, Outcome};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use wow_testkit::{Counter, Latch, Script, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Asserts that the only worker still runs what it is given.
fn the_worker_lives(executor: &KeyedExecutor) {
    let ran = Latch::new();
    let run = ran.clone();
    executor.execute_pinned(0, move || run.release()).expect("the executor is open");
    ran.wait();
}

/// Does something when it is dropped.
struct OnDrop(Option<Box<dyn FnOnce() + Send + Sync>>);

impl OnDrop {
    fn new(then: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    fn force_closes(executor: &KeyedExecutor) -> Self {
        let executor = executor.clone();
        Self::new(move || executor.force_close())
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.take().expect("a value is dropped once")();
    }
}

/// Panics where its error is asked for.
struct Untold;

impl Outcome for Untold {
    type Error = String;

    fn into_result(self) -> Result<(), String> {
        panic!("the outcome")
    }
}

#[test]
fn an_outcome_that_panics_is_a_failed_message() {
    let executor = executor("usr-out", 1);
    let outcome = |n: u32| async move {
        let script = if n % 2 == 0 { Script::ready() } else { Script::ready().yields(1) };
        script.await.expect("this script does not fail");
        Untold
    };
    let keyspace: Keyspace<u32, u32> = executor.keyspace(outcome);
    for n in 0..20 {
        keyspace.try_submit(n % 3, n).expect("the window has room");
    }
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.failed), (20, 20));
    the_worker_lives(&executor);
    for n in 0..2 {
        let error = finish(executor.dispatch(stream::iter([n]), |n: &u32| *n, outcome));
        let cause = error.expect_err("the outcome panicked").cause;
        assert!(
            matches!(&cause, Cause::HandlerPanicked { message, .. } if message == "the outcome"),
            "the cause is {cause:?}"
        );
    }
    the_worker_lives(&executor);
    executor.close();
}

#[test]
fn the_last_handles_may_be_dropped_inside_their_own_handler() {
    type Handles = (KeyedExecutor, Keyspace<u32, u32>);
    let executor = executor("usr-last", 2);
    let handles: Arc<Mutex<Option<Handles>>> = Arc::default();
    let (taken, done) = (Arc::clone(&handles), Counter::new());
    let counted = done.clone();
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
        let last = taken.lock().expect("nothing panics here").take();
        drop(last);
        counted.add(1);
        async {}
    });
    let terminated = executor.terminated();
    let submitter = keyspace.clone();
    *handles.lock().expect("nothing panics here") = Some((executor, keyspace));
    for n in 0..3 {
        submitter.try_submit(n, n).expect("a handle is left");
    }
    drop(submitter);
    finish(terminated);
    assert_eq!(done.get(), 3, "what was accepted before was not handled");
}

#[test]
fn a_forced_close_inside_the_drop_of_a_message_returns() {
    let handled = executor("usr-msg", 2);
    let keyspace: Keyspace<u32, OnDrop> = handled.keyspace(|message: OnDrop| async move { drop(message) });
    keyspace.try_submit(0, OnDrop::force_closes(&handled)).expect("the window has room");
    finish(handled.terminated());

    let discarded = executor("usr-disc", 2);
    let keyspace: Keyspace<u32, Option<OnDrop>> = discarded.keyspace(|_| std::future::pending::<()>());
    keyspace.try_submit(0, None).expect("the window has room");
    let last = OnDrop::force_closes(&discarded);
    keyspace.try_submit(0, Some(last)).expect("the window has room");
    keyspace.cancel();
    finish(discarded.terminated());
    assert_eq!(finish(keyspace.drained()).accepted, 2);
}

#[test]
fn a_forced_close_inside_the_drop_of_a_future_returns() {
    let executor = executor("usr-fut", 2);
    let started = Latch::new();
    let begun = started.clone();
    let keyspace: Keyspace<u32, OnDrop> = executor.keyspace(move |message: OnDrop| {
        let begun = begun.clone();
        async move {
            let _message = message;
            begun.release();
            std::future::pending::<()>().await;
        }
    });
    keyspace.try_submit(0, OnDrop::force_closes(&executor)).expect("the window has room");
    started.wait();
    keyspace.cancel();
    finish(executor.terminated());
    assert_eq!(finish(keyspace.drained()).cancelled, 1);
}

#[test]
fn a_forced_close_inside_the_drop_of_a_source_or_a_task_returns() {
    let of_a_source = executor("usr-src", 2);
    let (asked, last) = (Latch::new(), OnDrop::force_closes(&of_a_source));
    let ask = asked.clone();
    let source = stream::poll_fn(move |_| {
        let _owned = &last;
        ask.release();
        Poll::<Option<u32>>::Pending
    });
    let dispatch = of_a_source.dispatch(source, |n: &u32| *n, |_| async {});
    asked.wait();
    dispatch.cancel();
    finish(of_a_source.terminated());
    finish(dispatch).expect_err("it was cancelled");

    let of_a_task = executor("usr-task", 2);
    let last = OnDrop::force_closes(&of_a_task);
    of_a_task.execute(move || drop(last)).expect("the executor is open");
    finish(of_a_task.terminated());
}

#[test]
fn a_handler_that_panics_when_it_is_dropped_costs_no_worker() {
    let executor = executor("usr-clo", 1);
    let dropped = Counter::new();
    for round in 1..=20 {
        let (counted, started, open) = (dropped.clone(), Latch::new(), Latch::new());
        let bomb = OnDrop::new(move || {
            counted.add(1);
            panic!("the handler's own drop");
        });
        let (begun, gate) = (started.clone(), open.clone());
        let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
            let _owned = &bomb;
            begun.release();
            Script::ready().until(&gate)
        });
        keyspace.try_submit(0, 0).expect("the window has room");
        started.wait();
        // The worker has the last of it, once the message is done.
        drop(keyspace);
        open.release();
        eventually("the handler is gone", || dropped.get() == round);
        the_worker_lives(&executor);
    }
    executor.close();
    finish(executor.terminated());
}
