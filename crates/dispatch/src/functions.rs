//! `EventFunctions`: the registry of event functions, and which of them match an event.
//!
//! Invariants: a function is registered once; it sees an event only if the event's aggregate is its topic and the body is of
//! its type; a compensation reaches only the function it names. Functions of one event have no order among them.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use foldhash::fast::RandomState;
use futures_util::FutureExt;
use wow_eventsourcing::Aggregate;
use wow_message::{Answer, EventStream, Header, Name, NamedAggregate, keys};

use crate::error::panic_text;
use crate::event::Event;
use crate::notes::inside_function;

/// Why an event function failed.
#[derive(Debug, thiserror::Error)]
pub enum EventFailure {
    /// It returned this error.
    #[error("{0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// It panicked.
    #[error("panicked: {0}")]
    Panicked(String),
}

/// What an event function may return: nothing, or a result.
pub trait EventOutcome {
    /// The outcome as a result.
    ///
    /// # Errors
    /// What the function failed with.
    fn into_result(self) -> Result<(), Box<dyn Error + Send + Sync>>;
}

impl EventOutcome for () {
    fn into_result(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> EventOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// The name of a function: of which context and processor, and which one there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionName {
    /// The bounded context of the service.
    pub context: Name,
    /// The processor, such as a projection.
    pub processor: Name,
    /// The function inside its processor.
    pub function: Name,
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.context, self.processor, self.function)
    }
}

type Call = dyn Fn(&EventStream, usize) -> Option<Answer<Result<(), EventFailure>>> + Send + Sync;

/// One registered function.
#[derive(Clone)]
pub(crate) struct EventFunction {
    pub(crate) name: FunctionName,
    pub(crate) topic: NamedAggregate,
    call: Arc<Call>,
}

impl EventFunction {
    /// A function whose future is awaited.
    pub(crate) fn awaited<A, F, R>(name: FunctionName, topic: NamedAggregate, function: F) -> Self
    where
        A: Aggregate,
        F: Fn(Event<A>) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: EventOutcome,
    {
        let function = Arc::new(function);
        let call = move |stream: &EventStream, index: usize| {
            let event = Event::<A>::at(stream, index)?;
            let function = Arc::clone(&function);
            // The call itself may panic too, so it happens inside of what catches.
            let called = AssertUnwindSafe(async move { function(event).await.into_result() });
            Some(Answer::when(called.catch_unwind().map(outcome)))
        };
        Self { name, topic, call: Arc::new(call) }
    }

    /// A function that is done when it returns.
    pub(crate) fn immediate<A, F, R>(name: FunctionName, topic: NamedAggregate, function: F) -> Self
    where
        A: Aggregate,
        F: Fn(&Event<A>) -> R + Send + Sync + 'static,
        R: EventOutcome,
    {
        let call = move |stream: &EventStream, index: usize| {
            let event = Event::<A>::at(stream, index)?;
            let called = catch_unwind(AssertUnwindSafe(|| function(&event).into_result()));
            Some(Answer::ready(outcome(called)))
        };
        Self { name, topic, call: Arc::new(call) }
    }

    /// Calls the function if it takes this event.
    pub(crate) fn call(
        &self,
        stream: &EventStream,
        index: usize,
    ) -> Option<Answer<Result<(), EventFailure>>> {
        inside_function(&self.name, || (self.call)(stream, index))
    }

    /// Waits for what a call of this function began.
    pub(crate) async fn ended(&self, called: Answer<Result<(), EventFailure>>) -> Result<(), EventFailure> {
        let mut called = pin!(called);
        poll_fn(|cx| inside_function(&self.name, || called.as_mut().poll(cx))).await
    }

    fn is_meant_by(&self, header: &Header) -> bool {
        header.get(keys::COMPENSATE_ID).is_none()
            || header.get(keys::COMPENSATE_CONTEXT) == Some(&self.name.context)
                && header.get(keys::COMPENSATE_PROCESSOR) == Some(&self.name.processor)
                && header.get(keys::COMPENSATE_FUNCTION) == Some(&self.name.function)
    }
}

type Called = Result<Result<(), Box<dyn Error + Send + Sync>>, Box<dyn std::any::Any + Send>>;

fn outcome(called: Called) -> Result<(), EventFailure> {
    match called {
        Ok(result) => result.map_err(EventFailure::Failed),
        Err(panic) => Err(EventFailure::Panicked(panic_text(panic.as_ref()))),
    }
}

/// The functions of one kind in a service.
#[derive(Default)]
pub(crate) struct EventFunctions {
    topics: Vec<NamedAggregate>,
    by_topic: HashMap<NamedAggregate, Vec<EventFunction>, RandomState>,
}

impl EventFunctions {
    /// Registers a function; one whose name is registered already is ignored.
    pub(crate) fn register(&mut self, function: EventFunction) {
        let functions = self.by_topic.entry(function.topic).or_default();
        if functions.iter().any(|known| known.name == function.name) {
            return;
        }
        if functions.is_empty() {
            self.topics.push(function.topic);
        }
        functions.push(function);
    }

    /// The aggregate types that have functions.
    pub(crate) fn topics(&self) -> &[NamedAggregate] {
        &self.topics
    }

    /// The functions for a stream's aggregate and header; which events they take is seen when they are called.
    pub(crate) fn matching<'a>(&'a self, stream: &'a EventStream) -> impl Iterator<Item = &'a EventFunction> {
        let functions = self.by_topic.get(&stream.aggregate_id().named());
        functions.into_iter().flatten().filter(|function| function.is_meant_by(stream.header()))
    }
}
