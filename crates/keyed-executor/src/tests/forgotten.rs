//! What a bug of this crate leaves behind, and who finds it: work beside a sleeping worker at each look of the monitor, and the
//! keys of a worker whose thread died. And the list of a seat, of which nothing is forgotten.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::faults::{Bug, Kind};
use crate::KeyedExecutor;
use crate::builder::Builder;
use crate::lanes::Lanes;
use crate::seat::{Remains, Seat};
use crate::shared::Lifetime;
use crate::stranded::Beside;
use crate::sync::{Arc, lock};
use crate::time::nanos;
use crate::worker::Job;
use wow_testkit::{Counter, Latch, Script, eventually, finish};

/// An executor of so many workers, all of them started.
fn executor(workers: usize, rescue_threads: usize) -> KeyedExecutor {
    let executor = Builder::default()
        .name("forgets")
        .workers(workers)
        .rescue_threads(rescue_threads)
        .stuck_after(None)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    for worker in &executor.inner().workers {
        executor.inner().ensure_started(worker).expect("it starts");
    }
    executor
}

/// A dispatch that brings work and wakes nobody, attached to a worker that sleeps.
fn forgotten_on(executor: &KeyedExecutor, worker: usize) -> Arc<Bug> {
    let bug = Bug::new(Kind::Forgets);
    let worker = &executor.inner().workers[worker];
    worker.jobs().push(Job::Attach(Arc::clone(&bug) as Arc<dyn Lanes>));
    let _ = worker.sleeper().notify();
    eventually("the worker sleeps", || worker.jobs().is_empty() && worker.token().asleep().is_some());
    bug.work.store(1, Ordering::Relaxed);
    bug
}

#[test]
fn work_that_is_forgotten_beside_a_busy_worker_is_found_too() {
    let executor = executor(2, 1);
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    // The monitor does not come to rest while this one is busy.
    let task = move || {
        inside.release();
        held.wait();
    };
    executor.execute_pinned(1, task).expect("it is open");
    entered.wait();
    let bug = forgotten_on(&executor, 0);
    eventually("it is told, and the worker woken", || bug.work.load(Ordering::Relaxed) == 0);
    assert_eq!(executor.metrics().monitor.stranded, 1);
    gate.release();
    executor.close();
}

#[test]
fn work_is_told_as_forgotten_once_and_not_before_a_second_has_passed() {
    let executor = executor(1, 0);
    let shared = executor.inner();
    let bug = forgotten_on(&executor, 0);
    let told = || executor.metrics().monitor.stranded;
    let mut beside = [Beside::default()];
    let start = nanos();
    while nanos() - start < 100_000_000 {
        assert!(shared.look_for_stranded(&mut beside), "work lies there");
        let told = told();
        assert!(told == 0 || nanos() - start >= 1_000_000_000, "it is too early");
        finish(wow_testkit::after(Duration::from_millis(20)));
    }
    eventually("it is told", || {
        shared.look_for_stranded(&mut beside);
        told() == 1
    });
    assert!(nanos() - start >= 1_000_000_000);
    eventually("its worker was woken", || bug.work.load(Ordering::Relaxed) == 0);
    assert!(!shared.look_for_stranded(&mut beside));
    assert_eq!(told(), 1);
    executor.close();
}

#[test]
fn each_sleep_beside_work_has_a_second_of_its_own() {
    let executor = executor(1, 0);
    let (shared, worker) = (executor.inner(), &executor.inner().workers[0]);
    let bug = forgotten_on(&executor, 0);
    let mut beside = [Beside::default()];
    assert!(shared.look_for_stranded(&mut beside), "work lies there");
    let start = nanos();
    let word = worker.token().asleep();
    bug.work.store(0, Ordering::Relaxed);
    let _ = worker.sleeper().notify();
    eventually("it sleeps again", || worker.token().asleep().is_some_and(|now| Some(now) != word));
    bug.work.store(1, Ordering::Relaxed);
    while nanos() - start < 1_100_000_000 {
        finish(wow_testkit::after(Duration::from_millis(20)));
    }
    assert!(shared.look_for_stranded(&mut beside), "work lies there again");
    assert_eq!(executor.metrics().monitor.stranded, 0, "it was not seen there for a second");
    bug.work.store(0, Ordering::Relaxed);
    executor.close();
}

#[test]
fn the_keys_of_a_worker_that_died_go_on_elsewhere_at_once_and_are_dropped_with_their_keyspace() {
    let executor = executor(2, 0);
    let handled = Counter::new();
    let count = handled.clone();
    let keyspace: crate::Keyspace<Arc<u32>, u32> = executor.keyspace(move |n| {
        let script = if n == 0 { Script::ready().never() } else { Script::ready() };
        count.add(u64::from(n > 0));
        script
    });
    let keys: Vec<Arc<u32>> = (0..4).map(Arc::new).collect();
    for key in &keys {
        keyspace.try_submit(Arc::clone(key), 0).expect("there is room");
    }
    eventually("all of them wait", || keyspace.metrics().waiting == 4);
    let mailboxes = executor.inspect(9).mailboxes;
    let home = mailboxes[0].worker;
    let orphans = mailboxes.iter().filter(|seen| seen.worker == home).count() as u64;
    let worker = &executor.inner().workers[home];
    worker.jobs().push(Job::Attach(Bug::new(Kind::Panics)));
    let _ = worker.sleeper().notify();
    eventually("its thread is gone", || !worker.is_running());
    for key in &keys {
        keyspace.try_submit(Arc::clone(key), 1).expect("the other worker takes it");
    }
    // Whose first message waited there has lost it, and goes on; the others still wait.
    handled.wait_for(orphans);
    keyspace.cancel();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.accepted, ledger.in_flight(), ledger.handled), (8, 0, orphans));
    drop(keyspace);
    executor.close();
    executor.join().expect("not a worker");
    eventually("no key is kept", || keys.iter().all(|key| Arc::strong_count(key) == 1));
}

