//! A window that is full: what ended is seen by whoever comes next, though nobody took its permit back before.

use std::cell::Cell;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use crate::builder::Builder;
use crate::shared::Lifetime;
use crate::{Keyspace, SubmitRefusal};
use wow_testkit::{Counter, Latch, Script, eventually, finish};

crate::sync::local! {
    static MEANWHILE: Cell<Option<Box<dyn FnOnce()>>> = Cell::new(None);
}

/// A key whose comparison lets something happen first, once.
#[derive(Debug)]
struct Key(usize);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        if let Some(happens) = MEANWHILE.with(Cell::take) {
            happens();
        }
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<S: Hasher>(&self, state: &mut S) {
        self.0.hash(state);
    }
}

#[test]
fn a_permit_that_its_worker_could_not_give_back_is_seen_by_the_next_submitter() {
    const WINDOW: usize = 64;
    let executor = Builder::default()
        .name("full")
        .workers(1)
        .max_in_flight(WINDOW)
        .rescue_threads(0)
        .stuck_after(None)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    let (gates, done): (Vec<Latch>, _) = ((0..WINDOW + 2).map(|_| Latch::new()).collect(), Counter::new());
    let (held, count) = (gates.clone(), done.clone());
    let keyspace: Keyspace<Key, usize> = executor.keyspace(move |n: usize| {
        let (gate, count) = (held[n].clone(), count.clone());
        async move {
            gate.released().await;
            count.add(1);
        }
    });
    for n in 0..WINDOW {
        keyspace.try_submit(Key(n), n).expect("there is room");
    }
    eventually("all of them wait", || keyspace.metrics().waiting == WINDOW as u64);
    let refused = keyspace.try_submit(Key(WINDOW), WINDOW).expect_err("the window is full");
    assert_eq!(refused.reason, SubmitRefusal::Full);
    gates[0].release();
    eventually("it came back", || keyspace.in_flight() == WINDOW - 1);
    // While a submitter compares keys it has the intake: the worker falls asleep without giving the permit back.
    let worker = executor.inner().workers[0].clone();
    let (gate, ended) = (gates[1].clone(), done.clone());
    MEANWHILE.with(|happens| {
        happens.set(Some(Box::new(move || {
            gate.release();
            ended.wait_for(2);
            eventually("the worker sleeps", || worker.token().asleep().is_some());
        })));
    });
    keyspace.try_submit(Key(2), WINDOW).expect("there is room for one");
    assert_eq!(done.get(), 2, "the keys were compared");
    keyspace.try_submit(Key(WINDOW + 1), WINDOW + 1).expect("another one has ended");
    keyspace.cancel();
    assert_eq!(finish(keyspace.drained()).accepted, WINDOW as u64 + 2);
    executor.close();
    executor.join().expect("not a worker");
}

/// Counts how often it wakes.
struct Woken(Counter);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.add(1);
    }
}

#[test]
fn a_woken_submitter_that_is_dropped_leaves_its_permit_to_the_next_one() {
    let executor = Builder::default()
        .name("passed-on")
        .workers(1)
        .max_in_flight(2)
        .rescue_threads(0)
        .stuck_after(None)
        .start_for(Lifetime::Handles, crate::shared::spawn);
    let gates: Vec<Latch> = (0..4).map(|_| Latch::new()).collect();
    let held = gates.clone();
    let keyspace: Keyspace<Key, usize> = executor.keyspace(move |n: usize| Script::ready().until(&held[n]));
    for n in 0..2 {
        keyspace.try_submit(Key(n), n).expect("there is room");
    }
    eventually("both wait", || keyspace.metrics().waiting == 2);
    let waits = |n: usize| {
        let woken = Counter::new();
        let waker = Waker::from(Arc::new(Woken(woken.clone())));
        let mut submit = Box::pin(keyspace.submit(Key(n), n));
        assert!(submit.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "the window is full");
        (submit, woken)
    };
    let ((first, first_woken), (second, second_woken)) = (waits(2), waits(3));
    gates[0].release();
    first_woken.wait_for(1);
    let worker = &executor.inner().workers[0];
    eventually("the worker sleeps", || worker.token().asleep().is_some());
    drop(first);
    second_woken.wait_for(1);
    gates.iter().for_each(Latch::release);
    finish(second).expect("it is open");
    assert_eq!(finish(keyspace.drained()).handled, 3);
    executor.close();
    executor.join().expect("not a worker");
}
