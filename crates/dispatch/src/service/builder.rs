//! `ServiceBuilder`: collects the parts of a service and refuses what cannot work, all problems at once.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use keyed_executor::KeyedExecutor;
use wow_eventsourcing::{Aggregate, EventStore};
use wow_message::{Name, NamedAggregate};
use wow_runtime::{Runtime, Stage, defaults};

use crate::command::{
    AggregateFunctions, AggregateFunctionsBuilder, CommandErrorHandler, CommandKind, InstanceCache,
};
use crate::config::{DispatchConfig, limits};
use crate::dispatcher::Dispatcher;
use crate::execution::Execution;
use crate::projection::{EventErrorHandler, Projection, ProjectionKind, UnrecordedFailure};
use crate::service::problem::{ServiceBuildError, ServiceProblem};
use crate::service::{Buses, Service, Shared};

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
}

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
        if !problems.is_empty() {
            return Err(ServiceBuildError { problems });
        }
        self.assemble().map_err(|problem| ServiceBuildError { problems: vec![problem] })
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

    fn assemble(self) -> Result<Service, ServiceProblem> {
        let Self { context, aggregates, projections, store, buses, config, .. } = self;
        let mut commands = CommandKind::new().publish_on(Arc::clone(&buses.events));
        if let Some(on_error) = self.on_command_error {
            commands = commands.on_error(on_error);
        }
        let mut named: HashMap<TypeId, NamedAggregate, RandomState> = HashMap::default();
        for registered in aggregates {
            let Some(store) = &store else { return Err(ServiceProblem::NoStore) };
            named.insert(registered.root, registered.functions.named());
            commands = commands.aggregate(registered.functions, Arc::clone(store), self.cache);
        }
        let waits = Arc::clone(commands.waits());
        let mut views = ProjectionKind::new().unrecorded_failure(self.unrecorded);
        if let Some(on_error) = self.on_event_error {
            views = views.on_error(on_error);
        }
        let has_projections = !projections.is_empty();
        for projection in projections {
            views = views.projection(projection);
        }

        let execution = |name: &Name| {
            Execution::of(
                &config,
                name,
                #[cfg(feature = "tokio")]
                self.tokio.as_ref(),
            )
        };
        let executor = KeyedExecutor::builder().config(config.executor.clone());
        #[cfg(feature = "tokio")]
        let executor = match &self.tokio {
            Some(handle) => executor.tokio(handle.clone()),
            None => executor,
        };
        let executor = executor.build().map_err(ServiceProblem::Config)?;
        let group = |kind: &str| Name::from(format!("{context}.{kind}"));
        let name = group("CommandDispatcher");
        let execution_of_commands = execution(&name);
        let dispatcher = Dispatcher::new(name, commands, Arc::clone(&buses.commands));
        let dispatcher = dispatcher.execution(execution_of_commands);
        let mut runtime = Runtime::builder(executor)
            .shutdown_timeout(self.shutdown_timeout)
            .quiet_period(self.quiet_period)
            .component(Stage::COMMANDS, Arc::new(dispatcher));
        if has_projections {
            let name = group("ProjectionDispatcher");
            let execution = execution(&name);
            let dispatcher = Dispatcher::new(name, views, buses.events).execution(execution);
            runtime = runtime.component(Stage::PROJECTIONS, Arc::new(dispatcher));
        }
        #[cfg(feature = "tokio")]
        if let Some(handle) = self.tokio {
            runtime = runtime.tokio(handle);
        }
        let runtime = runtime.build().map_err(ServiceProblem::Runtime)?;
        let activities = runtime.activities().clone();
        let shared =
            Shared { context, activities, runtime, commands: buses.commands, waits, aggregates: named };
        Ok(Service { shared: Arc::new(shared) })
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
