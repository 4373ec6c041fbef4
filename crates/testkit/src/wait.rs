//! Waiting that gives up with a reason.
//!
//! Owns the one deadline of all waiting in tests. Invariant: no wait of this crate lasts longer than [`PATIENCE`]; what
//! was waited for is named in the panic. It never decides *when* something happens: a noisy machine only waits longer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long any wait lasts before it counts as a hang.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The time, asked for in this one place of the crate.
#[expect(
    clippy::disallowed_methods,
    reason = "the deadline of a wait and the delay of a helper are real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Runs `future` on this thread to its end.
///
/// # Panics
/// If it is not finished after [`PATIENCE`].
#[track_caller]
pub fn finish<F: Future>(future: F) -> F::Output {
    match finish_within(PATIENCE, future) {
        Some(output) => output,
        None => panic!("a future was still pending after {PATIENCE:?}"),
    }
}

/// Runs `future` on this thread for at most `patience`; `None` if it was still pending then (it is dropped).
pub fn finish_within<F: Future>(patience: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let start = now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = patience.checked_sub(now() - start)?;
        thread::park_timeout(left);
    }
}

/// Returns once `fact` holds.
///
/// For facts that nobody announces, such as the state of a thread; use a latch where there is one.
///
/// # Panics
/// If `fact` does not hold within [`PATIENCE`]; `what` is in the message.
#[track_caller]
pub fn eventually(what: &str, mut fact: impl FnMut() -> bool) {
    let start = now();
    while !fact() {
        assert!(now() - start < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::park_timeout(Duration::from_micros(200));
    }
}

/// Wakes by unparking the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::{eventually, finish, finish_within};
    use crate::Latch;
    use std::future::{pending, ready};
    use std::time::Duration;

    #[test]
    fn a_ready_future_gives_its_output() {
        assert_eq!(finish(ready(3)), 3);
    }

    #[test]
    fn a_wake_from_another_thread_ends_the_wait() {
        let latch = Latch::new();
        crate::release_after(Duration::ZERO, &latch);
        finish(latch.released());
    }

    #[test]
    fn a_future_that_never_ends_is_given_up() {
        assert_eq!(finish_within(Duration::from_millis(5), pending::<()>()), None);
    }

    #[test]
    fn a_fact_is_looked_at_until_it_holds() {
        let mut looks = 0;
        eventually("three looks", || {
            looks += 1;
            looks == 3
        });
    }
}
