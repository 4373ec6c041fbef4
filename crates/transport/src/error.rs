//! What can go wrong with a bus, one type per operation.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use wow_message::NamedAggregate;

/// A message was not sent; it is in here.
pub struct SendError<M> {
    reason: SendRefusal,
    message: M,
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendRefusal {
    /// The bus is closing.
    #[error("the bus is closing")]
    Closed,
    /// The transport failed.
    #[error("the transport failed: {0}")]
    Transport(#[source] Box<dyn Error + Send + Sync>),
}

impl<M> SendError<M> {
    /// The failure of a send, with the message that was to be sent.
    pub fn new(reason: SendRefusal, message: M) -> Self {
        Self { reason, message }
    }

    /// Why it was not sent.
    pub fn reason(&self) -> &SendRefusal {
        &self.reason
    }

    /// The message that was not sent.
    pub fn message(&self) -> &M {
        &self.message
    }

    /// Gives the message back.
    pub fn into_message(self) -> M {
        self.message
    }

    /// Gives both back.
    pub fn into_parts(self) -> (SendRefusal, M) {
        (self.reason, self.message)
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message not sent: {}", self.reason)
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<M> Error for SendError<M> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.reason)
    }
}

/// A subscription was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubscribeError {
    /// Another receiver consumes the commands of this aggregate.
    #[error("commands of {0} have a consumer already")]
    AlreadyConsumed(NamedAggregate),
    /// The messages of this receiver were taken before.
    #[error(transparent)]
    AlreadySubscribed(#[from] AlreadySubscribed),
    /// The bus was closed since the receiver was made, or is closing.
    #[error("the bus was closed")]
    Closed,
    /// The transport failed.
    #[error("the transport failed: {0}")]
    Transport(#[source] Arc<dyn Error + Send + Sync>),
}

/// The messages of a receiver can be taken once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receiver's messages have a subscriber already")]
pub struct AlreadySubscribed;

/// A receiver failed: its stream, its readiness or one of its gates.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The subscription ended before it was ready.
    #[error("the subscription ended before it was ready")]
    EndedBeforeReady,
    /// The transport failed.
    #[error("the transport failed: {0}")]
    Transport(#[source] Arc<dyn Error + Send + Sync>),
}

/// A receiver group needs a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a receiver group must not be blank")]
pub struct BlankGroup;

/// Parts of a bus failed to close; the others were closed all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseError {
    /// What failed, one text per part.
    pub failures: Vec<String>,
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} parts of the bus failed to close: {}", self.failures.len(), self.failures.join("; "))
    }
}

impl Error for CloseError {}
