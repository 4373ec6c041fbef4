//! `ErrorInfo`: a failure as data, fit to be stored, sent and shown, and whether trying again can help.

use std::fmt;

use crate::name::Name;

/// Codes of the failures that the framework itself reports.
pub mod codes {
    /// The command named a version that is not the aggregate's.
    pub const COMMAND_EXPECT_VERSION_CONFLICT: &str = "CommandExpectVersionConflict";
    /// The aggregate does not exist.
    pub const NOT_FOUND: &str = "NotFound";
    /// The aggregate belongs to another owner.
    pub const ILLEGAL_ACCESS_OWNER: &str = "IllegalAccessOwner";
    /// The aggregate lives in another space.
    pub const ILLEGAL_ACCESS_SPACE: &str = "IllegalAccessSpace";
    /// The aggregate is deleted.
    pub const ILLEGAL_ACCESS_DELETED: &str = "IllegalAccessDeletedAggregate";
    /// Something was asked in a state that does not allow it.
    pub const ILLEGAL_STATE: &str = "IllegalState";
    /// Something was asked with a value that is not allowed.
    pub const ILLEGAL_ARGUMENT: &str = "IllegalArgument";
    /// The event store holds this version already.
    pub const EVENT_VERSION_CONFLICT: &str = "EventVersionConflict";
    /// The aggregate exists already.
    pub const DUPLICATE_AGGREGATE_ID: &str = "DuplicateAggregateId";
    /// The request was committed before.
    pub const DUPLICATE_REQUEST_ID: &str = "DuplicateRequestId";
    /// A stream does not follow the state it was applied to.
    pub const SOURCING_VERSION_CONFLICT: &str = "SourcingVersionConflict";
    /// The handler refused for a reason of its own.
    pub const REFUSED: &str = "Refused";
    /// The handler panicked.
    pub const HANDLER_PANICKED: &str = "HandlerPanicked";
    /// A store or bus failed.
    pub const INFRASTRUCTURE: &str = "Infrastructure";
}

/// Whether doing the same again can succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recoverability {
    /// It can: a conflict, a timeout, a lost connection.
    Recoverable,
    /// It cannot: the same input leads to the same failure.
    Unrecoverable,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// A failure as data.
///
/// As the body of an event it marks a failed attempt: a stream of only such events does not create an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorInfo {
    /// What kind of failure, for programs; see [`codes`].
    pub code: Name,
    /// What happened, for people.
    pub message: String,
    /// Failures of single fields: name and what is wrong with it.
    pub bindings: Vec<(Name, String)>,
    /// Whether trying again can help.
    pub recoverability: Recoverability,
}

impl ErrorInfo {
    /// A failure of this kind, of unknown recoverability and without field failures.
    pub fn new(code: impl Into<Name>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            bindings: Vec::new(),
            recoverability: Recoverability::Unknown,
        }
    }

    /// The same failure with a known recoverability.
    #[must_use]
    pub fn with_recoverability(mut self, recoverability: Recoverability) -> Self {
        self.recoverability = recoverability;
        self
    }
}

impl fmt::Display for ErrorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        for (field, what) in &self.bindings {
            write!(f, "; {field}: {what}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ErrorInfo {}
