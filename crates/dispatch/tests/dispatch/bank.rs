//! The sample domain: accounts that take money in and out, and a store and a bus that take notes.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::Mutex;

use wow_dispatch::{AggregateCommand, CommandMode, Events, Handle};
use wow_eventsourcing::{
    Aggregate, AggregateEvent, AppendError, EventStore, LifecycleEvent, LoadError, MemoryEventStore, Spaces,
};
use wow_message::{
    AggregateId, Answer, EventStream, Name, NamedAggregate, Recoverability, RequestId, Timestamp, Version,
};
use wow_transport::{
    CloseError, MemoryBus, MessageBus, Receiver, SendError, SendRefusal, Sending, SubscribeError,
    Subscription,
};

use crate::support::Steps;

#[derive(Default)]
pub(crate) struct Account {
    pub(crate) balance: i64,
}

/// The balance changed by this much.
#[derive(Debug, PartialEq)]
pub(crate) struct Moved(pub(crate) i64);

/// An event that cannot be applied.
pub(crate) const BROKEN: i64 = 666;

#[derive(Debug, PartialEq)]
pub(crate) struct Overdrawn {
    pub(crate) missing: i64,
}

impl fmt::Display for Overdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} are missing", self.missing)
    }
}

impl std::error::Error for Overdrawn {}

impl AggregateEvent for Moved {
    fn name(&self) -> &'static str {
        "moved"
    }
}

impl Aggregate for Account {
    const NAME: &'static str = "account";
    const SPACES: Spaces = Spaces::Separate;
    type Event = Moved;
    type Error = Overdrawn;

    fn apply(&mut self, event: &Moved) {
        assert!(event.0 != BROKEN, "an event that cannot be applied");
        self.balance += event.0;
    }
}

pub(crate) fn account() -> NamedAggregate {
    NamedAggregate::new("bank", Account::NAME)
}

pub(crate) fn account_id(id: &'static str) -> AggregateId {
    AggregateId::new(account(), id)
}

