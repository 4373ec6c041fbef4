//! `MemoryBus`: messages inside this process, in order per aggregate, with receipts for local deliveries.
//!
//! One [`Route`](route) per aggregate type, made on demand; one [`Inbox`](inbox) per receiver, fed by the routes of its
//! aggregates. Commands have one consumer per aggregate type, everything else goes to all receivers. Invariant: a message is in
//! the queue of every subscriber or of none. Closing closes every route first, so that no delivery starts on an inbox that
//! ends, then ends the inboxes; afterwards the bus can be used again. Deliberately stores nothing for receivers that come later.

mod inbox;
mod registration;
mod route;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;
use wow_message::{Answer, Message, NamedAggregate};

use crate::bus::{HandOff, LocalBus, MessageBus, Sending};
use crate::error::{CloseError, SendError, SendRefusal, SubscribeError};
use crate::exchange::Hold;
use crate::memory::inbox::Inbox;
use crate::memory::registration::Registration;
use crate::memory::route::{Emission, Route};
use crate::readiness::Readiness;
use crate::receiver::{Receiver, ReceiverControl};
use crate::subscription::Subscription;

/// How many messages may wait for one receiver.
///
/// A bound keeps memory bounded and makes senders wait for the slowest receiver of their aggregate. The cost: a handler that
/// waits for room while the receiver waits for that handler stands still for ever, as a chain of sagas can when more messages
/// are under way than fit. Such a topology needs `Unbounded` buses, or fewer messages at once than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// As many as there are; senders never wait, memory grows with the backlog.
    Unbounded,
    /// At most this many, 0 counting as 1; senders wait for room.
    Bounded(usize),
}

/// The capacity of a bus that is given none.
pub const DEFAULT_CAPACITY: Capacity = Capacity::Bounded(8_192);

impl Default for Capacity {
    fn default() -> Self {
        DEFAULT_CAPACITY
    }
}

/// A bus inside this process. Clones are the same bus.
///
/// ```
/// use wow_message::{AggregateId, Command, NamedAggregate};
/// use wow_transport::{Capacity, LocalBus, MemoryBus, MessageBus};
///
/// let account = NamedAggregate::new("bank", "account");
/// let bus = MemoryBus::<Command>::new(Capacity::Unbounded);
/// let sent = bus.send(Command::builder(AggregateId::new(account, "1"), ()).build());
/// assert!(sent.into_ready().is_ok_and(|taken| taken.is_ok()), "taken, although nobody listens");
/// assert_eq!(bus.subscriber_count(account), 0);
/// assert_eq!(bus.n_unobserved(), 1);
/// ```
pub struct MemoryBus<M: Message> {
    shared: Arc<Shared<M>>,
}

struct Shared<M: Message> {
    capacity: Capacity,
    directory: RwLock<Directory<M>>,
    next_receiver: AtomicU64,
    n_unobserved: AtomicU64,
}

struct Directory<M: Message> {
    phase: Phase,
    routes: HashMap<NamedAggregate, Arc<Route<M>>, RandomState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
}

impl<M: Message> MemoryBus<M> {
    /// A bus whose receivers have this much room each.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let directory = Directory { phase: Phase::Open, routes: HashMap::default() };
        let shared = Shared {
            capacity,
            directory: RwLock::new(directory),
            next_receiver: AtomicU64::new(0),
            n_unobserved: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// How many messages were sent while their aggregate had no subscriber; they are gone.
    #[must_use]
    pub fn n_unobserved(&self) -> u64 {
        self.shared.n_unobserved.load(Ordering::Relaxed)
    }
}

impl<M: Message> MessageBus<M> for MemoryBus<M> {
    fn send(&self, message: M) -> Sending<M> {
        self.shared.send(message, None)
    }

    fn send_held(&self, message: M, hold: Hold) -> Sending<M> {
        self.shared.send(message, Some(hold))
    }

    fn receiver(&self, subscription: Subscription) -> Result<Receiver<M>, SubscribeError> {
        // Relaxed: only distinct numbers matter.
        let receiver = self.shared.next_receiver.fetch_add(1, Ordering::Relaxed);
        let inbox = Inbox::new(match self.shared.capacity {
            Capacity::Unbounded => usize::MAX,
            Capacity::Bounded(limit) => limit.max(1),
        });
        let (signal, readiness) = Readiness::pair();
        let mut registration = Registration { receiver, routes: Vec::new(), inbox, signal, readiness };
        for &aggregate in subscription.aggregates() {
            // A route that a close overtook is replaced in the directory, so this ends.
            loop {
                let route = self.shared.route(aggregate).ok_or(SubscribeError::Closed)?;
                if route.register(receiver, subscription.ownership(), &registration.inbox) {
                    registration.routes.push(route);
                    break;
                }
            }
        }
        let registration = Arc::new(registration);
        let control: Arc<dyn ReceiverControl> = registration.clone();
        Ok(Receiver::from_parts(control, move || registration.connect()))
    }

