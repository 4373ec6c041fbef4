//! A timer whose time moves only when a test moves it.
//!
//! Owns its time and its callbacks. Invariant: callbacks run on the thread that calls `advance`, in the order of
//! their times, and see the time they were scheduled for. For tests only; a service has no use for it.

use std::fmt;
use std::time::{Duration, Instant};

use crate::sync::{Arc, Condvar, Mutex, PoisonError, lock};
use crate::timer::{Callback, Schedule, Scheduled, Timer, TimerError, machine_now};

/// A timer for tests.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::{sync::Arc, time::Duration};
/// use wow_runtime::{ManualTimer, Timer};
///
/// let timer = ManualTimer::new();
/// let rang = Arc::new(AtomicBool::new(false));
/// let bell = Arc::clone(&rang);
/// let in_an_hour = timer.now() + Duration::from_secs(3600);
/// let _scheduled = timer.schedule(in_an_hour, Box::new(move || bell.store(true, Ordering::SeqCst)));
/// timer.advance(Duration::from_secs(3600));
/// assert!(rang.load(Ordering::SeqCst));
/// ```
#[derive(Clone)]
pub struct ManualTimer {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    now: Instant,
    schedule: Schedule,
}

impl ManualTimer {
    /// A timer that stands still.
    #[must_use]
    pub fn new() -> Self {
        let state = State { now: machine_now(), schedule: Schedule::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Moves the time forward by `step`, running each callback that becomes due at its own time.
    pub fn advance(&self, step: Duration) {
        let mut state = lock(&self.shared.state);
        let end = state.now + step;
        loop {
            let at = state.schedule.earliest().filter(|at| *at <= end).unwrap_or(end);
            state.now = state.now.max(at);
            let now = state.now;
            let Some(callback) = state.schedule.take_due(now) else { break };
            self.shared.changed.notify_all();
            drop(state);
            callback();
            state = lock(&self.shared.state);
        }
    }

    /// How many callbacks are to come.
    #[must_use]
    pub fn pending(&self) -> usize {
        lock(&self.shared.state).schedule.len()
    }

    /// Blocks until exactly `n` callbacks are to come: the way to wait for another thread to arm its timer.
    ///
    /// # Panics
    /// If that is not so within 30 seconds of the machine's time.
    pub fn wait_for_pending(&self, n: usize) {
        let limit = machine_now() + Duration::from_secs(30);
        let mut state = lock(&self.shared.state);
        while state.schedule.len() != n {
            let left = limit.saturating_duration_since(machine_now());
            assert!(!left.is_zero(), "{} callbacks are to come, {n} were awaited", state.schedule.len());
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Default for ManualTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for ManualTimer {
    fn now(&self) -> Instant {
        lock(&self.shared.state).now
    }

    fn schedule(&self, at: Instant, callback: Callback) -> Result<Scheduled, TimerError> {
        let key = lock(&self.shared.state).schedule.insert(at, callback);
        self.shared.changed.notify_all();
        let shared = Arc::clone(&self.shared);
        Ok(Scheduled::new(move || {
            let cancelled = lock(&shared.state).schedule.remove(key);
            shared.changed.notify_all();
            drop(cancelled);
        }))
    }
}

impl fmt::Debug for ManualTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualTimer").field("pending", &self.pending()).finish_non_exhaustive()
    }
}
