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
use std::sync::Arc;

use wow_eventsourcing::Aggregate;
use wow_message::{AggregateId, Command, Creation, Header, Name, NamedAggregate, RequestId, Version};

use crate::command::{NotSent, NotSentReason, Unheard, Waiter};
use crate::decide::{AggregateCommand, CommandMode};
use crate::service::Shared;
use crate::service::transit::{
    Hearing, OnItsWay, Registration, Reply, SendAndWait, SendForReply, SendUnheard, SlotOf, Transit,
};

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
        SendAndWait::new(sending)
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
    pub(super) fn begin(self, hearing: Hearing) -> Result<OnItsWay<'a, C>, NotSent> {
        let shared = self.shared;
        let named = shared.aggregates.get(&TypeId::of::<C::Aggregate>());
        let command = Self::command(self, named.copied());
        if named.is_none() {
            return Err(NotSent::new(NotSentReason::UnknownAggregate, command));
        }
        if let Err(too_long) = command.aggregate_id().check_length() {
            return Err(NotSent::new(NotSentReason::IdTooLong(too_long), command));
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
        let registration = Registration::of(id, &shared.waits);
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
