//! What only the groups do: whose threads run, who waits for whom, who stops the pools, and what is refused (LS-1, LS-7 to
//! LS-9, LS-11, LS-12).

use std::num::NonZeroU16;
use std::sync::Arc;
use std::thread;

use wow_aggregate_scheduler::{
    Borrowed, DefaultSchedulerSupplier, Scheduler, SchedulerSupplier, SupplierStopped, Termination,
};
use wow_dispatch::{Dispatcher, Event, Execution, Handled, Processed, Service};
use wow_eventsourcing::MemoryEventStore;
use wow_message::{AggregateId, Command, NamedAggregate};
use wow_runtime::{Component, Ending, Runtime, Stage};
use wow_testkit::{Counter, Latch, eventually, finish};
use wow_transport::{Exchange, MessageBus};

use crate::bank::{Account, Move, Open};
use crate::support::{
    Doing, ReceiverScript, ScriptedBus, Steps, config, groups, id, named, number, numbered, runtime_of,
};

/// Two ids with one hash, so that they share their group however many there are.
const COLLIDING: [&str; 2] = ["Aa", "BB"];

fn supplier() -> Arc<DefaultSchedulerSupplier> {
    Arc::new(DefaultSchedulerSupplier::new("owned", NonZeroU16::MIN.saturating_add(1)))
}

/// A dispatcher like those of the other files, on the pools of this supplier.
fn on(
    supplier: Arc<dyn SchedulerSupplier>,
    kind: Doing,
    bus: Arc<dyn MessageBus<Command>>,
) -> Dispatcher<Doing> {
    Dispatcher::new("test.Doing", kind, bus).execution(Execution::Grouped { supplier, groups: groups() })
}

fn of_account() -> wow_aggregate_scheduler::NamedAggregate<'static> {
    wow_aggregate_scheduler::NamedAggregate { context: "test", aggregate: "thing" }
}

#[test]
fn commands_and_projections_run_on_pools_of_their_own() {
    let (refusals, views) = (Steps::default(), Steps::default());
    let (of_commands, of_views) = (refusals.clone(), views.clone());
    let here = || thread::current().name().unwrap_or_default().to_owned();
    let service = Service::builder("bank")
        .aggregate::<Account>(|a| a.command::<Open>().command::<Move>())
        .projection("threads", move |p| p.each(move |_: &Event<Account>| of_views.note(here())))
        .on_command_error(Arc::new(move |_, _| of_commands.note(here())))
        .store(MemoryEventStore::new())
        .config(config())
        .quiet_period(std::time::Duration::ZERO)
        .build()
        .expect("a valid service");
    let running = finish(service.start()).expect("starts");
    finish(async { running.send(Open { account: "1" }).wait_for(Processed).await }).expect("opened");
    let overdrawn = Move { account: "1", amount: -1, steps: Steps::default() };
    finish(async { running.send(overdrawn).wait_for(Processed).await }).expect_err("refused");
    assert!(finish(running.stop()).is_clean());
    let (refusals, views) = (refusals.taken(), views.taken());
    let on = |threads: &[String], pool: &str| threads.len() == 1 && threads[0].starts_with(pool);
    assert!(on(&refusals, "bank.CommandDispatcher-account-"), "{refusals:?}");
    assert!(on(&views, "bank.ProjectionDispatcher-account-"), "{views:?}");
}

