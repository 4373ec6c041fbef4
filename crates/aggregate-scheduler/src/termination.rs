//! `Termination`: the one end of a supplier's pools, and everybody who waits for it.
//!
//! Owns the count of pools that have not ended and the published ending. Invariants: the ending is set once and never
//! changes; all observers of one stop see the same; a dropped observer changes nothing. Wakers run outside the lock.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use keyed_executor::WouldBlockWorker;

use crate::pool::on_pool_thread;
use crate::sync::{Arc, Condvar, Mutex, lock, wait};

/// How a supplier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything accepted was finished and every thread of every pool ended.
    Graceful,
    /// Whatever waited was dropped. A handler that held its thread at that moment may still finish its step.
    Forced,
    /// Nothing was stopped: the pools belong to somebody else ([`Borrowed`](crate::Borrowed)).
    Borrowed,
}

/// Resolves once its supplier has stopped. Clones observe the same end.
///
/// # Cancel safety
/// Dropping it stops nothing and undoes nothing: the stop goes on, and other observers see its end.
#[must_use = "waiting begins when it is awaited"]
#[derive(Debug)]
pub struct Termination {
    shared: Arc<Shared>,
    slot: Option<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Pools that have not ended.
    pools: usize,
    /// A force has taken over: pools that end now end because of it.
    forced: bool,
    ending: Option<Ending>,
    next_slot: u64,
    waiters: BTreeMap<u64, Waker>,
}

impl Termination {
    /// The end of so many pools; without any it has come.
    pub(crate) fn of(pools: usize) -> Self {
        let ending = (pools == 0).then_some(Ending::Graceful);
        let state = Mutex::new(State { pools, ending, ..State::default() });
        Self { shared: Arc::new(Shared { state, ended: Condvar::new() }), slot: None }
    }

    /// One that has ended like this.
    pub(crate) fn ended(ending: Ending) -> Self {
        let termination = Self::of(0);
        lock(&termination.shared.state).ending = Some(ending);
        termination
    }

    /// One more pool has no thread left.
    pub(crate) fn pool_ended(&self) {
        let gracefully = {
            let mut state = lock(&self.shared.state);
            state.pools = state.pools.saturating_sub(1);
            state.pools == 0 && !state.forced
        };
        if gracefully {
            self.settle(Ending::Graceful);
        }
    }

    /// Runs `force` and publishes [`Ending::Forced`] after it, unless the end has come or another force is at it.
    pub(crate) fn take_over(&self, force: impl FnOnce()) {
        let first = {
            let mut state = lock(&self.shared.state);
            state.ending.is_none() && !std::mem::replace(&mut state.forced, true)
        };
        if first {
            force();
            self.settle(Ending::Forced);
        }
    }

    fn settle(&self, ending: Ending) {
        let waiters = {
            let mut state = lock(&self.shared.state);
            if state.ending.is_some() {
                return;
            }
            state.ending = Some(ending);
            std::mem::take(&mut state.waiters)
        };
        self.shared.ended.notify_all();
        for waiter in waiters.into_values() {
            if let Err(panic) = crate::contain::contain(|| waiter.wake()) {
                tracing::error!(panic, "waking who waits for the end of a supplier panicked");
            }
        }
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        lock(&self.shared.state).ending
    }

    /// Blocks until the end.
    ///
    /// # Errors
    /// On a thread of a pool the wait is refused: it could wait for itself.
    pub fn wait(&self) -> Result<Ending, WouldBlockWorker> {
        if on_pool_thread() {
            return Err(WouldBlockWorker);
        }
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(ending) = state.ending {
                return Ok(ending);
            }
            state = wait(&self.shared.ended, state);
        }
    }
}

impl Clone for Termination {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), slot: None }
    }
}

impl Future for Termination {
    type Output = Ending;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ending> {
        let this = self.get_mut();
        let mut state = lock(&this.shared.state);
        if let Some(ending) = state.ending {
            return Poll::Ready(ending);
        }
        let slot = *this.slot.get_or_insert_with(|| {
            state.next_slot += 1;
            state.next_slot
        });
        let replaced = state.waiters.insert(slot, cx.waker().clone());
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let waiter = lock(&self.shared.state).waiters.remove(&slot);
            drop(waiter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, Termination};

    #[test]
    fn pools_that_end_because_of_a_force_do_not_make_it_a_graceful_end() {
        let termination = Termination::of(2);
        termination.pool_ended();
        termination.take_over(|| {
            termination.pool_ended();
            assert_eq!(termination.ending(), None, "the force is not through");
            termination.take_over(|| panic!("a force is at it already"));
        });
        assert_eq!(termination.ending(), Some(Ending::Forced));
    }

    #[test]
    fn an_end_that_has_come_is_not_forced_any_more() {
        let termination = Termination::of(1);
        termination.pool_ended();
        termination.take_over(|| panic!("there is nothing left to force"));
        assert_eq!(termination.ending(), Some(Ending::Graceful));
    }
}
