//! Sending through the in-memory bus: order, bounds, closing, and what happens to what nobody takes (IM-1 to IM-3, IM-8, IM-9).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::support::{account, event, event_of, in_time, next, number, subscribe};
use futures_util::{FutureExt, StreamExt};
use wow_message::{EventStream, NamedAggregate};
use wow_transport::{
    Capacity, Hold, LocalBus, MemoryBus, MessageBus, Ownership, SendRefusal, SubscribeError, Subscription,
};

#[tokio::test]
async fn a_message_without_subscriber_is_sent_and_counted() {
    let bus = MemoryBus::new(Capacity::Unbounded);
    bus.send(event(1)).await.expect("taken");
    assert_eq!(bus.n_unobserved(), 1);
    let (_receiver, mut messages) = subscribe(&bus, Ownership::Observer);
    bus.send(event(2)).await.expect("taken");
    assert_eq!(number(&next(&mut messages).await), 2, "nothing is kept for later subscribers");
    assert_eq!(bus.n_unobserved(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_sender_keeps_its_order_and_nothing_is_lost() {
    const SENDERS: u32 = 8;
    const EACH: u32 = 2_000;
    for capacity in [Capacity::Unbounded, Capacity::Bounded(1), Capacity::Bounded(7), Capacity::Bounded(500)]
    {
        let bus = MemoryBus::new(capacity);
        let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
        let (_b, mut of_b) = subscribe(&bus, Ownership::Observer);
        let senders = (0..SENDERS).map(|sender| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    bus.send(event(sender * EACH + n)).await.expect("an open bus takes it");
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        let (mut seen_by_a, mut seen_by_b) = (Vec::new(), Vec::new());
        for _ in 0..SENDERS * EACH {
            seen_by_a.push(number(&next(&mut of_a).await));
            seen_by_b.push(number(&next(&mut of_b).await));
        }
        assert_eq!(seen_by_a, seen_by_b, "all receivers see one order");
        for sender in 0..SENDERS {
            let of_sender: Vec<_> = seen_by_a.iter().filter(|n| **n / EACH == sender).collect();
            assert_eq!(of_sender.len(), EACH as usize);
            assert!(of_sender.is_sorted(), "sender {sender} keeps its order with {capacity:?}");
        }
        for sender in senders {
            in_time(sender).await.expect("no sender panics");
        }
    }
}

#[tokio::test]
async fn a_bound_holds_for_everything_not_yet_handed_out() {
    for bound in [1_usize, 2, 5, 64, 300] {
        let bus = MemoryBus::new(Capacity::Bounded(bound));
        let (_receiver, mut messages) = subscribe(&bus, Ownership::Runtime);
        let mut outstanding = 0_usize;
        for round in 0..1_000 {
            while bus.send(event(0)).now_or_never().is_some() {
                outstanding += 1;
                assert!(outstanding <= bound, "{outstanding} messages wait, the bound is {bound}");
            }
            if round == 0 {
                assert_eq!(outstanding, bound, "an idle receiver offers its whole room");
            }
            next(&mut messages).await;
            outstanding -= 1;
        }
    }
}

#[tokio::test]
async fn a_sender_that_waits_goes_on_when_there_is_room() {
    let bus = MemoryBus::new(Capacity::Bounded(1));
    let (_receiver, mut messages) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(1)).await.expect("room");
    let mut waiting: Vec<_> = (2..=4).map(|n| Box::pin(bus.send(event(n)))).collect();
    for send in &mut waiting {
        assert!(send.now_or_never().is_none(), "no room");
    }
    let waiting = tokio::spawn(async move {
        for send in waiting {
            send.await.expect("the bus is open");
        }
    });
    let mut seen: Vec<_> = Vec::new();
    for _ in 0..4 {
        seen.push(number(&next(&mut messages).await));
    }
    in_time(waiting).await.expect("no panic");
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_sender_that_gives_up_passes_its_turn_on() {
    let bus = MemoryBus::new(Capacity::Bounded(1));
    let (_receiver, mut messages) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(1)).await.expect("room");
    let (first, second) = (Counted::new(), Counted::new());
    let mut impatient = Box::pin(bus.send(event(2)));
    let mut patient = Box::pin(bus.send(event(3)));
    assert!(impatient.as_mut().poll(&mut Context::from_waker(&first.waker())).is_pending());
    assert!(patient.as_mut().poll(&mut Context::from_waker(&second.waker())).is_pending());
    next(&mut messages).await;
    assert_eq!((first.count(), second.count()), (1, 0), "one place, one waker");
    drop(impatient);
    assert_eq!(second.count(), 1, "the turn is passed on");
    assert!(matches!(patient.as_mut().poll(&mut Context::from_waker(&second.waker())), Poll::Ready(Ok(()))));
    assert_eq!(number(&next(&mut messages).await), 3);
}

#[tokio::test]
async fn dropping_the_messages_frees_waiting_senders() {
    let bus = MemoryBus::new(Capacity::Bounded(1));
    let (_receiver, messages) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(1)).await.expect("room");
    let waiting = tokio::spawn(bus.send(event(2)));
    tokio::task::yield_now().await;
    drop(messages);
    in_time(waiting).await.expect("no panic").expect("sent to nobody");
}

#[tokio::test]
async fn a_full_receiver_of_one_aggregate_does_not_hold_up_another_aggregate() {
    let bus = MemoryBus::new(Capacity::Bounded(1));
    let (_receiver, _messages) = subscribe(&bus, Ownership::Runtime);
    let other = NamedAggregate::new("bank", "customer");
    let mut others = bus.receiver(Subscription::to([other])).expect("a receiver");
    let mut of_others = others.messages().expect("first subscriber");
    bus.send(event(1)).await.expect("room");
    assert!(bus.send(event(2)).now_or_never().is_none(), "accounts have no room");
    bus.send(event_of(other, 3)).now_or_never().expect("customers have").expect("taken");
    assert_eq!(number(&next(&mut of_others).await), 3);
}

#[tokio::test]
async fn a_second_consumer_of_commands_subscribes_to_nothing_at_all() {
    let bus = MemoryBus::<wow_message::Command>::new(Capacity::Unbounded);
    let customer = NamedAggregate::new("bank", "customer");
    let mut first = bus.receiver(Subscription::to([account()])).expect("a receiver");
    let _messages = first.messages().expect("first consumer");
    let mut second = bus.receiver(Subscription::to([customer, account()])).expect("a receiver");
    let refused = second.messages().expect_err("accounts are taken");
    assert!(matches!(refused, SubscribeError::AlreadyConsumed(aggregate) if aggregate == account()));
    assert!(in_time(second.ready()).await.is_err(), "it will never be ready");
    assert_eq!(bus.subscriber_count(customer), 0, "not half subscribed");
}

#[tokio::test]
async fn a_hold_lasts_until_every_receiver_released_or_dropped_the_message() {
    let bus = MemoryBus::new(Capacity::Bounded(1));
    let (_a, mut of_a) = subscribe(&bus, Ownership::Runtime);
    let (_b, mut of_b) = subscribe(&bus, Ownership::Observer);
    let kept = Arc::new(());
    let held = || Arc::strong_count(&kept) > 1;
    bus.send_held(event(1), Hold::new(kept.clone())).await.expect("room");
    assert!(held(), "nobody has taken the message");
    let mut exchange = next(&mut of_a).await;
    drop(exchange.take_hold());
    assert!(held(), "the other has not");
    drop(next(&mut of_b).await);
    assert!(!held());

    bus.send(event(2)).await.expect("room");
    let waiting = bus.send_held(event(3), Hold::new(kept.clone()));
    assert!(held(), "a send that waits holds");
    drop(waiting);
    assert!(!held());

    drop((next(&mut of_a).await, next(&mut of_b).await));
    bus.send_held(event(4), Hold::new(kept.clone())).await.expect("room");
    drop((of_a, of_b));
    assert!(!held(), "a message that is dropped with its receivers is not held");
    bus.send_held(event(5), Hold::new(kept.clone())).await.expect("taken");
    assert!(!held(), "nor is one that nobody gets");
}

#[tokio::test]
async fn a_closed_bus_can_be_used_again() {
    let bus = MemoryBus::new(Capacity::Unbounded);
    let (_old, mut of_old) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(1)).await.expect("taken");
    bus.close().await.expect("closes");
    bus.send(event(2)).await.expect("taken, by nobody");
    let (_new, mut of_new) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(3)).await.expect("taken");
    assert_eq!(number(&next(&mut of_old).await), 1);
    assert!(in_time(of_old.next()).await.is_none(), "the old receiver ended");
    assert_eq!(number(&next(&mut of_new).await), 3);
}

