//! What the tests of the in-memory bus share.

use std::time::Duration;

use futures_util::StreamExt;
use wow_message::{AggregateId, EventStream, NamedAggregate, Version};
use wow_transport::{Exchange, MemoryBus, MessageBus, Messages, Ownership, Receiver, Subscription};

pub(crate) fn account() -> NamedAggregate {
    NamedAggregate::new("bank", "account")
}

pub(crate) fn event(n: u32) -> EventStream {
    event_of(account(), n)
}

pub(crate) fn event_of(aggregate: NamedAggregate, n: u32) -> EventStream {
    EventStream::builder(AggregateId::new(aggregate, "1"), Version::INITIAL)
        .event("e", n)
        .build()
        .expect("an event")
}

pub(crate) fn number(exchange: &Exchange<EventStream>) -> u32 {
    *exchange.message().events()[0].body_as::<u32>().expect("a number")
}

/// A receiver of accounts that is subscribed, and open if a runtime owns it.
pub(crate) fn subscribe(
    bus: &MemoryBus<EventStream>,
    ownership: Ownership,
) -> (Receiver<EventStream>, Messages<EventStream>) {
    let mut receiver = bus.receiver(Subscription::to([account()]).owned_by(ownership)).expect("a receiver");
    let messages = receiver.messages().expect("first subscriber");
    receiver.open_processing().expect("opens");
    (receiver, messages)
}

pub(crate) async fn next(messages: &mut Messages<EventStream>) -> Exchange<EventStream> {
    in_time(messages.next()).await.expect("a message").expect("no failure")
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("nothing hangs")
}
