//! The crate's one clock: nanoseconds since the process first asked.
//!
//! Placement, spinning, cost measurement and what is shown to an operator read it; nothing else may. It never goes back
//! and is never zero, so zero can stand for "not set". A worker keeps what it read last ([`Clock`]): what only needs a
//! time that is nearly right, a message's age above all, takes that one and costs no reading.

use crate::sync::{Figure, Ordering};

/// Nanoseconds on a monotonic clock, at least 1.
#[cfg(not(any(keyed_counted, keyed_loom, keyed_shuttle)))]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
pub(crate) fn nanos() -> u64 {
    use crate::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed().as_nanos();
    u64::try_from(elapsed).unwrap_or(u64::MAX - 1) + 1
}

/// Time stands still, or passes by being looked at: see `sync.rs`.
#[cfg(any(keyed_counted, keyed_loom, keyed_shuttle))]
pub(crate) use crate::sync::look_at_clock as nanos;

/// The last reading of one worker's thread: never later than now.
///
/// It is read when the thread wakes from a sleep, after a task, and by the meter: in each round of a lane whose handlers cost
/// more than a microsecond, and every 32 messages of one whose handlers cost less.
#[derive(Debug, Default)]
pub(crate) struct Clock(Figure);

impl Clock {
    /// Reads the clock and keeps the reading. The caller holds the seat.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        let now = nanos();
        self.0.store(now, Ordering::Relaxed);
        now
    }

    /// The last reading.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A reading in ticks of about a millisecond, for what is kept with each message.
#[inline]
pub(crate) fn ticks(nanos: u64) -> u32 {
    (nanos >> TICK) as u32
}

/// Nanoseconds between two ticks that are less than 52 days apart.
pub(crate) fn since(then: u32, now: u32) -> u64 {
    u64::from(now.wrapping_sub(then)) << TICK
}

/// A tick is this power of two nanoseconds.
const TICK: u32 = 20;
