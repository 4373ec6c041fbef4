//! Where messages are weighed, the bytes of those that are unfinished are bounded beside their number.
//!
//! Observes B-9: the budget by both doors, in place and queued; what never has room is refused with its size and the
//! limit; a heavy message that waits holds nobody up; a key that is too long never gets in.
#![cfg(not(keyed_loom))]

#[path = "common/settle.rs"]
mod settle;
#[path = "common/windowed.rs"]
mod windowed;

use keyed_executor::{Cause, KeyedExecutor, Keyspace, OnFailure, Options, SubmitRefusal, Weights};
use settle::settle;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use windowed::executor;
use wow_testkit::{Counter, Feed, Latch, Script, Source, eventually, finish};

type Weighed<K> = Options<Weights<fn(&K) -> usize, fn(&Load) -> usize>>;

fn options<K>(max_bytes: usize, of_key: fn(&K) -> usize) -> Weighed<K> {
    let of_load: fn(&Load) -> usize = |load| load.bytes;
    let options = Options::new("bytes").on_failure(OnFailure::Continue);
    options.weighed(max_bytes, Weights { key: of_key, message: of_load })
}

/// Bytes that are accepted and unfinished, with their peak.
#[derive(Clone, Default)]
struct Scales(Arc<(AtomicUsize, AtomicUsize)>);

impl Scales {
    fn load(&self, number: u64, bytes: usize) -> Load {
        Load { number, bytes, on: None, scales: self.clone() }
    }

    fn peak(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }
}

/// A message that weighs something from the moment at which it is put on the scales until it is dropped.
struct Load {
    number: u64,
    bytes: usize,
    on: Option<Scales>,
    scales: Scales,
}

