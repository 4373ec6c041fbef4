//! The start: prepares every component, then starts every component, in registration order.
//!
//! Runs in the task that called [`Runtime::start`](crate::Runtime::start). Invariants: no component starts before all
//! are prepared; after a failure or a stop the next component is not entered; a dropped start forces. The numbered
//! procedure:
//!
//! 1. `New` becomes `Starting`, or the start is refused and touches nothing.
//! 2. Prepare the components one by one; each future ends before the next begins. A force drops the future.
//! 3. Start the components one by one.
//! 4. `Starting` becomes `Running`.
//! 5. If a component failed, or somebody stopped or forced the runtime meanwhile: leave, so that the roll-back may
//!    enter; wait for the termination; return the cause with the report.
//!
//! It does not roll back itself: that is the shutdown's procedure, over the components that were entered.

use crate::context::Context;
use crate::drive::unless;
use crate::error::StartError;
use crate::failure::{Failure, FailureCause, Step};
use crate::lifecycle::Lifecycle;
use crate::phase::{Duty, Event, Phase};
use crate::sync::Arc;

/// Forces the runtime if the start's future is dropped before it ended.
struct StartGuard<'a> {
    lifecycle: &'a Arc<Lifecycle>,
    ended: bool,
}

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        self.lifecycle.start_left.fire();
        if !self.ended && self.lifecycle.phase() != Phase::Stopped {
            let cause = Failure::of_runtime(Step::Start, FailureCause::StartCancelled);
            self.lifecycle.force(Some(cause));
        }
    }
}

/// The procedure.
pub(crate) async fn run(lifecycle: &Arc<Lifecycle>) -> Result<(), StartError> {
    let (phase, duty) = lifecycle.transition(Event::Start);
    if duty != Duty::Enter {
        return Err(StartError::AlreadyStarted { phase });
    }
    let mut guard = StartGuard { lifecycle, ended: false };
    for notice in &lifecycle.notices {
        tracing::warn!("{notice}");
    }
    let result = enter_all(lifecycle).await;
    if let Err(Some(failure)) = &result {
        lifecycle.fail_start(failure.clone());
    }
    let serves = result.is_ok() && lifecycle.transition(Event::Started).1 == Duty::Serve;
    lifecycle.start_left.fire();
    if serves {
        guard.ended = true;
        tracing::info!(components = lifecycle.entries.len(), "a runtime started");
        return Ok(());
    }
    let report = lifecycle.termination.clone().await;
    guard.ended = true;
    Err(match report.failure.clone() {
        Some(failure) => StartError::Failed { failure: Box::new(failure), report },
        None => StartError::Stopped { report },
    })
}

/// Steps 2 and 3. `Err(None)`: somebody else ends the runtime.
async fn enter_all(lifecycle: &Arc<Lifecycle>) -> Result<(), Option<Failure>> {
    for entry in &lifecycle.entries {
        let visit = may_enter(lifecycle).then(|| entry.enter(&lifecycle.forced)).flatten().ok_or(None)?;
        let context = Context::new(
            Arc::clone(entry.name()),
            lifecycle.gate.clone(),
            lifecycle.keyed_executor.clone(),
            Arc::downgrade(lifecycle),
        );
        let prepare = entry.drive(Step::Prepare, entry.component().prepare(context));
        let prepared = unless(&lifecycle.forced, prepare).await;
        drop(visit);
        prepared.ok_or(None)?.map_err(Some)?;
    }
    for entry in &lifecycle.entries {
        let visit = may_enter(lifecycle).then(|| entry.enter(&lifecycle.forced)).flatten().ok_or(None)?;
        let started = entry.call(Step::Start, |component| component.start());
        drop(visit);
        started.map_err(Some)?;
    }
    Ok(())
}

fn may_enter(lifecycle: &Lifecycle) -> bool {
    lifecycle.phase() == Phase::Starting
}
