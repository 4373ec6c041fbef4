//! `CommandFailure`, why a command failed; `CommandError`, the same as its sender sees it; `NotSent`, a command
//! that did not even leave. Invariant: what was not sent comes back.

use std::error::Error;
use std::fmt;

use wow_eventsourcing::{AppendError, LoadError, LoadStateError, SourcingError};
use wow_message::{
    AggregateId, Command, ErrorInfo, IdTooLong, NamedAggregate, Recoverability, RequestId, codes,
};
use wow_transport::SendRefusal;

use crate::command::guard::GuardRefusal;

/// Why a command failed, whatever its type.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// Its aggregate refused it, for this reason.
    #[error("refused: {0}")]
    Refused(String),
    /// The aggregate is not in a state in which it takes the command.
    #[error(transparent)]
    Guard(#[from] GuardRefusal),
    /// No aggregate of this type is handled here.
    #[error("no aggregate {0} is handled here")]
    UnknownAggregate(NamedAggregate),
    /// The request was answered before; the command was not handled again.
    #[error("request {request_id} to {aggregate_id} was answered before")]
    DuplicateRequestId {
        /// Who answered it.
        aggregate_id: Box<AggregateId>,
        /// The request.
        request_id: RequestId,
    },
    /// The state could not be loaded.
    #[error("loading the aggregate failed: {0}")]
    Load(#[from] LoadStateError),
    /// The aggregate or its event panicked; nothing was stored.
    #[error("the aggregate panicked: {0}")]
    Panicked(String),
    /// The events could not be applied; nothing was stored.
    #[error("applying the events failed: {0}")]
    Apply(#[from] SourcingError),
    /// The events were not stored, or it is unknown whether they were.
    #[error("storing the events failed: {append}{}", unread(.read))]
    Append {
        /// What the store answered.
        #[source]
        append: AppendError,
        /// Why it could not be found out whether the events are stored.
        read: Option<LoadError>,
    },
    /// The events are stored, but were not published.
    #[error("publishing the stored events failed: {0}")]
    Publish(#[source] SendRefusal),
    /// The command was dropped before it was handled, or while it was; unless it was being handled, nothing was stored.
    #[error("the command was dropped before it was answered")]
    Dropped,
    /// The service stopped before the command was admitted, or its end was not seen; it may be handled elsewhere.
    #[error("the service stopped before the command was answered")]
    Stopped,
}

fn unread(read: &Option<LoadError>) -> String {
    read.as_ref().map_or_else(String::new, |read| format!("; and reading it back failed: {read}"))
}

impl CommandFailure {
    /// What kind of failure it is, for programs; see [`codes`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => codes::REFUSED,
            Self::Guard(refusal) => refusal.code(),
            Self::UnknownAggregate(_) => codes::ILLEGAL_ARGUMENT,
            Self::DuplicateRequestId { .. } => codes::DUPLICATE_REQUEST_ID,
            Self::Panicked(_) => codes::HANDLER_PANICKED,
            Self::Apply(_) => codes::SOURCING_VERSION_CONFLICT,
            Self::Append { append, .. } => match append {
                AppendError::VersionConflict { .. } => codes::EVENT_VERSION_CONFLICT,
                AppendError::DuplicateAggregateId(_) => codes::DUPLICATE_AGGREGATE_ID,
                AppendError::DuplicateRequestId { .. } => codes::DUPLICATE_REQUEST_ID,
                AppendError::Store { .. } => codes::INFRASTRUCTURE,
            },
            Self::Load(_) | Self::Publish(_) => codes::INFRASTRUCTURE,
            Self::Dropped | Self::Stopped => codes::ILLEGAL_STATE,
        }
    }

    /// Whether sending the command again can succeed.
    #[must_use]
    pub fn recoverability(&self) -> Recoverability {
        match self {
            Self::Append { append, .. } => append.recoverability(),
            Self::Refused(_)
            | Self::Guard(_)
            | Self::UnknownAggregate(_)
            | Self::DuplicateRequestId { .. }
            | Self::Apply(_)
            | Self::Panicked(_) => Recoverability::Unrecoverable,
            Self::Load(_) | Self::Publish(_) | Self::Dropped | Self::Stopped => Recoverability::Unknown,
        }
    }

    /// The failure as data.
    #[must_use]
    pub fn to_error_info(&self) -> ErrorInfo {
        ErrorInfo::new(self.code(), self.to_string()).with_recoverability(self.recoverability())
    }
}

/// Why a sender did not get the reply to its command; `E` is the aggregate's own error.
#[derive(Debug)]
pub enum CommandError<E> {
    /// The aggregate refused.
    Refused(E),
    /// Something else was in the way.
    Failed(CommandFailure),
    /// It was not sent, and comes back.
    NotSent(NotSent),
}

impl<E> CommandError<E> {
    /// The aggregate's own error, if it refused.
    pub fn refusal(&self) -> Option<&E> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) | Self::NotSent(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for CommandError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Failed(failure) => fmt::Display::fmt(failure, f),
            Self::NotSent(not_sent) => fmt::Display::fmt(not_sent, f),
        }
    }
}

impl<E: Error + 'static> Error for CommandError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(failure) => Some(failure),
            Self::NotSent(not_sent) => Some(not_sent),
        }
    }
}

/// A command that was not sent; it is in here.
#[derive(Debug)]
pub struct NotSent {
    reason: NotSentReason,
    command: Command,
}

/// Why a command was not sent.
#[derive(Debug, thiserror::Error)]
pub enum NotSentReason {
    /// The service stops or has stopped.
    #[error("the service does not run")]
    Stopped,
    /// The command's aggregate is not part of this service.
    #[error("the aggregate is not part of this service")]
    UnknownAggregate,
    /// The aggregate's id is longer than ids may be.
    #[error(transparent)]
    IdTooLong(IdTooLong),
    /// The bus refused.
    #[error(transparent)]
    Bus(SendRefusal),
}

impl NotSent {
    pub(crate) fn new(reason: NotSentReason, command: Command) -> Self {
        Self { reason, command }
    }

    /// Why it was not sent.
    #[must_use]
    pub fn reason(&self) -> &NotSentReason {
        &self.reason
    }

    /// Gives the command back; its body is reached by [`Command::body_as`].
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command '{}' was not sent: {}", self.command.name(), self.reason)
    }
}

impl Error for NotSent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.reason)
    }
}
