//! `Route`: the receivers of one aggregate type, and the local deliveries they have not answered yet.
//!
//! The monitor of its aggregate: every emission, every change of a receiver and every receipt takes this one lock, so concurrent
//! senders are serialised here and aggregates never wait for each other. Invariants: a delivery is pending only while the
//! targets are those it was made for; a closed route has no members and takes nothing. Nothing foreign (wakers, drops of
//! messages, admissions) runs under the lock: it is collected in [`After`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use foldhash::fast::RandomState;
use wow_message::{Message, NamedAggregate, TopicKind};

use crate::bus::{Admission, AdmissionCell};
use crate::error::SubscribeError;
use crate::exchange::{Exchange, Hold, Receipt, Ticket};
use crate::memory::inbox::{Inbox, Pushed};
use crate::subscription::Ownership;

pub(super) struct Route<M> {
    aggregate: NamedAggregate,
    state: Mutex<State<M>>,
}

struct State<M> {
    life: Life,
    /// In the order of their numbers.
    members: Vec<Member<M>>,
    deliveries: HashMap<u64, Delivery, RandomState>,
    next_delivery: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Live,
    Closed,
}

struct Member<M> {
    receiver: u64,
    ownership: Ownership,
    connection: Connection,
    gate: Gate,
    inbox: Arc<Inbox<M>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connection {
    Registered,
    Connected,
}

/// Whether a receiver's processing is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    NotYet,
    Open,
    /// For ever.
    Ended,
}

struct Delivery {
    undecided: Vec<u64>,
    cell: Arc<AdmissionCell>,
}

/// What became of an emission.
pub(super) enum Emission<M> {
    /// In the queue of this many receivers.
    Sent { n_receivers: usize },
    /// This inbox has no room for the message.
    Full(M, Arc<Inbox<M>>),
    /// The route was closed; the bus has, or will have, another one.
    Closed(M),
}

/// Foreign code to run once the route's lock is released.
pub(super) struct After<M> {
    // The usual one of each kind needs no list.
    waker: Option<Waker>,
    wakers: Vec<Waker>,
    orphan: Option<Exchange<M>>,
    orphans: Vec<Exchange<M>>,
    decisions: Vec<(Arc<AdmissionCell>, bool)>,
}

impl<M: Message> Route<M> {
    pub(super) fn new(aggregate: NamedAggregate) -> Arc<Self> {
        let state =
            State { life: Life::Live, members: Vec::new(), deliveries: HashMap::default(), next_delivery: 0 };
        Arc::new(Self { aggregate, state: Mutex::new(state) })
    }

    /// Adds a receiver, not yet subscribed. `false` if the route is closed.
    pub(super) fn register(&self, receiver: u64, ownership: Ownership, inbox: &Arc<Inbox<M>>) -> bool {
        self.locked(|state, after| {
            if state.life == Life::Closed {
                return false;
            }
            let gate = match ownership {
                Ownership::Observer => Gate::Open,
                Ownership::Runtime => Gate::NotYet,
            };
            let connection = Connection::Registered;
            let at = state.members.partition_point(|member| member.receiver < receiver);
            state
                .members
                .insert(at, Member { receiver, ownership, connection, gate, inbox: Arc::clone(inbox) });
            if ownership == Ownership::Runtime {
                state.revoke_deliveries(after);
            }
            true
        })
    }

    /// Subscribes a registered receiver.
    pub(super) fn connect(&self, receiver: u64) -> Result<(), SubscribeError> {
        self.locked(|state, _| {
            let is_taken = |m: &Member<M>| m.receiver != receiver && m.connection == Connection::Connected;
            if M::KIND == TopicKind::Command && state.members.iter().any(is_taken) {
                return Err(SubscribeError::AlreadyConsumed(self.aggregate));
            }
            let member = state.members.iter_mut().find(|m| m.receiver == receiver);
            member.map(|m| m.connection = Connection::Connected).ok_or(SubscribeError::Closed)
        })
    }

    /// Moves a receiver's gate; an ended one stays ended.
    pub(super) fn set_gate(&self, receiver: u64, gate: Gate) {
        self.locked(|state, after| {
            let Some(member) = state.members.iter_mut().find(|m| m.receiver == receiver) else { return };
            if member.gate == Gate::Ended || member.gate == gate {
                return;
            }
            member.gate = gate;
            if member.ownership == Ownership::Runtime {
                state.revoke_deliveries(after);
            }
        });
    }

    /// Removes a receiver; idempotent.
    pub(super) fn remove(&self, receiver: u64) {
        self.locked(|state, after| {
            let Some(at) = state.members.iter().position(|m| m.receiver == receiver) else { return };
            if state.members.remove(at).ownership == Ownership::Runtime {
                state.revoke_deliveries(after);
            }
        });
    }

    /// Takes no more messages; pending deliveries are rejected. Returns the inboxes of its receivers.
    pub(super) fn close(&self) -> Vec<Arc<Inbox<M>>> {
        self.locked(|state, after| {
            state.life = Life::Closed;
            state.revoke_deliveries(after);
            state.members.drain(..).map(|member| member.inbox).collect()
        })
    }

