//! `Sending`: one command on its way from its sender, and the stages that can be awaited.
//!
//! ```text
//!   sender.send(c).await                      sent; yields the Reply, to be awaited when it suits
//!   sender.send(c).wait_for(Sent).await       sent; the reply is of no interest
//!   sender.send(c).wait_for(Processed).await  handled, stored and published; yields the typed reply
//! ```
//!
//! Invariants: nothing happens before the first poll; a command that was not sent comes back; while a command is under way the
//! runtime does not stop, since the waiting sender holds an activity.

use std::any::TypeId;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use wow_eventsourcing::Aggregate;
use wow_message::{
    AggregateId, Command, Creation, Header, MessageId, Name, NamedAggregate, RequestId, Version,
};

use crate::command::{CommandError, NotSent, NotSentReason, Slot, Unheard, Waiter, Waits};
use crate::decide::{AggregateCommand, CommandMode, Handle};
use crate::service::Shared;

type ReplyOf<C> = <<C as AggregateCommand>::Aggregate as Handle<C>>::Reply;
type ErrorOf<C> = <<C as AggregateCommand>::Aggregate as Aggregate>::Error;
type SlotOf<C> = Slot<ReplyOf<C>, ErrorOf<C>>;
type ResultOf<C> = Result<ReplyOf<C>, CommandError<ErrorOf<C>>>;

/// A stage of a command that can be awaited.
pub trait Stage<'a, C: AggregateCommand> {
    /// The future that resolves at the stage.
    type Future: Future;

    /// Sends and waits.
    fn wait(self, sending: Sending<'a, C>) -> Self::Future;
}

/// The stage at which the bus took the command.
#[derive(Clone, Copy, Debug)]
pub struct Sent;

/// The stage at which the command was handled, its events stored and published.
#[derive(Clone, Copy, Debug)]
pub struct Processed;

impl<'a, C: AggregateCommand> Stage<'a, C> for Sent {
    type Future = SendUnheard<'a, C>;

    fn wait(self, sending: Sending<'a, C>) -> SendUnheard<'a, C> {
        SendUnheard(Transit::new(sending, Hearing::Nothing))
    }
}

impl<'a, C: AggregateCommand> Stage<'a, C> for Processed {
    type Future = SendAndWait<'a, C>;

    fn wait(self, sending: Sending<'a, C>) -> SendAndWait<'a, C> {
        SendAndWait(Leg::There(Transit::new(sending, Hearing::Reply)))
    }
}

/// A command that is about to be sent, with everything that can be said beside its body.
#[must_use = "a command is sent by awaiting it, or a stage of it"]
pub struct Sending<'a, C> {
    shared: &'a Arc<Shared>,
    body: C,
    request_id: Option<RequestId>,
    tenant: Option<Name>,
    owner: Name,
    space: Name,
    expected_version: Option<Version>,
    header: Header,
}

impl<'a, C: AggregateCommand> Sending<'a, C> {
    pub(super) fn new(shared: &'a Arc<Shared>, body: C) -> Self {
        Self {
            shared,
            body,
            request_id: None,
            tenant: None,
            owner: Name::EMPTY,
            space: Name::EMPTY,
            expected_version: None,
            header: Header::new(),
        }
    }

    /// Names the request: sent again under the same name, it is handled once.
    pub fn request_id(mut self, request_id: impl Into<RequestId>) -> Self {
        self.request_id = Some(request_id.into());
        self
    }

    /// Addresses the aggregate of this tenant.
    pub fn tenant(mut self, tenant: impl Into<Name>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Speaks for this owner: the creator of the aggregate, or who it must belong to.
    pub fn owner(mut self, owner: impl Into<Name>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Means this space.
    pub fn space(mut self, space: impl Into<Name>) -> Self {
        self.space = space.into();
        self
    }

    /// Is refused at any other version of the aggregate.
    pub fn expect_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Travels with this header.
    pub fn header(mut self, header: Header) -> Self {
        self.header = header;
        self
    }

    /// Sends the command and waits for this stage of it: [`Sent`] or [`Processed`].
    pub fn wait_for<S: Stage<'a, C>>(self, stage: S) -> S::Future {
        stage.wait(self)
    }

    /// Registers who waits and gives the command to the bus.
    fn begin(self, hearing: Hearing) -> Result<OnItsWay<'a, C>, NotSent> {
        let shared = self.shared;
        let named = shared.aggregates.get(&TypeId::of::<C::Aggregate>());
        let command = Self::command(self, named.copied());
        if named.is_none() {
            return Err(NotSent::new(NotSentReason::UnknownAggregate, command));
        }
        let Some(activity) = shared.activities.try_acquire() else {
            return Err(NotSent::new(NotSentReason::Stopped, command));
        };
        let (slot, waiter): (_, Arc<dyn Waiter>) = match hearing {
            Hearing::Reply => {
                let slot = SlotOf::<C>::new(activity);
                (Some(Arc::clone(&slot)), slot)
            }
            Hearing::Nothing => (None, Unheard::new(activity)),
        };
        let id = command.id();
        if shared.waits.register(id, waiter).is_err() {
            return Err(NotSent::new(NotSentReason::Stopped, command));
        }
        let registration = Registration { waits: &shared.waits, command: Some(id) };
        Ok(OnItsWay { answer: shared.commands.send(command), registration, slot })
    }

