//! What goes wrong without ending anything is told in the log: a later failure, a failed drop, a task that panicked.
//!
//! Observes KE-30, KE-34, KF-4, KF-5; scenarios T5, T12, T13, T45. One test in a process of its own: the log it reads is
//! the one of the whole process. What an entry says in words is not promised; its level and the names in it are.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace, OnFailure, Options, SubmitRefusal};
use wow_testkit::{Failure, Latch, Log, Script, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Panics with its text when it is dropped.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

#[test]
fn what_ends_nothing_is_told_in_the_log() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).expect("this test is alone in its process");

    a_later_failure(&log);
    a_failure_of_a_dispatch_that_continues(&log);
    a_task_that_panics(&log);
    a_discard_that_panics(&log);
}

fn a_later_failure(log: &Log) {
    let executor = executor("rep-late", 2);
    let (entered, go_on) = (Latch::new(), Latch::new());
    let (inside, until) = (entered.clone(), go_on.clone());
    let options = Options::new("orders").on_failure(OnFailure::Fail);
    let keyspace: Keyspace<&str, &str> = executor.keyspace_with(options, move |key| {
        let (inside, until) = (inside.clone(), until.clone());
        async move {
            if key == "late-key" {
                inside.release();
                // Holds its worker inside one step: it cannot be cancelled before it fails by itself.
                until.wait();
            }
            Err::<(), _>(Failure("no".to_owned()))
        }
    });
    keyspace.try_submit("late-key", "late-key").expect("the window has room");
    entered.wait();
    // The other worker was not started yet, so this key goes there.
    keyspace.try_submit("first-key", "first-key").expect("the window has room");
    eventually("the first failure ends it", || match keyspace.try_submit("a third", "a third") {
        Err(refused) => refused.reason == SubmitRefusal::Failed,
        Ok(()) => false,
    });
    go_on.release();
    assert_eq!(finish(keyspace.drained()).failed, 2);
    assert_eq!(
        log.count(&["ERROR", "orders", "late-key"]),
        1,
        "the later failure was not reported once: {:?}",
        log.lines()
    );
    executor.close();
}

fn a_failure_of_a_dispatch_that_continues(log: &Log) {
    let executor = executor("rep-on", 1);
    let options = Options::new("payments").on_failure(OnFailure::Continue);
    let keyspace: Keyspace<&str, bool> = executor.keyspace_with(options, |panics| {
        let script = Script::ready();
        if panics { script.panics("broken handler") } else { script.fails("no") }
    });
    keyspace.try_submit("failing-key", false).expect("the window has room");
    keyspace.try_submit("panicking-key", true).expect("the window has room");
    assert_eq!(finish(keyspace.drained()).failed, 2);
    assert_eq!(
        log.count(&["WARN", "payments", "failing-key"]),
        1,
        "the failure was not reported once: {:?}",
        log.lines()
    );
    let told = log.count(&["ERROR", "payments", "panicking-key", "broken handler"]);
    assert_eq!(told, 1, "the panic was not reported once: {:?}", log.lines());
    executor.close();
}

fn a_task_that_panics(log: &Log) {
    let executor = executor("rep-task", 1);
    executor.execute(|| panic!("broken task")).expect("the executor is open");
    eventually("the panic is reported", || log.count(&["ERROR", "broken task"]) == 1);
    executor.close();
    finish(executor.terminated());
}

fn a_discard_that_panics(log: &Log) {
    let executor = executor("rep-drop", 1);
    let (held, go_on) = (Latch::new(), Latch::new());
    let (entered, until) = (held.clone(), go_on.clone());
    let hold = move || {
        entered.release();
        until.wait();
    };
    executor.execute_pinned(0, hold).expect("the executor is open");
    held.wait();
    for _ in 0..3 {
        executor.execute_pinned(0, || ()).expect("the executor is open");
    }
    let bomb = Bomb("broken discard");
    executor.execute_pinned(0, move || drop(bomb)).expect("the executor is open");
    executor.force_close();
    assert_eq!(
        log.count(&["ERROR", "broken discard"]),
        1,
        "the discard was not reported once: {:?}",
        log.lines()
    );
    go_on.release();
    finish(executor.terminated());
}