#[test]
fn ids_of_one_group_wait_for_each_other_and_others_do_not() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let (latch, steps, handled) = (Latch::new(), Steps::default(), Counter::new());
    let dispatcher = Doing::new([named("test", "thing")], {
        let (latch, steps, handled) = (latch.clone(), steps.clone(), handled.clone());
        move |exchange: Exchange<Command>| {
            let (latch, steps, handled) = (latch.clone(), steps.clone(), handled.clone());
            async move {
                let id = exchange.message().aggregate_id().id().to_string();
                if id == COLLIDING[0] {
                    latch.released().await;
                }
                steps.note(id);
                handled.add(1);
                Handled::Succeeded
            }
        }
    })
    .on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for (n, id) in (0..).zip([COLLIDING[0], COLLIDING[1], "another"]) {
        feed.push(Ok(Exchange::new(numbered(crate::support::id(id), n))));
    }
    handled.wait_for(1);
    assert_eq!(steps.taken(), ["another"], "the head of the line holds up its group only");
    latch.release();
    handled.wait_for(3);
    assert_eq!(steps.taken(), ["another", COLLIDING[0], COLLIDING[1]]);
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn keys_of_a_type_that_is_not_received_keep_their_order() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let steps = Steps::default();
    let foreign = AggregateId::new(named("elsewhere", "sum"), "1").key().clone();
    let dispatcher = Doing::new([named("test", "thing"), named("test", "other")], {
        let steps = steps.clone();
        move |exchange: Exchange<Command>| {
            let steps = steps.clone();
            async move {
                let n = number(exchange.message());
                if n % 7 == 0 {
                    wow_testkit::after(std::time::Duration::from_micros(50)).await;
                }
                steps.note(n.to_string());
                Handled::Succeeded
            }
        }
    })
    .keyed_by(move |_| Ok(foreign.clone()))
    .on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..100_u32 {
        let named: NamedAggregate = named("test", if n % 2 == 0 { "thing" } else { "other" });
        feed.push(Ok(Exchange::new(numbered(AggregateId::new(named, n.to_string()), n))));
    }
    eventually("all are handled", || steps.taken().len() == 100);
    assert_eq!(steps.taken(), (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn a_stopped_dispatcher_has_stopped_its_supplier_and_not_one_that_was_lent() {
    #[derive(Clone, Copy, Debug)]
    enum How {
        Stop,
        Force,
    }
    for how in [How::Stop, How::Force] {
        let (own, lent) = (supplier(), supplier());
        let borrowed = Arc::new(Borrowed::of(lent.clone()));
        let mut components: Vec<Arc<dyn Component>> = Vec::new();
        for (n, supplier) in [own.clone() as Arc<dyn SchedulerSupplier>, borrowed].into_iter().enumerate() {
            let (script, feed) = ReceiverScript::<Command>::fed();
            feed.push(Ok(Exchange::new(numbered(id("1"), u32::try_from(n).expect("small")))));
            let kind = Doing::new([named("test", "thing")], |_| async { Handled::Succeeded });
            components.push(Arc::new(on(supplier, kind, ScriptedBus::of([script]))));
        }
        let runtime = runtime_of(components.clone());
        finish(runtime.start()).expect("starts");
        for component in &components {
            eventually("its message is handled", || component.work().expect("a ledger").handled == 1);
        }
        match how {
            How::Stop => assert!(finish(runtime.stop()).is_clean()),
            How::Force => assert!(finish(runtime.force_stop()).failure.is_none()),
        }
        assert!(own.get_or_initialize(of_account()).is_err(), "{how:?}: its own is stopped");
        assert!(lent.get_or_initialize(of_account()).is_ok(), "{how:?}: the other's owner stops it");
    }
}

/// A supplier that notes who stops it, and how.
struct Noted {
    name: &'static str,
    inner: DefaultSchedulerSupplier,
    steps: Steps,
}

impl Noted {
    fn of(name: &'static str, steps: &Steps) -> Arc<Self> {
        let inner = DefaultSchedulerSupplier::new(name, NonZeroU16::MIN);
        Arc::new(Self { name, inner, steps: steps.clone() })
    }
}

impl SchedulerSupplier for Noted {
    fn get_or_initialize(
        &self,
        named: wow_aggregate_scheduler::NamedAggregate<'_>,
    ) -> Result<Arc<Scheduler>, SupplierStopped> {
        self.inner.get_or_initialize(named)
    }

    fn stop_gracefully(&self) -> Termination {
        self.steps.note(format!("stop {}", self.name));
        self.inner.stop_gracefully()
    }

    fn force_stop(&self) {
        self.steps.note(format!("force {}", self.name));
        self.inner.force_stop();
    }
}

/// Two dispatchers with suppliers of their own, the messages of the second held by a latch.
fn owners(steps: &Steps, latch: &Latch) -> [Arc<Dispatcher<Doing>>; 2] {
    ["first", "second"].map(|name| {
        let (script, feed) = ReceiverScript::<Command>::fed();
        for n in 0..3 {
            feed.push(Ok(Exchange::new(numbered(id("1"), n))));
        }
        let (latch, steps_of_handlers) = (latch.clone(), steps.clone());
        let kind = Doing::new([named("test", "thing")], move |exchange: Exchange<Command>| {
            let (latch, steps) = (latch.clone(), steps_of_handlers.clone());
            async move {
                if name == "second" {
                    latch.released().await;
                }
                if number(exchange.message()) == 2 {
                    steps.note(format!("last of {name}"));
                }
                Handled::Succeeded
            }
        });
        Arc::new(on(Noted::of(name, steps), kind, ScriptedBus::of([script])))
    })
}

#[test]
fn each_dispatcher_stops_the_supplier_it_owns_once_after_its_messages_in_reverse_order() {
    let (steps, latch) = (Steps::default(), Latch::new());
    let dispatchers = owners(&steps, &latch);
    let runtime = runtime_of(dispatchers.iter().map(|one| one.clone() as Arc<dyn Component>));
    finish(runtime.start()).expect("starts");
    let accepted = |one: &Dispatcher<Doing>| one.work().expect("a ledger").accepted;
    eventually("all are admitted", || dispatchers.iter().all(|one| accepted(one) == 3));
    let stop = runtime.stop();
    latch.release();
    assert!(finish(stop).is_clean());
    let stops = ["stop second", "stop first"];
    assert_eq!(
        steps.taken().iter().filter(|step| !step.starts_with("last")).collect::<Vec<_>>(),
        stops,
        "each once, and the later component first"
    );
    let at = |step: &str| steps.taken().iter().position(|taken| taken == step).expect("it happened");
    assert!(at("last of second") < at("stop second"), "after its own messages");
    assert!(at("last of first") < at("stop first"));
}

#[test]
fn a_force_stops_every_supplier_that_is_owned_and_drops_what_waits_on_its_pools() {
    let (steps, latch) = (Steps::default(), Latch::new());
    let dispatchers = owners(&steps, &latch);
    let runtime = runtime_of(dispatchers.iter().map(|one| one.clone() as Arc<dyn Component>));
    finish(runtime.start()).expect("starts");
    let [_, second] = &dispatchers;
    let work = || second.work().expect("a ledger");
    eventually("all are admitted", || work().accepted == 3);
    finish(runtime.force_stop());
    assert_eq!((steps.count("stop first"), steps.count("stop second")), (0, 0));
    assert!(steps.count("force first") > 0 && steps.count("force second") > 0, "{:?}", steps.taken());
    assert_eq!(
        (work().discarded, work().in_flight),
        (3, 0),
        "the one that ran is cancelled, two are dropped"
    );
}

#[test]
fn suppliers_that_are_owned_share_the_one_deadline_of_the_stop() {
    let (steps, never) = (Steps::default(), Latch::new());
    let dispatchers = owners(&steps, &never);
    let mut builder = Runtime::builder(crate::support::executor())
        .quiet_period(std::time::Duration::ZERO)
        .shutdown_timeout(std::time::Duration::from_millis(300));
    for one in &dispatchers {
        builder = builder.component(Stage::COMMANDS, one.clone() as Arc<dyn Component>);
    }
    let runtime = builder.build().expect("a valid runtime");
    finish(runtime.start()).expect("starts");
    eventually("all are admitted", || dispatchers[1].work().expect("a ledger").accepted == 3);
    let report = finish(runtime.stop());
    assert_eq!(report.ending, Ending::Forced, "{report}");
    assert_eq!((steps.count("stop first"), steps.count("stop second")), (0, 0), "neither came to its turn");
    assert!(steps.count("force first") > 0 && steps.count("force second") > 0, "{:?}", steps.taken());
}

#[test]
fn a_graceful_stop_ends_every_thread_of_its_pools_before_it_is_told() {
    let own = supplier();
    let (script, feed) = ReceiverScript::<Command>::fed();
    let kind = Doing::new([named("test", "thing")], |_| async { Handled::Succeeded });
    let dispatcher = Arc::new(on(own.clone(), kind, ScriptedBus::of([script])));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    feed.push(Ok(Exchange::new(numbered(id("1"), 1))));
    eventually("it is handled", || dispatcher.work().expect("a ledger").handled == 1);
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!(own.stop_gracefully().ending(), Some(wow_aggregate_scheduler::Ending::Graceful));
}

#[test]
fn a_dispatcher_on_a_supplier_that_was_stopped_fails_the_start_and_says_so() {
    let stopped = supplier();
    finish(stopped.stop_gracefully());
    let bus = ScriptedBus::of([]);
    let kind = Doing::new([named("test", "thing")], |_| async { Handled::Succeeded });
    let runtime = runtime_of([Arc::new(on(stopped, kind, bus.clone())) as Arc<dyn Component>]);
    let failed = finish(runtime.start()).expect_err("there is nothing to run on").to_string();
    assert!(failed.contains("there are no pools to run on: the scheduler supplier is stopped"), "{failed}");
    assert!(bus.subscriptions().is_empty(), "nothing is subscribed");
}

#[test]
fn a_force_drops_the_messages_on_pools_that_were_lent_and_those_of_nobody_else() {
    let owner = supplier();
    let (latch, handled) = (Latch::new(), Counter::new());
    let waiting = || {
        let (latch, handled) = (latch.clone(), handled.clone());
        Doing::new([named("test", "thing")], move |_| {
            let (latch, handled) = (latch.clone(), handled.clone());
            async move {
                latch.released().await;
                handled.add(1);
                Handled::Succeeded
            }
        })
    };
    let mut dispatchers = Vec::new();
    for _ in 0..2 {
        let (script, feed) = ReceiverScript::<Command>::fed();
        for n in 0..10 {
            feed.push(Ok(Exchange::new(numbered(id("1"), n))));
        }
        let lent = Arc::new(Borrowed::of(owner.clone()));
        dispatchers.push(Arc::new(on(lent, waiting(), ScriptedBus::of([script]))));
    }
    let [forced, other] = &dispatchers[..] else { panic!("two dispatchers") };
    let runtime = runtime_of(dispatchers.iter().map(|one| one.clone() as Arc<dyn Component>));
    finish(runtime.start()).expect("starts");
    let work = |one: &Dispatcher<Doing>| one.work().expect("a ledger");
    eventually("all are admitted", || work(forced).accepted + work(other).accepted == 20);
    forced.force_stop().expect("forces");
    eventually("its messages are dropped", || work(forced).discarded == 10 && work(forced).in_flight == 0);
    latch.release();
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!((work(other).handled, handled.get()), (10, 10), "the other one goes on, on the same threads");
    assert_eq!(finish(owner.stop_gracefully()), wow_aggregate_scheduler::Ending::Graceful);
}
