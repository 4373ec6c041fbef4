//! `ProjectionKind`: event streams handed to the projections of a service.
//!
//! A received stream is one message, ordered by its aggregate. Its events are handled one after the other; the functions that
//! match one event run at the same time, and the next event starts when they all have ended. Invariants: a failing function
//! keeps no other from running; the stream is acknowledged after its last event, unless an unrecorded failure withholds that.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::future::join_all;
use wow_eventsourcing::Aggregate;
use wow_message::{EventStream, Name, NamedAggregate};
use wow_transport::Exchange;

use crate::error::panic_text;
use crate::event::Event;
use crate::functions::{EventFailure, EventFunction, EventFunctions, EventOutcome, FunctionName};
use crate::kind::{DispatchKind, Handled};

/// Whether a stream is acknowledged although a function failed and nobody recorded it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnrecordedFailure {
    /// It is: the failure went to the error handler, and the stream does not come again.
    #[default]
    Acknowledge,
    /// It is not: the transport keeps the stream, if it keeps anything.
    Withhold,
}

/// What is told of every failed event function; it cannot change the outcome.
pub type EventErrorHandler = Arc<dyn Fn(&FunctionName, &EventStream, &EventFailure) + Send + Sync>;

/// The projection dispatcher's kind.
pub struct ProjectionKind {
    functions: EventFunctions,
    unrecorded: UnrecordedFailure,
    on_error: EventErrorHandler,
}

impl ProjectionKind {
    /// A kind without projections.
    #[must_use]
    pub fn new() -> Self {
        Self {
            functions: EventFunctions::default(),
            unrecorded: UnrecordedFailure::default(),
            on_error: Arc::new(log_failure),
        }
    }

    /// Adds the functions of a projection.
    #[must_use]
    pub fn projection(mut self, projection: Projection) -> Self {
        projection.functions.into_iter().for_each(|function| self.functions.register(function));
        self
    }

    /// What a failure that nobody records means for the acknowledgement.
    #[must_use]
    pub fn unrecorded_failure(mut self, unrecorded: UnrecordedFailure) -> Self {
        self.unrecorded = unrecorded;
        self
    }

    /// Tells `on_error` of every failed function, instead of the log.
    #[must_use]
    pub fn on_error(mut self, on_error: EventErrorHandler) -> Self {
        self.on_error = on_error;
        self
    }

    /// Handles one event; the names of the functions that failed are added to `failed`.
    async fn handle_event(&self, stream: &EventStream, index: usize, failed: &mut Vec<FunctionName>) {
        let calls = self.functions.matching(stream).filter_map(|f| Some((f, f.call(stream, index)?)));
        let mut calls: Vec<_> = calls.collect();
        match calls.len() {
            0 => tracing::debug!(stream = %stream.id(), index, "no function for the event"),
            1 => {
                let (function, call) = calls.remove(0);
                self.settle(function, stream, function.ended(call).await, failed);
            }
            _ => {
                let ended =
                    calls.into_iter().map(async |(function, call)| (function, function.ended(call).await));
                for (function, result) in join_all(ended).await {
                    self.settle(function, stream, result, failed);
                }
            }
        }
    }

    fn settle(
        &self,
        function: &EventFunction,
        stream: &EventStream,
        result: Result<(), EventFailure>,
        failed: &mut Vec<FunctionName>,
    ) {
        let Err(failure) = result else { return };
        let told = catch_unwind(AssertUnwindSafe(|| (self.on_error)(&function.name, stream, &failure)));
        if let Err(panic) = told {
            let text = panic_text(panic.as_ref());
            tracing::error!(function = %function.name, %text, "the error handler panicked");
        }
        failed.push(function.name.clone());
    }
}

impl DispatchKind for ProjectionKind {
    type Message = EventStream;
    type Attached = ();

    fn aggregates(&self) -> &[NamedAggregate] {
        self.functions.topics()
    }

    fn attach(&self, _message: &EventStream) {}

