//! `Instance`, an aggregate's state without its type, and `AggregateFunctions`, which makes instances and holds the table of the
//! aggregate's command functions.
//!
//! The one place where typed aggregates meet the untyped engine. Invariant: a function of the table is only called with the
//! command type it was registered for. An instance that panicked or failed to apply events must be thrown away.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use wow_eventsourcing::{Aggregate, AggregateEvent, AggregateState, SourcingError, Spaces};
use wow_message::{AggregateId, Command, DEFAULT_REVISION, EventStream, Name, NamedAggregate, Version};

use crate::command::failure::{CommandError, CommandFailure};
use crate::command::guard;
use crate::command::waits::{Slot, Waiter};
use crate::decide::{AggregateCommand, CommandMode, Draft, Events, Handle};

/// What surrounds an aggregate's root, as far as the guards look at it.
pub(super) struct View<'a> {
    pub(super) version: Version,
    pub(super) owner: &'a Name,
    pub(super) space: &'a Name,
    pub(super) spaces: Spaces,
    pub(super) is_deleted: bool,
}

/// The state of one aggregate, whatever its type.
pub(super) trait Instance: Send {
    fn view(&self) -> View<'_>;

    fn source(&mut self, stream: &EventStream) -> Result<(), SourcingError>;

    /// Lets the command's function decide, if the guards let the command through; the reply or refusal is put down at the
    /// waiter. `None` if nothing happened.
    fn decide(
        &self,
        command: &Command,
        waiter: Option<&dyn Waiter>,
    ) -> Result<Option<EventStream>, CommandFailure>;
}

/// The command functions of one aggregate type.
///
/// ```
/// # use wow_dispatch::{AggregateCommand, AggregateFunctions, Events, Handle};
/// # use wow_eventsourcing::{Aggregate, AggregateEvent};
/// # use wow_message::Name;
/// # #[derive(Default)]
/// # struct Account;
/// # struct Opened;
/// # struct Open;
/// # impl AggregateEvent for Opened { fn name(&self) -> &'static str { "opened" } }
/// # impl Aggregate for Account {
/// #     const NAME: &'static str = "account";
/// #     type Event = Opened;
/// #     type Error = std::convert::Infallible;
/// #     fn apply(&mut self, _: &Opened) {}
/// # }
/// # impl AggregateCommand for Open {
/// #     type Aggregate = Account;
/// #     const NAME: &'static str = "open";
/// #     fn aggregate_id(&self) -> Name { Name::from("1") }
/// # }
/// # impl Handle<Open> for Account {
/// #     type Reply = ();
/// #     fn handle(&self, _: &Open, _: &mut Events<Opened>) -> Result<(), Self::Error> { Ok(()) }
/// # }
/// let functions = AggregateFunctions::of::<Account>("bank").command::<Open>().build();
/// assert_eq!(functions.named().to_string(), "bank.account");
/// ```
#[derive(Clone)]
pub struct AggregateFunctions {
    named: NamedAggregate,
    make: Arc<dyn Fn(AggregateId) -> Box<dyn Instance> + Send + Sync>,
}

impl AggregateFunctions {
    /// Starts the functions of `A` in this bounded context.
    #[must_use]
    pub fn of<A: Aggregate>(context: impl Into<Name>) -> AggregateFunctionsBuilder<A> {
        let named = NamedAggregate::new(context, A::NAME);
        AggregateFunctionsBuilder {
            named,
            functions: HashMap::default(),
            names: Vec::new(),
            duplicates: Vec::new(),
        }
    }

    /// The aggregate type.
    #[must_use]
    pub fn named(&self) -> NamedAggregate {
        self.named
    }

    pub(super) fn empty(&self, id: AggregateId) -> Box<dyn Instance> {
        (self.make)(id)
    }
}

impl fmt::Debug for AggregateFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregateFunctions").field("named", &self.named).finish_non_exhaustive()
    }
}

/// Collects the command functions of the aggregate type `A`.
pub struct AggregateFunctionsBuilder<A: Aggregate> {
    named: NamedAggregate,
    functions: Table<A>,
    names: Vec<&'static str>,
    duplicates: Vec<&'static str>,
}

type Table<A> = HashMap<TypeId, Function<A>, RandomState>;

