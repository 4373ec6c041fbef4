//! The rhythm of the monitor: when it looks for work beside sleepers, and after how many looks at nothing else it may sleep itself.
//!
//! `monitor.rs` tells it what a look saw and what time it is. It owns a count and a time and does nothing by itself.

use crate::stranded;

/// Looks at nothing but sleepers before it sleeps itself.
const QUIET_LOOKS: u32 = 4;

/// What the monitor knows of its looks so far.
pub(super) struct Rhythm {
    quiet: u32,
    beside_looked_at: u64,
}

impl Rhythm {
    /// Times are in nanoseconds.
    pub(super) fn new(now: u64) -> Self {
        Self { quiet: 0, beside_looked_at: now }
    }

    /// It looked, and saw somebody on a seat or not; whether it may sleep.
    pub(super) fn looked(&mut self, somebody_is_up: bool) -> bool {
        self.quiet = if somebody_is_up { 0 } else { self.quiet.saturating_add(1) };
        self.quiet >= QUIET_LOOKS
    }

    /// Somebody is up after all, or woke it.
    pub(super) fn was_woken(&mut self) {
        self.quiet = 0;
    }

    /// Whether it is time to look for work beside those that sleep while others do not; it counts as done.
    pub(super) fn looks_beside(&mut self, now: u64) -> bool {
        let is_due = now - self.beside_looked_at >= stranded::EVERY.as_nanos() as u64;
        if is_due {
            self.beside_looked_at = now;
        }
        is_due
    }
}

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests {
    use super::Rhythm;

    #[test]
    fn a_monitor_may_sleep_after_four_looks_at_nothing_but_sleepers_and_after_each_one_that_follows() {
        let mut rhythm = Rhythm::new(0);
        for _ in 0..2 {
            assert_eq!([false; 6].map(|up| rhythm.looked(up)), [false, false, false, true, true, true]);
            assert!(!rhythm.looked(true), "somebody is up: it counts anew");
        }
        assert_eq!([false; 4].map(|up| rhythm.looked(up)), [false, false, false, true]);
        rhythm.was_woken();
        assert_eq!([false; 4].map(|up| rhythm.looked(up)), [false, false, false, true]);
    }

    #[test]
    fn work_beside_sleepers_is_looked_for_every_quarter_of_a_second_while_others_are_up() {
        const QUARTER: u64 = 250_000_000;
        let mut rhythm = Rhythm::new(1_000);
        assert!(![1_000, 1_001, QUARTER, QUARTER + 999].iter().any(|now| rhythm.looks_beside(*now)));
        assert!(rhythm.looks_beside(QUARTER + 1_000));
        assert!(![QUARTER + 1_000, 2 * QUARTER + 999].iter().any(|now| rhythm.looks_beside(*now)));
        assert!(rhythm.looks_beside(2 * QUARTER + 5_000));
        assert!(![3 * QUARTER + 4_999].iter().any(|now| rhythm.looks_beside(*now)), "from when it was done");
    }
}
