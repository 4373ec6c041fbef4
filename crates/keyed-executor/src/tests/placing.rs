//! Where a new key goes, look by look: what is told of the workers decides, and nothing else.
//!
//! The placement is asked as an intake asks it; the workers are real ones, held by tasks or never started, so that what
//! they do meanwhile is known.

use std::cell::{Cell, RefCell};

use crate::KeyedExecutor;
use crate::placement::{Doing, LaneView, Placement, penalty};
use crate::seat::inside::Inside;
use crate::sync::Arc;
use crate::worker::Worker;
use wow_testkit::{Latch, eventually};

/// An executor of which nobody looks after the workers.
fn executor(workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("placing")
        .workers(workers)
        .rescue_threads(0)
        .stuck_after(None)
        .build()
        .expect("the settings are in range")
}

/// Holds the threads of all workers inside a task, until it is dropped.
struct Busy(Latch);

impl Busy {
    fn all(executor: &KeyedExecutor) -> Self {
        let gate = Latch::new();
        for worker in 0..executor.config().workers {
            let (entered, held) = (Latch::new(), gate.clone());
            let inside = entered.clone();
            let task = move || {
                inside.release();
                held.wait();
            };
            executor.execute_pinned(worker as i64, task).expect("the executor is open");
            entered.wait();
        }
        Self(gate)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.release();
    }
}

fn lane(queued: u64, cost: u64) -> LaneView {
    LaneView { queued, cost, worker: Doing::Anything }
}

fn looking(queued: u64, cost: u64) -> LaneView {
    LaneView { queued, cost, worker: Doing::Looking }
}

/// Where so many keys go, one after the other, and how often the workers were looked at for them.
fn placed(
    placement: &mut Placement,
    workers: &[Arc<Worker>],
    views: &[LaneView],
    keys: usize,
) -> (Vec<usize>, usize) {
    let looks = Cell::new(0);
    let view = |index: usize| {
        looks.set(looks.get() + usize::from(index == 0));
        views[index]
    };
    let to = (0..keys)
        .map(|_| {
            placement.choose(0, workers, view, |_| panic!("no worker has to be started")).expect("one runs")
        })
        .collect();
    (to, looks.get())
}

#[test]
fn the_lowest_worker_with_a_short_wait_takes_as_many_keys_as_stay_short() {
    let executor = executor(3);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    let long = lane(10, 10_000);
    for (view, keys) in [
        // Wait and cost of a message: as many more as fit into 40 us, 16 at most.
        (lane(2, 1_000), 17),
        (lane(2, 10_000), 3),
        (lane(4, 10_000), 1),
        (lane(3, 10_000), 2),
        (lane(39, 1_000), 2),
        (looking(0, 0), 1),
        (looking(0, 40_000), 2),
        (looking(4, 10_000), 1),
    ] {
        let mut placement = Placement::new(3, 0);
        let views = [long, view, lane(0, 1)];
        let (to, looks) = placed(&mut placement, workers, &views, keys);
        assert_eq!((to, looks), (vec![1; keys], 1), "{view:?}");
        assert_eq!(placed(&mut placement, workers, &views, 1), (vec![1], 1), "{view:?} is looked at again");
    }
    drop(busy);
    executor.close();
}

#[test]
fn what_was_never_measured_or_is_above_40_us_is_a_long_wait() {
    let executor = executor(2);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    for long in [lane(0, 0), lane(1, 40_001), lane(5, 10_000), looking(0, 40_001), looking(1, 0)] {
        let mut placement = Placement::new(2, 0);
        let (to, _) = placed(&mut placement, workers, &[long, lane(1, 1)], 1);
        assert_eq!(to, [1], "{long:?}");
    }
    drop(busy);
    executor.close();
}

