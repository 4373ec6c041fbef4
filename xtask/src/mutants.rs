//! Changes made to the executor by a tool, which its tests have to notice.
//!
//! It owns the command line only: which changes are made and which tests judge them is .cargo/mutants.toml, what
//! survived and why is in docs/mutants.md. The tool is cargo-mutants, to be installed by whoever wants it; all
//! changes take hours, `--shard K/N` takes a part. Invariant: the work tree stays as it is, the tool works on a copy.

use crate::shell::Shell;
use crate::workspace::Workspace;

/// Seconds for the tests of one change: far beyond what they take, and a change that makes them hang is caught.
const TIMEOUT: &str = "120";

/// The tool on the executor, with the arguments as given.
pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Shell {
    let out = workspace.target.join("mutants");
    let command =
        Shell::cargo(&workspace.root, "mutants --package keyed-executor --sharding round-robin --timeout")
            .argument(TIMEOUT)
            .argument("--output")
            .argument(out.to_string_lossy())
            .env("STRESS_SECONDS", "1");
    arguments.iter().fold(command, |command, argument| command.argument(argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_gets_the_arguments_as_given_and_writes_beside_the_tree() {
        let workspace = Workspace { root: "w".into(), target: "w/target".into(), packages: Vec::new() };
        let line = command(&workspace, &["--shard".to_owned(), "0/50".to_owned()]).line();
        assert!(line.starts_with("STRESS_SECONDS=1 cargo mutants --package keyed-executor "), "{line}");
        assert!(line.ends_with(" --output w/target/mutants --shard 0/50"), "{line}");
    }
}
