//! A stream that yields on command and counts what was asked of it.
//!
//! Owns the items not yet taken and the record of polls. Invariant: an item is yielded once, in the order it was fed;
//! after the end it yields nothing and remembers that it was asked. It never wakes without a reason: pushing, ending, or
//! opening the gate wake the poller that waits.

use crate::{Counter, Latch};
use futures_core::Stream;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The stream's end that is given away; see [`Source::fed`].
pub struct Source<T> {
    rest: Option<Box<dyn Iterator<Item = T> + Send>>,
    feed: Feed<T>,
}

/// The stream's end that a test keeps: it feeds, ends and watches. Clones are the same feed.
pub struct Feed<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    taken: Counter,
    polls: Counter,
    dry: Counter,
    polls_after_end: Counter,
    dropped: Latch,
}

struct State<T> {
    ready: VecDeque<T>,
    ended: bool,
    end_seen: bool,
    waker: Option<Waker>,
}

impl<T> Source<T> {
    /// A source that yields what its feed is given.
    ///
    /// ```
    /// use futures_util::StreamExt;
    ///
    /// let (source, feed) = wow_testkit::Source::fed();
    /// feed.push(1);
    /// feed.push(2);
    /// feed.end();
    /// let items: Vec<i32> = wow_testkit::finish(source.collect());
    /// assert_eq!((items, feed.taken().get()), (vec![1, 2], 2));
    /// ```
    pub fn fed() -> (Source<T>, Feed<T>) {
        let feed = Feed::new();
        (Source { rest: None, feed: feed.clone() }, feed)
    }

    /// A source that is always ready: it makes each item when it is asked for one, and ends with `items`.
    pub fn over<I>(items: I) -> (Source<T>, Feed<T>)
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: Send + 'static,
    {
        let feed = Feed::new();
        (Source { rest: Some(Box::new(items.into_iter())), feed: feed.clone() }, feed)
    }
}

impl<T> Stream for Source<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = &mut *self;
        let shared = &this.feed.shared;
        let mut state = this.feed.lock();
        if state.end_seen {
            shared.polls_after_end.add(1);
            return Poll::Ready(None);
        }
        shared.polls.add(1);
        let mut item = state.ready.pop_front();
        if item.is_none() {
            if let Some(rest) = &mut this.rest {
                item = rest.next();
                state.ended |= item.is_none();
            }
        }
        if item.is_some() {
            drop(state);
            shared.taken.add(1);
            return Poll::Ready(item);
        }
        if state.ended {
            state.end_seen = true;
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        drop(state);
        shared.dry.add(1);
        Poll::Pending
    }
}

impl<T> Drop for Source<T> {
    fn drop(&mut self) {
        self.feed.shared.dropped.release();
    }
}

impl<T> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("taken", self.feed.taken()).finish_non_exhaustive()
    }
}

// === impl Feed ===

impl<T> Feed<T> {
    fn new() -> Feed<T> {
        let state = State { ready: VecDeque::new(), ended: false, end_seen: false, waker: None };
        Feed {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                taken: Counter::new(),
                polls: Counter::new(),
                dry: Counter::new(),
                polls_after_end: Counter::new(),
                dropped: Latch::new(),
            }),
        }
    }

    /// Puts one more item behind those not yet taken.
    pub fn push(&self, item: T) {
        self.change(|state| state.ready.push_back(item));
    }

    /// Puts more items behind those not yet taken, in one go.
    pub fn extend(&self, items: impl IntoIterator<Item = T>) {
        self.change(|state| state.ready.extend(items));
    }

    /// Ends the stream once what is there is taken.
    pub fn end(&self) {
        self.change(|state| state.ended = true);
    }

    /// How many items were taken.
    pub fn taken(&self) -> &Counter {
        &self.shared.taken
    }

    /// How many times the stream was asked before its end.
    pub fn polls(&self) -> &Counter {
        &self.shared.polls
    }

    /// How many times the stream was asked and had nothing.
    pub fn dry(&self) -> &Counter {
        &self.shared.dry
    }

    /// How many times the stream was asked although it had said that it ended.
    pub fn polls_after_end(&self) -> u64 {
        self.shared.polls_after_end.get()
    }

    /// Opens when the stream is dropped.
    pub fn dropped(&self) -> &Latch {
        &self.shared.dropped
    }

    fn change(&self, change: impl FnOnce(&mut State<T>)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Feed<T> {
    fn clone(&self) -> Feed<T> {
        Feed { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("taken", self.taken()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Source;
    use crate::{finish, finish_within};
    use futures_util::StreamExt;
    use std::time::Duration;

    #[test]
    fn it_waits_for_its_feed() {
        let (mut source, feed) = Source::fed();
        assert!(finish_within(Duration::ZERO, source.next()).is_none());
        assert_eq!((feed.polls().get(), feed.dry().get(), feed.taken().get()), (1, 1, 0));
        let other = feed.clone();
        let thread = std::thread::spawn(move || other.push(5));
        assert_eq!(finish(source.next()), Some(5));
        thread.join().expect("pushing does not panic");
        feed.end();
        assert_eq!(finish(source.next()), None);
        assert_eq!(feed.polls_after_end(), 0);
        assert_eq!(finish(source.next()), None);
        assert_eq!(feed.polls_after_end(), 1);
    }

    #[test]
    fn it_makes_items_only_when_asked() {
        let (mut source, feed) = Source::over(0..3);
        assert_eq!(feed.taken().get(), 0);
        assert_eq!(finish(source.next()), Some(0));
        assert_eq!(feed.taken().get(), 1);
        assert_eq!(finish(source.collect::<Vec<_>>()), vec![1, 2]);
    }

    #[test]
    fn dropping_it_is_seen() {
        let (source, feed) = Source::<()>::fed();
        assert!(!feed.dropped().is_released());
        drop(source);
        assert!(feed.dropped().is_released());
    }
}
