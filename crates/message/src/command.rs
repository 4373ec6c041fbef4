//! `Command`: what is asked of one aggregate.
//!
//! Invariant: everything but the header is fixed when it is built and shared by all clones (one allocation, body included).
//! A create command expects version 0, and only [`Creation::Create`] makes a create command, not the expectation of version 0.
//! Deliberately does not know its handler or who waits for it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::aggregate::{AggregateId, Version};
use crate::header::Header;
use crate::id::{MessageId, RequestId};
use crate::message::Message;
use crate::name::Name;
use crate::time::Timestamp;
use crate::topic::TopicKind;

/// Whether a command may meet an aggregate that does not exist yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Creation {
    /// The aggregate must exist.
    #[default]
    MustExist,
    /// The command creates the aggregate, which must not exist.
    Create,
    /// The command creates the aggregate if it does not exist.
    Allowed,
}

/// Whether anybody handles the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CommandUse {
    /// Its aggregate handles it.
    #[default]
    Handled,
    /// A record only: it is acknowledged and never handled.
    Void,
}

/// A request to one aggregate, with a body of any type.
///
/// ```
/// use wow_message::{AggregateId, Command, Creation, NamedAggregate, Version};
///
/// struct Open { owner: &'static str }
///
/// let id = AggregateId::new(NamedAggregate::new("bank", "account"), "4711");
/// let open = Command::builder(id, Open { owner: "ann" }).name("open").creation(Creation::Create).build();
/// assert_eq!(open.body_as::<Open>().map(|o| o.owner), Some("ann"));
/// assert_eq!(open.expected_version(), Some(Version::UNINITIALISED));
/// assert!(open.request_id().is_message(open.id()), "by default the request is the message");
/// ```
#[derive(Clone)]
pub struct Command {
    header: Header,
    shared: Arc<Parts<dyn Any + Send + Sync>>,
}

struct Parts<B: ?Sized> {
    id: MessageId,
    request_id: RequestId,
    aggregate_id: AggregateId,
    expected_version: Option<Version>,
    creation: Creation,
    usage: CommandUse,
    owner: Name,
    space: Name,
    name: Name,
    create_time: Timestamp,
    body: B,
}

impl Command {
    /// Starts a command to `aggregate_id`; everything else has a default.
    pub fn builder<B: Any + Send + Sync>(aggregate_id: AggregateId, body: B) -> CommandBuilder<B> {
        CommandBuilder {
            header: Header::new(),
            id: None,
            request_id: None,
            aggregate_id,
            expected_version: None,
            creation: Creation::default(),
            usage: CommandUse::default(),
            owner: Name::EMPTY,
            space: Name::EMPTY,
            name: Name::EMPTY,
            create_time: None,
            body,
        }
    }

    /// The command id.
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.shared.id
    }

    /// What makes resends of this command one request.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.shared.request_id
    }

    /// The aggregate it is meant for.
    #[must_use]
    pub fn aggregate_id(&self) -> &AggregateId {
        &self.shared.aggregate_id
    }

    /// The only version of the aggregate at which the command may be handled, if it names one.
    #[must_use]
    pub fn expected_version(&self) -> Option<Version> {
        self.shared.expected_version
    }

    /// Whether it may meet an aggregate that does not exist.
    #[must_use]
    pub fn creation(&self) -> Creation {
        self.shared.creation
    }

    /// Whether anybody handles it.
    #[must_use]
    pub fn usage(&self) -> CommandUse {
        self.shared.usage
    }

    /// The owner it speaks for; empty if it names none.
    #[must_use]
    pub fn owner(&self) -> &Name {
        &self.shared.owner
    }

    /// The space it is meant for; empty if it names none.
    #[must_use]
    pub fn space(&self) -> &Name {
        &self.shared.space
    }

    /// The command's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.shared.name
    }

    /// When it was made.
    #[must_use]
    pub fn create_time(&self) -> Timestamp {
        self.shared.create_time
    }

    /// What travels beside the body.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The body, whatever its type.
    #[must_use]
    pub fn body(&self) -> &(dyn Any + Send + Sync) {
        &self.shared.body
    }

    /// The body as a `B`, if it is one.
    #[must_use]
    pub fn body_as<B: Any>(&self) -> Option<&B> {
        self.body().downcast_ref()
    }
}

impl Message for Command {
    const KIND: TopicKind = TopicKind::Command;

    fn id(&self) -> MessageId {
        self.id()
    }

    fn aggregate_id(&self) -> &AggregateId {
        self.aggregate_id()
    }

    fn create_time(&self) -> Timestamp {
        self.create_time()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("id", &self.id())
            .field("name", self.name())
            .field("aggregate_id", self.aggregate_id())
            .field("request_id", self.request_id())
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// What a command will be; [`build`](CommandBuilder::build) makes it.
#[must_use = "a builder does nothing until it is built"]
pub struct CommandBuilder<B> {
    header: Header,
    id: Option<MessageId>,
    request_id: Option<RequestId>,
    aggregate_id: AggregateId,
    expected_version: Option<Version>,
    creation: Creation,
    usage: CommandUse,
    owner: Name,
    space: Name,
    name: Name,
    create_time: Option<Timestamp>,
    body: B,
}

impl<B: Any + Send + Sync> CommandBuilder<B> {
    /// The command id; by default a fresh one.
    #[inline]
    pub fn id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// The request id; by default the command id.
    #[inline]
    pub fn request_id(mut self, request_id: impl Into<RequestId>) -> Self {
        self.request_id = Some(request_id.into());
        self
    }

    /// Handles the command only at this version of the aggregate. A create command always expects version 0.
    #[inline]
    pub fn expect_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Whether the command may meet an aggregate that does not exist; by default it may not.
    #[inline]
    pub fn creation(mut self, creation: Creation) -> Self {
        self.creation = creation;
        self
    }

    /// Whether anybody handles the command; by default its aggregate does.
    #[inline]
    pub fn usage(mut self, usage: CommandUse) -> Self {
        self.usage = usage;
        self
    }

    /// The owner the command speaks for.
    #[inline]
    pub fn owner(mut self, owner: impl Into<Name>) -> Self {
        self.owner = owner.into();
        self
    }

    /// The space the command is meant for.
    #[inline]
    pub fn space(mut self, space: impl Into<Name>) -> Self {
        self.space = space.into();
        self
    }

    /// The command's name.
    #[inline]
    pub fn name(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// The time of creation; by default now.
    #[inline]
    pub fn create_time(mut self, at: Timestamp) -> Self {
        self.create_time = Some(at);
        self
    }

    /// What travels beside the body.
    #[inline]
    pub fn header(mut self, header: Header) -> Self {
        self.header = header;
        self
    }

    /// The command.
    #[inline]
    #[must_use]
    pub fn build(self) -> Command {
        let create_time = self.create_time.unwrap_or_else(Timestamp::now);
        let id = self.id.unwrap_or_else(|| MessageId::next_at(create_time));
        let expected_version = match self.creation {
            Creation::Create => Some(Version::UNINITIALISED),
            Creation::MustExist | Creation::Allowed => self.expected_version,
        };
        Command {
            header: self.header,
            shared: Arc::new(Parts {
                id,
                request_id: self.request_id.unwrap_or_else(|| id.into()),
                aggregate_id: self.aggregate_id,
                expected_version,
                creation: self.creation,
                usage: self.usage,
                owner: self.owner,
                space: self.space,
                name: self.name,
                create_time,
                body: self.body,
            }),
        }
    }
}

impl<B> fmt::Debug for CommandBuilder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandBuilder")
            .field("aggregate_id", &self.aggregate_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
