//! A problem: what keeps the program from its report, on one line that names file and field.
//!
//! Plain data. Invariant: its text has no line break, whatever a name contains.

use std::fmt;

/// The exit code of a run that met a problem.
pub(crate) const EXIT_PROBLEM: u8 = 2;

/// One line for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    place: String,
    text: String,
}

impl Problem {
    pub(crate) fn new(place: impl fmt::Display, text: impl fmt::Display) -> Self {
        Self { place: place.to_string(), text: text.to_string() }
    }

    /// A problem of a line of a file.
    pub(crate) fn at(file: &str, line: u64, text: impl fmt::Display) -> Self {
        Self::new(format_args!("{file}:{line}"), text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in format!("{}: {}", self.place, self.text).chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}
