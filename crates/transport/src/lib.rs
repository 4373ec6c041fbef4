//! How messages travel: the bus contract, the in-memory bus, and the suite every bus runs.
//!
//! # The contract
//! **Sent.** [`MessageBus::send`] makes the message read-only and completes when the concrete transport took it: the in-memory
//! bus when it is in the queue of every subscriber, a broker when it confirmed. A send that fails hands the message back.
//! What one sender sends to one aggregate, one send after the other, arrives in that order.
//!
//! **Ready.** A [`Receiver`] is subscribed by taking its [`messages`](Receiver::messages), once. Its
//! [`ready`](Receiver::ready) completes when nothing sent from then on can be missed; it can be awaited any number of times,
//! also later. Processing stays closed until [`open_processing`](Receiver::open_processing); messages that arrive before wait.
//!
//! **Admitted.** An [`Exchange`] of a local delivery carries a [`Ticket`]. The dispatcher confirms it when it took
//! responsibility for the message, or rejects it; exactly one of the two happens, since a dropped ticket is rejected.
//!
//! **Acknowledged.** [`Exchange::acknowledge`] tells the transport that the message need not come again. At most once; an
//! exchange dropped without it stays unacknowledged, and a durable transport delivers it again.
//!
//! **Held.** [`MessageBus::send_held`] keeps a [`Hold`] of the sender for as long as the message is on its way inside this
//! process: a runtime that stops knows by it that a message is under way although nobody handles it yet.
//!
//! **Ended.** [`close_processing`](Receiver::close_processing) revokes the gate for ever;
//! [`suspend_durable_intake`](Receiver::suspend_durable_intake) stops a broker's receiver from fetching more, without
//! cancelling what it fetched. All gates are prompt and idempotent. Dropping the messages ends the subscription.
//!
//! Owns no thread and knows no executor: futures and streams are polled by whoever uses them.
//!
//! ```
//! use futures_util::StreamExt;
//! use wow_message::{AggregateId, Command, NamedAggregate};
//! use wow_transport::{Capacity, MemoryBus, MessageBus, Subscription};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let account = NamedAggregate::new("bank", "account");
//! let bus = MemoryBus::<Command>::new(Capacity::Bounded(1024));
//! let mut receiver = bus.receiver(Subscription::to([account]))?;
//! let mut messages = receiver.messages()?;
//! receiver.ready().await?;
//! bus.send(Command::builder(AggregateId::new(account, "4711"), "open").build()).await?;
//!
//! let mut exchange = messages.next().await.expect("the bus is open")?;
//! assert_eq!(exchange.message().body_as::<&str>(), Some(&"open"));
//! exchange.acknowledge();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap().unwrap();
//! ```
#![forbid(unsafe_code)]

mod bus;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod exchange;
mod memory;
mod no_op;
mod readiness;
mod receiver;
mod subscription;

pub use bus::{Admission, HandOff, LocalBus, MessageBus, Sending};
pub use error::{
    AlreadySubscribed, BlankGroup, CloseError, ReceiveError, SendError, SendRefusal, SubscribeError,
};
pub use exchange::{Acknowledgement, Exchange, Hold, Receipt, Ticket};
pub use memory::{Capacity, DEFAULT_CAPACITY, MemoryBus};
pub use no_op::NoOpBus;
pub use readiness::{Readiness, ReadySignal};
pub use receiver::{Messages, Receiver, ReceiverControl};
pub use subscription::{DEFAULT_GROUP, Ownership, Subscription};
