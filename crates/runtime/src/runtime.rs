//! The runtime: the handle by which a service's parts are started and stopped together.
//!
//! Owns the life cycle and, through it, the executor. Invariant: the executor is closed on every path, a dropped
//! handle included. It holds no procedure: start, shutdown and force have files of their own.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use keyed_executor::KeyedExecutor;

use crate::activity::ActivityGate;
use crate::builder::Builder;
use crate::component::ComponentError;
use crate::drive::{Sleep, block_on};
use crate::error::{StartError, WaitError};
use crate::failure::{Failure, FailureCause, Step};
use crate::lifecycle::Lifecycle;
use crate::phase::Phase;
use crate::report::{ShutdownReport, WorkLedger};
use crate::start;
use crate::sync::Arc;
use crate::termination::Termination;

/// Starts and stops the components of one service, and owns the executor they run on.
///
/// Dropping it without a stop forces it, unless a stop is under way, which then goes on.
pub struct Runtime {
    lifecycle: Arc<Lifecycle>,
}

impl Runtime {
    /// A builder for a runtime that owns `executor` and closes it last.
    #[must_use]
    pub fn builder(executor: KeyedExecutor) -> Builder {
        Builder::new(executor)
    }

    pub(crate) fn new(lifecycle: Arc<Lifecycle>) -> Self {
        Self { lifecycle }
    }

    /// Prepares every component, then starts every component, in their order.
    ///
    /// Nothing happens before the future is polled first. The futures of the components are polled by the calling
    /// task, so they may use its async runtime.
    ///
    /// # Errors
    /// [`StartError::AlreadyStarted`] for every start but the first, which is not affected. The first failure of a
    /// component, after what was entered was rolled back. [`StartError::Stopped`] if somebody stopped the runtime.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready forces the runtime.
    pub async fn start(&self) -> Result<(), StartError> {
        start::run(&self.lifecycle).await
    }

    /// Asks for a graceful stop and returns an observer of its end.
    ///
    /// The stop has begun when this returns, and goes on whether or not the observer is polled. A runtime that was
    /// never started terminates at once.
    pub fn stop(&self) -> Termination {
        self.lifecycle.stop();
        self.termination()
    }

    /// Asks for a graceful stop and waits at most `limit` for its end; the stop's own deadline stays what it is.
    ///
    /// # Errors
    /// [`WaitError::Elapsed`] if the runtime still stops; [`WaitError::Unavailable`] without a timer.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait only.
    pub async fn stop_within(&self, limit: Duration) -> Result<Arc<ShutdownReport>, WaitError> {
        let mut termination = pin!(self.stop());
        let timer = self.lifecycle.timer.as_ref();
        let sleep = timer
            .now()
            .checked_add(limit)
            .ok_or_else(|| "the limit is after the last instant of the clock".into())
            .and_then(|at| Sleep::until(timer, at));
        let mut sleep = sleep.map_err(|error| WaitError::Unavailable(Arc::from(error)))?;
        poll_fn(|cx| {
            if let Poll::Ready(report) = termination.as_mut().poll(cx) {
                return Poll::Ready(Ok(report));
            }
            Pin::new(&mut sleep).poll(cx).map(|()| Err(WaitError::Elapsed { limit }))
        })
        .await
    }

    /// Asks for a graceful stop and blocks this thread until its end, at most the runtime's own deadline.
    ///
    /// # Errors
    /// [`WaitError::OnWorker`] on a thread of an executor or of a component, where the wait would hold up what it waits
    /// for; the stop is not begun then.
    pub fn stop_blocking(&self) -> Result<Arc<ShutdownReport>, WaitError> {
        let components = &self.lifecycle.entries;
        if KeyedExecutor::current().is_some()
            || components.iter().any(|entry| entry.component().owns_this_thread())
        {
            return Err(WaitError::OnWorker);
        }
        Ok(block_on(self.stop()))
    }

    /// Ends the runtime by force: queued messages are discarded unacknowledged, running handlers are not waited for.
    ///
    /// On return admission is closed, whoever carries the force out.
    pub fn force_stop(&self) -> Termination {
        self.lifecycle.force(None);
        self.termination()
    }

    /// Ends the runtime because of an error outside its components; see [`Context::report_failure`](crate::Context).
    pub fn report_failure(&self, origin: &str, error: impl Into<ComponentError>) {
        self.lifecycle.report_failure(Failure::error(Arc::from(origin), Step::Running, error.into()));
    }

    /// An observer of the end, without asking for it.
    pub fn termination(&self) -> Termination {
        self.lifecycle.termination.clone()
    }

    /// The phase at this moment.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.lifecycle.phase()
    }

    /// Whether the runtime came up and has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.phase().is_running()
    }

    /// The gate that admits every operation of this runtime.
    #[must_use]
    pub fn activities(&self) -> &ActivityGate {
        &self.lifecycle.gate
    }

    /// The executor it owns: to look at it ([`KeyedExecutor::metrics`], [`inspect`](KeyedExecutor::inspect),
    /// [`hot_keys`](KeyedExecutor::hot_keys)), or to run more on it. The runtime closes it, last; nobody else should.
    ///
    /// ```
    /// use keyed_executor::{Config, KeyedExecutor};
    /// use wow_runtime::Runtime;
    ///
    /// let executor = KeyedExecutor::new(Config { workers: 1, ..Config::default() })?;
    /// let runtime = Runtime::builder(executor).build()?;
    /// assert_eq!(runtime.executor().metrics().in_flight(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn executor(&self) -> &KeyedExecutor {
        self.lifecycle.keyed_executor.as_ref().expect("a built runtime has an executor")
    }

    /// What each component accepted so far and what became of it, in the order of their start; None of one that does not
    /// count. The [`ShutdownReport`] repeats the last of it.
    pub fn work(&self) -> impl Iterator<Item = (&str, Option<WorkLedger>)> {
        self.lifecycle.entries.iter().map(|entry| (entry.name().as_ref(), entry.component().work()))
    }

    /// The names of the components in the order of their start.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.lifecycle.entries.iter().map(|entry| entry.name().as_ref())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        match self.phase() {
            Phase::New => self.lifecycle.stop(),
            Phase::Starting | Phase::Running => {
                let cause = Failure::of_runtime(Step::Running, FailureCause::Abandoned);
                self.lifecycle.force(Some(cause));
            }
            Phase::Stopping | Phase::ForceStopping | Phase::Stopped => {}
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("phase", &self.phase())
            .field("components", &self.components().collect::<Vec<_>>())
            .field("activities", self.activities())
            .finish()
    }
}
