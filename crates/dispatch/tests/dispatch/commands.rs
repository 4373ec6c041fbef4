//! The pipeline of a command: its order, its failures, and what is stored when (T70 to T73, T75, T79 to T82, CA-1, CA-6 to CA-8).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wow_dispatch::{AggregateFunctions, CommandKind, Dispatcher, InstanceCache};
use wow_message::{AggregateId, Command, CommandUse, Creation, EventStream, Recoverability, Version, codes};
use wow_runtime::{Component, Runtime};
use wow_testkit::{Feed, eventually, finish};
use wow_transport::{Exchange, MessageBus, ReceiveError};

use crate::bank::{
    Account, BROKEN, Change, Explode, Moved, NotedEvents, OnAppend, Open, Recover, ToldStore, account_id,
    moving,
};
use crate::support::{ReceiverScript, ScriptedBus, Steps, execution, noted, runtime_of};

/// A command dispatcher whose commands come from the test, and which takes notes of what happens to them.
pub(crate) struct Desk {
    pub(crate) store: Arc<ToldStore>,
    pub(crate) events: Arc<NotedEvents>,
    pub(crate) steps: Steps,
    pub(crate) failures: Steps,
    dispatcher: Arc<Dispatcher<CommandKind>>,
    feed: Feed<Result<Exchange<Command>, ReceiveError>>,
    runtime: Runtime,
}

impl Desk {
    pub(crate) fn new(cache: InstanceCache) -> Self {
        let (script, feed) = ReceiverScript::<Command>::fed();
        let (steps, failures, store) = (Steps::default(), Steps::default(), Arc::new(ToldStore::default()));
        let events = NotedEvents::new(&steps);
        let functions = AggregateFunctions::of::<Account>("bank")
            .command::<Open>()
            .command::<crate::bank::Move>()
            .command::<Change>()
            .command::<Recover>()
            .command::<Explode>()
            .build();
        let kind = CommandKind::new()
            .aggregate(functions, store.clone(), cache)
            .publish_on(events.clone() as Arc<dyn MessageBus<EventStream>>)
            .on_error({
                let (steps, failures) = (steps.clone(), failures.clone());
                Arc::new(move |_, failure| {
                    steps.note("error-handler");
                    failures.note(failure.code());
                })
            });
        let bus = ScriptedBus::of([script]);
        let dispatcher = Dispatcher::new("bank.CommandDispatcher", kind, bus).execution(execution());
        let dispatcher = Arc::new(dispatcher);
        let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
        finish(runtime.start()).expect("starts");
        Self { store, events, steps, failures, dispatcher, feed, runtime }
    }

    /// Hands a command in and waits until it has ended; its steps are what was noted meanwhile, the ticket aside.
    pub(crate) fn handle(&self, command: Command) -> Vec<String> {
        let before = self.steps.taken().len();
        let ended = |work: wow_runtime::WorkLedger| work.handled + work.failed;
        let work = || self.dispatcher.work().expect("a ledger");
        let n_ended = ended(work());
        self.feed.push(Ok(noted(command, &self.steps)));
        eventually("the command ends", || ended(work()) == n_ended + 1);
        let steps = self.steps.taken().split_off(before);
        steps.into_iter().filter(|step| step != "confirmed").collect()
    }

    /// The code of the failure of the last command, if it failed.
    pub(crate) fn fails(&self, command: Command) -> Option<String> {
        let before = self.failures.taken().len();
        let _steps = self.handle(command);
        self.failures.taken().get(before).cloned()
    }

    pub(crate) fn move_money(&self, amount: i64) -> Command {
        let body = crate::bank::Move { account: "1", amount, steps: self.steps.clone() };
        Command::builder(account_id("1"), body).name("move").build()
    }

    pub(crate) fn open(&self) {
        assert_eq!(self.fails(open("1")), None);
    }

    pub(crate) fn versions(&self) -> Vec<u64> {
        self.store.versions(&account_id("1"))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let report = finish(self.runtime.stop());
            assert!(report.is_clean(), "a failed command never fails the dispatcher: {report}");
            assert!(self.dispatcher.work().expect("a ledger").is_balanced());
        }
    }
}

pub(crate) fn open(id: &'static str) -> Command {
    Command::builder(account_id(id), Open { account: id }).name("open").creation(Creation::Create).build()
}

#[test]
fn a_success_is_processed_acknowledged_and_published_in_this_order() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    let steps = desk.handle(desk.move_money(5));
    assert_eq!(steps, ["process", "acknowledged", "domain-event"]);
    assert_eq!(desk.versions(), [1, 2]);
}

