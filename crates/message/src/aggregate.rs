//! Who a message is about: `NamedAggregate`, `AggregateId`, the ordering key, and the aggregate's `Version`.
//!
//! Invariants: identity has four parts (context, aggregate, tenant, id), ordering has three, since messages of one id run one
//! after the other even if they carry different tenants. An id is hashed once, when it is made, with a seed of this process;
//! every table that it meets reuses that. Aggregate types are interned: equal ones are one, and copying is free.
//! Deliberately knows no messages.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ptr;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::name::Name;

/// The tenant of an aggregate that names none.
pub const DEFAULT_TENANT: Name = Name::from_static("(0)");

/// One seed for all ids of this process. Ids come from outside, and this hash stands for them in every table, so it is the
/// keyed hash of the standard library, for which nobody outside is known to be able to craft ids that meet in one place.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// An aggregate type: the bounded context it belongs to and its name there.
///
/// Every type that was ever named stays in memory: there are as many as the program has. So never make one from what a
/// stranger sends; look it up with [`find`](NamedAggregate::find).
///
/// ```
/// # use wow_message::NamedAggregate;
/// let account = NamedAggregate::new("bank", "account");
/// assert_eq!(account.to_string(), "bank.account");
/// assert_eq!(NamedAggregate::find("bank", "account"), Some(account));
/// assert_eq!(NamedAggregate::find("bank", "no such thing"), None);
/// ```
#[derive(Clone, Copy)]
pub struct NamedAggregate(&'static Parts);

struct Parts {
    context: Name,
    name: Name,
    hash: u64,
}

type Interned = HashMap<Name, HashMap<Name, &'static Parts>>;

/// By context, then by name.
static INTERNED: LazyLock<RwLock<Interned>> = LazyLock::new(RwLock::default);

impl NamedAggregate {
    /// The aggregate type `name` of the bounded context `context`.
    pub fn new(context: impl Into<Name>, name: impl Into<Name>) -> Self {
        let (context, name) = (context.into(), name.into());
        if let Some(known) = Self::find(&context, &name) {
            return known;
        }
        let mut interned = INTERNED.write().unwrap_or_else(PoisonError::into_inner);
        let of_context = interned.entry(context.clone()).or_default();
        let parts = of_context.entry(name.clone()).or_insert_with(|| {
            let hash = SEED.hash_one((&context, &name));
            Box::leak(Box::new(Parts { context, name, hash }))
        });
        Self(parts)
    }

    /// The aggregate type, if this process has named it before.
    #[must_use]
    pub fn find(context: &str, name: &str) -> Option<Self> {
        let interned = INTERNED.read().unwrap_or_else(PoisonError::into_inner);
        interned.get(context)?.get(name).copied().map(Self)
    }

    /// The bounded context.
    #[must_use]
    pub fn context(&self) -> &'static Name {
        &self.0.context
    }

    /// The aggregate's name inside its context.
    #[must_use]
    pub fn name(&self) -> &'static Name {
        &self.0.name
    }
}

impl PartialEq for NamedAggregate {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for NamedAggregate {}

impl Hash for NamedAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialOrd for NamedAggregate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NamedAggregate {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.context(), self.name()).cmp(&(other.context(), other.name()))
    }
}

impl fmt::Display for NamedAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.context(), self.name())
    }
}

impl fmt::Debug for NamedAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedAggregate({self})")
    }
}

/// The ordering key of an aggregate: context, aggregate name and id, without the tenant (KM-1).
#[derive(Clone)]
pub struct AggregateKey {
    hash: u64,
    named: NamedAggregate,
    id: Name,
}

impl AggregateKey {
    fn new(named: NamedAggregate, id: Name) -> Self {
        Self { hash: SEED.hash_one((named, &id)), named, id }
    }

    /// The aggregate's type.
    #[must_use]
    pub fn named(&self) -> NamedAggregate {
        self.named
    }

    /// The aggregate's id.
    #[must_use]
    pub fn id(&self) -> &Name {
        &self.id
    }

    /// The hash that was computed when the key was made, to choose a shard by. It differs between processes.
    #[must_use]
    pub fn spread(&self) -> u64 {
        self.hash
    }
}

