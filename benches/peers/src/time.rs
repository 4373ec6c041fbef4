//! The one clock of the harness, and how long it may keep a thread busy or asleep on purpose.
//!
//! Every other file asks here, so that a rate, a latency and a deadline are read off the same clock.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Nanoseconds since the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock that stands at zero.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: instant() }
    }

    /// Nanoseconds since the clock was made.
    #[inline]
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place of this package that asks for the time")]
fn instant() -> Instant {
    Instant::now()
}

/// Blocks the calling thread: what workloads J and K are about, and how the paced producer waits for its turn.
#[expect(clippy::disallowed_methods, reason = "to block a thread is the subject of the measurement")]
pub fn block(duration: Duration) {
    std::thread::sleep(duration);
}

/// How many steps of [`compute`] take that long on this machine: the best of several tries, since only a disturbance
/// can make one slower.
#[must_use]
pub fn steps_for(duration: Duration) -> u64 {
    const STEPS: u64 = 100_000;
    let best = (0..20)
        .map(|_| {
            let clock = Clock::new();
            compute(STEPS);
            clock.nanos()
        })
        .min()
        .unwrap_or(1)
        .max(1);
    (STEPS as u128 * duration.as_nanos() / u128::from(best)).max(1) as u64
}

/// Keeps the processor busy for a number of dependent steps.
#[inline]
pub fn compute(steps: u64) {
    let mut state = black_box(1_u64);
    for _ in 0..steps {
        state = state.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
    }
    black_box(state);
}
