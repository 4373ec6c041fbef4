//! What an operator sees of a service: a handler that holds its thread is told with aggregate, handler and message; live and
//! hot aggregates are listed; figures are labelled; notices of the configuration are logged. On the keyed executor only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use keyed_executor::{Config, KeyedExecutor, MailboxState};
use wow_dispatch::{
    AggregateCommand, CommandMode, DispatchConfig, Doing, Event, Events, FunctionName, Handle, HandlerName,
    Processed, Service, ServiceBuilder, Strategy, StuckHandler,
};
use wow_eventsourcing::{Aggregate, AggregateEvent, MemoryEventStore};
use wow_message::{AggregateId, Name, NamedAggregate};
use wow_runtime::{Component, Runtime, Stage};
use wow_testkit::{Latch, Log, PATIENCE, eventually, finish};
use wow_transport::{Capacity, MemoryBus};

use crate::support;

/// An aggregate that blocks its thread where it is told to.
#[derive(Default)]
struct Door;

struct Touched;

/// Waits for a latch, holding its thread.
struct Block {
    door: &'static str,
    until: Latch,
}

struct Touch {
    door: &'static str,
}

impl AggregateEvent for Touched {
    fn name(&self) -> &'static str {
        "touched"
    }
}

impl Aggregate for Door {
    const NAME: &'static str = "door";
    type Event = Touched;
    type Error = std::fmt::Error;
    fn apply(&mut self, _: &Touched) {}
}

impl AggregateCommand for Block {
    type Aggregate = Door;
    const NAME: &'static str = "block";
    const MODE: CommandMode = CommandMode::CreateOrUpdate;
    fn aggregate_id(&self) -> Name {
        Name::from(self.door)
    }
}

impl AggregateCommand for Touch {
    type Aggregate = Door;
    const NAME: &'static str = "touch";
    const MODE: CommandMode = CommandMode::CreateOrUpdate;
    fn aggregate_id(&self) -> Name {
        Name::from(self.door)
    }
}

impl Handle<Block> for Door {
    type Reply = ();
    fn handle(&self, command: &Block, events: &mut Events<Touched>) -> Result<(), std::fmt::Error> {
        command.until.wait();
        events.push(Touched);
        Ok(())
    }
}

impl Handle<Touch> for Door {
    type Reply = ();
    fn handle(&self, _: &Touch, events: &mut Events<Touched>) -> Result<(), std::fmt::Error> {
        events.push(Touched);
        Ok(())
    }
}

/// What is stuck is named soon; one worker, so that what goes on beside it goes on by rescue.
fn config() -> Config {
    Config { workers: 1, stuck_after: Some(Duration::from_millis(10)), ..Config::default() }
}

fn builder() -> ServiceBuilder {
    Service::builder("house")
        .aggregate::<Door>(|door| door.command::<Block>().command::<Touch>())
        .store(MemoryEventStore::new())
        .config(config())
        .quiet_period(Duration::ZERO)
}

/// With a hook that passes on what it is told.
fn told(builder: ServiceBuilder) -> (ServiceBuilder, Receiver<StuckHandler>) {
    let (sender, told) = channel();
    (builder.on_stuck(move |stuck| sender.send(stuck.clone()).expect("the test listens")), told)
}

/// The next that is told of this handler: on a busy machine one that was only preempted may be told of too.
fn next_of(told: &Receiver<StuckHandler>, handler: &HandlerName) -> (StuckHandler, Doing) {
    loop {
        let stuck = told.recv_timeout(PATIENCE).expect("somebody is told");
        match stuck.doing.clone() {
            Some(doing) if doing.handler == *handler => return (stuck, doing),
            _ => {}
        }
    }
}

/// How often this handler is told from here on, once its service is gone.
fn more_of(told: &Receiver<StuckHandler>, handler: &HandlerName) -> usize {
    told.iter().filter(|stuck| stuck.doing.as_ref().is_some_and(|doing| doing.handler == *handler)).count()
}

