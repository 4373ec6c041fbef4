//! The graceful shutdown, as a numbered procedure on a thread of its own.
//!
//! 1. Wait until the start, if one is under way, has left its component. Otherwise a component would be quiesced
//!    while it still prepares, and acquire afterwards what nobody releases.
//! 2. Suspend durable intake of every component, in registration order. Otherwise a broker's steady traffic keeps the
//!    runtime from ever being quiet.
//! 3. Wait for a continuous idle time of the quiet period, and close admission in the same step that proves it. If
//!    admission closed first, a message handed from one component to the next would be refused half way. A failed
//!    component, or a roll-back, closes admission before and skips the wait.
//! 4. Quiesce every component, in registration order. Not before admission closed: a quiesced component can no longer
//!    take the messages that others still admit.
//! 5. Wait until every activity ended.
//! 6. Stop the components gracefully in reverse order, one at a time; each may still use those below it.
//! 7. Close the executor and wait for its threads. Last, because every component before may still need a worker.
//! 8. Publish the termination.
//!
//! Invariants: a failure of one component keeps no other from its step, and makes step 7 a forced stop; as soon as a
//! force takes over, the procedure is detached and enters no further component. The deadline is not watched here: it
//! rings on the timer's thread, so that a component that blocks this thread cannot outlast it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::component::{Component, ComponentError};
use crate::context::StopContext;
use crate::drive::{block_on, unless};
use crate::entry::{Entry, panic_text};
use crate::failure::{Failure, FailureCause, Step};
use crate::lifecycle::Lifecycle;
use crate::phase::{Duty, Event};
use crate::quiet;
use crate::report::{ComponentEnd, Ending};
use crate::sync::{Arc, thread};

/// Whether the procedure still waits for quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Admission stays open until the runtime is quiet.
    UntilQuiet,
    /// Admission is closed already.
    Closed,
}

/// A force took over.
struct Detached;

/// Whether every step of the stop went well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    Clean,
    Failed,
}

/// Starts the procedure.
pub(crate) fn spawn(lifecycle: Arc<Lifecycle>, deadline: Instant, admission: Admission) -> io::Result<()> {
    thread::Builder::new().name("wow-shutdown".to_owned()).spawn(move || {
        #[cfg(feature = "tokio")]
        let tokio = lifecycle.tokio.clone();
        #[cfg(feature = "tokio")]
        let _entered = tokio.as_ref().map(tokio::runtime::Handle::enter);
        let procedure = || block_on(run(&lifecycle, deadline, admission));
        match catch_unwind(AssertUnwindSafe(procedure)) {
            Ok(Ok(())) => {}
            Ok(Err(Detached)) => tracing::info!("a graceful shutdown was overtaken by a forced one"),
            Err(payload) => {
                let text = panic_text(payload.as_ref());
                let cause = FailureCause::Panic(text);
                lifecycle.force(Some(Failure::of_runtime(Step::Stop, cause)));
            }
        }
    })?;
    Ok(())
}

async fn run(lifecycle: &Arc<Lifecycle>, deadline: Instant, admission: Admission) -> Result<(), Detached> {
    let forced = &lifecycle.forced;
    let mut steps = Steps::Clean;

    let since = lifecycle.timer.now();
    unless(forced, lifecycle.start_left.fired()).await.ok_or(Detached)?;
    lifecycle.step_ended(Step::AwaitStart, since);

    let entered: Vec<&Entry> = lifecycle.entries.iter().filter(|entry| entry.was_entered()).collect();
    call_each(lifecycle, &entered, Step::SuspendIntake, &mut steps, |component| {
        component.suspend_durable_intake()
    })?;

    if admission == Admission::UntilQuiet && steps == Steps::Clean {
        let since = lifecycle.timer.now();
        let period = lifecycle.settings.quiet_period;
        let quiet = quiet::close_when_quiet(&lifecycle.gate, lifecycle.timer.as_ref(), period);
        if let Err(error) = unless(forced, quiet).await.ok_or(Detached)? {
            lifecycle.record(Failure::of_runtime(Step::Quiet, FailureCause::Unavailable(Arc::from(error))));
            steps = Steps::Failed;
        }
        lifecycle.step_ended(Step::Quiet, since);
    }
    lifecycle.gate.close();

    call_each(lifecycle, &entered, Step::Quiesce, &mut steps, |component| component.quiesce())?;

    let since = lifecycle.timer.now();
    unless(forced, lifecycle.gate.idle()).await.ok_or(Detached)?;
    lifecycle.step_ended(Step::Drain, since);

    let since = lifecycle.timer.now();
    for (below, entry) in entered.iter().enumerate().rev() {
        let visit = entry.enter(forced).ok_or(Detached)?;
        let context = StopContext::new(Arc::clone(&lifecycle.timer), deadline, below + 1);
        let stop = entry.drive(Step::StopGracefully, entry.component().stop_gracefully(context));
        let stopped = unless(forced, stop).await;
        // The end is noted before the visit is over, so that a force that follows reports it.
        if let Some(result) = &stopped {
            entry.drained(if result.is_ok() { ComponentEnd::Graceful } else { ComponentEnd::Failed });
        }
        drop(visit);
        if let Err(failure) = stopped.ok_or(Detached)? {
            lifecycle.record(failure);
            steps = Steps::Failed;
        }
    }
    lifecycle.step_ended(Step::StopGracefully, since);

    if steps == Steps::Failed {
        lifecycle.force(None);
        return Ok(());
    }
    let since = lifecycle.timer.now();
    lifecycle.executor.close();
    unless(forced, lifecycle.executor.terminated()).await.ok_or(Detached)?;
    lifecycle.step_ended(Step::CloseExecutor, since);

    match lifecycle.transition(Event::Drained).1 {
        Duty::Publish => {
            lifecycle.publish(Ending::Drained);
            Ok(())
        }
        _ => Err(Detached),
    }
}

/// Calls a prompt method of each component in registration order; failures are recorded and do not end the round.
fn call_each(
    lifecycle: &Lifecycle,
    entered: &[&Entry],
    step: Step,
    steps: &mut Steps,
    method: impl Fn(&dyn Component) -> Result<(), ComponentError>,
) -> Result<(), Detached> {
    let since = lifecycle.timer.now();
    for entry in entered {
        let visit = entry.enter(&lifecycle.forced).ok_or(Detached)?;
        let called = entry.call(step, &method);
        drop(visit);
        if let Err(failure) = called {
            lifecycle.record(failure);
            *steps = Steps::Failed;
        }
    }
    lifecycle.step_ended(step, since);
    Ok(())
}
