//! Everything that must hold before a change lands, in one run with one closing table.
//!
//! It owns the order of the steps and the commands behind them. Invariants: the tree is only read; a failed step
//! does not stop the later ones; every step that was asked for has a line in the table. The order is such that what
//! a step builds serves the next: the same flags, the same target folder; only the models build apart.

use std::time::{Duration, Instant};

use crate::finding;
use crate::flags::Depth;
use crate::shell::{Ran, Shell, Tests};
use crate::workspace::{Package, Workspace};
use crate::{layers, loom, msrv, tidy};

/// A group of checks that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Fmt,
    Layers,
    Msrv,
    Tidy,
    Clippy,
    Alone,
    Doc,
    Test,
    DocTest,
    Loom,
}

impl Step {
    pub(crate) const ALL: [Self; 10] = [
        Self::Fmt,
        Self::Layers,
        Self::Msrv,
        Self::Tidy,
        Self::Clippy,
        Self::Alone,
        Self::Doc,
        Self::Test,
        Self::DocTest,
        Self::Loom,
    ];

    /// The name on the command line and in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Layers => "layers",
            Self::Msrv => "msrv",
            Self::Tidy => "tidy",
            Self::Clippy => "clippy",
            Self::Alone => "alone",
            Self::Doc => "doc",
            Self::Test => "test",
            Self::DocTest => "doctest",
            Self::Loom => "loom",
        }
    }
}

/// Runs the chosen steps (all, if none is chosen) and tells whether all succeeded.
pub(crate) fn run(workspace: &Workspace, chosen: &[Step]) -> bool {
    let mut table = Table::default();
    let before = tracked(workspace);
    for step in Step::ALL.into_iter().filter(|step| chosen.is_empty() || chosen.contains(step)) {
        match step {
            Step::Layers => table.check(step, || layers::check(workspace)),
            Step::Msrv => table.check(step, || msrv::check(workspace)),
            Step::Tidy => table.check(step, || tidy::check(workspace)),
            _ => commands(workspace, step).into_iter().for_each(|(name, shell)| table.command(name, &shell)),
        }
    }
    if let Some(before) = before {
        table.unchanged(&before, &tracked(workspace).unwrap_or_default());
    }
    println!("\n{table}");
    table.succeeded()
}

/// How the tracked files differ from the last commit, where git can tell; what is no clone cannot be asked.
fn tracked(workspace: &Workspace) -> Option<String> {
    Shell::git(&workspace.root, "diff --no-ext-diff HEAD").output().ok()
}

/// The commands of a step, each with its line in the table.
fn commands(workspace: &Workspace, step: Step) -> Vec<(String, Shell)> {
    let cargo = |arguments: &str| Shell::cargo(&workspace.root, arguments);
    let one = |shell: Shell| vec![(step.name().to_owned(), shell)];
    match step {
        Step::Fmt => one(cargo("fmt --all --check")),
        Step::Clippy => vec![
            (
                "clippy".to_owned(),
                cargo("clippy --locked --keep-going --workspace --all-targets -- -D warnings"),
            ),
            (
                "clippy, all features".to_owned(),
                cargo("clippy --locked --keep-going --workspace --all-targets --all-features -- -D warnings"),
            ),
        ],
        Step::Alone => workspace.packages.iter().flat_map(|package| alone(workspace, package)).collect(),
        Step::Doc => one(cargo("doc --locked --keep-going --workspace --all-features --no-deps")
            .env_flags("RUSTDOCFLAGS", "-D warnings")),
        Step::Test => one(cargo(
            "test --locked --workspace --all-features --no-fail-fast --lib --bins --tests --examples",
        )
        .counting_tests()),
        Step::DocTest => {
            one(cargo("test --locked --workspace --all-features --no-fail-fast --doc").counting_tests())
        }
        Step::Loom => one(loom::command(workspace, Depth::Fast)),
        Step::Layers | Step::Msrv | Step::Tidy => Vec::new(),
    }
}

