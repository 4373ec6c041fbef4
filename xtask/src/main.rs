//! The task runner: every check, long run and measurement of this repository, one subcommand each.
//!
//! It owns the command lines (which flags, which environment, which order) so that a person, the hook and
//! the hosted checks all run the same thing. Invariant: no subcommand writes to the work tree, unless its `--out` says where. It depends on
//! no crate of this workspace, so that it still builds when one of them does not.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool: printing is its job")]

mod flags;
mod shell;

mod verify;

mod layers;
mod msrv;
mod tidy;

mod bench;
mod instructions;
mod loom;
mod mutants;
mod shuttle;
mod stress;

mod finding;
mod markdown;
mod workspace;

use std::process::ExitCode;

use finding::Finding;
use flags::Task;
use workspace::Workspace;

/// Exit code of a task that ran and found something wrong.
const FAILED: u8 = 1;
/// Exit code of a command line that names nothing we can run.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let task = match flags::parse(std::env::args().skip(1)) {
        Ok(task) => task,
        Err(error) => {
            eprintln!("error: {error}\n\n{}", flags::usage());
            return ExitCode::from(USAGE);
        }
    };
    if let Task::List = task {
        println!("{}", flags::usage());
        return ExitCode::SUCCESS;
    }
    let workspace = match Workspace::load() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(FAILED);
        }
    };
    match task {
        Task::List => ExitCode::SUCCESS,
        Task::Verify { steps } => verdict(verify::run(&workspace, &steps)),
        Task::Layers => report("layers", &layers::check(&workspace)),
        Task::Msrv => report("msrv", &msrv::check(&workspace)),
        Task::Tidy => report("tidy", &tidy::check(&workspace)),
        Task::Loom(depth) => verdict(loom::command(&workspace, depth).run().success),
        Task::Shuttle(wanted) => verdict(shuttle::run(&workspace, &wanted)),
        Task::Stress { seconds, seed } => verdict(stress::run(&workspace, seconds, seed)),
        Task::Bench { name } => match bench::command(&workspace, name.as_deref()) {
            Ok(command) => verdict(command.run().success),
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(USAGE)
            }
        },
        Task::BenchInstructions { out } => verdict(instructions::run(&workspace, out.as_deref())),
        Task::BenchVisibility => verdict(instructions::visibility(&workspace)),
        Task::Mutants { arguments } => verdict(mutants::command(&workspace, &arguments).run().success),
        Task::BenchGrowth { arguments } => {
            verdict(bench::growth(&workspace, &arguments).into_iter().all(|command| command.run().success))
        }
        Task::BenchPeers { arguments } => {
            verdict(bench::peers(&workspace, &arguments).into_iter().all(|command| command.run().success))
        }
    }
}

fn verdict(success: bool) -> ExitCode {
    if success { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

fn report(task: &str, findings: &[Finding]) -> ExitCode {
    finding::print(task, findings);
    verdict(findings.is_empty())
}
