//! `MessageId`, unique and ordered by time per thread, and `RequestId`, what makes a resent command the same request.
//!
//! An id is 128 bits in the layout of a UUID of version 7: 48 bits of milliseconds, 12 bits of a counter inside the
//! millisecond, 62 bits that belong to the generating thread alone. Invariant: one thread's ids rise strictly; a counter that
//! overflows borrows from the next millisecond instead of repeating. No lock and no allocation.
//! Deliberately no secret: an id may be guessed by who has seen another one.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::name::Name;
use crate::time::Timestamp;

const COUNTER_BITS: u32 = 12;
const NODE_BITS: u32 = 62;
const VERSION_7: u128 = 0x7 << 76;
const VARIANT: u128 = 0b10 << 62;

/// A message's identity, unique without coordination.
///
/// ```
/// # use wow_message::MessageId;
/// let (first, second) = (MessageId::next(), MessageId::next());
/// assert!(first < second, "the ids of one thread rise");
/// assert_eq!(first.to_string().parse(), Ok(first));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(u128);

impl MessageId {
    /// A fresh id.
    #[must_use]
    pub fn next() -> Self {
        Self::next_at(Timestamp::now())
    }

    /// A fresh id for a message made at `now`; saves reading the clock twice.
    #[must_use]
    pub fn next_at(now: Timestamp) -> Self {
        GENERATOR.with(|generator| generator.next(now))
    }

    /// The id with this number.
    #[must_use]
    pub const fn from_u128(value: u128) -> Self {
        Self(value)
    }

    /// The id as a number.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            (v >> 96) as u32,
            (v >> 80) as u16,
            (v >> 64) as u16,
            (v >> 48) as u16,
            v & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

/// The text is no message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseMessageIdError;

impl fmt::Display for ParseMessageIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message id is written as 32 lower-case hexadecimal digits in groups of 8-4-4-4-12")
    }
}

impl std::error::Error for ParseMessageIdError {}

impl FromStr for MessageId {
    type Err = ParseMessageIdError;

    /// Reads exactly the form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 36 {
            return Err(ParseMessageIdError);
        }
        let mut value = 0_u128;
        for (at, byte) in text.bytes().enumerate() {
            let digit = match (at, byte) {
                (8 | 13 | 18 | 23, b'-') => continue,
                (8 | 13 | 18 | 23, _) => return Err(ParseMessageIdError),
                (_, b'0'..=b'9') => byte - b'0',
                (_, b'a'..=b'f') => byte - b'a' + 10,
                _ => return Err(ParseMessageIdError),
            };
            value = value << 4 | u128::from(digit);
        }
        Ok(Self(value))
    }
}

/// What identifies a request across resends; unique per aggregate. By default the command's own id.
///
/// A text in the form of a message id is that id, so both spellings are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Id(MessageId),
    Text(Name),
}

impl RequestId {
    /// Whether this is the id of that message, i.e. the caller named no request of its own.
    #[must_use]
    pub fn is_message(&self, id: MessageId) -> bool {
        self.0 == Repr::Id(id)
    }
}

impl From<MessageId> for RequestId {
    fn from(id: MessageId) -> Self {
        Self(Repr::Id(id))
    }
}

impl From<Name> for RequestId {
    fn from(text: Name) -> Self {
        Self(text.parse().map_or(Repr::Text(text), Repr::Id))
    }
}

impl From<&'static str> for RequestId {
    fn from(text: &'static str) -> Self {
        Name::from(text).into()
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Name::from(text).into()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Id(id) => fmt::Display::fmt(id, f),
            Repr::Text(text) => fmt::Display::fmt(text, f),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

/// One thread's source of ids.
struct Generator {
    node: u64,
    /// milliseconds << COUNTER_BITS | counter of the newest id.
    last: Cell<u64>,
}

thread_local! {
    static GENERATOR: Generator = Generator::new();
}

impl Generator {
    fn new() -> Self {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only distinct values matter. The random keys differ between processes, the count between threads.
        let thread = THREADS.fetch_add(1, Ordering::Relaxed);
        let node = RandomState::new().hash_one((thread, std::process::id()));
        Self { node: node & ((1 << NODE_BITS) - 1), last: Cell::new(0) }
    }

    fn next(&self, now: Timestamp) -> MessageId {
        let floor = now.as_millis() << COUNTER_BITS;
        let ticks = floor.max(self.last.get() + 1);
        self.last.set(ticks);
        let millis = u128::from(ticks >> COUNTER_BITS) & 0xffff_ffff_ffff;
        let counter = u128::from(ticks & ((1 << COUNTER_BITS) - 1));
        MessageId(millis << 80 | VERSION_7 | counter << 64 | VARIANT | u128::from(self.node))
    }
}
