//! `Intake`: what a receiver yields, admitted one by one; the source of the executor's dispatch.
//!
//! The executor polls it only while its window has room, so an admitted message always has a place. Order of steps per
//! message, each of which may end it: screened, activity acquired, key computed, ticket confirmed. Invariants: a ticket is
//! confirmed only for a message that has its activity and its key; what is refused stays unacknowledged, uses no window and
//! rejects its ticket.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use futures_core::Stream;
use wow_message::{AggregateKey, Message};
use wow_runtime::Context;
use wow_transport::Exchange;

use crate::admission::Admitted;
use crate::error::{DispatchFailure, panic_text};
use crate::kind::{DispatchKind, Screening};
use crate::ledger::Counters;
use crate::source::Source;

/// So many messages may be refused in one poll before others get their turn.
const MAX_REFUSED_IN_A_ROW: usize = 64;

pub(crate) struct Intake<K: DispatchKind> {
    pub(crate) source: Arc<Source<K::Message>>,
    pub(crate) kind: Arc<K>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) context: Context,
}

impl<K: DispatchKind> Intake<K> {
    /// Admits the message, or ends it: `None` if it was refused or is not for this dispatcher.
    fn admit(&self, mut exchange: Exchange<K::Message>) -> Option<Result<Admitted<K>, DispatchFailure>> {
        if self.kind.screen(exchange.message()) == Screening::Skip {
            exchange.acknowledge();
            return None;
        }
        let Some(activity) = self.context.try_acquire() else {
            let (dispatcher, id) = (self.context.name(), exchange.message().id());
            tracing::warn!(dispatcher, %id, "admission is closed, the message stays unacknowledged");
            drop(self.kind.attach(exchange.message()));
            return None;
        };
        let key = match self.key(exchange.message()) {
            Ok(key) => key,
            Err(failure) => {
                drop(activity);
                return Some(Err(failure));
            }
        };
        if let Some(ticket) = exchange.take_ticket() {
            ticket.confirm();
        }
        // From here on the activity answers for the message, not its sender.
        drop(exchange.take_hold());
        let attached = self.kind.attach(exchange.message());
        Some(Ok(Admitted::new(key, exchange, attached, activity, Arc::clone(&self.counters))))
    }

    fn key(&self, message: &K::Message) -> Result<AggregateKey, DispatchFailure> {
        catch_unwind(AssertUnwindSafe(|| self.kind.key(message)))
            .unwrap_or_else(|panic| Err(panic_text(panic.as_ref()).into()))
            .map_err(|cause| DispatchFailure::Key { message: message.id(), cause })
    }
}

impl<K: DispatchKind> Stream for Intake<K> {
    type Item = Result<Admitted<K>, DispatchFailure>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        for _ in 0..MAX_REFUSED_IN_A_ROW {
            match ready!(self.source.poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Err(failed)) => return Poll::Ready(Some(Err(DispatchFailure::Source(failed)))),
                Some(Ok(exchange)) => {
                    if let Some(admitted) = self.admit(exchange) {
                        return Poll::Ready(Some(admitted));
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<K: DispatchKind> Drop for Intake<K> {
    fn drop(&mut self) {
        self.source.stop();
    }
}
