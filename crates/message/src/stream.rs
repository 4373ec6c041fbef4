//! `EventStream`: what one command changed, stored and published as one unit.
//!
//! Invariant: a stream holds at least one event; its events share the stream's aggregate and version, are numbered from 1, and
//! only the last one says it is the last. Clones share everything but the header. Deliberately knows no state.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::aggregate::{AggregateId, Version};
use crate::command::Command;
use crate::event::{DEFAULT_REVISION, DomainEvent, Position};
use crate::header::Header;
use crate::id::{MessageId, RequestId};
use crate::message::{Body, Message};
use crate::name::Name;
use crate::time::Timestamp;
use crate::topic::TopicKind;

/// The events of one command, in order: the unit that is stored, published and handled.
///
/// ```
/// # use wow_message::{AggregateId, EventStream, NamedAggregate, Version};
/// let id = AggregateId::new(NamedAggregate::new("bank", "account"), "4711");
/// let stream = EventStream::builder(id, Version::INITIAL).event("opened", ()).event("paid_in", 5_i64).build()?;
/// let sequence: Vec<_> = stream.events().iter().map(|e| (e.sequence(), e.is_last())).collect();
/// assert_eq!(sequence, [(1, false), (2, true)]);
///
/// let id = stream.aggregate_id().clone();
/// assert!(EventStream::builder(id, Version::INITIAL).build().is_err(), "nothing happened: there is no stream");
/// # Ok::<(), wow_message::EmptyEventStream>(())
/// ```
#[derive(Clone)]
pub struct EventStream {
    header: Header,
    shared: Arc<Parts>,
}

struct Parts {
    id: MessageId,
    request_id: RequestId,
    command_id: Option<MessageId>,
    aggregate_id: AggregateId,
    owner: Name,
    space: Name,
    version: Version,
    create_time: Timestamp,
    events: Events,
}

/// Most streams have one event, which then needs no list.
enum Events {
    One([DomainEvent; 1]),
    Many(Vec<DomainEvent>),
}

impl Events {
    fn as_slice(&self) -> &[DomainEvent] {
        match self {
            Self::One(event) => event,
            Self::Many(events) => events,
        }
    }
}

impl EventStream {
    /// Starts a stream that brings this aggregate to `version`.
    #[inline]
    pub fn builder(aggregate_id: AggregateId, version: Version) -> EventStreamBuilder {
        EventStreamBuilder {
            header: Header::new(),
            id: None,
            request_id: None,
            command_id: None,
            aggregate_id,
            owner: Name::EMPTY,
            space: Name::EMPTY,
            version,
            create_time: Timestamp::now(),
            first: None,
            more: Vec::new(),
        }
    }

    /// Starts the stream that answers `command` and brings its aggregate to `version`: the request, owner, space and the
    /// propagated part of the header are the command's.
    #[inline]
    pub fn answering(command: &Command, version: Version) -> EventStreamBuilder {
        EventStreamBuilder {
            header: command.header().propagated_to_events(),
            request_id: Some(command.request_id().clone()),
            command_id: Some(command.id()),
            owner: command.owner().clone(),
            space: command.space().clone(),
            ..Self::builder(command.aggregate_id().clone(), version)
        }
    }

    /// The stream's identity.
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.shared.id
    }

    /// The request it answers; unique per aggregate.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.shared.request_id
    }

    /// The command it answers, if it answers one.
    #[must_use]
    pub fn command_id(&self) -> Option<MessageId> {
        self.shared.command_id
    }

    /// The aggregate that changed.
    #[must_use]
    pub fn aggregate_id(&self) -> &AggregateId {
        &self.shared.aggregate_id
    }

    /// The aggregate's owner when this happened.
    #[must_use]
    pub fn owner(&self) -> &Name {
        &self.shared.owner
    }

    /// The aggregate's space when this happened.
    #[must_use]
    pub fn space(&self) -> &Name {
        &self.shared.space
    }

    /// The aggregate's version with this stream.
    #[must_use]
    pub fn version(&self) -> Version {
        self.shared.version
    }

    /// When it happened.
    #[must_use]
    pub fn create_time(&self) -> Timestamp {
        self.shared.create_time
    }

    /// The events in order; never empty.
    #[must_use]
    pub fn events(&self) -> &[DomainEvent] {
        self.shared.events.as_slice()
    }

    /// What travels beside the events.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether it only reports failures, so that nothing changed.
    #[must_use]
    pub fn is_only_errors(&self) -> bool {
        self.events().iter().all(DomainEvent::is_error)
    }
}

impl Message for EventStream {
    const KIND: TopicKind = TopicKind::EventStream;

