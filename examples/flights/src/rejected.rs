//! The rejected rows: counted always, listed in a file if the user asked for it.
//!
//! Owns the list. Invariant: the file has one line for each rejected row, in the order of the input, with the row's line
//! number and the reason. The list is kept until the end, because refusals come back in no order.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// Counts and lists.
#[derive(Debug)]
pub(crate) struct Rejected {
    n_rows: u64,
    list: Option<List>,
}

#[derive(Debug)]
struct List {
    path: PathBuf,
    file: File,
    rows: Vec<(u64, Box<str>)>,
}

impl Rejected {
    /// Counts only.
    pub(crate) fn counted() -> Self {
        Self { n_rows: 0, list: None }
    }

    /// Lists the rows in a new file at `path`, which must not be the input.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn listed(path: &Path, input: Option<&Path>) -> Result<Self, Problem> {
        let same =
            |input: &Path| matches!((path.canonicalize(), input.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if input.is_some_and(same) {
            return Err(Problem::new(path.display(), "is the input, and would be overwritten by --rejected"));
        }
        let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { n_rows: 0, list: Some(List { path: path.to_owned(), file, rows: Vec::new() }) })
    }

    pub(crate) fn add(&mut self, line: u64, reason: &impl fmt::Display) {
        self.n_rows += 1;
        if let Some(list) = &mut self.list {
            list.rows.push((line, reason.to_string().into()));
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.n_rows
    }

    /// Writes the list, if there is one.
    ///
    /// # Errors
    /// If it cannot be written whole.
    pub(crate) fn write(self) -> Result<(), Problem> {
        let Some(List { path, file, mut rows }) = self.list else { return Ok(()) };
        rows.sort_unstable();
        let mut writer = csv::Writer::from_writer(file);
        let mut write_all = || -> io::Result<()> {
            for (line, reason) in &rows {
                writer.write_record([line.to_string().as_str(), reason])?;
            }
            writer.flush()
        };
        write_all().map_err(|error| cannot_write(&path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Problem {
    Problem::new(path.display(), format_args!("cannot be written: {error}"))
}
