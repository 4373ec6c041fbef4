//! What the monitor does, look by look: spares that cannot be started, threads that are named when they are due, work beside
//! a sleeping worker, and its own sleep.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::KeyedExecutor;
use crate::builder::Builder;
use crate::monitor::{Seen, Tried};
use crate::rescue::{Found, LostThread, Rescue};
use crate::shared::Lifetime;
use crate::stranded::Beside;
use crate::sync::{Arc, lock, spawn_named};
use crate::watchdog::{Stuck, StuckCode};
use crate::{Keyspace, MonitorMetrics};
use wow_testkit::{Counter, Latch, eventually};

/// A keyspace whose message 0 holds its thread until the gate is open; the others are counted.
fn stuck_at_zero(executor: &KeyedExecutor) -> (Keyspace<u32, u32>, Latch, Counter) {
    let (gate, entered, others) = (Latch::new(), Latch::new(), Counter::new());
    let (held, inside, count) = (gate.clone(), entered.clone(), others.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n: u32| {
        if n == 0 {
            inside.release();
            held.wait();
        } else {
            count.add(1);
        }
        std::future::ready(())
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    (keyspace, gate, others)
}

static SPARES_ASKED_FOR: AtomicUsize = AtomicUsize::new(0);

/// The system gives the first three times no thread for a spare.
fn spares_fail_at_first(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    if name.starts_with("rescue:scarce-") && SPARES_ASKED_FOR.fetch_add(1, Ordering::Relaxed) < 3 {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "no thread left"));
    }
    spawn_named(name, body)
}

#[test]
fn a_spare_that_could_not_be_started_is_tried_again_and_its_place_is_not_lost() {
    let executor = Builder::default()
        .name("scarce")
        .workers(1)
        .rescue_threads(1)
        .rescue_after(Duration::ZERO)
        .stuck_after(None)
        .start_for(Lifetime::Handles, spares_fail_at_first);
    let (keyspace, gate, others) = stuck_at_zero(&executor);
    keyspace.try_submit(1, 1).expect("there is room");
    others.wait_for(1);
    assert_eq!(SPARES_ASKED_FOR.load(Ordering::Relaxed), 4);
    let monitor = executor.metrics().monitor;
    assert_eq!((monitor.rescues, monitor.stuck, monitor.spares, monitor.idle_spares), (1, 1, 1, 0));
    gate.release();
    executor.close();
    executor.join().expect("not a worker");
    assert_eq!(executor.metrics().monitor.stuck, 0);
}

#[test]
fn a_seat_is_taken_for_what_was_seen_and_if_something_waits() {
    let executor = Builder::default()
        .name("attempts")
        .workers(1)
        .rescue_threads(1)
        .rescue_after(Duration::from_secs(60))
        .stuck_after(None)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    let (shared, worker) = (executor.inner(), &executor.inner().workers[0]);
    assert_eq!(shared.try_rescue(worker, &Seen::default()), Tried::Not, "nobody is on it, inside of nothing");
    let (keyspace, gate, others) = stuck_at_zero(&executor);
    let word = worker.token().lent().expect("it is inside the handler");
    let seen = |word| Seen { word, since: 1, ..Seen::default() };
    assert_eq!(shared.try_rescue(worker, &seen(word + 8)), Tried::Not, "another piece of code");
    assert_eq!(shared.try_rescue(worker, &seen(word)), Tried::NothingWaits);
    keyspace.try_submit(1, 1).expect("there is room");
    assert_eq!(shared.try_rescue(worker, &seen(word)), Tried::Taken);
    others.wait_for(1);
    let Some(stuck) = shared.rescue.overdue(u64::MAX, Duration::ZERO).0.pop() else {
        panic!("one has lost its seat")
    };
    assert_eq!(
        (stuck.code, stuck.worker, stuck.rescued),
        (StuckCode::Other, 0, true),
        "nobody asked for names"
    );
    gate.release();
    executor.close();
    executor.join().expect("not a worker");
}

fn lost(thread: usize, since: u64, named: bool) -> LostThread {
    LostThread { thread, worker: thread, code: StuckCode::Other, since, named }
}

#[test]
fn threads_without_a_seat_are_named_once_when_they_are_due_and_the_next_one_is_foreseen() {
    let rescue = Rescue::new(2..5, false);
    let after = Duration::from_nanos(100);
    assert_eq!(rescue.overdue(1_000, after).1, None, "nobody is lost");
    for thread in [lost(0, 1_000, false), lost(1, 1_050, false), lost(2, 1_030, false), lost(3, 900, true)] {
        rescue.taken_from(thread);
    }
    let named = |now| {
        let (overdue, next) = rescue.overdue(now, after);
        let told: Vec<_> = overdue
            .into_iter()
            .map(|Stuck { worker, held, rescued, .. }| (worker, held.as_nanos(), rescued))
            .collect();
        (told, next.map(|next| next.as_nanos()))
    };
    assert_eq!(named(1_060), (vec![], Some(40)));
    assert_eq!(named(1_099), (vec![], Some(1)));
    assert_eq!(named(1_100), (vec![(0, 100, true)], Some(30)));
    assert_eq!(named(1_100), (vec![], Some(30)));
    assert_eq!(named(1_200), (vec![(1, 150, true), (2, 170, true)], None));
    assert_eq!(named(9_000), (vec![], None));
    let expected = MonitorMetrics { rescues: 4, stuck: 4, ..MonitorMetrics::default() };
    assert_eq!(rescue.metrics(), expected);
}

