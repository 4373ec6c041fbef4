//! What is refused: each wrong key and value with its source, its key as written, its value and what is accepted.

use std::fs;
use std::path::{Path, PathBuf};

use wow_config::{Config, Loader, Refusal};

fn refused(name: &str, text: &str) -> Vec<String> {
    let error = Loader::new().text(name, text).load().expect_err(text);
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), error.problems().len(), "one line for each problem: {error}");
    lines
}

fn in_toml(line: &str) -> String {
    let lines = refused("s.toml", &format!("[wow.dispatch]\n{line}\n"));
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

fn in_yaml(line: &str) -> String {
    let lines = refused("s.yml", &format!("wow:\n  dispatch:\n    {line}\n"));
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

fn in_variable(name: &str, value: &str) -> String {
    let error = Loader::new().variables([(name, value)]).load().expect_err(value);
    assert_eq!(error.problems().len(), 1);
    error.to_string()
}

const WORKERS: &str = "accepted is a whole number from 1 to 1024";
const SPIN: &str =
    "accepted is a duration with its unit (ns, us, ms, s) from 0 to 1ms, a bare number is in milliseconds";

#[test]
fn a_wrong_count_is_refused_with_its_place_value_and_range() {
    for written in
        ["0", "-1", "1025", "1.0", "1.5", "true", "\"4\"", "99999999999999999999", "-99999999999999999999"]
    {
        assert_eq!(
            in_toml(&format!("workers = {written} # why")),
            format!("s.toml:2: wow.dispatch.workers is {written}, {WORKERS}")
        );
        assert_eq!(
            in_yaml(&format!("workers: {written} # why")),
            format!("s.yml:3: wow.dispatch.workers is {written}, {WORKERS}")
        );
    }
    assert_eq!(in_toml("workers = [1]"), format!("s.toml:2: wow.dispatch.workers is a list, {WORKERS}"));
    assert_eq!(in_yaml("workers: [1]"), format!("s.yml:3: wow.dispatch.workers is a list, {WORKERS}"));
    assert_eq!(
        in_toml("workers = {n = 1}"),
        format!("s.toml:2: wow.dispatch.workers is a section, {WORKERS}")
    );
    assert_eq!(in_yaml("workers:"), format!("s.yml:3: wow.dispatch.workers is nothing, {WORKERS}"));
    assert_eq!(
        in_toml("max-in-flight = 1048577"),
        "s.toml:2: wow.dispatch.max-in-flight is 1048577, accepted is a whole number from 1 to 1048576"
    );
    assert_eq!(
        in_yaml("throughput: 65537"),
        "s.yml:3: wow.dispatch.throughput is 65537, accepted is a whole number from 1 to 65536"
    );
}

#[test]
fn a_wrong_spin_is_refused_with_its_place_value_and_range() {
    for written in
        ["20", "-1", "0.5", "\"20 us\"", "\"20\"", "\"2ms\"", "\"1.5us\"", "\"-1us\"", "\"us\"", "\"20min\""]
    {
        assert_eq!(
            in_toml(&format!("spin = {written}")),
            format!("s.toml:2: wow.dispatch.spin is {written}, {SPIN}")
        );
    }
    for written in ["20", "20 us", "1001us", "18446744073709551616ns", "9999999999999999s"] {
        assert_eq!(
            in_yaml(&format!("spin: {written}")),
            format!("s.yml:3: wow.dispatch.spin is {written}, {SPIN}")
        );
    }
}

#[test]
fn a_wrong_strategy_is_refused_with_its_place_value_and_what_there_is() {
    const STRATEGY: &str = "accepted is keyed or grouped";
    for written in ["\"Grouped\"", "\"grouped \"", "\"\"", "\"groups\"", "1", "true"] {
        assert_eq!(
            in_toml(&format!("strategy = {written} # why")),
            format!("s.toml:2: wow.dispatch.strategy is {written}, {STRATEGY}")
        );
    }
    for written in ["KEYED", "hash", "0", "yes"] {
        assert_eq!(
            in_yaml(&format!("strategy: {written}")),
            format!("s.yml:3: wow.dispatch.strategy is {written}, {STRATEGY}")
        );
    }
    assert_eq!(in_yaml("strategy:"), format!("s.yml:3: wow.dispatch.strategy is nothing, {STRATEGY}"));
    assert_eq!(
        in_toml("strategy = ['keyed']"),
        format!("s.toml:2: wow.dispatch.strategy is a list, {STRATEGY}")
    );
    assert_eq!(
        in_variable("WOW_DISPATCH_STRATEGY", "grouped,keyed"),
        format!("WOW_DISPATCH_STRATEGY: wow.dispatch.strategy is \"grouped,keyed\", {STRATEGY}")
    );
    assert_eq!(
        in_toml("stratgey = 'keyed'"),
        "s.toml:2: wow.dispatch.stratgey is not a key, did you mean wow.dispatch.strategy?"
    );
    for written in ["0", "1048577", "4294967297", "\"8\""] {
        assert_eq!(
            in_toml(&format!("groups = {written}")),
            format!(
                "s.toml:2: wow.dispatch.groups is {written}, accepted is a whole number from 1 to 1048576"
            )
        );
    }
}

#[test]
fn a_wrong_variable_is_refused_by_its_name() {
    for value in ["0", "-1", "+1", " 1", "1 ", "1.0", "", "many", "1_000", "99999999999999999999"] {
        assert_eq!(
            in_variable("WOW_DISPATCH_WORKERS", value),
            format!("WOW_DISPATCH_WORKERS: wow.dispatch.workers is {value:?}, {WORKERS}")
        );
    }
    assert_eq!(
        in_variable("WOW_DISPATCH_SPIN", "20"),
        format!("WOW_DISPATCH_SPIN: wow.dispatch.spin is \"20\", {SPIN}")
    );
    assert_eq!(
        in_variable("WOW_DISPATCH_WORKER", "2"),
        "WOW_DISPATCH_WORKER: the variable is not a key, did you mean WOW_DISPATCH_WORKERS?"
    );
    assert_eq!(
        in_variable("WOW_DISPATCH_COLOUR", "2"),
        "WOW_DISPATCH_COLOUR: the variable is not a key, accepted are WOW_DISPATCH_WORKERS, \
         WOW_DISPATCH_MAX_IN_FLIGHT, WOW_DISPATCH_MAX_PER_KEY, WOW_DISPATCH_OVERFLOW, WOW_DISPATCH_MAX_BYTES, \
         WOW_DISPATCH_THROUGHPUT, \
         WOW_DISPATCH_SPIN, WOW_DISPATCH_RESCUE_THREADS, WOW_DISPATCH_RESCUE_AFTER, WOW_DISPATCH_STUCK_AFTER, \
         WOW_DISPATCH_STRATEGY, WOW_DISPATCH_GROUPS"
    );
}

#[test]
fn wrong_variables_are_told_in_one_order_whatever_the_systems_is() {
    let mut pairs = [("WOW_DISPATCH_SPIN", "x"), ("WOW_DISPATCH_DEPTH", "1"), ("WOW_DISPATCH_WORKERS", "x")];
    let told = |pairs: [(&'static str, &'static str); 3]| {
        Loader::new().variables(pairs).load().expect_err("three problems").to_string()
    };
    let one_way = told(pairs);
    pairs.reverse();
    assert_eq!(one_way, told(pairs));
    assert_eq!(one_way.lines().count(), 3);
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let value = OsString::from_vec(vec![b'4', 0xff]);
    let error = Loader::new().variables([("WOW_DISPATCH_WORKERS", value)]).load().expect_err("no text");
    assert_eq!(error.to_string(), "WOW_DISPATCH_WORKERS: is not UTF-8 text");
}

#[test]
fn an_unknown_key_is_refused_at_every_depth_as_it_was_written() {
    assert_eq!(
        in_toml("Max_In_Flight = 2"),
        "s.toml:2: wow.dispatch.Max_In_Flight is not a key, did you mean wow.dispatch.max-in-flight?"
    );
    assert_eq!(
        in_yaml("parallelism: 2"),
        "s.yml:3: wow.dispatch.parallelism is not a key, accepted are wow.dispatch.workers, \
         wow.dispatch.max-in-flight, wow.dispatch.max-per-key, wow.dispatch.overflow, wow.dispatch.max-bytes, \
         wow.dispatch.throughput, wow.dispatch.spin, wow.dispatch.rescue-threads, wow.dispatch.rescue-after, wow.dispatch.stuck-after, \
         wow.dispatch.strategy, wow.dispatch.groups"
    );
    assert_eq!(
        refused("s.toml", "# head\n[wow.dispatcher]\nworkers = 1\n"),
        ["s.toml:2: wow.dispatcher is not a key, did you mean wow.dispatch?"]
    );
    assert_eq!(
        refused("s.yaml", "wow:\n  kafka:\n    enabled: true\n"),
        ["s.yaml:2: wow.kafka is not a key, accepted are wow.dispatch"]
    );
    assert_eq!(
        refused("s.yaml", "wow.dispatch.workers: 4\n"),
        ["s.yaml:1: wow.dispatch.workers is not a key, accepted are wow"]
    );
    assert_eq!(refused("s.toml", "dispatch = 1\n"), ["s.toml:1: dispatch is not a key, accepted are wow"]);
    assert_eq!(
        refused("s.toml", "wow = { dispatch = { worker = 1 } }\n"),
        ["s.toml:1: wow.dispatch.worker is not a key, did you mean wow.dispatch.workers?"]
    );
}

#[test]
fn a_value_where_a_section_belongs_is_refused() {
    assert_eq!(
        refused("s.toml", "[wow]\ndispatch = 4\n"),
        ["s.toml:2: wow.dispatch is 4, accepted is a section with keys"]
    );
    assert_eq!(refused("s.yaml", "wow: on\n"), ["s.yaml:1: wow is on, accepted is a section with keys"]);
    assert_eq!(
        refused("s.yaml", "wow:\n  dispatch:\n  - workers\n"),
        ["s.yaml:2: wow.dispatch is a list, accepted is a section with keys"]
    );
}

#[test]
fn a_key_set_twice_is_refused_and_the_rest_of_the_file_is_checked() {
    assert_eq!(
        refused("s.toml", "[wow.dispatch]\nworkers = 1\nspin = 7\nworkers = 2\n"),
        [
            format!("s.toml:3: wow.dispatch.spin is 7, {SPIN}"),
            "s.toml:4: wow.dispatch.workers is set again to 2, first on line 2, accepted is one value"
                .to_owned(),
        ]
    );
    assert_eq!(
        refused("s.yaml", "wow:\n  dispatch:\n    workers: 1\n    workers: 2\n"),
        ["s.yaml:4: wow.dispatch.workers is set again to 2, first on line 3, accepted is one value"]
    );
    let sections = refused("s.toml", "[wow.dispatch]\nworkers = 1\n[wow.dispatch]\nspin = 0\n");
    assert_eq!(sections.len(), 1);
    assert!(sections[0].starts_with("s.toml:3: "), "{sections:?}");
    let sections = refused("s.yaml", "wow:\n  dispatch:\n    workers: 1\nwow:\n  dispatch:\n    spin: 0\n");
    assert_eq!(sections.len(), 1, "{sections:?}");
}

#[test]
fn every_problem_of_every_source_is_told_at_once() {
    let error = Loader::new()
        .text(
            "a.toml",
            "colour = 1\n[wow.dispatch]\nspin = '9ms'\nworkers = 99999999999999999999\nthroughput = 0\n",
        )
        .file("missing.toml")
        .text("b.yaml", "wow:\n  dispatch:\n    workers: none\n    depth: 2\n")
        .variables([("WOW_DISPATCH_SPIN", "fast"), ("WOW_DISPATCH_WORKERS", "2")])
        .load()
        .expect_err("eight problems");
    let places: Vec<String> = error.problems().iter().map(|problem| problem.origin.to_string()).collect();
    assert_eq!(
        places,
        [
            "a.toml:1",
            "a.toml:3",
            "a.toml:4",
            "a.toml:5",
            "missing.toml",
            "b.yaml:3",
            "b.yaml:4",
            "WOW_DISPATCH_SPIN"
        ]
    );
}

#[test]
fn a_malformed_file_is_refused_on_one_line_with_its_place() {
    let toml = refused("s.toml", "[wow.dispatch]\nworkers = \n");
    assert!(toml[0].starts_with("s.toml:2: wow.dispatch.workers: "), "{toml:?}");
    assert!(toml[0].ends_with(WORKERS), "{toml:?}");
    let yaml = refused("s.yaml", "wow:\n  dispatch: {workers: 1\n");
    assert_eq!(yaml.len(), 1);
    assert!(yaml[0].starts_with("s.yaml:"), "{yaml:?}");
    let tabs = refused("s.yaml", "wow:\n\tdispatch:\n");
    assert_eq!(tabs.len(), 1);
    let two = refused("s.yaml", "wow: {}\n---\nwow: {}\n");
    assert_eq!(two.len(), 1);
    let list = refused("s.yaml", "- 1\n- 2\n");
    assert_eq!(list.len(), 1);
    let scalar = refused("s.yaml", "only words\n");
    assert_eq!(scalar.len(), 1);
}

#[test]
fn a_file_that_would_bring_the_parser_down_is_refused() {
    let block: String = (0..1_300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for level in 1..64 {
        bomb.push_str(&format!("a{level}: &a{level} [*a{}, *a{}]\n", level - 1, level - 1));
    }
    for (name, text) in [
        ("block.yaml", block),
        ("dashes.yaml", "- ".repeat(200_000)),
        ("questions.yaml", "? ".repeat(200_000)),
        ("lists.yaml", format!("wow: {}", "[".repeat(200_000))),
        ("lists.toml", format!("wow = {}", "[".repeat(200_000))),
        ("bomb.yaml", bomb),
    ] {
        let lines = refused(name, &text);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].len() < 300, "{lines:?}");
    }
    let lines = refused("alias.yaml", "wow:\n  dispatch:\n    workers: &n 2\n    throughput: *n\n");
    assert_eq!(lines, ["alias.yaml:4: an alias (`*name`) is not accepted, write the value"]);
}

#[test]
fn control_characters_of_a_value_stay_on_the_line() {
    let lines = refused("s.toml", "[wow.dispatch]\nspin = \"\"\"\na\nb\"\"\"\n");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let variable = in_variable("WOW_DISPATCH_SPIN", "1\n2\u{1b}[31m");
    assert_eq!(variable.lines().count(), 1);
    assert!(!variable.contains('\u{1b}'));
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn loaded(name: &str, bytes: &[u8]) -> (PathBuf, Refusal) {
    let path = folder().join(name);
    fs::write(&path, bytes).unwrap();
    let error = Loader::new().file(&path).load().expect_err(name);
    assert_eq!(error.problems().len(), 1);
    (path, error.problems()[0].refusal.clone())
}

#[test]
fn a_file_that_is_no_configuration_is_refused_by_name() {
    assert_eq!(loaded("empty.toml", b"").1, Refusal::Empty);
    assert_eq!(loaded("blank.yaml", b" \n\t\n").1, Refusal::Empty);
    assert_eq!(loaded("latin.toml", b"[wow.dispatch]\nworkers = 2 # \xe9\n").1, Refusal::NotUtf8);
    assert_eq!(loaded("service.json", b"{}").1, Refusal::UnknownFormat);
    assert_eq!(loaded("service", b"[wow]").1, Refusal::UnknownFormat);
    assert!(matches!(loaded("long.toml", &vec![b'#'; (1 << 20) + 1]).1, Refusal::TooLong { .. }));
    let noise: Vec<u8> = (0..4_096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_eq!(loaded("noise.toml", &noise).1, Refusal::NotUtf8);
}

#[test]
fn a_missing_file_and_a_folder_are_refused_by_name() {
    let missing = folder().join("missing.toml");
    let error = Loader::new().file(&missing).load().expect_err("missing");
    assert!(error.to_string().starts_with(&format!("{}: cannot be read: ", missing.display())));
    let path = folder().join("folder.toml");
    fs::create_dir_all(&path).unwrap();
    let error = Loader::new().file(&path).load().expect_err("a folder");
    assert_eq!(error.to_string(), format!("{}: cannot be read: it is a folder", path.display()));
}

#[test]
fn a_good_file_loads_from_disk_with_its_lines() {
    let path = folder().join("good.yml");
    fs::write(&path, "# a service\nwow:\n  dispatch:\n    workers: 3\n").unwrap();
    let config = Loader::new().file(&path).load().unwrap();
    assert_eq!(config.dispatch.workers, 3);
    assert_eq!(config.origin(wow_config::Key::Workers).to_string(), format!("{}:4", path.display()));
    assert!(Config::load(Path::new("/")).is_err());
}
