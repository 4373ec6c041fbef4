//! Failures: the first wins, a failure during a stop escalates it, and a published termination is sealed.

use std::sync::{Arc, Barrier};

use super::journal::{Journal, QUIET, Scripted, rig, within};
use crate::failure::{Failure, FailureCause, Failures, Recorded, Step};
use crate::report::Ending;
use crate::waiters::Signal;

fn failure(text: &'static str) -> Failure {
    Failure::error(Arc::from("x"), Step::Running, text.into())
}

#[test]
fn the_first_failure_is_the_cause_and_the_list_is_bounded() {
    let mut failures = Failures::default();
    assert_eq!(failures.record(failure("first")), Recorded::Primary);
    for _ in 0..1_000 {
        assert_eq!(failures.record(failure("later")), Recorded::Secondary);
    }
    let (primary, secondary, omitted) = failures.seal();
    assert!(primary.unwrap().to_string().ends_with("first"));
    assert_eq!(secondary.len() as u64 + omitted, 1_000);
    assert!(secondary.len() <= 64);
    assert_eq!(failures.record(failure("late")), Recorded::Late);
}

#[test]
fn a_component_failure_ends_the_whole_runtime_without_a_quiet_period() {
    let journal = Journal::default();
    let a = Arc::new(Scripted::new("a", &journal));
    let b = Arc::new(Scripted::new("b", &journal));
    let rig = rig(&journal, vec![Arc::clone(&a), b]);
    rig.start();
    a.context().report_failure("broker gone");
    // The manual timer never moves: a quiet period could not pass.
    let report = within(rig.runtime.termination());
    assert_eq!(report.ending, Ending::Drained);
    assert!(!report.is_clean());
    assert!(report.result().unwrap_err().to_string().ends_with("broker gone"));
    assert_eq!(journal.count("b stopped"), 1);
    assert_eq!(journal.count("executor close"), 1);
}

#[test]
fn a_failure_during_a_stop_becomes_the_cause_and_forces() {
    let journal = Journal::default();
    let a = Arc::new(Scripted::new("a", &journal).stop(|_| std::future::pending()));
    let rig = rig(&journal, vec![Arc::clone(&a)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.timer.wait_for_pending(2);
    a.context().report_failure("lost the partition");
    let report = within(stopped);
    assert_eq!(report.ending, Ending::Forced);
    assert!(report.failure.as_ref().unwrap().to_string().ends_with("lost the partition"));
}

#[test]
fn a_published_failure_never_changes() {
    let journal = Journal::default();
    let a = Arc::new(Scripted::new("a", &journal));
    let rig = rig(&journal, vec![Arc::clone(&a)]);
    rig.start();
    a.context().report_failure("first");
    let report = within(rig.runtime.termination());
    let before = format!("{report:?}");
    let lines = journal.lines().len();
    a.context().report_failure("late");
    rig.runtime.report_failure("outside", "later");
    within(rig.runtime.force_stop());
    rig.timer.advance(QUIET * 1_000);
    let after = within(rig.runtime.termination());
    assert_eq!(before, format!("{after:?}"));
    assert!(Arc::ptr_eq(&report, &after));
    assert_eq!(journal.lines().len(), lines, "nobody is called again");
}

#[test]
fn of_failures_that_race_exactly_one_is_the_cause_and_none_is_lost() {
    for _ in 0..50 {
        let journal = Journal::default();
        let held = Signal::default();
        let wait = held.clone();
        let a = Arc::new(Scripted::new("a", &journal).force(Box::new(move || {
            super::journal::block_until(&wait);
            Ok(())
        })));
        let rig = rig(&journal, vec![Arc::clone(&a)]);
        rig.start();
        let activity = rig.runtime.activities().try_acquire();
        let barrier = Arc::new(Barrier::new(4));
        let reporters: Vec<_> = (0..4)
            .map(|_| {
                let (context, barrier) = (a.context(), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    barrier.wait();
                    context.report_failure("raced");
                    assert!(context.try_acquire().is_none(), "admission is closed when a report returns");
                })
            })
            .collect();
        // One of them carries the force out and is held inside it, so all four are recorded before the seal.
        while reporters.iter().filter(|reporter| reporter.is_finished()).count() < 3 {
            std::thread::yield_now();
        }
        held.fire();
        for reporter in reporters {
            reporter.join().unwrap();
        }
        let report = within(rig.runtime.termination());
        assert_eq!(report.secondary.len(), 3);
        assert_eq!(report.ending, Ending::Forced);
        drop(activity);
    }
}

#[test]
fn a_failure_names_component_step_and_source() {
    let failure = failure("cannot");
    assert_eq!(failure.to_string(), "component x failed in step running: cannot");
    assert_eq!(std::error::Error::source(&failure).unwrap().to_string(), "cannot");
    let own = Failure::of_runtime(Step::Stop, FailureCause::DeadlineExceeded { timeout: QUIET });
    assert_eq!(own.to_string(), "runtime failed in step stop: not finished within 1s");
}