#[test]
fn with_long_waits_only_the_shortest_is_taken_and_the_lowest_of_equals() {
    let executor = executor(3);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    for (waits, chosen) in [([3, 2, 4], 1), ([2, 2, 2], 0), ([4, 3, 2], 2), ([4, 2, 2], 1)] {
        let mut placement = Placement::new(3, 0);
        let views = waits.map(|wait| lane(wait, 100_000));
        let (to, looks) = placed(&mut placement, workers, &views, 3);
        assert_eq!((to, looks), (vec![chosen; 3], 3), "{waits:?}: each key is a look of its own");
    }
    drop(busy);
    executor.close();
}

/// The hash of a key whose own worker is this one of so many.
fn own(worker: usize, workers: usize) -> u64 {
    (u64::MAX / workers as u64) * worker as u64 + workers as u64
}

/// Where keys go whose own workers are these, with nobody to be started.
fn placed_by_hash(workers: &[Arc<Worker>], views: &[LaneView], of: &[usize]) -> Vec<usize> {
    let mut placement = Placement::new(workers.len(), 0);
    let hashes = of.iter().map(|worker| own(*worker, workers.len()));
    let choose =
        |hash| placement.choose(hash, workers, |index| views[index], |_| panic!("nobody has to be started"));
    hashes.map(choose).map(|chosen| chosen.expect("one runs")).collect()
}

#[test]
fn where_messages_are_dear_each_key_goes_to_the_worker_that_its_hash_names() {
    let executor = executor(3);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    let of: Vec<usize> = (0..90).map(|n| [0, 2, 1, 1, 2, 0, 2][n % 7]).collect();
    // Short waits or long ones, as long as none is far ahead of the others.
    for views in [
        [lane(1, 1_001), lane(3, 1_001), lane(2, 1_001)],
        [lane(90, 2_000), lane(80, 2_000), lane(100, 2_000)],
    ] {
        assert_eq!(placed_by_hash(workers, &views, &of), of, "{views:?}");
    }
    // Cheap ones stay together, and so do those of which one worker knows that they are cheap.
    for views in [[lane(1, 1_000); 3], [lane(1, 2_000), lane(3, 2_000), lane(50, 1_000)]] {
        assert_eq!(placed_by_hash(workers, &views, &of), vec![0; 90], "{views:?}");
    }
    drop(busy);
    executor.close();
}

#[test]
fn a_key_does_not_wait_for_its_own_worker_more_than_80_us_longer_than_for_another() {
    let executor = executor(2);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    for (queued, to) in [(41, 1), (42, 0), (400, 0)] {
        let views = [lane(2, 2_000), lane(queued, 2_000)];
        assert_eq!(placed_by_hash(workers, &views, &[1]), [to], "{queued} queued there, 2 on the other");
        let all_long = [lane(102, 2_000), lane(100 + queued, 2_000)];
        assert_eq!(
            placed_by_hash(workers, &all_long, &[1]),
            [to],
            "{queued} more than 100 queued there, 102 on the other"
        );
    }
    drop(busy);
    executor.close();
}

#[test]
fn a_look_is_good_for_as_many_own_keys_as_keep_the_wait_within_80_us_and_for_16_at_most() {
    let executor = executor(2);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    for (view, keys) in [(lane(2, 2_000), 16), (lane(38, 2_000), 4), (lane(41, 2_000), 1)] {
        let mut placement = Placement::new(2, 0);
        let views = [lane(2, 2_000), view];
        let looks = Cell::new(0);
        let mut looks_after = |hash| {
            let view = |index: usize| {
                looks.set(looks.get() + usize::from(index == 0));
                views[index]
            };
            let _ = placement.choose(hash, workers, view, |_| panic!("nobody has to be started"));
            looks.get()
        };
        let counted: Vec<usize> = (0..=keys).map(|_| looks_after(own(1, 2))).collect();
        let mut expected = vec![1; keys];
        expected.push(2);
        assert_eq!(counted, expected, "{view:?}");
    }
    drop(busy);
    executor.close();
}

