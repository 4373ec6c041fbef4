//! One worker as others see it, and its sleep, call by call.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::KeyedExecutor;
use crate::seat::AttachId;
use crate::seat::token::{Back, Token};
use crate::sleep::{Notified, Sleeper};
use crate::sync::Arc;
use crate::time::nanos;
use crate::wake::{self, WakeCell};
use crate::worker::Worker;
use wow_testkit::{Latch, eventually};

fn worker(index: usize) -> Arc<Worker> {
    let tokens = (0..4)
        .map(|thread| CachePadded::new(if thread < 3 { Token::parked() } else { Token::without_seat() }))
        .collect();
    Worker::new(index, tokens)
}

#[test]
fn a_sleep_ends_by_a_notice_and_a_timed_one_says_whether_it_did() {
    let sleeper = Arc::new(Sleeper::new());
    sleeper.introduce();
    assert!(!sleeper.sleeps() && !sleeper.is_gone());
    assert_eq!(sleeper.notify(), Notified::Looks, "it is awake");
    sleeper.announce();
    assert!(sleeper.sleeps());
    sleeper.cancel();
    assert!(!sleeper.sleeps());
    sleeper.announce();
    assert_eq!(sleeper.notify(), Notified::Looks);
    assert!(!sleeper.sleeps(), "the notice came before the sleep");
    sleeper.sleep();
    assert!(sleeper.sleep_for(Duration::from_secs(600)), "it was told already");
    sleeper.announce();
    let before = nanos();
    assert!(!sleeper.sleep_for(Duration::from_millis(20)), "nobody told it");
    assert!(nanos() - before >= 20_000_000, "it slept for as long as it was told to");
    assert!(!sleeper.sleeps(), "it is awake whatever ended its sleep");
    for timed in [false, true] {
        sleeper.announce();
        let notifier = Arc::clone(&sleeper);
        let thread = std::thread::spawn(move || notifier.notify());
        if timed {
            assert!(sleeper.sleep_for(Duration::from_secs(600)), "it was told");
        } else {
            sleeper.sleep();
        }
        assert_eq!(thread.join().expect("it does not panic"), Notified::Looks);
        assert!(!sleeper.sleeps());
    }
}

#[test]
fn a_worker_is_told_to_have_slept_as_long_as_it_did() {
    let start = nanos();
    let executor =
        KeyedExecutor::builder().name("slept").workers(1).rescue_threads(0).build().expect("in range");
    let worker = &executor.inner().workers[0];
    let slept = || executor.metrics().workers[0].parked_for;
    let mut at_least = Duration::ZERO;
    for _ in 0..10 {
        let ran = Latch::new();
        let told = ran.clone();
        executor.execute(move || told.release()).expect("it is open");
        ran.wait();
        assert!(slept() >= at_least);
        eventually("the worker sleeps", || worker.token().asleep().is_some());
        let asleep_since = nanos();
        while nanos() - asleep_since < 1_000_000 {
            std::thread::yield_now();
        }
        at_least += Duration::from_nanos(nanos() - asleep_since);
    }
    executor.close();
    executor.join().expect("not a worker");
    let slept = slept();
    assert!(slept >= at_least, "{slept:?}, of them {at_least:?} were seen");
    let passed = Duration::from_nanos(nanos() - start);
    assert!(slept <= passed, "{slept:?} of {passed:?}");
}

#[test]
fn a_thread_that_is_gone_is_told_to_whoever_notifies() {
    let sleeper = Sleeper::new();
    sleeper.leave();
    assert!(sleeper.is_gone() && !sleeper.sleeps());
    assert_eq!(sleeper.notify(), Notified::Gone);
    sleeper.interrupt();
    assert!(sleeper.is_gone());
}

#[test]
fn a_worker_runs_from_its_start_until_its_thread_is_gone() {
    let worker = worker(2);
    assert_eq!((worker.index(), worker.occupant()), (2, 2));
    assert!(!worker.is_running());
    worker.mark_started();
    assert!(worker.is_running());
    worker.sleeper().leave();
    assert!(!worker.is_running());
}

#[test]
fn a_seat_is_borrowed_by_the_word_of_the_thread_that_occupies_it() {
    let worker = worker(1);
    {
        let (token, borrowed) = worker.try_borrow().expect("nobody is on it yet");
        assert!(borrowed.was_parked() && worker.try_borrow().is_none());
        token.give_back(borrowed);
    }
    assert_eq!(worker.token().take_back(), Back::Mine);
    assert!(worker.try_borrow().is_none(), "its thread is on it");
    worker.token().lend();
    let (token, borrowed) = worker.try_borrow().expect("it is lent");
    worker.token_of(3).own();
    worker.set_occupant(3);
    token.take(borrowed);
    assert_eq!(worker.occupant(), 3);
    assert!(worker.token().is_owned() && !worker.token_of(1).has_seat());
    assert_eq!(worker.token_of(1).take_back(), Back::Lost);
}

