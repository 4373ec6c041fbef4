//! What is told of a violation of a key's order, what is counted, and who is called.
//!
//! Numbers, a label and a line of text: nothing here keeps a key or a message. Whether something is a violation is the parent file.

use std::fmt::{self, Debug};

use crate::sync::Arc;

/// What an auditor found: a defect of the executor, or of a key that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misorder {
    /// The label of the dispatch or keyspace.
    pub dispatch: String,
    /// The key as its `Debug` writes it, cut to a line of at most 200 bytes.
    pub key: String,
    /// What happened.
    pub what: Violation,
}

/// What happened to the order of a key. Messages are numbered as their dispatch or keyspace accepted them, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A message was started after one that had been accepted later.
    Overtaken {
        /// The message that was started.
        started: u64,
        /// The one that was started before it.
        after: u64,
    },
    /// A message was started while another one of its key had not ended.
    Overlap {
        /// The message that was started.
        started: u64,
    },
}

impl fmt::Display for Misorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dispatch, key, what } = self;
        match what {
            Violation::Overtaken { started, after } => {
                write!(f, "{dispatch} {key}: message {started} was started after message {after}")
            }
            Violation::Overlap { started } => {
                write!(f, "{dispatch} {key}: message {started} was started before another one had ended")
            }
        }
    }
}

/// What an auditor counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Messages that were checked at their start.
    pub checked: u64,
    /// Those of them whose overlap could not be ruled out: no cell was free, or the other key could not be read.
    pub unclear: u64,
    /// Violations found.
    pub violations: u64,
}

/// Who is told of violations.
#[derive(Clone)]
pub(crate) struct OnMisorder(Arc<dyn Fn(&Misorder) + Send + Sync>);

impl OnMisorder {
    pub(crate) fn new(hook: impl Fn(&Misorder) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    pub(super) fn tell(&self, misorder: &Misorder) {
        (self.0)(misorder);
    }
}

impl Debug for OnMisorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnMisorder")
    }
}