impl Load {
    fn put_on(mut self) -> Self {
        let now = self.scales.0.0.fetch_add(self.bytes, Ordering::Relaxed) + self.bytes;
        self.scales.0.1.fetch_max(now, Ordering::Relaxed);
        self.on = Some(self.scales.clone());
        self
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(scales) = &self.on {
            scales.0.0.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_keyspace_accepts_what_its_budget_has_room_for_and_not_a_byte_more() {
    let executor = executor("by-exact", 1, 64);
    let open: Arc<Vec<Latch>> = Arc::new((0..8).map(|_| Latch::new()).collect());
    let gates = Arc::clone(&open);
    let keyspace: Keyspace<String, Load> =
        executor.keyspace_with(options(100, String::len), move |load: Load| {
            let gate = gates[load.number as usize].clone();
            async move {
                gate.released().await;
                drop(load);
            }
        });
    let scales = Scales::default();
    let submit = |key: &str, number, bytes| {
        keyspace.try_submit(key.to_owned(), scales.load(number, bytes)).map_err(|refused| refused.reason)
    };
    // The key weighs as well.
    assert_eq!(submit("ab", 0, 58), Ok(()));
    assert_eq!(submit("ab", 1, 38), Ok(()));
    assert_eq!(submit("c", 2, 0), Err(SubmitRefusal::BytesFull));
    assert_eq!(submit("", 2, 0), Ok(()), "what weighs nothing has room");
    open[0].release();
    eventually("the first has come back", || keyspace.in_flight() == 2);
    assert_eq!(submit("c", 3, 60), Err(SubmitRefusal::BytesFull));
    assert_eq!(submit("c", 3, 59), Ok(()));
    open.iter().for_each(Latch::release);
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.handled), (4, 4));
    // All of it is there again.
    assert_eq!(submit("d", 4, 99), Ok(()));
    assert_eq!(finish(keyspace.drained()).handled, 5);
    executor.close();
}

#[test]
fn what_never_has_room_is_refused_with_its_size_and_the_limit() {
    let executor = executor("by-never", 1, 64);
    let scales = Scales::default();
    let keyspace: Keyspace<String, Load> =
        executor.keyspace_with(options(100, String::len).max_key_bytes(4), |_: Load| async {});
    let refused =
        keyspace.try_submit("abcde".to_owned(), scales.load(0, 1)).expect_err("its key is too long");
    assert_eq!(refused.reason, SubmitRefusal::KeyTooLong { bytes: 5, max: 4 });
    assert_eq!(refused.to_string(), "the key has 5 bytes, and keys may have 4");
    let refused = finish(keyspace.submit("a".to_owned(), scales.load(7, 100))).expect_err("it is too heavy");
    assert_eq!(refused.reason, SubmitRefusal::TooHeavy { bytes: 101, max: 100 });
    let told = "the message weighs 101 bytes with its key, and the whole budget is 100";
    assert_eq!((refused.to_string().as_str(), refused.into_message().number), (told, 7));
    assert_eq!(finish(keyspace.drained()).accepted, 0);

    for (key, bytes, told) in [
        ("abcde", 1, "the key has 5 bytes, and keys may have 4"),
        ("ab", 99, "of key \"ab\": the message weighs 101 bytes with its key, and the whole budget is 100"),
    ] {
        let (source, feed) = Source::fed();
        let done = Counter::new();
        let ended = done.clone();
        feed.push(scales.load(0, 1));
        let options = options(100, String::len).max_key_bytes(4).on_failure(OnFailure::Continue);
        let of = move |load: &Load| if load.number == 0 { String::new() } else { key.to_owned() };
        let dispatch = executor.dispatch_with(options, source, of, move |_: Load| {
            ended.add(1);
            async {}
        });
        done.wait_for(1);
        feed.push(scales.load(1, bytes));
        let error = finish(dispatch).expect_err("it never has room, whatever the policy for handlers");
        assert_eq!(error.cause.to_string(), told);
        assert!(matches!(error.cause, Cause::KeyTooLong { .. } | Cause::TooHeavy { .. }));
        assert_eq!((error.ledger.accepted, error.ledger.handled, error.ledger.discarded), (2, 1, 1));
        feed.dropped().wait();
    }
    executor.close();
}

/// Sends messages of random weights through a source whose handlers end at once, wait, or wait elsewhere.
fn through_a_source(workers: usize, waits: bool) {
    const MAX: usize = 1_000;
    let executor = executor("by-src", workers, 64);
    let scales = Scales::default();
    let made = scales.clone();
    let items =
        (0..20_000_u64).map(move |number| made.load(number, (number * 7_919 % 400) as usize).put_on());
    let (source, _feed): (_, Feed<Load>) = Source::over(items);
    let handler = move |load: Load| async move {
        let script = match load.number % 5 {
            0 if waits => Script::ready().elsewhere(),
            1 if waits => Script::ready().yields(2),
            _ => Script::ready(),
        };
        script.await.expect("this script does not fail");
        drop(load);
    };
    let dispatch =
        executor.dispatch_with(options(MAX, |_: &u64| 0), source, |load: &Load| load.number % 37, handler);
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 20_000);
    // One more than the budget holds has been taken from the source: it is what the source is asked for next.
    assert!(scales.peak() <= MAX + 399, "{} bytes were out", scales.peak());
    executor.close();
}

#[test]
fn a_source_is_asked_for_one_message_more_than_its_budget_holds_and_not_for_another() {
    for (workers, waits) in [(1, false), (1, true), (3, true)] {
        through_a_source(workers, waits);
    }
}

#[test]
fn a_source_whose_message_has_no_room_waits_for_it_and_goes_on() {
    let executor = executor("by-aside", 1, 64);
    let (open, done, scales) = (Latch::new(), Counter::new(), Scales::default());
    let (gate, ended) = (open.clone(), done.clone());
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch_with(
        options(100, |_: &u64| 0),
        source,
        |load: &Load| load.number,
        move |load: Load| {
            let (gate, ended) = (gate.clone(), ended.clone());
            async move {
                if load.number == 0 {
                    gate.released().await;
                }
                drop(load);
                ended.add(1);
            }
        },
    );
    for (number, bytes) in [(0, 60), (1, 40), (2, 41), (3, 1)] {
        feed.push(scales.load(number, bytes));
    }
    done.wait_for(1);
    feed.taken().wait_for(3);
    assert_eq!(done.get(), 1, "41 bytes have no room beside 60");
    assert_eq!(feed.taken().get(), 3, "the source is not asked meanwhile");
    open.release();
    feed.end();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 4);
    executor.close();
}