    fn id(&self) -> MessageId {
        self.id()
    }

    fn aggregate_id(&self) -> &AggregateId {
        self.aggregate_id()
    }

    fn create_time(&self) -> Timestamp {
        self.create_time()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("id", &self.id())
            .field("aggregate_id", self.aggregate_id())
            .field("version", &self.version())
            .field("events", &self.events())
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// A stream must hold at least one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyEventStream {
    /// The aggregate of the stream that was to be built.
    pub aggregate_id: AggregateId,
}

impl fmt::Display for EmptyEventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event stream of {} must hold at least one event", self.aggregate_id)
    }
}

impl std::error::Error for EmptyEventStream {}

/// What an event stream will be; [`build`](EventStreamBuilder::build) makes it.
#[must_use = "a builder does nothing until it is built"]
pub struct EventStreamBuilder {
    header: Header,
    id: Option<MessageId>,
    request_id: Option<RequestId>,
    command_id: Option<MessageId>,
    aggregate_id: AggregateId,
    owner: Name,
    space: Name,
    version: Version,
    create_time: Timestamp,
    first: Option<DomainEvent>,
    more: Vec<DomainEvent>,
}

impl EventStreamBuilder {
    /// The stream's id; by default a fresh one.
    #[inline]
    pub fn id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// The request it answers; by default the stream's own id.
    #[inline]
    pub fn request_id(mut self, request_id: impl Into<RequestId>) -> Self {
        self.request_id = Some(request_id.into());
        self
    }

    /// The owner of the aggregate.
    #[inline]
    pub fn owner(mut self, owner: impl Into<Name>) -> Self {
        self.owner = owner.into();
        self
    }

    /// The space of the aggregate.
    #[inline]
    pub fn space(mut self, space: impl Into<Name>) -> Self {
        self.space = space.into();
        self
    }

    /// When it happened; by default now.
    #[inline]
    pub fn create_time(mut self, at: Timestamp) -> Self {
        self.create_time = at;
        self
    }

    /// What travels beside the events.
    #[inline]
    pub fn header(mut self, header: Header) -> Self {
        self.header = header;
        self
    }

    /// Appends an event of the default revision.
    #[inline]
    pub fn event<B: Any + Send + Sync>(self, name: impl Into<Name>, body: B) -> Self {
        self.revised_event(name, DEFAULT_REVISION, Arc::new(body))
    }

    /// Appends an event of this revision.
    #[inline]
    pub fn revised_event(mut self, name: impl Into<Name>, revision: impl Into<Name>, body: Body) -> Self {
        self.push(name, revision, body);
        self
    }

    /// Appends an event of this revision, in place.
    #[inline]
    pub fn push(&mut self, name: impl Into<Name>, revision: impl Into<Name>, body: Body) {
        let n_before = self.more.len() + usize::from(self.first.is_some());
        let event = DomainEvent {
            id: MessageId::next_at(self.create_time),
            name: name.into(),
            revision: revision.into(),
            version: self.version,
            sequence: u32::try_from(n_before + 1).unwrap_or(u32::MAX),
            position: Position::Inner,
            body,
        };
        match self.first {
            None => self.first = Some(event),
            Some(_) => self.more.push(event),
        }
    }

    /// The stream.
    ///
    /// # Errors
    /// [`EmptyEventStream`] if no event was appended.
    #[inline]
    pub fn build(mut self) -> Result<EventStream, EmptyEventStream> {
        let events = match self.first {
            None => return Err(EmptyEventStream { aggregate_id: self.aggregate_id }),
            Some(mut only) if self.more.is_empty() => {
                only.position = Position::Last;
                Events::One([only])
            }
            Some(first) => {
                self.more.insert(0, first);
                if let Some(last) = self.more.last_mut() {
                    last.position = Position::Last;
                }
                Events::Many(self.more)
            }
        };
        let id = self.id.unwrap_or_else(|| MessageId::next_at(self.create_time));
        Ok(EventStream {
            header: self.header,
            shared: Arc::new(Parts {
                id,
                request_id: self.request_id.unwrap_or_else(|| id.into()),
                command_id: self.command_id,
                aggregate_id: self.aggregate_id,
                owner: self.owner,
                space: self.space,
                version: self.version,
                create_time: self.create_time,
                events,
            }),
        })
    }
}

impl fmt::Debug for EventStreamBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStreamBuilder")
            .field("aggregate_id", &self.aggregate_id)
            .field("version", &self.version)
            .field("first", &self.first)
            .field("more", &self.more)
            .finish_non_exhaustive()
    }
}
