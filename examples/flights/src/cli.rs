//! The flags: what the user asks for.
//!
//! Plain data. Invariant: a wrong flag is one line on standard error. It opens nothing.

use std::path::PathBuf;

use clap::Parser;
use clap::error::ErrorKind;

/// Real departures from New York as commands: in order per aircraft, in parallel across aircraft.
///
/// Reads January 2013, or the file of --input, and prints a table of carriers, the totals and the ledger
/// rows = handled + rejected. Ctrl-C finishes what was read and reports it; a second one ends at once.
///
/// Exit codes: 0 a complete report; 1 a mistake of this program; 2 a wrong flag, file or configuration, one line for each
/// problem; 130 interrupted, with a report of what was read.
#[derive(Debug, Parser)]
#[command(name = "flights", version, verbatim_doc_comment)]
pub(crate) struct Flags {
    /// The table of departures, as CSV or gzip of it; `-` is standard input [default: January 2013, built in]
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// A TOML or YAML file with a section wow.dispatch; the variables WOW_DISPATCH_* override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Write every rejected row here, as CSV without a header: its line in the input, the reason. The file is replaced at
    /// the end of a run with a report, and must not be one of the others
    #[arg(long, value_name = "FILE")]
    pub(crate) rejected: Option<PathBuf>,

    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do if the flags do not say what to run.
pub(crate) enum NoRun {
    /// Print this text on standard output: help or version.
    Print(String),
    /// Print this line on standard error.
    Wrong(String),
}

/// Reads the flags of this process.
pub(crate) fn flags() -> Result<Flags, NoRun> {
    Flags::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => NoRun::Print(error.to_string()),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            NoRun::Wrong(first.trim_start_matches("error: ").to_owned())
        }
    })
}
