//! The shutdown report: how a runtime ended and what it left behind.
//!
//! Plain data, made once, at the publication of the termination. Invariant: a report never changes afterwards. It
//! does not count: components keep their own [`WorkLedger`] and the report repeats it.

use std::fmt;
use std::time::Duration;

use crate::failure::{Failure, Step};
use crate::sync::Arc;

/// How a runtime ended, what failed, how long each step took and what was left.
///
/// # Examples
/// ```
/// use keyed_executor::{Config, KeyedExecutor};
/// use wow_runtime::{Ending, Runtime};
///
/// let executor = KeyedExecutor::new(Config { workers: 1, ..Config::default() })?;
/// let runtime = Runtime::builder(executor).build()?;
/// let report = runtime.stop_blocking()?;
/// assert_eq!(report.ending, Ending::NeverStarted);
/// assert!(report.failure.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Which way the runtime ended.
    pub ending: Ending,
    /// The first failure; the runtime failed if there is one.
    pub failure: Option<Failure>,
    /// Failures after the first, oldest first.
    pub secondary: Vec<Failure>,
    /// How many more failures there were than `secondary` has room for.
    pub secondary_omitted: u64,
    /// The steps of the stop in the order they ended, with the time each took.
    pub steps: Vec<StepTime>,
    /// Every component in registration order.
    pub components: Vec<ComponentReport>,
    /// Activities that had not ended when the runtime terminated; zero after a graceful stop.
    pub open_activities: u64,
    /// The time from the request to stop to the termination.
    pub took: Duration,
}

impl ShutdownReport {
    /// Whether nothing failed and everything accepted was finished.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failure.is_none() && self.ending != Ending::Forced
    }

    /// `Ok` if nothing failed, else the first failure.
    ///
    /// # Errors
    /// The first failure the runtime recorded.
    pub fn result(&self) -> Result<(), Failure> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ending = match self.ending {
            Ending::NeverStarted => "never started",
            Ending::Drained => "drained",
            Ending::Forced => "forced",
        };
        write!(f, "{ending} after {:?}", self.took)?;
        if self.open_activities > 0 {
            write!(f, ", {} activities open", self.open_activities)?;
        }
        if let Some(failure) = &self.failure {
            write!(f, "\n  failure: {failure}")?;
        }
        for failure in &self.secondary {
            write!(f, "\n  also: {failure}")?;
        }
        if self.secondary_omitted > 0 {
            write!(f, "\n  and {} more failures", self.secondary_omitted)?;
        }
        for step in &self.steps {
            write!(f, "\n  step {}: {:?}", step.step, step.took)?;
        }
        for component in &self.components {
            write!(f, "\n  component {}: {}", component.name, component.ended)?;
            if let Some(work) = component.work {
                write!(f, ", {work}")?;
            }
        }
        Ok(())
    }
}

/// Which way a runtime ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It was stopped before it was started.
    NeverStarted,
    /// Everything admitted was finished.
    Drained,
    /// Work was let go of, by request, by a failed stop or by the deadline.
    Forced,
}

/// The time one step of a stop took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// The step.
    pub step: Step,
    /// Its time.
    pub took: Duration,
}

/// How one component ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComponentReport {
    /// Its name.
    pub name: Arc<str>,
    /// Which way it ended.
    pub ended: ComponentEnd,
    /// What became of its work, if it can tell.
    pub work: Option<WorkLedger>,
}

/// Which way a component ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentEnd {
    /// It was never entered, and nothing forced it.
    NotEntered,
    /// It drained.
    Graceful,
    /// It was asked to drain and failed to.
    Failed,
    /// It was forced.
    Forced,
}

impl fmt::Display for ComponentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotEntered => "not entered",
            Self::Graceful => "drained",
            Self::Failed => "failed to drain",
            Self::Forced => "forced",
        })
    }
}

/// What a component accepted and what became of it: `accepted` is the sum of the rest, at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLedger {
    /// Messages admitted.
    pub accepted: u64,
    /// Messages handled with success.
    pub handled: u64,
    /// Messages whose handling failed.
    pub failed: u64,
    /// Messages dropped without being handled to an end: discarded while they waited, or cancelled.
    pub discarded: u64,
    /// Messages not yet ended.
    pub in_flight: u64,
}

impl WorkLedger {
    /// Whether every accepted message is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.accepted == self.handled + self.failed + self.discarded + self.in_flight
    }
}

impl fmt::Display for WorkLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "accepted {} = handled {} + failed {} + discarded {} + in flight {}",
            self.accepted, self.handled, self.failed, self.discarded, self.in_flight
        )
    }
}
