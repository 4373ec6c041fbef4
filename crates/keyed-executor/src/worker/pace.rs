//! The pace of a worker's thread: when a round gives back what is finished, when it asks cold dispatches for news, and whether a
//! thread that ran dry polls for a while before it sleeps.
//!
//! `rounds.rs` tells it what happened and does what it says. It owns counts and times, and never looks at a clock or at a worker
//! by itself: a thread that does not spin reads no clock here.

use std::time::Duration;

/// A worker that is always busy gives back what is finished at least once in so many rounds.
const BUSY_ROUNDS: u32 = 16;
/// With so many cold dispatches every second round asks all of them for news, with twice as many every third.
const COLD_A_ROUND: usize = 32;
/// A worker whose last sleep was shorter lets others run before it parks: messages come faster than threads wake.
const BRIEF_NS: u64 = 1_000_000;
/// Polls of an empty worker between two looks at the clock while it spins.
const POLLS_A_LOOK: u32 = 32;

/// What a poll of an empty worker found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// There is something to do.
    Work,
    /// Nothing yet.
    Nothing,
    /// Nothing, and it is not worth waiting for: the executor is closed.
    Closed,
}

/// The pace of one thread on one seat. Times are in nanoseconds.
pub(super) struct Pace {
    /// How long an empty worker polls at most; 0 where it never does.
    spin: u64,
    ran_dry_at: u64,
    last_wait: u64,
    last_sleep: u64,
    busy_rounds: u32,
    rounds_since_scan: usize,
}

