//! What the tests share: running the program, and a plain count of the same table to compare it with.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const HEADER: &str = "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,arr_delay,carrier,flight,tailnum,\
                          origin,dest,air_time,distance,time_hour";

/// The January file, as the repository has it.
pub(crate) fn january() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/flights-2013-01.csv.gz")
}

/// A path of this test run's own.
pub(crate) fn temp(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("flights-{name}"))
}

/// A file of this test run's own.
pub(crate) fn temp_file(name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = temp(name);
    std::fs::write(&path, bytes).expect("the test's folder can be written");
    path
}

pub(crate) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes.as_ref()).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

pub(crate) fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_string(&mut text).expect("a whole gzip file");
    text
}

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flights"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["WORKERS", "MAX_IN_FLIGHT", "MAX_BYTES", "THROUGHPUT", "SPIN", "STRATEGY", "GROUPS"] {
        command.env_remove(format!("WOW_DISPATCH_{name}"));
    }
    command.env_remove("WOW_PARALLELISM").env_remove("RUST_LOG");
    command
}

/// Waits for the end of `child`, at most a minute.
pub(crate) fn finish(child: Child) -> Output {
    let id = child.id();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    match receive.recv_timeout(Duration::from_secs(60)) {
        Ok(output) => output.expect("the program's output can be read"),
        Err(_) => {
            let _ = Command::new("kill").arg("-KILL").arg(id.to_string()).status();
            panic!("the program did not end within a minute");
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    finish(program().args(arguments).spawn().expect("the program starts"))
}

pub(crate) fn run_with_stdin(arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut child = program().args(arguments).stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let bytes = input.as_ref().to_vec();
    std::thread::spawn(move || {
        // The program may stop reading when it has found a problem.
        let _ = stdin.write_all(&bytes);
    });
    finish(child)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8")
}

/// The JSON of a run that has to succeed, without what no count can know.
pub(crate) fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    let out = text(&output.stdout);
    assert_eq!(out.lines().count(), 1, "one object on one line: {out}");
    let mut json: Value = serde_json::from_str(&out).expect("JSON");
    let elapsed = json.as_object_mut().expect("an object").remove("elapsed_ms");
    assert!(elapsed.is_some_and(|elapsed| elapsed.is_u64()), "{out}");
    json
}

// === the plain count ===

/// What a plain single-threaded count of the table gives.
pub(crate) struct Count {
    pub(crate) json: Value,
    pub(crate) rejected_lines: Vec<u64>,
}

/// Counts a table without quotes whose columns stand as in `HEADER`.
pub(crate) fn count(table: &str) -> Count {
    let mut lines = table.lines();
    assert_eq!(lines.next().map(|header| header.trim_start_matches('\u{feff}')), Some(HEADER));
    let (mut rows, mut rejected) = (0_u64, Vec::new());
    let (mut legs, mut aircraft) = (HashSet::new(), HashSet::new());
    let (mut cancelled, mut miles, mut air_minutes) = (0_u64, 0_u64, 0_u64);
    let mut carriers: BTreeMap<String, (u64, Vec<i64>)> = BTreeMap::new();
    for (index, line) in lines.enumerate() {
        if line.is_empty() {
            continue;
        }
        rows += 1;
        let fields: Vec<&str> = line.split(',').collect();
        let names: Vec<&str> = HEADER.split(',').collect();
        let row: HashMap<&str, &str> = names.iter().copied().zip(fields.iter().copied()).collect();
        let unsigned = |name: &str| row[name].parse::<u32>().is_ok();
        let unsigned_or_na = |name: &str| row[name] == "NA" || unsigned(name);
        let signed_or_na = |name: &str| row[name] == "NA" || row[name].parse::<i32>().is_ok();
        let is_command = fields.len() == names.len()
            && !["", "NA"].contains(&row["tailnum"].trim())
            && ["year", "month", "day", "flight", "distance"].into_iter().all(unsigned)
            && ["dep_time", "sched_dep_time", "arr_time", "air_time"].into_iter().all(unsigned_or_na)
            && ["dep_delay", "arr_delay"].into_iter().all(signed_or_na);
        let accepted = is_command && {
            let flown_nowhere = row["dep_time"] != "NA" && row["distance"].parse::<u32>() == Ok(0);
            let leg = ["tailnum", "year", "month", "day", "carrier", "flight", "origin"];
            let number_or_text =
                |name: &str| row[name].parse::<u32>().map_or(row[name].to_owned(), |n| n.to_string());
            !flown_nowhere && legs.insert(leg.map(number_or_text))
        };
        if !accepted {
            rejected.push(index as u64 + 2);
            continue;
        }
        aircraft.insert(row["tailnum"]);
        if row["dep_time"] == "NA" {
            cancelled += 1;
        } else {
            miles += row["distance"].parse::<u64>().unwrap();
        }
        air_minutes += row["air_time"].parse::<u64>().unwrap_or(0);
        let carrier = carriers.entry(row["carrier"].to_owned()).or_default();
        carrier.0 += 1;
        carrier.1.extend(row["dep_delay"].parse::<i64>());
    }
    let handled = rows - rejected.len() as u64;
    let carriers: BTreeMap<String, Value> = carriers
        .into_iter()
        .map(|(code, (flights, delays))| {
            let sum: i64 = delays.iter().sum();
            let mean = (!delays.is_empty()).then(|| sum as f64 / delays.len() as f64);
            let mean = mean.map(|mean| format!("{mean:.2}").parse::<f64>().unwrap() + 0.0);
            (code, json!({ "flights": flights, "mean_dep_delay": mean }))
        })
        .collect();
    let json = json!({
        "rows": rows,
        "handled": handled,
        "rejected": rejected.len(),
        "aircraft": aircraft.len(),
        "cancelled": cancelled,
        "miles": miles,
        "air_minutes": air_minutes,
        "carriers": carriers,
        "events": handled,
        "order_violations": 0,
    });
    Count { json, rejected_lines: rejected }
}
