//! `ServiceBuilder`: collects the parts of a service and refuses what cannot work, all problems at once.

mod assemble;

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use wow_eventsourcing::{Aggregate, EventStore};
use wow_message::{Command, EventStream, Name};
use wow_runtime::defaults;
use wow_transport::Exchange;

use crate::command::{AggregateFunctions, AggregateFunctionsBuilder, CommandErrorHandler, InstanceCache};
use crate::config::{DispatchConfig, Strategy, limits};
use crate::notes::StuckHandler;
use crate::projection::{EventErrorHandler, Projection, UnrecordedFailure};
use crate::service::problem::{ServiceBuildError, ServiceProblem};
use crate::service::{Buses, Service};
use crate::weight::Weigher;

/// Collects the parts of a [`Service`].
#[must_use = "a builder does nothing until it is built"]
pub struct ServiceBuilder {
    context: Name,
    aggregates: Vec<Registered>,
    projections: Vec<Projection>,
    store: Option<Arc<dyn EventStore>>,
    buses: Buses,
    config: DispatchConfig,
    #[cfg(feature = "tokio")]
    tokio: Option<tokio::runtime::Handle>,
    shutdown_timeout: Duration,
    quiet_period: Duration,
    cache: InstanceCache,
    unrecorded: UnrecordedFailure,
    on_command_error: Option<CommandErrorHandler>,
    on_event_error: Option<EventErrorHandler>,
    on_stuck: Option<OnStuck>,
    weigh_commands: Option<Weigher<Command>>,
    weigh_events: Option<Weigher<EventStream>>,
}

/// What is told of a handler that holds its thread.
type OnStuck = Box<dyn Fn(&StuckHandler) + Send + Sync>;

struct Registered {
    root: TypeId,
    functions: AggregateFunctions,
    is_empty: bool,
    duplicates: Vec<&'static str>,
}

impl ServiceBuilder {
    pub(super) fn new(context: Name) -> Self {
        Self {
            context,
            aggregates: Vec::new(),
            projections: Vec::new(),
            store: None,
            buses: Buses::default(),
            config: DispatchConfig::default(),
            #[cfg(feature = "tokio")]
            tokio: None,
            shutdown_timeout: defaults::SHUTDOWN_TIMEOUT,
            quiet_period: defaults::QUIET_PERIOD,
            cache: InstanceCache::default(),
            unrecorded: UnrecordedFailure::default(),
            on_command_error: None,
            on_event_error: None,
            on_stuck: None,
            weigh_commands: None,
            weigh_events: None,
        }
    }

    /// Handles the commands of the aggregate `A` that `commands` names. That there is a handler for each of them is checked
    /// by the compiler.
    pub fn aggregate<A: Aggregate>(
        mut self,
        commands: impl FnOnce(AggregateFunctionsBuilder<A>) -> AggregateFunctionsBuilder<A>,
    ) -> Self {
        let functions = commands(AggregateFunctions::of::<A>(self.context.clone()));
        self.aggregates.push(Registered {
            root: TypeId::of::<A>(),
            is_empty: functions.is_empty(),
            duplicates: functions.duplicates().to_vec(),
            functions: functions.build(),
        });
        self
    }

    /// Hands events to the functions that `functions` names.
    pub fn projection(
        mut self,
        name: impl Into<Name>,
        functions: impl FnOnce(Projection) -> Projection,
    ) -> Self {
        self.projections.push(functions(Projection::new(self.context.clone(), name)));
        self
    }

