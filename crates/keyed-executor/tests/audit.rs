//! An auditor that is on names what breaks a key's order or exclusion, and finds nothing where nothing is broken.
//!
//! Observes B-7: a key whose comparison lies is two mailboxes for one key, whose messages overlap; a loaded run through both
//! doors, with waits, failures, panics, cancelled keyspaces and rescues, is clean; keys that share a hash are told apart.
#![cfg(not(keyed_loom))]

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream;
use keyed_executor::{Audit, Audited, KeyedExecutor, Keyspace, OnFailure, Options, Violation};
use wow_testkit::{Counter, Latch, Script, Source, eventually, finish};

/// A key that is not equal to itself while it lies.
#[derive(Clone, Debug)]
struct Liar(u32, Silent);

#[derive(Clone)]
struct Silent(Arc<AtomicBool>);

impl std::fmt::Debug for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

impl PartialEq for Liar {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && !self.1.0.load(Ordering::Relaxed)
    }
}

impl Eq for Liar {}

impl Hash for Liar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn messages_of_one_key_that_overlap_are_named() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let executor = KeyedExecutor::builder()
        .name("aud-lie")
        .workers(2)
        .on_misorder(move |misorder| log.lock().expect("no hook panics").push(misorder.clone()))
        .build()
        .expect("the settings are in range");
    let lies = Silent(Arc::new(AtomicBool::new(false)));
    let gate = Latch::new();
    let held = gate.clone();
    let options = Options::new("orders").audit(Audit::On);
    let keyspace: Keyspace<Liar, u32> =
        executor.keyspace_with(options, move |_| Script::ready().until(&held));
    keyspace.try_submit(Liar(7, lies.clone()), 1).expect("there is room");
    eventually("it waits", || keyspace.metrics().waiting == 1);
    lies.0.store(true, Ordering::Relaxed);
    keyspace.try_submit(Liar(7, lies.clone()), 2).expect("there is room");
    eventually("both wait", || keyspace.metrics().waiting == 2);
    lies.0.store(false, Ordering::Relaxed);
    gate.release();
    finish(keyspace.drained());
    let told = told.lock().expect("no hook panics");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&*told[0].dispatch, &*told[0].key), ("orders", "Liar(7, ..)"));
    assert_eq!(told[0].what, Violation::Overlap { started: 2 });
    let audited = keyspace.metrics().audited.expect("it is on");
    assert_eq!(audited, Audited { checked: 2, unclear: 0, violations: 1 });
    executor.close();
}

/// A key whose hash says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alike(u32);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

#[test]
fn keys_that_share_a_hash_are_told_apart() {
    let executor =
        KeyedExecutor::builder().name("aud-alike").workers(2).build().expect("the settings are in range");
    let gate = Latch::new();
    let held = gate.clone();
    let keyspace: Keyspace<Alike, u32> =
        executor.keyspace_with(Options::new("alike").audit(Audit::On), move |_| Script::ready().until(&held));
    for n in 0..20 {
        keyspace.try_submit(Alike(n), n).expect("there is room");
    }
    eventually("all of them wait", || keyspace.metrics().waiting == 20);
    gate.release();
    finish(keyspace.drained());
    let audited = keyspace.metrics().audited.expect("it is on");
    assert_eq!((audited.checked, audited.violations), (20, 0));
    executor.close();
}

