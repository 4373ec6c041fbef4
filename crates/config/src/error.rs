//! What was refused: every problem of one load, each on one line.
//!
//! Plain data. Invariants: an error has at least one problem; the text of a problem has no line break, whatever the
//! file or the variable held. It does not decide what is wrong.

use std::error::Error;
use std::fmt;

use crate::loader::Origin;

/// Everything that was wrong; its text has one line for each problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub(crate) problems: Vec<Problem>,
}

impl ConfigError {
    /// The problems, files first in the order they were given, each from top to bottom, then the environment.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl Error for ConfigError {}

/// One problem: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file and line, or the variable.
    pub origin: Origin,
    /// What was refused and why.
    pub refusal: Refusal,
}

/// What was refused and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The file cannot be read; it may be missing, or a folder.
    Unreadable {
        /// The system's reason.
        reason: String,
    },
    /// The file is longer than a configuration can be.
    TooLong {
        /// The most bytes that are read.
        max_bytes: u64,
    },
    /// The file has no content at all.
    Empty,
    /// File or variable hold bytes that are no UTF-8.
    NotUtf8,
    /// The name of the file does not tell a known format.
    UnknownFormat,
    /// The file is not well-formed.
    Malformed {
        /// The key at that place, if it is one of ours, and what it accepts.
        key: Option<(String, String)>,
        /// The parser's reason.
        reason: String,
    },
    /// A key that does not exist.
    UnknownKey {
        /// The full key as it was written.
        key: String,
        /// What was most likely meant.
        meant: Option<String>,
        /// The keys there are, in words.
        accepted: String,
    },
    /// A key that was set before in the same file.
    SetTwice {
        /// The full key.
        key: String,
        /// The second value as it was written.
        value: String,
        /// The line of the first.
        first: usize,
    },
    /// A value that the key does not accept.
    Value {
        /// The full key.
        key: String,
        /// The value as it was written.
        value: String,
        /// What is accepted.
        accepted: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}: {}", self.origin, self.refusal);
        // One line for each problem, whatever a name or a value contains.
        for c in text.chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => write!(f, "cannot be read: {reason}"),
            Self::TooLong { max_bytes } => write!(f, "is longer than {max_bytes} bytes"),
            Self::Empty => f.write_str("the file is empty, accepted is a section wow.dispatch"),
            Self::NotUtf8 => f.write_str("is not UTF-8 text"),
            Self::UnknownFormat => f.write_str("the format is unknown, accepted are .toml, .yaml and .yml"),
            Self::Malformed { key: None, reason } => f.write_str(reason),
            Self::Malformed { key: Some((key, accepted)), reason } => {
                write!(f, "{key}: {reason}, accepted is {accepted}")
            }
            Self::UnknownKey { key, meant: Some(meant), .. } => {
                write!(f, "{key} is not a key, did you mean {meant}?")
            }
            Self::UnknownKey { key, meant: None, accepted } => {
                write!(f, "{key} is not a key, accepted are {accepted}")
            }
            Self::SetTwice { key, value, first } => {
                write!(f, "{key} is set again to {value}, first on line {first}, accepted is one value")
            }
            Self::Value { key, value, accepted } => write!(f, "{key} is {value}, accepted is {accepted}"),
        }
    }
}