    /// Keeps events here. Without aggregates no store is needed.
    pub fn store(self, store: impl EventStore) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// Keeps events in a store that others use too.
    pub fn shared_store(mut self, store: Arc<dyn EventStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sends and receives on these buses; by default on buses inside this process with room for
    /// [`DEFAULT_CAPACITY`](wow_transport::DEFAULT_CAPACITY).
    pub fn transport(mut self, buses: Buses) -> Self {
        self.buses = buses;
        self
    }

    /// How messages run: the strategy and its values; by default [`DispatchConfig::default`]. An executor's configuration
    /// alone stands for the default strategy.
    pub fn config(mut self, config: impl Into<DispatchConfig>) -> Self {
        self.config = config.into();
        self
    }

    /// Lets handlers and the stop use this tokio runtime's timers and I/O.
    #[cfg(feature = "tokio")]
    pub fn tokio(mut self, handle: tokio::runtime::Handle) -> Self {
        self.tokio = Some(handle);
        self
    }

    /// The time a stop has before it becomes a forced one.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// The continuous idle time after which a stop closes admission.
    pub fn quiet_period(mut self, period: Duration) -> Self {
        self.quiet_period = period;
        self
    }

    /// How many states are kept per aggregate type.
    pub fn instance_cache(mut self, cache: InstanceCache) -> Self {
        self.cache = cache;
        self
    }

    /// What a failed projection that nobody records means for the acknowledgement.
    pub fn unrecorded_failure(mut self, unrecorded: UnrecordedFailure) -> Self {
        self.unrecorded = unrecorded;
        self
    }

    /// Is told of every failed command, instead of the log.
    pub fn on_command_error(mut self, on_error: CommandErrorHandler) -> Self {
        self.on_command_error = Some(on_error);
        self
    }

    /// Is told of every failed event function, instead of the log.
    pub fn on_event_error(mut self, on_error: EventErrorHandler) -> Self {
        self.on_event_error = Some(on_error);
        self
    }

    /// Says what a command weighs, in bytes, for the budget [`DispatchConfig::max_bytes`]; without one it is not asked. See
    /// [`Dispatcher::max_bytes`](crate::Dispatcher::max_bytes) for what is bounded.
    pub fn weigh_commands(
        mut self,
        weigh: impl Fn(&Exchange<Command>) -> usize + Send + Sync + 'static,
    ) -> Self {
        self.weigh_commands = Some(Arc::new(weigh));
        self
    }

    /// Says what a stream of events weighs, as [`weigh_commands`](Self::weigh_commands) does of commands; needed where there are
    /// projections.
    pub fn weigh_events(
        mut self,
        weigh: impl Fn(&Exchange<EventStream>) -> usize + Send + Sync + 'static,
    ) -> Self {
        self.weigh_events = Some(Arc::new(weigh));
        self
    }

    /// Is told of code of this service that holds its thread for `stuck_after`
    /// ([`keyed_executor::Config::stuck_after`]), once for each time, while it does: which handler of which aggregate, of which
    /// message, on which worker. Beside the line in the log, which has the aggregate and the dispatcher. The last one given counts.
    ///
    /// It runs between two looks at all workers, so it must not block; a panic of it is logged. With it, every message costs an
    /// allocation more, and each poll two short locks of the thread's own, for the note of what its thread is inside of. A handler that waits holds
    /// no thread and is not told of: see [`Running::inspect`](crate::Running::inspect). Nor is anything with
    /// [`Strategy::Grouped`](crate::Strategy::Grouped), whose threads nobody watches.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wow_dispatch::{AggregateCommand, CommandMode, Events, Handle, Processed, Service};
    /// # use wow_eventsourcing::{Aggregate, AggregateEvent, MemoryEventStore};
    /// # use wow_message::Name;
    /// # #[derive(Default)]
    /// # struct Account;
    /// # struct Touched;
    /// # struct Block;
    /// # impl AggregateEvent for Touched { fn name(&self) -> &'static str { "touched" } }
    /// # impl Aggregate for Account {
    /// #     const NAME: &'static str = "account";
    /// #     type Event = Touched;
    /// #     type Error = std::fmt::Error;
    /// #     fn apply(&mut self, _: &Touched) {}
    /// # }
    /// # impl AggregateCommand for Block {
    /// #     type Aggregate = Account;
    /// #     const NAME: &'static str = "block";
    /// #     const MODE: CommandMode = CommandMode::CreateOrUpdate;
    /// #     fn aggregate_id(&self) -> Name { Name::from("ann") }
    /// # }
    /// # impl Handle<Block> for Account {
    /// #     type Reply = ();
    /// #     fn handle(&self, _: &Block, _: &mut Events<Touched>) -> Result<(), std::fmt::Error> {
    /// #         GATE.wait();
    /// #         Ok(())
    /// #     }
    /// # }
    /// # static GATE: std::sync::Barrier = std::sync::Barrier::new(2);
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stuck_after = Some(Duration::from_millis(5));
    /// # let executor = keyed_executor::Config { stuck_after, ..keyed_executor::Config::default() };
    /// let (sender, told) = std::sync::mpsc::channel();
    /// let service = Service::builder("bank")
    ///     .aggregate::<Account>(|account| account.command::<Block>())
    ///     .store(MemoryEventStore::new())
    /// #   .config(executor)
    ///     .on_stuck(move |stuck| sender.send(stuck.to_string()).expect("somebody listens"))
    ///     .build()?;
    /// let running = service.start().await?;
    /// let reply = running.send(Block).await?;
    /// assert!(told.recv()?.starts_with("block of bank.account/ann (bank.CommandDispatcher), message "));
    /// # GATE.wait();
    /// # reply.await?;
    /// # running.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_stuck(mut self, hook: impl Fn(&StuckHandler) + Send + Sync + 'static) -> Self {
        self.on_stuck = Some(Box::new(hook));
        self
    }

