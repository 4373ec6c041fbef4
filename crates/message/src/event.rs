//! `DomainEvent`: one fact about an aggregate, numbered inside its stream.
//!
//! Invariant: made only by the stream that holds it, never changed afterwards. Deliberately knows no state.

use std::any::Any;
use std::fmt;

use crate::aggregate::Version;
use crate::error_info::ErrorInfo;
use crate::id::MessageId;
use crate::message::Body;
use crate::name::Name;

/// The revision of an event that names none.
pub const DEFAULT_REVISION: Name = Name::from_static("0.0.1");

/// One fact about an aggregate.
#[derive(Clone)]
pub struct DomainEvent {
    pub(crate) id: MessageId,
    pub(crate) name: Name,
    pub(crate) revision: Name,
    pub(crate) version: Version,
    pub(crate) sequence: u32,
    pub(crate) position: Position,
    pub(crate) body: Body,
}

/// Whether more events of the stream follow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    Inner,
    Last,
}

impl DomainEvent {
    /// The event's identity.
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// What happened, as a name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The revision of the body's form.
    #[must_use]
    pub fn revision(&self) -> &Name {
        &self.revision
    }

    /// The aggregate's version this event belongs to; the same for all events of a stream.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The place in its stream, from 1.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Whether it is the last event of its stream.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.position == Position::Last
    }

    /// Whether it reports a failure instead of a change.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.body.is::<ErrorInfo>()
    }

    /// The body, whatever its type.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The body as a `B`, if it is one.
    #[must_use]
    pub fn body_as<B: Any>(&self) -> Option<&B> {
        self.body.downcast_ref()
    }
}

impl fmt::Debug for DomainEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DomainEvent")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("version", &self.version)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