    fn close(&self) -> Answer<Result<(), CloseError>> {
        Answer::ready(self.shared.close())
    }
}

impl<M: Message> LocalBus<M> for MemoryBus<M> {
    fn hand_off(&self, message: M) -> HandOff<M> {
        match self.shared.existing_route(message.aggregate_id().named()) {
            Some(route) => match route.hand_off(message) {
                Ok(admission) => HandOff::Accepted(admission),
                Err(refused) => HandOff::Refused(refused),
            },
            None => HandOff::Refused(message),
        }
    }

    fn subscriber_count(&self, aggregate: NamedAggregate) -> usize {
        self.shared.existing_route(aggregate).map_or(0, |route| route.subscriber_count())
    }
}

enum Attempt<M> {
    Done(Result<(), SendError<M>>),
    Full(M, Arc<Inbox<M>>),
}

impl<M: Message> Shared<M> {
    fn send(self: &Arc<Self>, mut message: M, hold: Option<Hold>) -> Sending<M> {
        message.make_read_only();
        match self.emit(message, hold.as_ref()) {
            Attempt::Done(result) => Answer::ready(result),
            Attempt::Full(message, inbox) => Answer::when(WaitingSend {
                shared: Arc::clone(self),
                message: Some(message),
                hold,
                inbox,
                waiter: None,
            }),
        }
    }

    fn emit(&self, mut message: M, hold: Option<&Hold>) -> Attempt<M> {
        loop {
            let Some(route) = self.route(message.aggregate_id().named()) else {
                return Attempt::Done(Err(SendError::new(SendRefusal::Closed, message)));
            };
            let id = message.id();
            match route.emit(message, hold) {
                Emission::Sent { n_receivers } => {
                    if n_receivers == 0 {
                        self.n_unobserved.fetch_add(1, Ordering::Relaxed);
                        tracing::debug!(kind = %M::KIND, %id, "message has no subscriber");
                    }
                    return Attempt::Done(Ok(()));
                }
                Emission::Full(message, inbox) => return Attempt::Full(message, inbox),
                Emission::Closed(back) => message = back,
            }
        }
    }

    /// The route of an aggregate type, made if there is none; `None` while closing.
    fn route(&self, aggregate: NamedAggregate) -> Option<Arc<Route<M>>> {
        if let Some(route) = self.existing_route(aggregate) {
            return Some(route);
        }
        let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        if directory.phase == Phase::Closing {
            return None;
        }
        let route = directory.routes.entry(aggregate).or_insert_with(|| Route::new(aggregate));
        Some(Arc::clone(route))
    }

    fn existing_route(&self, aggregate: NamedAggregate) -> Option<Arc<Route<M>>> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.routes.get(&aggregate).cloned()
    }

    fn close(&self) -> Result<(), CloseError> {
        let routes = {
            let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
            directory.phase = Phase::Closing;
            std::mem::take(&mut directory.routes)
        };
        let mut failures = Vec::new();
        let mut inboxes = Vec::new();
        for (aggregate, route) in routes {
            match catch_unwind(AssertUnwindSafe(|| route.close())) {
                Ok(of_route) => inboxes.extend(of_route),
                Err(_) => failures.push(format!("route of {aggregate} panicked")),
            }
        }
        for waker in inboxes.iter().flat_map(|inbox| inbox.end()) {
            if catch_unwind(AssertUnwindSafe(|| Waker::wake(waker))).is_err() {
                failures.push("a waiting sender or receiver panicked".to_owned());
            }
        }
        self.directory.write().unwrap_or_else(PoisonError::into_inner).phase = Phase::Open;
        if failures.is_empty() { Ok(()) } else { Err(CloseError { failures }) }
    }
}

/// A send that waits for room.
struct WaitingSend<M: Message> {
    shared: Arc<Shared<M>>,
    message: Option<M>,
    hold: Option<Hold>,
    inbox: Arc<Inbox<M>>,
    waiter: Option<u64>,
}

// The message is moved in and out, never pinned.
impl<M: Message> Unpin for WaitingSend<M> {}

impl<M: Message> Future for WaitingSend<M> {
    type Output = Result<(), SendError<M>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(waiter) = self.inbox.wait_for_room(self.waiter, cx.waker()) {
                self.waiter = Some(waiter);
                return Poll::Pending;
            }
            let message = self.message.take().expect("a send is not polled after it resolved");
            match self.shared.emit(message, self.hold.as_ref()) {
                Attempt::Done(result) => {
                    self.hold = None;
                    if let Some(waiter) = self.waiter.take() {
                        self.inbox.stop_waiting(waiter);
                    }
                    return Poll::Ready(result);
                }
                Attempt::Full(message, inbox) => {
                    self.message = Some(message);
                    if !Arc::ptr_eq(&inbox, &self.inbox) {
                        if let Some(waiter) = self.waiter.take() {
                            self.inbox.stop_waiting(waiter);
                        }
                        self.inbox = inbox;
                    }
                }
            }
        }
    }
}

impl<M: Message> Drop for WaitingSend<M> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.inbox.stop_waiting(waiter);
        }
    }
}

impl<M: Message> Clone for MemoryBus<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M: Message> Default for MemoryBus<M> {
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY)
    }
}

impl<M: Message> fmt::Debug for MemoryBus<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBus")
            .field("kind", &M::KIND)
            .field("capacity", &self.shared.capacity)
            .finish_non_exhaustive()
    }
}
