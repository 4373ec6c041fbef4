//! What a report says: medians, ratios of the same round, and no praise for who is broken.

use super::*;
use crate::contender::ALL;
use crate::course::Faults;
use crate::measure::Length;
use crate::usage::Used;

fn sample(rate: u64, faults: Faults) -> Sample {
    let used = Used { own_nanos: 50_000, switches: 2, other_nanos: 0 };
    Sample { messages: rate, nanos: 1_000_000, used, latency: [Some(1.0); 3], faults, allocations: None }
}

fn measured(id: &str, rates: [u64; 3], faults: Faults) -> Measured {
    let entry = *ALL.iter().find(|entry| entry.id == id).expect("a known contender");
    let samples = rates.map(|rate| sample(rate, faults.clone())).to_vec();
    Measured { workload: Workload::A, entry, samples, repeated: 1 }
}

fn report(measured: &[Measured]) -> Report {
    let plan = Plan {
        workloads: vec![Workload::A],
        contenders: Vec::new(),
        length: Length { messages: 1_000, millis: 10 },
        rounds: 3,
        repeats: 0,
    };
    let surroundings = Surroundings { processor: "x".to_owned(), processors: 2, commit: "c".to_owned() };
    Report::new(&plan, measured, &allocations("A ours 0.5\n"), surroundings)
}

#[test]
fn ratios_are_taken_within_rounds() {
    let clean = Faults::default();
    let ours = measured("ours", [1_000, 400, 900], clean.clone());
    let report = report(&[ours, measured("hash-64", [500, 200, 300], clean)]);
    let ratio = report.workloads[0].ratios.iter().find(|ratio| ratio.against == "best peer").expect("a peer");
    assert_eq!((ratio.ratio, ratio.spread), (2.0, (2.0, 3.0)));
    assert_eq!(report.workloads[0].rows[0].rate, 900.0);
    assert_eq!(report.workloads[0].rows[0].allocations, Some(0.5));
}

#[test]
fn a_broken_contender_is_never_best() {
    let broken = Faults { order: 3, ..Faults::default() };
    let clean = Faults::default();
    let report = report(&[
        measured("ours", [100, 100, 100], clean.clone()),
        measured("task", [50, 50, 50], clean),
        measured("hash-1", [9_000, 9_000, 9_000], broken),
    ]);
    assert!(report.workloads[0].ratios.iter().all(|ratio| ratio.id != "hash-1"));
    assert!(report.markdown().contains("broken: 3 out of order"));
    assert_eq!(report.broken(), ["hash-1 on A: 3 out of order"]);
}

#[test]
fn what_is_written_can_be_read() {
    let report = report(&[measured("ours", [1, 2, 3], Faults::default())]);
    let value: Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_eq!(value["workloads"][0]["contenders"][0]["k_messages_per_second"], 2.0);
    let svg = crate::chart::svg(&report);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}

#[test]
fn a_median_is_in_the_middle() {
    assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
}
