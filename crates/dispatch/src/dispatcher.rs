//! `Dispatcher`: the engine under every kind of dispatcher, as a component of a runtime.
//!
//! Groups its aggregates by bounded context and has one [`Child`](crate::child) each: one receiver, one window. Messages
//! run on the runtime's executor or on the pools of a supplier, in order per key. Invariants: prepared once; every receiver is subscribed
//! before any of them is asked for messages; a force before or during a step is final. Deliberately knows nothing of what
//! its messages mean; that is the [`DispatchKind`].

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wow_message::{Name, NamedAggregate};
use wow_runtime::{Component, ComponentError, Context, StopContext, WorkLedger, async_trait};
use wow_transport::{Exchange, MessageBus, Ownership, ReceiveError, Subscription};

use crate::child::{Child, Naming};
use crate::config::Strategy;
use crate::error::{PrepareError, StartError};
use crate::execution::Execution;
use crate::kind::DispatchKind;
use crate::ledger::Counters;
use crate::notes::Notes;
use crate::weight::Budget;

/// Dispatches the messages of one kind: in order per aggregate, in parallel across aggregates, boundedly many unfinished.
///
/// Its name is the receiver group, the same for every bounded context, and the label of its dispatches on the executor; those of
/// a dispatcher with several contexts have theirs behind it, as in `shop.ProjectionDispatcher (bank)`.
pub struct Dispatcher<K: DispatchKind> {
    name: Name,
    kind: Arc<K>,
    bus: Arc<dyn MessageBus<K::Message>>,
    execution: Execution,
    notes: Option<Notes>,
    budget: Option<Budget<K::Message>>,
    counters: Arc<Counters>,
    failed: Arc<AtomicBool>,
    state: Mutex<State<K>>,
}

struct State<K: DispatchKind> {
    phase: Phase,
    children: Vec<Arc<Child<K>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Preparing,
    Prepared,
    Running,
    Stopping,
    Stopped,
}

impl<K: DispatchKind> Dispatcher<K> {
    /// A dispatcher that receives from `bus` as the group `name`, conventionally `<context>.<Kind>`, and runs on the
    /// runtime's executor.
    pub fn new(name: impl Into<Name>, kind: K, bus: Arc<dyn MessageBus<K::Message>>) -> Self {
        let state = Mutex::new(State { phase: Phase::New, children: Vec::new() });
        Self {
            name: name.into(),
            kind: Arc::new(kind),
            bus,
            execution: Execution::default(),
            notes: None,
            budget: None,
            counters: Arc::default(),
            failed: Arc::default(),
            state,
        }
    }

    /// Runs its messages on this instead.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// Writes down in `notes` what its threads are inside of, for who is told of a handler that holds its thread. It costs an
    /// allocation a message, and two short locks of the thread's own a poll.
    #[must_use]
    pub fn notes(mut self, notes: &Notes) -> Self {
        self.notes = Some(notes.clone());
        self
    }

    /// Bounds the bytes of each of its receivers' messages that are admitted and unfinished, beside their number: at most `max_bytes`,
    /// by what `weigh` says of each, and one message more, which is set aside and not handled before it has room. Without room
    /// nothing is asked for. A message heavier than the whole budget is handled alone.
    ///
    /// The weigher is asked when a message was admitted, and maybe again; a panic of it ends the dispatcher. It is given the exchange, which
    /// knows the message's [encoded size](Exchange::encoded_bytes) if the transport does. With [`Execution::Grouped`]
    /// there is no budget, and a warning says so.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use wow_dispatch::{CommandKind, Dispatcher};
    /// use wow_message::Command;
    /// use wow_transport::{Capacity, Exchange, MemoryBus};
    ///
    /// /// What the transport says, or what the bodies of this service are known to take at most.
    /// fn weigh(command: &Exchange<Command>) -> usize {
    ///     command.encoded_bytes().unwrap_or(512)
    /// }
    ///
    /// let bus = Arc::new(MemoryBus::new(Capacity::default()));
    /// let dispatcher = Dispatcher::new("bank.CommandDispatcher", CommandKind::new(), bus).max_bytes(64 << 20, weigh);
    /// # let _ = dispatcher;
    /// ```
    #[must_use]
    pub fn max_bytes(
        mut self,
        max_bytes: usize,
        weigh: impl Fn(&Exchange<K::Message>) -> usize + Send + Sync + 'static,
    ) -> Self {
        self.budget = Some(Budget::new(max_bytes, Arc::new(weigh)));
        self
    }

