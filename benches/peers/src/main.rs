//! The program that `cargo xtask bench peers` runs: measures, prints the tables, writes the report where asked.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool: printing is its job")]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use wow_peers::arguments::Arguments;
use wow_peers::behaviour::{self, Behaviour};
use wow_peers::chart;
use wow_peers::report::{self, Report};
use wow_peers::rounds::measure;

/// The program beside this one that counts allocations.
const COUNTER: &str = "wow-peers-allocations";
/// The program beside this one that is a contender's process.
const PROBE: &str = "wow-peers-behaviour";
/// Allocations for a message do not change with the number of messages; few are enough.
const COUNTED_MESSAGES: u32 = 100_000;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = arguments.plan();
    if arguments.behaviour {
        return observe(&arguments);
    }
    let measured = measure(&plan, None, |done| eprintln!("{done}"));
    let counted = match count(&arguments) {
        Ok(text) => report::allocations(&text),
        Err(error) => {
            eprintln!("allocations were not counted: {error}");
            Default::default()
        }
    };
    let report = Report::new(&plan, &measured, &counted, report::surroundings());
    println!("{}", report.markdown());
    if let Some(folder) = &arguments.out
        && let Err(error) = write(folder, &report)
    {
        eprintln!("error: {}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let broken = report.broken();
    for line in &broken {
        eprintln!("broken: {line}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lets another program beside this one show how each contender behaves.
fn observe(arguments: &Arguments) -> ExitCode {
    let plan = arguments.plan();
    let observed = std::env::current_exe().and_then(|program| {
        behaviour::observe(&program.with_file_name(PROBE), &plan, |done| eprintln!("{done}"))
    });
    let written = observed.and_then(|observed| {
        let behaviour = Behaviour::new(&observed, plan.rounds, report::surroundings());
        println!("{}", behaviour.markdown());
        let Some(folder) = &arguments.out else { return Ok(()) };
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("behaviour.md"), behaviour.markdown())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: behaviour was not told: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Lets the program beside this one run the same contenders on the same workloads.
fn count(arguments: &Arguments) -> std::io::Result<String> {
    let program = std::env::current_exe()?.with_file_name(COUNTER);
    let plan = arguments.plan();
    let workloads: Vec<&str> = plan.workloads.iter().map(|workload| workload.name()).collect();
    let messages = arguments.messages.min(COUNTED_MESSAGES).to_string();
    let output = Command::new(program)
        .args(["--workloads", &workloads.join(","), "--contenders", &plan.contenders.join(",")])
        .args(["--messages", &messages, "--millis", &arguments.millis.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(std::io::Error::other(format!("{COUNTER} ended with {}", output.status)))
    }
}

fn write(folder: &Path, report: &Report) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("peers.json"), report.json())?;
    std::fs::write(folder.join("peers.md"), report.markdown())?;
    std::fs::write(folder.join("peers.svg"), chart::svg(report))
}
