//! The failures of one runtime: the first is its cause, the others stand beside it.
//!
//! Owns the list, under the lock of `lifecycle.rs`. Invariants: the first failure stays the primary one; once sealed,
//! by the publication of the termination, nothing changes any more. It decides nothing: what a failure does to the
//! runtime is in the table of `phase.rs`.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::component::ComponentError;
use crate::sync::Arc;

/// How many secondary failures are kept; further ones are counted.
const MAX_SECONDARY: usize = 64;

/// What the runtime was doing when something failed, and the steps whose times a report lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Preparing a component.
    Prepare,
    /// Starting a component.
    Start,
    /// Serving: a component reported a failure of its own.
    Running,
    /// Waiting for the start under way to leave its component.
    AwaitStart,
    /// Suspending durable intake.
    SuspendIntake,
    /// Waiting for a continuous idle time.
    Quiet,
    /// Quiescing the components.
    Quiesce,
    /// Waiting until every activity ended.
    Drain,
    /// Stopping the components gracefully, in reverse.
    StopGracefully,
    /// Closing the executor and waiting for its threads.
    CloseExecutor,
    /// Forcing executor and components.
    Force,
    /// The whole stop, against its deadline.
    Stop,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Running => "running",
            Self::AwaitStart => "await start",
            Self::SuspendIntake => "suspend intake",
            Self::Quiet => "quiet period",
            Self::Quiesce => "quiesce",
            Self::Drain => "drain",
            Self::StopGracefully => "stop gracefully",
            Self::CloseExecutor => "close executor",
            Self::Force => "force",
            Self::Stop => "stop",
        })
    }
}

/// One failure: whose, when, and why.
#[derive(Clone, Debug)]
pub struct Failure {
    component: Option<Arc<str>>,
    step: Step,
    cause: FailureCause,
}

/// Why something failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FailureCause {
    /// A component's method failed, or the component reported this error.
    Error(Arc<dyn Error + Send + Sync + 'static>),
    /// A component's method panicked, with this text.
    Panic(String),
    /// The deadline of the stop passed.
    DeadlineExceeded {
        /// The time the stop had.
        timeout: Duration,
    },
    /// The future of a start was dropped before it ended.
    StartCancelled,
    /// The runtime was dropped while it ran.
    Abandoned,
    /// A timer or a thread of the stop could not be started.
    Unavailable(Arc<dyn Error + Send + Sync + 'static>),
}

impl Failure {
    pub(crate) fn error(component: Arc<str>, step: Step, error: ComponentError) -> Self {
        Self { component: Some(component), step, cause: FailureCause::Error(Arc::from(error)) }
    }

    pub(crate) fn panic(component: Arc<str>, step: Step, text: String) -> Self {
        Self { component: Some(component), step, cause: FailureCause::Panic(text) }
    }

    pub(crate) fn of_runtime(step: Step, cause: FailureCause) -> Self {
        Self { component: None, step, cause }
    }

    /// The component's name, unless the failure is the runtime's own.
    #[must_use]
    pub fn component(&self) -> Option<&str> {
        self.component.as_deref()
    }

    /// What was being done.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// Why it failed.
    #[must_use]
    pub fn cause(&self) -> &FailureCause {
        &self.cause
    }

    /// Whether the stop ran out of time.
    #[must_use]
    pub fn is_deadline(&self) -> bool {
        matches!(self.cause, FailureCause::DeadlineExceeded { .. })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.component {
            Some(name) => write!(f, "component {name} failed in step {}: ", self.step)?,
            None => write!(f, "runtime failed in step {}: ", self.step)?,
        }
        match &self.cause {
            FailureCause::Error(error) | FailureCause::Unavailable(error) => write!(f, "{error}"),
            FailureCause::Panic(text) => write!(f, "panicked: {text}"),
            FailureCause::DeadlineExceeded { timeout } => write!(f, "not finished within {timeout:?}"),
            FailureCause::StartCancelled => f.write_str("its start was cancelled"),
            FailureCause::Abandoned => f.write_str("it was dropped without a stop"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            FailureCause::Error(error) | FailureCause::Unavailable(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

// === Failures ===

/// What became of a recorded failure.
#[must_use = "a late failure has to go to the log"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Primary,
    Secondary,
    /// The termination is published; nothing was changed.
    Late,
}

/// The failures of one runtime.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    primary: Option<Failure>,
    secondary: Vec<Failure>,
    n_omitted: u64,
    sealed: bool,
}

impl Failures {
    pub(crate) fn record(&mut self, failure: Failure) -> Recorded {
        if self.sealed {
            return Recorded::Late;
        }
        if self.primary.is_none() {
            self.primary = Some(failure);
            return Recorded::Primary;
        }
        if self.secondary.len() < MAX_SECONDARY {
            self.secondary.push(failure);
        } else {
            self.n_omitted += 1;
        }
        Recorded::Secondary
    }

    /// Ends the list and hands it over.
    pub(crate) fn seal(&mut self) -> (Option<Failure>, Vec<Failure>, u64) {
        self.sealed = true;
        (self.primary.clone(), std::mem::take(&mut self.secondary), self.n_omitted)
    }
}