#[test]
fn a_command_without_events_is_processed_and_acknowledged() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.handle(desk.move_money(0)), ["process", "acknowledged"]);
    assert_eq!(desk.versions(), [1]);
}

#[test]
fn a_refused_command_is_acknowledged_and_nothing_of_it_is_stored_or_published() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.handle(desk.move_money(-5)), ["process", "acknowledged", "error-handler"]);
    assert_eq!(desk.failures.taken(), [codes::REFUSED]);
    assert_eq!(desk.versions(), [1]);
}

#[test]
fn a_request_that_was_answered_is_not_handled_again() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    let request = || {
        let body = crate::bank::Move { account: "1", amount: 5, steps: desk.steps.clone() };
        Command::builder(account_id("1"), body).name("move").request_id("r-1").build()
    };
    assert_eq!(desk.handle(request()), ["process", "acknowledged", "domain-event"]);
    assert_eq!(desk.handle(request()), ["acknowledged", "error-handler"]);
    assert_eq!(desk.failures.taken(), [codes::DUPLICATE_REQUEST_ID]);
    assert_eq!(desk.versions(), [1, 2]);
}

#[test]
fn a_redelivered_command_is_stored_once() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    let command = desk.move_money(5);
    assert_eq!(desk.fails(command.clone()), None);
    assert_eq!(desk.fails(command).as_deref(), Some(codes::DUPLICATE_REQUEST_ID));
    assert_eq!(desk.versions(), [1, 2]);
    assert_eq!(desk.fails(desk.move_money(-5)), None, "the balance is that of one payment");
    assert_eq!(desk.fails(desk.move_money(-1)).as_deref(), Some(codes::REFUSED));
}

#[test]
fn a_failing_event_bus_fails_the_command_whose_events_are_stored() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    desk.events.fails.store(true, Ordering::SeqCst);
    let steps = desk.handle(desk.move_money(5));
    assert_eq!(steps, ["process", "acknowledged", "domain-event", "error-handler"]);
    assert_eq!(desk.failures.taken(), [codes::INFRASTRUCTURE]);
    assert_eq!(desk.versions(), [1, 2], "a failure is no proof that nothing was stored");
}

#[test]
fn a_void_command_is_acknowledged_and_never_handled() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    let before = desk.steps.taken().len();
    let body = moving("1", 5);
    let void = Command::builder(account_id("1"), body).usage(CommandUse::Void).build();
    desk.feed.push(Ok(noted(void, &desk.steps)));
    eventually("it is dropped", || desk.steps.taken().len() == before + 2);
    assert_eq!(desk.steps.taken()[before..], ["acknowledged", "rejected"]);
    assert_eq!(desk.versions(), [1]);
}

#[test]
fn a_create_does_not_load_and_others_load_once() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.store.steps.count("load"), 0, "a create starts from an empty state");
    for _ in 0..3 {
        assert_eq!(desk.fails(desk.move_money(1)), None);
    }
    assert_eq!(desk.store.steps.count("load"), 0, "the state is kept between commands");

    let uncached = Desk::new(InstanceCache::Off);
    uncached.open();
    for _ in 0..3 {
        assert_eq!(uncached.fails(uncached.move_money(1)), None);
    }
    assert_eq!(uncached.store.steps.count("load"), 3);
    assert_eq!(uncached.versions(), [1, 2, 3, 4]);
}

#[test]
fn a_cache_of_any_size_gives_the_same_results() {
    for cache in [InstanceCache::Off, InstanceCache::Bounded(1), InstanceCache::Bounded(100)] {
        let desk = Desk::new(cache);
        let ids: Vec<_> =
            (0..50).map(|n| AggregateId::new(crate::bank::account(), format!("a-{n}"))).collect();
        for id in &ids {
            let create =
                Command::builder(id.clone(), Open { account: "" }).creation(Creation::Create).build();
            assert_eq!(desk.fails(create), None);
        }
        for round in 2..6 {
            for id in &ids {
                assert_eq!(desk.fails(Command::builder(id.clone(), moving("", 1)).build()), None);
                assert_eq!(desk.store.versions(id).last(), Some(&round), "{cache:?}");
            }
        }
    }
}

#[test]
fn a_second_create_is_a_duplicate_and_leaves_the_state_as_it_is() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.fails(desk.move_money(5)), None);
    assert_eq!(desk.fails(open("1")).as_deref(), Some(codes::DUPLICATE_AGGREGATE_ID));
    assert_eq!(desk.fails(desk.move_money(-5)), None);
    assert_eq!(desk.versions(), [1, 2, 3]);
}

