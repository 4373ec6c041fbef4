//! `Budget`: how many bytes of messages a receiver may have admitted and unfinished, and who says what one weighs.
//!
//! A dispatcher knows no encoding, and what a decoded message takes in memory only its program knows: so it is told, by a function
//! over the exchange, which has the encoded size where the transport knows it. Invariant: a message that is heavier than the whole
//! budget counts as the whole budget. It is handled, alone: one message of a stranger neither ends a dispatcher nor is left lying.
//! Counting is the executor's.

use std::fmt;
use std::sync::Arc;

use keyed_executor::Weigh;
use wow_message::AggregateKey;
use wow_transport::Exchange;

use crate::admission::Admitted;
use crate::kind::DispatchKind;

/// Says how many bytes a message weighs, its aggregate's id included.
pub(crate) type Weigher<M> = Arc<dyn Fn(&Exchange<M>) -> usize + Send + Sync>;

/// A bound with its weigher.
pub(crate) struct Budget<M> {
    max_bytes: usize,
    weigher: Weigher<M>,
}

impl<M> Budget<M> {
    pub(crate) fn new(max_bytes: usize, weigher: Weigher<M>) -> Self {
        Self { max_bytes: max_bytes.max(1), weigher }
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}

impl<M> Clone for Budget<M> {
    fn clone(&self) -> Self {
        Self { max_bytes: self.max_bytes, weigher: Arc::clone(&self.weigher) }
    }
}

impl<M> fmt::Debug for Budget<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

/// Weighs admitted messages for the executor, if there is a budget.
pub(crate) struct Scale<K: DispatchKind>(pub(crate) Option<Budget<K::Message>>);

impl<K: DispatchKind> Weigh<AggregateKey, Admitted<K>> for Scale<K> {
    /// Part of what the message weighs: an id that is too long is refused where it is sent, and ends no dispatcher.
    fn key_bytes(&self, _: &AggregateKey) -> usize {
        0
    }

    fn message_bytes(&self, message: &Admitted<K>) -> usize {
        let weigh = |budget: &Budget<_>| (budget.weigher)(message.exchange()).min(budget.max_bytes);
        self.0.as_ref().map_or(0, weigh)
    }

    fn weighs(&self) -> bool {
        self.0.is_some()
    }
}
