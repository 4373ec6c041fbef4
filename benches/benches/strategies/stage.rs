//! `Stage`: a dispatcher with its bus and runtime, on either strategy, and a kind whose messages say what they cost.
//!
//! Owns the check of order: a message runs alone on its key and right after the one that was sent before. Whoever breaks that,
//! or leaves a message unfinished, ends the program when the stage is taken down.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use keyed_executor::{Config, KeyedExecutor};
use wow_aggregate_scheduler::{DefaultSchedulerSupplier, Groups};
use wow_dispatch::{DispatchKind, Dispatcher, Execution, Handled, Strategy};
use wow_message::{AggregateId, Command, NamedAggregate};
use wow_runtime::{Component, Runtime, Stage as Start};
use wow_testkit::{after, finish};
use wow_transport::{Capacity, Exchange, MemoryBus, MessageBus};

use crate::clock::{compute, now};
use crate::sender::Port;

/// What a stage is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Workers of the executor.
    pub(crate) workers: u16,
    /// Threads for handlers in each pool.
    pub(crate) pool: u16,
    /// Groups of each aggregate type; 64 a processor, if not said.
    pub(crate) groups: Option<u32>,
    pub(crate) types: usize,
}

/// What handling costs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    Nothing,
    /// So many steps of arithmetic on the thread.
    Compute(u64),
    /// At least so long, without the thread.
    Wait(Duration),
}

/// An aggregate, with what its order is checked by.
pub(crate) struct Key {
    id: AggregateId,
    /// Messages sent. Locked while one is sent: the start of a busy key sends beside its handler.
    n_sent: Mutex<u64>,
    n_begun: AtomicU64,
    running: AtomicBool,
}

impl Key {
    pub(crate) fn new(named: NamedAggregate, id: String) -> Arc<Self> {
        let (n_sent, n_begun, running) = (Mutex::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { id: AggregateId::new(named, id), n_sent, n_begun, running })
    }
}

/// The body of a message.
struct Work {
    key: Arc<Key>,
    number: u64,
    load: Load,
    then: Then,
}

/// What follows the handling.
enum Then {
    /// Whoever sent it goes on.
    Tell(Arc<Port>, Instant),
    /// The next message of its key is sent, until the stage stops.
    Again,
}

/// The kind of the dispatcher.
struct Kind {
    types: Vec<NamedAggregate>,
    bus: Arc<MemoryBus<Command>>,
    stopping: AtomicBool,
    n_violations: AtomicU64,
}

impl Kind {
    fn send(&self, key: &Arc<Key>, load: Load, then: Then) {
        let mut n_sent = key.n_sent.lock().expect("nothing panics with it");
        let work = Work { key: Arc::clone(key), number: *n_sent, load, then };
        *n_sent += 1;
        let command = Command::builder(key.id.clone(), work).name("work").build();
        let sent = self.bus.send(command).into_ready();
        let taken = sent.unwrap_or_else(|_| panic!("a bus without a bound makes nobody wait"));
        taken.expect("the bus is open");
    }
}

impl DispatchKind for Kind {
    type Message = Command;
    type Attached = ();

    fn aggregates(&self) -> &[NamedAggregate] {
        &self.types
    }

    fn attach(&self, _message: &Command) {}

    async fn handle(self: Arc<Self>, mut exchange: Exchange<Command>, (): ()) -> Handled {
        let work: &Work = exchange.message().body_as().expect("every message is work");
        // SeqCst: an overlap must be seen whatever the strategy orders.
        let alone = !work.key.running.swap(true, Ordering::SeqCst);
        let next = work.key.n_begun.fetch_add(1, Ordering::SeqCst) == work.number;
        if !(alone && next) {
            self.n_violations.fetch_add(1, Ordering::Relaxed);
        }
        match work.load {
            Load::Nothing => {}
            Load::Compute(steps) => compute(steps),
            Load::Wait(time) => after(time).await,
        }
        work.key.running.store(false, Ordering::SeqCst);
        match &work.then {
            Then::Tell(port, sent_at) => port.handled(*sent_at),
            Then::Again if self.stopping.load(Ordering::Relaxed) => {}
            Then::Again => self.send(&work.key, work.load, Then::Again),
        }
        exchange.acknowledge();
        Handled::Succeeded
    }
}

pub(crate) struct Stage {
    strategy: Strategy,
    kind: Arc<Dispatcher<Kind>>,
    runtime: Runtime,
}

impl Stage {
    /// A running dispatcher with this strategy.
    pub(crate) fn new(strategy: Strategy, setup: Setup) -> Self {
        let types: Vec<_> =
            (0..setup.types).map(|n| NamedAggregate::new("bench", format!("type-{n}"))).collect();
        let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
        let (stopping, n_violations) = (AtomicBool::new(false), AtomicU64::new(0));
        let kind = Kind { types, bus: Arc::clone(&bus), stopping, n_violations };
        let execution = match strategy {
            Strategy::Keyed => Execution::Keyed,
            Strategy::Grouped => Execution::Grouped {
                supplier: Arc::new(DefaultSchedulerSupplier::new(
                    strategy.name(),
                    NonZeroU16::new(setup.pool).expect("a pool has a thread"),
                )),
                groups: setup.groups.and_then(NonZeroU32::new).map_or_else(Groups::default, Groups::new),
            },
        };
        let kind = Arc::new(Dispatcher::new("bench.Dispatcher", kind, bus).execution(execution));
        let config = Config {
            name: Strategy::Keyed.name().to_owned(),
            workers: setup.workers.into(),
            ..Config::default()
        };
        let runtime = Runtime::builder(KeyedExecutor::new(config).expect("the settings are in range"))
            .quiet_period(Duration::ZERO)
            .component(Start::COMMANDS, Arc::clone(&kind) as Arc<dyn Component>)
            .build()
            .expect("the times are in range");
        finish(runtime.start()).expect("the dispatcher starts");
        Self { strategy, kind, runtime }
    }

    /// The first letters of the names of the threads that it runs on.
    pub(crate) fn threads(&self) -> &'static str {
        self.strategy.name()
    }

    pub(crate) fn named(&self, n: usize) -> NamedAggregate {
        self.kind.kind().types[n]
    }

    /// Keeps so many messages of a new key under way until the stage is taken down.
    pub(crate) fn keep_busy(&self, id: String, n_messages: usize, load: Load) {
        let key = Key::new(self.named(0), id);
        for _ in 0..n_messages {
            self.kind.kind().send(&key, load, Then::Again);
        }
    }

    /// Sends a message whose end `port` is told.
    pub(crate) fn send(&self, key: &Arc<Key>, load: Load, port: &Arc<Port>) {
        self.kind.kind().send(key, load, Then::Tell(Arc::clone(port), now()));
    }

    /// Stops it.
    ///
    /// # Panics
    /// If a message was lost, ran out of order or beside another of its key.
    pub(crate) fn take_down(self) {
        let kind = self.kind.kind();
        kind.stopping.store(true, Ordering::Relaxed);
        let report = finish(self.runtime.stop());
        assert!(report.is_clean(), "{}: {report}", self.strategy);
        let work = self.kind.work().expect("a dispatcher has a ledger");
        assert_eq!(work.accepted, work.handled, "{}: every message is handled", self.strategy);
        assert_eq!(kind.n_violations.load(Ordering::Relaxed), 0, "{}: the order holds", self.strategy);
    }
}
