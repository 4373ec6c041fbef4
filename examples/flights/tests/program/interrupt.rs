//! An interrupt finishes what was read and reports it.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{HEADER, finish, program, temp, temp_file, text};

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(status.expect("kill runs").success());
}

/// Sends rows until the program must have taken many of them, and leaves its input open.
fn started(list: &Path) -> (Child, std::process::ChildStdin) {
    let mut command = program();
    command.args(["--json", "--input", "-", "--rejected"]).arg(list).stdin(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut table = format!("{HEADER}\n");
    for flight in 0..40_000 {
        let tail = if flight % 100 == 0 { "NA".to_owned() } else { format!("N{}", flight % 97) };
        table.push_str(&format!(
            "2013,1,1,517,515,2,830,11,UA,{flight},{tail},EWR,IAH,227,1400,2013-01-01T10:00:00Z\n"
        ));
    }
    // What fits between this pipe and the rows' counting is a small part of it, so once it is written rows are counted,
    // and the listener for interrupts, which is there before the first row is read, is there too.
    stdin.write_all(table.as_bytes()).expect("the program reads");
    (child, stdin)
}

#[test]
fn an_interrupt_drains_and_reports() {
    for name in ["INT", "TERM"] {
        let list = temp_file(&format!("interrupted-{name}.csv"), "an older list\n");
        let (child, stdin) = started(&list);
        signal(&child, name);
        let output = finish(child);
        drop(stdin);
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let json: serde_json::Value = serde_json::from_str(&text(&output.stdout)).expect("one JSON object");
        let number = |key: &str| json[key].as_u64().unwrap_or_else(|| panic!("{key} in {json}"));
        assert_eq!(json["interrupted"], true);
        assert!(number("rows") > 10_000, "{json}");
        assert_eq!(number("rows"), number("handled") + number("rejected"));
        assert_eq!(number("events"), number("handled"));
        assert_eq!(number("order_violations"), 0);
        assert!(number("rejected") > 0);
        let listed = std::fs::read_to_string(&list).expect("the list");
        assert_eq!(listed.lines().count() as u64, number("rejected"), "what was rejected is listed");
    }
}

#[test]
fn a_second_interrupt_never_waits_for_the_first() {
    let list = temp_file("interrupted-twice.csv", "an older list\n");
    let (child, stdin) = started(&list);
    signal(&child, "INT");
    signal(&child, "INT");
    let output = finish(child);
    drop(stdin);
    // The report may have been finished before the second one came; either way the program ends as interrupted.
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let err = text(&output.stderr);
    let listed = std::fs::read_to_string(&list).expect("the list");
    assert_eq!(listed == "an older list\n", !err.is_empty(), "a list comes with a report: {listed}");
    assert!(err.is_empty() || err == "interrupted twice: ended without a report\n", "{err}");
}

#[test]
fn without_an_interrupt_the_same_pipe_is_counted_whole() {
    let list = temp("whole-pipe.csv");
    let (child, stdin) = started(&list);
    drop(stdin);
    let output = finish(child);
    let json = crate::common::json_of(&output);
    assert_eq!((&json["rows"], &json["rejected"]), (&40_000.into(), &400.into()));
    assert!(json.get("interrupted").is_none());
}
