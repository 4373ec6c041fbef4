//! Preparing, starting and ending a dispatcher (T53 to T58, T61, T65, T66, T68).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use wow_dispatch::Handled;
use wow_message::Command;
use wow_runtime::{Component, ComponentError, Context, Ending, StartError, StopContext, async_trait};
use wow_testkit::{Counter, Latch, eventually, finish};
use wow_transport::{Capacity, Exchange, MemoryBus, MessageBus, Messages, Ownership, ReceiveError};

use crate::support::{
    Doing, ReceiverScript, ScriptedBus, Steps, id, named, noted, numbered, runtime_of, transport_failure,
};

fn nothing() -> Doing {
    Doing::new([named("test", "thing")], |_| async { Handled::Succeeded })
}

#[test]
fn aggregates_of_two_contexts_have_two_receivers_in_one_group() {
    let (first, _a) = ReceiverScript::<Command>::fed();
    let (second, _b) = ReceiverScript::<Command>::fed();
    let bus = ScriptedBus::of([first, second]);
    let types = [named("shop", "order"), named("bank", "account"), named("shop", "cart")];
    let dispatcher = Doing::new(types, |_| async { Handled::Succeeded }).on(bus.clone());
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    let subscriptions = bus.subscriptions();
    let aggregates: Vec<_> = subscriptions.iter().map(|s| s.aggregates().to_vec()).collect();
    assert_eq!(aggregates, [vec![types[0], types[2]], vec![types[1]]], "one receiver per context, in order");
    for subscription in &subscriptions {
        assert_eq!(subscription.receiver_group(), "test.Doing");
        assert_eq!(subscription.ownership(), Ownership::Runtime);
    }
    assert_eq!(bus.steps.taken(), ["ready 0", "ready 1", "open 0", "open 1"]);
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn a_dispatcher_without_aggregates_subscribes_to_nothing() {
    let bus = ScriptedBus::<Command>::of([]);
    let runtime =
        runtime_of([Doing::new([], |_| async { Handled::Succeeded }).on(bus.clone()) as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    assert!(bus.subscriptions().is_empty());
    assert!(finish(runtime.stop()).is_clean());
}

/// A component that sends while the others are prepared but not started.
struct Early {
    bus: Arc<MemoryBus<Command>>,
}

#[async_trait]
impl Component for Early {
    fn name(&self) -> &str {
        "early"
    }

    async fn prepare(&self, _: Context) -> Result<(), ComponentError> {
        for n in 0..10 {
            self.bus.send(numbered(id("1"), n)).await?;
        }
        assert_eq!(self.bus.n_unobserved(), 0, "the dispatcher is subscribed");
        Ok(())
    }

    fn start(&self) -> Result<(), ComponentError> {
        Ok(())
    }

    fn quiesce(&self) -> Result<(), ComponentError> {
        Ok(())
    }

    async fn stop_gracefully(&self, _: StopContext) -> Result<(), ComponentError> {
        Ok(())
    }

    fn force_stop(&self) -> Result<(), ComponentError> {
        Ok(())
    }
}

/// Notes how much was handled when the dispatcher starts.
struct Before {
    inner: Arc<dyn Component>,
    handled: Counter,
    seen: Arc<std::sync::Mutex<Option<u64>>>,
}

#[async_trait]
impl Component for Before {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn prepare(&self, context: Context) -> Result<(), ComponentError> {
        self.inner.prepare(context).await
    }

    fn start(&self) -> Result<(), ComponentError> {
        *self.seen.lock().expect("not poisoned") = Some(self.handled.get());
        self.inner.start()
    }

    fn quiesce(&self) -> Result<(), ComponentError> {
        self.inner.quiesce()
    }

    async fn stop_gracefully(&self, stop: StopContext) -> Result<(), ComponentError> {
        self.inner.stop_gracefully(stop).await
    }

    fn force_stop(&self) -> Result<(), ComponentError> {
        self.inner.force_stop()
    }
}

#[test]
fn what_is_sent_between_prepare_and_start_waits_and_is_not_lost() {
    let bus = Arc::new(MemoryBus::<Command>::new(Capacity::Unbounded));
    let handled = Counter::new();
    let dispatcher = Doing::new([named("test", "thing")], {
        let handled = handled.clone();
        move |_| {
            handled.add(1);
            async { Handled::Succeeded }
        }
    })
    .on(bus.clone());
    let seen = Arc::default();
    let before = Before { inner: dispatcher, handled: handled.clone(), seen: Arc::clone(&seen) };
    let early = Early { bus };
    let runtime = runtime_of([Arc::new(before) as Arc<dyn Component>, Arc::new(early)]);
    finish(runtime.start()).expect("starts");
    assert_eq!(*seen.lock().expect("not poisoned"), Some(0), "nothing is handled before the start");
    handled.wait_for(10);
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn a_dispatcher_starts_only_prepared_and_starting_twice_is_harmless() {
    let dispatcher = nothing().on(ScriptedBus::of([]));
    let refused = dispatcher.start().expect_err("not prepared");
    assert!(refused.to_string().contains("not prepared"), "{refused}");

    let (script, feed) = ReceiverScript::<Command>::fed();
    let bus = ScriptedBus::of([script]);
    let dispatcher = nothing().on(bus.clone());
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    dispatcher.start().expect("harmless");
    feed.push(Ok(Exchange::new(numbered(id("1"), 1))));
    eventually("the message is handled", || dispatcher.work().expect("a ledger").handled == 1);
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!(bus.steps.count("open 0"), 1);
    dispatcher.start().expect("a stopped one stays stopped");
    assert_eq!(bus.steps.count("open 0"), 1);
}

#[test]
fn a_source_that_has_ended_when_it_is_started_is_no_failure() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    feed.end();
    let bus = ScriptedBus::of([script]);
    let dispatcher = nothing().on(bus.clone());
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    eventually("the gate is revoked", || bus.steps.count("close 0") == 1);
    dispatcher.start().expect("does nothing");
    assert!(finish(runtime.stop()).is_clean());
    assert_eq!(bus.steps.count("close 0"), 1, "revoked exactly once");
}

#[test]
fn a_graceful_stop_finishes_what_runs_and_what_waits() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let (latch, steps) = (Latch::new(), Steps::default());
    let dispatcher = Doing::new([named("test", "thing")], {
        let (latch, steps) = (latch.clone(), steps.clone());
        move |_| {
            let (latch, steps) = (latch.clone(), steps.clone());
            async move {
                latch.released().await;
                steps.note("handled");
                Handled::Succeeded
            }
        }
    })
    .on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..10 {
        feed.push(Ok(Exchange::new(numbered(id("1"), n))));
    }
    eventually("all are admitted", || dispatcher.work().expect("a ledger").accepted == 10);
    let stopping = runtime.stop();
    assert_eq!(steps.count("handled"), 0);
    latch.release();
    let report = finish(stopping);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.ending, Ending::Drained);
    let work = dispatcher.work().expect("a ledger");
    assert_eq!((work.accepted, work.handled, work.discarded, work.in_flight), (10, 10, 0, 0));
}

#[test]
fn a_forced_stop_drops_what_runs_and_what_waits_and_accounts_for_it() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let never = Latch::new();
    let dispatcher = Doing::new([named("test", "thing")], {
        let never = never.clone();
        move |exchange: Exchange<Command>| {
            let never = never.clone();
            async move {
                never.released().await;
                drop(exchange);
                Handled::Succeeded
            }
        }
    })
    .on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..10 {
        feed.push(Ok(Exchange::new(numbered(id("1"), n))));
    }
    eventually("all are admitted", || dispatcher.work().expect("a ledger").accepted == 10);
    let report = finish(runtime.force_stop());
    assert_eq!(report.ending, Ending::Forced);
    eventually("every message is accounted for", || {
        let work = dispatcher.work().expect("a ledger");
        work.is_balanced() && work.discarded == 10 && work.in_flight == 0
    });
}

