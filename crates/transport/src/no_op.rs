//! `NoOpBus`: takes everything, delivers nothing; for services that have no use for one of the buses.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use wow_message::{Answer, Message};

use crate::bus::{MessageBus, Sending};
use crate::error::{CloseError, ReceiveError, SubscribeError};
use crate::exchange::Exchange;
use crate::readiness::Readiness;
use crate::receiver::{Messages, Receiver, ReceiverControl};
use crate::subscription::Subscription;

/// A bus whose sends succeed and whose receivers are empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOpBus;

impl<M: Message> MessageBus<M> for NoOpBus {
    fn send(&self, _message: M) -> Sending<M> {
        Answer::ready(Ok(()))
    }

    fn receiver(&self, _subscription: Subscription) -> Result<Receiver<M>, SubscribeError> {
        Ok(Receiver::from_parts(Arc::new(NoControl), || Ok(Messages::new(Empty(PhantomData)))))
    }

    fn close(&self) -> Answer<Result<(), CloseError>> {
        Answer::ready(Ok(()))
    }
}

struct Empty<M>(PhantomData<fn() -> M>);

impl<M> Stream for Empty<M> {
    type Item = Result<Exchange<M>, ReceiveError>;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}

struct NoControl;

impl ReceiverControl for NoControl {
    fn ready(&self) -> Readiness {
        Readiness::given()
    }

    fn open_processing(&self) -> Result<(), ReceiveError> {
        Ok(())
    }

    fn close_processing(&self) -> Result<(), ReceiveError> {
        Ok(())
    }

    fn suspend_durable_intake(&self) -> Result<(), ReceiveError> {
        Ok(())
    }
}
