//! What can go wrong with a store and with sourcing, one type per operation.

use std::error::Error;

use wow_message::{AggregateId, MessageId, Recoverability, RequestId, Version};

/// A stream was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The version is taken, or lies below one that is.
    #[error("version {version} of {aggregate_id} is taken, the last one is {last}")]
    VersionConflict {
        /// Whose version.
        aggregate_id: Box<AggregateId>,
        /// The version that was to be appended.
        version: Version,
        /// The aggregate's last version.
        last: Version,
    },
    /// The aggregate was created before.
    #[error("{0} exists already")]
    DuplicateAggregateId(Box<AggregateId>),
    /// The request was answered before.
    #[error("request {request_id} to {aggregate_id} was answered before")]
    DuplicateRequestId {
        /// Who answered it.
        aggregate_id: Box<AggregateId>,
        /// The request.
        request_id: RequestId,
    },
    /// The store failed; whether the stream was written is unknown.
    #[error("the event store failed: {cause}")]
    Store {
        /// What failed.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
        /// Whether trying again can help.
        recoverability: Recoverability,
    },
}

impl AppendError {
    /// Whether deciding and appending again can succeed.
    #[must_use]
    pub fn recoverability(&self) -> Recoverability {
        match self {
            Self::VersionConflict { .. } => Recoverability::Recoverable,
            Self::DuplicateAggregateId(_) | Self::DuplicateRequestId { .. } => Recoverability::Unrecoverable,
            Self::Store { recoverability, .. } => *recoverability,
        }
    }
}

/// Streams were not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The range ends before it begins.
    #[error("range ends at {tail}, before it begins at {head}")]
    InvertedRange {
        /// Where the range begins.
        head: u64,
        /// Where it ends.
        tail: u64,
    },
    /// The store failed.
    #[error("the event store failed: {0}")]
    Store(#[source] Box<dyn Error + Send + Sync>),
}

/// A stream does not fit the state it was applied to; the state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourcingError {
    /// The stream belongs to another aggregate.
    #[error("stream {stream} belongs to {given}, not to {expected}")]
    OtherAggregate {
        /// The stream.
        stream: MessageId,
        /// Whose state it is.
        expected: Box<AggregateId>,
        /// Whose stream it is.
        given: Box<AggregateId>,
    },
    /// The stream does not follow the state.
    #[error("stream {stream} brings {aggregate_id} to version {given}, but version {expected} is next")]
    VersionConflict {
        /// The stream.
        stream: MessageId,
        /// Whose state it is.
        aggregate_id: Box<AggregateId>,
        /// The version that is next.
        expected: Version,
        /// The version of the stream.
        given: Version,
    },
}

/// A state was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadStateError {
    /// Its streams could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The stored streams do not follow each other.
    #[error(transparent)]
    Sourcing(#[from] SourcingError),
}