fn id(door: &'static str) -> AggregateId {
    AggregateId::new(NamedAggregate::new("house", "door"), door)
}

#[test]
fn a_handler_that_holds_its_thread_is_told_once_with_aggregate_command_and_message() {
    let (builder, told) = told(builder());
    let running = finish(builder.build().expect("a valid service").start()).expect("starts");
    let until = Latch::new();
    let blocked = finish(async { running.send(Block { door: "front", until: until.clone() }).await });
    let blocked = blocked.expect("sent");
    let waiting = finish(async { running.send(Touch { door: "front" }).await }).expect("sent");
    // The other aggregate goes on beside it, on a spare thread.
    finish(running.send(Touch { door: "back" }).wait_for(Processed)).expect("handled");

    let block = HandlerName::Message("block".into());
    let (stuck, Doing { dispatcher, key, message, .. }) = next_of(&told, &block);
    assert_eq!(&*dispatcher, "house.CommandDispatcher");
    assert_eq!(key, *id("front").key());
    assert_eq!(message, blocked.command_id());
    let text = stuck.to_string();
    assert!(text.starts_with("block of house.door/front (house.CommandDispatcher), message "), "{text}");

    let seen = running.inspect(10);
    let mailbox = seen.mailboxes.first().expect("one is stuck");
    assert_eq!(mailbox.key, "AggregateKey(house.door/front)");
    assert_eq!(mailbox.dispatch, "house.CommandDispatcher");
    assert!(matches!(mailbox.state, MailboxState::Running | MailboxState::Detached), "{mailbox}");
    assert_eq!(mailbox.queued, 1, "and one waits behind it");

    let metrics = running.metrics();
    assert!(metrics.executor.monitor.named >= 1);
    let commands = metrics.receivers_of("house.CommandDispatcher").next().expect("one receiver");
    assert!(commands.in_flight >= 2 && commands.oldest_unfinished > Some(Duration::ZERO), "{commands:?}");
    eventually("two are under way", || running.metrics().dispatchers[0].work.in_flight == 2);

    until.release();
    finish(blocked).expect("handled");
    finish(waiting).expect("handled");
    assert!(finish(running.stop()).is_clean());
    drop(running);
    assert_eq!(more_of(&told, &block), 0, "told once");
}

#[test]
fn an_event_function_that_holds_its_thread_is_told_by_its_name_whether_it_is_awaited_or_not() {
    for awaited in [false, true] {
        let until = Latch::new();
        let (at_once, later) = (until.clone(), until.clone());
        let builder = builder()
            .projection("quick", |p| p.each(|_: &Event<Door>| ()).on(|_: Event<Door>| async {}))
            .projection("slow", |p| {
                p.each(move |_: &Event<Door>| {
                    if !awaited {
                        at_once.wait();
                    }
                })
                .on(move |_: Event<Door>| {
                    let later = later.clone();
                    async move {
                        // Not at its first poll: whoever polls it again still knows what it polls.
                        wow_testkit::after(Duration::ZERO).await;
                        if awaited {
                            later.wait();
                        }
                    }
                })
            });
        let (builder, told) = told(builder);
        let running = finish(builder.build().expect("a valid service").start()).expect("starts");
        finish(running.send(Touch { door: "front" }).wait_for(Processed)).expect("handled");
        let function = if awaited { "door-2" } else { "door" };
        let name =
            FunctionName { context: "house".into(), processor: "slow".into(), function: function.into() };
        let slow = HandlerName::Function(name);
        let (_, Doing { dispatcher, key, .. }) = next_of(&told, &slow);
        assert_eq!(&*dispatcher, "house.ProjectionDispatcher");
        assert_eq!(key, *id("front").key());
        until.release();
        assert!(finish(running.stop()).is_clean());
        drop(running);
        assert_eq!(more_of(&told, &slow), 0, "told once");
    }
}

