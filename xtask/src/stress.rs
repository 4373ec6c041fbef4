//! The stress run: random keys and handlers for a while, every single id checked.
//!
//! It owns the seed: drawn if none is given, printed before and after, handed to the test. Invariant: a run can be
//! repeated from what it printed. The load and its checks are crates/keyed-executor/tests/stress_ordering.rs.

use std::hash::{BuildHasher, RandomState};

use crate::shell::Shell;
use crate::workspace::Workspace;

/// Runs for that many seconds and tells whether every check held.
pub(crate) fn run(workspace: &Workspace, seconds: u64, seed: Option<u64>) -> bool {
    // The standard library's hasher is seeded by the operating system: one draw is one seed.
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(seconds));
    println!("seed {seed}, {seconds} s");
    let success = command(workspace, seconds, seed).run().success;
    println!("repeat with: cargo xtask stress --seconds {seconds} --seed {seed}");
    success
}

fn command(workspace: &Workspace, seconds: u64, seed: u64) -> Shell {
    let arguments = "test --locked --release -p keyed-executor --test stress_ordering -- --nocapture";
    Shell::cargo(&workspace.root, arguments)
        .env("STRESS_SECONDS", seconds.to_string())
        .env("STRESS_SEED", seed.to_string())
        .counting_tests()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_seed_reach_the_test() {
        let workspace = Workspace { root: "w".into(), target: "w/target".into(), packages: Vec::new() };
        let line = command(&workspace, 5, 7).line();
        assert!(line.starts_with("STRESS_SECONDS=5 STRESS_SEED=7 cargo test --locked --release "), "{line}");
    }
}
