//! What is wrong with flags, files and configuration: exit code 2, one line for each problem, file and field named,
//! nothing on standard output.

use std::path::Path;

use crate::common::{HEADER, gzip, january, json_of, program, run, run_with_stdin, temp, temp_file, text};

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The lines of a run that has to end with exit code 2.
pub(crate) fn problems(arguments: &[&str]) -> Vec<String> {
    lines(&run(arguments))
}

pub(crate) fn lines(output: &std::process::Output) -> Vec<String> {
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let lines: Vec<String> = err.lines().map(str::to_owned).collect();
    assert!(lines.iter().all(|line| line.starts_with("error: ")), "{err}");
    lines
}

/// The one line of a run with this input.
fn problem_of_input(name: &str, bytes: impl AsRef<[u8]>) -> (String, String) {
    let input = temp_file(name, bytes);
    let lines = problems(&["--json", "--input", path(&input)]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    (path(&input).to_owned(), lines[0].clone())
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let missing = temp("missing.csv");
    let lines = problems(&["--input", path(&missing)]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with(&format!("error: --input {}: ", path(&missing))), "{lines:?}");
    let folder = temp("folder");
    std::fs::create_dir_all(&folder).expect("a folder");
    let lines = problems(&["--input", path(&folder)]);
    assert_eq!(lines, [format!("error: --input {}: it is a folder", path(&folder))]);
    assert_eq!(problems(&["--input", ""]).len(), 1);
}

#[test]
fn an_empty_input_is_no_table() {
    let (name, line) = problem_of_input("empty.csv", "");
    assert_eq!(line, format!("error: --input {name}: the file is empty"));
    let (name, line) = problem_of_input("empty.csv.gz", gzip(""));
    assert_eq!(line, format!("error: {name}: the file is empty"));
    let output = run_with_stdin(&["--input", "-"], "");
    assert_eq!(lines(&output), ["error: --input standard input: the file is empty"]);
}

#[test]
fn noise_is_no_table() {
    let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (name, line) = problem_of_input("noise.csv", &noise);
    assert!(line.starts_with(&format!("error: {name}:1: the header ")), "{line}");
    let (name, line) = problem_of_input("noise.csv.gz", [&[0x1f, 0x8b][..], &noise[1_000..]].concat());
    assert!(line.starts_with(&format!("error: {name}:1: the gzip data is ")), "{line}");
    let (name, line) = problem_of_input("words.csv", "just, some, words\n1,2,3\n");
    assert!(line.starts_with(&format!("error: {name}:1: the header has none of the columns")), "{line}");
    let (name, line) = problem_of_input("one-line.csv", "x".repeat(1_000_000));
    assert_eq!(line, format!("error: {name}:1: the header is longer than 65536 bytes"));
    let (_, line) = problem_of_input("packed-twice.csv.gz", gzip(gzip(HEADER)));
    assert!(line.ends_with("the header is not UTF-8 text"), "{line}");
}

#[test]
fn a_truncated_or_damaged_gzip_file_is_no_short_table() {
    let whole = std::fs::read(january()).expect("the file of the repository");
    for kept in [3, 12, 1_000, whole.len() / 2, whole.len() - 8, whole.len() - 1] {
        let (name, line) = problem_of_input(&format!("cut-{kept}.csv.gz"), &whole[..kept]);
        assert!(line.starts_with(&format!("error: {name}:")), "{line}");
        assert!(line.ends_with(": the gzip data is truncated"), "{kept}: {line}");
    }
    let mut damaged = whole.clone();
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    let (_, line) = problem_of_input("damaged.csv.gz", &damaged);
    assert!(line.contains(":27006: the gzip data is damaged: "), "{line}");
    for more in ["x", "more bytes than the header of a gzip member has"] {
        let (_, line) = problem_of_input("followed.csv.gz", [&whole[..], more.as_bytes()].concat());
        assert!(
            line.ends_with(":27006: the gzip data is followed by bytes that are not gzip data"),
            "{line}"
        );
    }
    let output = run_with_stdin(&["--json", "--input", "-"], &whole[..whole.len() / 2]);
    let lines = lines(&output);
    assert!(lines[0].starts_with("error: standard input:"), "{lines:?}");
}

#[test]
fn every_missing_column_is_named() {
    for column in HEADER.split(',') {
        let header: Vec<&str> = HEADER.split(',').filter(|name| *name != column).collect();
        let (name, line) = problem_of_input(&format!("without-{column}.csv"), header.join(","));
        assert_eq!(line, format!("error: {name}:1: the header has no column {column}"));
    }
    let input = temp_file("without-two.csv", HEADER.replace("tailnum,", "").replace(",distance", ""));
    let lines = problems(&["--input", path(&input)]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].ends_with("no column tailnum") && lines[1].ends_with("no column distance"), "{lines:?}");
    let (_, line) = problem_of_input("twice.csv", format!("{HEADER},origin"));
    assert!(line.ends_with("the header has the column origin twice"), "{line}");
    let (_, line) = problem_of_input("unnamed.csv", format!("{HEADER},"));
    assert!(line.ends_with("the header has no name for column 17"), "{line}");
}

