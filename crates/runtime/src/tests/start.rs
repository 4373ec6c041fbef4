//! Start: order, failure, cancellation, and that it happens once.

use std::sync::Arc;

use super::journal::{Journal, Scripted, TIMEOUT, fails, poll_once, rig, within};
use crate::error::StartError;
use crate::failure::FailureCause;
use crate::phase::Phase;
use crate::report::{ComponentEnd, Ending};
use crate::waiters::Signal;

fn component(name: &'static str, journal: &Journal) -> Arc<Scripted> {
    Arc::new(Scripted::new(name, journal))
}

#[test]
fn no_component_starts_before_every_prepare_finished() {
    let journal = Journal::default();
    let go = Signal::default();
    let wait = go.clone();
    let b = Scripted::new("b", &journal).prepare(move |_| {
        let fired = wait.fired();
        async move {
            fired.await;
            Ok(())
        }
    });
    let rig = rig(&journal, vec![component("a", &journal), Arc::new(b), component("c", &journal)]);
    within(async {
        let runtime = Arc::clone(&rig.runtime);
        let start = tokio::spawn(async move { runtime.start().await });
        tokio::task::yield_now().await;
        assert_eq!(journal.lines(), ["a prepare", "a prepared", "b prepare"]);
        assert_eq!(rig.runtime.phase(), Phase::Starting);
        assert!(!rig.runtime.is_running());
        go.fire();
        start.await.unwrap().unwrap();
    });
    assert_eq!(
        journal.lines()[2..],
        ["b prepare", "b prepared", "c prepare", "c prepared", "a start", "b start", "c start"]
    );
    assert!(rig.runtime.is_running());
}

#[test]
fn a_failed_start_rolls_back_in_reverse_and_keeps_the_first_error() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).stop(|_| async { Err("a cannot stop".into()) });
    let b = Scripted::new("b", &journal).start(fails("b cannot start"));
    let rig = rig(&journal, vec![Arc::new(a), Arc::new(b), component("c", &journal)]);
    let error = within(rig.runtime.start()).expect_err("b fails");
    let StartError::Failed { failure, report } = error else { panic!("{error}") };
    assert_eq!(failure.to_string(), "component b failed in step start: b cannot start");
    assert_eq!(report.failure.as_ref().unwrap().to_string(), failure.to_string());
    assert_eq!(report.secondary.len(), 1);
    assert_eq!(report.secondary[0].component(), Some("a"));
    let verbs = journal.verbs();
    let rollback: Vec<&String> = verbs.iter().skip_while(|verb| *verb != "b start").skip(1).collect();
    assert_eq!(
        rollback,
        [
            "a suspend",
            "b suspend",
            "c suspend",
            "a quiesce",
            "b quiesce",
            "c quiesce",
            "c stop",
            "c stopped",
            "b stop",
            "b stopped",
            "a stop",
            "a stopped",
            "executor force",
            "c force",
            "b force",
            "a force"
        ]
    );
    assert_eq!(rig.runtime.phase(), Phase::Stopped);
}

#[test]
fn a_failed_prepare_enters_no_further_component_and_rolls_back_those_entered() {
    let journal = Journal::default();
    let b = Scripted::new("b", &journal).prepare(|_| async { Err("no broker".into()) });
    let rig = rig(&journal, vec![component("a", &journal), Arc::new(b), component("c", &journal)]);
    let error = within(rig.runtime.start()).expect_err("b fails");
    let StartError::Failed { report, .. } = &error else { panic!("{error}") };
    assert_eq!(report.ending, Ending::Drained);
    assert_eq!(journal.count("c prepare") + journal.count("c stop") + journal.count("c quiesce"), 0);
    assert_eq!(report.components[2].ended, ComponentEnd::NotEntered);
    assert!(rig.runtime.activities().try_acquire().is_none());
    let lines = journal.lines();
    let ends = ["b stop (closed)", "b stopped (closed)", "a stop (closed)", "a stopped (closed)"];
    assert_eq!(lines[lines.len() - 6..lines.len() - 2], ends);
    assert_eq!(lines[lines.len() - 2..], ["executor close (closed)", "executor terminated (closed)"]);
}

#[test]
fn a_panic_in_prepare_fails_the_start_with_its_text() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).prepare(|_| async { panic!("cannot be") });
    let rig = rig(&journal, vec![Arc::new(a)]);
    let error = within(rig.runtime.start()).expect_err("a panics");
    assert_eq!(error.to_string(), "component a failed in step prepare: panicked: cannot be");
}

#[test]
fn a_failure_reported_while_preparing_keeps_the_next_component_out() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).prepare(|context| {
        context.report_failure("lost the subscription");
        async { Ok(()) }
    });
    let rig = rig(&journal, vec![Arc::new(a), component("b", &journal)]);
    let error = within(rig.runtime.start()).expect_err("a reported");
    assert_eq!(error.to_string(), "component a failed in step running: lost the subscription");
    assert_eq!(journal.count("b prepare"), 0);
    assert_eq!(journal.count("a stopped"), 1);
}

