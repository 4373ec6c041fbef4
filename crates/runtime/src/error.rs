//! The errors of building, starting and waiting for a runtime; one enum or struct per operation.
//!
//! Plain data. Invariant: an error of a start holds the report of the roll-back, so nothing that went wrong is lost.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::failure::Failure;
use crate::phase::Phase;
use crate::report::ShutdownReport;
use crate::sync::Arc;

/// Why a runtime could not be built: every wrong value at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    pub(crate) problems: Vec<BuildProblem>,
}

impl BuildError {
    /// Every problem, in the order of the builder's values.
    #[must_use]
    pub fn problems(&self) -> &[BuildProblem] {
        &self.problems
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl Error for BuildError {}

/// One wrong value of a builder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildProblem {
    /// The shutdown timeout is zero or does not fit in 64-bit nanoseconds.
    ShutdownTimeout(Duration),
    /// The quiet period is not below the shutdown timeout.
    QuietPeriod {
        /// The period asked for.
        quiet_period: Duration,
        /// The timeout it has to be below.
        shutdown_timeout: Duration,
    },
    /// One component was added twice.
    SameComponent {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for BuildProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShutdownTimeout(timeout) => {
                write!(f, "shutdown timeout is {timeout:?}, must be above zero and fit in 64-bit nanoseconds")
            }
            Self::QuietPeriod { quiet_period, shutdown_timeout } => {
                write!(
                    f,
                    "quiet period is {quiet_period:?}, must be below the timeout of {shutdown_timeout:?}"
                )
            }
            Self::SameComponent { name } => write!(f, "component {name} was added twice"),
        }
    }
}

/// Why a start did not end with a running runtime.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A runtime starts once; the other start, or the stop, is not affected.
    AlreadyStarted {
        /// The phase the runtime was in.
        phase: Phase,
    },
    /// A component failed; what was entered was rolled back.
    Failed {
        /// The first failure.
        failure: Box<Failure>,
        /// How the roll-back went.
        report: Arc<ShutdownReport>,
    },
    /// Somebody stopped or forced the runtime while it started; what was entered was rolled back.
    Stopped {
        /// How the roll-back went.
        report: Arc<ShutdownReport>,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted { phase } => write!(f, "a runtime starts once, and this one is {phase:?}"),
            Self::Failed { failure, .. } => write!(f, "{failure}"),
            Self::Stopped { .. } => f.write_str("the runtime was stopped while it started"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed { failure, .. } => failure.source(),
            Self::AlreadyStarted { .. } | Self::Stopped { .. } => None,
        }
    }
}

/// Why a caller's wait for the termination ended without it. The stop itself goes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WaitError {
    /// The caller's own time was up.
    Elapsed {
        /// The time it had.
        limit: Duration,
    },
    /// A blocking wait was asked for on a thread that the stop waits for: a worker of an executor, or one of a component.
    OnWorker,
    /// The timer for the wait could not be had.
    Unavailable(Arc<dyn Error + Send + Sync + 'static>),
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed { limit } => write!(f, "the runtime still stops after {limit:?}"),
            Self::OnWorker => f.write_str("a thread that runs handlers may not block on a stop"),
            Self::Unavailable(error) => write!(f, "the wait has no timer: {error}"),
        }
    }
}

impl Error for WaitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(error) => Some(error.as_ref()),
            Self::Elapsed { .. } | Self::OnWorker => None,
        }
    }
}
