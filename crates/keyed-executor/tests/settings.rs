//! What an executor is told, what it tells about itself, and what a handler can learn of the executor it runs on.
//!
//! Observes KE-3, KE-4, KE-6, KE-7, KM-1, KM-31; scenarios T34 to T37.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{Config, KeyedExecutor, Keyspace, defaults, limits};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wow_testkit::{Counter, Latch, Script, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

#[test]
fn wrong_settings_are_refused_all_at_once() {
    let wrong = Config {
        name: String::new(),
        workers: 0,
        max_in_flight: 0,
        max_per_key: Some(0),
        overflow: limits::OVERFLOW.end() + 1,
        throughput: 0,
        spin: Duration::from_micros(1_001),
        rescue_threads: limits::RESCUE_THREADS.end() + 1,
        rescue_after: limits::MAX_RESCUE_AFTER + Duration::from_nanos(1),
        stuck_after: Some(Duration::ZERO),
    };
    let error = KeyedExecutor::new(wrong).expect_err("nothing of it is in range");
    let fields: BTreeSet<_> = error.problems().iter().map(|problem| problem.field).collect();
    assert_eq!(
        fields,
        BTreeSet::from([
            "name",
            "workers",
            "max_in_flight",
            "max_per_key",
            "overflow",
            "throughput",
            "spin",
            "rescue_threads",
            "rescue_after",
            "stuck_after"
        ])
    );
    for (config, field) in [
        (Config { workers: 0, ..Config::default() }, "workers"),
        (Config { workers: limits::WORKERS.end() + 1, ..Config::default() }, "workers"),
        (Config { max_in_flight: 0, ..Config::default() }, "max_in_flight"),
        (Config { max_per_key: Some(0), ..Config::default() }, "max_per_key"),
        (Config { overflow: limits::OVERFLOW.end() + 1, ..Config::default() }, "overflow"),
        (Config { throughput: 0, ..Config::default() }, "throughput"),
        (Config { spin: Duration::from_secs(1), ..Config::default() }, "spin"),
    ] {
        let error = KeyedExecutor::new(config).expect_err("one value is out of range");
        assert!(error.problems().len() == 1 && error.problems()[0].field == field, "{error}");
        assert!(error.to_string().starts_with(field), "{error}");
    }
    KeyedExecutor::builder().spin(limits::MAX_SPIN).build().expect("1 ms is in range");
}

#[test]
fn the_ends_of_a_range_are_in_it_and_what_is_beyond_them_is_not() {
    let nano = Duration::from_nanos(1);
    for (accepted, refused) in [
        (
            Config { stuck_after: Some(limits::MAX_STUCK_AFTER), ..Config::default() },
            Config { stuck_after: Some(limits::MAX_STUCK_AFTER + nano), ..Config::default() },
        ),
        (
            Config { stuck_after: Some(nano), ..Config::default() },
            Config { stuck_after: Some(Duration::ZERO), ..Config::default() },
        ),
        (
            Config { rescue_after: limits::MAX_RESCUE_AFTER, ..Config::default() },
            Config { rescue_after: limits::MAX_RESCUE_AFTER + nano, ..Config::default() },
        ),
        (
            Config { spin: limits::MAX_SPIN, ..Config::default() },
            Config { spin: limits::MAX_SPIN + nano, ..Config::default() },
        ),
        (
            Config { name: "a".to_owned(), ..Config::default() },
            Config { name: "a\0".to_owned(), ..Config::default() },
        ),
        (
            Config {
                rescue_threads: 0,
                stuck_after: None,
                rescue_after: Duration::ZERO,
                ..Config::default()
            },
            Config { rescue_threads: limits::RESCUE_THREADS.end() + 1, ..Config::default() },
        ),
    ] {
        assert_eq!(accepted.validate(), Ok(()), "{accepted:?}");
        let error = refused.validate().expect_err("one value is beyond its range");
        assert_eq!(error.problems().len(), 1, "{error}");
    }
}

