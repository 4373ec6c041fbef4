//! `Event`: one domain event as a function sees it, typed by its aggregate.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use wow_eventsourcing::Aggregate;
use wow_message::{AggregateId, DomainEvent, EventStream, Version};

/// One event of the aggregate type `A`, with the stream it belongs to. Dereferences to the event's body.
pub struct Event<A> {
    stream: EventStream,
    index: usize,
    aggregate: PhantomData<fn() -> A>,
}

impl<A: Aggregate> Event<A> {
    /// The event at this place of the stream, if its body is one of `A`.
    pub(crate) fn at(stream: &EventStream, index: usize) -> Option<Self> {
        stream.events().get(index)?.body_as::<A::Event>()?;
        Some(Self { stream: stream.clone(), index, aggregate: PhantomData })
    }

    /// What happened.
    #[must_use]
    pub fn body(&self) -> &A::Event {
        self.domain_event().body_as().expect("an event is made for a body of its type")
    }

    /// The event with its name, revision and place.
    #[must_use]
    pub fn domain_event(&self) -> &DomainEvent {
        &self.stream.events()[self.index]
    }

    /// The stream it belongs to.
    #[must_use]
    pub fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// To whom it happened.
    #[must_use]
    pub fn aggregate_id(&self) -> &AggregateId {
        self.stream.aggregate_id()
    }

    /// The aggregate's version with it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.stream.version()
    }
}

impl<A: Aggregate> Deref for Event<A> {
    type Target = A::Event;

    fn deref(&self) -> &A::Event {
        self.body()
    }
}

impl<A> Clone for Event<A> {
    fn clone(&self) -> Self {
        Self { stream: self.stream.clone(), index: self.index, aggregate: PhantomData }
    }
}

impl<A> fmt::Debug for Event<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("stream", &self.stream)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
