//! The tasks of a round, with the test's own thread on the seat: how many of them run, and when there may be more.

use std::sync::atomic::Ordering;

use super::run_jobs;
use crate::tests::held_seat::{Tasks, executor, on_seat};

#[test]
fn a_round_runs_16_tasks_at_most_and_is_not_the_last_one_if_it_ran_any() {
    let executor = executor("tasks");
    let (shared, tasks) = (executor.inner(), Tasks::default());
    on_seat(&executor, |cx| {
        assert!(!run_jobs(shared, cx), "nothing is there");
        tasks.push(&executor);
        assert!(run_jobs(shared, cx), "it may have brought something");
        assert_eq!(tasks.ran(), 1);
        (0..17).for_each(|_| tasks.push(&executor));
        assert!(run_jobs(shared, cx));
        assert_eq!(tasks.ran(), 17, "the lanes get their turn before the last one");
        assert!(run_jobs(shared, cx));
        assert_eq!(tasks.ran(), 18);
        assert!(!run_jobs(shared, cx));
    });
    assert_eq!(executor.metrics().workers[0].tasks, 18);
}

#[test]
fn a_task_whose_turn_comes_when_nothing_is_started_any_more_is_dropped() {
    let executor = executor("unrun");
    let (shared, tasks) = (executor.inner(), Tasks::default());
    (0..2).for_each(|_| tasks.push(&executor));
    shared.forced.store(true, Ordering::SeqCst);
    assert!(shared.is_forced());
    on_seat(&executor, |cx| assert!(run_jobs(shared, cx)));
    assert_eq!((tasks.ran(), tasks.left()), (0, 0));
    assert_eq!(executor.metrics().workers[0].tasks, 0);
}
