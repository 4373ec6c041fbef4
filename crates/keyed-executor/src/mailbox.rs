//! The messages of one key, in order: a list of slots and a state, plain data of the worker it was placed on.
//!
//! A mailbox exists from its entry's first message to its last. It holds no message itself: messages are in their
//! slots, linked through the slots' `next`. It knows nothing of handlers; what a turn does with it is `turn.rs`.

pub(crate) mod state;

use state::{Duty, Event, State};

/// No slot, no entry.
pub(crate) const NONE: u32 = u32::MAX;

/// One key's waiting messages and where it is in its life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mailbox {
    /// The first message not started, or [`NONE`].
    pub(crate) head: u32,
    /// The last message not started, which has no link; means nothing while `head` is [`NONE`].
    pub(crate) tail: u32,
    /// The message that was started and has not ended, or [`NONE`].
    pub(crate) running: u32,
    /// The next ready mailbox of the same lane.
    pub(crate) next_ready: u32,
    state: State,
}

impl Mailbox {
    /// A mailbox before its first message.
    pub(crate) const fn new() -> Self {
        Self { head: NONE, tail: NONE, running: NONE, next_ready: NONE, state: State::Idle }
    }

    /// Takes the messages that were not started: the first, [`NONE`] if there is none, and the last. Both at once: as soon as anybody
    /// else may work on the mailbox, its last message may be another one.
    pub(crate) fn take_queue(&mut self) -> (u32, u32) {
        (std::mem::replace(&mut self.head, NONE), self.tail)
    }

    /// Makes one transition and says what is to be done.
    #[inline]
    pub(crate) fn on(&mut self, event: Event) -> Duty {
        let (state, duty) = state::next(self.state, event);
        self.state = state;
        duty
    }

    /// Where the mailbox is in its life.
    pub(crate) fn state(&self) -> State {
        self.state
    }
}