    async fn handle(self: Arc<Self>, mut exchange: Exchange<EventStream>, (): ()) -> Handled {
        let mut failed = Vec::new();
        for index in 0..exchange.message().events().len() {
            self.handle_event(exchange.message(), index, &mut failed).await;
        }
        if failed.is_empty() {
            exchange.acknowledge();
            return Handled::Succeeded;
        }
        match self.unrecorded {
            UnrecordedFailure::Acknowledge => exchange.acknowledge(),
            UnrecordedFailure::Withhold => {
                let names: Vec<_> = failed.iter().map(ToString::to_string).collect();
                let (stream, functions) = (exchange.message().id(), names.join(","));
                tracing::error!(%stream, %functions, "acknowledgement withheld");
            }
        }
        Handled::Failed
    }
}

fn log_failure(function: &FunctionName, stream: &EventStream, failure: &EventFailure) {
    let (stream, aggregate) = (stream.id(), stream.aggregate_id());
    tracing::error!(%function, %stream, %aggregate, %failure, "event function failed");
}

impl Default for ProjectionKind {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ProjectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectionKind")
            .field("aggregates", &self.functions.topics())
            .field("unrecorded", &self.unrecorded)
            .finish_non_exhaustive()
    }
}

/// The functions of one projection: what a view does with events.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use wow_dispatch::{Event, Projection};
/// # use wow_eventsourcing::{Aggregate, AggregateEvent};
/// # #[derive(Default)]
/// # struct Account;
/// # struct PaidIn(i64);
/// # impl AggregateEvent for PaidIn { fn name(&self) -> &'static str { "paid_in" } }
/// # impl Aggregate for Account {
/// #     const NAME: &'static str = "account";
/// #     type Event = PaidIn;
/// #     type Error = std::convert::Infallible;
/// #     fn apply(&mut self, _: &PaidIn) {}
/// # }
///
/// let total = Arc::new(Mutex::new(0));
/// let view = Arc::clone(&total);
/// let projection = Projection::new("bank", "total")
///     .each(move |event: &Event<Account>| *view.lock().unwrap() += event.0)
///     .on(|event: Event<Account>| async move {
///         if event.0 < 0 { Err("a negative payment") } else { Ok(()) }
///     });
/// assert_eq!(projection.name(), "total");
/// ```
pub struct Projection {
    context: Name,
    name: Name,
    functions: Vec<EventFunction>,
}

impl Projection {
    /// A projection of this bounded context's service, without functions; its aggregates are of the same context.
    pub fn new(context: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { context: context.into(), name: name.into(), functions: Vec::new() }
    }

    /// Adds a function that is awaited; events of one aggregate wait for it, others do not.
    #[must_use]
    pub fn on<A, F, R>(mut self, function: F) -> Self
    where
        A: Aggregate,
        F: Fn(Event<A>) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: EventOutcome,
    {
        let (name, topic) = self.next_function::<A>();
        self.functions.push(EventFunction::awaited(name, topic, function));
        self
    }

    /// Adds a function that is done when it returns; it must not block.
    #[must_use]
    pub fn each<A, F, R>(mut self, function: F) -> Self
    where
        A: Aggregate,
        F: Fn(&Event<A>) -> R + Send + Sync + 'static,
        R: EventOutcome,
    {
        let (name, topic) = self.next_function::<A>();
        self.functions.push(EventFunction::immediate(name, topic, function));
        self
    }

    /// The projection's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// A function is named after its aggregate, further ones are numbered.
    fn next_function<A: Aggregate>(&self) -> (FunctionName, NamedAggregate) {
        let topic = NamedAggregate::new(self.context.clone(), A::NAME);
        let function = match self.functions.iter().filter(|known| known.topic == topic).count() {
            0 => topic.name().clone(),
            n => Name::from(format!("{}-{}", topic.name(), n + 1)),
        };
        (FunctionName { context: self.context.clone(), processor: self.name.clone(), function }, topic)
    }
}

impl fmt::Debug for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions: Vec<_> = self.functions.iter().map(|function| function.name.to_string()).collect();
        f.debug_struct("Projection").field("name", &self.name).field("functions", &functions).finish()
    }
}
