//! The report: the ledger and the totals, as a table for people and as one JSON object for programs.
//!
//! Plain data and its two forms. Invariant: `rows = handled + rejected`, checked by [`Report::discrepancy`] together
//! with everything else that two parts of the system count independently. It counts nothing itself.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// What a run did.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: u64,
    pub(crate) handled: u64,
    pub(crate) rejected: u64,
    pub(crate) fleet: Fleet,
    pub(crate) carriers: BTreeMap<String, Carrier>,
    pub(crate) events: u64,
    pub(crate) elapsed: Duration,
    pub(crate) order_violations: u64,
    pub(crate) ending: Ending,
    /// Time from sending a command to its answer, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

/// How the rows ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every row of the input.
    Complete,
    /// Somebody asked to stop; what was read is finished.
    Interrupted,
}

/// Sums over the aircraft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) aircraft: u64,
    pub(crate) legs: u64,
    pub(crate) cancelled: u64,
    pub(crate) miles: u64,
    pub(crate) air_minutes: u64,
}

/// One carrier's accepted rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carrier {
    pub(crate) flights: u64,
    pub(crate) n_delays: u64,
    pub(crate) delay_minutes: i64,
}

impl Carrier {
    /// The mean departure delay over the rows that have one, to two decimals.
    pub(crate) fn mean_dep_delay(&self) -> Option<f64> {
        if self.n_delays == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "sums of minutes stay far below 2^53")]
        let mean = self.delay_minutes as f64 / self.n_delays as f64;
        // Through text, so that JSON and table show the same two decimals; adding zero turns -0 into 0.
        format!("{mean:.2}").parse::<f64>().ok().map(|mean| mean + 0.0)
    }
}

#[derive(Serialize)]
struct Json<'a> {
    rows: u64,
    handled: u64,
    rejected: u64,
    aircraft: u64,
    cancelled: u64,
    miles: u64,
    air_minutes: u64,
    carriers: BTreeMap<&'a str, JsonCarrier>,
    events: u64,
    elapsed_ms: u64,
    order_violations: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
}

#[derive(Serialize)]
struct JsonCarrier {
    flights: u64,
    mean_dep_delay: Option<f64>,
}

impl Report {
    /// The first disagreement between parts that count the same thing.
    pub(crate) fn discrepancy(&self) -> Option<String> {
        let projected: u64 = self.carriers.values().map(|carrier| carrier.flights).sum();
        let counts = [
            ("handled + rejected", self.handled + self.rejected, "rows", self.rows),
            ("legs of all aircraft", self.fleet.legs, "handled", self.handled),
            ("flights of all carriers", projected, "handled", self.handled),
            ("events", self.events, "handled", self.handled),
        ];
        counts
            .into_iter()
            .find(|(_, found, _, expected)| found != expected)
            .map(|(what, found, of, expected)| format!("{what} = {found}, but {of} = {expected}"))
    }

    /// Writes one JSON object on one line.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let carrier = |carrier: &Carrier| JsonCarrier {
            flights: carrier.flights,
            mean_dep_delay: carrier.mean_dep_delay(),
        };
        let json = Json {
            rows: self.rows,
            handled: self.handled,
            rejected: self.rejected,
            aircraft: self.fleet.aircraft,
            cancelled: self.fleet.cancelled,
            miles: self.fleet.miles,
            air_minutes: self.fleet.air_minutes,
            carriers: self.carriers.iter().map(|(code, counts)| (code.as_str(), carrier(counts))).collect(),
            events: self.events,
            elapsed_ms: u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            order_violations: self.order_violations,
            interrupted: self.ending == Ending::Interrupted,
        };
        serde_json::to_writer(&mut *out, &json)?;
        writeln!(out)?;
        out.flush()
    }

    /// Writes the table.
    pub(crate) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        if self.ending == Ending::Interrupted {
            writeln!(out, "interrupted: what was read is finished, the rest was not read")?;
        }
        writeln!(out, "carrier    flights   mean departure delay")?;
        for (code, carrier) in &self.carriers {
            let mean = carrier.mean_dep_delay().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"));
            writeln!(out, "{code:<8} {:>9}   {mean:>20}", grouped(carrier.flights))?;
        }
        let fleet = &self.fleet;
        writeln!(out)?;
        writeln!(out, "aircraft    {:>12}", grouped(fleet.aircraft))?;
        writeln!(out, "cancelled   {:>12}", grouped(fleet.cancelled))?;
        writeln!(out, "miles       {:>12}", grouped(fleet.miles))?;
        writeln!(out, "air minutes {:>12}", grouped(fleet.air_minutes))?;
        writeln!(out, "events      {:>12}", grouped(self.events))?;
        writeln!(out)?;
        let seconds = self.elapsed.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = self.rows as f64 / seconds.max(1e-9);
        writeln!(out, "{seconds:.3} s, {rate:.0} rows/s")?;
        let at = |quantile| micros(self.latency.value_at_quantile(quantile));
        writeln!(
            out,
            "latency from send to answer: p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            micros(self.latency.max())
        )?;
        writeln!(out, "out of order: {}", self.order_violations)?;
        writeln!(
            out,
            "{} rows = {} handled + {} rejected",
            grouped(self.rows),
            grouped(self.handled),
            grouped(self.rejected)
        )?;
        out.flush()
    }
}

fn micros(nanos: u64) -> String {
    format!("{}.{:01} us", nanos / 1_000, nanos % 1_000 / 100)
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Carrier, grouped};

    #[test]
    fn a_mean_has_two_decimals_and_no_negative_zero() {
        let mean = |delay_minutes, n_delays| Carrier { flights: 9, n_delays, delay_minutes }.mean_dep_delay();
        assert_eq!(mean(0, 0), None);
        assert_eq!(mean(10, 3), Some(3.33));
        assert_eq!(mean(-20, 3), Some(-6.67));
        assert!(mean(-1, 1_000).unwrap().is_sign_positive());
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
