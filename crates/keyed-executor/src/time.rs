//! The crate's one clock: nanoseconds since the process first asked.
//!
//! Placement, spinning and cost measurement read it; nothing else may. It never goes back and is never zero, so zero
//! can stand for "not set".

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

/// Time stands still in a model: what depends on it must be right at any speed.
#[cfg(keyed_loom)]
pub(crate) fn nanos() -> u64 {
    1
}

/// Time passes by being looked at: see `sync.rs`.
#[cfg(any(keyed_counted, keyed_shuttle))]
pub(crate) fn nanos() -> u64 {
    crate::sync::look_at_clock()
}
