//! The builder of a runtime, and the home of its defaults.
//!
//! Owns the values until `build` checks them all. Invariant: nothing is started, subscribed or spawned by building.

use std::fmt;
use std::time::Duration;

use keyed_executor::KeyedExecutor;

use crate::component::Component;
use crate::entry::Entry;
use crate::error::{BuildError, BuildProblem};
use crate::lifecycle::{Lifecycle, Settings};
use crate::runtime::Runtime;
use crate::stage::Stage;
use crate::sync::Arc;
use crate::timer::{SystemTimer, Timer};

/// The values a runtime has unless they are set.
pub mod defaults {
    use std::time::Duration;

    /// The time a stop has before it becomes a forced one.
    pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);
    /// The continuous idle time after which a stop closes admission.
    pub const QUIET_PERIOD: Duration = Duration::from_secs(1);
}

/// Collects components and times of a [`Runtime`].
pub struct Builder {
    executor: KeyedExecutor,
    components: Vec<(Stage, Arc<dyn Component>)>,
    shutdown_timeout: Duration,
    quiet_period: Duration,
    timer: Arc<dyn Timer>,
    notices: Vec<String>,
    #[cfg(feature = "tokio")]
    tokio: Option<tokio::runtime::Handle>,
}

impl Builder {
    pub(crate) fn new(executor: KeyedExecutor) -> Self {
        Self {
            executor,
            components: Vec::new(),
            shutdown_timeout: defaults::SHUTDOWN_TIMEOUT,
            quiet_period: defaults::QUIET_PERIOD,
            timer: Arc::new(SystemTimer::new()),
            notices: Vec::new(),
            #[cfg(feature = "tokio")]
            tokio: None,
        }
    }

    /// Adds a component to a stage, behind those already there.
    #[must_use]
    pub fn component(mut self, stage: Stage, component: Arc<dyn Component>) -> Self {
        self.components.push((stage, component));
        self
    }

    /// The time a stop has, over all its steps, before it becomes a forced one.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// The continuous idle time after which a stop closes admission; zero closes at the first idle moment.
    #[must_use]
    pub fn quiet_period(mut self, period: Duration) -> Self {
        self.quiet_period = period;
        self
    }

    /// Takes the time from `timer` instead of the machine's clock.
    #[must_use]
    pub fn timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.timer = timer;
        self
    }

    /// A line for the log, written once as a warning when the runtime starts; for settings that are no longer used.
    #[must_use]
    pub fn notice(mut self, notice: impl Into<String>) -> Self {
        self.notices.push(notice.into());
        self
    }

    /// Lets the thread that drives a stop enter `handle`, so that components may use tokio's timers and I/O there.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub fn tokio(mut self, handle: tokio::runtime::Handle) -> Self {
        self.tokio = Some(handle);
        self
    }

    /// Builds the runtime; nothing of it begins before it is started.
    ///
    /// # Errors
    /// Every wrong value at once. The executor is closed then, as on every other path.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let Self { executor, mut components, shutdown_timeout, quiet_period, timer, notices, .. } = self;
        let mut problems = Vec::new();
        if shutdown_timeout.is_zero() || u64::try_from(shutdown_timeout.as_nanos()).is_err() {
            problems.push(BuildProblem::ShutdownTimeout(shutdown_timeout));
        }
        if quiet_period >= shutdown_timeout {
            problems.push(BuildProblem::QuietPeriod { quiet_period, shutdown_timeout });
        }
        for (n, (_, component)) in components.iter().enumerate() {
            let same = |(_, other): &(Stage, Arc<dyn Component>)| {
                std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(component))
            };
            if components[..n].iter().any(same) {
                problems.push(BuildProblem::SameComponent { name: component.name().to_owned() });
            }
        }
        if !problems.is_empty() {
            executor.close();
            return Err(BuildError { problems });
        }
        // Stable: components of one stage keep the order in which they were added.
        components.sort_by_key(|(stage, _)| *stage);
        let entries = components.into_iter().map(|(_, component)| Entry::new(component)).collect();
        let settings = Settings { shutdown_timeout, quiet_period };
        let closing = Box::new(executor.clone());
        let mut lifecycle = Lifecycle::new(entries, closing, Some(executor), timer, settings);
        lifecycle.notices = notices;
        #[cfg(feature = "tokio")]
        {
            lifecycle.tokio = self.tokio;
        }
        Ok(Runtime::new(Arc::new(lifecycle)))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("components", &self.components.len())
            .field("shutdown_timeout", &self.shutdown_timeout)
            .field("quiet_period", &self.quiet_period)
            .finish_non_exhaustive()
    }
}
