//! The assembly of a service: kinds, dispatchers, executor and runtime from what a builder collected and checked.
//!
//! Owns the order of the parts and nothing that lasts. Invariant: the executor, the pools and the runtime it makes start nothing.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use keyed_executor::KeyedExecutor;
use wow_message::{Name, NamedAggregate};
use wow_runtime::{Runtime, Stage};

use crate::command::CommandKind;
use crate::config::Strategy;
use crate::dispatcher::Dispatcher;
use crate::execution::Execution;
use crate::kind::DispatchKind;
use crate::notes::Notes;
use crate::projection::ProjectionKind;
use crate::service::builder::ServiceBuilder;
use crate::service::problem::ServiceProblem;
use crate::service::{Service, Shared};
use crate::weight::{Budget, Weigher};

impl ServiceBuilder {
    /// The parts were checked.
    pub(super) fn assemble(self) -> Result<Service, ServiceProblem> {
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
        let notes = self.on_stuck.is_some().then(Notes::new);
        let executor = match self.on_stuck.zip(notes.clone()) {
            Some((hook, notes)) => executor.on_stuck(move |stuck| hook(&notes.explain(stuck))),
            None => executor,
        };
        #[cfg(feature = "tokio")]
        let executor = match &self.tokio {
            Some(handle) => executor.tokio(handle.clone()),
            None => executor,
        };
        let executor = executor.build().map_err(ServiceProblem::Config)?;
        // Nobody watches the threads of hash groups, so nothing is written down there.
        let written = notes.as_ref().filter(|_| config.strategy == Strategy::Keyed);
        let max_bytes = config.max_bytes.filter(|_| config.strategy == Strategy::Keyed);
        let group = |kind: &str| Name::from(format!("{context}.{kind}"));
        let name = group("CommandDispatcher");
        let execution_of_commands = execution(&name);
        let dispatcher = Dispatcher::new(name, commands, Arc::clone(&buses.commands));
        let dispatcher = dispatcher.budget(budget(max_bytes, self.weigh_commands));
        let dispatcher = with_notes(dispatcher.execution(execution_of_commands), written);
        let mut runtime = Runtime::builder(executor)
            .shutdown_timeout(self.shutdown_timeout)
            .quiet_period(self.quiet_period)
            .component(Stage::COMMANDS, Arc::new(dispatcher));
        if has_projections {
            let name = group("ProjectionDispatcher");
            let execution = execution(&name);
            let dispatcher = Dispatcher::new(name, views, buses.events).execution(execution);
            let dispatcher = dispatcher.budget(budget(max_bytes, self.weigh_events));
            let dispatcher = with_notes(dispatcher, written);
            runtime = runtime.component(Stage::PROJECTIONS, Arc::new(dispatcher));
        }
        // Who read it from a file has told it already, with its place.
        let is_lost = config.max_bytes.is_some() && max_bytes.is_none();
        let is_told = config.notices.iter().any(|notice| notice.contains("max-bytes"));
        let untold = (is_lost && !is_told).then(|| NO_BUDGET.to_owned());
        for notice in config.notices.into_iter().chain(untold) {
            runtime = runtime.notice(notice);
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

const NO_BUDGET: &str = "max-bytes has no effect: hash groups have no byte budget, their messages are bounded by their number only";

fn budget<M>(max_bytes: Option<usize>, weigher: Option<Weigher<M>>) -> Option<Budget<M>> {
    max_bytes.zip(weigher).map(|(max_bytes, weigher)| Budget::new(max_bytes, weigher))
}

fn with_notes<K: DispatchKind>(dispatcher: Dispatcher<K>, notes: Option<&Notes>) -> Dispatcher<K> {
    match notes {
        Some(notes) => dispatcher.notes(notes),
        None => dispatcher,
    }
}
