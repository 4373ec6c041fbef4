//! `Transit`, a command between its sender and the bus, and the futures over it: sent, sent and heard of, answered.
//!
//! Invariants: nothing happens before the first poll; who waits is registered before the command is sent and forgotten if it is
//! not; a command that was not sent comes back.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use wow_eventsourcing::Aggregate;
use wow_message::{Command, MessageId};

use crate::command::{CommandError, NotSent, NotSentReason, Slot, Waits};
use crate::decide::{AggregateCommand, Handle};
use crate::service::send::Sending;

type ReplyOf<C> = <<C as AggregateCommand>::Aggregate as Handle<C>>::Reply;
type ErrorOf<C> = <<C as AggregateCommand>::Aggregate as Aggregate>::Error;
pub(super) type SlotOf<C> = Slot<ReplyOf<C>, ErrorOf<C>>;
type ResultOf<C> = Result<ReplyOf<C>, CommandError<ErrorOf<C>>>;

/// What the sender wants to hear after the command was sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hearing {
    Reply,
    Nothing,
}

pub(super) struct Transit<'a, C: AggregateCommand>(Step<'a, C>);

enum Step<'a, C: AggregateCommand> {
    Prepared(Sending<'a, C>, Hearing),
    OnItsWay(OnItsWay<'a, C>),
    Over,
}

pub(super) struct OnItsWay<'a, C: AggregateCommand> {
    pub(super) answer: wow_transport::Sending<Command>,
    pub(super) registration: Registration<'a>,
    pub(super) slot: Option<Arc<SlotOf<C>>>,
}

/// Who waits for a command; forgotten if the command is not sent.
pub(super) struct Registration<'a> {
    waits: &'a Arc<Waits>,
    command: Option<MessageId>,
}

impl<'a> Registration<'a> {
    pub(super) fn of(command: MessageId, waits: &'a Arc<Waits>) -> Self {
        Self { waits, command: Some(command) }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        if let Some(command) = self.command {
            drop(self.waits.forget(command));
        }
    }
}

// Everything is moved from step to step, nothing is pinned.
impl<C: AggregateCommand> Unpin for Transit<'_, C> {}

impl<'a, C: AggregateCommand> Transit<'a, C> {
    pub(super) fn new(sending: Sending<'a, C>, hearing: Hearing) -> Self {
        Self(Step::Prepared(sending, hearing))
    }

    /// Resolves when the bus took the command; with the slot of the reply, if one was wanted.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Reply<C>>, NotSent>> {
        if matches!(self.0, Step::Prepared(..)) {
            if let Step::Prepared(sending, hearing) = std::mem::replace(&mut self.0, Step::Over) {
                match sending.begin(hearing) {
                    Ok(on_its_way) => self.0 = Step::OnItsWay(on_its_way),
                    Err(not_sent) => return Poll::Ready(Err(not_sent)),
                }
            }
        }
        let Step::OnItsWay(on_its_way) = &mut self.0 else {
            panic!("a send is not polled after it resolved")
        };
        let taken = ready!(Pin::new(&mut on_its_way.answer).poll(cx));
        let Step::OnItsWay(mut arrived) = std::mem::replace(&mut self.0, Step::Over) else {
            unreachable!("it was on its way above")
        };
        Poll::Ready(match taken {
            Ok(()) => {
                let command = arrived.registration.command.take();
                Ok(arrived.slot.zip(command).map(|(slot, command)| Reply { slot, command }))
            }
            Err(refused) => {
                let (reason, command) = refused.into_parts();
                Err(NotSent::new(NotSentReason::Bus(reason), command))
            }
        })
    }
}

/// Sends a command; resolves with its [`Reply`] when the bus took it. What awaiting a [`Sending`] does.
///
/// # Cancel safety
/// As for the bus: the in-memory bus has not sent a command whose send is dropped before it resolved.
#[must_use = "futures do nothing unless they are polled"]
pub struct SendForReply<'a, C: AggregateCommand>(pub(super) Transit<'a, C>);

impl<C: AggregateCommand> Future for SendForReply<'_, C> {
    type Output = Result<Reply<C>, NotSent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let sent = ready!(self.0.poll(cx));
        Poll::Ready(sent.map(|reply| reply.expect("a reply was wanted")))
    }
}

/// Sends a command whose reply is of no interest; made by waiting for [`Sent`](crate::Sent).
///
/// # Cancel safety
/// As for [`SendForReply`].
#[must_use = "futures do nothing unless they are polled"]
pub struct SendUnheard<'a, C: AggregateCommand>(pub(super) Transit<'a, C>);

impl<C: AggregateCommand> Future for SendUnheard<'_, C> {
    type Output = Result<(), NotSent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|sent| sent.map(|_| ()))
    }
}

/// Sends a command and waits for its reply; made by waiting for [`Processed`](crate::Processed).
///
/// # Cancel safety
/// Dropped after the command was sent, it only stops waiting: the command is handled.
#[must_use = "futures do nothing unless they are polled"]
pub struct SendAndWait<'a, C: AggregateCommand>(Leg<'a, C>);

impl<'a, C: AggregateCommand> SendAndWait<'a, C> {
    pub(super) fn new(sending: Sending<'a, C>) -> Self {
        Self(Leg::There(Transit::new(sending, Hearing::Reply)))
    }
}

enum Leg<'a, C: AggregateCommand> {
    There(Transit<'a, C>),
    Back(Reply<C>),
}

impl<C: AggregateCommand> Future for SendAndWait<'_, C> {
    type Output = ResultOf<C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ResultOf<C>> {
        loop {
            match &mut self.0 {
                Leg::There(transit) => match ready!(transit.poll(cx)) {
                    Ok(reply) => self.0 = Leg::Back(reply.expect("a reply was wanted")),
                    Err(not_sent) => return Poll::Ready(Err(CommandError::NotSent(not_sent))),
                },
                Leg::Back(reply) => return Pin::new(reply).poll(cx),
            }
        }
    }
}

/// The reply to a command that was sent. Dropping it only stops waiting: the command is handled.
#[must_use = "a reply says whether the command was refused"]
pub struct Reply<C: AggregateCommand> {
    slot: Arc<SlotOf<C>>,
    command: MessageId,
}

impl<C: AggregateCommand> Reply<C> {
    /// The command's id.
    #[must_use]
    pub fn command_id(&self) -> MessageId {
        self.command
    }

    /// Whether the answer is there, so that awaiting it does not wait.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.slot.is_answered()
    }
}

impl<C: AggregateCommand> Future for Reply<C> {
    type Output = ResultOf<C>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ResultOf<C>> {
        self.slot.poll(cx)
    }
}

impl<C: AggregateCommand> fmt::Debug for Reply<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("command", &self.command)
            .field("answered", &self.is_answered())
            .finish()
    }
}
