//! Latencies of the messages that were sampled, and what a percentile of them is.
//!
//! A fixed buffer that any thread appends to without a lock; what does not fit is left out, which the number of
//! samples shows.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const CAPACITY: usize = 1 << 17;

/// A buffer of latencies.
#[derive(Debug)]
pub struct Latencies {
    next: AtomicUsize,
    nanos: Box<[AtomicU32]>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { next: AtomicUsize::new(0), nanos: (0..CAPACITY).map(|_| AtomicU32::new(0)).collect() }
    }
}

impl Latencies {
    /// Forgets everything; only while no handler runs.
    pub fn reset(&self) {
        self.next.store(0, Ordering::SeqCst);
    }

    /// Keeps one latency; what exceeds four seconds counts as four.
    pub fn record(&self, nanos: u64) {
        if let Some(place) = self.nanos.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            place.store(u32::try_from(nanos).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
    }

    /// What was kept, in ascending order; only while no handler runs.
    #[must_use]
    pub fn sorted(&self) -> Vec<u32> {
        let kept = self.next.load(Ordering::SeqCst).min(CAPACITY);
        let mut nanos: Vec<u32> =
            self.nanos[..kept].iter().map(|place| place.load(Ordering::Relaxed)).collect();
        nanos.sort_unstable();
        nanos
    }
}

/// The least value that at least this share of the sorted values does not exceed, in microseconds.
#[must_use]
pub fn percentile(sorted: &[u32], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map(|nanos| f64::from(*nanos) / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let sorted: Vec<u32> = (1..=100).map(|n| n * 1_000).collect();
        assert_eq!(percentile(&sorted, 0.5), Some(50.0));
        assert_eq!(percentile(&sorted, 0.99), Some(99.0));
        assert_eq!(percentile(&sorted, 0.999), Some(100.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