/// A command function without its command's type; the reply goes to the slot of the waiter, if there is one.
struct Function<A: Aggregate> {
    mode: CommandMode,
    decide: Decide<A>,
}

type Decide<A> =
    fn(&A, &dyn Any, &mut Events<<A as Aggregate>::Event>, Option<&dyn Waiter>) -> Result<(), CommandFailure>;

impl<A: Aggregate> AggregateFunctionsBuilder<A> {
    /// Adds the function for commands of type `C`.
    #[must_use]
    pub fn command<C>(mut self) -> Self
    where
        C: AggregateCommand<Aggregate = A>,
        A: Handle<C>,
    {
        let function = Function { mode: C::MODE, decide: decide::<A, C> };
        let known = self.functions.insert(TypeId::of::<C>(), function).is_some();
        if known || self.names.contains(&C::NAME) {
            self.duplicates.push(C::NAME);
        }
        self.names.push(C::NAME);
        self
    }

    /// The names of commands that were added twice, or that share their name with another one.
    pub(crate) fn duplicates(&self) -> &[&'static str] {
        &self.duplicates
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The functions.
    #[must_use]
    pub fn build(self) -> AggregateFunctions {
        let functions = Arc::new(self.functions);
        let make = move |id| -> Box<dyn Instance> {
            Box::new(Typed { state: AggregateState::<A>::new(id), functions: Arc::clone(&functions) })
        };
        AggregateFunctions { named: self.named, make: Arc::new(make) }
    }
}

impl<A: Aggregate> fmt::Debug for AggregateFunctionsBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregateFunctionsBuilder")
            .field("named", &self.named)
            .field("commands", &self.names)
            .finish()
    }
}

fn decide<A, C>(
    root: &A,
    body: &dyn Any,
    events: &mut Events<A::Event>,
    waiter: Option<&dyn Waiter>,
) -> Result<(), CommandFailure>
where
    A: Aggregate + Handle<C>,
    C: AggregateCommand,
{
    let command = body.downcast_ref::<C>().expect("the table is keyed by the type of the command");
    let slot = waiter.and_then(|waiter| {
        let waiter: &dyn Any = waiter;
        waiter.downcast_ref::<Slot<A::Reply, A::Error>>()
    });
    match root.handle(command, events) {
        Ok(reply) => {
            if let Some(slot) = slot {
                slot.put_down(Ok(reply));
            }
            Ok(())
        }
        Err(refusal) => {
            let text = refusal.to_string();
            if let Some(slot) = slot {
                slot.put_down(Err(CommandError::Refused(refusal)));
            }
            Err(CommandFailure::Refused(text))
        }
    }
}

struct Typed<A: Aggregate> {
    state: AggregateState<A>,
    functions: Arc<Table<A>>,
}

impl<A: Aggregate> Instance for Typed<A> {
    fn view(&self) -> View<'_> {
        View {
            version: self.state.version(),
            owner: self.state.owner(),
            space: self.state.space(),
            spaces: A::SPACES,
            is_deleted: self.state.is_deleted(),
        }
    }

    fn source(&mut self, stream: &EventStream) -> Result<(), SourcingError> {
        self.state.source(stream)
    }

    fn decide(
        &self,
        command: &Command,
        waiter: Option<&dyn Waiter>,
    ) -> Result<Option<EventStream>, CommandFailure> {
        let function = self.functions.get(&command.body().type_id());
        guard::check(&self.view(), command, function.map(|function| function.mode))?;
        let function = function.expect("the guards let only known commands through");
        let mut events = Events::new();
        (function.decide)(self.state.root(), command.body(), &mut events, waiter)?;
        if events.is_empty() {
            return Ok(None);
        }
        let mut stream = EventStream::answering(command, self.state.version().next());
        if self.state.version().is_initialised() {
            stream = stream.owner(self.state.owner().clone()).space(self.state.space().clone());
        }
        for draft in events.into_drafts() {
            match draft {
                Draft::Own(event) => stream.push(event.name(), event.revision(), Arc::new(event)),
                Draft::Lifecycle(event) => stream.push(event.name(), DEFAULT_REVISION, Arc::new(event)),
            }
        }
        Ok(Some(stream.build().expect("there is at least one event")))
    }
}
