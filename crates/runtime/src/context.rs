//! What the runtime hands to a component: `Context` when it prepares, `StopContext` when it drains.
//!
//! Owns nothing but handles. Invariant: a context holds its runtime weakly, so a component that keeps its context
//! forms no cycle, and a late failure of a forgotten runtime goes to the log. It gives no access to other components.

use std::fmt;
use std::time::{Duration, Instant};

use keyed_executor::KeyedExecutor;

use crate::activity::{Activity, ActivityGate};
use crate::component::ComponentError;
use crate::failure::{Failure, Step};
use crate::lifecycle::Lifecycle;
use crate::sync::{Arc, Weak};
use crate::timer::Timer;

/// What a component needs from its runtime, for as long as it lives. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    name: Arc<str>,
    activities: ActivityGate,
    executor: Option<KeyedExecutor>,
    lifecycle: Weak<Lifecycle>,
}

impl Context {
    pub(crate) fn new(
        name: Arc<str>,
        activities: ActivityGate,
        executor: Option<KeyedExecutor>,
        lifecycle: Weak<Lifecycle>,
    ) -> Self {
        Self { name, activities, executor, lifecycle }
    }

    /// The component's name, as the runtime knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The executor that runs the component's messages; the runtime closes it last.
    ///
    /// # Panics
    /// Never outside this crate's own tests, whose runtimes may stand on another life cycle than an executor's.
    #[must_use]
    pub fn executor(&self) -> &KeyedExecutor {
        self.executor.as_ref().expect("a built runtime has an executor")
    }

    /// The runtime's gate.
    #[must_use]
    pub fn activities(&self) -> &ActivityGate {
        &self.activities
    }

    /// Admits one operation, or `None` once admission has ended: the message is then left unacknowledged.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Activity> {
        self.activities.try_acquire()
    }

    /// Tells the runtime that the component has failed for good.
    ///
    /// Admission closes before this returns; what was admitted drains, every component stops, and the runtime
    /// terminates with the first failure reported. During a stop, a failure makes it a forced one. Never blocks on a
    /// drain; safe on any thread, from inside the component's own methods too.
    pub fn report_failure(&self, error: impl Into<ComponentError>) {
        let failure = Failure::error(Arc::clone(&self.name), Step::Running, error.into());
        match self.lifecycle.upgrade() {
            Some(lifecycle) => lifecycle.report_failure(failure),
            None => tracing::warn!(%failure, "a component failed after its runtime was dropped"),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.name)
            .field("activities", &self.activities)
            .finish_non_exhaustive()
    }
}

// === StopContext ===

/// The time a component has to drain.
#[derive(Clone)]
pub struct StopContext {
    timer: Arc<dyn Timer>,
    deadline: Instant,
    components_left: usize,
}

impl StopContext {
    pub(crate) fn new(timer: Arc<dyn Timer>, deadline: Instant, components_left: usize) -> Self {
        Self { timer, deadline, components_left: components_left.max(1) }
    }

    /// When the whole stop turns into a forced one. One deadline for all components.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What is left of the deadline; zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(self.timer.now())
    }

    /// This component's even share of what is left, among those that have yet to stop.
    ///
    /// A component that can choose between a complete and a quick way to drain should choose the quick one once its
    /// share is used up, so that the components below it still have theirs.
    #[must_use]
    pub fn fair_share(&self) -> Duration {
        let left = u32::try_from(self.components_left).unwrap_or(u32::MAX);
        self.remaining() / left
    }
}

impl fmt::Debug for StopContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopContext")
            .field("remaining", &self.remaining())
            .field("components_left", &self.components_left)
            .finish_non_exhaustive()
    }
}