#[test]
fn a_kept_state_that_another_writer_has_overtaken_decides_again_on_the_latest() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.fails(desk.move_money(5)), None);

    // A decision with events: the append finds the version taken.
    desk.store.append_elsewhere(account_id("1"), 3, 100);
    assert_eq!(desk.fails(desk.move_money(-3)), None);
    assert_eq!(desk.versions(), [1, 2, 3, 4]);

    // A refusal: nothing is appended, so the store's last version tells.
    desk.store.append_elsewhere(account_id("1"), 5, 1_000);
    assert_eq!(desk.fails(desk.move_money(-1_000)), None, "refused on the old state, accepted on the latest");
    assert_eq!(desk.versions(), [1, 2, 3, 4, 5, 6]);

    // A guard: the account was deleted elsewhere.
    let deletion = EventStream::builder(account_id("1"), Version::new(7))
        .event("deleted", wow_eventsourcing::LifecycleEvent::Deleted)
        .build()
        .expect("an event");
    let appended = wow_eventsourcing::EventStore::append(&desk.store.inner, deletion).into_ready();
    appended.expect("at once").expect("the version is free");
    assert_eq!(desk.fails(desk.move_money(0)).as_deref(), Some(codes::ILLEGAL_ACCESS_DELETED));
}

#[test]
fn an_append_that_wrote_and_reported_a_failure_counts_as_written() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    desk.store.tell(OnAppend::WriteAndFail);
    let before = desk.store.steps.count("append");
    assert_eq!(desk.handle(desk.move_money(5)), ["process", "acknowledged", "domain-event"]);
    assert_eq!(desk.store.steps.count("append"), before + 1, "appended once");
    assert_eq!(desk.fails(desk.move_money(-5)), None);
    assert_eq!(desk.versions(), [1, 2, 3]);
}

#[test]
fn an_append_that_failed_without_writing_is_tried_once_more_if_that_can_help() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    desk.store.tell(OnAppend::Fail(Recoverability::Recoverable));
    assert_eq!(desk.handle(desk.move_money(5)), ["process", "acknowledged", "domain-event"]);
    assert_eq!(desk.versions(), [1, 2]);

    desk.store.tell(OnAppend::Fail(Recoverability::Unrecoverable));
    assert_eq!(desk.handle(desk.move_money(7)), ["process", "acknowledged", "error-handler"]);
    assert_eq!(desk.versions(), [1, 2], "nothing stored, nothing published");
    assert_eq!(desk.fails(desk.move_money(-6)).as_deref(), Some(codes::REFUSED), "nothing applied either");
}

#[test]
fn a_panicking_decision_fails_its_command_and_the_aggregate_goes_on() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.fails(desk.move_money(5)), None);
    let explode = Command::builder(account_id("1"), Explode { account: "1" }).build();
    assert_eq!(desk.handle(explode), ["acknowledged", "error-handler"]);
    assert_eq!(desk.failures.taken(), [codes::HANDLER_PANICKED]);
    assert_eq!(desk.fails(desk.move_money(-5)), None);
}

#[test]
fn events_that_cannot_be_applied_are_not_stored_and_the_state_is_loaded_afresh() {
    let desk = Desk::new(InstanceCache::default());
    desk.open();
    assert_eq!(desk.handle(desk.move_money(BROKEN)), ["process", "acknowledged", "error-handler"]);
    assert_eq!(desk.failures.taken(), [codes::HANDLER_PANICKED]);
    assert_eq!(desk.versions(), [1], "nothing is stored, nothing published");
    assert_eq!(desk.store.steps.count("load"), 0);
    assert_eq!(desk.fails(desk.move_money(5)), None);
    assert_eq!(desk.store.steps.count("load"), 1, "the state that failed never decides again");
}

#[test]
fn a_stream_carries_the_owner_and_space_of_its_aggregate() {
    let desk = Desk::new(InstanceCache::default());
    let open = Command::builder(account_id("1"), Open { account: "1" });
    assert_eq!(desk.fails(open.creation(Creation::Create).owner("ann").space("s").build()), None);
    assert_eq!(desk.fails(desk.move_money(5)), None);
    let last = wow_eventsourcing::EventStore::last(&desk.store.inner, &account_id("1")).into_ready();
    let last = last.expect("at once").expect("loads").expect("a stream");
    assert_eq!((last.owner().as_str(), last.space().as_str()), ("ann", "s"));
    assert_eq!(last.events()[0].body_as::<Moved>(), Some(&Moved(5)));
}
