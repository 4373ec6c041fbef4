//! `Waits`: the senders of this process that wait for their commands, by command id.
//!
//! A sender registers its [`Slot`] before it sends; the dispatcher takes it along when it admits the command and answers it
//! when the command has ended. Invariants: an answer is given once; a command that is dropped unanswered answers with a
//! failure; once closed, whoever still waits here, or comes later, is told at once. A waiting sender holds an activity of the
//! runtime, so a stop waits for every command that is on its way. Wakers are called outside of the locks.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;
use wow_message::MessageId;
use wow_runtime::Activity;

use crate::command::failure::{CommandError, CommandFailure};

const N_SHARDS: usize = 16;

/// A waiting sender, whatever the types of its reply.
pub(crate) trait Waiter: Any + Send + Sync {
    /// Makes what was put down the answer, or the failure if there is one. Only the first answer counts.
    fn answer(&self, ended: Result<(), CommandFailure>);
}

/// The senders that wait.
pub(crate) struct Waits {
    shards: [Mutex<Shard>; N_SHARDS],
}

#[derive(Default)]
struct Shard {
    waiting: HashMap<MessageId, Arc<dyn Waiter>, RandomState>,
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    Closed,
}

/// Nothing is handled any more.
pub(crate) struct WaitsClosed;

impl Waits {
    /// Registers a sender before its command is sent.
    pub(crate) fn register(&self, command: MessageId, waiter: Arc<dyn Waiter>) -> Result<(), WaitsClosed> {
        let mut shard = self.shard(command);
        if shard.phase == Phase::Closed {
            return Err(WaitsClosed);
        }
        shard.waiting.insert(command, waiter);
        Ok(())
    }

    /// The command was not sent: nobody waits for it. Returns the sender, to be dropped outside of the lock.
    pub(crate) fn forget(&self, command: MessageId) -> Option<Arc<dyn Waiter>> {
        self.shard(command).waiting.remove(&command)
    }

    /// The sender of an admitted command, if it is one of this process and waits.
    pub(super) fn take(&self, command: MessageId) -> Waiting {
        Waiting(self.forget(command))
    }

    /// Fails everyone whose command was not admitted, now and later; idempotent.
    pub(super) fn close(&self) {
        for shard in &self.shards {
            let left = {
                let mut shard = lock(shard);
                shard.phase = Phase::Closed;
                std::mem::take(&mut shard.waiting)
            };
            left.into_values().for_each(|waiter| waiter.answer(Err(CommandFailure::Stopped)));
        }
    }

    fn shard(&self, command: MessageId) -> MutexGuard<'_, Shard> {
        // The counter inside the id, which differs from one command of a sender to the next.
        let shard = usize::try_from((command.as_u128() >> 64) % N_SHARDS as u128).unwrap_or(0);
        lock(&self.shards[shard])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Waits {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

/// The sender of an admitted command. Dropped unanswered, it answers that the command was dropped.
#[must_use = "a sender waits for its answer"]
pub struct Waiting(Option<Arc<dyn Waiter>>);

impl Waiting {
    pub(super) fn waiter(&self) -> Option<&dyn Waiter> {
        self.0.as_deref()
    }

    pub(super) fn answer(mut self, ended: Result<(), CommandFailure>) {
        if let Some(waiter) = self.0.take() {
            waiter.answer(ended);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(waiter) = self.0.take() {
            waiter.answer(Err(CommandFailure::Dropped));
        }
    }
}

/// Where one sender's answer is put down.
pub(crate) struct Slot<R, E> {
    state: Mutex<SlotState<R, E>>,
}

struct SlotState<R, E> {
    /// What the aggregate decided; not visible before the command has ended.
    put_down: Option<Result<R, CommandError<E>>>,
    answer: Option<Result<R, CommandError<E>>>,
    phase: SlotPhase,
    waker: Option<Waker>,
    activity: Option<Activity>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotPhase {
    Waiting,
    Answered,
}

impl<R, E> Slot<R, E> {
    /// A sender that keeps the runtime from stopping until it is answered.
    pub(crate) fn new(activity: Activity) -> Arc<Self> {
        let state = SlotState {
            put_down: None,
            answer: None,
            phase: SlotPhase::Waiting,
            waker: None,
            activity: Some(activity),
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Puts a decision down, replacing an earlier one; the sender sees it once the command has ended.
    pub(super) fn put_down(&self, decided: Result<R, CommandError<E>>) {
        let replaced = lock(&self.state).put_down.replace(decided);
        drop(replaced);
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<R, CommandError<E>>> {
        let mut state = lock(&self.state);
        match state.phase {
            SlotPhase::Answered => {
                Poll::Ready(state.answer.take().expect("a reply is not polled after it resolved"))
            }
            SlotPhase::Waiting => {
                match &mut state.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        lock(&self.state).phase == SlotPhase::Answered
    }
}

impl<R: Send + 'static, E: Send + 'static> Waiter for Slot<R, E> {
    fn answer(&self, ended: Result<(), CommandFailure>) {
        let (waker, activity) = {
            let mut state = lock(&self.state);
            if state.phase == SlotPhase::Answered {
                return;
            }
            state.phase = SlotPhase::Answered;
            state.answer = Some(match (ended, state.put_down.take()) {
                (Ok(()), Some(decided)) => decided,
                (Err(CommandFailure::Refused(_)), Some(Err(refused))) => Err(refused),
                (Err(failure), _) => Err(CommandError::Failed(failure)),
                // The command was handled as another type than its sender meant.
                (Ok(()), None) => Err(CommandError::Failed(CommandFailure::Dropped)),
            });
            (state.waker.take(), state.activity.take())
        };
        // The activity ends after the answer is there, so that who sees a stopped runtime finds every answer.
        drop(activity);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A sender that does not want to know, and still is waited for by a stop.
pub(crate) struct Unheard(Mutex<Option<Activity>>);

impl Unheard {
    pub(crate) fn new(activity: Activity) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(activity))))
    }
}

impl Waiter for Unheard {
    fn answer(&self, _ended: Result<(), CommandFailure>) {
        let activity = lock(&self.0).take();
        drop(activity);
    }
}