#[test]
fn every_problem_of_the_configuration_is_told_with_file_line_key_value_and_range() {
    let config = temp_file("wrong.toml", "[wow.dispatch]\nworkers = 0\nthroughput = 'x'\nworker = 3\n");
    let name = path(&config);
    assert_eq!(
        problems(&["--config", name]),
        [
            format!("error: {name}:2: wow.dispatch.workers is 0, accepted is a whole number from 1 to 1024"),
            format!(
                "error: {name}:3: wow.dispatch.throughput is 'x', accepted is a whole number from 1 to 65536"
            ),
            format!("error: {name}:4: wow.dispatch.worker is not a key, did you mean wow.dispatch.workers?"),
        ]
    );
    let yaml = temp_file("wrong.yaml", "wow:\n  dispatch:\n    max-in-flight: -1\n");
    assert!(
        problems(&["--config", path(&yaml)])[0]
            .contains(":3: wow.dispatch.max-in-flight is -1, accepted is ")
    );
    assert_eq!(problems(&["--config", path(&temp("missing.toml"))]).len(), 1);
    let variable = program().env("WOW_DISPATCH_SPIN", "20").spawn().expect("the program starts");
    let told = lines(&crate::common::finish(variable));
    assert!(
        told[0].starts_with("error: WOW_DISPATCH_SPIN: wow.dispatch.spin is \"20\", accepted is "),
        "{told:?}"
    );
}

#[test]
fn problems_of_input_and_configuration_are_told_together() {
    let config = temp_file("wrong-too.toml", "[wow.dispatch]\nspin = 20\n");
    let list = temp("never-written.csv");
    let missing = temp("missing-too.csv");
    let lines = problems(&["--config", path(&config), "--input", path(&missing), "--rejected", path(&list)]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("wow.dispatch.spin") && lines[1].contains("missing-too.csv"), "{lines:?}");
    assert!(!list.exists(), "nothing is written before all is well");
}

#[test]
fn an_unknown_flag_is_named_on_one_line() {
    let lines = problems(&["--colour"]);
    assert_eq!(lines, ["error: unexpected argument '--colour' found"]);
    assert_eq!(problems(&["--input"]).len(), 1);
    assert_eq!(problems(&["stray"]).len(), 1);
    assert_eq!(problems(&["--json", "--json"]).len(), 1);
}

#[test]
fn help_and_version_are_no_problems() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    for flag in ["--input", "--config", "--rejected", "--json"] {
        assert!(text(&help.stdout).contains(flag), "{flag}");
    }
    assert!(run(&["--version"]).status.success());
}

#[test]
fn the_removed_parallelism_is_logged_once_by_the_service_and_runs() {
    let config = temp_file("old.toml", "[wow]\nparallelism = 4\n");
    let output = run(&["--json", "--config", path(&config)]);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr).lines().count(), 1);
    let logged = text(&output.stderr);
    assert!(
        logged.contains(" WARN ") && logged.contains("old.toml:2: wow.parallelism is no longer used"),
        "{logged}"
    );
}

#[test]
fn a_log_never_disturbs_the_report() {
    let input = temp_file("log.csv", format!("{HEADER}\n2013\n"));
    let mut command = program();
    command.env("RUST_LOG", "debug").args(["--json", "--input", path(&input)]);
    let output = crate::common::finish(command.spawn().expect("the program starts"));
    assert!(text(&output.stderr).contains("started"), "{}", text(&output.stderr));
    assert_eq!(json_of(&output)["rows"], 1);
    assert!(run(&["--json", "--input", path(&input)]).stderr.is_empty());
}

#[test]
fn the_strategy_of_the_configuration_is_the_one_that_runs() {
    let input = temp_file("strategy.csv", HEADER);
    let grouped = temp_file("strategy.toml", "[wow.dispatch]\nstrategy = 'grouped'\nspin = '1us'\n");
    let told = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = program();
        command.env("RUST_LOG", "info").envs(variables.iter().copied());
        command.args(["--json", "--input", path(&input)]).args(arguments);
        text(&crate::common::finish(command.spawn().expect("the program starts")).stderr).to_owned()
    };
    let config = ["--config", path(&grouped)];
    let on_groups = told(&config, &[]);
    assert_eq!(on_groups.matches("strategy=grouped").count(), 2, "commands and projection: {on_groups}");
    let no_effect = "wow.dispatch.spin has no effect while wow.dispatch.strategy is grouped";
    assert!(on_groups.contains(no_effect), "{on_groups}");
    let keyed = told(&[], &[]);
    assert_eq!(keyed.matches("strategy=keyed").count(), 2, "{keyed}");
    let overridden = told(&config, &[("WOW_DISPATCH_STRATEGY", "keyed")]);
    assert_eq!(overridden.matches("strategy=keyed").count(), 2, "{overridden}");
}
