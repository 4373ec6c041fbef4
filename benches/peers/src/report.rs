//! What the samples come to: medians, ratios within rounds, and who is broken; as JSON and as Markdown.
//!
//! Ratios are taken round by round and their median is shown, since two contenders of one round met the same machine.
//! Invariant: a broken contender is shown as broken and is never the best of anything.

mod compare;
mod markdown;
mod surroundings;

pub use surroundings::{Surroundings, surroundings};

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contender::{Entry, Family};
use crate::measure::Sample;
use crate::rounds::{Measured, Plan, is_disturbed};
use crate::workload::Workload;
use compare::Ratio;
pub(crate) use markdown::number;

/// Allocations for a message, by workload and contender.
pub type Allocations = BTreeMap<(String, String), f64>;

/// Reads what the counting program printed.
#[must_use]
pub fn allocations(text: &str) -> Allocations {
    let line = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some(((words.next()?, words.next()?), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// A finished measurement.
#[derive(Debug)]
pub struct Report {
    pub(crate) workloads: Vec<OfWorkload>,
    surroundings: Surroundings,
    plan: Plan,
}

/// One workload of it.
#[derive(Debug)]
pub(crate) struct OfWorkload {
    pub(crate) workload: Workload,
    pub(crate) rows: Vec<Row>,
    pub(crate) ratios: Vec<Ratio>,
}

/// One contender on one workload: medians over the rounds.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) entry: Entry,
    /// Thousands of messages a second.
    pub(crate) rate: f64,
    /// The same, round by round.
    pub(crate) rates: Vec<f64>,
    /// Median, p99 and p99.9 in microseconds.
    pub(crate) latency: [Option<f64>; 3],
    pub(crate) allocations: Option<f64>,
    pub(crate) own_nanos: f64,
    pub(crate) switches: f64,
    pub(crate) others: f64,
    pub(crate) repeated: usize,
    /// Kept samples that were disturbed all the same.
    pub(crate) disturbed: usize,
    /// What it did wrong, in words, if anything.
    pub(crate) broken: Option<String>,
}

impl Report {
    /// Sums the samples up.
    #[must_use]
    pub fn new(
        plan: &Plan,
        measured: &[Measured],
        counted: &Allocations,
        surroundings: Surroundings,
    ) -> Self {
        let of = |workload: Workload| {
            let rows: Vec<Row> = measured
                .iter()
                .filter(|one| one.workload == workload)
                .map(|one| Row::new(one, counted))
                .collect();
            OfWorkload { workload, ratios: compare::ratios(&rows), rows }
        };
        let workloads = plan.workloads.iter().map(|workload| of(*workload)).collect();
        Self { workloads, surroundings, plan: plan.clone() }
    }

    /// Who broke which promise.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let rows = self.workloads.iter().flat_map(|of| of.rows.iter().map(move |row| (of.workload, row)));
        rows.filter_map(|(workload, row)| {
            row.broken.as_ref().map(|fault| format!("{} on {}: {fault}", row.entry.id, workload.name()))
        })
        .collect()
    }

    /// The tables.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::write(self)
    }

    /// Everything, each round included.
    #[must_use]
    pub fn json(&self) -> String {
        let workloads: Vec<Value> = self.workloads.iter().map(OfWorkload::json).collect();
        let value = json!({
            "surroundings": self.surroundings.json(),
            "messages": self.plan.length.messages,
            "millis": self.plan.length.millis,
            "rounds": self.plan.rounds,
            "window": crate::course::WINDOW,
            "workers": crate::contender::WORKERS,
            "workloads": workloads,
        });
        format!("{value:#}\n")
    }

    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl OfWorkload {
    fn json(&self) -> Value {
        json!({
            "workload": self.workload.name(),
            "title": self.workload.title(),
            "contenders": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "ratios": self.ratios.iter().map(Ratio::json).collect::<Vec<_>>(),
        })
    }
}

impl Row {
    fn new(measured: &Measured, counted: &Allocations) -> Self {
        let Measured { workload, entry, samples, repeated } = measured;
        let of = |value: fn(&Sample) -> f64| median(samples.iter().map(value).collect());
        let latency = |at: usize| {
            let values: Vec<f64> = samples.iter().filter_map(|sample| sample.latency[at]).collect();
            (!values.is_empty()).then(|| median(values))
        };
        Self {
            entry: *entry,
            rate: of(Sample::rate),
            rates: samples.iter().map(Sample::rate).collect(),
            latency: [latency(0), latency(1), latency(2)],
            allocations: counted.get(&(workload.name().to_owned(), entry.id.to_owned())).copied(),
            own_nanos: of(Sample::own_nanos_per_message),
            switches: of(Sample::switches_per_thousand),
            others: of(Sample::share_of_others),
            repeated: *repeated,
            disturbed: samples.iter().filter(|sample| is_disturbed(sample)).count(),
            broken: broken(samples, entry.ordered),
        }
    }

    /// Whether it may be the best of something.
    pub(crate) fn is_peer(&self) -> bool {
        self.broken.is_none() && matches!(self.entry.family, Family::Lane | Family::PerKey)
    }

    fn json(&self) -> Value {
        json!({
            "id": self.entry.id,
            "name": self.entry.name,
            "family": self.entry.family.name(),
            "door": self.entry.door.name(),
            "k_messages_per_second": rounded(self.rate),
            "rounds": self.rates.iter().map(|rate| rounded(*rate)).collect::<Vec<_>>(),
            "p50_us": self.latency[0].map(rounded),
            "p99_us": self.latency[1].map(rounded),
            "p99_9_us": self.latency[2].map(rounded),
            "allocations_per_message": self.allocations,
            "cpu_ns_per_message": rounded(self.own_nanos),
            "switches_per_1000": rounded(self.switches),
            "share_of_others": (self.others * 1_000.0).round() / 1_000.0,
            "repeated": self.repeated,
            "disturbed": self.disturbed,
            "broken": self.broken,
        })
    }
}

fn broken(samples: &[Sample], ordered: bool) -> Option<String> {
    let faults = samples.iter().map(|sample| &sample.faults).find(|faults| !faults.is_clean(ordered))?;
    let counts = [
        (faults.order, "out of order"),
        (faults.exclusion, "beside another of its key"),
        (faults.payload, "not whole"),
        (faults.window, "beyond the window"),
        (faults.missing, "lost or repeated"),
    ];
    let words = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    Some(words.collect::<Vec<_>>().join(", "))
}

/// The middle value; of an even number the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
