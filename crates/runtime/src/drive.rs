//! Driving futures outside any async runtime: on a blocked thread, against a time, against another future.
//!
//! Owns nothing. Invariant: `block_on` returns as soon as its future is ready, whatever thread wakes it. It is used for
//! the shutdown's own thread and for callers that asked to block; never on an executor's worker.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::sync::{Arc, thread};
use crate::timer::{Scheduled, Timer, TimerError};
use crate::waiters::{Fired, Signal};

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until `future` is ready.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        // A wake between the poll and this line leaves its token, so park returns at once.
        thread::park();
    }
}

/// `Some` with the output of `future`, or `None` if `signal` fires first. The future is dropped before this returns.
pub(crate) async fn unless<F: Future>(signal: &Signal, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut fired = pin!(signal.fired());
    std::future::poll_fn(|cx| {
        // The signal first: a forced stop must not begin another poll of a component.
        if fired.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Resolves at or soon after a time of a timer.
#[must_use = "futures do nothing unless they are polled"]
pub(crate) struct Sleep {
    rang: Fired,
    _scheduled: Scheduled,
}

impl Sleep {
    pub(crate) fn until(timer: &dyn Timer, at: Instant) -> Result<Self, TimerError> {
        let bell = Signal::default();
        let rang = bell.fired();
        let scheduled = timer.schedule(at, Box::new(move || bell.fire()))?;
        Ok(Self { rang, _scheduled: scheduled })
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.rang).poll(cx)
    }
}