#[tokio::test]
async fn a_receiver_made_before_the_close_cannot_subscribe_after_it() {
    let bus = MemoryBus::<EventStream>::new(Capacity::Unbounded);
    let mut receiver = bus.receiver(Subscription::to([account()])).expect("a receiver");
    bus.close().await.expect("closes");
    assert!(matches!(receiver.messages(), Err(SubscribeError::Closed)));
}

#[tokio::test]
async fn a_sender_that_waits_for_room_is_freed_by_the_close() {
    let bus = MemoryBus::new(Capacity::Bounded(1));
    let (_receiver, _messages) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(1)).await.expect("room");
    let waiting = tokio::spawn(bus.send(event(2)));
    tokio::task::yield_now().await;
    bus.close().await.expect("closes");
    match in_time(waiting).await.expect("no panic") {
        Ok(()) => assert_eq!(bus.n_unobserved(), 1, "sent after the close, to nobody"),
        Err(failed) => {
            assert!(matches!(failed.reason(), SendRefusal::Closed));
            assert_eq!(failed.into_message().events().len(), 1, "the message comes back");
        }
    }
}

#[tokio::test]
async fn a_waiter_that_panics_does_not_keep_the_others_from_being_closed() {
    struct Explosive;
    impl Wake for Explosive {
        fn wake(self: Arc<Self>) {
            panic!("a waker of the application panics");
        }
    }
    let bus = MemoryBus::<EventStream>::new(Capacity::Unbounded);
    let (_bad, mut of_bad) = subscribe(&bus, Ownership::Runtime);
    let (_good, mut of_good) = subscribe(&bus, Ownership::Runtime);
    let good = Counted::new();
    assert!(of_bad.poll_next_unpin(&mut Context::from_waker(&Arc::new(Explosive).into())).is_pending());
    assert!(of_good.poll_next_unpin(&mut Context::from_waker(&good.waker())).is_pending());
    let failure = bus.close().await.expect_err("one failed");
    assert_eq!(failure.failures.len(), 1);
    assert_eq!(good.count(), 1, "the other was woken");
    assert!(in_time(of_good.next()).await.is_none());
    let (_new, mut of_new) = subscribe(&bus, Ownership::Runtime);
    bus.send(event(1)).await.expect("the bus is not closing for ever");
    assert_eq!(number(&next(&mut of_new).await), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_close_racing_with_the_first_receivers_leaves_no_orphan() {
    for _ in 0..500 {
        let bus = MemoryBus::new(Capacity::Unbounded);
        let receiving = tokio::spawn({
            let bus = bus.clone();
            async move {
                let subscription = Subscription::to([account()]).owned_by(Ownership::Runtime);
                let mut receiver = bus.receiver(subscription).ok()?;
                let messages = receiver.messages().ok()?;
                receiver.open_processing().expect("opens");
                Some((receiver, messages))
            }
        });
        bus.close().await.expect("closes");
        // Either the close saw this receiver and ended it, or it is part of the bus that goes on.
        let Some((_receiver, mut messages)) = in_time(receiving).await.expect("no panic") else { continue };
        if bus.subscriber_count(account()) == 1 {
            bus.send(event(9)).await.expect("taken");
            assert_eq!(number(&next(&mut messages).await), 9, "a subscribed receiver is no orphan");
        } else {
            assert!(in_time(messages.next()).await.is_none(), "a receiver off the bus has ended");
        }
    }
}

/// A waker that counts.
struct Counted(AtomicUsize);

impl Counted {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(0)))
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