#[test]
fn keys_that_nobody_took_back_are_dropped_with_their_keyspace() {
    let executor = executor(1, 0);
    let keyspace: crate::Keyspace<Arc<u32>, u32> = executor.keyspace(|_| Script::ready().never());
    let keys: Vec<Arc<u32>> = (0..4).map(Arc::new).collect();
    for key in &keys {
        keyspace.try_submit(Arc::clone(key), 0).expect("there is room");
    }
    eventually("all of them wait", || keyspace.metrics().waiting == 4);
    let worker = &executor.inner().workers[0];
    worker.jobs().push(Job::Attach(Bug::new(Kind::Panics)));
    let _ = worker.sleeper().notify();
    eventually("its thread is gone", || !worker.is_running());
    drop(keyspace);
    executor.close();
    executor.join().expect("not a worker");
    eventually("no key is kept", || keys.iter().all(|key| Arc::strong_count(key) == 1));
}

#[test]
fn every_thread_that_runs_is_counted_until_it_ends() {
    let executor = executor(1, 1);
    let live = || lock(&executor.inner().threads).live;
    assert_eq!(live(), 2, "a worker and its monitor");
    let (gate, other) = (Latch::new(), Latch::new());
    let (held, told) = (gate.clone(), other.clone());
    let keyspace: crate::Keyspace<u32, u32> = executor.keyspace(move |n| {
        if n == 0 {
            held.wait();
        } else {
            told.release();
        }
        std::future::ready(())
    });
    for n in 0..2 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    other.wait();
    assert_eq!(live(), 3, "and the spare that went on");
    gate.release();
    executor.close();
    executor.join().expect("not a worker");
    assert_eq!(live(), 0);
}

#[test]
fn a_seat_tells_what_is_warm_what_is_cold_and_what_has_to_be_tidied_up_once() {
    let mut seat = Seat::default();
    let many = 12;
    let ids: Vec<_> = (0..many).map(|_| seat.attach(Bug::new(Kind::Forgets))).collect();
    assert_eq!((seat.len(), seat.is_empty()), (many, false));
    assert!((0..many).all(|index| seat.warm_at(index) == Some(index) && !seat.is_cold(index)));
    assert_eq!(seat.warm_at(many), None);
    let tidied = |seat: &mut Seat| {
        let mut all: Vec<usize> = std::iter::from_fn(|| seat.next_untidy()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(tidied(&mut seat), (0..many).collect::<Vec<_>>(), "those that are new");
    for position in [3, 5, 3] {
        seat.had_round(position, Remains::Nothing);
    }
    assert_eq!(tidied(&mut seat), [3, 5]);
    assert_eq!(tidied(&mut seat), []);
    // Of many, one that is dry cools down; one that has work stays warm.
    seat.had_round(0, Remains::Work);
    assert!(!seat.cool_down(0));
    assert!(seat.cool_down(3));
    assert!(seat.is_cold(3) && (0..many).filter(|index| seat.is_cold(*index)).count() == 1);
    assert_eq!(seat.warm_at(many - 1), None);
    seat.warm_up(3);
    seat.warm_up(3);
    assert!(!seat.is_cold(3));
    assert_eq!(seat.warm_at(many - 1), Some(3));
    let known = seat.get(3).map(Arc::clone).expect("it is attached");
    assert!(seat.find(ids[3]).is_some_and(|found| Arc::ptr_eq(found, &known)));
    assert!(seat.detach(3).is_some_and(|lanes| Arc::ptr_eq(&lanes, &known)));
    assert!(seat.detach(3).is_none() && seat.find(ids[3]).is_none() && seat.get(3).is_none());
    assert!(!seat.is_cold(3), "nobody is there");
    let next = seat.attach(known);
    assert_eq!((next.index, next.generation), (3, ids[3].generation + 1));
    assert!(seat.find(ids[3]).is_none(), "a waker of the one before does not wake it");
    for index in 0..many {
        assert!(seat.detach(index).is_some());
    }
    assert!(seat.is_empty() && seat.warm_at(0).is_none());
    // Of a few, all stay warm.
    let index = seat.attach(Bug::new(Kind::Forgets)).index as usize;
    assert_eq!(seat.warm_at(0), Some(index));
    let mut few = Seat::default();
    for _ in 0..8 {
        few.attach(Bug::new(Kind::Forgets));
    }
    few.had_round(0, Remains::Nothing);
    assert!(!few.cool_down(0));
    few.attach(Bug::new(Kind::Forgets));
    assert!(few.cool_down(0));
}
