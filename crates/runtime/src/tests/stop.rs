//! Graceful stop: the order of its steps, its observers, and that one failing component keeps no other from stopping.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::journal::{Journal, QUIET, Scripted, TIMEOUT, fails, rig, within};
use crate::error::WaitError;
use crate::failure::Step;
use crate::phase::Phase;
use crate::report::{ComponentEnd, Ending, WorkLedger};
use crate::waiters::Signal;

fn component(name: &'static str, journal: &Journal) -> Arc<Scripted> {
    Arc::new(Scripted::new(name, journal))
}

#[test]
fn admission_closes_before_components_quiesce_and_they_stop_in_reverse() {
    let journal = Journal::default();
    let rig =
        rig(&journal, vec![component("a", &journal), component("b", &journal), component("c", &journal)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.pass_quiet_period();
    let report = within(stopped);
    assert_eq!(
        journal.lines()[9..],
        [
            "a suspend",
            "b suspend",
            "c suspend",
            "a quiesce (closed)",
            "b quiesce (closed)",
            "c quiesce (closed)",
            "c stop (closed)",
            "c stopped (closed)",
            "b stop (closed)",
            "b stopped (closed)",
            "a stop (closed)",
            "a stopped (closed)",
            "executor close (closed)",
            "executor terminated (closed)",
        ]
    );
    assert!(report.is_clean(), "{report}");
    let steps: Vec<Step> = report.steps.iter().map(|step| step.step).collect();
    assert_eq!(
        steps,
        [
            Step::AwaitStart,
            Step::SuspendIntake,
            Step::Quiet,
            Step::Quiesce,
            Step::Drain,
            Step::StopGracefully,
            Step::CloseExecutor
        ]
    );
    assert_eq!(report.steps[2].took, QUIET);
    assert_eq!(report.took, QUIET);
    assert_eq!(rig.timer.pending(), 0, "the deadline is disarmed");
    assert_eq!(rig.runtime.phase(), Phase::Stopped);
    assert!(!rig.runtime.is_running());
}

#[test]
fn a_failed_runtime_drains_what_it_admitted() {
    let journal = Journal::default();
    let quiesced = Signal::default();
    let tell = quiesced.clone();
    let a = Arc::new(Scripted::new("a", &journal).quiesce(Box::new(move || {
        tell.fire();
        Ok(())
    })));
    let rig = rig(&journal, vec![Arc::clone(&a)]);
    rig.start();
    let activity = rig.runtime.activities().try_acquire().expect("open");
    a.context().report_failure("gone");
    assert!(rig.runtime.activities().is_closed(), "closed when the report returns");
    within(quiesced.fired());
    assert_eq!(journal.count("a stop"), 0, "an activity is under way");
    drop(activity);
    let report = within(rig.runtime.termination());
    assert_eq!(journal.count("a stopped"), 1);
    assert_eq!(report.ending, Ending::Drained);
    assert!(report.steps.iter().all(|step| step.step != Step::Quiet), "a failure skips the quiet period");
    assert_eq!(report.failure.as_ref().unwrap().to_string(), "component a failed in step running: gone");
}

#[test]
fn a_runtime_stopped_before_its_start_terminates_at_once() {
    let journal = Journal::default();
    let rig = rig(&journal, vec![component("a", &journal)]);
    let report = within(rig.runtime.stop());
    assert_eq!(report.ending, Ending::NeverStarted);
    assert_eq!(report.components[0].ended, ComponentEnd::NotEntered);
    assert_eq!(journal.verbs(), ["executor close"]);
    assert!(rig.runtime.activities().is_closed());
    assert!(within(rig.runtime.start()).is_err());
    assert_eq!(journal.verbs(), ["executor close"]);
}

#[test]
fn a_component_that_fails_to_stop_keeps_no_other_from_stopping_and_ends_in_a_force() {
    let journal = Journal::default();
    let b =
        Scripted::new("b", &journal).stop(|_| async { Err("b hangs on".into()) }).force(fails("b clings"));
    let c = Scripted::new("c", &journal).stop(|_| async { panic!("c breaks") });
    let rig = rig(&journal, vec![component("a", &journal), Arc::new(b), Arc::new(c)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.pass_quiet_period();
    let report = within(stopped);
    assert_eq!(report.ending, Ending::Forced);
    assert_eq!(
        report.failure.as_ref().unwrap().to_string(),
        "component c failed in step stop gracefully: panicked: c breaks"
    );
    let secondary: Vec<String> = report.secondary.iter().map(ToString::to_string).collect();
    assert_eq!(
        secondary,
        [
            "component b failed in step stop gracefully: b hangs on",
            "component b failed in step force: b clings"
        ]
    );
    assert_eq!(report.components[0].ended, ComponentEnd::Graceful);
    let verbs = journal.verbs();
    assert_eq!(verbs[verbs.len() - 5..], ["a stopped", "executor force", "c force", "b force", "a force"]);
}

#[test]
fn a_component_that_cannot_suspend_keeps_no_other_from_being_suspended() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).suspend(fails("no"));
    let rig = rig(&journal, vec![Arc::new(a), component("b", &journal)]);
    rig.start();
    let report = within(rig.runtime.stop());
    assert_eq!(journal.count("b suspend"), 1);
    assert_eq!(journal.count("b stopped"), 1);
    assert_eq!(report.failure.as_ref().unwrap().step(), Step::SuspendIntake);
}

#[test]
fn every_observer_gets_the_one_report_and_a_dropped_one_stops_nothing() {
    let journal = Journal::default();
    let rig = rig(&journal, vec![component("a", &journal)]);
    rig.start();
    drop(rig.runtime.stop());
    let first = rig.runtime.stop();
    let second = rig.runtime.termination();
    rig.pass_quiet_period();
    let (first, second) = within(async { (first.await, second.await) });
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(journal.count("a stopped"), 1);
    assert!(Arc::ptr_eq(&first, &rig.runtime.termination().report().unwrap()));
}

#[test]
fn a_callers_limit_ends_its_wait_and_not_the_stop() {
    let journal = Journal::default();
    let go = Signal::default();
    let wait = go.clone();
    let a = Scripted::new("a", &journal).stop(move |_| {
        let fired = wait.fired();
        async move {
            fired.await;
            Ok(())
        }
    });
    let rig = rig(&journal, vec![Arc::new(a)]);
    rig.start();
    let runtime = Arc::clone(&rig.runtime);
    let waiting = std::thread::spawn(move || within(runtime.stop_within(Duration::from_secs(3))));
    rig.timer.wait_for_pending(3);
    rig.timer.advance(Duration::from_secs(3));
    assert!(matches!(waiting.join().unwrap(), Err(WaitError::Elapsed { .. })));
    go.fire();
    assert_eq!(within(rig.runtime.termination()).ending, Ending::Drained);
}

#[test]
fn blocking_observers_hold_up_nobody() {
    let journal = Journal::default();
    let rig = rig(&journal, vec![component("a", &journal)]);
    rig.start();
    let observers: Vec<_> = (0..8)
        .map(|_| {
            let runtime = Arc::clone(&rig.runtime);
            std::thread::spawn(move || runtime.stop_blocking().unwrap().ending)
        })
        .collect();
    rig.pass_quiet_period();
    assert_eq!(within(rig.runtime.termination()).ending, Ending::Drained);
    for observer in observers {
        assert_eq!(observer.join().unwrap(), Ending::Drained);
    }
}

#[test]
fn a_component_is_told_its_share_of_the_deadline() {
    let journal = Journal::default();
    let shares = Arc::new(Mutex::new(Vec::new()));
    let told = |shares: &Arc<Mutex<Vec<(Duration, Duration)>>>| {
        let shares = Arc::clone(shares);
        move |stop: crate::StopContext| {
            shares.lock().unwrap().push((stop.remaining(), stop.fair_share()));
            async { Ok(()) }
        }
    };
    let a = Scripted::new("a", &journal).stop(told(&shares));
    let b = Scripted::new("b", &journal).stop(told(&shares));
    let rig = rig(&journal, vec![Arc::new(a), Arc::new(b)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.pass_quiet_period();
    within(stopped);
    let left = TIMEOUT - QUIET;
    assert_eq!(*shares.lock().unwrap(), [(left, left / 2), (left, left)]);
}

#[test]
fn the_report_repeats_each_components_ledger() {
    let journal = Journal::default();
    let work = WorkLedger { accepted: 10, handled: 7, failed: 1, discarded: 1, in_flight: 1 };
    assert!(work.is_balanced());
    assert!(!WorkLedger { accepted: 11, ..work }.is_balanced());
    let a = Scripted::new("a", &journal).work(work);
    let rig = rig(&journal, vec![Arc::new(a)]);
    rig.start();
    let activity = rig.runtime.activities().try_acquire();
    let report = within(rig.runtime.force_stop());
    assert_eq!(report.components[0].work, Some(work));
    assert_eq!(report.open_activities, 1);
    let text = report.to_string();
    assert!(text.contains("accepted 10 = handled 7 + failed 1 + discarded 1 + in flight 1"), "{text}");
    assert!(text.contains("1 activities open"), "{text}");
    drop(activity);
}
