//! What is told to the log is told once, with the names and figures of what happened.
//!
//! Observes X9, B-6, B-11: a handler that holds its thread and comes back, on its seat and off it; a worker for which no
//! spare is to be had; tasks that a forced close dropped. One collector takes all lines of this process; each test looks at
//! those of its own labels and names.
#![cfg(not(keyed_loom))]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use keyed_executor::{KeyedExecutor, Keyspace, Options};
use wow_testkit::{Counter, Latch, Line, Log, eventually, finish};

/// What this process logs, from the first look on.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        tracing::subscriber::set_global_default(log.clone()).expect("nobody else collects");
        log
    })
}

/// The lines with this text that say so in a field.
fn told(text: &str, field: &str, value: &str) -> Vec<Line> {
    let mut lines = log().lines();
    lines.retain(|line| line.text() == text && line.get(field) == Some(value));
    lines
}

/// The first line of that kind, once it is there.
fn wait_for(text: &str, field: &str, value: &str) -> Line {
    eventually(text, || !told(text, field, value).is_empty());
    told(text, field, value).remove(0)
}

fn value<'a>(line: &'a Line, field: &str) -> &'a str {
    line.get(field).unwrap_or_else(|| panic!("{line} has no {field}"))
}

fn number(line: &Line, field: &str) -> u128 {
    value(line, field).parse().expect("it is a number")
}

#[expect(clippy::disallowed_methods, reason = "what the log says of a time is compared with the time itself")]
fn now() -> Instant {
    Instant::now()
}

const HOLDS: &str = "a handler holds its thread";
const IS_BACK: &str = "a handler that held its thread is back";
const NO_SPARE: &str = "a handler holds its thread and no spare is to be had: its worker waits";
const DROPPED: &str = "queued tasks were dropped by a forced close";

/// A keyspace whose messages below `stuck` hold their threads until the gate is open; the others are counted.
struct Stuck {
    keyspace: Keyspace<u32, u32>,
    gate: Latch,
    inside: Counter,
    others: Counter,
}

fn stuck(executor: &KeyedExecutor, label: &str, stuck: u32) -> Stuck {
    let (gate, inside, others) = (Latch::new(), Counter::new(), Counter::new());
    let (held, entered, count) = (gate.clone(), inside.clone(), others.clone());
    let keyspace = executor.keyspace_with(Options::new(label), move |n: u32| {
        if n < stuck {
            entered.add(1);
            held.wait();
        } else {
            count.add(1);
        }
        std::future::ready(())
    });
    Stuck { keyspace, gate, inside, others }
}

/// Names of a stuck handler and of its end, on its seat or off it.
fn a_stuck_handler_is_told(label: &str, spares: usize) {
    let _ = log();
    let executor = KeyedExecutor::builder()
        .name(label)
        .workers(1)
        .rescue_threads(spares)
        .stuck_after(Duration::from_millis(20))
        .build()
        .expect("the settings are in range");
    let Stuck { keyspace, gate, inside, others } = stuck(&executor, label, 1);
    // So that a time since the process began would be seen to be none since the handler did.
    finish(keyspace.submit(9, 9)).expect("it is open");
    finish(wow_testkit::after(Duration::from_millis(60)));
    let start = now();
    keyspace.try_submit(0, 0).expect("there is room");
    inside.wait_for(1);
    if spares > 0 {
        keyspace.try_submit(1, 1).expect("there is room");
        others.wait_for(2);
    }
    let named = wait_for(HOLDS, "label", label);
    let until = start.elapsed().as_millis();
    assert_eq!((value(&named, "key"), value(&named, "worker")), ("0", "1"), "{named:?}");
    assert_eq!(value(&named, "rescued"), (spares > 0).to_string(), "{named:?}");
    assert!((20..=until).contains(&number(&named, "held_ms")), "{named:?}, {until} ms after its submission");
    finish(wow_testkit::after(Duration::from_millis(20)));
    gate.release();
    let back = wait_for(IS_BACK, "label", label);
    let until = start.elapsed().as_millis();
    assert_eq!((value(&back, "key"), value(&back, "worker")), ("0", "1"), "{back:?}");
    let held = number(&named, "held_ms") + 10..=until;
    assert!(held.contains(&number(&back, "held_ms")), "{back:?} is not within {held:?}");
    executor.close();
    finish(executor.terminated());
    assert_eq!((told(HOLDS, "label", label).len(), told(IS_BACK, "label", label).len()), (1, 1));
}

#[test]
fn a_handler_that_holds_its_thread_is_told_with_its_time_and_so_is_its_end() {
    a_stuck_handler_is_told("log-stuck", 0);
}

#[test]
fn a_handler_whose_seat_was_taken_is_told_with_its_time_and_so_is_its_end() {
    a_stuck_handler_is_told("log-taken", 1);
}

#[test]
fn a_worker_for_which_no_spare_is_to_be_had_is_told_once() {
    let _ = log();
    let executor = KeyedExecutor::builder()
        .name("log-scarce")
        .workers(3)
        .rescue_threads(2)
        .stuck_after(None)
        .build()
        .expect("the settings are in range");
    // Five threads: all of them get stuck, and the sixth message waits.
    let Stuck { keyspace, gate, inside, .. } = stuck(&executor, "scarce", 12);
    for n in 0..12 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    inside.wait_for(5);
    eventually("it is told", || !told(NO_SPARE, "rescue_threads", "2").is_empty());
    let workers = || {
        let mut workers: Vec<String> = told(NO_SPARE, "rescue_threads", "2")
            .iter()
            .map(|line| value(line, "worker").to_owned())
            .collect();
        workers.sort_unstable();
        workers
    };
    let looks = executor.metrics().monitor.looks;
    eventually("the monitor looked again and again", || executor.metrics().monitor.looks > looks + 20);
    let told = workers();
    let mut once = told.clone();
    once.dedup();
    assert_eq!(told, once, "each worker once");
    assert!(told.iter().all(|worker| ["1", "2", "3"].contains(&worker.as_str())), "{told:?}");
    gate.release();
    executor.close();
    finish(executor.terminated());
}

#[test]
fn the_tasks_that_a_forced_close_dropped_are_counted() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("told to");
        }
    }
    let _ = log();
    for (name, tasks) in [("log-many", [3, 2]), ("log-none", [0, 0])] {
        let executor = KeyedExecutor::builder()
            .name(name)
            .workers(2)
            .rescue_threads(0)
            .build()
            .expect("the settings are in range");
        let (gate, inside) = (Latch::new(), Counter::new());
        for (worker, queued) in [0, 1].into_iter().zip(tasks) {
            let (held, entered) = (gate.clone(), inside.clone());
            let task = move || {
                entered.add(1);
                held.wait();
            };
            executor.execute_pinned(worker, task).expect("it is open");
            inside.wait_for(worker as u64 + 1);
            for _ in 0..queued {
                executor.execute_pinned(worker, || ()).expect("it is open");
            }
            if queued > 0 {
                let loud = Loud;
                executor.execute_pinned(worker, move || drop(loud)).expect("it is open");
            }
        }
        executor.force_close();
        gate.release();
        finish(executor.terminated());
        let lines = told(DROPPED, "executor", name);
        if tasks == [0, 0] {
            assert!(lines.is_empty(), "there was nothing to drop: {lines:?}");
        } else {
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert_eq!(value(&lines[0], "discarded"), "7", "five tasks, and two whose drop panicked");
        }
    }
}
