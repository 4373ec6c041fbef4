//! What the tests share: a bus whose every part can be scripted, a kind that does what a closure says, and runtimes around them.

use std::fmt::Debug;
use std::future::Future;
use std::num::{NonZeroU16, NonZeroU32};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyed_executor::{Config, KeyedExecutor};
use wow_aggregate_scheduler::{DefaultSchedulerSupplier, Groups};
use wow_dispatch::{DispatchConfig, DispatchKind, Dispatcher, Execution, Handled, Strategy};
use wow_message::{AggregateId, AggregateKey, Answer, Command, Message, NamedAggregate};
use wow_runtime::{Component, ComponentError, Runtime, Stage};
use wow_testkit::{Feed, Source};
use wow_transport::{
    Acknowledgement, CloseError, Exchange, MessageBus, Messages, Readiness, Receipt, ReceiveError, Receiver,
    ReceiverControl, Sending, SubscribeError, Subscription, Ticket,
};

/// Steps in the order they happened.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Vec<String>>>);

impl Steps {
    pub(crate) fn note(&self, step: impl Into<String>) {
        self.0.lock().expect("not poisoned").push(step.into());
    }

    pub(crate) fn taken(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").clone()
    }

    pub(crate) fn count(&self, step: &str) -> usize {
        self.taken().iter().filter(|taken| *taken == step).count()
    }
}

/// What a dispatcher of this test program runs on: the executor, or pools of its own of two threads each.
pub(crate) fn execution() -> Execution {
    match crate::STRATEGY {
        Strategy::Keyed => Execution::Keyed,
        Strategy::Grouped => {
            let two = NonZeroU16::MIN.saturating_add(1);
            let supplier = Arc::new(DefaultSchedulerSupplier::new("test", two));
            Execution::Grouped { supplier, groups: groups() }
        }
    }
}

/// A number of groups that does not depend on the machine.
pub(crate) fn groups() -> Groups {
    Groups::new(NonZeroU32::MIN.saturating_add(127))
}

/// The same for a service.
pub(crate) fn config() -> DispatchConfig {
    let executor = Config { workers: 2, ..Config::default() };
    DispatchConfig { executor, strategy: crate::STRATEGY, groups: groups(), ..DispatchConfig::default() }
}

/// An executor of two workers.
pub(crate) fn executor() -> KeyedExecutor {
    KeyedExecutor::new(Config { workers: 2, ..Config::default() }).expect("a valid configuration")
}

/// A runtime of these components, in this order, that stops at its first idle moment.
pub(crate) fn runtime_of(components: impl IntoIterator<Item = Arc<dyn Component>>) -> Runtime {
    let builder = Runtime::builder(executor()).quiet_period(Duration::ZERO);
    let add = |builder: wow_runtime::Builder, component| builder.component(Stage::COMMANDS, component);
    components.into_iter().fold(builder, add).build().expect("a valid runtime")
}

pub(crate) fn named(context: &'static str, name: &'static str) -> NamedAggregate {
    NamedAggregate::new(context, name)
}

pub(crate) fn id(id: &'static str) -> AggregateId {
    AggregateId::new(named("test", "thing"), id)
}

/// A command whose body is a number.
pub(crate) fn numbered(id: AggregateId, number: u32) -> Command {
    Command::builder(id, number).name("number").build()
}

pub(crate) fn number(command: &Command) -> u32 {
    *command.body_as::<u32>().expect("a number")
}

// === Doing: a kind that does what a closure says ===

type Handling = Pin<Box<dyn Future<Output = Handled> + Send>>;
type KeyOf = dyn Fn(&Command) -> Result<AggregateKey, ComponentError> + Send + Sync;

pub(crate) struct Doing {
    aggregates: Vec<NamedAggregate>,
    handle: Box<dyn Fn(Exchange<Command>) -> Handling + Send + Sync>,
    key: Option<Box<KeyOf>>,
}

impl Doing {
    pub(crate) fn new<F, R>(aggregates: impl IntoIterator<Item = NamedAggregate>, handle: F) -> Self
    where
        F: Fn(Exchange<Command>) -> R + Send + Sync + 'static,
        R: Future<Output = Handled> + Send + 'static,
    {
        let handle = Box::new(move |exchange| -> Handling { Box::pin(handle(exchange)) });
        Self { aggregates: aggregates.into_iter().collect(), handle, key: None }
    }

    pub(crate) fn keyed_by(
        mut self,
        key: impl Fn(&Command) -> Result<AggregateKey, ComponentError> + Send + Sync + 'static,
    ) -> Self {
        self.key = Some(Box::new(key));
        self
    }

    pub(crate) fn on(self, bus: Arc<dyn MessageBus<Command>>) -> Arc<Dispatcher<Self>> {
        Arc::new(Dispatcher::new("test.Doing", self, bus).execution(execution()))
    }
}