#[test]
fn a_message_that_starts_where_it_arrives_and_waits_holds_its_bytes_until_it_ends() {
    const CHEAP: u64 = 500;
    const EACH: u64 = CHEAP + 3;
    let executor = executor("by-place", 1, 64);
    let turns = || KeyedExecutor::current().expect("this is a worker").metrics().workers[0].turns;
    let turns_before = Arc::new(AtomicU64::new(0));
    let (started, asked, gates) = (Counter::new(), Counter::new(), Arc::new(Mutex::new(Vec::new())));
    let (seen, was_in_place) = (Arc::clone(&turns_before), Arc::new(AtomicBool::new(false)));
    let (begun, held, in_place) = (started.clone(), Arc::clone(&gates), Arc::clone(&was_in_place));
    let handler = move |load: Load| {
        let gate = (load.number > 0).then(|| {
            // A message that was queued first is started by a turn.
            in_place.store(turns() == turns_before.load(Ordering::Relaxed), Ordering::Relaxed);
            let gate = Latch::new();
            held.lock().expect("nothing panics here").push(gate.clone());
            begun.add(1);
            gate
        });
        async move {
            if let Some(gate) = gate {
                gate.released().await;
            }
            drop(load);
        }
    };
    let asks = asked.clone();
    let key = move |load: &Load| {
        if load.number > 0 {
            seen.store(turns(), Ordering::Relaxed);
        }
        if load.bytes > 0 {
            asks.add(1);
        }
        load.number
    };
    let (scales, is_over) = (Scales::default(), Arc::new(AtomicBool::new(false)));
    let over = Arc::clone(&is_over);
    // Cheap ones until their worker knows what they cost; one that waits; one that has no room beside it; one that needs all of it.
    let rounds = (1..).take_while(move |_| !over.load(Ordering::Relaxed)).flat_map(move |round| {
        let cheap = std::iter::repeat_n((0, 0), CHEAP as usize);
        let scales = scales.clone();
        let loads = cheap.chain([(round, 60), (0, 41), (0, 100)]);
        loads.map(move |(number, bytes)| scales.load(number, bytes))
    });
    let dispatch =
        executor.dispatch_with(options(100, |_: &u64| 0), futures_util::stream::iter(rounds), key, handler);
    let mut round = 0;
    // On a machine that is busy with something else handlers look dear for a while, and what is dear is queued.
    eventually("a message starts where it arrived, and waits", || {
        round += 1;
        started.wait_for(round);
        asked.wait_for(3 * round - 1);
        settle(&executor);
        let ended = executor.metrics().workers[0].messages;
        assert_eq!(ended, EACH * (round - 1) + CHEAP, "41 bytes have no room beside 60");
        let found = was_in_place.load(Ordering::Relaxed);
        is_over.store(found, Ordering::Relaxed);
        gates.lock().expect("nothing panics here").pop().expect("it waits").release();
        found
    });
    // What has the whole budget came in: all of it was there again.
    assert_eq!(finish(dispatch).expect("no handler fails").handled, EACH * round);
    executor.close();
}

/// Counts how often it wakes.
struct Woken(Counter);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.add(1);
    }
}