    pub(crate) fn budget(mut self, budget: Option<Budget<K::Message>>) -> Self {
        self.budget = budget;
        self
    }

    /// The kind it was made with.
    pub fn kind(&self) -> &K {
        &self.kind
    }

    fn subscriptions(&self) -> Result<Vec<Subscription>, PrepareError> {
        let mut contexts: Vec<(&Name, Vec<NamedAggregate>)> = Vec::new();
        for aggregate in self.kind.aggregates() {
            match contexts.iter_mut().find(|(context, _)| *context == aggregate.context()) {
                Some((_, aggregates)) => aggregates.push(*aggregate),
                None => contexts.push((aggregate.context(), vec![*aggregate])),
            }
        }
        let subscribe = |(_, aggregates): (&Name, Vec<NamedAggregate>)| {
            let subscription = Subscription::to(aggregates).group(self.name.clone())?;
            Ok(subscription.owned_by(Ownership::Runtime))
        };
        contexts.into_iter().map(subscribe).collect()
    }

    /// How the executor's figures, looks and logs call one of its receivers: as the dispatcher, with the bounded context where
    /// there are several.
    fn label(&self, subscription: &Subscription, receivers: usize) -> Arc<str> {
        match subscription.aggregates().first() {
            Some(aggregate) if receivers > 1 => Arc::from(format!("{} ({})", self.name, aggregate.context())),
            _ => Arc::from(self.name.as_str()),
        }
    }

    /// Moves from one phase to the next, unless a stop came in between.
    fn advance(&self, from: Phase, to: Phase) -> Result<(), PrepareError> {
        let mut state = self.state();
        match state.phase {
            phase if phase == from => {
                state.phase = to;
                Ok(())
            }
            Phase::Stopping | Phase::Stopped => Err(PrepareError::Stopped),
            Phase::New | Phase::Preparing | Phase::Prepared | Phase::Running => {
                Err(PrepareError::AlreadyPrepared)
            }
        }
    }

    /// Does `act` to every child, whatever the others answer; the first error is the result, the others are logged.
    fn to_each(
        &self,
        children: &[Arc<Child<K>>],
        act: impl Fn(&Child<K>) -> Result<(), ReceiveError>,
    ) -> Result<(), ComponentError> {
        let mut first = Ok(());
        for failed in children.iter().filter_map(|child| act(child).err()) {
            match first {
                Ok(()) => first = Err(failed.into()),
                Err(_) => tracing::error!(dispatcher = %self.name, %failed, "a further receiver failed"),
            }
        }
        first
    }

    /// Looked at before each step of a start: a child that failed has told the runtime, and a force may come at any time.
    fn may_go_on(&self) -> bool {
        // Acquire: pairs with the Release in Child::ended.
        !self.failed.load(Ordering::Acquire) && self.state().phase == Phase::Running
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a phase from which nothing starts any more, and gives the children to be ended.
    fn end(&self, phase: Phase) -> Vec<Arc<Child<K>>> {
        let children = {
            let mut state = self.state();
            // Before it was prepared, an end is final at once.
            state.phase = match state.phase {
                Phase::New | Phase::Stopped => Phase::Stopped,
                _ => phase,
            };
            state.children.clone()
        };
        self.kind.ended();
        children
    }
}

#[async_trait]
impl<K: DispatchKind> Component for Dispatcher<K> {
    fn name(&self) -> &str {
        &self.name
    }

