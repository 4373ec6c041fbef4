//! Local deliveries of the in-memory bus: when they are possible, and when they count as admitted (IM-4 to IM-7).

use crate::support::{account, event, in_time, next, number, subscribe};
use wow_message::{EventStream, Message, NamedAggregate};
use wow_transport::{
    Admission, Capacity, HandOff, LocalBus, MemoryBus, MessageBus, Ownership, Receipt, Subscription, Ticket,
};

fn bus() -> MemoryBus<EventStream> {
    MemoryBus::new(Capacity::Unbounded)
}

fn accepted(hand_off: HandOff<EventStream>) -> Admission {
    match hand_off {
        HandOff::Accepted(admission) => admission,
        HandOff::Refused(message) => panic!("refused {message:?}"),
    }
}

fn refused(hand_off: HandOff<EventStream>) -> EventStream {
    match hand_off {
        HandOff::Refused(message) => message,
        HandOff::Accepted(admission) => panic!("accepted: {admission:?}"),
    }
}

#[tokio::test]
async fn a_delivery_is_admitted_when_every_target_confirmed() {
    let bus = bus();
    let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
    let (_b, mut of_b) = subscribe(&bus, Ownership::Runtime);
    let admission = accepted(bus.hand_off(event(1)));
    next(&mut of_a).await.take_ticket().expect("a ticket").confirm();
    assert_eq!(admission.decided(), None, "one of two confirmed");
    next(&mut of_b).await.take_ticket().expect("a ticket").confirm();
    assert!(in_time(admission).await);
}

#[tokio::test]
async fn one_rejection_decides_at_once() {
    let bus = bus();
    let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
    let (_b, mut of_b) = subscribe(&bus, Ownership::Runtime);
    let admission = accepted(bus.hand_off(event(1)));
    next(&mut of_a).await.take_ticket().expect("a ticket").reject();
    assert_eq!(admission.decided(), Some(false));
    next(&mut of_b).await.take_ticket().expect("a ticket").confirm();
    assert!(!in_time(admission).await, "a later confirmation changes nothing");
}

#[tokio::test]
async fn dropping_an_exchange_with_its_ticket_rejects() {
    let bus = bus();
    let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
    let admission = accepted(bus.hand_off(event(1)));
    drop(next(&mut of_a).await);
    assert!(!in_time(admission).await);
}

#[tokio::test]
async fn a_waiting_sender_is_woken_by_the_decision() {
    let bus = bus();
    let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
    let admission = tokio::spawn(accepted(bus.hand_off(event(1))));
    next(&mut of_a).await.take_ticket().expect("a ticket").confirm();
    assert!(in_time(admission).await.expect("no panic"));
}

#[tokio::test]
async fn an_observer_gets_the_message_and_has_no_say() {
    let bus = bus();
    let (_observer, mut observed) = subscribe(&bus, Ownership::Observer);
    assert_eq!(number_of(&refused(bus.hand_off(event(1)))), 1, "observers alone make no local delivery");
    let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
    let admission = accepted(bus.hand_off(event(2)));
    let mut seen = next(&mut observed).await;
    assert_eq!(number(&seen), 2);
    assert!(seen.take_ticket().is_none());
    next(&mut of_a).await.take_ticket().expect("a ticket").confirm();
    assert!(in_time(admission).await);
}

#[tokio::test]
async fn a_target_that_is_not_open_refuses_local_delivery() {
    let bus = bus();
    let (_open, _messages) = subscribe(&bus, Ownership::Runtime);
    let subscription = Subscription::to([account()]).owned_by(Ownership::Runtime);
    let mut late = bus.receiver(subscription).expect("a receiver");
    refused(bus.hand_off(event(1)));
    let _messages = late.messages().expect("first subscriber");
    refused(bus.hand_off(event(2)));
    late.open_processing().expect("opens");
    let _admission = accepted(bus.hand_off(event(3)));
    late.close_processing().expect("closes");
    refused(bus.hand_off(event(4)));
    late.open_processing().expect("does nothing");
    refused(bus.hand_off(event(5)));
}

