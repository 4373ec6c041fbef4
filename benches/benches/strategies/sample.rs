//! What one run gave: a rate, latencies, and what it cost.

use std::time::Duration;

use crate::usage::Usage;

/// How often each scenario runs with each strategy.
pub(crate) const ROUNDS: usize = 5;
/// Before this has passed nothing is counted: threads start, queues fill.
pub(crate) const WARM_UP: Duration = Duration::from_millis(40);

#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Observed messages a second.
    pub(crate) rate: f64,
    /// From send to handled, in microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Threads of the strategy, once all is warm.
    pub(crate) threads: f64,
    /// Of the whole process, for each observed message.
    pub(crate) cpu_micros: f64,
    pub(crate) switches: f64,
}

impl Sample {
    /// What was observed in `time`; the latencies are in nanoseconds.
    pub(crate) fn of(
        n_messages: u64,
        time: Duration,
        mut latencies: Vec<u64>,
        used: Option<(Usage, Usage)>,
    ) -> Self {
        latencies.sort_unstable();
        let percentile = |part: usize| {
            let at = latencies.len() * part / 100;
            latencies.get(at).map_or(f64::NAN, |nanos| *nanos as f64 / 1_000.0)
        };
        let each = n_messages.max(1) as f64;
        let (before, after) = used.unwrap_or_default();
        Self {
            rate: n_messages as f64 / time.as_secs_f64(),
            p50: percentile(50),
            p99: percentile(99),
            threads: after.threads as f64,
            cpu_micros: after.cpu_nanos.saturating_sub(before.cpu_nanos) as f64 / 1_000.0 / each,
            switches: after.switches.saturating_sub(before.switches) as f64 / each,
        }
    }
}

/// The middle one; of an even number, the upper of the two.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