/// A package built without its neighbours, so that it cannot lean on features that they turn on.
fn alone(workspace: &Workspace, package: &Package) -> Vec<(String, Shell)> {
    let check = |features: &str| {
        let arguments = format!("check --locked -p {} --no-default-features{features}", package.name);
        Shell::cargo(&workspace.root, &arguments)
    };
    let plain = (format!("alone {}", package.name), check(""));
    let with = package.features.iter().map(|feature| {
        (format!("alone {} +{feature}", package.name), check(&format!(" --features {feature}")))
    });
    std::iter::once(plain).chain(with).collect()
}

/// What happened, in the order in which it happened.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    success: bool,
    time: Duration,
    tests: Option<Tests>,
}

impl Table {
    fn command(&mut self, name: String, shell: &Shell) {
        let started_at = now();
        let Ran { success, tests } = shell.run();
        self.rows.push(Row { name, success, time: started_at.elapsed(), tests });
    }

    fn check(&mut self, step: Step, check: impl FnOnce() -> Vec<finding::Finding>) {
        println!("\n$ cargo xtask {}", step.name());
        let started_at = now();
        let findings = check();
        finding::print(step.name(), &findings);
        let (name, success) = (step.name().to_owned(), findings.is_empty());
        self.rows.push(Row { name, success, time: started_at.elapsed(), tests: None });
    }

    /// The promise that this run only read, held against what git sees.
    fn unchanged(&mut self, before: &str, after: &str) {
        let success = before == after;
        if !success {
            println!("\na tracked file changed while verify ran: what it reports is not true of one tree");
        }
        self.rows.push(Row { name: "tree unchanged".to_owned(), success, time: Duration::ZERO, tests: None });
    }

    fn succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.success)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock of the executor is for the executor; this is a stopwatch"
)]
fn now() -> Instant {
    Instant::now()
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("step".len());
        writeln!(f, "{:width$}  {:6}  {:>8}", "step", "result", "time")?;
        for row in &self.rows {
            let result = if row.success { "ok" } else { "FAILED" };
            write!(f, "{:width$}  {result:6}  {:>6.1} s", row.name, row.time.as_secs_f64())?;
            match row.tests {
                Some(tests) => writeln!(f, "  {tests}")?,
                None => writeln!(f)?,
            }
        }
        let total: Duration = self.rows.iter().map(|row| row.time).sum();
        let result = if self.succeeded() { "ok" } else { "FAILED" };
        write!(f, "{:width$}  {result:6}  {:>6.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;

    fn workspace() -> Workspace {
        let package = Package {
            name: "core".to_owned(),
            features: vec!["tokio".to_owned(), "extra".to_owned()],
            ..Package::default()
        };
        Workspace { root: "w".into(), target: "w/target".into(), packages: vec![package] }
    }

    #[test]
    fn every_crate_is_built_alone_and_with_each_feature() {
        let lines: Vec<_> =
            commands(&workspace(), Step::Alone).into_iter().map(|(_, shell)| shell.line()).collect();
        assert_eq!(
            lines,
            [
                "cargo check --locked -p core --no-default-features",
                "cargo check --locked -p core --no-default-features --features tokio",
                "cargo check --locked -p core --no-default-features --features extra",
            ]
        );
    }

    #[test]
    fn no_command_of_verify_writes_to_the_tree() {
        for step in Step::ALL {
            for (name, shell) in commands(&workspace(), step) {
                let line = shell.line();
                let reads =
                    if step == Step::Fmt { line.contains(" --check") } else { line.contains(" --locked ") };
                assert!(reads, "{name}: {line}");
                assert!(!line.contains("--fix"), "{name}: {line}");
            }
        }
    }

    #[test]
    fn a_tree_that_changed_meanwhile_fails_the_run() {
        let mut table = Table::default();
        table.unchanged("", "");
        assert!(table.succeeded());
        table.unchanged("", "+a line");
        assert!(!table.succeeded());
    }

    #[test]
    fn one_failed_step_fails_the_run_and_the_others_are_still_shown() {
        let mut table = Table::default();
        table.check(Step::Layers, || vec![Finding::file("a", "wrong")]);
        table.check(Step::Tidy, Vec::new);
        assert!(!table.succeeded());
        let shown = table.to_string();
        assert!(shown.contains("layers  FAILED"), "{shown}");
        assert!(shown.contains("tidy    ok"), "{shown}");
        assert!(shown.contains("total   FAILED"), "{shown}");
    }
}
