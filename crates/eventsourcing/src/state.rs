//! `AggregateState`: an aggregate's root with everything around it, at one version.
//!
//! Invariant: a stream is applied when it is the next one of this aggregate; version, owner, space, deletion, tags, times and
//! operator advance together, after the root has seen every event of the stream. Deliberately reads no store on its own.

use std::collections::BTreeMap;
use std::fmt;

use wow_message::{AggregateId, EventStream, MessageId, Name, Timestamp, Version, keys};

use crate::aggregate::Aggregate;
use crate::error::{LoadStateError, SourcingError};
use crate::lifecycle::LifecycleEvent;
use crate::store::EventStore;

/// The state of one aggregate at one version.
///
/// If [`Aggregate::apply`] panics inside [`source`](AggregateState::source), the root may have seen a part of a stream: the
/// state must be thrown away.
pub struct AggregateState<A> {
    id: AggregateId,
    root: A,
    around: Around,
}

/// What surrounds the root; replaced as a whole when a stream was applied.
#[derive(Clone, Debug, Default)]
struct Around {
    version: Version,
    owner: Name,
    space: Name,
    deletion: Deletion,
    tags: BTreeMap<Name, Vec<Name>>,
    last_stream: Option<MessageId>,
    first_operator: Name,
    last_operator: Name,
    first_event_at: Timestamp,
    last_event_at: Timestamp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Deletion {
    #[default]
    Existing,
    Deleted,
}

impl<A: Aggregate> AggregateState<A> {
    /// The state before the first event.
    #[must_use]
    pub fn new(id: AggregateId) -> Self {
        Self { id, root: A::default(), around: Around::default() }
    }

    /// Applies the next stream. Events of unknown types are skipped; a first stream of nothing but failures changes nothing.
    ///
    /// # Errors
    /// [`SourcingError`] if the stream is of another aggregate or not the next one; the state is unchanged then.
    pub fn source(&mut self, stream: &EventStream) -> Result<(), SourcingError> {
        if *stream.aggregate_id() != self.id {
            return Err(SourcingError::OtherAggregate {
                stream: stream.id(),
                expected: self.id.clone().into(),
                given: stream.aggregate_id().clone().into(),
            });
        }
        if stream.version() != self.version().next() {
            return Err(SourcingError::VersionConflict {
                stream: stream.id(),
                aggregate_id: self.id.clone().into(),
                expected: self.version().next(),
                given: stream.version(),
            });
        }
        if stream.version() == Version::INITIAL && stream.is_only_errors() {
            return Ok(());
        }
        for event in stream.events() {
            if let Some(event) = event.body_as::<A::Event>() {
                self.root.apply(event);
            }
        }
        self.around.advance(stream);
        Ok(())
    }
}

impl<A> AggregateState<A> {
    /// Whose state it is.
    #[must_use]
    pub fn id(&self) -> &AggregateId {
        &self.id
    }

    /// The aggregate's root.
    #[must_use]
    pub fn root(&self) -> &A {
        &self.root
    }

    /// How many streams were applied.
    #[must_use]
    pub fn version(&self) -> Version {
        self.around.version
    }

    /// Who it belongs to; empty if to nobody.
    #[must_use]
    pub fn owner(&self) -> &Name {
        &self.around.owner
    }

    /// The space it lives in; empty if in none.
    #[must_use]
    pub fn space(&self) -> &Name {
        &self.around.space
    }

    /// Whether it was deleted, and not recovered since.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.around.deletion == Deletion::Deleted
    }

    /// Its tags.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<Name, Vec<Name>> {
        &self.around.tags
    }

    /// The stream that led to this version.
    #[must_use]
    pub fn last_stream(&self) -> Option<MessageId> {
        self.around.last_stream
    }

    /// Who created it; empty if unknown.
    #[must_use]
    pub fn first_operator(&self) -> &Name {
        &self.around.first_operator
    }

    /// Who changed it last; empty if unknown.
    #[must_use]
    pub fn last_operator(&self) -> &Name {
        &self.around.last_operator
    }

    /// When it was created.
    #[must_use]
    pub fn first_event_at(&self) -> Timestamp {
        self.around.first_event_at
    }

    /// When it changed last.
    #[must_use]
    pub fn last_event_at(&self) -> Timestamp {
        self.around.last_event_at
    }
}

impl Around {
    fn advance(&mut self, stream: &EventStream) {
        let operator = stream.header().get(keys::OPERATOR);
        if !self.version.is_initialised() {
            self.owner = stream.owner().clone();
            self.space = stream.space().clone();
            self.first_operator = operator.map_or(Name::EMPTY, Name::copied);
            self.first_event_at = stream.create_time();
        }
        for event in stream.events() {
            match event.body_as::<LifecycleEvent>() {
                Some(LifecycleEvent::Deleted) => self.deletion = Deletion::Deleted,
                Some(LifecycleEvent::Recovered) => self.deletion = Deletion::Existing,
                Some(LifecycleEvent::OwnerTransferred { to }) => self.owner = to.clone(),
                Some(LifecycleEvent::SpaceTransferred { to }) => self.space = to.clone(),
                Some(LifecycleEvent::TagsApplied { tags }) => self.tags.clone_from(tags),
                None => {}
            }
        }
        self.last_operator = operator.map_or(Name::EMPTY, Name::copied);
        self.last_event_at = stream.create_time();
        self.last_stream = Some(stream.id());
        self.version = stream.version();
    }
}

impl<A> fmt::Debug for AggregateState<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregateState")
            .field("id", &self.id)
            .field("around", &self.around)
            .finish_non_exhaustive()
    }
}

/// The latest state of an aggregate, sourced from all its streams; version 0 if it has none.
///
/// # Errors
/// [`LoadStateError`] if the streams cannot be loaded, or do not follow each other.
pub async fn load_state<A: Aggregate>(
    store: &(impl EventStore + ?Sized),
    id: AggregateId,
) -> Result<AggregateState<A>, LoadStateError> {
    let streams = store.load(&id, Version::INITIAL..=Version::MAX).await?;
    let mut state = AggregateState::new(id);
    for stream in &streams {
        state.source(stream)?;
    }
    Ok(state)
}
