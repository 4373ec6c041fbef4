//! `TopicKind`: which of the three bus families a message belongs to.

use std::fmt;

/// The bus family of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopicKind {
    /// Commands: one consuming chain owns an aggregate's commands.
    Command,
    /// Domain event streams: every receiver group gets all of them.
    EventStream,
    /// State events: a stream together with the state it led to.
    State,
}

impl TopicKind {
    /// The name used in topics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::EventStream => "event",
            Self::State => "state",
        }
    }
}

impl fmt::Display for TopicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
