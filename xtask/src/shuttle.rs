//! The whole executor under shuttle: how it is compiled, and which seeds are run.
//!
//! It owns the cfg, the profile and the seed: drawn if none is given, printed before and after, handed to the runs.
//! Invariant: a failure can be repeated from what was printed. As the models of loom, the runs have a target folder of
//! their own. What is run is crates/keyed-executor/src/tests/shuttle_executor.rs.

use std::hash::{BuildHasher, RandomState};

use crate::shell::Shell;
use crate::workspace::Workspace;

/// What every run's name begins with.
const RUNS: &str = "shuttle_";

/// Which runs, for how many seeds each, beginning with which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// All of them, if there is none.
    pub(crate) name: Option<String>,
    pub(crate) iterations: u64,
    /// Without one, one is drawn.
    pub(crate) seed: Option<u64>,
}

/// Runs them and tells whether every check held.
pub(crate) fn run(workspace: &Workspace, wanted: &Wanted) -> bool {
    // The standard library's hasher is seeded by the operating system: one draw is one seed.
    let seed = wanted.seed.unwrap_or_else(|| RandomState::new().hash_one(wanted.iterations));
    println!("{} seeds from {seed}", wanted.iterations);
    let success = command(workspace, wanted, seed).run().success;
    let name = wanted.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    println!("repeat with: cargo xtask shuttle{name} --iterations {} --seed {seed}", wanted.iterations);
    success
}

fn command(workspace: &Workspace, wanted: &Wanted, seed: u64) -> Shell {
    let folder = workspace.target.join("shuttle");
    Shell::cargo(&workspace.root, "test --locked --profile shuttle -p keyed-executor --lib --target-dir")
        .argument(folder.to_string_lossy())
        .argument(wanted.name.as_deref().unwrap_or(RUNS))
        .env_flags("RUSTFLAGS", "--cfg keyed_shuttle")
        .env("KEYED_SHUTTLE_ITERATIONS", wanted.iterations.to_string())
        .env("KEYED_SHUTTLE_SEED", seed.to_string())
        .counting_tests()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_and_seed_reach_the_runs() {
        let workspace = Workspace { root: "w".into(), target: "w/target".into(), packages: Vec::new() };
        let mut wanted = Wanted { name: None, iterations: 5, seed: Some(7) };
        let line = command(&workspace, &wanted, 7).line();
        assert!(line.contains("--cfg keyed_shuttle"), "{line}");
        assert!(
            line.contains("KEYED_SHUTTLE_ITERATIONS=5 KEYED_SHUTTLE_SEED=7 cargo test --locked"),
            "{line}"
        );
        assert!(line.ends_with("--target-dir w/target/shuttle shuttle_"), "{line}");
        wanted.name = Some("shuttle_close".to_owned());
        assert!(command(&workspace, &wanted, 7).line().ends_with(" shuttle_close"));
    }
}
