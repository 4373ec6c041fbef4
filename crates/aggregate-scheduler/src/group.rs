//! `Group`: one serial group: the messages that wait, and the task that handles them one after the other.
//!
//! Owns the waiting messages. Invariants: a message is handled after the one before it ended, whether that one was ready
//! at once or waited (LS-8); a group is served by the one worker that its task was made with; the task is scheduled for
//! a message only if it sleeps for want of one. Ids that hash to one group share it (LS-9).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::task::Poll;

use futures_util::FutureExt;
use keyed_executor::{Cause, OnFailure, Outcome};

use crate::contain::{drop_contained, text};
use crate::run::{Ended, Run};
use crate::sync::{Arc, Mutex, OnceLock, lock, thread};
use crate::task::Task;
use crate::worker::Worker;

/// Messages that a group may finish before the other groups of its worker get their turn.
const TURN: u32 = 256;

pub(crate) struct Group<M> {
    number: u32,
    queue: Mutex<Queue<M>>,
    task: OnceLock<Arc<Task>>,
}

struct Queue<M> {
    waiting: VecDeque<M>,
    /// The task found nothing to handle and sleeps.
    dry: bool,
    closed: bool,
}

impl<M: Send + 'static> Group<M> {
    /// A group with its task, which has handled nothing yet.
    pub(crate) fn new<H, F, E>(
        number: u32,
        worker: Arc<Worker>,
        run: &Arc<Run<M, E>>,
        handler: &Arc<H>,
    ) -> Arc<Self>
    where
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), dry: true, closed: false });
        let group = Arc::new(Self { number, queue, task: OnceLock::new() });
        let task = Task::new(worker, serve(Arc::clone(run), Arc::clone(&group), Arc::clone(handler)));
        group.task.get_or_init(|| task);
        group
    }

    /// Puts a message behind the others.
    ///
    /// # Errors
    /// The message, if the group was closed.
    pub(crate) fn push(&self, message: M) -> Result<(), M> {
        let dry = {
            let mut queue = lock(&self.queue);
            if queue.closed {
                return Err(message);
            }
            queue.waiting.push_back(message);
            std::mem::take(&mut queue.dry)
        };
        if dry {
            if let Some(task) = self.task.get() {
                task.schedule();
            }
        }
        Ok(())
    }

    /// Takes nothing in any more and gives back what waits.
    pub(crate) fn close(&self) -> VecDeque<M> {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        std::mem::take(&mut queue.waiting)
    }

    /// Ends the task, and with it the handler that runs.
    pub(crate) fn cancel(&self) {
        if let Some(task) = self.task.get() {
            task.cancel();
        }
    }

    /// The next message, once there is one.
    async fn next(&self) -> M {
        poll_fn(|_| {
            let mut queue = lock(&self.queue);
            match queue.waiting.pop_front() {
                Some(message) => Poll::Ready(message),
                // A push or a cancel has the task polled again, no waker is needed.
                None => {
                    queue.dry = true;
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// The body of a group's task; it ends by being cancelled.
async fn serve<M, H, F, E>(run: Arc<Run<M, E>>, group: Arc<Group<M>>, handler: Arc<H>)
where
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome<Error = E>,
    E: Send + 'static,
{
    let mut turn = 0;
    loop {
        let message = group.next().await;
        let running = Running { run: &run, group: group.number, ended: None };
        // The handler's future is made, polled and dropped inside, so a panic in any of the three is caught.
        let ended = AssertUnwindSafe(async { handler(message).await.into_result() }).catch_unwind().await;
        running.end(ended);
        turn += 1;
        if turn == TURN {
            turn = 0;
            give_way().await;
        }
    }
}

/// Pending once; the task goes behind the others of its worker.
async fn give_way() {
    let mut gave_way = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut gave_way, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A message whose handler runs: it is counted once, also if the task is dropped or unwound with it.
struct Running<'a, M: Send + 'static, E: Send + 'static> {
    run: &'a Run<M, E>,
    group: u32,
    ended: Option<Ended>,
}

impl<M: Send + 'static, E: Send + 'static> Running<'_, M, E> {
    fn end(mut self, ended: thread::Result<Result<(), E>>) {
        let cause = match ended {
            Ok(Ok(())) => {
                self.ended = Some(Ended::Handled);
                return;
            }
            Ok(Err(error)) => Cause::Handler { key: self.key(), error },
            Err(panic) => Cause::HandlerPanicked { key: self.key(), message: text(panic) },
        };
        self.ended = Some(Ended::Failed);
        match self.run.on_failure {
            // Before the message is counted: the run cannot end without its cause.
            OnFailure::Fail => self.run.abort(cause),
            OnFailure::Continue => {
                let dispatch = self.run.label.as_str();
                match &cause {
                    Cause::HandlerPanicked { message, .. } => {
                        tracing::error!(dispatch, group = self.group, panic = message, "a handler panicked");
                    }
                    _ => tracing::warn!(dispatch, group = self.group, "a handler failed"),
                }
                drop_contained("a handler's error", cause);
            }
        }
    }

    fn key(&self) -> String {
        format!("group {}", self.group)
    }
}

impl<M: Send + 'static, E: Send + 'static> Drop for Running<'_, M, E> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Only a logger that panics comes here. The task is lost with it, so the run must not wait for its messages.
            let message = "the group's task was unwound".to_owned();
            self.run.abort(Cause::HandlerPanicked { key: self.key(), message });
            self.ended.get_or_insert(Ended::Failed);
        }
        self.run.finish(self.ended.unwrap_or(Ended::Cancelled));
    }
}