#[tokio::test]
async fn closing_before_opening_is_terminal() {
    let bus = bus();
    let subscription = Subscription::to([account()]).owned_by(Ownership::Runtime);
    let mut receiver = bus.receiver(subscription).expect("a receiver");
    receiver.close_processing().expect("closes");
    let _messages = receiver.messages().expect("first subscriber");
    receiver.open_processing().expect("does nothing");
    assert_eq!(bus.subscriber_count(account()), 0);
    refused(bus.hand_off(event(1)));
}

#[tokio::test]
async fn a_refused_message_is_still_writable_and_a_read_only_one_is_refused() {
    let bus = bus();
    let message = refused(bus.hand_off(event(1)));
    assert!(!message.header().is_read_only());
    let full = MemoryBus::new(Capacity::Bounded(1));
    let (_a, _messages) = subscribe(&full, Ownership::Runtime);
    full.send(event(0)).await.expect("room");
    assert!(!refused(full.hand_off(event(1))).header().is_read_only(), "no room: refused, and untouched");

    let (_a, _messages) = subscribe(&bus, Ownership::Runtime);
    let mut emitted = event(2);
    emitted.make_read_only();
    refused(bus.hand_off(emitted));
}

#[tokio::test]
async fn every_change_of_the_route_rejects_what_is_not_yet_confirmed() {
    type Change = fn(&MemoryBus<EventStream>, &wow_transport::Receiver<EventStream>);
    let changes: [(&str, Change); 3] = [
        ("closing a target", |_, receiver| receiver.close_processing().expect("closes")),
        ("adding a target", |bus, _| {
            bus.receiver(Subscription::to([account()]).owned_by(Ownership::Runtime)).expect("a receiver");
        }),
        ("closing the bus", |bus, _| {
            bus.close().into_ready().expect("at once").expect("closes");
        }),
    ];
    for (what, change) in changes {
        let bus = bus();
        let (receiver, mut messages) = subscribe(&bus, Ownership::Runtime);
        let pending = accepted(bus.hand_off(event(1)));
        change(&bus, &receiver);
        assert_eq!(pending.decided(), Some(false), "{what}");
        next(&mut messages).await.take_ticket().expect("a ticket").confirm();
        assert_eq!(pending.decided(), Some(false), "{what}: a late confirmation changes nothing");
    }
}

#[tokio::test]
async fn losing_a_target_rejects_and_a_confirmed_delivery_cannot_be_revoked() {
    let bus = bus();
    let (_receiver, mut messages) = subscribe(&bus, Ownership::Runtime);
    let confirmed = accepted(bus.hand_off(event(1)));
    let pending = accepted(bus.hand_off(event(2)));
    next(&mut messages).await.take_ticket().expect("a ticket").confirm();
    drop(messages);
    assert!(in_time(confirmed).await);
    assert!(!in_time(pending).await);
}

#[tokio::test]
async fn subscribers_are_those_that_are_open() {
    let bus = bus();
    let accounts = account();
    assert_eq!(bus.subscriber_count(accounts), 0);
    let (_observer, _o) = subscribe(&bus, Ownership::Observer);
    assert_eq!(bus.subscriber_count(accounts), 1);
    let mut target =
        bus.receiver(Subscription::to([accounts]).owned_by(Ownership::Runtime)).expect("a receiver");
    let messages = target.messages().expect("first subscriber");
    assert_eq!(bus.subscriber_count(accounts), 1, "subscribed but not open");
    target.open_processing().expect("opens");
    assert_eq!(bus.subscriber_count(accounts), 2);
    assert_eq!(bus.subscriber_count(NamedAggregate::new("bank", "customer")), 0);
    drop(messages);
    assert_eq!(bus.subscriber_count(accounts), 1);
}

#[test]
fn a_ticket_is_answered_exactly_once() {
    let answers = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let ticket = || {
        let answers = answers.clone();
        Ticket::new(move |receipt| answers.lock().expect("not poisoned").push(receipt))
    };
    ticket().confirm();
    ticket().reject();
    drop(ticket());
    assert_eq!(
        *answers.lock().expect("not poisoned"),
        [Receipt::Confirmed, Receipt::Rejected, Receipt::Rejected]
    );
}

fn number_of(message: &EventStream) -> u32 {
    *message.events()[0].body_as::<u32>().expect("a number")
}
