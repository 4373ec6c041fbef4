//! `Readiness`: a hot signal that can be awaited any number of times, before and after it was given.
//!
//! Invariant: given once; whoever awaits it later gets the same answer. A signal dropped without an answer fails the waiters.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::ReceiveError;

/// Completes when a receiver cannot miss a message any more, or fails; clones all get the same answer.
#[derive(Clone)]
#[must_use = "a receiver may miss messages until it is ready"]
pub struct Readiness(Arc<Cell>);

/// The side that says a receiver is ready.
pub struct ReadySignal(Arc<Cell>);

#[derive(Default)]
struct Cell(Mutex<State>);

#[derive(Default)]
struct State {
    answer: Option<Result<(), ReceiveError>>,
    waiting: Vec<Waker>,
}

impl Readiness {
    /// A readiness and the side that gives it.
    pub fn pair() -> (ReadySignal, Self) {
        let cell = Arc::<Cell>::default();
        (ReadySignal(Arc::clone(&cell)), Self(cell))
    }

    /// A receiver that is ready from the start.
    pub fn given() -> Self {
        let (signal, readiness) = Self::pair();
        signal.settle(Ok(()));
        readiness
    }
}

impl ReadySignal {
    /// Ready, or failed; only the first answer counts.
    pub fn settle(&self, answer: Result<(), ReceiveError>) {
        let waiting = {
            let mut state = self.0.lock();
            if state.answer.is_some() {
                return;
            }
            state.answer = Some(answer);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for ReadySignal {
    fn drop(&mut self) {
        self.settle(Err(ReceiveError::EndedBeforeReady));
    }
}

impl Cell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Readiness {
    type Output = Result<(), ReceiveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        if let Some(answer) = &state.answer {
            return Poll::Ready(answer.clone());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.0.lock().answer).finish()
    }
}

impl fmt::Debug for ReadySignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadySignal").field(&self.0.lock().answer).finish()
    }
}
