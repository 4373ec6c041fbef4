//! The life of a mailbox as a table: what may happen in which state, and what its worker then has to do.
//!
//! | state | event | next | duty |
//! |---|---|---|---|
//! | Idle | Enqueue | Ready | Queue |
//! | Ready | Enqueue | Ready | Append |
//! | Running | Enqueue | Running | Append |
//! | Waiting | Enqueue | Waiting | Append |
//! | Resumed | Enqueue | Resumed | Append |
//! | Ready | Begin | Running | Start |
//! | Resumed | Begin | Running | Poll |
//! | Running | FinishMore | Running | Start |
//! | Running | FinishLast | Idle | Forget |
//! | Running | Yield | Ready | Queue |
//! | Running | Suspend | Waiting | Release |
//! | Running | SuspendWoken | Resumed | Queue |
//! | Waiting | Wake | Resumed | Queue |
//! | Idle | Wake | Idle | Ignore |
//! | Ready | Wake | Ready | Ignore |
//! | Running | Wake | Running | Ignore |
//! | Resumed | Wake | Resumed | Ignore |
//! | Running | Take | Detached | Release |
//! | Detached | Enqueue | Detached | Append |
//! | Detached | Wake | Detached | Ignore |
//! | Detached | HandInLast | Idle | Forget |
//! | Detached | HandInMore | Ready | Queue |
//! | Detached | HandInPending | Resumed | Queue |
//!
//! What is not in the table cannot happen: `next` panics with the pair, which is a bug of this crate. Idle is not a
//! resting place: an idle mailbox has no message and its entry is about to be forgotten by the intake. There is no
//! state for "closed" or "cancelled": both are decided one level up, so that a mailbox has one reason to change. A
//! wake in Ready or Running belongs to an earlier future of the entry and is ignored; the future that runs now wakes
//! its cell again if it has to, because `notified` is cleared before its poll. Detached: the seat was taken from under
//! the thread that runs the message; wakes mean nothing until that thread hands the outcome in, and an outcome that is
//! pending counts as a wake, so that none is lost.

/// Where a mailbox is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No message.
    Idle,
    /// Queued on its worker with a message to start.
    Ready,
    /// Its worker is inside its handler, or between two of its messages.
    Running,
    /// A started message waits for a wake; no worker is held.
    Waiting,
    /// Queued on its worker with a started message to poll.
    Resumed,
    /// A thread that lost its seat is inside its handler; its outcome will be handed in.
    Detached,
}

/// What happens to a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A message arrived.
    Enqueue,
    /// Its turn begins.
    Begin,
    /// Its running message ended and another one is queued.
    FinishMore,
    /// Its running message ended and none is queued.
    FinishLast,
    /// Its turn used up its messages and another one is queued.
    Yield,
    /// Its running message waits.
    Suspend,
    /// Its running message woke itself during the poll that returned pending.
    SuspendWoken,
    /// A waker of its entry fired.
    Wake,
    /// The seat was taken from under its running message.
    Take,
    /// Its detached message ended and none is queued.
    HandInLast,
    /// Its detached message ended and another one is queued.
    HandInMore,
    /// Its detached message is pending.
    HandInPending,
}

/// What the worker has to do after a transition.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Put the mailbox behind the other ready ones.
    Queue,
    /// Nothing: the message is behind others of its key.
    Append,
    /// Start the message at the head.
    Start,
    /// Poll the message that was started before.
    Poll,
    /// Nothing: the mailbox waits, the worker is free.
    Release,
    /// The mailbox is empty: count it as gone.
    Forget,
    /// Nothing: a wake that means nothing now.
    Ignore,
}

/// The table of this file's header.
#[inline]
pub(crate) fn next(state: State, event: Event) -> (State, Duty) {
    match (state, event) {
        (State::Idle, Event::Enqueue) => (State::Ready, Duty::Queue),
        (
            State::Ready | State::Running | State::Waiting | State::Resumed | State::Detached,
            Event::Enqueue,
        ) => (state, Duty::Append),
        (State::Ready, Event::Begin) => (State::Running, Duty::Start),
        (State::Resumed, Event::Begin) => (State::Running, Duty::Poll),
        (State::Running, Event::FinishMore) => (State::Running, Duty::Start),
        (State::Running, Event::FinishLast) => (State::Idle, Duty::Forget),
        (State::Running, Event::Yield) => (State::Ready, Duty::Queue),
        (State::Running, Event::Suspend) => (State::Waiting, Duty::Release),
        (State::Running, Event::SuspendWoken) => (State::Resumed, Duty::Queue),
        (State::Waiting, Event::Wake) => (State::Resumed, Duty::Queue),
        (State::Running, Event::Take) => (State::Detached, Duty::Release),
        (State::Detached, Event::HandInLast) => (State::Idle, Duty::Forget),
        (State::Detached, Event::HandInMore) => (State::Ready, Duty::Queue),
        (State::Detached, Event::HandInPending) => (State::Resumed, Duty::Queue),
        (State::Idle | State::Ready | State::Running | State::Resumed | State::Detached, Event::Wake) => {
            (state, Duty::Ignore)
        }
        _ => impossible(state, event),
    }
}

#[cold]
#[inline(never)]
fn impossible(state: State, event: Event) -> ! {
    panic!("a mailbox that is {state:?} cannot take {event:?}: mailbox/state.rs has the table")
}
