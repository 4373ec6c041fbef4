//! Every accepted message ends once and is accounted for; a failure, a panic or a cancel wedges no group and costs no
//! thread.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::{StreamExt, stream};
use keyed_executor::{Cause, Ledger, OnFailure, Options, WouldBlockWorker};
use wow_aggregate_scheduler::{Ending, Grouped, GroupedDispatch, Route, SchedulerSupplier};
use wow_testkit::{Failure, History, Latch, Message, Script, Seed, Source, finish};

use crate::common::{grouped, groups, supplier};

fn sum(ledger: &Ledger) -> u64 {
    ledger.handled + ledger.failed + ledger.cancelled + ledger.discarded
}

fn never() -> impl Future<Output = Result<(), Failure>> {
    Script::ready().never()
}

#[test]
fn an_empty_source_ends_at_once() {
    let supplier = supplier("empty", 1);
    let none = stream::empty::<Result<&'static str, Infallible>>();
    let dispatch = grouped(&supplier, 1).dispatch(Options::new("empty"), none, |id| id, |_| async { Ok(()) });
    assert_eq!(finish(dispatch).expect("nothing fails"), Ledger::default());
}

#[test]
fn the_first_failure_ends_the_dispatch_and_drops_what_waits() {
    let supplier = supplier("fail", 1);
    let held = Latch::new();
    let messages = (0..5).map(|n| {
        let script = Script::ready().blocks_until(&held);
        Ok::<_, Failure>(if n == 1 { script.fails("no money") } else { script })
    });
    let messages: Vec<_> = messages.collect();
    let (source, feed) = Source::over(messages);
    let dispatch = grouped(&supplier, 1).dispatch(Options::new("fail"), source, |_| "id", |script| script);
    feed.dropped().wait();
    held.release();
    let failed = finish(dispatch).expect_err("the second handler fails");
    assert_eq!(failed.to_string(), "the handler of key group 0 failed: no money");
    let expected = Ledger { accepted: 5, handled: 1, failed: 1, cancelled: 0, discarded: 3 };
    assert_eq!(failed.ledger, expected);
}

/// What can panic in a handler.
#[derive(Clone, Copy, Debug)]
enum Panics {
    Called,
    Polled,
    Dropped,
}

struct Handler(Panics);

impl Future for Handler {
    type Output = Result<(), Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!matches!(self.0, Panics::Polled), "boom");
        Poll::Ready(Ok(()))
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        assert!(!matches!(self.0, Panics::Dropped), "boom");
    }
}

#[test]
fn a_panicking_handler_fails_its_message_and_neither_its_group_nor_its_thread() {
    let supplier = supplier("panic", 1);
    for panics in [Panics::Called, Panics::Polled, Panics::Dropped] {
        for policy in [OnFailure::Continue, OnFailure::Fail] {
            let messages = [true, false].map(Ok::<_, Infallible>);
            let (source, feed) = Source::over(messages);
            let all_there = feed.dropped().clone();
            let dispatch = grouped(&supplier, 1).dispatch(
                Options::new("panic").on_failure(policy),
                source,
                |_| "id",
                move |first| {
                    all_there.wait();
                    assert!(!(first && matches!(panics, Panics::Called)), "boom");
                    let quiet = Panics::Called;
                    Handler(if first { panics } else { quiet })
                },
            );
            match (policy, finish(dispatch)) {
                (OnFailure::Continue, ended) => {
                    let ledger = ended.expect("failures are counted only");
                    assert_eq!((ledger.handled, ledger.failed), (1, 1), "{panics:?}");
                }
                (OnFailure::Fail, ended) => {
                    let failed = ended.expect_err("the first failure ends it");
                    assert_eq!(failed.to_string(), "the handler of key group 0 panicked: boom", "{panics:?}");
                    assert_eq!((failed.ledger.failed, failed.ledger.discarded), (1, 1), "{panics:?}");
                }
            }
        }
    }
}