    async fn prepare(&self, context: Context) -> Result<(), ComponentError> {
        self.advance(Phase::New, Phase::Preparing)?;
        self.kind.prepared(&context);
        let subscriptions = self.subscriptions()?;
        let (bus, receivers) = (self.bus.as_ref(), subscriptions.len());
        if self.budget.is_some() && self.execution.strategy() == Strategy::Grouped {
            tracing::warn!(dispatcher = %self.name, "hash groups have no byte budget: messages are bounded by their number only");
        }
        for subscription in subscriptions {
            let naming = Naming { label: self.label(&subscription, receivers), notes: self.notes.clone() };
            let execution = self.execution.prepare(subscription.aggregates()).map_err(PrepareError::from)?;
            let (context, failed) = (context.clone(), Arc::clone(&self.failed));
            let child =
                Child::subscribe(bus, subscription, context, execution, naming, self.budget.clone(), failed)?;
            let stopped = {
                let mut state = self.state();
                let stopped = state.phase != Phase::Preparing;
                if !stopped {
                    state.children.push(Arc::clone(&child));
                }
                stopped
            };
            if stopped {
                child.force()?;
                return Err(PrepareError::Stopped.into());
            }
        }
        let children = self.state().children.clone();
        for child in children {
            child.ready().await?;
        }
        Ok(self.advance(Phase::Preparing, Phase::Prepared)?)
    }

    fn start(&self) -> Result<(), ComponentError> {
        let children = {
            let mut state = self.state();
            match state.phase {
                Phase::New | Phase::Preparing => return Err(StartError::NotPrepared.into()),
                Phase::Running | Phase::Stopping | Phase::Stopped => return Ok(()),
                Phase::Prepared => state.phase = Phase::Running,
            }
            state.children.clone()
        };
        if children.is_empty() {
            tracing::warn!(dispatcher = %self.name, "no aggregates: nothing is dispatched");
        }
        for child in &children {
            if !self.may_go_on() {
                return Ok(());
            }
            child.start(&self.kind, &self.counters);
        }
        for child in &children {
            if !self.may_go_on() {
                return Ok(());
            }
            child.open().map_err(StartError::Gate)?;
        }
        let strategy = self.execution.strategy();
        tracing::info!(dispatcher = %self.name, %strategy, receivers = children.len(), "started");
        Ok(())
    }

    fn suspend_durable_intake(&self) -> Result<(), ComponentError> {
        let children = self.state().children.clone();
        self.to_each(&children, Child::suspend_durable_intake)
    }

    fn quiesce(&self) -> Result<(), ComponentError> {
        let children = self.end(Phase::Stopping);
        self.to_each(&children, Child::quiesce)
    }

    async fn stop_gracefully(&self, _stop: StopContext) -> Result<(), ComponentError> {
        let children = self.state().children.clone();
        for child in &children {
            child.drained().await;
        }
        self.execution.stopped().await;
        let mut state = self.state();
        state.phase = Phase::Stopped;
        state.children.clear();
        tracing::info!(dispatcher = %self.name, "stopped");
        Ok(())
    }

    fn force_stop(&self) -> Result<(), ComponentError> {
        let children = self.end(Phase::Stopped);
        let forced = self.to_each(&children, Child::force);
        self.execution.force();
        self.state().children.clear();
        forced
    }

    fn owns_this_thread(&self) -> bool {
        self.execution.owns_this_thread()
    }

    fn work(&self) -> Option<WorkLedger> {
        Some(self.counters.ledger())
    }
}

impl<K: DispatchKind> Drop for Dispatcher<K> {
    fn drop(&mut self) {
        for child in self.end(Phase::Stopped) {
            // Nobody is left to tell; the gate of a dropped receiver ends with it.
            let _ = child.force();
        }
        self.execution.force();
    }
}

impl<K: DispatchKind> fmt::Debug for Dispatcher<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("name", &self.name)
            .field("execution", &self.execution)
            .field("phase", &self.state().phase)
            .field("work", &self.counters.ledger())
            .finish_non_exhaustive()
    }
}
