//! What a message costs: measured rarely, with at most one clock read in and one out of a round.
//!
//! The cost bounds a round (so that a busy worker does not look stuck) and feeds placement. It is a moving average over
//! whole rounds, so it holds the executor's own work too. It decides nothing itself.

use crate::time::Clock;

/// Messages of a round while a message's cost is unknown.
const UNMEASURED_MESSAGES: u32 = 8;
/// The most messages of a round.
const MOST_MESSAGES: u64 = 256;
/// Messages between two measurements of a cheap handler.
const MEASURE_EVERY: u32 = 32;
/// A handler that costs more is measured in every round.
const DEAR_NS: u64 = 1_000;

/// Measures what a message costs, at most one clock read in and one out of a round.
pub(crate) struct Meter<'a> {
    clock: &'a Clock,
    started: Option<u64>,
    pub(crate) messages: u32,
    limit: u32,
    cost: u64,
}

impl<'a> Meter<'a> {
    /// Starts a round of a lane with this cost and this many messages since it was measured.
    #[inline]
    pub(crate) fn start(clock: &'a Clock, cost: u64, unmeasured: u32, budget_ns: u64) -> Self {
        let measure = cost == 0 || cost >= DEAR_NS || unmeasured >= MEASURE_EVERY;
        let limit = match cost {
            0 => UNMEASURED_MESSAGES,
            _ => (budget_ns / cost).clamp(1, MOST_MESSAGES) as u32,
        };
        Self { clock, started: measure.then(|| clock.read()), messages: 0, limit, cost }
    }

    #[inline]
    pub(crate) fn ran(&mut self) {
        self.messages += 1;
    }

    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.messages >= self.limit
    }

    /// The cost after this round, and the messages since it was measured.
    #[inline]
    pub(crate) fn finish(self, unmeasured: u32) -> (u64, u32) {
        let Some(started) = self.started else { return (self.cost, unmeasured + self.messages) };
        if self.messages == 0 {
            return (self.cost, unmeasured);
        }
        let sample = ((self.clock.read() - started) / u64::from(self.messages)).max(1);
        // One round that was interrupted, or met one dear message, says little: an estimate grows by steps.
        let cost =
            if self.cost == 0 { sample } else { (self.cost * 3 + sample.min(self.cost * 8)).div_ceil(4) };
        (cost, 0)
    }
}
