//! `LifecycleEvent`: what can happen to any aggregate, whatever its type (SS-2).

use std::collections::BTreeMap;

use wow_message::Name;

/// A change of what surrounds an aggregate's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// It was deleted: it takes no command but one that recovers it.
    Deleted,
    /// It was recovered after a deletion.
    Recovered,
    /// It belongs to somebody else now.
    OwnerTransferred {
        /// The new owner.
        to: Name,
    },
    /// It lives in another space now.
    SpaceTransferred {
        /// The new space.
        to: Name,
    },
    /// Its tags were replaced.
    TagsApplied {
        /// All its tags: key and values.
        tags: BTreeMap<Name, Vec<Name>>,
    },
}

impl LifecycleEvent {
    /// The name of the event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deleted => "aggregate_deleted",
            Self::Recovered => "aggregate_recovered",
            Self::OwnerTransferred { .. } => "owner_transferred",
            Self::SpaceTransferred { .. } => "space_transferred",
            Self::TagsApplied { .. } => "tags_applied",
        }
    }
}