#[test]
fn a_wait_is_what_is_queued_times_its_cost_and_long_where_the_cost_is_unknown() {
    let worker = worker(0);
    assert_eq!(worker.expected_wait(3, 700), 2_100);
    assert_eq!(worker.expected_wait(0, 700), 0);
    assert_eq!(worker.expected_wait(u64::MAX, 700), u64::MAX);
    assert_eq!(worker.expected_wait(0, 0), 80_000);
    assert_eq!(worker.expected_wait(3, 0), 200_000);
}

#[test]
fn code_that_was_seen_for_long_enough_is_suspect_and_its_monitor_woken_once() {
    let worker = worker(0);
    let monitor = Arc::new(Sleeper::new());
    worker.seen_inside(9, u64::MAX);
    assert!(!worker.is_suspect(9), "nobody looks after it");
    worker.watched_by(Arc::clone(&monitor), Duration::from_millis(1));
    monitor.announce();
    worker.seen_inside(9, 999_999);
    assert!(!worker.is_suspect(9) && monitor.sleeps(), "not for long enough");
    worker.seen_inside(9, 1_000_000);
    assert!(worker.is_suspect(9) && !worker.is_suspect(17) && !monitor.sleeps());
    monitor.announce();
    worker.seen_inside(9, 2_000_000);
    assert!(monitor.sleeps(), "once for each piece of code");
    worker.seen_inside(17, 1_000_000);
    assert!(worker.is_suspect(17) && !worker.is_suspect(9) && !monitor.sleeps());
}

#[test]
fn a_cell_is_woken_once_until_it_was_taken_and_its_wakers_keep_one_count_each() {
    let worker = worker(0);
    let cells: Vec<Arc<WakeCell>> = (0..3)
        .map(|entry| WakeCell::new(Arc::clone(&worker), AttachId { index: 0, generation: 1 }, entry))
        .collect();
    let waker = wake::waker(&cells[0]);
    let copy = waker.clone();
    assert_eq!(Arc::strong_count(&cells[0]), 3);
    drop(copy);
    assert_eq!(Arc::strong_count(&cells[0]), 2);
    assert!(worker.wakes().is_empty());
    waker.wake_by_ref();
    waker.wake_by_ref();
    assert_eq!(Arc::strong_count(&cells[0]), 3, "it lies on the stack once");
    wake::waker(&cells[2]).wake();
    wake::waker(&cells[1]).wake();
    waker.wake();
    assert!(!worker.wakes().is_empty());
    let mut taken = Vec::new();
    worker.wakes().take(|cell| taken.push(cell.entry()));
    assert_eq!(taken, [0, 2, 1], "in the order of their wakes");
    assert!(worker.wakes().is_empty());
    assert!(cells.iter().all(|cell| Arc::strong_count(cell) == 1));
    wake::waker(&cells[1]).wake();
    let mut again = Vec::new();
    worker.wakes().take(|cell| again.push(cell.entry()));
    assert_eq!(again, [1], "it can be woken again");
    worker.sleeper().leave();
    wake::waker(&cells[1]).wake();
    assert!(worker.wakes().is_empty(), "nobody takes it any more");
    assert_eq!(Arc::strong_count(&cells[1]), 1);
}

#[test]
fn a_future_that_wakes_itself_is_told_to_who_polls_it_and_lies_on_no_stack() {
    let worker = worker(0);
    let cell = |entry| WakeCell::new(Arc::clone(&worker), AttachId { index: 0, generation: 1 }, entry);
    let (mine, other) = (cell(1), cell(2));
    // SAFETY: rule 8 of seat/README.md: the cell lives until the poll has returned.
    let poll =
        |poll: &dyn Fn(&std::task::Waker)| unsafe { wake::polling(mine.borrowed(), |waker| poll(waker)) }.1;
    assert!(!poll(&|_| {}));
    assert!(poll(&|waker| waker.wake_by_ref()));
    assert!(poll(&|_| wake::waker(&mine).wake()), "by whichever waker of it");
    assert!(worker.wakes().is_empty());
    assert!(!poll(&|_| wake::waker(&other).wake()), "that was somebody else");
    let mut taken = Vec::new();
    worker.wakes().take(|cell| taken.push(cell.entry()));
    assert_eq!(taken, [2]);
}

#[test]
fn what_is_ready_on_a_worker_is_its_backlog_and_none_is_left_when_it_ran_dry() {
    let executor = KeyedExecutor::builder()
        .name("backlog")
        .workers(1)
        .throughput(1)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let keyspace: crate::Keyspace<u32, u32> = executor.keyspace(move |n| {
        let since = nanos();
        while nanos() - since < 50_000 {
            std::hint::spin_loop();
        }
        if n == 60 {
            inside.release();
            held.wait();
        }
        std::future::ready(())
    });
    // Every message takes 50 us, a round is shorter than all of them: what is left of it is ready.
    for n in 0..200 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    entered.wait();
    let worker = &executor.inner().workers[0];
    let backlog = worker.expected_wait(0, 1);
    assert!(backlog >= 50_000, "{backlog} ns, with many messages behind it");
    gate.release();
    eventually("nothing is left", || worker.expected_wait(0, 1) == 0);
    assert_eq!(wow_testkit::finish(keyspace.drained()).handled, 200);
    executor.close();
}
