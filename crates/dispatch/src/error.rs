//! What ends a dispatcher. What ends a single command is [`CommandFailure`](crate::CommandFailure).

use std::any::Any;

use wow_aggregate_scheduler::SupplierStopped;
use wow_message::MessageId;
use wow_runtime::ComponentError;
use wow_transport::{BlankGroup, ReceiveError, SubscribeError};

/// A dispatcher failed for good: the runtime it belongs to stops.
#[derive(Debug, thiserror::Error)]
pub enum DispatchFailure {
    /// The transport's stream failed.
    #[error("receiving failed: {0}")]
    Source(#[source] ReceiveError),
    /// A message's key could not be computed.
    #[error("the key of message {message} could not be computed: {cause}")]
    Key {
        /// The message, which stays unacknowledged.
        message: MessageId,
        /// Why.
        #[source]
        cause: ComponentError,
    },
    /// The dispatcher's own handling broke.
    #[error("dispatching ended: {0}")]
    Broken(String),
    /// A receiver's processing could not be closed.
    #[error("processing could not be closed: {0}")]
    Gate(#[source] ReceiveError),
}

/// A dispatcher was not prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It was prepared before.
    #[error("a dispatcher is prepared once")]
    AlreadyPrepared,
    /// It was stopped before it was prepared, or meanwhile.
    #[error("the dispatcher was stopped")]
    Stopped,
    /// The supplier of its pools was stopped before.
    #[error("there are no pools to run on: {0}")]
    Pools(#[from] SupplierStopped),
    /// Its name is blank.
    #[error(transparent)]
    BlankName(#[from] BlankGroup),
    /// The transport refused the subscription.
    #[error("subscribing failed: {0}")]
    Subscribe(#[from] SubscribeError),
    /// A receiver did not get ready.
    #[error("a receiver did not get ready: {0}")]
    NotReady(#[source] ReceiveError),
}

/// A dispatcher was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It has to be prepared first.
    #[error("the dispatcher is not prepared")]
    NotPrepared,
    /// A receiver's processing could not be opened.
    #[error("processing could not be opened: {0}")]
    Gate(#[source] ReceiveError),
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without text".to_owned(),
    }
}
