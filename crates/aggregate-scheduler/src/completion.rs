//! `Completion`: how a dispatch ended, for the one handle that waits for it.
//!
//! Invariant: it is resolved once, and taken once. The waker runs outside the lock.

use std::task::{Context, Poll, Waker};

use keyed_executor::{DispatchError, Ledger};

use crate::contain::{contain, drop_contained};
use crate::sync::{Condvar, Mutex, lock, wait};

type Result<E> = std::result::Result<Ledger, DispatchError<E>>;

pub(crate) struct Completion<E> {
    state: Mutex<State<E>>,
    resolved: Condvar,
}

enum State<E> {
    Open(Option<Waker>),
    Resolved(Result<E>),
    Taken,
}

impl<E> Default for Completion<E> {
    fn default() -> Self {
        Self { state: Mutex::new(State::Open(None)), resolved: Condvar::new() }
    }
}

impl<E> Completion<E> {
    pub(crate) fn resolve(&self, result: Result<E>) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Resolved(result));
        self.resolved.notify_all();
        if let State::Open(Some(waker)) = before {
            if let Err(panic) = contain(|| waker.wake()) {
                tracing::error!(panic, "waking who waits for a dispatch panicked");
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(*lock(&self.state), State::Open(_))
    }

    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Result<E>> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Open(waker) => {
                let replaced = waker.replace(cx.waker().clone());
                drop(state);
                drop_contained("a waker", replaced);
                Poll::Pending
            }
            State::Resolved(_) | State::Taken => Poll::Ready(Self::take(&mut state)),
        }
    }

    /// Blocks until it is resolved.
    pub(crate) fn wait(&self) -> Result<E> {
        let mut state = lock(&self.state);
        while matches!(*state, State::Open(_)) {
            state = wait(&self.resolved, state);
        }
        Self::take(&mut state)
    }

    fn take(state: &mut State<E>) -> Result<E> {
        match std::mem::replace(state, State::Taken) {
            State::Resolved(result) => result,
            State::Open(_) | State::Taken => panic!("a dispatch was polled after it had ended"),
        }
    }
}