#[test]
fn a_component_that_reports_and_then_fails_is_still_rolled_back_gracefully() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).prepare(|context| {
        context.report_failure("first");
        async { Err("second".into()) }
    });
    let rig = rig(&journal, vec![Arc::new(a)]);
    let error = within(rig.runtime.start()).expect_err("a failed");
    let StartError::Failed { failure, report } = error else { panic!("{error}") };
    assert!(failure.to_string().ends_with("first"));
    assert!(report.secondary[0].to_string().ends_with("second"));
    assert_eq!(report.ending, Ending::Drained);
}

#[test]
fn a_second_start_is_refused_and_disturbs_nothing() {
    let journal = Journal::default();
    let go = Signal::default();
    let wait = go.clone();
    let a = Scripted::new("a", &journal).prepare(move |_| {
        let fired = wait.fired();
        async move {
            fired.await;
            Ok(())
        }
    });
    let rig = rig(&journal, vec![Arc::new(a)]);
    within(async {
        let runtime = Arc::clone(&rig.runtime);
        let first = tokio::spawn(async move { runtime.start().await });
        tokio::task::yield_now().await;
        let second = rig.runtime.start().await;
        assert!(matches!(second, Err(StartError::AlreadyStarted { phase: Phase::Starting })));
        go.fire();
        first.await.unwrap().expect("the first start is not affected");
        let third = rig.runtime.start().await;
        assert!(matches!(third, Err(StartError::AlreadyStarted { phase: Phase::Running })));
    });
    assert!(rig.runtime.is_running());
}

#[test]
fn a_cancelled_start_forces_the_runtime() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).prepare(|_| std::future::pending());
    let rig = rig(&journal, vec![Arc::new(a), component("b", &journal)]);
    within(async {
        {
            let mut start = std::pin::pin!(rig.runtime.start());
            assert!(poll_once(&mut start).await.is_pending());
        }
        let report = rig.runtime.termination().await;
        assert_eq!(report.ending, Ending::Forced);
        let failure = report.failure.as_ref().expect("a cause");
        assert!(matches!(failure.cause(), FailureCause::StartCancelled));
    });
    assert_eq!(journal.verbs(), ["a prepare", "executor force", "b force", "a force"]);
}

#[test]
fn a_stop_during_the_start_is_kept_and_rolls_back() {
    let journal = Journal::default();
    let go = Signal::default();
    let wait = go.clone();
    let a = Scripted::new("a", &journal).prepare(move |_| {
        let fired = wait.fired();
        async move {
            fired.await;
            Ok(())
        }
    });
    let rig = rig(&journal, vec![Arc::new(a), component("b", &journal)]);
    within(async {
        let runtime = Arc::clone(&rig.runtime);
        let start = tokio::spawn(async move { runtime.start().await });
        tokio::task::yield_now().await;
        let stopped = rig.runtime.stop();
        assert_eq!(journal.verbs(), ["a prepare"], "the component that prepares is left in peace");
        go.fire();
        let error = start.await.unwrap().expect_err("stopped");
        assert!(matches!(error, StartError::Stopped { .. }), "{error}");
        assert_eq!(stopped.await.ending, Ending::Drained);
    });
    assert_eq!(journal.count("b prepare"), 0);
    assert_eq!(journal.count("a start"), 0);
    assert_eq!(journal.count("a stopped"), 1);
}

#[test]
fn a_start_that_hangs_after_a_stop_is_forced_at_the_deadline() {
    let journal = Journal::default();
    let a = Scripted::new("a", &journal).prepare(|_| std::future::pending());
    let rig = rig(&journal, vec![Arc::new(a)]);
    within(async {
        let runtime = Arc::clone(&rig.runtime);
        let start = tokio::spawn(async move { runtime.start().await });
        tokio::task::yield_now().await;
        let stopped = rig.runtime.stop();
        rig.timer.advance(TIMEOUT);
        assert!(stopped.await.failure.as_ref().unwrap().is_deadline());
        assert!(matches!(start.await.unwrap(), Err(StartError::Failed { .. })));
    });
    assert_eq!(journal.count("a force"), 2, "once at once, once after its prepare was dropped");
}

#[test]
fn a_notice_is_logged_as_one_warning() {
    let executor = keyed_executor::KeyedExecutor::new(keyed_executor::Config::default()).unwrap();
    let runtime =
        crate::Runtime::builder(executor).notice("wow.parallelism is no longer used").build().unwrap();
    let log = wow_testkit::Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        within(async {
            runtime.start().await.unwrap();
            assert!(runtime.start().await.is_err());
        });
    });
    assert_eq!(log.warnings(), ["wow.parallelism is no longer used"]);
}