impl PartialEq for AggregateKey {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.named == other.named && self.id == other.id
    }
}

impl Eq for AggregateKey {}

impl Hash for AggregateKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
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

/// One aggregate: its type, its tenant and its id. Equality and hash use all parts.
///
/// The order compares ids (then tenants) and exists only between aggregates of one type.
///
/// ```
/// # use wow_message::{AggregateId, NamedAggregate};
/// let account = NamedAggregate::new("bank", "account");
/// let ours = AggregateId::new(account, "4711");
/// let theirs = AggregateId::new(account, "4711").with_tenant("acme");
/// assert_ne!(ours, theirs);
/// assert_eq!(ours.key(), theirs.key(), "one ordering key for every tenant of an id");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AggregateId {
    key: AggregateKey,
    tenant: Name,
}

impl AggregateId {
    /// The longest id, and the longest tenant, that [`check_length`](Self::check_length) accepts, in bytes.
    pub const MAX_PART_BYTES: usize = 1_024;

    /// The aggregate `id` of this type, of the default tenant. Any length is taken: an id that comes from outside is
    /// [checked](Self::check_length) where it comes in.
    pub fn new(named: NamedAggregate, id: impl Into<Name>) -> Self {
        Self { key: AggregateKey::new(named, id.into()), tenant: DEFAULT_TENANT }
    }

    /// Whether id and tenant are as short as ids should be: they are kept while messages of the aggregate are under way, and
    /// are told in logs.
    ///
    /// ```
    /// # use wow_message::{AggregateId, NamedAggregate};
    /// let account = NamedAggregate::new("bank", "account");
    /// assert!(AggregateId::new(account, "4711").check_length().is_ok());
    /// let error = AggregateId::new(account, "4".repeat(1_025)).check_length().expect_err("too long");
    /// assert_eq!(error.to_string(), "an id of bank.account has 1025 bytes, and ids may have 1024");
    /// ```
    ///
    /// # Errors
    /// The part that is longer than [`MAX_PART_BYTES`](Self::MAX_PART_BYTES), and how long it is.
    pub fn check_length(&self) -> Result<(), IdTooLong> {
        for (part, text) in [("id", self.id()), ("tenant", self.tenant())] {
            if text.len() > Self::MAX_PART_BYTES {
                return Err(IdTooLong { named: self.named(), part, bytes: text.len() });
            }
        }
        Ok(())
    }

    /// The same aggregate id for another tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<Name>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// The aggregate's type.
    #[must_use]
    pub fn named(&self) -> NamedAggregate {
        self.key.named
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> &Name {
        &self.tenant
    }

    /// The id proper.
    #[must_use]
    pub fn id(&self) -> &Name {
        &self.key.id
    }

    /// The key its messages are ordered by: everything but the tenant.
    #[must_use]
    pub fn key(&self) -> &AggregateKey {
        &self.key
    }
}

impl Hash for AggregateId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        // Few aggregates have a tenant of their own; equal ids agree on it, so leaving the default out is consistent.
        if self.tenant != DEFAULT_TENANT {
            self.tenant.hash(state);
        }
    }
}

impl PartialOrd for AggregateId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let same_type = self.named() == other.named();
        same_type.then(|| (self.id(), &self.tenant).cmp(&(other.id(), &other.tenant)))
    }
}

impl fmt::Display for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.tenant)
    }
}

impl fmt::Debug for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregateId({self})")
    }
}

/// An aggregate id with a part that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdTooLong {
    named: NamedAggregate,
    part: &'static str,
    bytes: usize,
}

impl IdTooLong {
    /// The aggregate's type.
    #[must_use]
    pub fn named(&self) -> NamedAggregate {
        self.named
    }

    /// How many bytes the part has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Display for IdTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { named, part, bytes } = self;
        let article = if *part == "id" { "an" } else { "a" };
        let max = AggregateId::MAX_PART_BYTES;
        write!(f, "{article} {part} of {named} has {bytes} bytes, and {part}s may have {max}")
    }
}

impl std::error::Error for IdTooLong {}

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
