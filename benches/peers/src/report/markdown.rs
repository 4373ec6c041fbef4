//! The report as Markdown: how it was measured, one overview, one table for each workload.

use std::fmt::Write;

use super::{OfWorkload, Report, Row};
use crate::contender::{ALL, WORKERS};
use crate::course::WINDOW;

pub(crate) fn write(report: &Report) -> String {
    let mut text = String::new();
    head(&mut text, report);
    overview(&mut text, report);
    for of in &report.workloads {
        table(&mut text, of);
        ratios(&mut text, of);
    }
    text
}

fn head(text: &mut String, report: &Report) {
    let (about, plan) = (report.surroundings(), report.plan());
    let rows = || report.workloads.iter().flat_map(|of| &of.rows);
    let kept = rows().map(|row| row.rates.len()).sum::<usize>();
    let repeated = rows().map(|row| row.repeated).sum::<usize>();
    let disturbed = rows().map(|row| row.disturbed).sum::<usize>();
    let _ = writeln!(
        text,
        "# keyed-executor beside its peers

Commit {}, {} x {}. {WORKERS} workers, window {WINDOW}, one producer, messages of 96 bytes; runs of at most {} messages
and {} ms; medians of {} interleaved rounds. Of {kept} kept runs others disturbed {disturbed}; {repeated} more were
disturbed and repeated.
",
        about.commit, about.processors, about.processor, plan.length.messages, plan.length.millis, plan.rounds,
    );
}

/// Rates of all contenders on all workloads.
fn overview(text: &mut String, report: &Report) {
    let names: Vec<&str> = report.workloads.iter().map(|of| of.workload.name()).collect();
    let _ = writeln!(text, "## Thousand messages a second\n\n| contender | fed by | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "--:|".repeat(names.len()));
    for entry in ALL {
        let cell = |of: &OfWorkload| {
            let row = of.rows.iter().find(|row| row.entry.id == entry.id);
            row.map_or("-".to_owned(), |row| {
                if row.broken.is_some() { "broken".to_owned() } else { number(row.rate) }
            })
        };
        let cells: Vec<String> = report.workloads.iter().map(cell).collect();
        if cells.iter().any(|cell| cell != "-") {
            let _ = writeln!(text, "| {} | {} | {} |", entry.name, entry.door.name(), cells.join(" | "));
        }
    }
    let _ = writeln!(text);
}

fn table(text: &mut String, of: &OfWorkload) {
    let _ = writeln!(
        text,
        "## {}: {}

| contender | fed by | k messages/s | p50 us | p99 us | p99.9 us | allocations/message | CPU ns/message | switches/1,000 | others | checks |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
        of.workload.name(),
        of.workload.title(),
    );
    for row in &of.rows {
        let Row { entry, latency, .. } = row;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} % | {} |",
            entry.name,
            entry.door.name(),
            number(row.rate),
            optional(latency[0]),
            optional(latency[1]),
            optional(latency[2]),
            row.allocations.map_or("-".to_owned(), |count| format!("{count:.3}")),
            number(row.own_nanos),
            number(row.switches),
            row.others * 100.0,
            checks(row),
        );
    }
    let _ = writeln!(text);
}

fn checks(row: &Row) -> String {
    match &row.broken {
        Some(fault) => format!("broken: {fault}"),
        None if row.entry.ordered => "kept".to_owned(),
        None => "kept, promises no order".to_owned(),
    }
}

fn ratios(text: &mut String, of: &OfWorkload) {
    if of.ratios.is_empty() {
        return;
    }
    let _ = writeln!(text, "| ours | against | ratio | lowest to highest round |\n|---|---|--:|--:|");
    for ratio in &of.ratios {
        let (low, high) = ratio.spread;
        let _ = writeln!(
            text,
            "| {} | {}: {} | {:.2} | {low:.2} to {high:.2} |",
            ratio.ours, ratio.against, ratio.id, ratio.ratio
        );
    }
    let _ = writeln!(text);
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// Three digits that mean something, with a comma before the thousands.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => {
            let digits = format!("{value:.0}");
            let mut grouped = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at) % 3 == 0 {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            grouped
        }
    }
}