#[test]
fn workers_that_were_never_started_take_turns_from_where_the_intake_begins() {
    let executor = executor(3);
    let workers = &executor.inner().workers;
    for first in 0..3 {
        let mut placement = Placement::new(3, first);
        let started = RefCell::new(Vec::new());
        let mut to = Vec::new();
        for _ in 0..6 {
            let start = |worker: &Arc<Worker>| {
                started.borrow_mut().push(worker.index());
                true
            };
            to.push(placement.choose(0, workers, |_| lane(0, 1), start).expect("one can be started"));
        }
        let turns: Vec<usize> = (first..first + 6).map(|n| n % 3).collect();
        assert_eq!((&to, &*started.borrow()), (&turns, &turns));
    }
    // One that cannot be started is passed over, and one whose thread is gone is not even asked.
    workers[2].sleeper().leave();
    let mut placement = Placement::new(3, 1);
    let asked = RefCell::new(Vec::new());
    let start = |worker: &Arc<Worker>| {
        asked.borrow_mut().push(worker.index());
        worker.index() == 0
    };
    assert_eq!(placement.choose(0, workers, |_| lane(0, 1), start), Some(0));
    assert_eq!(*asked.borrow(), [1, 0]);
    assert_eq!(placement.choose(0, workers, |_| lane(0, 1), |_| false), None, "nobody is there");
}

#[test]
fn a_sleeping_worker_is_woken_before_a_long_wait_and_taken_if_nothing_else_runs() {
    let executor = executor(2);
    let workers = &executor.inner().workers;
    let ran = Latch::new();
    let told = ran.clone();
    executor.execute_pinned(1, move || told.release()).expect("the executor is open");
    ran.wait();
    eventually("the worker sleeps", || workers[1].sleeper().sleeps());
    let mut placement = Placement::new(2, 0);
    let views = |index| {
        assert_eq!(index, usize::MAX, "nobody runs that could be looked at");
        lane(0, 1)
    };
    let second_only = |worker: &Arc<Worker>| worker.index() == 1;
    assert_eq!(placement.choose(0, workers, views, second_only), Some(1));
    assert_eq!(placement.choose(0, workers, views, |_| false), Some(1), "it runs");
    executor.close();
}

#[test]
fn a_key_whose_own_worker_sleeps_goes_to_one_that_is_awake_without_a_wake_up() {
    let executor = executor(2);
    let workers = &executor.inner().workers;
    let gates = [Latch::new(), Latch::new()];
    for (worker, gate) in gates.iter().enumerate() {
        let (entered, held) = (Latch::new(), gate.clone());
        let inside = entered.clone();
        let hold = move || {
            inside.release();
            held.wait();
        };
        executor.execute_pinned(worker as i64, hold).expect("the executor is open");
        entered.wait();
    }
    let mut placement = Placement::new(2, 0);
    let mut choose = |worker| {
        let nobody = |_: &Arc<Worker>| panic!("nobody has to be woken");
        placement.choose(own(worker, 2), workers, |_| lane(1, 2_000), nobody)
    };
    assert_eq!(choose(1), Some(1));
    gates[1].release();
    eventually("the second worker sleeps", || workers[1].sleeper().sleeps());
    // By the look from before it fell asleep, and by looks of their own.
    assert_eq!([1, 0, 1, 1].map(choose), [Some(0); 4]);
    gates[0].release();
    executor.close();
}

#[test]
fn once_messages_are_known_to_be_cheap_no_key_has_a_worker_of_its_own() {
    let executor = executor(2);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    let mut placement = Placement::new(2, 0);
    let mut choose = |worker, cost| {
        let nobody = |_: &Arc<Worker>| panic!("both are awake");
        placement.choose(own(worker, 2), workers, |_| lane(1, cost), nobody)
    };
    // The first look leaves room for 16 on either; the second one, for the 17th, finds cheap messages, for 17 keys.
    let dear: Vec<_> = (0..16).map(|_| choose(0, 2_000)).collect();
    let cheap: Vec<_> = (0..20).map(|n| choose(usize::from(n > 0), 100)).collect();
    assert_eq!((dear, cheap), (vec![Some(0); 16], vec![Some(0); 20]));
    drop(busy);
    executor.close();
}

