//! Facts to wait for: a latch that opens once, a counter that only rises, a level that remembers its peak.
//!
//! Owns the hand-over between a test's thread and the handlers it watches; every wait is possible from a thread and from
//! a future. Invariant: a latch never closes again and a counter never falls, so no waiter can miss its moment. They
//! replace sleeping in tests; they are not meant to be fast.

use crate::PATIENCE;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

// === impl Counter ===

/// A number that only rises, with waiting for "at least n". Clones share it.
#[derive(Clone, Default)]
pub struct Counter {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    risen: Condvar,
}

#[derive(Default)]
struct State {
    value: u64,
    wakers: Vec<Waker>,
}

impl Counter {
    /// A counter at zero.
    pub fn new() -> Counter {
        Counter::default()
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.raise(n);
    }

    /// Adds one and returns the new value: the caller's place among those who did.
    pub fn next(&self) -> u64 {
        self.raise(1)
    }

    fn raise(&self, n: u64) -> u64 {
        let (value, wakers) = {
            let mut state = self.lock();
            state.value += n;
            (state.value, std::mem::take(&mut state.wakers))
        };
        self.shared.risen.notify_all();
        // Outside the lock: a waker may run code that looks at this very counter.
        for waker in wakers {
            waker.wake();
        }
        value
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.lock().value
    }

    /// Blocks this thread until the value is at least `n`.
    ///
    /// # Panics
    /// If that takes longer than [`PATIENCE`].
    #[track_caller]
    pub fn wait_for(&self, n: u64) {
        let (state, timeout) = self
            .shared
            .risen
            .wait_timeout_while(self.lock(), PATIENCE, |state| state.value < n)
            .unwrap_or_else(PoisonError::into_inner);
        let value = state.value;
        drop(state);
        assert!(!timeout.timed_out(), "a counter stood at {value} after {PATIENCE:?}, {n} was waited for");
    }

    /// A future that is ready once the value is at least `n`.
    pub fn reached(&self, n: u64) -> Reached {
        Reached { counter: self.clone(), n }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.get()).finish()
    }
}

/// Ready once its counter stands at the awaited value; see [`Counter::reached`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Reached {
    counter: Counter,
    n: u64,
}

impl Future for Reached {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.counter.lock();
        if state.value >= self.n {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

// === impl Latch ===

/// A gate that opens once and stays open. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Latch {
    counter: Counter,
}

impl Latch {
    /// A closed latch.
    pub fn new() -> Latch {
        Latch::default()
    }

    /// Opens it; opening again changes nothing.
    pub fn release(&self) {
        self.counter.add(1);
    }

    /// Whether it is open.
    pub fn is_released(&self) -> bool {
        self.counter.get() > 0
    }

    /// Blocks this thread until it is open.
    ///
    /// # Panics
    /// If that takes longer than [`PATIENCE`].
    #[track_caller]
    pub fn wait(&self) {
        self.counter.wait_for(1);
    }

    /// A future that is ready once it is open.
    pub fn released(&self) -> Released {
        self.counter.reached(1)
    }
}

/// Ready once its latch is open; see [`Latch::released`].
pub type Released = Reached;

// === impl Level ===

/// A number that rises and falls and remembers its peak.
#[derive(Debug, Default)]
pub struct Level {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Level {
    /// A level at zero.
    pub const fn new() -> Level {
        Level { now: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// One more; returns the value it rose to.
    pub fn rise(&self) -> usize {
        // SeqCst on purpose: a checker has to see the order its reader would assume.
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        now
    }

    /// One less; returns the value it fell to.
    ///
    /// # Panics
    /// If it stands at zero.
    pub fn fall(&self) -> usize {
        let before = self.now.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a level fell below zero");
        before - 1
    }

    /// The value now.
    pub fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    /// The highest value it ever had.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Latch, Level};
    use crate::{finish, finish_within};
    use std::time::Duration;

    #[test]
    fn a_thread_waits_until_the_counter_stands_high_enough() {
        let counter = Counter::new();
        let other = counter.clone();
        let thread = std::thread::spawn(move || other.add(3));
        counter.wait_for(3);
        assert_eq!(counter.get(), 3);
        thread.join().expect("adding does not panic");
    }

    #[test]
    fn a_future_waits_until_the_latch_opens() {
        let latch = Latch::new();
        assert!(finish_within(Duration::ZERO, latch.released()).is_none());
        let other = latch.clone();
        let thread = std::thread::spawn(move || other.release());
        finish(latch.released());
        assert!(latch.is_released());
        latch.wait();
        thread.join().expect("releasing does not panic");
    }

    #[test]
    fn a_level_remembers_its_peak() {
        let level = Level::new();
        assert_eq!((level.rise(), level.rise(), level.fall()), (1, 2, 1));
        assert_eq!((level.now(), level.peak()), (1, 2));
    }

    #[test]
    #[should_panic(expected = "fell below zero")]
    fn a_level_cannot_fall_below_zero() {
        Level::new().fall();
    }
}