#[test]
fn a_failing_source_ends_the_dispatch_with_its_error() {
    let supplier = supplier("source", 1);
    let messages = stream::iter([Err(Failure("no broker".to_owned())), Ok("id")]);
    let dispatch = grouped(&supplier, 1).dispatch(Options::new("source"), messages, |id| id, |_| never());
    let failed = finish(dispatch).expect_err("the source fails");
    assert_eq!(failed.to_string(), "the source failed: no broker");
    assert_eq!(failed.ledger.accepted, 0);
}

#[test]
fn a_panicking_source_ends_the_dispatch_and_not_the_source_thread() {
    let supplier = supplier("srcpanic", 1);
    let grouped = grouped(&supplier, 1);
    let panics = stream::poll_fn(|_| -> Poll<Option<Result<&'static str, Failure>>> { panic!("boom") });
    let dispatch = grouped.dispatch(Options::new("panics"), panics, |id| id, |_| never());
    assert_eq!(finish(dispatch).expect_err("it panics").to_string(), "the source panicked: boom");
    let one = stream::iter([Ok::<_, Failure>("id")]);
    let next = grouped.dispatch(Options::new("next"), one, |id| id, |_| Script::ready());
    assert_eq!(finish(next).expect("nothing fails").handled, 1);
}

#[test]
fn a_message_whose_group_cannot_be_told_is_accounted_for() {
    let supplier = supplier("route", 1);
    let grouped = grouped(&supplier, 1);
    let one = || stream::iter([Ok::<_, Failure>("id")]);
    let panics = grouped.dispatch(Options::new("panics"), one(), |_| panic!("no id"), |_| never());
    let elsewhere =
        grouped.dispatch_routed(Options::new("absent"), one(), |id| Route { scheduler: 1, id }, |_| never());
    for (dispatch, text) in [(panics, "no id"), (elsewhere, "there is no scheduler 1")] {
        let failed = finish(dispatch).expect_err("it has no group");
        assert_eq!(failed.to_string(), format!("selecting a message's key panicked: {text}"));
        assert_eq!((failed.ledger.accepted, failed.ledger.discarded), (1, 1));
    }
}

#[test]
fn a_dispatch_over_no_scheduler_says_so() {
    let one = stream::iter([Ok::<_, Failure>("id")]);
    let dispatch = Grouped::over([], groups(1)).dispatch(Options::new("none"), one, |id| id, |_| never());
    let failed = finish(dispatch).expect_err("there is no thread");
    assert_eq!(failed.to_string(), "no worker thread can run it: no scheduler was given");
}

/// A dispatch with one handler that waits for ever, one message behind it, and a source with more to come.
fn stuck(name: &str) -> (GroupedDispatch<Failure>, impl Fn() + use<>) {
    let supplier = supplier(name, 1);
    let (source, feed) = Source::<Result<&'static str, _>>::fed();
    let (started, dropped) = (Latch::new(), Latch::new());
    feed.extend(["id", "id"].map(Ok));
    let dispatch = {
        let (started, dropped) = (started.clone(), dropped.clone());
        grouped(&supplier, 1).dispatch(
            Options::new("stuck"),
            source,
            |id| id,
            move |_| {
                let (started, on_drop) = (started.clone(), ReleaseOnDrop(dropped.clone()));
                async move {
                    let _on_drop = on_drop;
                    started.release();
                    never().await
                }
            },
        )
    };
    started.wait();
    feed.dry().wait_for(1);
    let everything_is_dropped = move || {
        // The supplier would end its dispatch too, so it lives until here.
        dropped.wait();
        feed.dropped().wait();
        assert_eq!(finish(supplier.stop_gracefully()), Ending::Graceful);
    };
    (dispatch, everything_is_dropped)
}

struct ReleaseOnDrop(Latch);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[test]
fn a_cancel_drops_handler_source_and_what_waits() {
    let (dispatch, everything_is_dropped) = stuck("cancel");
    dispatch.cancel();
    dispatch.cancel();
    let cancelled = finish(dispatch).expect_err("it was cancelled");
    assert!(matches!(cancelled.cause, Cause::Cancelled), "{cancelled}");
    let expected = Ledger { accepted: 2, handled: 0, failed: 0, cancelled: 1, discarded: 1 };
    assert_eq!(cancelled.ledger, expected);
    everything_is_dropped();
}

#[test]
fn a_dropped_handle_and_a_canceller_do_the_same() {
    let (dispatch, everything_is_dropped) = stuck("dropped");
    drop(dispatch);
    everything_is_dropped();
    let (dispatch, everything_is_dropped) = stuck("canceller");
    let canceller = dispatch.canceller();
    dispatch.detach();
    canceller.cancel();
    everything_is_dropped();
    canceller.cancel();
}

#[test]
fn a_handler_may_cancel_its_own_dispatch() {
    let supplier = supplier("own", 1);
    let (give, take) = std::sync::mpsc::channel::<wow_aggregate_scheduler::GroupedCanceller>();
    let take = Arc::new(std::sync::Mutex::new(take));
    let (source, feed) = Source::<Result<&'static str, _>>::fed();
    let dispatch = grouped(&supplier, 1).dispatch(
        Options::new("own"),
        source,
        |id| id,
        move |_| {
            let take = Arc::clone(&take);
            async move {
                let canceller = take.lock().expect("one handler").recv().expect("the test gives it");
                canceller.cancel();
                poll_fn(|_| Poll::<()>::Pending).await;
                Ok::<(), Infallible>(())
            }
        },
    );
    give.send(dispatch.canceller()).expect("the handler takes it");
    feed.push(Ok("id"));
    let cancelled = finish(dispatch).expect_err("it cancelled itself");
    assert_eq!((cancelled.ledger.accepted, cancelled.ledger.cancelled), (1, 1));
    feed.dropped().wait();
}

#[test]
fn a_message_whose_group_is_new_to_a_cancelled_dispatch_is_discarded() {
    let supplier = supplier("late", 1);
    let (give, take) = std::sync::mpsc::channel::<wow_aggregate_scheduler::GroupedCanceller>();
    let (source, feed) = Source::<Result<&'static str, Infallible>>::fed();
    // Cancelled between the acceptance of the message and the making of its group.
    let cancels = move || {
        take.recv_timeout(wow_testkit::PATIENCE).expect("the test gives it").cancel();
    };
    let dispatch = grouped(&supplier, 1).dispatch(
        Options::new("late"),
        source,
        move |id| {
            cancels();
            id
        },
        |_| async { Ok::<(), Infallible>(()) },
    );
    give.send(dispatch.canceller()).expect("the source takes it");
    feed.push(Ok("id"));
    let cancelled = finish(dispatch).expect_err("it was cancelled");
    assert!(matches!(cancelled.cause, Cause::Cancelled), "{cancelled}");
    assert_eq!((cancelled.ledger.accepted, cancelled.ledger.discarded), (1, 1));
}

#[test]
fn a_detached_dispatch_goes_on() {
    let supplier = supplier("detach", 1);
    let done = Latch::new();
    let (source, feed) = Source::<Result<&'static str, _>>::fed();
    let finished = done.clone();
    let dispatch = grouped(&supplier, 1).dispatch(
        Options::new("detach"),
        source,
        |id| id,
        move |_| {
            finished.release();
            async { Ok::<(), Infallible>(()) }
        },
    );
    dispatch.detach();
    feed.push(Ok("id"));
    done.wait();
    feed.end();
    feed.dropped().wait();
}

#[test]
fn a_failure_while_a_stop_drains_is_told_instead_of_the_stop() {
    let supplier = supplier("drain", 1);
    let (latch, started) = (Latch::new(), Latch::new());
    let (source, feed) = Source::<Result<&'static str, _>>::fed();
    feed.push(Ok("id"));
    let dispatch = {
        let (latch, started) = (latch.clone(), started.clone());
        grouped(&supplier, 1).dispatch(
            Options::new("drain"),
            source,
            |id| id,
            move |_| {
                started.release();
                Script::ready().until(&latch).fails("too late")
            },
        )
    };
    started.wait();
    let stop = supplier.stop_gracefully();
    feed.dropped().wait();
    latch.release();
    let failed = finish(dispatch).expect_err("the handler fails");
    assert_eq!(failed.to_string(), "the handler of key group 0 failed: too late");
    assert_eq!(finish(stop), Ending::Graceful);
}

#[test]
fn a_wait_for_a_dispatch_on_a_thread_of_a_pool_is_refused_and_cancels_it() {
    let supplier = supplier("nested", 1);
    let inner = grouped(&supplier, 1);
    let outer = grouped(&supplier, 1).dispatch(
        Options::new("outer"),
        stream::iter([Ok::<_, Failure>("id")]),
        |id| id,
        move |_| {
            let endless = stream::pending::<Result<&'static str, Failure>>();
            let nested = inner.dispatch(Options::new("inner"), endless, |id| id, |_| never());
            let refused = nested.wait().expect_err("it would wait for itself");
            async move {
                assert_eq!(refused, WouldBlockWorker);
                Ok(())
            }
        },
    );
    assert_eq!(finish(outer).expect("refused as expected").handled, 1);
    assert_eq!(finish(supplier.stop_gracefully()), Ending::Graceful, "the inner dispatch is gone");
}

#[test]
fn nothing_of_an_ended_dispatch_is_kept() {
    let supplier = supplier("kept", 2);
    let grouped = grouped(&supplier, 8);
    let handlers_state = Arc::new(());
    let watched: Weak<()> = Arc::downgrade(&handlers_state);
    let ids = (0..100).map(|n| Ok::<_, Failure>(format!("id-{n}")));
    let dispatch = grouped.dispatch(
        Options::new("kept"),
        stream::iter(ids),
        |id| id.as_str(),
        move |_| {
            let state = Arc::clone(&handlers_state);
            async move {
                drop(state);
                Ok(())
            }
        },
    );
    finish(dispatch).expect("nothing fails");
    // The last handler's thread lets go of it right after it told the end.
    wow_testkit::eventually("the handler is dropped", || watched.upgrade().is_none());
}

#[test]
fn whenever_it_is_cancelled_every_message_ends_once_and_is_counted() {
    for round in 0..60 {
        let mut rng = Seed(round).rng();
        let history = History::new(round, 4);
        let source = {
            let (history, mut rng) = (Arc::clone(&history), rng.fork());
            let issue = move |_| -> Result<(String, Message, Script), Failure> {
                let id = format!("id-{}", rng.index(40));
                let script = match rng.index(6) {
                    0 => Script::ready().elsewhere(),
                    1 => Script::ready().yields(2),
                    2 => Script::ready().fails("no"),
                    _ => Script::ready(),
                };
                Ok((id.clone(), history.issue(groups(4).of(&id) as usize, 0), script))
            };
            stream::iter(0..).map(issue)
        };
        let supplier = supplier("any", 2);
        let options = Options::new("any").max_in_flight(32).on_failure(OnFailure::Continue);
        let dispatch = grouped(&supplier, 4).dispatch(
            options,
            source,
            |(id, ..)| id.as_str(),
            |(_, message, script)| message.start().play(script),
        );
        let enough = rng.index(400) as u64;
        wow_testkit::eventually("some are handled", || history.tally().handled >= enough);
        match round % 3 {
            0 => dispatch.cancel(),
            1 => supplier.force_stop(),
            _ => drop(supplier.stop_gracefully()),
        }
        let ledger = finish(dispatch).expect_err("its source is endless").ledger;
        let tally = history.verify();
        assert_eq!(ledger.accepted, sum(&ledger), "round {round}: {ledger:?}");
        assert_eq!(
            (ledger.handled, ledger.failed, ledger.cancelled, ledger.discarded),
            (tally.handled, tally.failed, tally.cancelled, tally.discarded),
            "round {round}"
        );
    }
}