#[test]
fn a_worker_whose_thread_is_gone_gets_no_more_keys() {
    let executor = executor(2);
    let busy = Busy::all(&executor);
    let workers = &executor.inner().workers;
    let mut placement = Placement::new(2, 0);
    let views = [lane(0, 1), lane(0, 1)];
    assert_eq!(placed(&mut placement, workers, &views, 2), (vec![0; 2], 1));
    workers[0].sleeper().leave();
    assert!(!workers[0].is_running() && workers[1].is_running());
    assert_eq!(placed(&mut placement, workers, &views, 1).0, [1]);
    drop(busy);
}

#[test]
fn what_needs_any_worker_takes_them_in_turn_and_passes_over_those_without_a_thread() {
    let executor = executor(3);
    let shared = executor.inner();
    let turns: Vec<_> = (0..7).map(|_| shared.a_started_worker()).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0].map(Ok));
    assert!(shared.workers.iter().all(|worker| worker.is_running()));
    let scarce = KeyedExecutor::builder()
        .name("third")
        .workers(3)
        .start_for(crate::shared::Lifetime::Handles, only_the_third_starts);
    for _ in 0..4 {
        assert_eq!(scarce.inner().a_started_worker(), Ok(2));
    }
    for executor in [executor, scarce] {
        executor.close();
        executor.join().expect("not a worker");
    }
}

fn only_the_third_starts(name: String, body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    if name.ends_with("-1") || name.ends_with("-2") {
        return Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, "no thread left"));
    }
    crate::sync::spawn_named(name, body)
}

#[test]
fn a_worker_that_stays_inside_one_handler_is_a_long_wait_at_the_second_look() {
    let executor = executor(2);
    let workers = &executor.inner().workers;
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let keyspace = executor.keyspace(move |_: u32| {
        inside.release();
        held.wait();
        std::future::ready(())
    });
    keyspace.try_submit(0_u32, 0).expect("there is room");
    entered.wait();
    let stuck = workers.iter().position(|worker| worker.token().lent().is_some()).expect("it is inside");
    let mut placement = Placement::new(2, stuck + 1);
    let view = |_| lane(0, 40_000);
    assert_eq!(
        placement.choose(own(stuck, 2), workers, view, |_| true),
        Some(stuck),
        "it may just have begun"
    );
    assert_eq!(
        placement.choose(own(stuck, 2), workers, view, |_| true),
        Some(stuck),
        "the look is good for one more"
    );
    let seen = crate::time::nanos();
    eventually("more time has passed than a wake-up takes", || crate::time::nanos() - seen > 50_000);
    assert_eq!(placement.choose(own(stuck, 2), workers, view, |_| true), Some(1 - stuck));
    gate.release();
    executor.close();
}

#[test]
fn a_piece_of_user_code_is_known_again_with_the_time_since_it_was_first_seen() {
    let mut inside = Inside::default();
    assert_eq!(inside.in_the_same(9, 1_000), None);
    assert_eq!([1_000, 1_300, 1_800].map(|now| inside.in_the_same(9, now)), [Some(0), Some(300), Some(800)]);
    assert_eq!(inside.in_the_same(17, 1_900), None, "another piece");
    assert_eq!(inside.in_the_same(17, 1_950), Some(50));
    assert_eq!(inside.in_the_same(9, 2_000), None, "and that one is forgotten");
    inside.forget();
    assert_eq!(inside.in_the_same(9, 2_100), None, "it was outside meanwhile");
}

#[test]
fn a_worker_is_a_long_wait_when_it_is_inside_one_piece_for_longer_than_7_us() {
    assert_eq!([0, 6_999, 7_000].map(penalty), [0; 3]);
    assert_eq!([7_001, 50_000].map(penalty), [47_001, 90_000], "and the longer the less likely it is chosen");
    assert_eq!(penalty(u64::MAX), u64::MAX);
}