    /// The service; nothing of it runs before it is started.
    ///
    /// # Errors
    /// [`ServiceBuildError`] with every problem at once.
    pub fn build(self) -> Result<Service, ServiceBuildError> {
        let mut problems = self.problems();
        if let Err(wrong) = self.config.executor.validate() {
            problems.push(ServiceProblem::Config(wrong));
        }
        let groups = self.config.groups.count().get();
        if !limits::GROUPS.contains(&groups) {
            problems.push(ServiceProblem::Groups(groups));
        }
        problems.extend(self.problems_of_the_budget());
        if !problems.is_empty() {
            return Err(ServiceBuildError { problems });
        }
        self.assemble().map_err(|problem| ServiceBuildError { problems: vec![problem] })
    }

    fn problems_of_the_budget(&self) -> Vec<ServiceProblem> {
        let mut problems = Vec::new();
        let Some(max_bytes) = self.config.max_bytes else { return problems };
        if !limits::MAX_BYTES.contains(&max_bytes) {
            problems.push(ServiceProblem::MaxBytes(max_bytes));
        }
        if self.config.strategy == Strategy::Keyed {
            if self.weigh_commands.is_none() && !self.aggregates.is_empty() {
                problems.push(ServiceProblem::NoWeigher { of: "commands", told_by: "weigh_commands" });
            }
            if self.weigh_events.is_none() && !self.projections.is_empty() {
                problems.push(ServiceProblem::NoWeigher { of: "event streams", told_by: "weigh_events" });
            }
        }
        problems
    }

    fn problems(&self) -> Vec<ServiceProblem> {
        let mut problems = Vec::new();
        if self.context.trim().is_empty() {
            problems.push(ServiceProblem::BlankContext);
        }
        for (n, registered) in self.aggregates.iter().enumerate() {
            let named = registered.functions.named();
            if self.aggregates[..n].iter().any(|earlier| earlier.functions.named() == named) {
                problems.push(ServiceProblem::AggregateTwice(named));
            }
            if registered.is_empty {
                problems.push(ServiceProblem::NoCommands(named));
            }
            for command in &registered.duplicates {
                problems.push(ServiceProblem::CommandTwice { aggregate: named, command });
            }
        }
        for (n, projection) in self.projections.iter().enumerate() {
            let name = projection.name();
            if name.trim().is_empty() {
                problems.push(ServiceProblem::BlankProjection);
            }
            if self.projections[..n].iter().any(|earlier| earlier.name() == name) {
                problems.push(ServiceProblem::ProjectionTwice(name.clone()));
            }
            if projection.is_empty() {
                problems.push(ServiceProblem::NoFunctions(name.clone()));
            }
        }
        if self.store.is_none() && !self.aggregates.is_empty() {
            problems.push(ServiceProblem::NoStore);
        }
        problems
    }
}

impl fmt::Debug for ServiceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aggregates: Vec<_> = self.aggregates.iter().map(|a| a.functions.named().to_string()).collect();
        f.debug_struct("ServiceBuilder")
            .field("context", &self.context)
            .field("aggregates", &aggregates)
            .field("projections", &self.projections)
            .finish_non_exhaustive()
    }
}
