//! `Exchange`: a received message with its ticket, its acknowledgement and its hold, each of which is used at most once.
//!
//! Invariant: a ticket ends confirmed or rejected, exactly once; dropping it rejects. An acknowledgement that is not used is
//! dropped unused, which leaves the message to the transport. A hold ends with the exchange at the latest.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A message on its way through a dispatcher.
#[derive(Debug)]
pub struct Exchange<M> {
    message: M,
    ticket: Option<Ticket>,
    acknowledgement: Option<Acknowledgement>,
    hold: Option<Hold>,
    encoded_bytes: Option<NonZeroUsize>,
}

impl<M> Exchange<M> {
    /// A message that needs no receipt and no acknowledgement.
    pub fn new(message: M) -> Self {
        Self { message, ticket: None, acknowledgement: None, hold: None, encoded_bytes: None }
    }

    /// With a ticket, which the receiver confirms or rejects.
    #[must_use]
    pub fn with_ticket(mut self, ticket: Ticket) -> Self {
        self.ticket = Some(ticket);
        self
    }

    /// With an acknowledgement, which tells the transport that the message was handled.
    #[must_use]
    pub fn with_acknowledgement(mut self, acknowledgement: Acknowledgement) -> Self {
        self.acknowledgement = Some(acknowledgement);
        self
    }

    /// With a hold, if there is one, which the receiver releases once it answers for the message itself.
    #[must_use]
    pub fn with_hold(mut self, hold: Option<Hold>) -> Self {
        self.hold = hold;
        self
    }

    /// With the size that the message had when it came in, from a transport that decoded it.
    #[must_use]
    pub fn with_encoded_bytes(mut self, bytes: usize) -> Self {
        self.encoded_bytes = NonZeroUsize::new(bytes);
        self
    }

    /// How many bytes the message had when it came in; None where nothing was decoded, as by the in-memory bus.
    pub fn encoded_bytes(&self) -> Option<usize> {
        self.encoded_bytes.map(NonZeroUsize::get)
    }

    /// Takes the hold, if there is one that was not taken yet; the receiver now answers for the message itself.
    pub fn take_hold(&mut self) -> Option<Hold> {
        self.hold.take()
    }

    /// The message.
    pub fn message(&self) -> &M {
        &self.message
    }

    /// Takes the ticket, if there is one that was not taken yet; the caller decides it or drops it, which rejects.
    pub fn take_ticket(&mut self) -> Option<Ticket> {
        self.ticket.take()
    }

    /// Tells the transport that the message need not come again; only the first call does something.
    pub fn acknowledge(&mut self) {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            acknowledgement.acknowledge();
        }
    }

    /// The message alone; a ticket not taken is rejected, an acknowledgement not given is not given.
    pub fn into_message(self) -> M {
        self.message
    }
}

/// What a sender keeps up for as long as its message is on its way inside this process; it ends when the last copy is dropped.
///
/// ```
/// use std::sync::Arc;
/// use wow_transport::Hold;
///
/// let kept_up = Arc::new("an activity of the sender's runtime");
/// let hold = Hold::new(Arc::clone(&kept_up));
/// assert_eq!(Arc::strong_count(&kept_up), 2);
/// drop(hold);
/// assert_eq!(Arc::strong_count(&kept_up), 1);
/// ```
#[derive(Clone)]
pub struct Hold {
    _kept: Arc<dyn Any + Send + Sync>,
}

impl Hold {
    /// Keeps `kept` until the last copy of the hold is dropped.
    pub fn new(kept: impl Any + Send + Sync) -> Self {
        Self { _kept: Arc::new(kept) }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

/// What a receiver answers to a local delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It took responsibility for the message.
    Confirmed,
    /// It did not.
    Rejected,
}

/// The right and duty to answer a local delivery for one receiver. Dropping it rejects.
#[must_use = "dropping a ticket rejects the delivery"]
pub struct Ticket(Option<Box<dyn FnOnce(Receipt) + Send>>);

impl Ticket {
    /// A ticket whose answer goes to `decide`, which is called exactly once.
    pub fn new(decide: impl FnOnce(Receipt) + Send + 'static) -> Self {
        Self(Some(Box::new(decide)))
    }

    /// Takes responsibility for the message.
    pub fn confirm(mut self) {
        self.decide(Receipt::Confirmed);
    }

    /// Declines the message.
    pub fn reject(mut self) {
        self.decide(Receipt::Rejected);
    }

    fn decide(&mut self, receipt: Receipt) {
        if let Some(decide) = self.0.take() {
            decide(receipt);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.decide(Receipt::Rejected);
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket")
    }
}

/// What an acknowledgement does at the transport. Dropping it leaves the message unacknowledged.
pub struct Acknowledgement(Box<dyn FnOnce() + Send>);

impl Acknowledgement {
    /// An acknowledgement that runs `acknowledge`, which must neither block nor panic.
    pub fn new(acknowledge: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(acknowledge))
    }

    fn acknowledge(self) {
        (self.0)();
    }
}

impl fmt::Debug for Acknowledgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acknowledgement")
    }
}