#[test]
fn the_defaults_are_what_they_are_said_to_be() {
    let config = Config::default();
    assert_eq!((config.name.as_str(), config.max_in_flight, config.throughput), ("wow-dispatch", 256, 16));
    assert_eq!((config.max_per_key, config.overflow), (None, 1_024));
    assert_eq!((config.workers, config.spin), (defaults::workers(), Duration::ZERO));
    assert_eq!(Some(defaults::workers()), std::thread::available_parallelism().ok().map(usize::from));
    let executor = KeyedExecutor::new(config.clone()).expect("the defaults are in range");
    assert_eq!(*executor.config(), config);
}

#[test]
fn the_builder_sets_each_value_and_leaves_the_others() {
    let expected = Config {
        name: "wrk-built".to_owned(),
        workers: 3,
        max_in_flight: 77,
        max_per_key: Some(9),
        overflow: 11,
        throughput: 5,
        spin: Duration::from_micros(12),
        rescue_threads: 2,
        rescue_after: Duration::from_millis(4),
        stuck_after: Some(Duration::from_secs(7)),
    };
    // In the order of the fields and in the reverse one: whatever a setter changes beside its own value shows.
    let forward = KeyedExecutor::builder()
        .name("wrk-built")
        .workers(3)
        .max_in_flight(77)
        .max_per_key(9)
        .overflow(11)
        .throughput(5)
        .spin(Duration::from_micros(12))
        .rescue_threads(2)
        .rescue_after(Duration::from_millis(4))
        .stuck_after(Duration::from_secs(7));
    let backward = KeyedExecutor::builder()
        .stuck_after(Duration::from_secs(7))
        .rescue_after(Duration::from_millis(4))
        .rescue_threads(2)
        .spin(Duration::from_micros(12))
        .throughput(5)
        .overflow(11)
        .max_per_key(9)
        .max_in_flight(77)
        .workers(3)
        .name("wrk-built");
    for builder in [forward, backward] {
        let executor = builder.build().expect("the settings are in range");
        assert_eq!(*executor.config(), expected);
    }
}

#[test]
fn the_textual_form_tells_name_and_settings() {
    let executor = KeyedExecutor::builder()
        .name("wrk-text")
        .workers(3)
        .max_in_flight(77)
        .throughput(5)
        .spin(Duration::from_micros(12))
        .build()
        .expect("the settings are in range");
    let text = format!("{executor:?}");
    for part in ["wrk-text", "3", "77", "5", "12"] {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
}

#[test]
fn the_textual_form_of_a_dispatch_tells_whether_it_ended() {
    let executor = executor("wrk-said", 1);
    let gate = Latch::new();
    let held = gate.clone();
    let dispatch =
        executor.dispatch(stream::iter([0_u32]), |n: &u32| *n, move |_| Script::ready().until(&held));
    assert!(format!("{dispatch:?}").contains("ended: false"), "{dispatch:?}");
    gate.release();
    eventually("it ended", || format!("{dispatch:?}").contains("ended: true"));
    executor.close();
}

#[test]
fn the_shared_executor_is_one_and_stays_open() {
    let (one, other) = (KeyedExecutor::shared(), KeyedExecutor::shared());
    assert!(std::ptr::eq(one, other));
    assert_eq!(*one.config(), Config { name: "wow-dispatch-shared".to_owned(), ..Config::default() });
    one.close();
    one.clone().force_close();
    assert!(!one.is_closed(), "the shared executor is never closed");
    let ran = Latch::new();
    let told = ran.clone();
    one.execute(move || told.release()).expect("it is open");
    ran.wait();
    let dispatch = one.dispatch(stream::iter(0..10_u32), |n: &u32| *n, |_| async {});
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 10);
}

#[test]
fn a_handler_and_a_task_know_their_executor() {
    assert!(KeyedExecutor::current().is_none());
    let executor = executor("wrk-ctx", 2);
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = {
        let names = Arc::clone(&names);
        move || {
            let current = KeyedExecutor::current().expect("this is a worker thread");
            names.lock().expect("nothing panics here").push(current.config().name.clone());
        }
    };
    let at_start = note.clone();
    let dispatch = executor.dispatch(
        stream::iter([0_u32]),
        |n: &u32| *n,
        move |_| {
            at_start();
            let later = at_start.clone();
            async move {
                Script::ready().elsewhere().await.expect("this script does not fail");
                later();
            }
        },
    );
    finish(dispatch).expect("no handler fails");
    let done = Latch::new();
    let ran = done.clone();
    executor
        .execute(move || {
            note();
            ran.release();
        })
        .expect("the executor is open");
    done.wait();
    assert_eq!(*names.lock().expect("nothing panics here"), ["wrk-ctx"; 3]);
    assert!(KeyedExecutor::current().is_none());
    executor.close();
}

