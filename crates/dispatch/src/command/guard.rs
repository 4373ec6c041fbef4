//! The guards between a command and its aggregate: which state takes which command (CA-5).
//!
//! A pure function of what the command says and what surrounds the root. The first guard in the way decides; their order is
//! part of the contract.

use wow_eventsourcing::Spaces;
use wow_message::{AggregateId, Command, Creation, Name, Version, codes};

use crate::command::instance::View;
use crate::decide::CommandMode;

/// An aggregate is not in a state in which it takes the command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardRefusal {
    /// The command is meant for another version.
    #[error("{aggregate_id} is at version {actual}, the command expects {expected}")]
    ExpectVersionConflict {
        /// Whose version.
        aggregate_id: Box<AggregateId>,
        /// The version that the command names.
        expected: Version,
        /// The aggregate's version.
        actual: Version,
    },
    /// The aggregate does not exist, and the command does not create it.
    #[error("{0} does not exist")]
    NotFound(Box<AggregateId>),
    /// The command speaks for another owner.
    #[error("{0} belongs to another owner")]
    IllegalAccessOwner(Box<AggregateId>),
    /// The command is meant for another space.
    #[error("{0} lives in another space")]
    IllegalAccessSpace(Box<AggregateId>),
    /// The aggregate is not deleted, so it cannot be recovered.
    #[error("{0} is not deleted")]
    NotDeleted(Box<AggregateId>),
    /// The aggregate is deleted.
    #[error("{0} is deleted")]
    IllegalAccessDeleted(Box<AggregateId>),
    /// The aggregate has no function for commands of this type.
    #[error("{aggregate_id} has no function for command '{command}'")]
    UnknownCommand {
        /// The aggregate.
        aggregate_id: Box<AggregateId>,
        /// The command's name.
        command: Name,
    },
}

impl GuardRefusal {
    /// What kind of failure it is, for programs; see [`codes`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ExpectVersionConflict { .. } => codes::COMMAND_EXPECT_VERSION_CONFLICT,
            Self::NotFound(_) => codes::NOT_FOUND,
            Self::IllegalAccessOwner(_) => codes::ILLEGAL_ACCESS_OWNER,
            Self::IllegalAccessSpace(_) => codes::ILLEGAL_ACCESS_SPACE,
            Self::NotDeleted(_) => codes::ILLEGAL_STATE,
            Self::IllegalAccessDeleted(_) => codes::ILLEGAL_ACCESS_DELETED,
            Self::UnknownCommand { .. } => codes::ILLEGAL_ARGUMENT,
        }
    }
}

/// Whether an aggregate of this view takes the command; `mode` is that of the command's function, if there is one.
pub(super) fn check(
    view: &View<'_>,
    command: &Command,
    mode: Option<CommandMode>,
) -> Result<(), GuardRefusal> {
    let aggregate_id = || Box::new(command.aggregate_id().clone());
    let differs = |given: &Name, held: &Name| !given.is_empty() && given != held;
    if let Some(expected) = command.expected_version() {
        if expected != view.version {
            let actual = view.version;
            return Err(GuardRefusal::ExpectVersionConflict {
                aggregate_id: aggregate_id(),
                expected,
                actual,
            });
        }
    }
    if view.version.is_initialised() {
        if differs(command.owner(), view.owner) {
            return Err(GuardRefusal::IllegalAccessOwner(aggregate_id()));
        }
        if view.spaces == Spaces::Separate && differs(command.space(), view.space) {
            return Err(GuardRefusal::IllegalAccessSpace(aggregate_id()));
        }
    } else if command.creation() == Creation::MustExist {
        return Err(GuardRefusal::NotFound(aggregate_id()));
    }
    match (mode, view.is_deleted) {
        (Some(CommandMode::Recover), false) => Err(GuardRefusal::NotDeleted(aggregate_id())),
        (Some(CommandMode::Recover), true) | (Some(_), false) => Ok(()),
        (_, true) => Err(GuardRefusal::IllegalAccessDeleted(aggregate_id())),
        (None, false) => Err(GuardRefusal::UnknownCommand {
            aggregate_id: aggregate_id(),
            command: command.name().clone(),
        }),
    }
}