/// A subscription whose end blocks until it is released.
struct Stubborn {
    gate: Latch,
    dropped: Arc<AtomicBool>,
}

impl Stream for Stubborn {
    type Item = Result<Exchange<Command>, ReceiveError>;

    fn poll_next(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

impl Drop for Stubborn {
    fn drop(&mut self) {
        self.gate.wait();
        self.dropped.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_subscription_that_does_not_end_holds_up_neither_a_stop_nor_a_force() {
    for force in [false, true] {
        let (gate, dropped) = (Latch::new(), Arc::new(AtomicBool::new(false)));
        let stubborn = Stubborn { gate: gate.clone(), dropped: dropped.clone() };
        let bus = ScriptedBus::of([ReceiverScript::over(Messages::new(stubborn))]);
        let runtime = runtime_of([nothing().on(bus) as Arc<dyn Component>]);
        finish(runtime.start()).expect("starts");
        let report = if force { finish(runtime.force_stop()) } else { finish(runtime.stop()) };
        assert!(report.failure.is_none(), "{report}");
        assert!(!dropped.load(Ordering::SeqCst), "the subscription is still ending");
        gate.release();
        eventually("the subscription ends", || dropped.load(Ordering::SeqCst));
    }
}

#[test]
fn a_source_that_fails_stops_the_runtime_with_its_error() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let dispatcher = nothing().on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    feed.push(Err(transport_failure("the broker is gone")));
    let report = finish(runtime.termination());
    assert!(
        report.failure.as_ref().expect("it failed").to_string().contains("the broker is gone"),
        "{report}"
    );
}

#[test]
fn a_gate_that_cannot_be_revoked_when_the_source_ends_fails_the_runtime() {
    let (mut script, feed) = ReceiverScript::<Command>::fed();
    script.close = Box::new(|| Err(transport_failure("the gate is stuck")));
    let runtime = runtime_of([nothing().on(ScriptedBus::of([script])) as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    feed.end();
    let report = finish(runtime.termination());
    assert!(
        report.failure.as_ref().expect("it failed").to_string().contains("the gate is stuck"),
        "{report}"
    );
}

#[test]
fn a_receiver_that_does_not_open_fails_the_start_and_the_next_is_not_opened() {
    let (mut first, _a) = ReceiverScript::<Command>::fed();
    first.open = Box::new(|| Err(transport_failure("no permission")));
    let (second, _b) = ReceiverScript::<Command>::fed();
    let bus = ScriptedBus::of([first, second]);
    let types = [named("a", "thing"), named("b", "thing")];
    let dispatcher = Doing::new(types, |_| async { Handled::Succeeded }).on(bus.clone());
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    let failed = finish(runtime.start()).expect_err("the start fails");
    assert!(
        matches!(&failed, StartError::Failed { .. }) && failed.to_string().contains("no permission"),
        "{failed}"
    );
    assert_eq!(bus.steps.count("open 1"), 0);
    assert_eq!((bus.steps.count("close 0"), bus.steps.count("close 1")), (1, 1), "both are rolled back");
}

#[test]
fn a_child_that_fails_while_the_dispatcher_starts_keeps_the_next_from_being_opened() {
    let (mut first, feed) = ReceiverScript::<Command>::fed();
    feed.push(Err(transport_failure("the broker is gone")));
    let gate = Arc::new(std::sync::Mutex::new(None::<wow_runtime::ActivityGate>));
    first.open = Box::new({
        let gate = gate.clone();
        move || {
            // The start goes on only after the first child has reported its failure.
            eventually("the failure is reported", || {
                gate.lock().expect("not poisoned").as_ref().is_some_and(wow_runtime::ActivityGate::is_closed)
            });
            Ok(())
        }
    });
    let (second, _b) = ReceiverScript::<Command>::fed();
    let bus = ScriptedBus::of([first, second]);
    let types = [named("a", "thing"), named("b", "thing")];
    let dispatcher = Doing::new(types, |_| async { Handled::Succeeded }).on(bus.clone());
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    *gate.lock().expect("not poisoned") = Some(runtime.activities().clone());
    let failed = finish(runtime.start()).expect_err("the start fails");
    assert!(failed.to_string().contains("the broker is gone"), "{failed}");
    assert_eq!(bus.steps.count("open 1"), 0, "the second receiver is not opened");
    assert_eq!((bus.steps.count("close 0"), bus.steps.count("close 1")), (1, 1), "both are rolled back");
}

#[test]
fn a_force_of_the_dispatcher_alone_drops_its_messages_while_the_executor_goes_on() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let never = Latch::new();
    let dispatcher = Doing::new([named("test", "thing")], {
        let never = never.clone();
        move |_| {
            let never = never.clone();
            async move {
                never.released().await;
                Handled::Succeeded
            }
        }
    })
    .on(ScriptedBus::of([script]));
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    for n in 0..10 {
        feed.push(Ok(Exchange::new(numbered(id("1"), n))));
    }
    eventually("all are admitted", || dispatcher.work().expect("a ledger").accepted == 10);
    dispatcher.force_stop().expect("forces");
    dispatcher.force_stop().expect("repeatable");
    eventually("every message is dropped", || dispatcher.work().expect("a ledger").discarded == 10);
    eventually("no activity is left", || runtime.activities().active() == 0);
    assert!(finish(runtime.stop()).is_clean());
}

#[test]
fn a_force_returns_while_a_receiver_is_still_opening() {
    let (opening, gate) = (Latch::new(), Latch::new());
    let (mut script, feed) = ReceiverScript::<Command>::fed();
    script.open = Box::new({
        let (opening, gate) = (opening.clone(), gate.clone());
        move || {
            opening.release();
            gate.wait();
            Ok(())
        }
    });
    let steps = Steps::default();
    let runtime = Arc::new(runtime_of([nothing().on(ScriptedBus::of([script])) as Arc<dyn Component>]));
    let starting = std::thread::spawn({
        let runtime = runtime.clone();
        move || finish(runtime.start()).is_err()
    });
    opening.wait();
    let forced = runtime.force_stop();
    assert!(runtime.activities().is_closed(), "the force returned while the receiver is opening");
    feed.push(Ok(noted(numbered(id("1"), 1), &steps)));
    gate.release();
    assert!(starting.join().expect("no panic"), "the start did not succeed");
    assert_eq!(finish(forced).ending, Ending::Forced);
    assert_eq!(steps.count("confirmed"), 0, "nothing is admitted after the force");
}

#[test]
fn every_receiver_is_suspended_even_if_one_fails() {
    let (mut first, _a) = ReceiverScript::<Command>::fed();
    first.suspend = Box::new(|| Err(transport_failure("no answer")));
    let (second, _b) = ReceiverScript::<Command>::fed();
    let bus = ScriptedBus::of([first, second]);
    let types = [named("a", "thing"), named("b", "thing")];
    let dispatcher = Doing::new(types, |_| async { Handled::Succeeded }).on(bus.clone());
    dispatcher.suspend_durable_intake().expect("nothing to suspend before it is prepared");
    let runtime = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(runtime.start()).expect("starts");
    let failed = dispatcher.suspend_durable_intake().expect_err("one failed");
    assert!(failed.to_string().contains("no answer"), "{failed}");
    assert_eq!((bus.steps.count("suspend 0"), bus.steps.count("suspend 1")), (1, 1));
    finish(runtime.force_stop());
    dispatcher.suspend_durable_intake().expect("nothing to suspend after a force");
    assert_eq!(bus.steps.count("suspend 1"), 1);
}

#[test]
fn a_force_before_prepare_is_final() {
    let bus = ScriptedBus::<Command>::of([]);
    let dispatcher = nothing().on(bus.clone());
    dispatcher.force_stop().expect("safe before prepare");
    let runtime = runtime_of([dispatcher as Arc<dyn Component>]);
    let refused = finish(runtime.start()).expect_err("it stays stopped");
    assert!(refused.to_string().contains("stopped"), "{refused}");
    assert!(bus.subscriptions().is_empty(), "nothing is subscribed");
}

#[test]
fn a_dispatcher_is_prepared_once() {
    let (script, _feed) = ReceiverScript::<Command>::fed();
    let dispatcher = nothing().on(ScriptedBus::of([script]));
    let first = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    finish(first.start()).expect("starts");
    let second = runtime_of([dispatcher.clone() as Arc<dyn Component>]);
    let refused = finish(second.start()).expect_err("prepared before");
    assert!(refused.to_string().contains("prepared once"), "{refused}");
    finish(first.stop());
}

#[test]
fn a_handler_that_would_block_on_the_stop_of_its_own_runtime_is_refused() {
    let (script, feed) = ReceiverScript::<Command>::fed();
    let runtime = Arc::new(std::sync::OnceLock::<wow_runtime::Runtime>::new());
    let refused = Steps::default();
    let dispatcher = Doing::new([named("test", "thing")], {
        let (runtime, refused) = (runtime.clone(), refused.clone());
        move |_| {
            let (runtime, refused) = (runtime.clone(), refused.clone());
            async move {
                match runtime.get().expect("there is a runtime").stop_blocking() {
                    Err(error) => refused.note(error.to_string()),
                    Ok(report) => refused.note(format!("stopped: {report}")),
                }
                Handled::Succeeded
            }
        }
    })
    .on(ScriptedBus::of([script]));
    let runtime = runtime.get_or_init(|| runtime_of([dispatcher as Arc<dyn Component>]));
    finish(runtime.start()).expect("starts");
    feed.push(Ok(Exchange::new(numbered(id("1"), 1))));
    eventually("the handler was answered", || refused.taken().len() == 1);
    assert_eq!(refused.taken(), ["a thread that runs handlers may not block on a stop"]);
    assert!(runtime.is_running(), "the stop is not begun");
    assert!(finish(runtime.stop()).is_clean());
}