#[test]
fn a_loaded_run_with_everything_that_can_happen_is_clean() {
    const MESSAGES: u64 = 30_000;
    let executor = KeyedExecutor::builder()
        .name("aud-load")
        .workers(3)
        .rescue_threads(16)
        .on_misorder(|misorder| panic!("{misorder}"))
        .build()
        .expect("the settings are in range");
    let options =
        |label: &str| Options::new(label).max_in_flight(64).on_failure(OnFailure::Continue).audit(Audit::On);
    let (began, number) = (Counter::new(), Arc::new(AtomicU64::new(0)));
    let handler = move |n: u64| {
        let count = &began;
        let begun = number.fetch_add(1, Ordering::Relaxed);
        count.add(1);
        match n % 101 {
            0 => Script::ready().panics("told to"),
            1..10 => Script::ready().fails("told to"),
            10..20 => Script::ready().yields(2),
            20..30 => Script::ready().elsewhere(),
            30 if n < MESSAGES / 4 => {
                // Blocks until some other message began after it, which a rescue lets happen.
                count.wait_for(begun + 2);
                Script::ready()
            }
            _ => Script::ready(),
        }
    };
    let pulled =
        executor.dispatch_with(options("pulled"), stream::iter(0..MESSAGES), |n| *n % 97, handler.clone());
    let keyspace: Keyspace<u64, u64> = executor.keyspace_with(options("submitted"), handler.clone());
    let dropped: Keyspace<u64, u64> = executor.keyspace_with(options("dropped"), handler);
    for n in 0..MESSAGES / 3 {
        finish(keyspace.submit(n % 50, n)).expect("it is open");
        if n == MESSAGES / 6 {
            dropped.cancel();
        }
        let _ = dropped.try_submit(n % 3, n);
    }
    finish(keyspace.drained());
    finish(dropped.drained());
    let audited = [&keyspace, &dropped].map(|keyspace| keyspace.metrics().audited.expect("it is on"));
    assert_eq!((audited[0].checked, audited[0].violations), (MESSAGES / 3, 0));
    assert_eq!(audited[1].violations, 0);
    eventually("the source is through", || {
        pulled.metrics().and_then(|metrics| metrics.audited).is_some_and(|of| of.checked == MESSAGES)
    });
    let audited = pulled.metrics().and_then(|metrics| metrics.audited).expect("it is on");
    assert_eq!(audited.violations, 0);
    let _ = finish(pulled).expect("failures do not end it");
    executor.close();
    finish(executor.terminated());
}

#[test]
fn what_a_message_claimed_comes_back_when_it_ends_wherever_it_was_started() {
    const MESSAGES: u64 = 5_000;
    let executor = KeyedExecutor::builder().name("aud-claims").workers(1).build().expect("in range");
    let done = Counter::new();
    let count = done.clone();
    let options = Options::new("orders").max_in_flight(1_024).audit(Audit::On);
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch_with(
        options,
        source,
        |n: &u64| *n,
        move |n: u64| {
            let count = count.clone();
            async move {
                // Some end where they were started, some wait there first.
                Script::ready().yields((n % 2) as usize).await.expect("it does not fail");
                count.add(1);
            }
        },
    );
    // A few at a time: far more messages than there are cells, never more than a dozen at once.
    for n in 0..MESSAGES / 10 {
        feed.extend(n * 10..(n + 1) * 10);
        done.wait_for((n + 1) * 10);
    }
    let audited = dispatch.metrics().and_then(|metrics| metrics.audited).expect("it is on");
    assert_eq!(audited, Audited { checked: MESSAGES, unclear: 0, violations: 0 });
    feed.end();
    finish(dispatch).expect("no handler fails");
    executor.close();
}

#[test]
fn keys_that_run_at_once_do_not_stand_in_each_others_way() {
    let executor = KeyedExecutor::builder().name("aud-apart").workers(2).build().expect("in range");
    let options = Options::new("orders").max_in_flight(4_096).audit(Audit::On);
    let keyspace: Keyspace<u32, u32> = executor.keyspace_with(options, |_| Script::ready().never());
    for n in 0..20 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    eventually("all of them wait", || keyspace.metrics().waiting == 20);
    let audited = keyspace.metrics().audited.expect("it is on");
    assert_eq!(audited, Audited { checked: 20, unclear: 0, violations: 0 });
    keyspace.cancel();
    finish(keyspace.drained());
    executor.close();
}
