//! The tables: a row for each scenario, keyed beside grouped.

use std::fmt::Write as _;

use wow_dispatch::Strategy;

use crate::sample::{Sample, median};

/// What a part's table shows beside the rates.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Columns {
    /// How long an observed message took.
    Latency,
    /// Threads, processor time and context switches.
    Cost,
}

/// One scenario's samples, a pair for each round.
pub(crate) struct Row {
    name: String,
    keyed: Vec<Sample>,
    grouped: Vec<Sample>,
}

impl Row {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), keyed: Vec::new(), grouped: Vec::new() }
    }

    pub(crate) fn take(&mut self, strategy: Strategy, sample: Sample) {
        match strategy {
            Strategy::Keyed => self.keyed.push(sample),
            Strategy::Grouped => self.grouped.push(sample),
        }
    }

    /// The rate of one over that of the other, round by round: lowest, median, highest.
    fn ratios(&self) -> (f64, f64, f64) {
        let ratios: Vec<f64> =
            self.keyed.iter().zip(&self.grouped).map(|(keyed, grouped)| keyed.rate / grouped.rate).collect();
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(0.0, f64::max);
        (lowest, median(ratios), highest)
    }

    fn pair(&self, of: fn(&Sample) -> f64) -> [f64; 2] {
        [&self.keyed, &self.grouped].map(|samples| median(samples.iter().map(of)))
    }
}

impl Columns {
    pub(crate) fn table(self, rows: &[Row]) -> String {
        type Column = (&'static str, fn(&Sample) -> f64);
        let columns: &[Column] = match self {
            Self::Latency => &[("p50, us", |sample| sample.p50), ("p99, us", |sample| sample.p99)],
            Self::Cost => &[
                ("threads", |sample| sample.threads),
                ("CPU us a message", |sample| sample.cpu_micros),
                ("switches a message", |sample| sample.switches),
            ],
        };
        let mut text = "| scenario | keyed, a second | grouped, a second | keyed / grouped |".to_owned();
        for (name, _) in columns {
            let _infallible = write!(text, " {name}: keyed | grouped |");
        }
        text.push_str("\n|---|--:|--:|--:|");
        text.push_str(&"--:|".repeat(2 * columns.len()));
        text.push('\n');
        for row in rows {
            let [keyed, grouped] = row.pair(|sample| sample.rate);
            let (lowest, ratio, highest) = row.ratios();
            let _infallible = write!(
                text,
                "| {} | {} | {} | **{}** ({} to {}) |",
                row.name,
                shown(keyed),
                shown(grouped),
                shown(ratio),
                shown(lowest),
                shown(highest)
            );
            for (_, of) in columns {
                let [keyed, grouped] = row.pair(*of);
                let _infallible = write!(text, " {} | {} |", shown(keyed), shown(grouped));
            }
            text.push('\n');
        }
        text
    }
}

/// Three figures or so, with separators.
fn shown(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let decimals = match value.abs() {
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}
