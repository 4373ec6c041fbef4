//! `Service`: aggregates, projections, store and buses put together into one runtime.
//!
//! Owns the wiring only: everything it does can be done by hand with [`Dispatcher`] and the runtime. Invariant: a service that
//! was built has a handler for every registered command, and no two parts share a name.

mod builder;
mod problem;
mod buses;
mod observer;
mod running;
mod send;
mod transit;

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use wow_message::{Command, Name, NamedAggregate};
use wow_runtime::{ActivityGate, Runtime, StartError};
use wow_transport::MessageBus;

use crate::command::Waits;

pub use builder::ServiceBuilder;
pub use buses::Buses;
pub use observer::{DispatcherMetrics, Observer, ServiceMetrics};
pub use problem::{ServiceBuildError, ServiceProblem};
pub use running::{Running, Sender};
pub use send::{Processed, Sending, Sent, Stage};
pub use transit::{Reply, SendAndWait, SendForReply, SendUnheard};

/// A service that was built and not started.
///
/// ```
/// # use std::sync::{Arc, Mutex};
/// # use wow_dispatch::{AggregateCommand, CommandMode, Event, Events, Handle, Processed, Service};
/// # use wow_eventsourcing::{Aggregate, AggregateEvent, MemoryEventStore};
/// # use wow_message::Name;
/// # #[derive(Default)]
/// # struct Account { balance: i64 }
/// # struct PaidIn(i64);
/// # struct Open(&'static str);
/// # struct PayIn(&'static str, i64);
/// # impl AggregateEvent for PaidIn { fn name(&self) -> &'static str { "paid_in" } }
/// # impl Aggregate for Account {
/// #     const NAME: &'static str = "account";
/// #     type Event = PaidIn;
/// #     type Error = std::fmt::Error;
/// #     fn apply(&mut self, event: &PaidIn) { self.balance += event.0 }
/// # }
/// # impl AggregateCommand for Open {
/// #     type Aggregate = Account;
/// #     const NAME: &'static str = "open";
/// #     const MODE: CommandMode = CommandMode::Create;
/// #     fn aggregate_id(&self) -> Name { Name::from(self.0) }
/// # }
/// # impl Handle<Open> for Account {
/// #     type Reply = ();
/// #     fn handle(&self, _: &Open, events: &mut Events<PaidIn>) -> Result<(), Self::Error> {
/// #         events.push(PaidIn(0));
/// #         Ok(())
/// #     }
/// # }
/// # impl AggregateCommand for PayIn {
/// #     type Aggregate = Account;
/// #     const NAME: &'static str = "pay_in";
/// #     fn aggregate_id(&self) -> Name { Name::from(self.0) }
/// # }
/// # impl Handle<PayIn> for Account {
/// #     type Reply = i64;
/// #     fn handle(&self, command: &PayIn, events: &mut Events<PaidIn>) -> Result<i64, Self::Error> {
/// #         events.push(PaidIn(command.1));
/// #         Ok(self.balance + command.1)
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Account has the commands Open and PayIn, each with a `Handle` implementation, and the event PaidIn.
/// let total = Arc::new(Mutex::new(0));
/// let view = Arc::clone(&total);
/// let service = Service::builder("bank")
///     .aggregate::<Account>(|a| a.command::<Open>().command::<PayIn>())
///     .projection("total", |p| p.each(move |e: &Event<Account>| *view.lock().unwrap() += e.0))
///     .store(MemoryEventStore::new())
///     .quiet_period(std::time::Duration::from_millis(10))
///     .build()?;
/// let running = service.start().await?;
///
/// running.send(Open("ann")).wait_for(Processed).await?;
/// let balance = running.send(PayIn("ann", 5)).wait_for(Processed).await?;   // typed reply
/// assert_eq!(balance, 5);
///
/// let report = running.stop().await;
/// assert!(report.is_clean(), "{report}");
/// assert_eq!(*total.lock().unwrap(), 5);
/// # Ok(())
/// # }
/// ```
pub struct Service {
    shared: Arc<Shared>,
}

/// What senders and the service itself share.
struct Shared {
    context: Name,
    runtime: Runtime,
    activities: ActivityGate,
    commands: Arc<dyn MessageBus<Command>>,
    waits: Arc<Waits>,
    /// The aggregate type of each handled root type.
    aggregates: HashMap<TypeId, NamedAggregate, RandomState>,
}

impl Service {
    /// Starts a service for this bounded context.
    pub fn builder(context: impl Into<Name>) -> ServiceBuilder {
        ServiceBuilder::new(context.into())
    }

    /// Starts the service: subscribes everything, then opens processing.
    ///
    /// # Errors
    /// [`StartError`] if a part fails; what was started is rolled back.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready ends the service by force.
    pub async fn start(self) -> Result<Running, StartError> {
        self.shared.runtime.start().await?;
        Ok(Running::new(self.shared))
    }

    /// The runtime, to look at before the start.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("context", &self.shared.context)
            .field("runtime", &self.shared.runtime)
            .finish_non_exhaustive()
    }
}
