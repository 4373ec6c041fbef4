//! The timer: what time it is, and a call at a later time.
//!
//! `Timer` is the trait; `SystemTimer` is the machine's clock, with one thread that exists only while something is
//! scheduled. Callers are the deadline and the quiet period of a stop. Invariants: a callback runs at most once; once
//! its `Scheduled` is dropped it does not begin any more. Callbacks must be prompt: a slow one delays the others. It
//! keeps no wall-clock time: a change of the date moves nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::sync::{Arc, Condvar, Mutex, PoisonError, lock, thread};

/// A callback of a timer.
pub type Callback = Box<dyn FnOnce() + Send + 'static>;

/// Why a callback could not be scheduled.
pub type TimerError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Tells the time and calls back at a later one.
pub trait Timer: Send + Sync + 'static {
    /// The time, monotonic.
    fn now(&self) -> Instant;

    /// Calls `callback` once, at or soon after `at`, unless the returned handle is dropped before.
    ///
    /// # Errors
    /// If the callback can never be made, such as when a thread cannot be started; it is then dropped.
    fn schedule(&self, at: Instant, callback: Callback) -> Result<Scheduled, TimerError>;
}

/// A callback to come; dropping it cancels the callback unless it has begun.
#[must_use = "a dropped handle cancels its callback"]
pub struct Scheduled {
    cancel: Option<Callback>,
}

impl Scheduled {
    /// A handle that runs `cancel` when it is dropped.
    pub fn new(cancel: impl FnOnce() + Send + 'static) -> Self {
        Self { cancel: Some(Box::new(cancel)) }
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel();
        }
    }
}

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled").finish_non_exhaustive()
    }
}

/// Callbacks by time; the number tells equal times apart.
#[derive(Default)]
pub(crate) struct Schedule {
    next: u64,
    entries: BTreeMap<(Instant, u64), Callback>,
}

impl Schedule {
    pub(crate) fn insert(&mut self, at: Instant, callback: Callback) -> (Instant, u64) {
        self.next += 1;
        let key = (at, self.next);
        self.entries.insert(key, callback);
        key
    }

    pub(crate) fn remove(&mut self, key: (Instant, u64)) -> Option<Callback> {
        self.entries.remove(&key)
    }

    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the earliest callback that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Callback> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// The machine's monotonic clock: the one place of this crate that asks it.
#[expect(clippy::disallowed_methods, reason = "this is the place that the ban names")]
pub(crate) fn machine_now() -> Instant {
    Instant::now()
}

// === SystemTimer ===

/// The machine's monotonic clock. Its thread starts with the first callback and ends with the last.
#[derive(Clone, Default)]
pub struct SystemTimer {
    shared: Arc<SystemShared>,
}

#[derive(Default)]
struct SystemShared {
    state: Mutex<SystemState>,
    changed: Condvar,
}

#[derive(Default)]
struct SystemState {
    schedule: Schedule,
    thread_runs: bool,
}

impl SystemTimer {
    /// A timer without a thread yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Timer for SystemTimer {
    fn now(&self) -> Instant {
        machine_now()
    }

    fn schedule(&self, at: Instant, callback: Callback) -> Result<Scheduled, TimerError> {
        let mut state = lock(&self.shared.state);
        let key = state.schedule.insert(at, callback);
        if state.thread_runs {
            self.shared.changed.notify_one();
        } else {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new().name("wow-timer".to_owned()).spawn(move || shared.run());
            if let Err(error) = started {
                let callback = state.schedule.remove(key);
                drop(state);
                drop(callback);
                return Err(Box::new(error));
            }
            state.thread_runs = true;
        }
        let shared = Arc::clone(&self.shared);
        Ok(Scheduled::new(move || {
            let cancelled = {
                let mut state = lock(&shared.state);
                let cancelled = state.schedule.remove(key);
                shared.changed.notify_one();
                cancelled
            };
            drop(cancelled);
        }))
    }
}

impl SystemShared {
    /// The thread: waits for the earliest callback, runs it outside the lock, ends when none is left.
    fn run(&self) {
        let mut state = lock(&self.state);
        loop {
            let now = machine_now();
            if let Some(callback) = state.schedule.take_due(now) {
                drop(state);
                if catch_unwind(AssertUnwindSafe(callback)).is_err() {
                    tracing::error!("a timer's callback panicked");
                }
                state = lock(&self.state);
                continue;
            }
            let Some(earliest) = state.schedule.earliest() else {
                state.thread_runs = false;
                return;
            };
            let wait = earliest.saturating_duration_since(now);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl fmt::Debug for SystemTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemTimer").finish_non_exhaustive()
    }
}
