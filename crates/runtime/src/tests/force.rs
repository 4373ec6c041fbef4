//! Force: executor first, every component, no waiting, and the compensation of what it overlapped.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use super::journal::{Journal, QUIET, Scripted, TIMEOUT, block_until, fails, rig, runtime_on, within};
use crate::error::StartError;
use crate::failure::FailureCause;
use crate::phase::Phase;
use crate::report::{ComponentEnd, Ending};
use crate::timer::{Callback, Scheduled, Timer, TimerError, machine_now};
use crate::waiters::Signal;

fn component(name: &'static str, journal: &Journal) -> Arc<Scripted> {
    Arc::new(Scripted::new(name, journal))
}

#[test]
fn the_executor_is_forced_before_the_components_and_all_of_them_are() {
    let journal = Journal::default();
    let rig = rig(&journal, vec![component("a", &journal), component("b", &journal)]);
    let report = within(rig.runtime.force_stop());
    assert_eq!(
        journal.lines(),
        ["executor force (closed)", "b force (closed)", "a force (closed)"],
        "also those that were never prepared"
    );
    assert_eq!(report.ending, Ending::Forced);
    assert!(report.failure.is_none());
    assert!(report.components.iter().all(|component| component.ended == ComponentEnd::Forced));
}

#[test]
fn a_hanging_component_is_forced_at_the_deadline_with_every_other() {
    let journal = Journal::default();
    let b = Scripted::new("b", &journal).stop(|_| std::future::pending());
    let a = Scripted::new("a", &journal).force(fails("a clings"));
    let rig = rig(&journal, vec![Arc::new(a), Arc::new(b), component("c", &journal)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.pass_quiet_period();
    rig.timer.advance(TIMEOUT - QUIET);
    let report = within(stopped);
    assert!(report.failure.as_ref().unwrap().is_deadline());
    assert_eq!(report.secondary.len(), 1, "{report}");
    assert_eq!(report.ending, Ending::Forced);
    assert_eq!(report.took, TIMEOUT);
    assert_eq!(journal.count("a stop"), 0, "a detached stop enters no further component");
    assert_eq!((journal.count("a force"), journal.count("c force")), (1, 1));
}

#[test]
fn a_component_that_blocks_its_thread_cannot_outlast_the_deadline() {
    let journal = Journal::default();
    let release = Signal::default();
    let inside = Signal::default();
    let (wait, tell) = (release.clone(), inside.clone());
    let b = Arc::new(Scripted::new("b", &journal).quiesce(Box::new(move || {
        tell.fire();
        block_until(&wait);
        Ok(())
    })));
    let rig = rig(&journal, vec![component("a", &journal), Arc::clone(&b), component("c", &journal)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.pass_quiet_period();
    within(inside.fired());
    rig.timer.advance(TIMEOUT);
    let report = within(stopped);
    assert!(report.failure.as_ref().unwrap().is_deadline());
    assert_eq!(b.forced.load(Ordering::SeqCst), 1, "once at once");
    release.fire();
    let limit = machine_now() + TIMEOUT;
    while b.forced.load(Ordering::SeqCst) < 2 {
        assert!(machine_now() < limit, "the second force comes when the overlapped method returns");
        std::thread::yield_now();
    }
    assert_eq!(journal.count("c quiesce") + journal.count("c stop") + journal.count("a stop"), 0);
    assert_eq!(b.forced.load(Ordering::SeqCst), 2);
}

#[test]
fn a_detached_stop_enters_no_component_that_the_force_has_yet_to_reach() {
    let journal = Journal::default();
    let (in_a, leave_a) = (Signal::default(), Signal::default());
    let (in_c, leave_c) = (Signal::default(), Signal::default());
    let hold = |inside: &Signal,
                leave: &Signal|
     -> Box<dyn Fn() -> Result<(), crate::ComponentError> + Send + Sync> {
        let (inside, leave) = (inside.clone(), leave.clone());
        Box::new(move || {
            inside.fire();
            block_until(&leave);
            Ok(())
        })
    };
    let a = Scripted::new("a", &journal).quiesce(hold(&in_a, &leave_a));
    let c = Scripted::new("c", &journal).force(hold(&in_c, &leave_c));
    let rig = rig(&journal, vec![Arc::new(a), component("b", &journal), Arc::new(c)]);
    rig.start();
    let stopped = rig.runtime.stop();
    rig.pass_quiet_period();
    within(in_a.fired());
    let runtime = Arc::clone(&rig.runtime);
    let forcing = std::thread::spawn(move || drop(runtime.force_stop()));
    within(in_c.fired());
    // The force is inside c, b is not forced yet, and the stop now leaves a: b is next on its way.
    leave_a.fire();
    for _ in 0..10_000 {
        std::thread::yield_now();
    }
    assert_eq!(journal.count("b quiesce"), 0);
    leave_c.fire();
    forcing.join().unwrap();
    assert_eq!(within(stopped).ending, Ending::Forced);
    assert_eq!(journal.count("b quiesce"), 0);
}

#[test]
fn a_force_that_overlaps_a_prepare_compensates_it_once_after_its_future_ended() {
    let journal = Journal::default();
    struct Acquired(Journal);
    impl Drop for Acquired {
        fn drop(&mut self) {
            self.0.write("a released by drop");
        }
    }
    let log = journal.clone();
    let a = Scripted::new("a", &journal).prepare(move |_| {
        let acquired = Acquired(log.clone());
        async move {
            let _held = &acquired;
            std::future::pending::<()>().await;
            Ok(())
        }
    });
    let rig = rig(&journal, vec![Arc::new(a), component("b", &journal)]);
    within(async {
        let runtime = Arc::clone(&rig.runtime);
        let start = tokio::spawn(async move { runtime.start().await });
        tokio::task::yield_now().await;
        let report = rig.runtime.force_stop().await;
        assert_eq!(report.ending, Ending::Forced);
        let error = start.await.unwrap().expect_err("forced");
        assert!(matches!(error, StartError::Stopped { .. }), "{error}");
    });
    assert_eq!(
        journal.verbs(),
        ["a prepare", "executor force", "b force", "a force", "a released by drop", "a force"]
    );
}

#[test]
fn a_force_from_inside_a_prepare_returns_and_compensates_it() {
    let journal = Journal::default();
    let handle: Arc<std::sync::OnceLock<std::sync::Weak<crate::Runtime>>> = Arc::default();
    let late = Arc::clone(&handle);
    let a = Scripted::new("a", &journal).prepare(move |_| {
        let runtime = late.get().and_then(std::sync::Weak::upgrade).expect("set before the start");
        drop(runtime.force_stop());
        async { Ok(()) }
    });
    let rig = rig(&journal, vec![Arc::new(a)]);
    handle.set(Arc::downgrade(&rig.runtime)).expect("set once");
    assert!(within(rig.runtime.start()).is_err());
    assert_eq!(journal.count("a force"), 2);
}

#[test]
fn every_concurrent_force_caller_finds_admission_closed() {
    for _ in 0..100 {
        let journal = Journal::default();
        let rig = rig(&journal, vec![component("a", &journal)]);
        rig.start();
        let barrier = Arc::new(Barrier::new(4));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (runtime, barrier) = (Arc::clone(&rig.runtime), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    barrier.wait();
                    let termination = runtime.force_stop();
                    assert!(runtime.activities().try_acquire().is_none());
                    within(termination)
                })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.join().unwrap().ending, Ending::Forced);
        }
        assert_eq!(journal.count("a force"), 1);
        assert_eq!(journal.count("executor force"), 1);
    }
}

#[test]
fn a_panicking_force_keeps_no_other_component_from_being_forced() {
    let journal = Journal::default();
    let b = Scripted::new("b", &journal).force(Box::new(|| panic!("b breaks")));
    let rig = rig(&journal, vec![component("a", &journal), Arc::new(b)]);
    rig.start();
    let report = within(rig.runtime.force_stop());
    assert_eq!(journal.count("a force"), 1);
    assert_eq!(
        report.failure.as_ref().unwrap().to_string(),
        "component b failed in step force: panicked: b breaks"
    );
}

#[test]
fn a_dropped_runtime_closes_its_executor_on_every_path() {
    let journal = Journal::default();
    drop(rig(&journal, vec![component("a", &journal)]));
    assert_eq!(journal.verbs(), ["executor close"]);

    let journal = Journal::default();
    let running = rig(&journal, vec![component("a", &journal)]);
    running.start();
    let termination = running.runtime.termination();
    drop(running);
    let report = within(termination);
    assert!(matches!(report.failure.as_ref().unwrap().cause(), FailureCause::Abandoned));
    assert_eq!(journal.verbs()[3..], ["executor force", "a force"]);

    let journal = Journal::default();
    let stopping = rig(&journal, vec![component("a", &journal)]);
    stopping.start();
    let (stopped, timer) = (stopping.runtime.stop(), stopping.timer.clone());
    timer.wait_for_pending(2);
    drop(stopping);
    timer.advance(QUIET);
    assert_eq!(within(stopped).ending, Ending::Drained, "a stop under way goes on");
}

/// A timer that refuses from the n-th schedule on.
struct Refusing {
    left: std::sync::atomic::AtomicUsize,
}

impl Timer for Refusing {
    fn now(&self) -> Instant {
        machine_now()
    }
    fn schedule(&self, _: Instant, _: Callback) -> Result<Scheduled, TimerError> {
        let taken = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        taken.map(|_| Scheduled::new(|| {})).map_err(|_| "no thread for timers".into())
    }
}

#[test]
fn without_a_timer_for_the_deadline_a_stop_forces_at_once() {
    let journal = Journal::default();
    let timer = Arc::new(Refusing { left: 0.into() });
    let runtime = runtime_on(&journal, vec![component("a", &journal)], timer, QUIET);
    within(runtime.start()).unwrap();
    let report = within(runtime.stop());
    assert_eq!(report.ending, Ending::Forced);
    assert_eq!(
        report.failure.as_ref().unwrap().to_string(),
        "runtime failed in step stop: no thread for timers"
    );
    assert_eq!(journal.count("a quiesce"), 0);
}

#[test]
fn without_a_timer_for_the_quiet_period_a_stop_drains_at_once_and_says_so() {
    let journal = Journal::default();
    let timer = Arc::new(Refusing { left: 1.into() });
    let runtime = runtime_on(&journal, vec![component("a", &journal)], timer, QUIET);
    within(runtime.start()).unwrap();
    let report = within(runtime.stop());
    assert_eq!(journal.count("a stopped"), 1);
    assert_eq!(
        report.failure.as_ref().unwrap().to_string(),
        "runtime failed in step quiet period: no thread for timers"
    );
    assert_eq!(runtime.phase(), Phase::Stopped);
}
