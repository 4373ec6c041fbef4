//! The rejected rows: counted always, listed in a file if the user asked for it.
//!
//! Owns the list and the file it is made in. Invariants: the file has one line for each rejected row, in the order of
//! the input, with the row's line number and the reason; a file that was there stays as it was until the list is whole;
//! a file the run reads or reports to is never written. The list is kept until the end, because refusals come back in no
//! order.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::file_id::FileId;
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
    target: Target,
    rows: Vec<(u64, Box<str>)>,
}

/// Where the list goes.
#[derive(Debug)]
enum Target {
    /// A new file, which takes the place of what is there.
    File { draft: Draft, place: PathBuf },
    /// A pipe or a device: nothing can take its place, and nothing in it can be lost.
    Stream(File),
}

impl Rejected {
    /// Counts only.
    pub(crate) fn counted() -> Self {
        Self { n_rows: 0, list: None }
    }

    /// Lists the rows in a file at `path`, which must be none of `taken`, each with the flag or stream it belongs to.
    ///
    /// # Errors
    /// If it is one of them, if it is `-`, or if it cannot be written.
    pub(crate) fn listed(path: &Path, taken: &[(&str, Option<FileId>)]) -> Result<Self, Problem> {
        if path == Path::new("-") {
            return Err(refused(path, "standard output is for the report, name a file"));
        }
        let id = FileId::of(path);
        if let Some((whose, _)) = taken.iter().find(|(_, taken)| id.is_some() && *taken == id) {
            return Err(refused(path, format_args!("is the file of {whose}, and would be overwritten")));
        }
        let target = Target::at(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { n_rows: 0, list: Some(List { path: path.to_owned(), target, rows: Vec::new() }) })
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

    /// Writes the list, if there is one, and puts it in its place.
    ///
    /// # Errors
    /// If it cannot be written whole; a file that was there is then as it was.
    pub(crate) fn write(self) -> Result<(), Problem> {
        let Some(List { path, target, mut rows }) = self.list else { return Ok(()) };
        rows.sort_unstable();
        let written = match target {
            Target::File { draft, place } => write_rows(&draft.file, &rows).and_then(|()| draft.put(&place)),
            Target::Stream(file) => write_rows(&file, &rows),
        };
        written.map_err(|error| cannot_write(&path, &error))
    }
}

impl Target {
    /// Opens what is needed to write to `path`, and changes nothing there.
    fn at(path: &Path) -> io::Result<Self> {
        let there = match path.metadata() {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                return Ok(Self::File { draft: Draft::beside(path)?, place: path.to_owned() });
            }
            Err(error) => return Err(error),
        };
        // A file that may not be written may not be replaced either.
        let file = OpenOptions::new().write(true).open(path)?;
        if !there.is_file() {
            return Ok(Self::Stream(file));
        }
        // What a symbolic link leads to is replaced, not the link.
        let place = path.canonicalize()?;
        let draft = Draft::beside(&place)?;
        draft.file.set_permissions(there.permissions())?;
        Ok(Self::File { draft, place })
    }
}

/// A file that is removed unless it is put in its place.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    /// In the folder of `place`, so that it can be renamed.
    fn beside(place: &Path) -> io::Result<Self> {
        let names_no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
        let mut name = std::ffi::OsString::from(".");
        name.push(place.file_name().ok_or_else(names_no_file)?);
        name.push(format!(".{}.tmp", std::process::id()));
        let path = place.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { path, file })
    }

    fn put(self, place: &Path) -> io::Result<()> {
        fs::rename(&self.path, place)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Not found if it was put in its place; if it cannot be removed, there is nobody to tell.
        let _ = fs::remove_file(&self.path);
    }
}

fn write_rows(file: impl Write, rows: &[(u64, Box<str>)]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(file);
    for (line, reason) in rows {
        writer.write_record([line.to_string().as_str(), reason])?;
    }
    writer.flush()
}

fn refused(path: &Path, text: impl fmt::Display) -> Problem {
    Problem::new(format_args!("--rejected {}", path.display()), text)
}

fn cannot_write(path: &Path, error: &io::Error) -> Problem {
    refused(path, format_args!("cannot be written: {error}"))
}
