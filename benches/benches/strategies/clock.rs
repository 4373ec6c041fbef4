//! The one clock of the program, and work that takes processor time.

use std::hint::black_box;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "the one place of this program that asks for the time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Lets so much time pass on this thread.
pub(crate) fn pass(duration: Duration) {
    let (_kept, never) = channel::<()>();
    // Nobody sends; the wait ends by its time.
    let _elapsed = never.recv_timeout(duration);
}

/// So many dependent steps of arithmetic, about a nanosecond each: what the original calls CPU tokens.
pub(crate) fn compute(steps: u64) {
    let mut state = black_box(1_u64);
    for _ in 0..steps {
        state = state.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
    }
    black_box(state);
}
