//! The criterion benches, all of them or one by name.
//!
//! It owns the command line only. What a number means is said in the header of each bench; what was measured, with
//! machine and commit, is in docs/performance.md.

use crate::shell::Shell;
use crate::workspace::Workspace;

const PACKAGE: &str = "wow-benches";

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
    fn an_unknown_bench_is_refused_with_the_list() {
        assert_eq!(
            command(&workspace(), Some("windo")).unwrap_err(),
            "no bench `windo`, there are: mailbox, window"
        );
    }
}
