//! Instructions of the hot paths: what a message costs, counted, so that a regression shows on a busy machine too.
//!
//! It owns the counting and the comparison. The paths are benches/src/bin/instructions.rs; what they may cost, and the
//! compiler that it was recorded with, is docs/performance/instructions.md. A path is run with n and with 2n messages
//! under callgrind, which counts what all threads of the program execute; the difference over n is the figure, so what
//! happens once cancels out. Invariant: a figure of another compiler or processor is shown and never judged.

use std::fmt::Write as _;
use std::path::Path;

use crate::markdown;
use crate::shell::Shell;
use crate::workspace::Workspace;

const BOUNDS: &str = "docs/performance/instructions.md";
const COLUMNS: [&str; 5] = ["path", "what", "messages", "instructions a message", "tolerance"];
/// What stands before the compiler in the document.
const RECORDED: &str = "Recorded with `";

/// What a path may cost: a row of the document.
#[derive(Debug, Clone, PartialEq)]
struct Bound {
    line: usize,
    path: String,
    what: String,
    messages: u64,
    instructions: f64,
    tolerance: u32,
}

/// How the program of the paths is built.
#[derive(Debug, Clone, Copy)]
struct Build {
    /// Below the target directory.
    folder: &'static str,
    flags: &'static str,
}

const COUNTED: Build = Build { folder: "counted", flags: "--cfg keyed_counted" };
/// Without what is kept only to be shown.
const UNSEEN: Build = Build { folder: "counted-unseen", flags: "--cfg keyed_counted --cfg keyed_unseen" };

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Within,
    Worse,
    /// Better by more than the tolerance: recorded anew, it is kept.
    Better,
    /// Recorded elsewhere.
    NotCompared,
}

/// Counts every path and compares; with `out`, writes the document with the new figures there.
pub(crate) fn run(workspace: &Workspace, out: Option<&str>) -> bool {
    match count_all(workspace, out) {
        Ok(success) => success,
        Err(error) => {
            eprintln!("error: {error}");
            false
        }
    }
}

fn count_all(workspace: &Workspace, out: Option<&str>) -> Result<bool, String> {
    let file = workspace.root.join(BOUNDS);
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{BOUNDS}: {error}"))?;
    let (recorded, bounds) = parse(&text)?;
    let compiler = compiler(&Shell::program("rustc", &workspace.root, "-vV").output()?)?;
    let Some(counted) = count(workspace, COUNTED, &bounds)? else { return Ok(false) };
    let comparable = compiler == recorded;
    println!("\n{}", table(&bounds, &counted, comparable));
    if !comparable {
        println!("recorded with {recorded}, counted with {compiler}: shown, not judged");
    }
    if let Some(out) = out {
        let text = rewritten(&text, &bounds, &counted, &compiler);
        std::fs::write(workspace.root.join(out), text).map_err(|error| format!("{out}: {error}"))?;
        println!("written to {out}");
        return Ok(true);
    }
    Ok(verdicts(&bounds, &counted, comparable).all(|verdict| verdict != Verdict::Worse))
}

/// Counts every path with all that is kept of a message and without what is kept only to be shown.
pub(crate) fn visibility(workspace: &Workspace) -> bool {
    let counts = || -> Result<bool, String> {
        let text = std::fs::read_to_string(workspace.root.join(BOUNDS))
            .map_err(|error| format!("{BOUNDS}: {error}"))?;
        let (_, bounds) = parse(&text)?;
        let Some(unseen) = count(workspace, UNSEEN, &bounds)? else { return Ok(false) };
        let Some(seen) = count(workspace, COUNTED, &bounds)? else { return Ok(false) };
        println!("\n{}", cost(&bounds, &unseen, &seen));
        Ok(true)
    };
    counts().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        false
    })
}

/// Builds the program and counts the instructions a message of every path; None if it does not build.
fn count(workspace: &Workspace, build: Build, bounds: &[Bound]) -> Result<Option<Vec<f64>>, String> {
    Shell::program("valgrind", &workspace.root, "--version")
        .output()
        .map_err(|error| format!("{error}\nthe counter is valgrind: install the package of that name"))?;
    let folder = workspace.target.join(build.folder);
    if !build.command(workspace, &folder).run().success {
        return Ok(None);
    }
    let of = |bound: &Bound| {
        let [once, twice] = [1, 2].map(|times| {
            let shell = callgrind(workspace, &folder, &bound.path, bound.messages * times);
            println!("$ {}", shell.line());
            shell.output().and_then(|output| collected(&output))
        });
        Ok(twice?.saturating_sub(once?) as f64 / bound.messages as f64)
    };
    bounds.iter().map(of).collect::<Result<_, String>>().map(Some)
}