#[test]
fn spares_are_as_many_as_there_are_tokens_and_none_after_the_end() {
    let rescue = Rescue::new(3..5, false);
    assert!(rescue.is_on() && rescue.is_watched() && !rescue.has_ended());
    let threads: Vec<usize> = std::iter::from_fn(|| match rescue.find()? {
        Found::New(spare) => Some(spare.thread),
        Found::Idle(_) => panic!("none has been started"),
    })
    .collect();
    assert_eq!(threads, [3, 4]);
    assert_eq!(rescue.metrics(), MonitorMetrics { spares: 2, ..MonitorMetrics::default() });
    assert!(!Rescue::new(3..3, false).is_on() && !Rescue::new(3..3, false).is_watched());
    let watched = Rescue::new(3..3, true);
    assert!(!watched.is_on() && watched.is_watched());
    let ended = Rescue::new(3..5, true);
    ended.end();
    assert!(ended.has_ended() && ended.find().is_none());
}

#[test]
fn a_thread_that_waits_for_a_seat_is_an_idle_spare_and_ends_with_the_others() {
    let rescue = Arc::new(Rescue::new(3..5, false));
    let wait_again = || {
        let rescue = Arc::clone(&rescue);
        std::thread::spawn(move || rescue.wait_again(3).is_none())
    };
    let mut spare = wait_again();
    eventually("it is told while it waits", || {
        // One that nobody needs for a while ends, on a slow machine before anybody looked.
        if spare.is_finished() {
            spare = wait_again();
        }
        rescue.metrics().idle_spares == 1
    });
    rescue.end();
    assert!(spare.join().expect("it does not panic"), "it got no seat");
    assert_eq!(rescue.metrics().idle_spares, 0);
}

#[test]
fn spares_are_to_be_had_until_the_last_worker_of_a_closed_executor_has_ended() {
    let executor = Builder::default()
        .name("last")
        .workers(2)
        .rescue_threads(1)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    let shared = executor.inner();
    for worker in &shared.workers {
        shared.ensure_started(worker).expect("it starts");
    }
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let task = move || {
        inside.release();
        held.wait();
    };
    executor.execute_pinned(1, task).expect("it is open");
    entered.wait();
    assert_eq!(lock(&shared.threads).live, 3, "two workers and their monitor");
    executor.close();
    eventually("the other worker has ended", || lock(&shared.threads).live < 3);
    assert!(!shared.rescue.has_ended(), "this one may get stuck yet");
    assert_eq!(lock(&shared.threads).live, 2);
    gate.release();
    executor.join().expect("not a worker");
    assert!(shared.rescue.has_ended());
}

#[test]
fn the_monitor_of_spares_looks_every_few_milliseconds_and_one_that_only_names_as_often_as_it_has_to() {
    let of = |rescue_threads, stuck_after: Option<Duration>| {
        let builder = Builder::default().name("looks").workers(1).rescue_threads(rescue_threads);
        let executor = builder.stuck_after(stuck_after).start_for(Lifetime::Handles, crate::shared::spawn);
        executor.inner().look_every().as_micros()
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!([of(1, seconds(60)), of(1, None), of(0, None)], [4_000; 3]);
    assert_eq!(of(0, Some(Duration::from_millis(100))), 25_000);
    assert_eq!([of(0, Some(Duration::from_millis(1))), of(0, seconds(60))], [1_000, 250_000]);
}

#[test]
fn a_monitor_that_sleeps_is_woken_by_a_worker_that_wakes() {
    let executor = Builder::default()
        .name("asleep")
        .workers(1)
        .rescue_threads(1)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    let ran = Latch::new();
    let told = ran.clone();
    executor.execute(move || told.release()).expect("it is open");
    ran.wait();
    let shared = executor.inner();
    eventually("nobody looks any more", || {
        shared.workers[0].sleeper().sleeps() && shared.rescue.monitor().sleeps()
    });
    let (keyspace, gate, others) = stuck_at_zero(&executor);
    keyspace.try_submit(1, 1).expect("there is room");
    others.wait_for(1);
    gate.release();
    executor.close();
    executor.join().expect("not a worker");
}

#[test]
fn nobody_is_told_of_a_worker_that_sleeps_beside_nothing_or_never_ran() {
    let executor = Builder::default()
        .name("rests")
        .workers(2)
        .rescue_threads(0)
        .stuck_after(None)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    let shared = executor.inner();
    let mut beside = [Beside::default(); 2];
    assert!(!shared.look_for_stranded(&mut beside), "none has a thread");
    let ran = Latch::new();
    let told = ran.clone();
    executor.execute_pinned(0, move || told.release()).expect("it is open");
    ran.wait();
    eventually("the worker sleeps", || shared.workers[0].token().asleep().is_some());
    assert!(!shared.look_for_stranded(&mut beside));
    assert!(shared.workers[0].token().asleep().is_some(), "its seat is as it was");
    executor.close();
    executor.join().expect("not a worker");
}
