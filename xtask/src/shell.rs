//! One command of another program: shown as a line that can be pasted, then run with its output passed on.
//!
//! It owns how commands are printed, their environment and the count of test results in what they print.
//! Invariant: what is printed is what is run. Output is never swallowed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Variables that `cargo run` sets for this very package; they mean nothing to the commands run from here.
const OF_THIS_PACKAGE: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];

/// A command that has not run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    directory: OsString,
    output: Output,
}

/// What happens with what the command prints to its standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Inherited,
    /// Passed on line by line, with the lines `test result: ...` counted.
    Counted,
}

/// What a command came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) success: bool,
    /// Tests that passed, where they were counted.
    pub(crate) tests: Option<Tests>,
}

/// The sum over all lines `test result: ...`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Shell {
    /// `cargo` with arguments separated by spaces, in the root of the workspace.
    pub(crate) fn cargo(root: &Path, arguments: &str) -> Self {
        Self::new("cargo", root, arguments)
    }

    /// `git` with arguments separated by spaces, in the root of the workspace.
    pub(crate) fn git(root: &Path, arguments: &str) -> Self {
        Self::new("git", root, arguments)
    }

    /// Another program with arguments separated by spaces, in the root of the workspace.
    pub(crate) fn program(program: &str, root: &Path, arguments: &str) -> Self {
        Self::new(program, root, arguments)
    }

    fn new(program: &str, root: &Path, arguments: &str) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            environment: Vec::new(),
            directory: root.as_os_str().to_owned(),
            output: Output::Inherited,
        }
    }

    /// Adds one argument as it is.
    pub(crate) fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets a variable of the command's environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Adds to a variable that holds flags, keeping what the caller's environment has in it.
    pub(crate) fn env_flags(self, name: &str, flags: &str) -> Self {
        let value = match std::env::var(name) {
            Ok(given) if !given.trim().is_empty() => format!("{given} {flags}"),
            _ => flags.to_owned(),
        };
        self.env(name, value)
    }

    /// Counts the tests that the command reports; a run without a single one is a failure, for it proved nothing.
    pub(crate) fn counting_tests(mut self) -> Self {
        self.output = Output::Counted;
        self
    }

    /// The line as a person would type it.
    pub(crate) fn line(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = std::iter::once(self.program.clone()).chain(self.arguments.iter().map(|a| quoted(a)));
        environment.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Prints the command and runs it to its end.
    pub(crate) fn run(&self) -> Ran {
        println!("\n$ {}", self.line());
        // What follows is written by another process: ours must be out first.
        let _ = std::io::stdout().flush();
        let mut command = self.command();
        match self.output {
            Output::Inherited => match command.status() {
                Ok(status) => Ran { success: status.success(), tests: None },
                Err(error) => self.not_started(&error),
            },
            Output::Counted => match run_counted(&mut command) {
                Ok(ran) => ran,
                Err(error) => self.not_started(&error),
            },
        }
    }

    /// Runs the command without a trace and hands back what it printed, or what went wrong.
    pub(crate) fn output(&self) -> Result<String, String> {
        let output = self.command().output().map_err(|error| format!("`{}`: {error}", self.line()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{}` failed:\n{}", self.line(), message.trim_end()));
        }
        String::from_utf8(output.stdout).map_err(|error| format!("`{}`: {error}", self.line()))
    }

    fn command(&self) -> Command {
        // The cargo that runs us names itself; a bare name would ask the path again.
        let program = match self.program.as_str() {
            "cargo" => std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")),
            other => OsString::from(other),
        };
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if OF_THIS_PACKAGE.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments).current_dir(&self.directory);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn not_started(&self, error: &std::io::Error) -> Ran {
        eprintln!("error: `{}` could not be run: {error}", self.program);
        Ran { success: false, tests: None }
    }
}

fn run_counted(command: &mut Command) -> std::io::Result<Ran> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tests = Tests::default();
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let mut out = std::io::stdout().lock();
            out.write_all(&line)?;
            out.flush()?;
            tests.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    let success = child.wait()?.success();
    if success && tests.passed == 0 {
        eprintln!("error: not a single test ran");
    }
    Ok(Ran { success: success && tests.passed > 0, tests: Some(tests) })
}

impl Tests {
    /// Adds the counts of a line `test result: ok. 3 passed; 0 failed; 0 ignored; ...`; any other line adds nothing.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        let words: Vec<&str> = counts.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(n) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += n,
                "failed" => self.failed += n,
                "ignored" => self.ignored += n,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Tests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_environment_and_quotes_what_needs_it() {
        let shell = Shell::cargo(Path::new("."), "test --lib").argument("a b").env("SEED", "it's");
        assert_eq!(shell.line(), r"SEED='it'\''s' cargo test --lib 'a b'");
    }

    #[test]
    fn test_results_add_up_over_lines() {
        let mut tests = Tests::default();
        tests.add("running 3 tests\n");
        tests.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s\n",
        );
        tests.add("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n");
        assert_eq!(tests, Tests { passed: 4, failed: 2, ignored: 1 });
    }

    #[test]
    fn a_run_without_a_test_is_a_failure() {
        let silent = Shell::cargo(Path::new("."), "--version").counting_tests();
        assert_eq!(silent.run(), Ran { success: false, tests: Some(Tests::default()) });
    }

    #[test]
    fn a_command_that_cannot_start_is_a_failure() {
        let mut shell = Shell::cargo(Path::new("."), "");
        shell.program = "no-such-program-on-any-path".to_owned();
        assert!(!shell.run().success);
        assert!(shell.output().unwrap_err().contains("no-such-program-on-any-path"));
    }
}
