//! `Registration`: one receiver's place on the routes of its aggregates, with its gates.
//!
//! Invariant: it leaves every route once, when its messages are dropped or when nobody can take them any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use wow_message::Message;

use crate::error::{ReceiveError, SubscribeError};
use crate::exchange::Exchange;
use crate::memory::inbox::{Inbox, InboxStream};
use crate::memory::route::{Gate, Route};
use crate::readiness::{Readiness, ReadySignal};
use crate::receiver::{Messages, ReceiverControl};

pub(super) struct Registration<M: Message> {
    pub(super) receiver: u64,
    pub(super) routes: Vec<Arc<Route<M>>>,
    pub(super) inbox: Arc<Inbox<M>>,
    pub(super) signal: ReadySignal,
    pub(super) readiness: Readiness,
}

impl<M: Message> Registration<M> {
    /// Subscribes to every route, or to none.
    pub(super) fn connect(self: Arc<Self>) -> Result<Messages<M>, SubscribeError> {
        for route in &self.routes {
            if let Err(refused) = route.connect(self.receiver) {
                self.leave();
                return Err(refused);
            }
        }
        self.signal.settle(Ok(()));
        let stream = InboxStream::new(Arc::clone(&self.inbox));
        Ok(Messages::new(Subscribed { registration: self, stream }))
    }

    fn leave(&self) {
        self.routes.iter().for_each(|route| route.remove(self.receiver));
        self.signal.settle(Err(ReceiveError::EndedBeforeReady));
    }

    fn set_gate(&self, gate: Gate) {
        self.routes.iter().for_each(|route| route.set_gate(self.receiver, gate));
    }
}

impl<M: Message> Drop for Registration<M> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<M: Message> ReceiverControl for Registration<M> {
    fn ready(&self) -> Readiness {
        self.readiness.clone()
    }

    fn open_processing(&self) -> Result<(), ReceiveError> {
        self.set_gate(Gate::Open);
        Ok(())
    }

    fn close_processing(&self) -> Result<(), ReceiveError> {
        self.set_gate(Gate::Ended);
        Ok(())
    }

    fn suspend_durable_intake(&self) -> Result<(), ReceiveError> {
        Ok(())
    }
}

/// The messages of a subscribed receiver.
struct Subscribed<M: Message> {
    registration: Arc<Registration<M>>,
    stream: InboxStream<M>,
}

impl<M: Message> Stream for Subscribed<M> {
    type Item = Result<Exchange<M>, ReceiveError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.stream).poll_next(cx)
    }
}

impl<M: Message> Drop for Subscribed<M> {
    fn drop(&mut self) {
        // First off the routes, then the inbox: what is still queued is dropped when nothing more can arrive.
        self.registration.leave();
    }
}
