//! `NamedAggregate`: the name of an aggregate type, reduced to what a pool is cached by.
//!
//! Two texts and nothing else: whatever decorates a named aggregate in the caller's world cannot enter the cache (LS-3).

use std::fmt;

/// A context and an aggregate's name in it: what has one pool.
///
/// Neither a tenant nor an aggregate id takes part, so all aggregates of one type share their pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedAggregate<'a> {
    /// The bounded context.
    pub context: &'a str,
    /// The aggregate's name in it.
    pub aggregate: &'a str,
}

impl fmt::Display for NamedAggregate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.context, self.aggregate)
    }
}