impl Build {
    fn command(self, workspace: &Workspace, folder: &Path) -> Shell {
        let arguments = "build --locked --release -p wow-benches --bin instructions --target-dir";
        Shell::cargo(&workspace.root, arguments)
            .argument(folder.to_string_lossy())
            .env_flags("RUSTFLAGS", self.flags)
    }
}

fn callgrind(workspace: &Workspace, folder: &Path, path: &str, messages: u64) -> Shell {
    // Kept for whoever wants to know where they went: callgrind_annotate reads it.
    let out = folder.join(format!("{path}.callgrind"));
    Shell::program("valgrind", &workspace.root, "--tool=callgrind --log-fd=1")
        .argument(format!("--callgrind-out-file={}", out.to_string_lossy()))
        .argument(folder.join("release/instructions").to_string_lossy())
        .argument(path)
        .argument(messages.to_string())
}

/// The sum in callgrind's line `==1== Collected : 12345`.
fn collected(output: &str) -> Result<u64, String> {
    let line = output.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind told no count:\n{output}"))
}

/// Version and target of a compiler, of its answer to `-vV`.
fn compiler(answer: &str) -> Result<String, String> {
    let field = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (field("release:"), field("host:")) {
        (Some(release), Some(host)) => Ok(format!("rustc {release}, {host}")),
        _ => Err(format!("rustc does not say what it is:\n{answer}")),
    }
}

fn verdicts(bounds: &[Bound], counted: &[f64], comparable: bool) -> impl Iterator<Item = Verdict> {
    bounds.iter().zip(counted).map(move |(bound, counted)| {
        let change = (counted / bound.instructions - 1.0) * 100.0;
        let tolerance = f64::from(bound.tolerance);
        match change {
            _ if !comparable => Verdict::NotCompared,
            _ if change > tolerance => Verdict::Worse,
            _ if change < -tolerance => Verdict::Better,
            _ => Verdict::Within,
        }
    })
}

fn table(bounds: &[Bound], counted: &[f64], comparable: bool) -> String {
    let mut text = format!("{:12}  {:>9}  {:>9}  {:>8}\n", "path", "recorded", "counted", "change");
    let verdicts = verdicts(bounds, counted, comparable);
    for ((bound, counted), verdict) in bounds.iter().zip(counted).zip(verdicts) {
        let change = (counted / bound.instructions - 1.0) * 100.0;
        let said = match verdict {
            Verdict::Within | Verdict::NotCompared => "",
            Verdict::Worse => "  FAILED",
            Verdict::Better => "  better: record it with --out",
        };
        let (path, recorded) = (&bound.path, bound.instructions);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{path:12}  {recorded:>9.1}  {counted:>9.1}  {change:>+7.1}%{said}");
    }
    text
}

