//! `Answer`: the future a bus or a store answers with, which often is complete already and then costs no allocation.
//!
//! Invariant: resolves once. Deliberately says nothing about what was asked.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A value that is there already or will be.
///
/// # Panics
/// Polling it again after it resolved panics, as with any future.
///
/// ```
/// # use wow_message::Answer;
/// let now: Answer<u8> = Answer::ready(1);
/// assert_eq!(now.into_ready().ok(), Some(1), "no need to wait for it");
/// let later = Answer::when(async { 2 });
/// assert!(later.into_ready().is_err());
/// ```
#[must_use = "an answer that is not awaited may never be computed"]
pub struct Answer<T>(State<T>);

enum State<T> {
    Ready(Option<T>),
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

// The value is moved out as a whole and never pinned in place.
impl<T> Unpin for Answer<T> {}

impl<T> Answer<T> {
    /// An answer that is there already; allocates nothing.
    pub const fn ready(value: T) -> Self {
        Self(State::Ready(Some(value)))
    }

    /// An answer that this future computes.
    pub fn when(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(State::Later(Box::pin(future)))
    }

    /// The value, if it is there already.
    ///
    /// # Errors
    /// The answer itself, to be awaited.
    pub fn into_ready(self) -> Result<T, Self> {
        match self.0 {
            State::Ready(Some(value)) => Ok(value),
            other => Err(Self(other)),
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            State::Ready(value) => {
                Poll::Ready(value.take().expect("an answer is not polled after it resolved"))
            }
            State::Later(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Ready(_) => "Answer(ready)",
            State::Later(_) => "Answer(later)",
        })
    }
}
