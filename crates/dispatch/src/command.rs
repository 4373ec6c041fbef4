//! `CommandKind`: commands decided by their aggregates, events stored, then published.
//!
//! The pipeline of one command, in this order:
//!
//! 1. the request is looked up, if the sender named one: answered before, it is not handled again;
//! 2. the aggregate's state is taken from the cache or loaded, guarded, and decides ([`processor`]);
//! 3. its events are applied to the state and appended to the store, as one unit;
//! 4. the command is acknowledged, whatever happened;
//! 5. the stored events are sent on the event bus;
//! 6. a failure goes to the error handler, which cannot change it;
//! 7. the waiting sender gets its answer.
//!
//! Invariant: a failed command never fails the dispatcher. Acknowledgement precedes publication: if the process dies in
//! between, the events are stored and not published.

mod cache;
mod failure;
mod guard;
mod instance;
mod processor;
mod waits;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use wow_eventsourcing::EventStore;
use wow_message::{Command, CommandUse, EventStream, Name, NamedAggregate};
use wow_runtime::{ActivityGate, Context};
use wow_transport::{Exchange, Hold, MessageBus};

use crate::error::panic_text;
use crate::kind::{DispatchKind, Handled, Screening};

pub use failure::{CommandError, CommandFailure, NotSent, NotSentReason};
pub use guard::GuardRefusal;
pub use instance::{AggregateFunctions, AggregateFunctionsBuilder};
pub use processor::InstanceCache;
pub(crate) use waits::{Slot, Unheard, Waiter, Waits};

use processor::Processor;
use waits::Waiting;

/// What is told of every failed command; it cannot change the outcome.
pub type CommandErrorHandler = Arc<dyn Fn(&Command, &CommandFailure) + Send + Sync>;

/// The command dispatcher's kind.
pub struct CommandKind {
    aggregates: Vec<NamedAggregate>,
    processors: HashMap<NamedAggregate, Processor, RandomState>,
    events: Option<Arc<dyn MessageBus<EventStream>>>,
    on_error: CommandErrorHandler,
    waits: Arc<Waits>,
    activities: OnceLock<ActivityGate>,
}

impl CommandKind {
    /// A kind that handles the commands of no aggregate yet, stores nothing and publishes nowhere.
    #[must_use]
    pub fn new() -> Self {
        Self {
            aggregates: Vec::new(),
            processors: HashMap::default(),
            events: None,
            on_error: Arc::new(log_failure),
            waits: Arc::default(),
            activities: OnceLock::new(),
        }
    }

    /// Handles the commands of these functions' aggregate, with its events in `store`.
    ///
    /// A second registration of one aggregate type replaces the first.
    #[must_use]
    pub fn aggregate(
        mut self,
        functions: AggregateFunctions,
        store: Arc<dyn EventStore>,
        cache: InstanceCache,
    ) -> Self {
        let named = functions.named();
        if self.processors.insert(named, Processor::new(functions, store, cache)).is_none() {
            self.aggregates.push(named);
        }
        self
    }

    /// Publishes stored events on this bus.
    #[must_use]
    pub fn publish_on(mut self, events: Arc<dyn MessageBus<EventStream>>) -> Self {
        self.events = Some(events);
        self
    }

    /// Tells `on_error` of every failed command, instead of the log.
    #[must_use]
    pub fn on_error(mut self, on_error: CommandErrorHandler) -> Self {
        self.on_error = on_error;
        self
    }

    pub(crate) fn waits(&self) -> &Arc<Waits> {
        &self.waits
    }

    async fn process(&self, command: &Command, waiter: Option<&dyn Waiter>) -> Processed {
        match self.processors.get(&command.aggregate_id().named()) {
            Some(processor) => processor.process(command, waiter).await,
            None => Err(CommandFailure::UnknownAggregate(command.aggregate_id().named())),
        }
    }

    /// Publishes with an activity that lasts until every receiver of this process took the stream, so that a stop does not
    /// overtake it. Once admission is closed there is none, and the receivers take nothing any more.
    async fn publish(&self, stream: EventStream) -> Result<(), CommandFailure> {
        let Some(events) = &self.events else { return Ok(()) };
        let sending = match self.activities.get().and_then(ActivityGate::try_acquire) {
            Some(activity) => events.send_held(stream, Hold::new(activity)),
            None => events.send(stream),
        };
        sending.await.map_err(|failed| CommandFailure::Publish(failed.into_parts().0))
    }
}

/// The stored stream, if anything happened.
type Processed = Result<Option<EventStream>, CommandFailure>;

impl DispatchKind for CommandKind {
    type Message = Command;
    type Attached = Waiting;

    fn aggregates(&self) -> &[NamedAggregate] {
        &self.aggregates
    }

    fn screen(&self, message: &Command) -> Screening {
        match message.usage() {
            CommandUse::Handled => Screening::Admit,
            CommandUse::Void => Screening::Skip,
        }
    }

    fn label(&self, message: &Command) -> Name {
        message.name().clone()
    }

    fn prepared(&self, context: &Context) {
        // The first runtime stays: a dispatcher is prepared once.
        let _known = self.activities.set(context.activities().clone());
    }

    fn attach(&self, message: &Command) -> Waiting {
        self.waits.take(message.id())
    }

    async fn handle(self: Arc<Self>, mut exchange: Exchange<Command>, waiting: Waiting) -> Handled {
        let processed = self.process(exchange.message(), waiting.waiter()).await;
        exchange.acknowledge();
        let published = match processed {
            Ok(Some(stream)) => self.publish(stream).await,
            Ok(None) => Ok(()),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &published {
            let told = catch_unwind(AssertUnwindSafe(|| (self.on_error)(exchange.message(), failure)));
            if let Err(panic) = told {
                let text = panic_text(panic.as_ref());
                tracing::error!(command = %exchange.message().id(), %text, "the error handler panicked");
            }
        }
        let handled = if published.is_ok() { Handled::Succeeded } else { Handled::Failed };
        waiting.answer(published);
        handled
    }

    fn ended(&self) {
        self.waits.close();
    }
}

/// The error handler of a kind that is given none: what the sender asked for and did not get is its own affair, the rest is not.
fn log_failure(command: &Command, failure: &CommandFailure) {
    let (id, name, aggregate) = (command.id(), command.name(), command.aggregate_id());
    match failure {
        CommandFailure::Refused(_) | CommandFailure::Guard(_) => {
            tracing::debug!(%id, %name, %aggregate, %failure, "command refused");
        }
        _ => tracing::error!(%id, %name, %aggregate, %failure, "command failed"),
    }
}

impl Default for CommandKind {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandKind").field("aggregates", &self.aggregates).finish_non_exhaustive()
    }
}
