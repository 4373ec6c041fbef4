//! Real departures from New York as commands: in order per aircraft, in parallel across aircraft.
//!
//! ```text
//!   input ──► reading ──► rows ──► RecordLeg ──► Aircraft ──► LegRecorded ──► Carriers
//!  (thread)              (order)   (service)    (aggregate)     (event)      (projection)
//!                           └───────── ledger: rows = handled + rejected ────────┘
//! ```
//!
//! Open first: `aircraft.rs`, the decisions, and `running.rs`, the service. This file turns flags into a run, a run into
//! output, and every problem into one line and an exit code.

#![forbid(unsafe_code)]

mod aircraft;
mod carriers;
mod cli;
mod file_id;
mod input;
mod interrupts;
mod order;
mod problem;
mod progress;
mod reading;
mod rejected;
mod report;
mod rows;
mod running;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use wow_config::Loader;
use wow_dispatch::DispatchConfig;

use crate::cli::{Flags, NoRun};
use crate::file_id::FileId;
use crate::input::Input;
use crate::problem::{EXIT_PROBLEM, Problem};
use crate::reading::Table;
use crate::rejected::Rejected;
use crate::report::{Ending, Report};
use crate::running::{EXIT_INTERRUPTED, NoReport};

/// The exit code of a mistake of ours.
const EXIT_FAULT: u8 = 1;

fn main() -> ExitCode {
    let flags = match cli::flags() {
        Ok(flags) => flags,
        Err(NoRun::Print(text)) => return printed(write!(io::stdout(), "{text}"), ExitCode::SUCCESS),
        Err(NoRun::Wrong(line)) => {
            tell("error", &line);
            return ExitCode::from(EXIT_PROBLEM);
        }
    };
    let job = match Job::of(&flags) {
        Ok(job) => job,
        Err(problems) => {
            problems.iter().for_each(|problem| tell("error", problem));
            return ExitCode::from(EXIT_PROBLEM);
        }
    };
    show_warnings();
    match job.run() {
        Ok(report) => {
            let out = &mut io::stdout().lock();
            let written = if flags.json { report.write_json(out) } else { report.write_table(out) };
            let code = match report.ending {
                Ending::Complete => ExitCode::SUCCESS,
                Ending::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
            };
            printed(written, code)
        }
        Err(NoReport::Problem(problem)) => {
            tell("error", &problem);
            ExitCode::from(EXIT_PROBLEM)
        }
        Err(NoReport::Fault(text)) => {
            tell("fault", &text);
            ExitCode::from(EXIT_FAULT)
        }
        Err(NoReport::Abandoned) => {
            tell("interrupted twice", &"ended without a report");
            ExitCode::from(EXIT_INTERRUPTED)
        }
    }
}

/// Everything that was opened and checked before a row is read.
struct Job {
    table: Table,
    dispatch: DispatchConfig,
    rejected: Rejected,
}

impl Job {
    /// Opens and checks what the flags name.
    fn of(flags: &Flags) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let loader = flags.config.iter().fold(Loader::new(), Loader::file).environment();
        let config = loader.load().map_err(|error| {
            let places = error.problems().iter();
            problems.extend(places.map(|problem| Problem::new(&problem.origin, &problem.refusal)));
        });
        let table = open(flags.input.as_deref()).map_err(|wrong| problems.extend(wrong));
        // Last, and only if all else is well: it makes a file.
        let (Ok(config), Ok(table)) = (config, table) else { return Err(problems) };
        let rejected = match &flags.rejected {
            Some(path) => Rejected::listed(path, &taken(flags)).map_err(|problem| vec![problem])?,
            None => Rejected::counted(),
        };
        Ok(Self { table, dispatch: config.into(), rejected })
    }

    fn run(self) -> Result<Report, NoReport> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(|error| NoReport::Fault(error.to_string()))?;
        runtime.block_on(running::run(self.table, self.dispatch, self.rejected))
    }
}

/// The files of this run that no list may be written to.
fn taken(flags: &Flags) -> [(&'static str, Option<FileId>); 3] {
    let input = match flags.input.as_deref() {
        Some(path) if path == Path::new("-") => FileId::stdin(),
        path => path.and_then(FileId::of),
    };
    let config = flags.config.as_deref().and_then(FileId::of);
    [("--input", input), ("--config", config), ("standard output", FileId::stdout())]
}

fn open(path: Option<&Path>) -> Result<Table, Vec<Problem>> {
    let (input, name) = match path {
        None => (Input::january(), "January 2013".to_owned()),
        Some(path) if path == Path::new("-") => (Input::stdin(), "standard input".to_owned()),
        Some(path) => (Input::file(path), path.display().to_string()),
    };
    let input = input.map_err(|error| vec![Problem::new(format_args!("--input {name}"), error)])?;
    Table::open(input)
}

/// Shows what the libraries warn of on standard error, or what `RUST_LOG` asks for.
fn show_warnings() {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).from_env_lossy();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).init();
}

/// One line on standard error; if even that cannot be written, the exit code has to do.
fn tell(kind: &str, text: &impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{kind}: {text}");
}

/// `code`, unless the output could not be written. A reader that has left, such as `head`, is no problem.
fn printed(written: io::Result<()>, code: ExitCode) -> ExitCode {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            tell("error", &Problem::new("standard output", error));
            ExitCode::from(EXIT_PROBLEM)
        }
        Ok(()) | Err(_) => code,
    }
}
