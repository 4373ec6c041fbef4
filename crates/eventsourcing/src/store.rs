//! `EventStore`: the contract of every store, object-safe.
//!
//! Owns no storage. The prose is on the crate's page; the module `conformance` checks it.

use std::ops::RangeInclusive;

use wow_message::{AggregateId, Answer, EventStream, NamedAggregate, RequestId, Timestamp, Version};

use crate::error::{AppendError, LoadError};

/// Keeps the event streams of aggregates.
pub trait EventStore: Send + Sync + 'static {
    /// Appends a stream: entirely or not at all.
    ///
    /// Versions may have gaps, but only rise. The same request may be answered by different aggregates.
    ///
    /// # Errors
    /// [`AppendError`]; after [`AppendError::Store`] it is unknown whether the stream was written.
    ///
    /// # Cancel safety
    /// Dropping the answer leaves open whether the stream was written.
    fn append(&self, stream: EventStream) -> Answer<Result<(), AppendError>>;

    /// Copies of the streams with a version in this range, in order; empty for an aggregate that is unknown.
    ///
    /// # Errors
    /// [`LoadError::InvertedRange`] if the range ends before it begins; [`LoadError::Store`].
    fn load(
        &self,
        id: &AggregateId,
        versions: RangeInclusive<Version>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>>;

    /// Copies of the streams made in this range of time, in order of versions.
    ///
    /// # Errors
    /// As for [`load`](EventStore::load).
    fn load_by_time(
        &self,
        id: &AggregateId,
        times: RangeInclusive<Timestamp>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>>;

    /// A copy of the stream with the highest version.
    ///
    /// # Errors
    /// [`LoadError::Store`].
    fn last(&self, id: &AggregateId) -> Answer<Result<Option<EventStream>, LoadError>>;

    /// Whether a stream of this aggregate answers this request.
    ///
    /// # Errors
    /// [`LoadError::Store`].
    fn exists_request_id(&self, id: &AggregateId, request_id: &RequestId) -> Answer<Result<bool, LoadError>>;

    /// At most `limit` aggregates of this type that come after `after`, each once, ordered by id and then tenant.
    ///
    /// # Errors
    /// [`LoadError::Store`].
    fn scan(
        &self,
        aggregate: NamedAggregate,
        after: Option<&AggregateId>,
        limit: usize,
    ) -> Answer<Result<Vec<AggregateId>, LoadError>>;
}
