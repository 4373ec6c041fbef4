//! A stream that cannot fail as one that can, so that one engine serves both.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

/// A source that cannot fail, as one that can.
pub(crate) struct Items<S, E> {
    source: S,
    error: std::marker::PhantomData<fn() -> E>,
}

impl<S, E> Items<S, E> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, error: std::marker::PhantomData }
    }
}

impl<S: Stream, E> Stream for Items<S, E> {
    type Item = Result<S::Item, E>;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // SAFETY: contract of `Pin::map_unchecked_mut`: the source is never moved out of this wrapper, which is Unpin
        // only if the source is (it holds nothing else).
        let source = unsafe { self.map_unchecked_mut(|this| &mut this.source) };
        source.poll_next(cx).map(|item| item.map(Ok))
    }
}
