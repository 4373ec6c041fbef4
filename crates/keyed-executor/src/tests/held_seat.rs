//! A seat that the test's own thread is on, or a borrower of it: its worker has no thread, so what lies there is known.
//!
//! What the executor does on a seat between two rounds is looked at here call by call; the rounds themselves are
//! `worker/rounds/tests.rs`, which uses what is above the tests.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::KeyedExecutor;
use crate::builder::Builder;
use crate::cx::Cx;
use crate::seat::token::Back;
use crate::seat::{Remains, Seat};
use crate::shared::{Lifetime, let_go};
use crate::sync::{Arc, lock};
use crate::task::TaskCell;
use crate::worker::Job;
use crate::{HotKey, Keyspace};
use wow_testkit::{Latch, eventually};

/// An executor whose worker has no thread.
pub(crate) fn executor(name: &str) -> KeyedExecutor {
    Builder::default()
        .name(name)
        .workers(1)
        .rescue_threads(0)
        .start_for(Lifetime::Handles, crate::shared::spawn)
}

/// Works on the worker's seat as the thread on it.
pub(crate) fn on_seat<R>(executor: &KeyedExecutor, work: impl FnOnce(&Cx<'_>) -> R) -> R {
    let worker = &executor.inner().workers[0];
    let token = worker.token();
    assert_eq!(token.take_back(), Back::Mine, "nobody was on it yet");
    // SAFETY: rule 1 of seat/README.md: this thread has just become the seat's occupant, and leaves it below.
    let cx = unsafe { Cx::occupant(worker, token) };
    let result = work(&cx);
    if token.is_owned() {
        cx.leave();
    }
    result
}

/// Tasks on the seat that are counted where they run.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Arc<AtomicUsize>);

impl Tasks {
    /// Pushes one, past every door.
    pub(crate) fn push(&self, executor: &KeyedExecutor) {
        let ran = Arc::clone(&self.0);
        let task = move || {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        executor.inner().workers[0].jobs().push(Job::Task(Arc::new(TaskCell::new(task))));
    }

    pub(crate) fn ran(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Those that were neither run nor dropped.
    pub(crate) fn left(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

#[test]
fn a_seat_that_its_thread_leaves_has_its_tasks_run_unless_nothing_is_started_any_more() {
    for forced in [false, true] {
        let executor = executor("ended");
        let (shared, tasks) = (executor.inner(), Tasks::default());
        (0..3).for_each(|_| tasks.push(&executor));
        shared.forced.store(forced, Ordering::SeqCst);
        lock(&shared.threads).seats += 1;
        on_seat(&executor, |cx| shared.seat_ended(cx, None));
        assert_eq!((tasks.ran(), tasks.left()), (if forced { 0 } else { 3 }, 0), "forced: {forced}");
        assert!(shared.workers[0].jobs().is_empty());
    }
}

#[test]
fn what_was_pushed_to_a_worker_whose_thread_is_gone_is_dropped() {
    let executor = executor("swept");
    let (shared, tasks) = (executor.inner(), Tasks::default());
    shared.workers[0].sleeper().leave();
    tasks.push(&executor);
    assert_eq!(tasks.left(), 1);
    shared.sweep(0);
    assert_eq!((tasks.ran(), tasks.left()), (0, 0));
}

#[test]
fn a_cold_dispatch_that_something_was_left_with_gets_rounds_again() {
    let executor = executor("warm");
    let keyspaces: Vec<Keyspace<u32, u32>> =
        (0..12).map(|_| executor.keyspace(|_| std::future::ready(()))).collect();
    let dispatches = executor.inner().dispatches();
    let mut seat = Seat::default();
    for lanes in &dispatches {
        seat.attach(Arc::clone(lanes));
    }
    for _ in 0..12 {
        seat.had_round(0, Remains::Nothing);
        assert!(seat.cool_down(0), "it is one of many");
    }
    assert_eq!(seat.warm_at(0), None);
    seat.warm_up_same(&*dispatches[7]);
    assert_eq!([0, 1].map(|position| seat.warm_at(position)), [Some(7), None]);
    drop((seat, keyspaces));
    let_go(dispatches);
}

#[test]
fn who_borrows_a_seat_takes_what_came_and_calls_no_debug_of_a_key() {
    const MESSAGES: u32 = 2_000;
    let executor = KeyedExecutor::builder()
        .name("samples")
        .workers(1)
        .rescue_threads(0)
        .max_in_flight(4_096)
        .build()
        .expect("the settings are in range");
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        if n == 0 {
            inside.release();
            held.wait();
        }
        std::future::ready(())
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    // Enough for several samples, which are written as text, by the key's `Debug`: only where its own thread took them.
    (1..=MESSAGES).for_each(|n| keyspace.try_submit(1, n).expect("there is room"));
    let worker = &executor.inner().workers[0];
    let (token, borrowed) = worker.try_borrow().expect("it is lent");
    // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back after the last use.
    let waits = unsafe { Cx::borrower(worker) }.something_waits();
    token.give_back(borrowed);
    assert!(waits, "the other key does");
    assert!(keyspace.hot_keys(1).is_empty());
    gate.release();
    eventually("the others are through", || keyspace.in_flight() == 0);
    (1..=MESSAGES).for_each(|n| keyspace.try_submit(1, n).expect("there is room"));
    eventually(
        "its own thread takes samples",
        || matches!(&*keyspace.hot_keys(1), [HotKey { key, .. }] if key == "1"),
    );
    executor.close();
}
