//! The loom models: how they are compiled and how far they explore.
//!
//! It owns the cfg, the profile and the bounds. Invariant: models have a target folder of their own, since their
//! flags reach every dependency and would otherwise rebuild the workspace twice. The models themselves, and what
//! each looks for, are in crates/keyed-executor/src/tests.

use crate::flags::Depth;
use crate::shell::Shell;
use crate::workspace::Workspace;

/// The command that runs the models of one depth.
pub(crate) fn command(workspace: &Workspace, depth: Depth) -> Shell {
    let (preemptions, full) = match depth {
        Depth::Fast => ("2", "0"),
        Depth::Full => ("3", "1"),
    };
    let folder = workspace.target.join("loom");
    let command =
        Shell::cargo(&workspace.root, "test --locked --profile loom -p keyed-executor --lib --target-dir")
            .argument(folder.to_string_lossy())
            .argument("loom_")
            .env_flags("RUSTFLAGS", "--cfg keyed_loom")
            .env("LOOM_MAX_PREEMPTIONS", preemptions)
            .env("KEYED_LOOM_FULL", full)
            .counting_tests();
    match depth {
        Depth::Fast => command.argument("--").argument("--skip").argument("_full"),
        Depth::Full => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace { root: "w".into(), target: "w/target".into(), packages: Vec::new() }
    }

    #[test]
    fn the_fast_set_leaves_out_the_full_models() {
        let line = command(&workspace(), Depth::Fast).line();
        assert!(line.contains("--cfg keyed_loom"), "{line}");
        assert!(line.contains("LOOM_MAX_PREEMPTIONS=2 KEYED_LOOM_FULL=0 cargo test"), "{line}");
        assert!(line.ends_with("--target-dir w/target/loom loom_ -- --skip _full"), "{line}");
    }

    #[test]
    fn the_full_set_leaves_out_nothing() {
        let line = command(&workspace(), Depth::Full).line();
        assert!(line.contains("LOOM_MAX_PREEMPTIONS=3 KEYED_LOOM_FULL=1 cargo test"), "{line}");
        assert!(line.ends_with(" loom_"), "{line}");
    }
}
