//! `Source`: a receiver's messages behind the stop switch.
//!
//! The executor polls it, the life cycle stops it from any thread. Invariants: after `stop` no more messages are asked for;
//! the subscription is ended exactly once, on the cleanup lane, even if it is being polled while it is stopped: whoever lets
//! go of it last looks at the switch again. Never blocks the thread that stops.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::task::{Context as TaskContext, Poll, Waker};

use futures_core::Stream;
use wow_runtime::Context;
use wow_transport::{Exchange, Messages, ReceiveError};

use crate::cleanup::LANE;

pub(crate) struct Source<M: Send + 'static> {
    stopped: AtomicBool,
    messages: Mutex<Option<Messages<M>>>,
    waker: Mutex<Option<Waker>>,
    context: Context,
}

impl<M: Send + 'static> Source<M> {
    pub(crate) fn new(messages: Messages<M>, context: Context) -> Self {
        let (messages, waker) = (Mutex::new(Some(messages)), Mutex::new(None));
        Self { stopped: AtomicBool::new(false), messages, waker, context }
    }

    /// The next message; `None` once stopped or ended. Polled by one task.
    pub(crate) fn poll_next(
        &self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Exchange<M>, ReceiveError>>> {
        let polled = {
            let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            match messages.as_mut() {
                Some(messages) if !self.is_stopped() => Pin::new(messages).poll_next(cx),
                _ => Poll::Ready(None),
            }
        };
        if polled.is_pending() {
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        // After the lock was released and the waker is in place: a stop that found either missing has set the flag before.
        if self.is_stopped() {
            self.end_subscription();
            if polled.is_pending() {
                return Poll::Ready(None);
            }
        }
        polled
    }

    /// Turns the switch; idempotent, prompt.
    pub(crate) fn stop(&self) {
        // SeqCst: one order with the look at the flag in `poll_next`, which follows the release of the lock tried here.
        self.stopped.store(true, Ordering::SeqCst);
        self.end_subscription();
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn end_subscription(&self) {
        let messages = match self.messages.try_lock() {
            Ok(mut messages) => messages.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(Err(refused)) = messages.map(|messages| LANE.drop_later(messages)) {
            self.context.report_failure(refused);
        }
    }
}
