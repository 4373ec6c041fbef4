//! `ServiceBuildError`: why a service could not be built, every problem at once.

use std::fmt;

use keyed_executor::ConfigError;
use wow_message::{Name, NamedAggregate};
use wow_runtime::BuildError;

use crate::config::limits;

/// A service could not be built: every problem at once.
#[derive(Debug)]
pub struct ServiceBuildError {
    pub(super) problems: Vec<ServiceProblem>,
}

impl ServiceBuildError {
    /// Every problem, in the order of the builder's parts.
    #[must_use]
    pub fn problems(&self) -> &[ServiceProblem] {
        &self.problems
    }
}

impl fmt::Display for ServiceBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ServiceBuildError {}

/// One thing that keeps a service from being built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceProblem {
    /// The bounded context has no name.
    #[error("the bounded context has a blank name")]
    BlankContext,
    /// Two aggregates share a name.
    #[error("aggregate {0} is registered twice")]
    AggregateTwice(NamedAggregate),
    /// An aggregate handles nothing.
    #[error("aggregate {0} has no commands")]
    NoCommands(NamedAggregate),
    /// Two commands of an aggregate share a type or a name.
    #[error("command '{command}' of aggregate {aggregate} is registered twice")]
    CommandTwice {
        /// The aggregate.
        aggregate: NamedAggregate,
        /// The name.
        command: &'static str,
    },
    /// A projection has no name.
    #[error("a projection has a blank name")]
    BlankProjection,
    /// Two projections share a name.
    #[error("projection '{0}' is registered twice")]
    ProjectionTwice(Name),
    /// A projection does nothing.
    #[error("projection '{0}' has no functions")]
    NoFunctions(Name),
    /// Events cannot be kept.
    #[error("there are aggregates but no event store")]
    NoStore,
    /// The executor's configuration is wrong.
    #[error(transparent)]
    Config(ConfigError),
    /// The number of groups is out of range.
    #[error("groups is {0}, accepted is {min} to {max}", min = limits::GROUPS.start(), max = limits::GROUPS.end())]
    Groups(u32),
    /// The byte budget is out of range.
    #[error("max-bytes is {0}, accepted is {min} to {max}", min = limits::MAX_BYTES.start(), max = limits::MAX_BYTES.end())]
    MaxBytes(usize),
    /// There is a byte budget, and nothing says what messages weigh.
    #[error("max-bytes is set, but nothing says what {of} weigh: ServiceBuilder::{told_by}")]
    NoWeigher {
        /// Which messages.
        of: &'static str,
        /// The method that says it.
        told_by: &'static str,
    },
    /// The runtime's times are wrong.
    #[error(transparent)]
    Runtime(BuildError),
}
