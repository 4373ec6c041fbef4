//! The quiet period: what restarts it, what voids its timer, what ends it.

use std::sync::Arc;
use std::time::Duration;

use super::journal::{Journal, QUIET, Rig, Scripted, poll_once, rig, runtime_on, within};
use crate::drive::{block_on, unless};
use crate::quiet::close_when_quiet;
use crate::report::Ending;
use crate::timer::{Callback, Scheduled, Timer, TimerError};
use crate::timer_manual::ManualTimer;
use crate::waiters::Signal;

fn running() -> Rig {
    let journal = Journal::default();
    let rig = rig(&journal, vec![Arc::new(Scripted::new("a", &journal))]);
    rig.start();
    rig
}

#[test]
fn an_activity_during_the_quiet_period_is_admitted_and_restarts_it() {
    let rig = running();
    let stopped = rig.runtime.stop();
    rig.timer.wait_for_pending(2);
    rig.timer.advance(QUIET / 2);
    let activity = rig.runtime.activities().try_acquire().expect("still admitted while quiescing");
    drop(activity);
    // The period that began before the activity would end here; the one that began after it is half way.
    rig.timer.advance(QUIET / 2);
    rig.timer.wait_for_pending(2);
    assert!(!rig.runtime.activities().is_closed());
    assert_eq!(rig.journal.count("a quiesce"), 0);
    rig.timer.advance(QUIET);
    let report = within(stopped);
    assert_eq!(report.ending, Ending::Drained);
    assert_eq!(rig.journal.count("a quiesce"), 1);
}

#[test]
fn the_quiet_period_waits_for_an_activity_under_way() {
    let rig = running();
    let activity = rig.runtime.activities().try_acquire().expect("open");
    let stopped = rig.runtime.stop();
    rig.timer.wait_for_pending(1);
    rig.timer.advance(QUIET * 5);
    assert!(!rig.runtime.activities().is_closed(), "busy is not quiet");
    drop(activity);
    rig.pass_quiet_period();
    assert_eq!(within(stopped).ending, Ending::Drained);
}

/// A timer that holds back what is due, as a busy timer thread would.
#[derive(Clone, Default)]
struct LateTimer {
    inner: ManualTimer,
    held: Arc<std::sync::Mutex<Vec<Callback>>>,
}

impl Timer for LateTimer {
    fn now(&self) -> std::time::Instant {
        self.inner.now()
    }
    fn schedule(&self, _: std::time::Instant, callback: Callback) -> Result<Scheduled, TimerError> {
        self.held.lock().unwrap().push(callback);
        Ok(Scheduled::new(|| {}))
    }
}

#[test]
fn a_timer_published_late_is_void() {
    let timer = LateTimer::default();
    let gate = crate::ActivityGate::new();
    let mut quiet = std::pin::pin!(close_when_quiet(&gate, &timer, QUIET));
    within(async {
        assert!(poll_once(&mut quiet).await.is_pending());
        let armed = timer.held.lock().unwrap().remove(0);
        let activity = gate.try_acquire().expect("open");
        armed();
        assert!(poll_once(&mut quiet).await.is_pending());
        assert!(!gate.is_closed(), "the old timer proves nothing");
        drop(activity);
        assert!(poll_once(&mut quiet).await.is_pending());
        let activity = gate.try_acquire().expect("open");
        drop(activity);
        let armed = timer.held.lock().unwrap().remove(0);
        armed();
        assert!(poll_once(&mut quiet).await.is_pending());
        assert!(!gate.is_closed(), "an activity that came and went voids the timer too");
        let armed = timer.held.lock().unwrap().remove(0);
        armed();
        quiet.await.expect("a timer");
        assert!(gate.is_closed());
    });
}

#[test]
fn a_quiet_period_of_zero_closes_at_the_first_idle_moment() {
    let journal = Journal::default();
    let timer = ManualTimer::new();
    let components = vec![Arc::new(Scripted::new("a", &journal))];
    let runtime = runtime_on(&journal, components, Arc::new(timer), Duration::ZERO);
    within(runtime.start()).unwrap();
    assert_eq!(within(runtime.stop()).ending, Ending::Drained);
}

#[test]
fn a_gate_closed_by_somebody_else_ends_the_quiet_period() {
    let timer = ManualTimer::new();
    let gate = crate::ActivityGate::new();
    let closer = gate.clone();
    let waiter = timer.clone();
    let thread = std::thread::spawn(move || {
        waiter.wait_for_pending(1);
        closer.close();
    });
    let never = Signal::default();
    block_on(unless(&never, close_when_quiet(&gate, &timer, QUIET))).unwrap().unwrap();
    thread.join().unwrap();
    assert_eq!(timer.pending(), 0, "its timer is cancelled");
}
