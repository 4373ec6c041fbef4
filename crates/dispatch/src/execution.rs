//! `Execution`: on what the messages of a dispatcher run, and the handle of what runs.
//!
//! Two strategies under one engine: everything above (admission, acknowledgement, ledger, life cycle) sees a stream go in and
//! an end come out. Invariants: the messages of one key run one after the other with either; the pools of a supplier are
//! stopped by the dispatcher that was given it, after its own messages ended. Nothing here is asked a second time for a
//! message: the strategy is chosen once for a receiver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use keyed_executor::{Canceller, Dispatch, DispatchError, Ledger, OnFailure, Options, Outcome};
use wow_aggregate_scheduler::{
    DefaultSchedulerSupplier, Grouped, GroupedCanceller, GroupedDispatch, Groups, Route, SchedulerSupplier,
    SupplierStopped,
};
use wow_message::NamedAggregate;
use wow_runtime::Context;

use crate::admission::Admitted;
use crate::config::{DispatchConfig, Strategy};
use crate::error::DispatchFailure;
use crate::intake::Intake;
use crate::kind::DispatchKind;
use crate::weight::{Budget, Scale};

/// On what the messages of a dispatcher run.
///
/// Order per aggregate, window, admission, acknowledgement, ledger and both stops are the same with either.
#[derive(Clone, Default)]
pub enum Execution {
    /// The executor of the runtime: the workers are shared by all dispatchers, and closed by the runtime.
    #[default]
    Keyed,
    /// Hash groups on the pools of a supplier, one pool for each aggregate type (the scheduler of 9.2).
    ///
    /// What it cannot do, and the executor can:
    /// - Aggregates whose ids hash to one group wait for each other. A handler that waits for the outcome of a message to
    ///   another aggregate of its type may wait for ever, because that one may be in its group.
    /// - A handler that blocks its thread holds up every group of that thread; no other thread takes over.
    /// - Threads are not shared: there are (workers + 1) for each aggregate type of each dispatcher, from its start on.
    /// - Every message goes to another thread, idle or not; there are no metrics, no byte budget, no spin and no throughput to set.
    Grouped {
        /// Gives the pools. The dispatcher stops it with itself; what others stop is handed in as
        /// [`Borrowed`](wow_aggregate_scheduler::Borrowed).
        supplier: Arc<dyn SchedulerSupplier>,
        /// The serial groups of one receiver and aggregate type.
        groups: Groups,
    },
}

impl Execution {
    /// What `config` says for the dispatcher `name`: with groups, a supplier of its own.
    pub(crate) fn of(
        config: &DispatchConfig,
        name: &str,
        #[cfg(feature = "tokio")] tokio: Option<&tokio::runtime::Handle>,
    ) -> Self {
        match config.strategy {
            Strategy::Keyed => Self::Keyed,
            Strategy::Grouped => {
                let supplier = DefaultSchedulerSupplier::new(name, config.threads());
                #[cfg(feature = "tokio")]
                let supplier = match tokio {
                    Some(handle) => supplier.tokio(handle.clone()),
                    None => supplier,
                };
                Self::Grouped { supplier: Arc::new(supplier), groups: config.groups }
            }
        }
    }