    /// Puts the message, which is read-only, into the queue of every subscribed receiver, or of none.
    pub(super) fn emit(&self, message: M, hold: Option<&Hold>) -> Emission<M> {
        self.locked(|state, after| {
            if state.life == Life::Closed {
                return Emission::Closed(message);
            }
            let mut connected = state.members.iter().filter(|m| m.connection == Connection::Connected);
            match (connected.next(), connected.next()) {
                (None, _) => {
                    after.orphan = Some(Exchange::new(message));
                    Emission::Sent { n_receivers: 0 }
                }
                (Some(only), None) => {
                    match only.inbox.push(Exchange::new(message).with_hold(hold.cloned())) {
                        Ok(pushed) => {
                            after.note(pushed);
                            Emission::Sent { n_receivers: 1 }
                        }
                        Err(exchange) => Emission::Full(exchange.into_message(), Arc::clone(&only.inbox)),
                    }
                }
                (Some(_), Some(_)) => state.emit_to_all(message, after, |_, message| {
                    Exchange::new(message).with_hold(hold.cloned())
                }),
            }
        })
    }

    /// Emits the message with a ticket for every target, if a local delivery is possible.
    ///
    /// # Errors
    /// The message, as it was.
    pub(super) fn hand_off(self: &Arc<Self>, mut message: M) -> Result<Admission, M> {
        self.locked(|state, after| {
            let is_target = |m: &&Member<M>| m.ownership == Ownership::Runtime;
            let is_open = |m: &Member<M>| m.gate == Gate::Open && m.connection == Connection::Connected;
            let mut targets = state.members.iter().filter(is_target).peekable();
            if targets.peek().is_none() || !targets.all(is_open) || message.header().is_read_only() {
                return Err(message);
            }
            let delivery = state.next_delivery;
            let undecided = state.members.iter().filter(is_target).map(|m| m.receiver).collect();
            let untouched = message.clone();
            message.make_read_only();
            let emission = state.emit_to_all(message, after, |member, message| match member.ownership {
                Ownership::Observer => Exchange::new(message),
                Ownership::Runtime => {
                    let (route, receiver) = (Arc::clone(self), member.receiver);
                    let decide = move |receipt| route.decide(delivery, receiver, receipt);
                    Exchange::new(message).with_ticket(Ticket::new(decide))
                }
            });
            match emission {
                Emission::Sent { .. } => {
                    let (cell, admission) = Admission::pair();
                    state.next_delivery += 1;
                    state.deliveries.insert(delivery, Delivery { undecided, cell });
                    Ok(admission)
                }
                Emission::Full(..) | Emission::Closed(_) => Err(untouched),
            }
        })
    }

    /// How many receivers a message would reach: the subscribed ones without the targets that are not open.
    pub(super) fn subscriber_count(&self) -> usize {
        let state = self.lock();
        let counts = |m: &&Member<M>| m.connection == Connection::Connected && m.gate == Gate::Open;
        state.members.iter().filter(counts).count()
    }

    /// One target's answer to one delivery; late answers change nothing.
    fn decide(&self, delivery: u64, receiver: u64, receipt: Receipt) {
        self.locked(|state, after| {
            let Some(pending) = state.deliveries.get_mut(&delivery) else { return };
            let Some(at) = pending.undecided.iter().position(|target| *target == receiver) else { return };
            pending.undecided.swap_remove(at);
            let admitted = receipt == Receipt::Confirmed;
            if pending.undecided.is_empty() || !admitted {
                if let Some(decided) = state.deliveries.remove(&delivery) {
                    after.decisions.push((decided.cell, admitted));
                }
            }
        });
    }

    /// Runs `change` under the lock, then whatever it left to do.
    fn locked<R>(&self, change: impl FnOnce(&mut State<M>, &mut After<M>) -> R) -> R {
        let mut after = After::default();
        let result = change(&mut self.lock(), &mut after);
        after.run();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Message> State<M> {
    fn emit_to_all(
        &self,
        message: M,
        after: &mut After<M>,
        exchange: impl Fn(&Member<M>, M) -> Exchange<M>,
    ) -> Emission<M> {
        let connected = || self.members.iter().filter(|m| m.connection == Connection::Connected);
        let mut places = Vec::with_capacity(self.members.len());
        for member in connected() {
            match member.inbox.reserve() {
                Some(place) => places.push(place),
                None => {
                    after.wakers.extend(places.into_iter().filter_map(|place| place.release()));
                    return Emission::Full(message, Arc::clone(&member.inbox));
                }
            }
        }
        let n_receivers = places.len();
        for (place, member) in places.into_iter().zip(connected()) {
            after.note(place.push(exchange(member, message.clone())));
        }
        Emission::Sent { n_receivers }
    }

    fn revoke_deliveries(&mut self, after: &mut After<M>) {
        after.decisions.extend(self.deliveries.drain().map(|(_, delivery)| (delivery.cell, false)));
    }
}

impl<M> After<M> {
    fn note(&mut self, pushed: Pushed<M>) {
        self.orphans.extend(pushed.orphan);
        match pushed.consumer {
            Some(waker) if self.waker.is_none() => self.waker = Some(waker),
            other => self.wakers.extend(other),
        }
    }

    fn run(self) {
        let Self { waker, wakers, orphan, orphans, decisions } = self;
        waker.into_iter().chain(wakers).for_each(Waker::wake);
        decisions.into_iter().for_each(|(cell, admitted)| cell.decide(admitted));
        drop((orphan, orphans));
    }
}

impl<M> Default for After<M> {
    fn default() -> Self {
        Self { waker: None, wakers: Vec::new(), orphan: None, orphans: Vec::new(), decisions: Vec::new() }
    }
}
