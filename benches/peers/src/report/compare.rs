//! Ours against the best of each kind, round by round.
//!
//! "Best" is the contender of its kind with the highest median rate that broke nothing. A limit is no peer, but what is
//! compared with it says how much of the machine is left.

use serde_json::{Value, json};

use super::{Row, median, rounded};
use crate::contender::{Door, Family};

/// A ratio of rates.
#[derive(Debug)]
pub(crate) struct Ratio {
    pub(crate) ours: &'static str,
    pub(crate) against: &'static str,
    pub(crate) id: &'static str,
    pub(crate) ratio: f64,
    /// The lowest and the highest of all rounds.
    pub(crate) spread: (f64, f64),
}

impl Ratio {
    fn new(ours: &Row, against: &'static str, other: &Row) -> Self {
        let ratios: Vec<f64> =
            ours.rates.iter().zip(&other.rates).map(|(ours, other)| ours / other).collect();
        let spread = ratios
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
        Self { ours: ours.entry.id, against, id: other.entry.id, ratio: median(ratios), spread }
    }

    pub(crate) fn json(&self) -> Value {
        let two = |value: f64| rounded(value * 10.0) / 10.0;
        json!({
            "ours": self.ours,
            "against": self.against,
            "id": self.id,
            "ratio": two(self.ratio),
            "lowest": two(self.spread.0),
            "highest": two(self.spread.1),
        })
    }
}

/// Every contender of ours that broke nothing against the best of every kind.
pub(crate) fn ratios(rows: &[Row]) -> Vec<Ratio> {
    let best = |kind: &dyn Fn(&Row) -> bool| {
        rows.iter().filter(|row| row.broken.is_none() && kind(row)).max_by(|a, b| a.rate.total_cmp(&b.rate))
    };
    let kinds = [
        (
            "best lane peer fed by a thread",
            best(&|row| row.entry.family == Family::Lane && row.entry.door == Door::Thread),
        ),
        (
            "best lane peer fed from a source",
            best(&|row| row.entry.family == Family::Lane && row.entry.door == Door::Source),
        ),
        ("best per-key peer", best(&|row| row.entry.family == Family::PerKey)),
        ("best peer", best(&Row::is_peer)),
        ("the 64-lane peer fed by a thread", best(&|row| row.entry.id == "hash-64")),
        ("the handler alone", best(&|row| row.entry.id == "alone")),
    ];
    let ours = rows.iter().filter(|row| row.entry.family == Family::Ours && row.broken.is_none());
    ours.flat_map(|ours| {
        kinds.iter().filter_map(move |(against, other)| other.map(|other| Ratio::new(ours, against, other)))
    })
    .collect()
}
