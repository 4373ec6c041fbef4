//! The end of a dispatch, on its way to whoever awaits it: written once, taken once.
//!
//! Holds the executor's handle for a dispatch that was let go (`detach`), so that the executor stays open for it.

use std::task::{Context, Poll, Waker};

use crate::error::{DispatchError, Ledger};
use crate::executor::Guard;
use crate::sync::{Arc, Condvar, Mutex, PoisonError, lock};

/// How a dispatch ended.
pub(crate) type Ended<E> = Result<Ledger, DispatchError<E>>;

struct State<E> {
    ended: Option<Ended<E>>,
    resolved: bool,
    waker: Option<Waker>,
    kept_open: Option<Arc<Guard>>,
}

/// The end of a dispatch.
pub(crate) struct Completion<E> {
    state: Mutex<State<E>>,
    resolved: Condvar,
}

impl<E> Completion<E> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { ended: None, resolved: false, waker: None, kept_open: None }),
            resolved: Condvar::new(),
        })
    }

    /// Tells the end; the first one stays.
    pub(crate) fn resolve(&self, ended: Ended<E>) {
        let (waker, kept_open) = {
            let mut state = lock(&self.state);
            if state.resolved {
                return;
            }
            state.resolved = true;
            state.ended = Some(ended);
            (state.waker.take(), state.kept_open.take())
        };
        self.resolved.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        drop(kept_open);
    }

    /// Keeps the executor open until the end.
    pub(crate) fn keep_open(&self, guard: Arc<Guard>) {
        let mut state = lock(&self.state);
        if !state.resolved {
            state.kept_open = Some(guard);
        }
    }

    /// Whether the end was told.
    pub(crate) fn is_resolved(&self) -> bool {
        lock(&self.state).resolved
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Ended<E>> {
        // Cloning and dropping a waker is the user's code: neither happens under the lock.
        let waker = cx.waker().clone();
        let replaced = {
            let mut state = lock(&self.state);
            if state.resolved {
                return Poll::Ready(state.ended.take().expect("a dispatch is not polled after it ended"));
            }
            state.waker.replace(waker)
        };
        drop(replaced);
        Poll::Pending
    }

    /// Blocks until the end.
    pub(crate) fn wait(&self) -> Ended<E> {
        let mut state = lock(&self.state);
        while !state.resolved {
            state = self.resolved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.ended.take().expect("the end is taken once: waiting consumes the handle")
    }
}
