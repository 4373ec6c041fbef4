//! The benches of the workspace, all of them or one by name, and the harness that runs the executor beside its peers.
//!
//! It owns the command lines only. What a number means is said in the header of each bench and in the harness; what was
//! measured, with machine and commit, is in docs/performance.md. The harness lies outside the workspace, with a lock
//! file of its own, so that nothing else here is built with what the peers depend on.

use crate::shell::Shell;
use crate::workspace::Workspace;

const PACKAGE: &str = "wow-benches";
/// What stands in the place of a bench's name for the harness.
pub(crate) const PEERS: &str = "peers";
/// The same for the count of instructions.
pub(crate) const INSTRUCTIONS: &str = "instructions";
/// The same for what visibility costs.
pub(crate) const VISIBILITY: &str = "visibility";
/// The same for how cost grows.
pub(crate) const GROWTH: &str = "growth";
/// Messages of the count of memory, and their keys.
const MEMORY: [(&str, &str); 2] = [("MEMORY_MESSAGES", "10000000"), ("MEMORY_KEYS", "1000000")];
const PEERS_MANIFEST: &str = "benches/peers/Cargo.toml";

/// The command that runs the benches.
///
/// # Errors
///
/// There is no bench of that name; the text lists those there are.
pub(crate) fn command(workspace: &Workspace, name: Option<&str>) -> Result<Shell, String> {
    let targets = workspace.package(PACKAGE).map(|package| package.targets.as_slice()).unwrap_or_default();
    let benches: Vec<&str> = targets.iter().filter(|t| t.kind == "bench").map(|t| t.name.as_str()).collect();
    let command = Shell::cargo(&workspace.root, "bench --locked -p wow-benches");
    match name {
        None => Ok(command.argument("--benches")),
        Some(name) if benches.contains(&name) => Ok(command.argument("--bench").argument(name)),
        Some(name) => Err(format!("no bench `{name}`, there are: {}", benches.join(", "))),
    }
}

/// The commands that build the harness and run it: all its programs are built, since one of them starts the other.
pub(crate) fn peers(workspace: &Workspace, arguments: &[String]) -> [Shell; 2] {
    let cargo = |subcommand: &str| {
        let options =
            format!("{subcommand} --release --locked --manifest-path {PEERS_MANIFEST} --target-dir");
        Shell::cargo(&workspace.root, &options).argument(workspace.target.to_string_lossy())
    };
    let run = cargo("run --quiet").argument("--bin").argument("wow-peers").argument("--");
    [cargo("build"), arguments.iter().fold(run, |run, argument| run.argument(argument))]
}

/// The commands that show how cost grows: the count of memory at its full size, then the rates.
pub(crate) fn growth(workspace: &Workspace, arguments: &[String]) -> [Shell; 2] {
    let test = "test --locked --release -p keyed-executor --test memory -- --nocapture";
    let memory = Shell::cargo(&workspace.root, test).counting_tests();
    let memory = MEMORY.iter().fold(memory, |memory, (name, value)| memory.env(name, *value));
    let run = "run --quiet --locked --release -p wow-benches --bin growth --";
    let rates = Shell::cargo(&workspace.root, run);
    [memory, arguments.iter().fold(rates, |rates, argument| rates.argument(argument))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Package, Target};

    fn workspace() -> Workspace {
        let target = |name: &str, kind: &str| {
            let (name, kind) = (name.to_owned(), kind.to_owned());
            Target { name, kind, path: String::new() }
        };
        let targets =
            vec![target("wow_benches", "lib"), target("mailbox", "bench"), target("window", "bench")];
        let package = Package { name: PACKAGE.to_owned(), targets, ..Package::default() };
        Workspace { root: "w".into(), target: "w/target".into(), packages: vec![package] }
    }

    #[test]
    fn one_bench_or_all() {
        assert!(command(&workspace(), Some("window")).unwrap().line().ends_with("--bench window"));
        assert!(command(&workspace(), None).unwrap().line().ends_with("--benches"));
    }

    #[test]
    fn the_peers_are_built_and_run_with_the_arguments_as_given() {
        let [build, run] = peers(&workspace(), &["--out".to_owned(), "a folder".to_owned()]);
        let options = "--release --locked --manifest-path benches/peers/Cargo.toml --target-dir w/target";
        assert!(build.line().ends_with(&format!("cargo build {options}")), "{}", build.line());
        assert!(run.line().contains(&format!("cargo run --quiet {options} --bin wow-peers -- --out ")));
        assert!(run.line().ends_with("'a folder'"), "{}", run.line());
    }

    #[test]
    fn growth_counts_memory_and_measures_rates_with_the_arguments_as_given() {
        let [memory, rates] = growth(&workspace(), &["--rounds".to_owned(), "5".to_owned()]);
        assert!(
            memory.line().starts_with("MEMORY_MESSAGES=10000000 MEMORY_KEYS=1000000 cargo test --locked")
        );
        assert!(rates.line().ends_with("--bin growth -- --rounds 5"), "{}", rates.line());
    }

    #[test]
    fn an_unknown_bench_is_refused_with_the_list() {
        assert_eq!(
            command(&workspace(), Some("windo")).unwrap_err(),
            "no bench `windo`, there are: mailbox, window"
        );
    }
}
