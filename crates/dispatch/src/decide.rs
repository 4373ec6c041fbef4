//! What an application writes to have commands decided: `AggregateCommand`, `Handle` and the `Events` a decision yields.
//!
//! A decision is a pure function of state and command: given a state, when a command, then events or a refusal. So it is tested
//! without a runtime. Deliberately knows no store, bus or message.

use wow_eventsourcing::{Aggregate, AggregateEvent, LifecycleEvent};
use wow_message::Name;

/// A command's body: it says which aggregate it is for.
pub trait AggregateCommand: Sized + Send + Sync + 'static {
    /// The aggregate type that handles it.
    type Aggregate: Handle<Self>;
    /// The command's name, which stays when the type is renamed.
    const NAME: &'static str;
    /// What state of the aggregate it needs.
    const MODE: CommandMode = CommandMode::Update;

    /// The id of the aggregate it is for.
    fn aggregate_id(&self) -> Name;
}

/// What state of its aggregate a command needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandMode {
    /// The aggregate exists.
    #[default]
    Update,
    /// The aggregate does not exist; the command creates it, deciding on an empty state that is not loaded.
    Create,
    /// Either; the command creates the aggregate if it does not exist.
    CreateOrUpdate,
    /// The aggregate is deleted; the command recovers it.
    Recover,
}

/// Decides the commands of one type.
///
/// ```
/// use wow_dispatch::{AggregateCommand, Events, Handle};
/// use wow_eventsourcing::{Aggregate, AggregateEvent};
/// use wow_message::Name;
///
/// #[derive(Default)]
/// struct Account { balance: i64 }
/// struct Withdrawn(i64);
/// struct Withdraw { account: String, amount: i64 }
/// #[derive(Debug, PartialEq)]
/// struct Overdrawn;
/// # impl std::fmt::Display for Overdrawn {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("overdrawn") }
/// # }
/// # impl std::error::Error for Overdrawn {}
///
/// impl AggregateEvent for Withdrawn {
///     fn name(&self) -> &'static str { "withdrawn" }
/// }
/// impl Aggregate for Account {
///     const NAME: &'static str = "account";
///     type Event = Withdrawn;
///     type Error = Overdrawn;
///     fn apply(&mut self, event: &Withdrawn) { self.balance -= event.0; }
/// }
/// impl AggregateCommand for Withdraw {
///     type Aggregate = Account;
///     const NAME: &'static str = "withdraw";
///     fn aggregate_id(&self) -> Name { Name::copied(&self.account) }
/// }
/// impl Handle<Withdraw> for Account {
///     type Reply = i64;
///     fn handle(&self, command: &Withdraw, events: &mut Events<Withdrawn>) -> Result<i64, Overdrawn> {
///         if command.amount > self.balance { return Err(Overdrawn) }
///         events.push(Withdrawn(command.amount));
///         Ok(self.balance - command.amount)
///     }
/// }
///
/// // Given, when, then: no runtime needed.
/// let given = Account { balance: 5 };
/// let mut events = Events::new();
/// let when = Withdraw { account: "4711".into(), amount: 3 };
/// assert_eq!(given.handle(&when, &mut events), Ok(2));
/// assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), [3]);
/// let when = Withdraw { account: "4711".into(), amount: 7 };
/// assert_eq!(given.handle(&when, &mut Events::new()), Err(Overdrawn));
/// ```
pub trait Handle<C>: Aggregate {
    /// What the sender gets if the command is not refused.
    type Reply: Send + 'static;

    /// Decides: what happens, and what the sender is told. Only reads the state; no events mean that nothing happens.
    ///
    /// It may be called again for the same command, if somebody else changed the aggregate meanwhile.
    ///
    /// # Errors
    /// The refusal, for the sender. Events pushed before are forgotten.
    fn handle(&self, command: &C, events: &mut Events<Self::Event>) -> Result<Self::Reply, Self::Error>;
}

/// The events of one decision, in order.
#[derive(Debug)]
pub struct Events<E> {
    // Most decisions yield one event, which then needs no list.
    first: Option<Draft<E>>,
    more: Vec<Draft<E>>,
}

/// One event of a decision.
#[derive(Debug)]
pub(crate) enum Draft<E> {
    Own(E),
    Lifecycle(LifecycleEvent),
}

impl<E> Events<E> {
    /// No events.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None, more: Vec::new() }
    }

    /// Appends an event of the aggregate.
    pub fn push(&mut self, event: E) {
        self.append(Draft::Own(event));
    }

    /// Appends an event that any aggregate can have: a deletion, a recovery, a new owner.
    pub fn push_lifecycle(&mut self, event: LifecycleEvent) {
        self.append(Draft::Lifecycle(event));
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The aggregate's own events, in order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.drafts().filter_map(|draft| match draft {
            Draft::Own(event) => Some(event),
            Draft::Lifecycle(_) => None,
        })
    }

    /// The events that any aggregate can have, in order.
    pub fn lifecycle(&self) -> impl Iterator<Item = &LifecycleEvent> {
        self.drafts().filter_map(|draft| match draft {
            Draft::Own(_) => None,
            Draft::Lifecycle(event) => Some(event),
        })
    }

    fn drafts(&self) -> impl Iterator<Item = &Draft<E>> {
        self.first.iter().chain(&self.more)
    }

    pub(crate) fn into_drafts(self) -> impl Iterator<Item = Draft<E>> {
        self.first.into_iter().chain(self.more)
    }

    fn append(&mut self, draft: Draft<E>) {
        match self.first {
            None => self.first = Some(draft),
            Some(_) => self.more.push(draft),
        }
    }
}

impl<E: AggregateEvent> Default for Events<E> {
    fn default() -> Self {
        Self::new()
    }
}
