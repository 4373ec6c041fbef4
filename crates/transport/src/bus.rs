//! `MessageBus`, what every transport offers, and `LocalBus`, what a transport inside this process offers on top.
//!
//! Both traits are object-safe, so a service holds its buses as `Arc<dyn ...>`. The contract is the prose of the crate's page.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use wow_message::{Answer, Message, NamedAggregate};

use crate::error::{CloseError, SendError, SubscribeError};
use crate::exchange::Hold;
use crate::receiver::Receiver;
use crate::subscription::Subscription;

/// What a send answers with. Complete already if the transport took the message at once.
pub type Sending<M> = Answer<Result<(), SendError<M>>>;

/// Sends and receives messages of one kind.
pub trait MessageBus<M: Message>: Send + Sync + 'static {
    /// Makes the message read-only and sends it; completes when the transport took it.
    ///
    /// # Errors
    /// [`SendError`] with the message, if the transport did not take it.
    ///
    /// # Cancel safety
    /// Dropping the answer before it resolved leaves open whether the message was sent; the in-memory bus did not send it.
    fn send(&self, message: M) -> Sending<M>;

    /// Sends as [`send`](MessageBus::send) does, and keeps the hold for as long as the message is on its way inside this
    /// process: until every receiver here took it and released it ([`Exchange::take_hold`](crate::Exchange::take_hold)), or dropped it. A transport that
    /// hands the message to a broker keeps the hold until the broker has it.
    ///
    /// # Errors
    /// As for [`send`](MessageBus::send); the hold has ended then.
    fn send_held(&self, message: M, hold: Hold) -> Sending<M> {
        match self.send(message).into_ready() {
            Ok(sent) => {
                drop(hold);
                Answer::ready(sent)
            }
            Err(waiting) => Answer::when(async move {
                let sent = waiting.await;
                drop(hold);
                sent
            }),
        }
    }

    /// A receiver of the messages of some aggregate types. Subscribed when its messages are taken, not yet here.
    ///
    /// # Errors
    /// [`SubscribeError`] if the transport refuses the subscription.
    fn receiver(&self, subscription: Subscription) -> Result<Receiver<M>, SubscribeError>;

    /// Ends every subscription of this bus. What the receivers hold already is still delivered.
    ///
    /// # Errors
    /// [`CloseError`] lists what failed to close; the rest is closed all the same.
    fn close(&self) -> Answer<Result<(), CloseError>>;
}

/// A bus inside this process, which can tell whether a message was admitted.
pub trait LocalBus<M: Message>: MessageBus<M> {
    /// Offers the message to the receivers of its aggregate, all or none, without waiting for room.
    ///
    /// It is refused unless a runtime-owned receiver is there, all of them are open, and the message's header is still
    /// writable. What was accepted is admitted once every one of them confirmed its ticket.
    fn hand_off(&self, message: M) -> HandOff<M>;

    /// How many receivers a message to this aggregate would reach; receivers of the runtime count once they are open.
    fn subscriber_count(&self, aggregate: NamedAggregate) -> usize;
}

/// The result of offering a message to local receivers.
#[must_use = "a refused message is in here"]
#[derive(Debug)]
pub enum HandOff<M> {
    /// No local delivery; nothing was emitted and the message comes back.
    Refused(M),
    /// The message is on its way; the admission tells what became of it.
    Accepted(Admission),
}

/// Whether every receiver of a local delivery took responsibility for its message.
///
/// Resolves to `true` when all confirmed, to `false` as soon as one rejects or the receivers change.
#[must_use = "an admission says whether the message needs another way"]
pub struct Admission(Arc<AdmissionCell>);

#[derive(Default)]
pub(crate) struct AdmissionCell {
    state: Mutex<AdmissionState>,
}

#[derive(Default)]
struct AdmissionState {
    decision: Option<bool>,
    waker: Option<Waker>,
}

impl Admission {
    pub(crate) fn pair() -> (Arc<AdmissionCell>, Self) {
        let cell = Arc::<AdmissionCell>::default();
        (Arc::clone(&cell), Self(cell))
    }

    /// The decision, if it has been made.
    #[must_use]
    pub fn decided(&self) -> Option<bool> {
        self.0.lock().decision
    }
}

impl AdmissionCell {
    /// Decides, once; a later decision changes nothing. Wakes outside of the lock.
    pub(crate) fn decide(&self, admitted: bool) {
        let waker = {
            let mut state = self.lock();
            if state.decision.is_some() {
                return;
            }
            state.decision = Some(admitted);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Future for Admission {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.0.lock();
        match state.decision {
            Some(admitted) => Poll::Ready(admitted),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Admission").field(&self.decided()).finish()
    }
}
