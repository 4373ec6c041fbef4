//! Who a message is about: `NamedAggregate`, `AggregateId`, the ordering key, and the aggregate's `Version`.
//!
//! Invariant: identity has four parts (context, aggregate, tenant, id), ordering has three, since messages of one id run one
//! after the other even if they carry different tenants. Deliberately knows no messages.

use std::cmp::Ordering;
use std::fmt;

use crate::name::Name;

/// The tenant of an aggregate that names none.
pub const DEFAULT_TENANT: Name = Name::from_static("(0)");

/// An aggregate type: the bounded context it belongs to and its name there.
///
/// ```
/// # use wow_message::NamedAggregate;
/// assert_eq!(NamedAggregate::new("bank", "account").to_string(), "bank.account");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedAggregate {
    context: Name,
    name: Name,
}

impl NamedAggregate {
    /// The aggregate type `name` of the bounded context `context`.
    pub fn new(context: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { context: context.into(), name: name.into() }
    }

    /// The bounded context.
    #[must_use]
    pub fn context(&self) -> &Name {
        &self.context
    }

    /// The aggregate's name inside its context.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl fmt::Display for NamedAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.context, self.name)
    }
}

/// One aggregate: its type, its tenant and its id. Equality and hash use all parts.
///
/// The order compares ids (then tenants) and exists only between aggregates of one type.
///
/// ```
/// # use wow_message::{AggregateId, NamedAggregate};
/// let account = NamedAggregate::new("bank", "account");
/// let ours = AggregateId::new(account.clone(), "4711");
/// let theirs = AggregateId::new(account, "4711").with_tenant("acme");
/// assert_ne!(ours, theirs);
/// assert_eq!(ours.key(), theirs.key(), "one ordering key for every tenant of an id");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AggregateId {
    id: Name,
    named: NamedAggregate,
    tenant: Name,
}

impl AggregateId {
    /// The aggregate `id` of this type, of the default tenant.
    pub fn new(named: NamedAggregate, id: impl Into<Name>) -> Self {
        Self { id: id.into(), named, tenant: DEFAULT_TENANT }
    }

    /// The same aggregate id for another tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<Name>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// The aggregate's type.
    #[must_use]
    pub fn named(&self) -> &NamedAggregate {
        &self.named
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> &Name {
        &self.tenant
    }

    /// The id proper.
    #[must_use]
    pub fn id(&self) -> &Name {
        &self.id
    }

    /// The key its messages are ordered by: everything but the tenant.
    #[must_use]
    pub fn key(&self) -> AggregateKey {
        AggregateKey { id: self.id.clone(), named: self.named.clone() }
    }
}

impl PartialOrd for AggregateId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.named == other.named).then(|| (&self.id, &self.tenant).cmp(&(&other.id, &other.tenant)))
    }
}

impl fmt::Display for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.named, self.id, self.tenant)
    }
}

impl fmt::Debug for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregateId({self})")
    }
}

/// The ordering key of an aggregate: context, aggregate name and id, without the tenant (KM-1).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AggregateKey {
    id: Name,
    named: NamedAggregate,
}

impl AggregateKey {
    /// The aggregate's type.
    #[must_use]
    pub fn named(&self) -> &NamedAggregate {
        &self.named
    }

    /// The aggregate's id.
    #[must_use]
    pub fn id(&self) -> &Name {
        &self.id
    }
}

impl fmt::Display for AggregateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.named, self.id)
    }
}

impl fmt::Debug for AggregateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregateKey({self})")
    }
}

/// How many event streams an aggregate has: 0 before the first, 1 with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(u64);

impl Version {
    /// An aggregate without events.
    pub const UNINITIALISED: Version = Version(0);
    /// An aggregate with its first event stream.
    pub const INITIAL: Version = Version(1);
    /// The highest version there can be; the open end of a range.
    pub const MAX: Version = Version(u64::MAX);

    /// This many event streams.
    #[must_use]
    pub const fn new(n_streams: u64) -> Self {
        Self(n_streams)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the aggregate has at least one event stream.
    #[must_use]
    pub const fn is_initialised(self) -> bool {
        self.0 > 0
    }

    /// The version after this one; [`Version::MAX`] stays where it is.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
