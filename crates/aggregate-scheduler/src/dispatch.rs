//! `Grouped`: the strategy as a dispatcher sees it, and the handle of a running dispatch.
//!
//! Owns the choice of schedulers and the number of groups; puts a run, its source's task and its leases together. It is
//! shaped like the dispatch door of the keyed executor and ends in the same words, so that a dispatcher can offer both.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use keyed_executor::{Cause, DispatchError, Ledger, Options, Outcome, WouldBlockWorker};

use crate::completion::Completion;
use crate::hash::Groups;
use crate::pool::{StartError, on_pool_thread};
use crate::run::Run;
use crate::scheduler::{Control, Scheduler};
use crate::source::Pump;
use crate::sync::{Arc, Weak};
use crate::task::Task;

/// Where a message is handled: on which scheduler, and in the group of which id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The scheduler's place in what [`Grouped::over`] was given; 0 where there is one.
    pub scheduler: usize,
    /// The aggregate id. Neither tenant nor aggregate name belongs into it.
    pub id: &'a str,
}

/// Messages in hash groups: serial in a group, concurrent across groups (LS-8).
///
/// A group is served by one thread of its pool, so a handler that blocks its thread delays every group of that thread;
/// a handler that waits without blocking delays its own group, which other ids may share.
///
/// ```
/// use std::convert::Infallible;
/// use std::num::NonZeroU16;
/// use futures_util::stream;
/// use keyed_executor::Options;
/// use wow_aggregate_scheduler::{
///     DefaultSchedulerSupplier, Grouped, Groups, NamedAggregate, SchedulerSupplier,
/// };
///
/// let supplier = DefaultSchedulerSupplier::new("commands", NonZeroU16::new(2).unwrap());
/// let order = NamedAggregate { context: "shop", aggregate: "order" };
/// let scheduler = supplier.get_or_initialize(order)?;
///
/// let commands = [("o-1", "open"), ("o-2", "open"), ("o-1", "pay")].map(Ok::<_, Infallible>);
/// let dispatch = Grouped::on(scheduler, Groups::default()).dispatch(
///     Options::new("orders"),
///     stream::iter(commands),
///     |command| command.0,
///     // "pay" starts when "open" of the same order ended.
///     |_command| async { Ok::<(), Infallible>(()) },
/// );
/// assert_eq!(dispatch.wait()??.handled, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Grouped {
    schedulers: Vec<Arc<Scheduler>>,
    groups: Groups,
}

impl Grouped {
    /// Groups on one scheduler.
    #[must_use]
    pub fn on(scheduler: Arc<Scheduler>, groups: Groups) -> Self {
        Self { schedulers: vec![scheduler], groups }
    }

    /// Groups on several schedulers, so many on each: for one receiver with several aggregate types.
    ///
    /// They share the window, and the source is polled on the first one's source thread. A dispatch over no scheduler at
    /// all has no thread to run on and says so.
    #[must_use]
    pub fn over(schedulers: impl IntoIterator<Item = Arc<Scheduler>>, groups: Groups) -> Self {
        Self { schedulers: schedulers.into_iter().collect(), groups }
    }

    /// Runs every message of `source` through `handler`, serially in the group of its `id`, until the source and
    /// everything accepted ended.
    ///
    /// The source is polled only while the window has room; a full window asks again once a sixteenth of it came back.
    ///
    /// # Errors
    /// The handle resolves with the first failure: the source's, the handler's (as far as the policy in `options` lets
    /// it), a panic of either or of `id`, or a stopped scheduler. Keys in it are written `group <n>`.
    pub fn dispatch<S, I, H, F, M, E>(
        &self,
        options: Options,
        source: S,
        id: I,
        handler: H,
    ) -> GroupedDispatch<E>
    where
        S: Stream<Item = Result<M, E>> + Send + 'static,
        I: Fn(&M) -> &str + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        M: Send + 'static,
        E: Send + 'static,
    {
        self.dispatch_routed(options, source, move |message| Route { scheduler: 0, id: id(message) }, handler)
    }

