//! `Header`: the string map that travels beside a message, with its read-only switch, and the names used in it.
//!
//! Invariant: a header that was made read-only never changes again; copies made with [`Header::writable_copy`] start
//! writable. An empty header allocates nothing. Deliberately a short list searched in order: headers hold a handful of entries.

use std::fmt;

use crate::name::Name;

/// Names of the entries that mean something to the framework.
pub mod keys {
    /// `true` on a copy that local receivers handled already, `false` (in any case) where the sender forbids local delivery.
    pub const LOCAL_FIRST: &str = "local_first";
    /// The id under which a sender waits for stages of a command.
    pub const COMMAND_WAIT_ID: &str = "command_wait_id";
    /// Where the waiting sender can be reached.
    pub const COMMAND_WAIT_ENDPOINT: &str = "command_wait_endpoint";
    /// The stage that is waited for.
    pub const COMMAND_WAIT_STAGE: &str = "command_wait_stage";
    /// The bounded context whose function is waited for.
    pub const COMMAND_WAIT_CONTEXT: &str = "command_wait_context";
    /// The processor whose function is waited for.
    pub const COMMAND_WAIT_PROCESSOR: &str = "command_wait_processor";
    /// The function that is waited for.
    pub const COMMAND_WAIT_FUNCTION: &str = "command_wait_function";
    /// Marks a message that is replayed for one recorded function.
    pub const COMPENSATE_ID: &str = "compensate.id";
    /// The context of the function a compensation is meant for.
    pub const COMPENSATE_CONTEXT: &str = "compensate.context";
    /// The processor of the function a compensation is meant for.
    pub const COMPENSATE_PROCESSOR: &str = "compensate.processor";
    /// The function a compensation is meant for.
    pub const COMPENSATE_FUNCTION: &str = "compensate.function";
    /// Who acts.
    pub const OPERATOR: &str = "operator";
    /// The trace the message belongs to.
    pub const TRACE_ID: &str = "trace_id";
    /// The message that led to this one.
    pub const UPSTREAM_ID: &str = "upstream_id";
    /// The requesting client program.
    pub const USER_AGENT: &str = "user_agent";
    /// The requesting client's address.
    pub const REMOTE_IP: &str = "remote_ip";

    /// What a command hands on to the event stream that answers it (MD-16).
    pub(crate) const COMMAND_TO_EVENTS: [&str; 10] = [
        COMMAND_WAIT_ID,
        COMMAND_WAIT_ENDPOINT,
        COMMAND_WAIT_STAGE,
        COMMAND_WAIT_CONTEXT,
        COMMAND_WAIT_PROCESSOR,
        COMMAND_WAIT_FUNCTION,
        OPERATOR,
        TRACE_ID,
        USER_AGENT,
        REMOTE_IP,
    ];
}

/// A message's string map.
///
/// ```
/// use wow_message::Header;
///
/// let mut header = Header::new();
/// header.set("operator", "ann")?;
/// header.make_read_only();
/// assert!(header.set("operator", "bob").is_err(), "what was emitted stays as it is");
/// assert_eq!(header.get("operator"), Some("ann"));
///
/// let mut copy = header.writable_copy();
/// copy.set("operator", "bob")?;
/// # Ok::<(), wow_message::ReadOnlyHeader>(())
/// ```
#[derive(Clone, Default)]
pub struct Header {
    entries: Vec<(Name, Name)>,
    access: Access,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Access {
    #[default]
    Writable,
    ReadOnly,
}

/// The header was made read-only, so it cannot be written any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOnlyHeader {
    /// The entry that was to be written.
    pub key: Name,
}

impl fmt::Display for ReadOnlyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header is read-only, entry '{}' cannot be written", self.key)
    }
}

impl std::error::Error for ReadOnlyHeader {}

impl Header {
    /// An empty, writable header; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), access: Access::Writable }
    }

    /// The value of `key`, if there is one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.find(key).map(Name::as_str)
    }

    /// Sets `key` to `value`, replacing an earlier value.
    ///
    /// # Errors
    /// [`ReadOnlyHeader`] if the header was made read-only; nothing is changed then.
    pub fn set(&mut self, key: impl Into<Name>, value: impl Into<Name>) -> Result<(), ReadOnlyHeader> {
        let (key, value) = (key.into(), value.into());
        if self.is_read_only() {
            return Err(ReadOnlyHeader { key });
        }
        match self.entries.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key, value)),
        }
        Ok(())
    }

    /// Removes `key` and returns the value it had.
    ///
    /// # Errors
    /// [`ReadOnlyHeader`] if the header was made read-only; nothing is changed then.
    pub fn remove(&mut self, key: &str) -> Result<Option<Name>, ReadOnlyHeader> {
        if self.is_read_only() {
            return Err(ReadOnlyHeader { key: Name::copied(key) });
        }
        let at = self.entries.iter().position(|(k, _)| *k == key);
        Ok(at.map(|at| self.entries.remove(at).1))
    }

    /// Makes every later write fail; idempotent.
    pub fn make_read_only(&mut self) {
        self.access = Access::ReadOnly;
    }

    /// Whether writes fail.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly
    }

    /// The same entries in a header that can be written, whether this one can or not.
    #[must_use]
    pub fn writable_copy(&self) -> Self {
        Self { entries: self.entries.clone(), access: Access::Writable }
    }

    /// The entries in the order they were first set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The part of a command's header that its event stream carries on, as a writable header.
    pub(crate) fn propagated_to_events(&self) -> Self {
        if self.entries.is_empty() {
            return Self::new();
        }
        let keep = |(key, _): &&(Name, Name)| keys::COMMAND_TO_EVENTS.contains(&key.as_str());
        Self { entries: self.entries.iter().filter(keep).cloned().collect(), access: Access::Writable }
    }

    fn find(&self, key: &str) -> Option<&Name> {
        self.entries.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }
}

impl PartialEq for Header {
    /// Equal entries, whatever their order and whether they can be written.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.entries.iter().all(|(key, value)| other.find(key) == Some(value))
    }
}

impl Eq for Header {}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