impl Pace {
    pub(super) fn new(spin: Duration) -> Self {
        Self {
            spin: u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX),
            ran_dry_at: 0,
            // The first wait of a thread counts as infinitely long (KE-16).
            last_wait: u64::MAX,
            last_sleep: u64::MAX,
            busy_rounds: 0,
            rounds_since_scan: usize::MAX,
        }
    }

    /// A round begins; whether it asks everybody who is cold for news, of so many dispatches.
    ///
    /// That costs a few nanoseconds for each of them, a round some microseconds: a few per cent at most.
    #[inline]
    pub(super) fn asks_the_cold(&mut self, dispatches: usize) -> bool {
        self.rounds_since_scan = self.rounds_since_scan.saturating_add(1);
        if self.rounds_since_scan > dispatches / COLD_A_ROUND {
            self.rounds_since_scan = 0;
            return true;
        }
        false
    }

    /// A round ended; whether what is finished is given back before the next one.
    #[inline]
    pub(super) fn gives_back(&mut self, busy: bool) -> bool {
        self.busy_rounds += u32::from(busy);
        if busy && self.busy_rounds < BUSY_ROUNDS {
            return false;
        }
        self.busy_rounds = 0;
        true
    }

    /// The thread ran dry. Polls for a while if its last wait was shorter than that; true if there is something to do.
    #[inline]
    pub(super) fn ran_dry(&mut self, clock: impl Fn() -> u64, poll: impl FnMut() -> Polled) -> bool {
        // Whatever ends the wait, everybody is asked then.
        self.rounds_since_scan = usize::MAX;
        if self.spin > 0 {
            self.ran_dry_at = clock();
            if self.last_wait < self.spin && self.spun_into_work(&clock, poll) {
                self.last_wait = clock() - self.ran_dry_at;
                return true;
            }
        }
        false
    }

    fn spun_into_work(&self, clock: impl Fn() -> u64, mut poll: impl FnMut() -> Polled) -> bool {
        loop {
            for _ in 0..POLLS_A_LOOK {
                match poll() {
                    Polled::Work => return true,
                    Polled::Nothing => {}
                    Polled::Closed => return false,
                }
            }
            if clock().saturating_sub(self.ran_dry_at) >= self.spin {
                return false;
            }
        }
    }

    /// Whether a thread that sleeps lets others run first.
    #[inline]
    pub(super) fn sleeps_briefly(&self) -> bool {
        self.last_sleep < BRIEF_NS
    }

    /// The thread, which had run dry, slept for so long.
    #[inline]
    pub(super) fn slept(&mut self, for_ns: u64, clock: impl Fn() -> u64) {
        self.last_sleep = for_ns;
        if self.spin > 0 {
            self.last_wait = clock() - self.ran_dry_at;
        }
    }
}

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A pace with this spin, in nanoseconds, whose thread ran dry at 1,000 and slept until `woken_at`.
    fn slept(spin: u64, woken_at: u64) -> Pace {
        let mut pace = Pace::new(Duration::from_nanos(spin));
        assert!(!pace.ran_dry(|| 1_000, || panic!("the first wait counts as infinitely long")));
        pace.slept(5_000_000, || woken_at);
        pace
    }

    /// Runs dry on a clock that moves on by `step` each time it is read; whether work was found, the polls and the readings.
    ///
    /// Work comes with the poll of that number, counted from zero.
    fn polls(pace: &mut Pace, step: u64, work_at: u32) -> (bool, u32, u64) {
        let (polls, readings) = (Cell::new(0), Cell::new(0));
        let clock = || {
            readings.set(readings.get() + 1);
            100_000 + readings.get() * step
        };
        let poll = || {
            polls.set(polls.get() + 1);
            assert!(polls.get() < 10_000, "it does not end");
            if polls.get() > work_at { Polled::Work } else { Polled::Nothing }
        };
        let found = pace.ran_dry(clock, poll);
        (found, polls.get(), readings.get())
    }

    #[test]
    fn what_is_finished_is_given_back_whenever_the_thread_is_dry_and_each_16th_time_it_is_not() {
        let mut pace = Pace::new(Duration::ZERO);
        for _ in 0..3 {
            let given: Vec<bool> = (0..16).map(|_| pace.gives_back(true)).collect();
            assert_eq!(given.iter().position(|given| *given), Some(15), "{given:?}");
        }
        assert!((0..10).all(|_| !pace.gives_back(true)));
        assert!(pace.gives_back(false) && pace.gives_back(false));
        assert!((0..15).all(|_| !pace.gives_back(true)), "the count begins anew");
        assert!(pace.gives_back(true));
    }

    #[test]
    fn the_cold_are_asked_in_the_first_round_after_a_wait_and_the_more_rarely_the_more_there_are() {
        let mut pace = Pace::new(Duration::ZERO);
        for (dispatches, each) in [(0, 1), (1, 1), (31, 1), (32, 2), (63, 2), (64, 3), (1_000, 32)] {
            let asked: Vec<bool> = (0..3 * each).map(|_| pace.asks_the_cold(dispatches)).collect();
            assert!(
                asked.iter().enumerate().all(|(round, asked)| *asked == (round % each == 0)),
                "{asked:?}"
            );
            assert!(!pace.ran_dry(|| panic!("it does not spin"), || panic!("it does not spin")));
        }
    }

    #[test]
    fn a_thread_that_does_not_spin_reads_no_clock_and_polls_nothing() {
        let mut pace = Pace::new(Duration::ZERO);
        for _ in 0..2 {
            assert!(!pace.ran_dry(|| panic!("it does not spin"), || panic!("it does not spin")));
            pace.slept(1, || panic!("it does not spin"));
        }
    }

    #[test]
    fn a_thread_spins_after_a_wait_that_was_shorter_than_its_spin() {
        for (woken_at, spins) in [(1_001, true), (1_099, true), (1_100, false), (1_101, false)] {
            let found = polls(&mut slept(100, woken_at), 1, 0);
            assert_eq!(found, if spins { (true, 1, 2) } else { (false, 0, 1) }, "woken at {woken_at}");
        }
    }

    #[test]
    fn a_wait_that_ended_while_spinning_is_as_long_as_it_took_and_one_that_did_not_lasts_until_the_sleep_ends()
     {
        let mut pace = slept(100, 1_010);
        // Each reading is 30 later than the one before: the third ends the wait, 60 after it began.
        assert_eq!(polls(&mut pace, 30, 32), (true, 33, 3));
        assert_eq!(pace.last_wait, 60);
        assert_eq!(polls(&mut pace, 100, 9_999), (false, 32, 2));
        pace.slept(7, || 100_400);
        assert_eq!(pace.last_wait, 300, "from when it ran dry, at 100,100");
        assert_eq!(polls(&mut pace, 1, 0), (false, 0, 1), "too long to spin again");
    }

    #[test]
    fn a_thread_spins_until_its_time_is_over_and_reads_the_clock_every_32_polls() {
        for (step, readings) in [(100, 2), (99, 3), (50, 3), (49, 4), (34, 4), (33, 5)] {
            let found = polls(&mut slept(100, 1_010), step, 9_999);
            assert_eq!(found, (false, 32 * (readings as u32 - 1), readings), "steps of {step}");
        }
        assert_eq!(polls(&mut slept(100, 1_010), 50, 63), (true, 64, 3), "found by the last poll");
    }

    #[test]
    fn a_thread_stops_spinning_when_its_executor_is_closed() {
        let mut polls = 0;
        let closed = || {
            polls += 1;
            if polls == 3 { Polled::Closed } else { Polled::Nothing }
        };
        assert!(!slept(100, 1_010).ran_dry(|| 5_000, closed));
        assert_eq!(polls, 3);
    }

    #[test]
    fn a_sleep_is_brief_below_a_millisecond_and_the_first_is_not() {
        let mut pace = Pace::new(Duration::ZERO);
        assert!(!pace.sleeps_briefly());
        for (slept, brief) in [(999_999, true), (1_000_000, false), (0, true)] {
            pace.slept(slept, || panic!("it does not spin"));
            assert_eq!(pace.sleeps_briefly(), brief, "{slept} ns");
        }
    }
}