impl DispatchKind for Doing {
    type Message = Command;
    type Attached = ();

    fn aggregates(&self) -> &[NamedAggregate] {
        &self.aggregates
    }

    fn key(&self, message: &Command) -> Result<AggregateKey, ComponentError> {
        match &self.key {
            Some(key) => key(message),
            None => Ok(message.aggregate_id().key().clone()),
        }
    }

    fn attach(&self, _message: &Command) {}

    async fn handle(self: Arc<Self>, exchange: Exchange<Command>, (): ()) -> Handled {
        (self.handle)(exchange).await
    }
}

// === ScriptedBus: receivers that are fed by the test ===

/// What a scripted receiver answers and what its stream is.
pub(crate) struct ReceiverScript<M> {
    messages: Messages<M>,
    pub(crate) open: Gate,
    pub(crate) close: Gate,
    pub(crate) suspend: Gate,
}

type Gate = Box<dyn Fn() -> Result<(), ReceiveError> + Send + Sync>;

impl<M: Send + 'static> ReceiverScript<M> {
    /// A receiver that yields what its feed is given and whose gates work.
    pub(crate) fn fed() -> (Self, Feed<Result<Exchange<M>, ReceiveError>>) {
        let (source, feed) = Source::fed();
        (Self::over(Messages::new(source)), feed)
    }

    pub(crate) fn over(messages: Messages<M>) -> Self {
        Self { messages, open: Box::new(|| Ok(())), close: Box::new(|| Ok(())), suspend: Box::new(|| Ok(())) }
    }
}

/// A bus that hands out scripted receivers, one per subscription, and takes notes.
pub(crate) struct ScriptedBus<M> {
    receivers: Mutex<Vec<ReceiverScript<M>>>,
    subscriptions: Mutex<Vec<Subscription>>,
    pub(crate) steps: Steps,
}

impl<M> ScriptedBus<M> {
    pub(crate) fn of(receivers: impl IntoIterator<Item = ReceiverScript<M>>) -> Arc<Self> {
        let receivers = Mutex::new(receivers.into_iter().collect());
        Arc::new(Self { receivers, subscriptions: Mutex::default(), steps: Steps::default() })
    }

    pub(crate) fn subscriptions(&self) -> Vec<Subscription> {
        self.subscriptions.lock().expect("not poisoned").clone()
    }
}

impl<M: Message + Debug> MessageBus<M> for ScriptedBus<M> {
    fn send(&self, _message: M) -> Sending<M> {
        Answer::ready(Ok(()))
    }

    fn receiver(&self, subscription: Subscription) -> Result<Receiver<M>, SubscribeError> {
        let script = self.receivers.lock().expect("not poisoned").remove(0);
        let mut subscriptions = self.subscriptions.lock().expect("not poisoned");
        let number = subscriptions.len();
        subscriptions.push(subscription);
        let ReceiverScript { messages, open, close, suspend } = script;
        let control = ScriptedControl { open, close, suspend, number, steps: self.steps.clone() };
        Ok(Receiver::from_parts(Arc::new(control), move || Ok(messages)))
    }

    fn close(&self) -> Answer<Result<(), CloseError>> {
        Answer::ready(Ok(()))
    }
}

struct ScriptedControl {
    open: Gate,
    close: Gate,
    suspend: Gate,
    number: usize,
    steps: Steps,
}

impl ReceiverControl for ScriptedControl {
    fn ready(&self) -> Readiness {
        self.steps.note(format!("ready {}", self.number));
        Readiness::given()
    }

    fn open_processing(&self) -> Result<(), ReceiveError> {
        self.steps.note(format!("open {}", self.number));
        (self.open)()
    }

    fn close_processing(&self) -> Result<(), ReceiveError> {
        self.steps.note(format!("close {}", self.number));
        (self.close)()
    }

    fn suspend_durable_intake(&self) -> Result<(), ReceiveError> {
        self.steps.note(format!("suspend {}", self.number));
        (self.suspend)()
    }
}

pub(crate) fn transport_failure(text: &'static str) -> ReceiveError {
    ReceiveError::Transport(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(text)))
}

/// An exchange that notes what becomes of its ticket and its acknowledgement.
pub(crate) fn noted<M>(message: M, steps: &Steps) -> Exchange<M> {
    let (receipts, acknowledgements) = (steps.clone(), steps.clone());
    Exchange::new(message)
        .with_ticket(Ticket::new(move |receipt| {
            receipts.note(match receipt {
                Receipt::Confirmed => "confirmed",
                Receipt::Rejected => "rejected",
            });
        }))
        .with_acknowledgement(Acknowledgement::new(move || acknowledgements.note("acknowledged")))
}
