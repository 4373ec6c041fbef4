//! `SchedulerSupplier`: what gives dispatchers their pools, and the view of it that cannot stop them.
//!
//! The contract in prose; [`DefaultSchedulerSupplier`](crate::DefaultSchedulerSupplier) is the one implementation here.

use std::fmt;

use crate::error::SupplierStopped;
use crate::named::NamedAggregate;
use crate::scheduler::Scheduler;
use crate::sync::Arc;
use crate::termination::{Ending, Termination};

/// Gives command and event dispatchers one execution pool per named aggregate, and owns those pools.
///
/// - One named aggregate has one scheduler, however many threads ask for it at once.
/// - From the moment a stop begins nothing is handed out, neither new nor cached.
/// - All observers of a stop share one termination; a force may take over a graceful stop that is under way.
pub trait SchedulerSupplier: Send + Sync {
    /// The scheduler of this named aggregate; made at the first call.
    ///
    /// # Errors
    /// A stop has begun.
    fn get_or_initialize(&self, named: NamedAggregate<'_>) -> Result<Arc<Scheduler>, SupplierStopped>;

    /// Closes creation and lets every pool end once its dispatches finished what they accepted. Their sources are
    /// dropped; a dispatch whose source had more to give resolves with [`Cause::Closed`](keyed_executor::Cause::Closed).
    ///
    /// Idempotent: a later call, also after a force, gives another observer of the same termination.
    fn stop_gracefully(&self) -> Termination;

    /// Closes creation, drops what waits and cancels what runs, at once; ends every observer's wait. Idempotent.
    ///
    /// A handler that holds its thread at this moment finishes its step and is then cancelled; nobody waits for it.
    fn force_stop(&self);
}

/// A supplier lent to somebody who must not stop it (LS-12).
///
/// A composite dispatcher gives its children borrowed views and stops the real supplier itself, so nothing is released
/// twice.
///
/// ```
/// use std::num::NonZeroU16;
/// use std::sync::Arc;
/// use wow_aggregate_scheduler::{
///     Borrowed, DefaultSchedulerSupplier, Ending, NamedAggregate, SchedulerSupplier,
/// };
///
/// let owner = Arc::new(DefaultSchedulerSupplier::new("events", NonZeroU16::MIN));
/// let child = Borrowed::of(owner.clone());
/// child.force_stop();
/// assert_eq!(child.stop_gracefully().wait()?, Ending::Borrowed);
/// let order = NamedAggregate { context: "shop", aggregate: "order" };
/// assert!(child.get_or_initialize(order).is_ok());
///
/// owner.force_stop();
/// assert!(child.get_or_initialize(order).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Borrowed {
    owner: Arc<dyn SchedulerSupplier>,
}

impl Borrowed {
    /// A view of `owner`, which stays the only one that can stop it.
    #[must_use]
    pub fn of(owner: Arc<dyn SchedulerSupplier>) -> Self {
        Self { owner }
    }
}

impl SchedulerSupplier for Borrowed {
    fn get_or_initialize(&self, named: NamedAggregate<'_>) -> Result<Arc<Scheduler>, SupplierStopped> {
        self.owner.get_or_initialize(named)
    }

    /// Stops nothing and has ended at once, with [`Ending::Borrowed`].
    fn stop_gracefully(&self) -> Termination {
        Termination::ended(Ending::Borrowed)
    }

    /// Does nothing.
    fn force_stop(&self) {}
}

impl fmt::Debug for Borrowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowed").finish_non_exhaustive()
    }
}