#[test]
fn the_aggregate_that_most_commands_are_for_is_told_as_hot() {
    let running = finish(builder().build().expect("a valid service").start()).expect("starts");
    // One message in about 128 is looked at.
    eventually("it is found", || {
        for _ in 0..256 {
            finish(running.send(Touch { door: "front" }).wait_for(Processed)).expect("handled");
        }
        !running.hot_keys(1).is_empty()
    });
    let hot = running.hot_keys(10);
    assert_eq!(hot.len(), 1);
    assert_eq!(hot[0].key, "AggregateKey(house.door/front)");
    assert_eq!(hot[0].dispatch, "house.CommandDispatcher");
    assert!(finish(running.stop()).is_clean());
}

#[test]
fn an_observer_looks_from_anywhere_and_keeps_no_service_alive() {
    let running = finish(builder().build().expect("a valid service").start()).expect("starts");
    let observer = running.observer();
    finish(running.send(Touch { door: "front" }).wait_for(Processed)).expect("handled");
    let elsewhere = observer.clone();
    let metrics = std::thread::spawn(move || elsewhere.metrics()).join().expect("it can look");
    assert_eq!(metrics.dispatchers[0].work.handled, 1);
    assert!(finish(running.stop()).is_clean());
    assert_eq!(observer.metrics().dispatchers[0].work.handled, 1, "also after it stopped");
    drop(running);
    assert!(observer.metrics().dispatchers.is_empty(), "and of one that is gone nothing is left");
    assert_eq!((observer.inspect(1).live, observer.hot_keys(1).len()), (0, 0));
}

#[test]
fn the_receivers_of_a_dispatcher_with_several_contexts_are_labelled_apart() {
    let bus = Arc::new(MemoryBus::new(Capacity::Unbounded));
    let types = [support::named("a", "thing"), support::named("b", "thing"), support::named("b", "other")];
    let dispatcher = support::Doing::new(types, |_| async { wow_dispatch::Handled::Succeeded }).on(bus);
    let runtime = Runtime::builder(KeyedExecutor::new(config()).expect("a valid configuration"))
        .quiet_period(Duration::ZERO)
        .component(Stage::COMMANDS, dispatcher as Arc<dyn Component>)
        .build()
        .expect("a valid runtime");
    finish(runtime.start()).expect("starts");
    let metrics = runtime.executor().metrics();
    let labels: BTreeSet<_> = metrics.dispatches.iter().map(|dispatch| dispatch.label.as_str()).collect();
    assert_eq!(labels, BTreeSet::from(["test.Doing (a)", "test.Doing (b)"]));
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn the_notices_of_a_configuration_are_logged_once_when_the_service_starts() {
    let log = Log::default();
    let config = DispatchConfig { notices: vec!["a key has no effect".to_owned()], ..config().into() };
    let service = builder().config(config).build().expect("a valid service");
    tracing::subscriber::with_default(log.clone(), || {
        let running = finish(service.start()).expect("starts");
        assert!(finish(running.stop()).is_clean());
    });
    assert_eq!(log.warnings(), ["a key has no effect"]);
}

#[test]
fn a_byte_budget_that_has_no_effect_is_told_once_also_where_no_file_was_read() {
    for told in ["", "wow.toml:3: max-bytes has no effect"] {
        let notices = Some(told.to_owned()).into_iter().filter(|told| !told.is_empty()).collect();
        let mut config: DispatchConfig = config().into();
        (config.strategy, config.max_bytes, config.notices) = (Strategy::Grouped, Some(1_000), notices);
        let log = Log::default();
        let service = builder().config(config).build().expect("a valid service");
        tracing::subscriber::with_default(log.clone(), || {
            let running = finish(service.start()).expect("starts");
            assert!(finish(running.stop()).is_clean());
        });
        let warnings = log.warnings();
        let about: Vec<_> = warnings.iter().filter(|text| text.contains("max-bytes")).collect();
        assert_eq!(about.len(), 1, "{warnings:?}");
    }
}