    fn command(self, named: Option<NamedAggregate>) -> Command {
        let named = named.unwrap_or_else(|| {
            NamedAggregate::new(self.shared.context.clone(), <C::Aggregate as Aggregate>::NAME)
        });
        let mut id = AggregateId::new(named, self.body.aggregate_id());
        if let Some(tenant) = self.tenant {
            id = id.with_tenant(tenant);
        }
        let creation = match C::MODE {
            CommandMode::Create => Creation::Create,
            CommandMode::CreateOrUpdate => Creation::Allowed,
            CommandMode::Update | CommandMode::Recover => Creation::MustExist,
        };
        let mut command = Command::builder(id, self.body)
            .name(C::NAME)
            .creation(creation)
            .owner(self.owner)
            .space(self.space)
            .header(self.header);
        if let Some(request_id) = self.request_id {
            command = command.request_id(request_id);
        }
        if let Some(version) = self.expected_version {
            command = command.expect_version(version);
        }
        command.build()
    }
}

impl<'a, C: AggregateCommand> IntoFuture for Sending<'a, C> {
    type Output = Result<Reply<C>, NotSent>;
    type IntoFuture = SendForReply<'a, C>;

    fn into_future(self) -> SendForReply<'a, C> {
        SendForReply(Transit::new(self, Hearing::Reply))
    }
}

impl<C: AggregateCommand> fmt::Debug for Sending<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("command", &C::NAME).finish_non_exhaustive()
    }
}

// === Transit: from the sender to the bus ===

/// What the sender wants to hear after the command was sent.
#[derive(Clone, Copy, Debug)]
enum Hearing {
    Reply,
    Nothing,
}

struct Transit<'a, C: AggregateCommand>(Step<'a, C>);

enum Step<'a, C: AggregateCommand> {
    Prepared(Sending<'a, C>, Hearing),
    OnItsWay(OnItsWay<'a, C>),
    Over,
}

struct OnItsWay<'a, C: AggregateCommand> {
    answer: wow_transport::Sending<Command>,
    registration: Registration<'a>,
    slot: Option<Arc<SlotOf<C>>>,
}

/// Who waits for a command; forgotten if the command is not sent.
struct Registration<'a> {
    waits: &'a Arc<Waits>,
    command: Option<MessageId>,
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
    fn new(sending: Sending<'a, C>, hearing: Hearing) -> Self {
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
pub struct SendForReply<'a, C: AggregateCommand>(Transit<'a, C>);

impl<C: AggregateCommand> Future for SendForReply<'_, C> {
    type Output = Result<Reply<C>, NotSent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let sent = ready!(self.0.poll(cx));
        Poll::Ready(sent.map(|reply| reply.expect("a reply was wanted")))
    }
}

/// Sends a command whose reply is of no interest; made by waiting for [`Sent`].
///
/// # Cancel safety
/// As for [`SendForReply`].
#[must_use = "futures do nothing unless they are polled"]
pub struct SendUnheard<'a, C: AggregateCommand>(Transit<'a, C>);

impl<C: AggregateCommand> Future for SendUnheard<'_, C> {
    type Output = Result<(), NotSent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|sent| sent.map(|_| ()))
    }
}

/// Sends a command and waits for its reply; made by waiting for [`Processed`].
///
/// # Cancel safety
/// Dropped after the command was sent, it only stops waiting: the command is handled.
#[must_use = "futures do nothing unless they are polled"]
pub struct SendAndWait<'a, C: AggregateCommand>(Leg<'a, C>);

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