#[test]
fn a_heavy_message_that_waits_holds_nobody_up_and_goes_in_when_there_is_room() {
    let executor = executor("by-heavy", 1, 64);
    let (open, scales) = (Latch::new(), Scales::default());
    let gate = open.clone();
    let keyspace: Keyspace<u64, Load> =
        executor.keyspace_with(options(100, |_: &u64| 0), move |load: Load| {
            let gate = gate.clone();
            async move {
                if load.number == 0 {
                    gate.released().await;
                }
                drop(load);
            }
        });
    keyspace.try_submit(0, scales.load(0, 40)).expect("the budget has room");
    let woken: Vec<Counter> = (0..3).map(|_| Counter::new()).collect();
    let wakers: Vec<Waker> = woken.iter().map(|woken| Waker::from(Arc::new(Woken(woken.clone())))).collect();
    let mut heavy: Vec<_> = (1..4_u64).map(|n| Box::pin(keyspace.submit(n, scales.load(n, 90)))).collect();
    for (submit, waker) in heavy.iter_mut().zip(&wakers) {
        assert!(submit.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    for n in 10..500 {
        finish(keyspace.submit(n, scales.load(n, 60))).expect("the keyspace is open");
    }
    assert!(woken.iter().all(|woken| woken.get() == 0), "60 bytes are less than they need");
    open.release();
    woken[0].wait_for(1);
    // The first one is dropped instead: the next one may go in its place.
    drop(heavy.remove(0));
    woken[1].wait_for(1);
    let mut heavy = heavy.into_iter();
    finish(heavy.next().expect("the second")).expect("the keyspace is open");
    woken[2].wait_for(1);
    finish(heavy.next().expect("the third")).expect("the keyspace is open");
    assert_eq!(finish(keyspace.drained()).handled, 1 + 490 + 2);
    executor.close();
}

#[test]
fn a_weigher_that_panics_submits_nothing_and_ends_its_dispatch() {
    let executor = executor("by-panic", 1, 64);
    let scales = Scales::default();
    let panics = |key: &u64| if *key == 3 { panic!("not to be weighed") } else { 1 };
    let keyspace: Keyspace<u64, Load> = executor.keyspace_with(options(100, panics), |_: Load| async {});
    let submit = |key| keyspace.try_submit(key, scales.load(key, 1));
    assert!(catch_unwind(AssertUnwindSafe(|| submit(3))).is_err());
    submit(2).expect("the keyspace is as it was");
    assert_eq!(finish(keyspace.drained()).accepted, 1);

    let (source, feed) = Source::fed();
    feed.extend((1..3).map(|n| scales.load(n, 1)));
    let done = Counter::new();
    let ended = done.clone();
    let handler = move |_| {
        ended.add(1);
        async {}
    };
    let dispatch = executor.dispatch_with(options(100, panics), source, |load: &Load| load.number, handler);
    done.wait_for(2);
    feed.extend((3..6).map(|n| scales.load(n, 1)));
    let error = finish(dispatch).expect_err("the third cannot be weighed");
    assert!(matches!(&error.cause, Cause::KeyPanicked { message } if message == "not to be weighed"));
    assert_eq!((error.ledger.accepted, error.ledger.handled, error.ledger.discarded), (3, 2, 1));
    executor.close();
}

#[test]
fn many_submitters_with_every_bound_at_once_all_get_in() {
    const TASKS: u64 = 40;
    const EACH: u64 = 50;
    for (workers, window, limit, overflow) in [(1, 4, 1, 0), (2, 8, 1, 3), (3, 16, 5, 0)] {
        let executor = executor("by-many", workers, window);
        let scales = Scales::default();
        let options = options(100, |_: &u64| 1).max_per_key(limit).overflow(overflow);
        let keyspace: Keyspace<u64, Load> = executor.keyspace_with(options, |load: Load| async move {
            let load = load.put_on();
            let script = if load.number % 3 == 0 { Script::ready().elsewhere() } else { Script::ready() };
            script.await.expect("this script does not fail");
            drop(load);
        });
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (keyspace, scales) = (keyspace.clone(), scales.clone());
                std::thread::spawn(move || {
                    let tasks = (thread..TASKS).step_by(4).map(|task| {
                        let (keyspace, scales) = (keyspace.clone(), scales.clone());
                        async move {
                            for n in 0..EACH {
                                let load = scales.load(n, ((task * 31 + n * 17) % 99) as usize);
                                keyspace.submit(task % 5, load).await.expect("the keyspace is open");
                            }
                        }
                    });
                    finish(futures_util::future::join_all(tasks));
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no producer panics");
        }
        assert_eq!(finish(keyspace.drained()).handled, TASKS * EACH);
        assert!(scales.peak() <= 100, "{} bytes were in handlers", scales.peak());
        executor.close();
    }
}
