//! `Running`, a started service, and `Sender`, a handle to send commands from anywhere.

use std::fmt;
use std::sync::Arc;

use keyed_executor::{HotKey, Inspection};
use wow_runtime::{Phase, ShutdownReport, Termination};

use crate::decide::AggregateCommand;
use crate::service::Shared;
use crate::service::observer::{Observer, ServiceMetrics};
use crate::service::send::Sending;

/// A started service. Dropping it, with all its senders, ends the service by force.
pub struct Running {
    sender: Sender,
}

/// Sends commands to a service; cheap to clone, usable from any thread and async runtime.
///
/// A sender keeps its service alive, but not from stopping.
#[derive(Clone)]
pub struct Sender {
    shared: Arc<Shared>,
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { sender: Sender { shared } }
    }

    /// Prepares to send a command; see [`Sending`] for what can be awaited.
    pub fn send<C: AggregateCommand>(&self, command: C) -> Sending<'_, C> {
        self.sender.send(command)
    }

    /// A handle to send from elsewhere.
    #[must_use]
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Stops the service: what was sent is handled, and then nothing more is taken.
    ///
    /// The stop has begun when this returns, and goes on if the answer is dropped. It becomes a forced one at the deadline.
    pub fn stop(&self) -> Termination {
        self.sender.shared.runtime.stop()
    }

    /// Ends the service by force: what waits is dropped, what runs is cancelled, and every waiting sender is told.
    pub fn force_stop(&self) -> Termination {
        self.sender.shared.runtime.force_stop()
    }

    /// An observer of the end, without asking for it.
    pub fn termination(&self) -> Termination {
        self.sender.shared.runtime.termination()
    }

    /// The report, if the service has ended.
    #[must_use]
    pub fn report(&self) -> Option<Arc<ShutdownReport>> {
        self.termination().report()
    }

    /// What is counted of it; see [`Observer::metrics`].
    #[must_use]
    pub fn metrics(&self) -> ServiceMetrics {
        self.observer().metrics()
    }

    /// The aggregates with unfinished messages; see [`Observer::inspect`].
    #[must_use]
    pub fn inspect(&self, limit: usize) -> Inspection {
        self.observer().inspect(limit)
    }

    /// The aggregates that most of the last messages were for; see [`Observer::hot_keys`].
    #[must_use]
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        self.observer().hot_keys(limit)
    }

    /// A handle to look at it from elsewhere, such as an exporter of figures.
    #[must_use]
    pub fn observer(&self) -> Observer {
        Observer::of(&self.sender.shared)
    }

    /// The phase at this moment.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.sender.shared.runtime.phase()
    }
}

impl Sender {
    /// Prepares to send a command; see [`Sending`] for what can be awaited.
    pub fn send<C: AggregateCommand>(&self, command: C) -> Sending<'_, C> {
        Sending::new(&self.shared, command)
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("runtime", &self.sender.shared.runtime).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("context", &self.shared.context).finish_non_exhaustive()
    }
}
