//! The life cycle: the one owner of a runtime's phase, failures, gate, executor and components.
//!
//! `runtime.rs` is its handle; `start.rs`, `shutdown.rs` and `force.rs` are its procedures and find everything here.
//! Invariants: phase and failures change together under one lock; no lock is held while code of a component, of the
//! executor or of an observer runs; the duty of a transition is done by the thread that caused it. It does not order
//! the steps of any procedure.

use std::time::{Duration, Instant};

use keyed_executor::KeyedExecutor;

use crate::activity::ActivityGate;
use crate::entry::Entry;
use crate::executor::ExecutorLifecycle;
use crate::failure::{Failure, FailureCause, Failures, Recorded, Step};
use crate::phase::{Duty, Event, Phase, next};
use crate::report::{Ending, ShutdownReport, StepTime};
use crate::shutdown::{self, Admission};
use crate::sync::{Arc, Mutex, lock};
use crate::termination::Termination;
use crate::timer::{Scheduled, Timer};
use crate::waiters::Signal;

/// Everything of one runtime.
pub(crate) struct Lifecycle {
    pub(crate) entries: Vec<Entry>,
    pub(crate) gate: ActivityGate,
    pub(crate) executor: Box<dyn ExecutorLifecycle>,
    pub(crate) keyed_executor: Option<KeyedExecutor>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) settings: Settings,
    pub(crate) notices: Vec<String>,
    /// Fires when a force takes over: the orderly procedures are then detached.
    pub(crate) forced: Signal,
    /// Fires when the start procedure is inside no component and will enter none.
    pub(crate) start_left: Signal,
    pub(crate) termination: Termination,
    #[cfg(feature = "tokio")]
    pub(crate) tokio: Option<tokio::runtime::Handle>,
    state: Mutex<State>,
}

/// The times of a stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) shutdown_timeout: Duration,
    pub(crate) quiet_period: Duration,
}

struct State {
    phase: Phase,
    failures: Failures,
    stop_began_at: Option<Instant>,
    steps: Vec<StepTime>,
    deadline: Option<Scheduled>,
}