#[test]
fn a_blocking_wait_inside_a_handler_is_refused_at_once() {
    let executor = executor("wrk-block", 1);
    let refusals = Counter::new();
    let counted = refusals.clone();
    let dispatch = executor.dispatch(
        stream::iter([0_u32]),
        |n: &u32| *n,
        move |_| {
            let counted = counted.clone();
            async move {
                let current = KeyedExecutor::current().expect("this is a worker thread");
                // On the only worker, each of these would wait for itself.
                let inner = current.dispatch(stream::iter([1_u32]), |n: &u32| *n, |_| async {});
                inner.wait().expect_err("a worker must not block");
                current.join().expect_err("a worker must not block");
                counted.add(1);
            }
        },
    );
    let ledger = dispatch.wait().expect("this is no worker thread").expect("no handler fails");
    assert_eq!((ledger.handled, refusals.get()), (1, 1));
    executor.close();
}

#[test]
fn keys_differ_by_all_that_they_are_and_by_nothing_else() {
    // Context, name and id are the key; the tenant travels in the message and changes nothing.
    type Key = (&'static str, &'static str, u32);
    struct Order {
        key: Key,
        tenant: &'static str,
    }
    let executor = executor("wrk-key", 2);
    let (started, open) = (Arc::new(Mutex::new(Vec::new())), Latch::new());
    let (begun, gate, count) = (Arc::clone(&started), open.clone(), Counter::new());
    let counted = count.clone();
    let keyspace: Keyspace<Key, Order> = executor.keyspace(move |order: Order| {
        begun.lock().expect("nothing panics here").push((order.key, order.tenant));
        counted.add(1);
        Script::ready().until(&gate)
    });
    let keys = [("sales", "order", 1), ("stock", "order", 1), ("sales", "cart", 1), ("sales", "order", 2)];
    for tenant in ["red", "blue"] {
        for key in keys {
            keyspace.try_submit(key, Order { key, tenant }).expect("the window has room");
        }
    }
    count.wait_for(4);
    let sorted = |tenant| {
        let started = started.lock().expect("nothing panics here");
        let mut of: Vec<_> =
            started.iter().filter(|(_, other)| *other == tenant).map(|(key, _)| *key).collect();
        of.sort_unstable();
        of
    };
    let mut all = keys.to_vec();
    all.sort_unstable();
    assert_eq!((sorted("red"), sorted("blue")), (all.clone(), Vec::new()));
    open.release();
    finish(keyspace.drained());
    assert_eq!(sorted("blue"), all);
    executor.close();
}

#[test]
fn the_metrics_count_the_keys_that_are_live_on_a_worker() {
    let executor = executor("wrk-live", 1);
    let started = Counter::new();
    let begun = started.clone();
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        begun.add(1);
        async move {
            if n > 0 {
                std::future::pending::<()>().await;
            }
        }
    });
    let live = || executor.metrics().workers[0].live_mailboxes;
    // Keys that are new whenever they come, one at a time and together.
    for _ in 0..100 {
        finish(keyspace.submit(0, 0)).expect("the keyspace is open");
        finish(keyspace.drained());
    }
    assert_eq!(executor.metrics().workers[0].placements, 100);
    eventually("no key is live", || live() == 0);
    for n in 1..=10 {
        keyspace.try_submit(n, n).expect("the window has room");
        keyspace.try_submit(n, n).expect("the window has room");
    }
    started.wait_for(110);
    eventually("ten keys are live", || live() == 10);
    keyspace.cancel();
    finish(keyspace.drained());
    eventually("no key is live", || live() == 0);
    executor.close();
}
