//! `DispatchKind`: all that may differ between dispatchers.
//!
//! The engine owns subscription, admission, ordering and the life cycle; a kind says which aggregates, by which key, and what
//! handling is. Invariant: `handle` settles its message, acknowledgement included, and does not panic for what an
//! application does wrong; a panic that leaves it ends the dispatcher.

use std::future::Future;
use std::sync::Arc;

use wow_message::{AggregateKey, Message, Name, NamedAggregate};
use wow_runtime::{ComponentError, Context};
use wow_transport::Exchange;

/// What one kind of dispatcher does with its messages.
pub trait DispatchKind: Send + Sync + 'static {
    /// What it dispatches.
    type Message: Message;
    /// What is taken along with a message when it is admitted, such as the sender that waits for it. Dropped with the
    /// message if that is never handled.
    type Attached: Send + 'static;

    /// The aggregate types whose messages it wants.
    fn aggregates(&self) -> &[NamedAggregate];

    /// The key a message is ordered by: by default its aggregate without the tenant.
    ///
    /// # Errors
    /// An error fails the dispatcher, and with it the runtime; the message stays unacknowledged.
    fn key(&self, message: &Self::Message) -> Result<AggregateKey, ComponentError> {
        Ok(message.aggregate_id().key().clone())
    }

    /// Looks at a message before it is admitted: by default every message is for this dispatcher.
    fn screen(&self, message: &Self::Message) -> Screening {
        let _ = message;
        Screening::Admit
    }

    /// How the handling of a message is called where it is told that it holds its thread: by default by the kind of message.
    /// Asked only of a dispatcher that has [`Notes`](crate::Notes).
    fn label(&self, message: &Self::Message) -> Name {
        let _ = message;
        Name::from_static(Self::Message::KIND.as_str())
    }

    /// Told, when the dispatcher is prepared, in which runtime it lives.
    fn prepared(&self, context: &Context) {
        let _ = context;
    }

    /// What goes along with the message from its admission on.
    fn attach(&self, message: &Self::Message) -> Self::Attached;

    /// Handles one message to its end. Messages of one key are handled one after the other.
    fn handle(
        self: Arc<Self>,
        exchange: Exchange<Self::Message>,
        attached: Self::Attached,
    ) -> impl Future<Output = Handled> + Send + 'static;

    /// Told when nothing more will be admitted; may be told again.
    fn ended(&self) {}
}

/// Whether a message is for this dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screening {
    /// It is admitted and handled.
    Admit,
    /// It is acknowledged and dropped, and a local delivery of it is rejected.
    Skip,
}

/// How the handling of a message ended, for the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the ledger counts it"]
pub enum Handled {
    /// With success.
    Succeeded,
    /// With a failure that the kind has dealt with.
    Failed,
}