impl Lifecycle {
    pub(crate) fn new(
        entries: Vec<Entry>,
        executor: Box<dyn ExecutorLifecycle>,
        keyed_executor: Option<KeyedExecutor>,
        timer: Arc<dyn Timer>,
        settings: Settings,
    ) -> Self {
        Self {
            entries,
            gate: ActivityGate::new(),
            executor,
            keyed_executor,
            timer,
            settings,
            notices: Vec::new(),
            forced: Signal::default(),
            start_left: Signal::default(),
            termination: Termination::new(),
            #[cfg(feature = "tokio")]
            tokio: None,
            state: Mutex::new(State {
                phase: Phase::New,
                failures: Failures::default(),
                stop_began_at: None,
                steps: Vec::new(),
                deadline: None,
            }),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        lock(&self.state).phase
    }

    /// One transition; for the procedures, which know what to do with the duty.
    pub(crate) fn transition(&self, event: Event) -> (Phase, Duty) {
        let now = self.timer.now();
        let mut state = lock(&self.state);
        let before = state.phase;
        let (after, duty) = next(before, event);
        state.phase = after;
        if matches!(duty, Duty::RollBack | Duty::Drain | Duty::Force | Duty::PublishUnused) {
            state.stop_began_at.get_or_insert(now);
        }
        (before, duty)
    }

    /// Records a failure without any consequence; a late one goes to the log.
    pub(crate) fn record(&self, failure: Failure) {
        let text = failure.to_string();
        match lock(&self.state).failures.record(failure) {
            Recorded::Primary | Recorded::Secondary => tracing::error!(failure = text, "a runtime failed"),
            Recorded::Late => tracing::warn!(failure = text, "a failure came after the termination"),
        }
    }

    /// Notes that a step of the stop that began at `since` has ended.
    pub(crate) fn step_ended(&self, step: Step, since: Instant) {
        let took = self.timer.now().saturating_duration_since(since);
        lock(&self.state).steps.push(StepTime { step, took });
    }

    /// Asks for a graceful stop.
    pub(crate) fn stop(self: &Arc<Self>) {
        let (_, duty) = self.transition(Event::Stop);
        self.begin_stop(duty, Admission::UntilQuiet);
    }

    /// Records a failure of a component and does what it means in this phase.
    pub(crate) fn report_failure(self: &Arc<Self>, failure: Failure) {
        self.record(failure);
        let (_, duty) = self.transition(Event::Fail);
        self.gate.close();
        self.begin_stop(duty, Admission::Closed);
    }

    /// Records what made the start fail, and rolls back unless somebody does already.
    pub(crate) fn fail_start(self: &Arc<Self>, failure: Failure) {
        self.record(failure);
        let (_, duty) = self.transition(Event::FailStart);
        self.gate.close();
        self.begin_stop(duty, Admission::Closed);
    }

    /// Ends the runtime by force; on return admission is closed, whoever carries the force out.
    pub(crate) fn force(self: &Arc<Self>, cause: Option<Failure>) {
        if let Some(failure) = cause {
            self.record(failure);
        }
        let (_, duty) = self.transition(Event::Force);
        self.gate.close();
        if duty == Duty::Force {
            self.carry_out_force();
        }
    }

    fn begin_stop(self: &Arc<Self>, duty: Duty, admission: Admission) {
        match duty {
            Duty::PublishUnused => {
                self.gate.close();
                self.executor.close();
                self.publish(Ending::NeverStarted);
            }
            Duty::RollBack => {
                self.gate.close();
                self.own_stop(Admission::Closed);
            }
            Duty::Drain => {
                self.start_left.fire();
                self.own_stop(admission);
            }
            Duty::Force => self.carry_out_force(),
            Duty::Join => {}
            Duty::Enter | Duty::Refuse | Duty::Serve | Duty::Withdraw | Duty::Publish => {
                unreachable!("the table of phase.rs gives {duty:?} to no stop")
            }
        }
    }

    /// Arms the deadline and starts the shutdown's thread; if either cannot be had, forces at once.
    fn own_stop(self: &Arc<Self>, admission: Admission) {
        let timeout = self.settings.shutdown_timeout;
        let began_at = lock(&self.state).stop_began_at.unwrap_or_else(|| self.timer.now());
        let Some(deadline) = began_at.checked_add(timeout) else {
            return self
                .force(Some(unavailable("the deadline is after the last instant of the clock".into())));
        };
        let lifecycle = Arc::downgrade(self);
        let at_deadline = Box::new(move || {
            if let Some(lifecycle) = lifecycle.upgrade() {
                let cause = FailureCause::DeadlineExceeded { timeout };
                lifecycle.force(Some(Failure::of_runtime(Step::Stop, cause)));
            }
        });
        match self.timer.schedule(deadline, at_deadline) {
            Ok(scheduled) => self.keep_deadline(scheduled),
            Err(error) => return self.force(Some(unavailable(error))),
        }
        if let Err(error) = shutdown::spawn(Arc::clone(self), deadline, admission) {
            self.force(Some(unavailable(Box::new(error))));
        }
    }

    /// Keeps the deadline's handle until the termination; a deadline that rang meanwhile is dropped here.
    fn keep_deadline(&self, scheduled: Scheduled) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Stopped {
            drop(state);
            drop(scheduled);
        } else {
            state.deadline = Some(scheduled);
        }
    }

    /// Seals the failures and publishes the report. The caller holds the duty to.
    pub(crate) fn publish(&self, ending: Ending) {
        let components = self.entries.iter().map(Entry::report).collect();
        let now = self.timer.now();
        let (report, deadline) = {
            let mut state = lock(&self.state);
            debug_assert_eq!(state.phase, Phase::Stopped);
            let (failure, secondary, secondary_omitted) = state.failures.seal();
            let took = state.stop_began_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
            let report = ShutdownReport {
                ending,
                failure,
                secondary,
                secondary_omitted,
                steps: std::mem::take(&mut state.steps),
                components,
                open_activities: self.gate.active(),
                took,
            };
            (report, state.deadline.take())
        };
        drop(deadline);
        tracing::info!(?ending, took = ?report.took, "a runtime terminated");
        self.termination.publish(Arc::new(report));
    }
}

fn unavailable(error: crate::timer::TimerError) -> Failure {
    Failure::of_runtime(Step::Stop, FailureCause::Unavailable(Arc::from(error)))
}