    /// Which of the strategies it is.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        match self {
            Self::Keyed => Strategy::Keyed,
            Self::Grouped { .. } => Strategy::Grouped,
        }
    }

    /// What a receiver of these aggregate types runs on. No thread is started by it.
    pub(crate) fn prepare(&self, types: &[NamedAggregate]) -> Result<Prepared, SupplierStopped> {
        match self {
            Self::Keyed => Ok(Prepared::Keyed),
            Self::Grouped { supplier, groups } => {
                let scheduler = |named: &NamedAggregate| {
                    supplier.get_or_initialize(wow_aggregate_scheduler::NamedAggregate {
                        context: named.context().as_str(),
                        aggregate: named.name().as_str(),
                    })
                };
                let schedulers = types.iter().map(scheduler).collect::<Result<Vec<_>, _>>()?;
                Ok(Prepared::Grouped { over: Grouped::over(schedulers, *groups), types: types.to_vec() })
            }
        }
    }

    /// Resolves once nothing of the dispatcher's own can run any more.
    pub(crate) async fn stopped(&self) {
        match self {
            // The runtime closes its executor.
            Self::Keyed => {}
            Self::Grouped { supplier, .. } => {
                supplier.stop_gracefully().await;
            }
        }
    }

    pub(crate) fn force(&self) {
        match self {
            Self::Keyed => {}
            Self::Grouped { supplier, .. } => supplier.force_stop(),
        }
    }

    /// Whether the calling thread is one that the end of this may wait for, the executor's aside.
    pub(crate) fn owns_this_thread(&self) -> bool {
        match self {
            Self::Keyed => false,
            Self::Grouped { .. } => wow_aggregate_scheduler::on_pool_thread(),
        }
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyed => f.write_str("Keyed"),
            Self::Grouped { groups, .. } => {
                f.debug_struct("Grouped").field("groups", groups).finish_non_exhaustive()
            }
        }
    }
}

// === One receiver ===

/// What the messages of one receiver run on.
#[derive(Debug)]
pub(crate) enum Prepared {
    Keyed,
    Grouped {
        over: Grouped,
        /// The aggregate type of each scheduler.
        types: Vec<NamedAggregate>,
    },
}

impl Prepared {
    /// Runs every message of `intake` through `handler`; the first failure ends it.
    pub(crate) fn dispatch<K, H, F>(
        &self,
        context: &Context,
        label: &str,
        budget: Option<Budget<K::Message>>,
        intake: Intake<K>,
        handler: H,
    ) -> Running
    where
        K: DispatchKind,
        H: Fn(Admitted<K>) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = DispatchFailure>,
    {
        let executor = context.executor();
        let options = Options::new(label).on_failure(OnFailure::Fail);
        match self {
            Self::Keyed => {
                let max_bytes = budget.as_ref().map_or(usize::MAX, Budget::max_bytes);
                let options = options.weighed(max_bytes, Scale(budget));
                Running::Keyed(executor.try_dispatch_with(options, intake, Admitted::owned_key, handler))
            }
            Self::Grouped { over, types } => {
                let types = types.clone();
                let options = options.max_in_flight(executor.config().max_in_flight);
                let routed = over.dispatch_routed(options, intake, move |m| route(&types, m), handler);
                Running::Grouped(routed)
            }
        }
    }
}

/// The pool of the key's aggregate type, and the group of its id in it.
fn route<'a, K: DispatchKind>(types: &[NamedAggregate], admitted: &'a Admitted<K>) -> Route<'a> {
    let (named, id) = (admitted.key().named(), admitted.key().id());
    // A kind may order by keys of other types than it receives: they all go to the first pool.
    let scheduler = types.iter().position(|known| *known == named).unwrap_or(0);
    Route { scheduler, id: id.as_str() }
}

/// A running dispatch: resolves once all of it ended. Dropping it cancels it.
pub(crate) enum Running {
    Keyed(Dispatch<DispatchFailure>),
    Grouped(GroupedDispatch<DispatchFailure>),
}

impl Running {
    pub(crate) fn switch(&self) -> Switch {
        match self {
            Self::Keyed(dispatch) => Switch::Keyed(dispatch.canceller()),
            Self::Grouped(dispatch) => Switch::Grouped(dispatch.canceller()),
        }
    }
}

impl Future for Running {
    type Output = Result<Ledger, DispatchError<DispatchFailure>>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Keyed(dispatch) => Pin::new(dispatch).poll(cx),
            Self::Grouped(dispatch) => Pin::new(dispatch).poll(cx),
        }
    }
}

/// Cancels a running dispatch from elsewhere.
pub(crate) enum Switch {
    Keyed(Canceller),
    Grouped(GroupedCanceller),
}

impl Switch {
    pub(crate) fn cancel(&self) {
        match self {
            Self::Keyed(canceller) => canceller.cancel(),
            Self::Grouped(canceller) => canceller.cancel(),
        }
    }
}