/// What is shown costs so much of each path, as a table of a document.
fn cost(bounds: &[Bound], unseen: &[f64], seen: &[f64]) -> String {
    let mut text = "| path | without | with | cost |\n|---|--:|--:|--:|\n".to_owned();
    for ((bound, unseen), seen) in bounds.iter().zip(unseen).zip(seen) {
        let (path, cost) = (&bound.path, (seen / unseen - 1.0) * 100.0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{path}` | {unseen:.1} | {seen:.1} | {cost:+.1} % |");
    }
    text
}

/// The compiler and the rows of the document.
fn parse(text: &str) -> Result<(String, Vec<Bound>), String> {
    let recorded = text
        .split_once(RECORDED)
        .and_then(|(_, rest)| rest.split_once('`'))
        .map(|(compiler, _)| compiler.to_owned())
        .ok_or_else(|| format!("{BOUNDS} does not say the compiler after {RECORDED:?}"))?;
    let table = markdown::tables(text)
        .into_iter()
        .find(|table| table.header == COLUMNS)
        .ok_or_else(|| format!("{BOUNDS} has no table with the columns {}", COLUMNS.join(", ")))?;
    let bounds = table.rows.iter().map(|(line, cells)| bound(*line, cells)).collect::<Result<_, _>>()?;
    Ok((recorded, bounds))
}

fn bound(line: usize, cells: &[String]) -> Result<Bound, String> {
    let wrong = |what: &str| format!("{BOUNDS}, line {line}: {what}");
    let [path, what, messages, instructions, tolerance] = cells else {
        return Err(wrong("a row has five cells"));
    };
    let bound = Bound {
        line,
        path: path.trim_matches('`').to_owned(),
        what: what.clone(),
        messages: messages.replace(',', "").parse().map_err(|_| wrong("messages are a whole number"))?,
        instructions: instructions.parse().map_err(|_| wrong("instructions are a number"))?,
        tolerance: tolerance
            .trim_end_matches([' ', '%'])
            .parse()
            .map_err(|_| wrong("a tolerance is a whole number of percent"))?,
    };
    if bound.messages == 0 || bound.instructions <= 0.0 {
        return Err(wrong("messages and instructions are more than zero"));
    }
    Ok(bound)
}

/// The document with what was counted in place of what was recorded.
fn rewritten(text: &str, bounds: &[Bound], counted: &[f64], compiler: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (bound, counted) in bounds.iter().zip(counted) {
        let Bound { line, path, what, messages, tolerance, .. } = bound;
        let messages = grouped(*messages);
        lines[line - 1] = format!("| `{path}` | {what} | {messages} | {counted:.1} | {tolerance} % |");
    }
    for line in &mut lines {
        if let Some((before, (_, after))) = line
            .split_once(RECORDED)
            .and_then(|(before, rest)| rest.split_once('`').map(|rest| (before, rest)))
        {
            *line = format!("{before}{RECORDED}{compiler}`{after}");
        }
    }
    lines.join("\n") + "\n"
}

/// A number with a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# A\n\nRecorded with `rustc 1.0.0, x`.\n\n\
        | path | what | messages | instructions a message | tolerance |\n|---|---|--:|--:|--:|\n\
        | `submit` | one in | 20,000 | 400.0 | 3 % |\n| `wake` | one up | 640 | 100.5 | 10 % |\n";

    #[test]
    fn the_document_holds_the_bounds() {
        let (compiler, bounds) = parse(DOCUMENT).unwrap();
        assert_eq!(compiler, "rustc 1.0.0, x");
        assert_eq!((bounds[0].path.as_str(), bounds[0].messages, bounds[0].tolerance), ("submit", 20_000, 3));
        assert_eq!((bounds[1].line, bounds[1].instructions), (8, 100.5));
        let wrong = DOCUMENT.replace("100.5", "many");
        assert_eq!(parse(&wrong).unwrap_err(), format!("{BOUNDS}, line 8: instructions are a number"));
    }

    #[test]
    fn what_costs_more_than_the_tolerance_fails_and_what_costs_less_is_told() {
        let (_, bounds) = parse(DOCUMENT).unwrap();
        let verdicts = |counted: [f64; 2], comparable| {
            super::verdicts(&bounds, &counted, comparable).collect::<Vec<_>>()
        };
        assert_eq!(verdicts([411.0, 91.0], true), [Verdict::Within, Verdict::Within]);
        assert_eq!(verdicts([413.0, 80.0], true), [Verdict::Worse, Verdict::Better]);
        assert_eq!(verdicts([413.0, 80.0], false), [Verdict::NotCompared, Verdict::NotCompared]);
        let shown = table(&bounds, &[413.0, 80.0], true);
        assert!(shown.contains("+3.2%  FAILED"), "{shown}");
    }

    #[test]
    fn recording_changes_the_figures_and_the_compiler_only() {
        let (_, bounds) = parse(DOCUMENT).unwrap();
        let text = rewritten(DOCUMENT, &bounds, &[410.04, 99.0], "rustc 2.0.0, y");
        let expected =
            DOCUMENT.replace("400.0", "410.0").replace("100.5", "99.0").replace("1.0.0, x", "2.0.0, y");
        assert_eq!(text, expected);
    }

    #[test]
    fn the_cost_of_what_is_shown_is_a_share_of_the_path_without_it() {
        let (_, bounds) = parse(DOCUMENT).unwrap();
        let table = cost(&bounds, &[400.0, 100.0], &[408.0, 99.0]);
        assert!(
            table.ends_with("| `submit` | 400.0 | 408.0 | +2.0 % |\n| `wake` | 100.0 | 99.0 | -1.0 % |\n"),
            "{table}"
        );
    }

    #[test]
    fn counts_and_compilers_are_read_from_what_the_tools_print() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 8633763\n"), Ok(8_633_763));
        assert!(collected("==7== nothing").unwrap_err().contains("told no count"));
        let answer = "rustc 1.95.0 (5980 2026)\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(compiler(answer).unwrap(), "rustc 1.95.0, x86_64-unknown-linux-gnu");
    }
}
