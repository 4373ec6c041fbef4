//! The suite every bus runs, feature `conformance`: what the crate's page promises, as checks against any [`MessageBus`].
//!
//! Each check takes a fresh bus and panics with the broken promise. They await only what the contract says will happen, so
//! run them under a time limit: a bus that forgets a message hangs. Aggregate types are named afresh by each check, so that
//! checks can share a broker.
//!
//! ```
//! use wow_message::Command;
//! use wow_transport::{Capacity, MemoryBus, conformance};
//!
//! let suite = conformance::Suite::new(
//!     || MemoryBus::<Command>::new(Capacity::Bounded(4)),
//!     |aggregate_id| Command::builder(aggregate_id, ()).build(),
//! );
//! # let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! tokio.block_on(suite.run());
//! ```

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use wow_message::{AggregateId, Message, MessageId, NamedAggregate, TopicKind};

use crate::bus::MessageBus;
use crate::error::SubscribeError;
use crate::exchange::{Exchange, Hold};
use crate::receiver::{Messages, Receiver};
use crate::subscription::{Ownership, Subscription};

/// The checks for one kind of bus.
#[derive(Debug)]
pub struct Suite<Make, Sample> {
    make: Make,
    sample: Sample,
}

impl<M, B, Make, Sample> Suite<Make, Sample>
where
    M: Message + Debug,
    B: MessageBus<M>,
    Make: Fn() -> B,
    Sample: Fn(AggregateId) -> M,
{
    /// Checks the buses that `make` makes with the messages that `sample` makes.
    pub fn new(make: Make, sample: Sample) -> Self {
        Self { make, sample }
    }

    /// Every check, one after the other.
    ///
    /// # Panics
    /// If the bus breaks a promise; the message says which.
    pub async fn run(&self) {
        self.a_ready_receiver_misses_nothing_in_send_order().await;
        self.a_receiver_gets_only_its_aggregates().await;
        self.received_messages_are_read_only().await;
        self.messages_are_taken_once().await;
        self.readiness_can_be_awaited_again().await;
        self.gates_are_idempotent_and_closing_is_final().await;
        self.an_acknowledgement_is_given_at_most_once().await;
        match M::KIND {
            TopicKind::Command => self.commands_have_one_consumer().await,
            TopicKind::EventStream | TopicKind::State => self.every_group_gets_every_message().await,
        }
        self.messages_wait_until_they_are_asked_for().await;
        self.a_hold_ends_when_the_message_is_taken_at_the_latest().await;
        self.a_closed_bus_ends_its_receivers().await;
    }

    /// What is sent after readiness arrives, once, in the order of one sender.
    pub async fn a_ready_receiver_misses_nothing_in_send_order(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_receiver, mut messages) = subscribed(&bus, &aggregate, "order").await;
        let sent = self.alternate(&bus, &mut messages, &aggregate, 100).await;
        assert!(sent.0 == sent.1, "messages of one sender arrive once and in order");
    }

    /// Messages of other aggregate types stay away.
    pub async fn a_receiver_gets_only_its_aggregates(&self) {
        let (bus, ours, others) = ((self.make)(), fresh_aggregate(), fresh_aggregate());
        let (_receiver, mut messages) = subscribed(&bus, &ours, "only").await;
        self.send(&bus, &others).await;
        let expected = self.send(&bus, &ours).await;
        let exchange = next(&mut messages).await.expect("the message of our aggregate");
        assert!(exchange.message().id() == expected, "only messages of subscribed aggregates arrive");
    }

    /// Nobody can write the header of a received message.
    pub async fn received_messages_are_read_only(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_receiver, mut messages) = subscribed(&bus, &aggregate, "read-only").await;
        self.send(&bus, &aggregate).await;
        let exchange = next(&mut messages).await.expect("the message");
        assert!(exchange.message().header().is_read_only(), "a received message is read-only");
    }

    /// The second subscriber of a receiver gets an error.
    pub async fn messages_are_taken_once(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (mut receiver, _messages) = subscribed(&bus, &aggregate, "once").await;
        let second = receiver.messages();
        assert!(
            matches!(second, Err(SubscribeError::AlreadySubscribed(_))),
            "a receiver's messages have one subscriber"
        );
    }

    /// Readiness answers the same, however often and late it is asked.
    pub async fn readiness_can_be_awaited_again(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (receiver, messages) = subscribed(&bus, &aggregate, "ready").await;
        let kept = receiver.ready();
        for _ in 0..3 {
            assert!(receiver.ready().await.is_ok(), "readiness is replayed");
        }
        drop(messages);
        assert!(kept.await.is_ok(), "readiness that was given is not taken back");
    }

    /// Opening, closing and suspending twice, and in any order, is no error.
    pub async fn gates_are_idempotent_and_closing_is_final(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (receiver, _messages) = subscribed(&bus, &aggregate, "gates").await;
        for _ in 0..2 {
            assert!(receiver.open_processing().is_ok(), "opening is idempotent");
        }
        for _ in 0..2 {
            assert!(receiver.suspend_durable_intake().is_ok(), "suspending is idempotent");
        }
        for _ in 0..2 {
            assert!(receiver.close_processing().is_ok(), "closing is idempotent");
        }
        assert!(receiver.open_processing().is_ok(), "opening after closing does nothing");

        let early = bus.receiver(subscription(&fresh_aggregate(), "gates")).expect("a receiver");
        assert!(early.close_processing().is_ok(), "closing before subscribing is allowed");
        assert!(early.open_processing().is_ok(), "and final");
    }

    /// Acknowledging again does nothing, and the next message comes.
    pub async fn an_acknowledgement_is_given_at_most_once(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_receiver, mut messages) = subscribed(&bus, &aggregate, "ack").await;
        self.send(&bus, &aggregate).await;
        let mut exchange = next(&mut messages).await.expect("the message");
        exchange.acknowledge();
        exchange.acknowledge();
        let second = self.send(&bus, &aggregate).await;
        assert!(next(&mut messages).await.expect("the second").message().id() == second);
    }

    /// A second consumer of an aggregate's commands is refused, until the first one left.
    pub async fn commands_have_one_consumer(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_first, messages) = subscribed(&bus, &aggregate, "one").await;
        let mut second = bus.receiver(subscription(&aggregate, "other")).expect("a receiver");
        assert!(second.messages().is_err(), "one consuming chain owns an aggregate's commands");
        drop(messages);
        let mut third = bus.receiver(subscription(&aggregate, "other")).expect("a receiver");
        assert!(third.messages().is_ok(), "an aggregate can be taken over");
    }

    /// Receivers of different groups each get everything, in the same order.
    pub async fn every_group_gets_every_message(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_a, mut of_a) = subscribed(&bus, &aggregate, "a").await;
        let (_b, mut of_b) = subscribed(&bus, &aggregate, "b").await;
        for _ in 0..50 {
            let sent = self.send(&bus, &aggregate).await;
            for messages in [&mut of_a, &mut of_b] {
                let exchange = next(messages).await.expect("every group gets the message");
                assert!(exchange.message().id() == sent, "every group gets every message in order");
            }
        }
    }

    /// A receiver that is ready but not open keeps what arrives.
    pub async fn messages_wait_until_they_are_asked_for(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let mut receiver = bus.receiver(subscription(&aggregate, "early")).expect("a receiver");
        let mut messages = receiver.messages().expect("first subscriber");
        receiver.ready().await.expect("ready");
        let early = self.send(&bus, &aggregate).await;
        receiver.open_processing().expect("opens");
        let exchange = next(&mut messages).await.expect("the early message");
        assert!(exchange.message().id() == early, "what arrives before processing opens is kept");
    }

    /// A hold does not outlive the exchange of its message.
    pub async fn a_hold_ends_when_the_message_is_taken_at_the_latest(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_receiver, mut messages) = subscribed(&bus, &aggregate, "hold").await;
        let kept = Arc::new(());
        let message = (self.sample)(AggregateId::new(aggregate, "1"));
        bus.send_held(message, Hold::new(Arc::clone(&kept))).await.expect("an open bus takes the message");
        drop(next(&mut messages).await.expect("the message"));
        assert!(Arc::strong_count(&kept) == 1, "a hold ends with the exchange at the latest");
    }

    /// Closing the bus ends the streams after what they hold.
    pub async fn a_closed_bus_ends_its_receivers(&self) {
        let (bus, aggregate) = ((self.make)(), fresh_aggregate());
        let (_receiver, mut messages) = subscribed(&bus, &aggregate, "close").await;
        let last = self.send(&bus, &aggregate).await;
        bus.close().await.expect("closes");
        let exchange = next(&mut messages).await.expect("what was sent before");
        assert!(exchange.message().id() == last, "what was sent before the close is delivered");
        assert!(next(&mut messages).await.is_none(), "then the stream ends");
    }

    /// Sends and receives in turn, so that any bound of the bus is large enough.
    async fn alternate(
        &self,
        bus: &B,
        messages: &mut Messages<M>,
        aggregate: &NamedAggregate,
        n: usize,
    ) -> (Vec<MessageId>, Vec<MessageId>) {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for round in 0..n {
            sent.push(self.send(bus, aggregate).await);
            // Two are under way from the second round on: order is more than one message at a time.
            if round > 0 {
                received.push(next(messages).await.expect("the bus is open").message().id());
            }
        }
        received.push(next(messages).await.expect("the bus is open").message().id());
        (sent, received)
    }

    async fn send(&self, bus: &B, aggregate: &NamedAggregate) -> MessageId {
        let message = (self.sample)(AggregateId::new(*aggregate, "1"));
        let id = message.id();
        bus.send(message).await.expect("an open bus takes the message");
        id
    }
}

async fn subscribed<M: Message>(
    bus: &impl MessageBus<M>,
    aggregate: &NamedAggregate,
    group: &'static str,
) -> (Receiver<M>, Messages<M>) {
    let mut receiver = bus.receiver(subscription(aggregate, group)).expect("a receiver");
    let messages = receiver.messages().expect("the first subscriber");
    receiver.ready().await.expect("the receiver gets ready");
    receiver.open_processing().expect("processing opens");
    (receiver, messages)
}

fn subscription(aggregate: &NamedAggregate, group: &'static str) -> Subscription {
    let subscription = Subscription::to([*aggregate]).owned_by(Ownership::Runtime);
    subscription.group(group).expect("the group has a name")
}

fn fresh_aggregate() -> NamedAggregate {
    NamedAggregate::new("conformance", format!("sample-{}", MessageId::next()))
}

async fn next<M>(messages: &mut Messages<M>) -> Option<Exchange<M>> {
    let received = poll_fn(|cx| Pin::new(&mut *messages).poll_next(cx)).await;
    received.map(|exchange| exchange.expect("the receiver does not fail"))
}