macro_rules! command {
    ($(#[$doc:meta])* $name:ident, $label:literal, $mode:ident) => {
        $(#[$doc])*
        impl AggregateCommand for $name {
            type Aggregate = Account;
            const NAME: &'static str = $label;
            const MODE: CommandMode = CommandMode::$mode;
            fn aggregate_id(&self) -> Name {
                Name::from(self.account)
            }
        }
    };
}

/// Creates an account.
pub(crate) struct Open {
    pub(crate) account: &'static str,
}

/// Moves money; refused if there is not enough. Nothing happens for 0.
pub(crate) struct Move {
    pub(crate) account: &'static str,
    pub(crate) amount: i64,
    pub(crate) steps: Steps,
}

/// Deletes or recovers an account, or gives it away.
pub(crate) struct Change {
    pub(crate) account: &'static str,
    pub(crate) event: LifecycleEvent,
}

pub(crate) struct Recover {
    pub(crate) account: &'static str,
}

/// Panics.
pub(crate) struct Explode {
    pub(crate) account: &'static str,
}

command!(Open, "open", Create);
command!(Move, "move", Update);
command!(Change, "change", Update);
command!(Recover, "recover", Recover);
command!(Explode, "explode", CreateOrUpdate);

pub(crate) fn moving(account: &'static str, amount: i64) -> Move {
    Move { account, amount, steps: Steps::default() }
}

impl Handle<Open> for Account {
    type Reply = ();

    fn handle(&self, _: &Open, events: &mut Events<Moved>) -> Result<(), Overdrawn> {
        events.push(Moved(0));
        Ok(())
    }
}

impl Handle<Move> for Account {
    type Reply = i64;

    fn handle(&self, command: &Move, events: &mut Events<Moved>) -> Result<i64, Overdrawn> {
        command.steps.note("process");
        let balance = self.balance + command.amount;
        if balance < 0 {
            events.push(Moved(command.amount));
            return Err(Overdrawn { missing: -balance });
        }
        if command.amount != 0 {
            events.push(Moved(command.amount));
        }
        Ok(balance)
    }
}

impl Handle<Change> for Account {
    type Reply = ();

    fn handle(&self, command: &Change, events: &mut Events<Moved>) -> Result<(), Overdrawn> {
        events.push_lifecycle(command.event.clone());
        Ok(())
    }
}

impl Handle<Recover> for Account {
    type Reply = ();

    fn handle(&self, _: &Recover, events: &mut Events<Moved>) -> Result<(), Overdrawn> {
        events.push_lifecycle(LifecycleEvent::Recovered);
        Ok(())
    }
}

impl Handle<Explode> for Account {
    type Reply = ();

    fn handle(&self, _: &Explode, _: &mut Events<Moved>) -> Result<(), Overdrawn> {
        panic!("a bug of the account");
    }
}

// === A store that does what it is told ===

/// What the next append does.
pub(crate) enum OnAppend {
    /// Writes and says it failed.
    WriteAndFail,
    /// Fails without writing.
    Fail(Recoverability),
}

#[derive(Default)]
pub(crate) struct ToldStore {
    pub(crate) inner: MemoryEventStore,
    told: Mutex<Vec<OnAppend>>,
    pub(crate) steps: Steps,
}

impl ToldStore {
    pub(crate) fn tell(&self, next: OnAppend) {
        self.told.lock().expect("not poisoned").push(next);
    }

    /// Another writer appends to the account.
    pub(crate) fn append_elsewhere(&self, id: AggregateId, version: u64, amount: i64) {
        let stream = EventStream::builder(id, Version::new(version)).event("moved", Moved(amount)).build();
        let appended = self.inner.append(stream.expect("an event")).into_ready().expect("at once");
        appended.expect("the version is free");
    }

    pub(crate) fn versions(&self, id: &AggregateId) -> Vec<u64> {
        let all = self.inner.load(id, Version::INITIAL..=Version::MAX).into_ready().expect("at once");
        all.expect("loads").iter().map(|stream| stream.version().get()).collect()
    }
}

impl EventStore for ToldStore {
    fn append(&self, stream: EventStream) -> Answer<Result<(), AppendError>> {
        self.steps.note("append");
        let failure =
            |recoverability| AppendError::Store { cause: "no answer in time".into(), recoverability };
        match self.told.lock().expect("not poisoned").pop() {
            None => self.inner.append(stream),
            Some(OnAppend::WriteAndFail) => {
                self.inner.append(stream).into_ready().expect("at once").expect("the version is free");
                Answer::ready(Err(failure(Recoverability::Recoverable)))
            }
            Some(OnAppend::Fail(recoverability)) => Answer::ready(Err(failure(recoverability))),
        }
    }

    fn load(
        &self,
        id: &AggregateId,
        versions: RangeInclusive<Version>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>> {
        if *versions.end() == Version::MAX {
            self.steps.note("load");
        }
        self.inner.load(id, versions)
    }

    fn load_by_time(
        &self,
        id: &AggregateId,
        times: RangeInclusive<Timestamp>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>> {
        self.inner.load_by_time(id, times)
    }

    fn last(&self, id: &AggregateId) -> Answer<Result<Option<EventStream>, LoadError>> {
        self.inner.last(id)
    }

    fn exists_request_id(&self, id: &AggregateId, request_id: &RequestId) -> Answer<Result<bool, LoadError>> {
        self.inner.exists_request_id(id, request_id)
    }

    fn scan(
        &self,
        aggregate: NamedAggregate,
        after: Option<&AggregateId>,
        limit: usize,
    ) -> Answer<Result<Vec<AggregateId>, LoadError>> {
        self.inner.scan(aggregate, after, limit)
    }
}

// === An event bus that takes notes, and may fail ===

pub(crate) struct NotedEvents {
    inner: MemoryBus<EventStream>,
    pub(crate) steps: Steps,
    pub(crate) fails: std::sync::atomic::AtomicBool,
}

impl NotedEvents {
    pub(crate) fn new(steps: &Steps) -> Arc<Self> {
        Arc::new(Self { inner: MemoryBus::default(), steps: steps.clone(), fails: false.into() })
    }
}

impl MessageBus<EventStream> for NotedEvents {
    fn send(&self, message: EventStream) -> Sending<EventStream> {
        self.steps.note("domain-event");
        if self.fails.load(std::sync::atomic::Ordering::SeqCst) {
            let refusal = SendRefusal::Transport("the broker is gone".into());
            return Answer::ready(Err(SendError::new(refusal, message)));
        }
        self.inner.send(message)
    }

    fn receiver(&self, subscription: Subscription) -> Result<Receiver<EventStream>, SubscribeError> {
        self.inner.receiver(subscription)
    }

    fn close(&self) -> Answer<Result<(), CloseError>> {
        self.inner.close()
    }
}