    /// [`dispatch`](Self::dispatch) with a scheduler for each message.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch); a route to a scheduler that is not there counts as a panic of `route`.
    pub fn dispatch_routed<S, R, H, F, M, E>(
        &self,
        options: Options,
        source: S,
        route: R,
        handler: H,
    ) -> GroupedDispatch<E>
    where
        S: Stream<Item = Result<M, E>> + Send + 'static,
        R: Fn(&M) -> Route<'_> + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        M: Send + 'static,
        E: Send + 'static,
    {
        let run: Arc<Run<M, E>> = Run::new(options);
        let completion = Arc::clone(&run.completion);
        let control: Arc<dyn Control> = run.clone();
        let attached: Result<Vec<_>, _> =
            self.schedulers.iter().map(|scheduler| scheduler.attach(Arc::downgrade(&control))).collect();
        let refused = match (attached, self.schedulers.first()) {
            (Ok(leases), Some(first)) => {
                run.hold(leases);
                let pump = Pump::new(&run, self.schedulers.clone(), self.groups, source, route, handler);
                run.begin(Task::new(first.source_worker(), pump.drive()));
                return GroupedDispatch { completion, control: Some(control) };
            }
            (Ok(_), None) => Cause::NoWorker { message: "no scheduler was given".to_owned() },
            (Err(StartError::Closed), _) => Cause::Closed,
            (Err(StartError::Unstartable(message)), _) => Cause::NoWorker { message },
        };
        run.abort(refused);
        run.source_ended();
        GroupedDispatch { completion, control: None }
    }
}

/// A running dispatch. Awaiting it yields where its messages went, once all of them ended.
///
/// Dropping the handle cancels the dispatch; [`detach`](Self::detach) lets it go on instead.
#[must_use = "dropping the handle cancels the dispatch"]
pub struct GroupedDispatch<E> {
    completion: Arc<Completion<E>>,
    control: Option<Arc<dyn Control>>,
}

impl<E> GroupedDispatch<E> {
    /// Cancels the dispatch: what waits is dropped, running handlers and the source are dropped here, or by their thread
    /// after the step that they are in. Idempotent; one that ended stays as it ended.
    pub fn cancel(&self) {
        if let Some(control) = &self.control {
            control.cancel();
        }
    }

    /// Something that cancels this dispatch from elsewhere and keeps nothing of it alive.
    #[must_use]
    pub fn canceller(&self) -> GroupedCanceller {
        GroupedCanceller { control: self.control.as_ref().map(Arc::downgrade) }
    }

    /// Lets the dispatch go on without its handle, until its end or that of its scheduler.
    pub fn detach(mut self) {
        self.control = None;
    }

    /// Blocks until the dispatch ended.
    ///
    /// # Errors
    /// On a thread of a pool the wait is refused, and the dispatch is cancelled with its handle.
    pub fn wait(mut self) -> Result<Result<Ledger, DispatchError<E>>, WouldBlockWorker> {
        if on_pool_thread() {
            return Err(WouldBlockWorker);
        }
        let ended = self.completion.wait();
        self.control = None;
        Ok(ended)
    }
}

impl<E> Future for GroupedDispatch<E> {
    type Output = Result<Ledger, DispatchError<E>>;

    /// # Panics
    /// If it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = std::task::ready!(self.completion.poll(cx));
        self.control = None;
        Poll::Ready(ended)
    }
}

impl<E> Drop for GroupedDispatch<E> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<E> fmt::Debug for GroupedDispatch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.completion.is_open();
        f.debug_struct("GroupedDispatch").field("running", &running).finish_non_exhaustive()
    }
}

/// Cancels a dispatch from elsewhere; made by [`GroupedDispatch::canceller`].
#[derive(Clone)]
pub struct GroupedCanceller {
    control: Option<Weak<dyn Control>>,
}

impl GroupedCanceller {
    /// Cancels the dispatch; idempotent, and nothing if it ended.
    pub fn cancel(&self) {
        if let Some(control) = self.control.as_ref().and_then(Weak::upgrade) {
            control.cancel();
        }
    }
}

impl fmt::Debug for GroupedCanceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupedCanceller").finish_non_exhaustive()
    }
}
