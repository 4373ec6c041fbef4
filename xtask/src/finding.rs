//! A finding: one thing that a check of this tool objects to, with the place where to change it.
//!
//! It owns how findings are printed. It does not decide what is wrong; each check does.

use std::fmt;

/// One objection. `file` is relative to the root of the repository, with forward slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) file: String,
    /// Counted from one; absent where the whole file is meant.
    pub(crate) line: Option<usize>,
    pub(crate) text: String,
}

impl Finding {
    /// An objection to one line.
    pub(crate) fn at(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: Some(line), text: text.into() }
    }

    /// An objection to a whole file, or to its absence.
    pub(crate) fn file(file: &str, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// Prints the findings of one check, and one line that sums them up.
pub(crate) fn print(check: &str, findings: &[Finding]) {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("{check}: nothing to object to"),
        1 => println!("{check}: 1 finding"),
        n => println!("{check}: {n} findings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_file_and_line() {
        assert_eq!(Finding::at("a/b.rs", 3, "no header").to_string(), "a/b.rs:3: no header");
        assert_eq!(Finding::file("a/b.rs", "missing").to_string(), "a/b.rs: missing");
    }
}
