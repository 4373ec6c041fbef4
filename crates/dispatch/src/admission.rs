//! `Admitted`: a message with everything that ends with it.
//!
//! Invariant: the activity ends exactly once, after the message was settled; a message that is dropped unhandled (discarded in
//! its mailbox, or cancelled while it was handled) counts as discarded and takes what is attached with it.

use std::sync::Arc;

use wow_message::AggregateKey;
use wow_runtime::Activity;
use wow_transport::Exchange;

use crate::kind::{DispatchKind, Handled};
use crate::ledger::Counters;

/// A message on its way to its handler.
pub(crate) struct Admitted<K: DispatchKind> {
    key: AggregateKey,
    exchange: Exchange<K::Message>,
    attached: K::Attached,
    under_way: UnderWay,
}

/// Holds the runtime's activity until the message has ended one way or another.
pub(crate) struct UnderWay {
    counters: Arc<Counters>,
    outcome: Option<Handled>,
    _activity: Activity,
}

impl<K: DispatchKind> Admitted<K> {
    pub(crate) fn new(
        key: AggregateKey,
        exchange: Exchange<K::Message>,
        attached: K::Attached,
        activity: Activity,
        counters: Arc<Counters>,
    ) -> Self {
        counters.accept();
        let under_way = UnderWay { counters, outcome: None, _activity: activity };
        Self { key, exchange, attached, under_way }
    }

    pub(crate) fn key(&self) -> &AggregateKey {
        &self.key
    }

    pub(crate) fn exchange(&self) -> &Exchange<K::Message> {
        &self.exchange
    }

    pub(crate) fn owned_key(&self) -> AggregateKey {
        self.key.clone()
    }

    pub(crate) fn into_parts(self) -> (Exchange<K::Message>, K::Attached, UnderWay) {
        (self.exchange, self.attached, self.under_way)
    }
}

impl UnderWay {
    /// The message was handled.
    pub(crate) fn settle(mut self, outcome: Handled) {
        self.outcome = Some(outcome);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        match self.outcome {
            Some(outcome) => self.counters.settle(outcome),
            None if std::thread::panicking() => self.counters.settle(Handled::Failed),
            None => self.counters.discard(),
        }
    }
}
