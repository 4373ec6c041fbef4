//! A handler's future, written as a list of steps.
//!
//! Owns what a test wants a handler to do: be pending and wake itself, be woken from another thread, wait for a latch,
//! fail, panic, or never end. Invariant: a script does exactly its steps in their order, however often it is polled in
//! between. It records nothing; pair it with a `Running` of the history.

use crate::{Latch, Released, after};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The error of a script that was told to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// A future made of steps; without any it is ready at its first poll.
///
/// ```
/// use wow_testkit::{Failure, Script, finish};
///
/// assert_eq!(finish(Script::ready()), Ok(()));
/// assert_eq!(finish(Script::ready().yields(3).fails("no")), Err(Failure("no".to_owned())));
/// ```
#[derive(Debug, Default)]
#[must_use = "futures do nothing unless polled"]
pub struct Script {
    steps: VecDeque<Step>,
    waiting: Option<Released>,
}

#[derive(Debug)]
enum Step {
    Yield,
    Elsewhere(Duration),
    Until(Latch),
    Block(Latch),
    Fail(String),
    Panic(String),
    Never,
}

impl Script {
    /// Ends well at its first poll.
    pub fn ready() -> Script {
        Script::default()
    }

    /// Is pending `times` times and wakes itself each time, from inside its poll.
    pub fn yields(self, times: usize) -> Script {
        (0..times).fold(self, |script, _| script.then(Step::Yield))
    }

    /// Is pending until another thread wakes it, at once.
    pub fn elsewhere(self) -> Script {
        self.then(Step::Elsewhere(Duration::ZERO))
    }

    /// Is pending until another thread wakes it, not before `delay` has passed.
    pub fn after(self, delay: Duration) -> Script {
        self.then(Step::Elsewhere(delay))
    }

    /// Is pending until `latch` is open.
    pub fn until(self, latch: &Latch) -> Script {
        self.then(Step::Until(latch.clone()))
    }

    /// Blocks its thread inside the poll until `latch` is open: what a handler must not do.
    pub fn blocks_until(self, latch: &Latch) -> Script {
        self.then(Step::Block(latch.clone()))
    }

    /// Ends with a [`Failure`] of this text.
    pub fn fails(self, text: &str) -> Script {
        self.then(Step::Fail(text.to_owned()))
    }

    /// Panics with this text.
    pub fn panics(self, text: &str) -> Script {
        self.then(Step::Panic(text.to_owned()))
    }

    /// Never ends and is never woken.
    pub fn never(self) -> Script {
        self.then(Step::Never)
    }

    fn then(mut self, step: Step) -> Script {
        self.steps.push_back(step);
        self
    }
}

impl Future for Script {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                if Pin::new(waiting).poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.waiting = None;
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(Ok(())),
                Some(Step::Yield) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Elsewhere(delay)) => self.waiting = Some(after(delay)),
                Some(Step::Until(latch)) => self.waiting = Some(latch.released()),
                Some(Step::Block(latch)) => latch.wait(),
                Some(Step::Fail(text)) => return Poll::Ready(Err(Failure(text))),
                Some(Step::Panic(text)) => std::panic::panic_any(text),
                Some(Step::Never) => {
                    self.steps.push_front(Step::Never);
                    return Poll::Pending;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Script};
    use crate::{Latch, finish, finish_within};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};
    use std::time::Duration;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn no_step_is_ready_at_the_first_poll() {
        let mut script = Script::ready();
        let poll = Future::poll(Pin::new(&mut script), &mut Context::from_waker(Waker::noop()));
        assert_eq!(poll, Poll::Ready(Ok(())));
    }

    #[test]
    fn a_yield_is_one_pending_poll_and_one_wake() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut script = Script::ready().yields(2);
        let mut poll = || Future::poll(Pin::new(&mut script), &mut Context::from_waker(&waker));
        assert_eq!((poll(), poll(), poll()), (Poll::Pending, Poll::Pending, Poll::Ready(Ok(()))));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_step_elsewhere_ends_after_a_wake_from_another_thread() {
        assert_eq!(finish(Script::ready().elsewhere().after(Duration::from_millis(1))), Ok(()));
    }

    #[test]
    fn a_latch_holds_a_script_until_it_opens() {
        let latch = Latch::new();
        let mut script = Script::ready().until(&latch);
        assert!(finish_within(Duration::ZERO, &mut script).is_none());
        latch.release();
        assert_eq!(finish(script), Ok(()));
    }

    #[test]
    fn a_blocking_step_passes_an_open_latch() {
        let latch = Latch::new();
        latch.release();
        assert_eq!(finish(Script::ready().blocks_until(&latch)), Ok(()));
    }

    #[test]
    fn a_script_fails_or_panics_with_its_text() {
        assert_eq!(finish(Script::ready().fails("bad")), Err(Failure("bad".to_owned())));
        let panic = catch_unwind(AssertUnwindSafe(|| finish(Script::ready().panics("worse"))));
        let payload = panic.expect_err("the script panics");
        assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("worse"));
    }

    #[test]
    fn a_script_told_never_to_end_stays_pending() {
        let mut script = Script::ready().never();
        for _ in 0..3 {
            assert!(finish_within(Duration::ZERO, &mut script).is_none());
        }
    }
}
