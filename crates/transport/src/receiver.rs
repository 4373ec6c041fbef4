//! `Receiver`: a subscription's messages, its readiness and its three gates.
//!
//! Invariant: messages are taken once; the gates work before, during and after that. Buses provide the parts
//! ([`ReceiverControl`] and a function that subscribes), so mapping the messages keeps everything else.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::error::{AlreadySubscribed, ReceiveError, SubscribeError};
use crate::exchange::Exchange;
use crate::readiness::Readiness;

type Subscribe<M> = Box<dyn FnOnce() -> Result<Messages<M>, SubscribeError> + Send>;

/// One subscription of a bus.
pub struct Receiver<M> {
    subscribe: Option<Subscribe<M>>,
    control: Arc<dyn ReceiverControl>,
}

/// The gates and the readiness of a receiver, as its bus provides them. Every method is prompt and idempotent.
pub trait ReceiverControl: Send + Sync + 'static {
    /// See [`Receiver::ready`].
    fn ready(&self) -> Readiness;
    /// See [`Receiver::open_processing`].
    fn open_processing(&self) -> Result<(), ReceiveError>;
    /// See [`Receiver::close_processing`].
    fn close_processing(&self) -> Result<(), ReceiveError>;
    /// See [`Receiver::suspend_durable_intake`].
    fn suspend_durable_intake(&self) -> Result<(), ReceiveError>;
}

impl<M: 'static> Receiver<M> {
    /// A receiver that subscribes with `subscribe` and is controlled by `control`.
    pub fn from_parts(
        control: Arc<dyn ReceiverControl>,
        subscribe: impl FnOnce() -> Result<Messages<M>, SubscribeError> + Send + 'static,
    ) -> Self {
        Self { subscribe: Some(Box::new(subscribe)), control }
    }

    /// Subscribes and gives the messages; to be called once, and before readiness is awaited.
    ///
    /// # Errors
    /// [`SubscribeError::AlreadySubscribed`] at the second call; what the bus refuses otherwise.
    pub fn messages(&mut self) -> Result<Messages<M>, SubscribeError> {
        let subscribe = self.subscribe.take().ok_or(AlreadySubscribed)?;
        subscribe()
    }

    /// Completes when nothing that is sent from then on can be missed. The same answer however often it is asked.
    ///
    /// # Errors
    /// [`ReceiveError`] if the subscription fails before.
    pub fn ready(&self) -> Readiness {
        self.control.ready()
    }

    /// Opens processing: from here on the receiver counts for local deliveries. Without effect once closed.
    ///
    /// # Errors
    /// [`ReceiveError`] if the transport fails.
    pub fn open_processing(&self) -> Result<(), ReceiveError> {
        self.control.open_processing()
    }

    /// Closes processing for ever, also before it was opened; local deliveries not yet confirmed are rejected.
    ///
    /// # Errors
    /// [`ReceiveError`] if the transport fails.
    pub fn close_processing(&self) -> Result<(), ReceiveError> {
        self.control.close_processing()
    }

    /// Stops a durable transport from fetching more, for ever; what it fetched is still delivered. Other transports do nothing.
    ///
    /// # Errors
    /// [`ReceiveError`] if the transport fails.
    pub fn suspend_durable_intake(&self) -> Result<(), ReceiveError> {
        self.control.suspend_durable_intake()
    }

    /// The gates alone, to be kept where the messages are not.
    #[must_use]
    pub fn control(&self) -> Arc<dyn ReceiverControl> {
        Arc::clone(&self.control)
    }

    /// The same receiver with other messages; readiness and gates stay those of this one.
    #[must_use]
    pub fn map_messages<N: 'static>(
        self,
        map: impl FnOnce(Messages<M>) -> Messages<N> + Send + 'static,
    ) -> Receiver<N> {
        let subscribe = self.subscribe;
        Receiver {
            control: self.control,
            subscribe: subscribe.map(|subscribe| -> Subscribe<N> { Box::new(|| subscribe().map(map)) }),
        }
    }
}

impl<M> fmt::Debug for Receiver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("subscribed", &self.subscribe.is_none()).finish_non_exhaustive()
    }
}

/// The messages of one subscription; dropping them ends it.
#[must_use = "dropping the messages ends the subscription"]
pub struct Messages<M>(Pin<Box<dyn Stream<Item = Result<Exchange<M>, ReceiveError>> + Send>>);

impl<M> Messages<M> {
    /// The messages that this stream yields.
    pub fn new(stream: impl Stream<Item = Result<Exchange<M>, ReceiveError>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }
}

impl<M> Stream for Messages<M> {
    type Item = Result<Exchange<M>, ReceiveError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<M> fmt::Debug for Messages<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Messages")
    }
}
