//! The handle of a running dispatch: await it, cancel it, or let it go.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::completion::Completion;
use crate::error::{DispatchError, Ledger, WouldBlockWorker};
use crate::executor::Guard;
use crate::figures::DispatchMetrics;
use crate::hot::HotKey;
use crate::inspect::Inspection;
use crate::sync::{Arc, Weak};
use crate::worker::on_worker;

/// What a handle can ask of a dispatch, without its types.
pub(crate) trait Control: Send + Sync {
    fn cancel(&self);
    /// What is counted of it.
    fn metrics(&self) -> DispatchMetrics;
    /// What lives of it.
    fn inspect(&self, limit: usize) -> Inspection;
    /// What most of its messages are for.
    fn hot_keys(&self, limit: usize) -> Vec<HotKey>;
}

/// A running dispatch. Awaiting it yields where its messages went, once nothing of it is left.
///
/// Dropping the handle cancels the dispatch: its source and its running handlers are dropped (each on its worker), its
/// waiting messages are dropped unhandled. [`detach`](Self::detach) lets it go on instead.
///
/// ```
/// use futures_util::stream;
/// use keyed_executor::KeyedExecutor;
///
/// let executor = KeyedExecutor::builder().workers(2).build()?;
/// let dispatch = executor.dispatch(stream::iter(0..100u32), |n| n % 10, |_| async {});
/// let ledger = dispatch.wait()??;
/// assert_eq!(ledger.handled, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the handle cancels the dispatch"]
pub struct Dispatch<E> {
    completion: Arc<Completion<E>>,
    control: Option<Arc<dyn Control>>,
    guard: Option<Arc<Guard>>,
}

impl<E> Dispatch<E> {
    pub(crate) fn running(
        completion: Arc<Completion<E>>,
        control: Arc<dyn Control>,
        guard: Arc<Guard>,
    ) -> Self {
        Self { completion, control: Some(control), guard: Some(guard) }
    }

    pub(crate) fn ended(completion: Arc<Completion<E>>) -> Self {
        Self { completion, control: None, guard: None }
    }

    /// Cancels the dispatch; the handle resolves with [`Cause::Cancelled`](crate::Cause::Cancelled) once nothing is
    /// left. Idempotent; one that ended stays as it ended.
    pub fn cancel(&self) {
        if let Some(control) = &self.control {
            control.cancel();
        }
    }

    /// What is counted of this dispatch, as [`KeyedExecutor::metrics`](crate::KeyedExecutor::metrics) has it; None for
    /// one that never began.
    #[must_use]
    pub fn metrics(&self) -> Option<DispatchMetrics> {
        self.control.as_ref().map(|control| control.metrics())
    }

    /// The live mailboxes of this dispatch, as [`KeyedExecutor::inspect`](crate::KeyedExecutor::inspect) has them.
    #[must_use]
    pub fn inspect(&self, limit: usize) -> Inspection {
        self.control.as_ref().map(|control| control.inspect(limit)).unwrap_or_default()
    }

    /// The hot keys of this dispatch, as [`KeyedExecutor::hot_keys`](crate::KeyedExecutor::hot_keys) has them.
    #[must_use]
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        self.control.as_ref().map(|control| control.hot_keys(limit)).unwrap_or_default()
    }

    /// Something that cancels this dispatch from elsewhere and keeps nothing of it alive.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller { control: self.control.as_ref().map(Arc::downgrade) }
    }

    /// Lets the dispatch go on without its handle; its executor stays open until it ended.
    pub fn detach(mut self) {
        self.control = None;
        if let Some(guard) = self.guard.take() {
            self.completion.keep_open(guard);
        }
    }

    /// Blocks until the dispatch ended.
    ///
    /// # Errors
    /// On a worker thread of an executor the wait is refused, and the dispatch is cancelled with its handle.
    pub fn wait(mut self) -> Result<Result<Ledger, DispatchError<E>>, WouldBlockWorker> {
        if on_worker() {
            return Err(WouldBlockWorker);
        }
        let ended = self.completion.wait();
        self.control = None;
        Ok(ended)
    }
}

impl<E> Future for Dispatch<E> {
    type Output = Result<Ledger, DispatchError<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = std::task::ready!(self.completion.poll(cx));
        self.control = None;
        Poll::Ready(ended)
    }
}

impl<E> Drop for Dispatch<E> {
    fn drop(&mut self) {
        if let Some(control) = &self.control {
            control.cancel();
        }
    }
}

impl<E> fmt::Debug for Dispatch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").field("ended", &self.completion.is_resolved()).finish_non_exhaustive()
    }
}

/// Cancels a dispatch from elsewhere; made by [`Dispatch::canceller`].
#[derive(Clone)]
pub struct Canceller {
    control: Option<Weak<dyn Control>>,
}

impl Canceller {
    /// Cancels the dispatch; idempotent, and nothing if it ended.
    pub fn cancel(&self) {
        if let Some(control) = self.control.as_ref().and_then(Weak::upgrade) {
            control.cancel();
        }
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").finish_non_exhaustive()
    }
}
