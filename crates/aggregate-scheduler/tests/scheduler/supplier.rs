//! One pool per named aggregate under concurrent access, and one owner that stops all of them once (LS-2 to LS-5, LS-11,
//! LS-12, T140).

use std::convert::Infallible;
use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{ORDER, everything, grouped, groups, supplier};
use futures_util::stream;
use keyed_executor::{Cause, Options};
use wow_aggregate_scheduler::{
    Borrowed, DefaultSchedulerSupplier, Ending, Grouped, NamedAggregate, SchedulerSupplier, SupplierStopped,
    Termination,
};
use wow_testkit::{Latch, PATIENCE, Script, Source, finish};

/// Waits for the end on this thread, at most as long as the testkit's patience.
fn ended(termination: Termination) -> Ending {
    finish(termination)
}

#[test]
fn one_named_aggregate_has_one_pool_under_many_threads() {
    let supplier = supplier("one", 2);
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (supplier, start) = (Arc::clone(&supplier), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                supplier.get_or_initialize(ORDER).expect("the supplier is open")
            })
        })
        .collect();
    let schedulers: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert!(schedulers.iter().all(|scheduler| Arc::ptr_eq(scheduler, &schedulers[0])));
    assert_eq!(schedulers[0].parallelism(), 2);
}

#[test]
fn a_name_is_what_it_says_not_where_its_text_lies() {
    let supplier = supplier("text", 1);
    let (context, aggregate) = (String::from("shop"), String::from("order"));
    let decorated = NamedAggregate { context: &context, aggregate: &aggregate };
    let one = supplier.get_or_initialize(decorated).expect("open");
    let other = supplier.get_or_initialize(ORDER).expect("open");
    assert!(Arc::ptr_eq(&one, &other));
}

#[test]
fn aggregates_of_another_name_or_context_have_another_pool() {
    let supplier = supplier("apart", 1);
    let order = supplier.get_or_initialize(ORDER).expect("open");
    for named in [
        NamedAggregate { aggregate: "cart", ..ORDER },
        NamedAggregate { context: "bank", ..ORDER },
        // Its two texts make the same text as those of shop.order, put together without a mark between them.
        NamedAggregate { context: "shopor", aggregate: "der" },
    ] {
        let other = supplier.get_or_initialize(named).expect("open");
        assert!(!Arc::ptr_eq(&order, &other), "{named}");
    }
}

#[test]
fn handlers_run_on_threads_named_after_supplier_and_aggregate() {
    let supplier = supplier("names", 2);
    assert_eq!(supplier.get_or_initialize(ORDER).expect("open").name(), "names-order");
    let (seen, names) = std::sync::mpsc::channel();
    let ids: Vec<Result<String, Infallible>> =
        (0..2).map(|group| Ok(crate::common::id_in(group, 2))).collect();
    let dispatch = grouped(&supplier, 2).dispatch(
        Options::new("names"),
        stream::iter(ids),
        |id| id.as_str(),
        move |_| {
            let name = thread::current().name().map(str::to_owned);
            seen.send(name.expect("threads of a pool have names")).expect("the test listens");
            async { Ok::<(), Infallible>(()) }
        },
    );
    finish(dispatch).expect("no handler fails");
    let mut names = everything(&names);
    names.sort();
    // Groups are given to the threads in turn.
    assert_eq!(names, ["names-order-1", "names-order-2"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pool_has_its_number_of_threads_and_one_for_sources_from_its_first_dispatch_to_its_end() {
    use wow_testkit::threads::count;
    let supplier = supplier("cnt", 3);
    let grouped = grouped(&supplier, 8);
    assert_eq!(count("cnt-order"), 0);
    for _ in 0..2 {
        let one = stream::iter([Ok::<_, Infallible>("id")]);
        let dispatch = grouped.dispatch(Options::new("count"), one, |id| id, |_| async { Ok(()) });
        finish(dispatch).expect("no handler fails");
        wow_testkit::eventually("three threads and one for sources", || count("cnt-order") == 4);
    }
    assert_eq!(ended(supplier.stop_gracefully()), Ending::Graceful);
    wow_testkit::eventually("no thread is left", || count("cnt-order") == 0);
}

#[test]
fn by_default_a_pool_has_a_thread_for_each_processor() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let supplier = DefaultSchedulerSupplier::with_defaults("cores");
    assert_eq!(supplier.get_or_initialize(ORDER).expect("open").parallelism(), cores);
}

#[test]
fn a_name_with_a_nul_still_has_threads() {
    let supplier = supplier("n\0ul", 1);
    let one = stream::iter([Ok::<_, Infallible>("id")]);
    let dispatch = grouped(&supplier, 1).dispatch(Options::new("nul"), one, |id| id, |_| async { Ok(()) });
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 1);
}

#[test]
fn a_stop_refuses_new_and_cached_schedulers() {
    for stop in [Stop::Gracefully, Stop::Force] {
        let supplier = supplier("refuse", 1);
        let scheduler = supplier.get_or_initialize(ORDER).expect("open");
        stop.apply(&*supplier);
        let cart = NamedAggregate { aggregate: "cart", ..ORDER };
        assert_eq!(supplier.get_or_initialize(ORDER).err(), Some(SupplierStopped), "cached, {stop:?}");
        assert_eq!(supplier.get_or_initialize(cart).err(), Some(SupplierStopped), "new, {stop:?}");
        // A scheduler that was handed out before runs nothing either.
        let one = stream::iter([Ok::<_, Infallible>("id")]);
        let late = Grouped::on(scheduler, groups(1)).dispatch(
            Options::new("late"),
            one,
            |id| id,
            |_| async { Ok(()) },
        );
        let refused = finish(late).expect_err("the scheduler is stopped");
        assert!(matches!(refused.cause, Cause::Closed), "{refused}");
        assert_eq!(refused.ledger.accepted, 0);
    }
    assert_eq!(SupplierStopped.to_string(), "the scheduler supplier is stopped");
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Gracefully,
    Force,
}

impl Stop {
    fn apply(self, supplier: &dyn SchedulerSupplier) {
        match self {
            Stop::Gracefully => drop(supplier.stop_gracefully()),
            Stop::Force => supplier.force_stop(),
        }
    }
}

#[test]
fn a_stop_that_races_with_accesses_stops_every_pool_that_was_handed_out() {
    for round in 0..50 {
        let supplier = supplier("race", 1);
        let start = Arc::new(Barrier::new(5));
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let (supplier, start) = (Arc::clone(&supplier), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    let aggregate = format!("aggregate-{n}");
                    supplier.get_or_initialize(NamedAggregate { context: "shop", aggregate: &aggregate }).ok()
                })
            })
            .collect();
        start.wait();
        assert_eq!(ended(supplier.stop_gracefully()), Ending::Graceful);
        for scheduler in threads.into_iter().filter_map(|thread| thread.join().expect("no panic")) {
            let one = stream::iter([Ok::<_, Infallible>("id")]);
            let late = Grouped::on(scheduler, groups(1)).dispatch(
                Options::new("late"),
                one,
                |id| id,
                |_| async { Ok(()) },
            );
            let refused = finish(late).expect_err("a pool was left behind by the stop");
            assert!(matches!(refused.cause, Cause::Closed), "round {round}: {refused}");
        }
    }
}

#[test]
fn a_supplier_without_pools_ends_at_once() {
    let supplier = supplier("none", 1);
    assert_eq!(supplier.stop_gracefully().ending(), Some(Ending::Graceful));
    supplier.force_stop();
    assert_eq!(supplier.stop_gracefully().ending(), Some(Ending::Graceful), "an end does not change");
}

#[test]
fn a_graceful_stop_ends_when_the_last_accepted_message_did() {
    let supplier = supplier("drain", 1);
    let (latch, started) = (Latch::new(), Latch::new());
    let (source, feed) = Source::fed();
    feed.push(Ok::<_, wow_testkit::Failure>("id"));
    let dispatch = {
        let (latch, started) = (latch.clone(), started.clone());
        grouped(&supplier, 1).dispatch(
            Options::new("drain"),
            source,
            |id| id,
            move |_| {
                started.release();
                Script::ready().until(&latch)
            },
        )
    };
    started.wait();
    let stop = supplier.stop_gracefully();
    feed.dropped().wait();
    assert_eq!(stop.ending(), None, "a handler still waits");
    latch.release();
    assert_eq!(ended(stop), Ending::Graceful);
    let closed = finish(dispatch).expect_err("its source had not ended");
    assert!(matches!(closed.cause, Cause::Closed), "{closed}");
    assert_eq!((closed.ledger.accepted, closed.ledger.handled), (1, 1));
}

#[test]
fn all_observers_share_one_termination() {
    let supplier = supplier("share", 1);
    let (latch, started) = (Latch::new(), Latch::new());
    let (source, feed) = Source::over([Ok::<_, wow_testkit::Failure>("id")]);
    let dispatch = {
        let (latch, started) = (latch.clone(), started.clone());
        grouped(&supplier, 1).dispatch(
            Options::new("share"),
            source,
            |id| id,
            move |_| {
                started.release();
                Script::ready().until(&latch)
            },
        )
    };
    started.wait();
    feed.dropped().wait();
    let observers: Vec<_> = (0..4).map(|_| supplier.stop_gracefully()).collect();
    let dropped = observers[0].clone();
    drop(dropped);
    assert!(observers.iter().all(|observer| observer.ending().is_none()));
    latch.release();
    for observer in observers {
        assert_eq!(ended(observer), Ending::Graceful);
    }
    assert_eq!(supplier.stop_gracefully().ending(), Some(Ending::Graceful));
    finish(dispatch).expect("its source had ended and its handler did");
}

#[test]
fn a_force_takes_over_a_graceful_stop_for_every_observer() {
    let supplier = supplier("force", 1);
    let (held, started) = (Latch::new(), Latch::new());
    let messages = ["holds its thread", "waits behind it"].map(Ok::<_, wow_testkit::Failure>);
    let (source, feed) = Source::over(messages);
    let dispatch = {
        let (held, started) = (held.clone(), started.clone());
        grouped(&supplier, 1).dispatch(
            Options::new("force"),
            source,
            |_| "id",
            move |_| {
                started.release();
                Script::ready().blocks_until(&held)
            },
        )
    };
    started.wait();
    feed.dropped().wait();
    // One observer awaits on another thread, one blocks there, one came before and looks afterwards.
    let before = supplier.stop_gracefully();
    let (awaiting, blocking) = (supplier.stop_gracefully(), before.clone());
    let awaiting = thread::spawn(move || finish(awaiting));
    let unblocked = Latch::new();
    let blocking = {
        let unblocked = unblocked.clone();
        thread::spawn(move || {
            let ending = blocking.wait();
            unblocked.release();
            ending
        })
    };
    assert_eq!(before.ending(), None);
    supplier.force_stop();
    // The handler still holds its thread: nobody waits for it.
    assert_eq!(before.ending(), Some(Ending::Forced));
    assert_eq!(awaiting.join().expect("no panic"), Ending::Forced);
    unblocked.wait();
    assert_eq!(blocking.join().expect("no panic"), Ok(Ending::Forced));
    assert_eq!(supplier.stop_gracefully().ending(), Some(Ending::Forced), "later observers too");
    assert_eq!(supplier.get_or_initialize(ORDER).err(), Some(SupplierStopped));
    held.release();
    let forced = finish(dispatch).expect_err("it was forced");
    assert!(matches!(forced.cause, Cause::Closed), "{forced}");
    assert_eq!((forced.ledger.accepted, forced.ledger.discarded), (2, 1));
    assert_eq!(forced.ledger.handled + forced.ledger.cancelled, 1);
}

#[test]
fn a_force_drops_what_waits_before_it_returns() {
    let supplier = supplier("drops", 1);
    let (held, started) = (Latch::new(), Latch::new());
    let waits = Arc::new(());
    let messages: Vec<_> = (0..5).map(|_| Ok::<_, wow_testkit::Failure>(Arc::clone(&waits))).collect();
    let (source, feed) = Source::over(messages);
    let dispatch = {
        let (held, started) = (held.clone(), started.clone());
        grouped(&supplier, 1).dispatch(
            Options::new("drops"),
            source,
            |_| "id",
            move |message| {
                drop(message);
                started.release();
                Script::ready().until(&held)
            },
        )
    };
    started.wait();
    feed.dropped().wait();
    assert_eq!(Arc::strong_count(&waits), 5, "four wait, one is handled");
    supplier.force_stop();
    assert_eq!(Arc::strong_count(&waits), 1, "a message was kept");
    let ledger = finish(dispatch).expect_err("it was forced").ledger;
    assert_eq!((ledger.accepted, ledger.cancelled, ledger.discarded), (5, 1, 4));
}

#[test]
fn a_borrowed_view_gives_the_same_pools_and_stops_nothing() {
    let owner = supplier("lent", 1);
    let child: Arc<dyn SchedulerSupplier> = Arc::new(Borrowed::of(owner.clone()));
    let one = child.get_or_initialize(ORDER).expect("open");
    assert!(Arc::ptr_eq(&one, &owner.get_or_initialize(ORDER).expect("open")));
    assert_eq!(ended(child.stop_gracefully()), Ending::Borrowed);
    child.force_stop();
    drop(child);
    assert!(owner.get_or_initialize(ORDER).is_ok(), "the child stopped its parent's supplier");
}

#[test]
fn the_parent_of_a_composite_stops_what_its_children_use() {
    let owner = supplier("comp", 1);
    let children = [Borrowed::of(owner.clone()), Borrowed::of(owner.clone())];
    let (sources, feeds): (Vec<_>, Vec<_>) =
        children.iter().map(|_| Source::<Result<&'static str, Infallible>>::fed()).unzip();
    let dispatches: Vec<_> = children
        .iter()
        .zip(sources)
        .map(|(child, source)| {
            let scheduler = child.get_or_initialize(ORDER).expect("open");
            let grouped = Grouped::on(scheduler, groups(4));
            grouped.dispatch(Options::new("child"), source, |id| id, |_| async { Ok(()) })
        })
        .collect();
    // The first child is stopped: the other one's messages go on.
    drop(children[0].stop_gracefully());
    feeds[1].push(Ok("id"));
    feeds[1].taken().wait_for(1);
    let stop = owner.stop_gracefully();
    assert_eq!(ended(stop), Ending::Graceful);
    for dispatch in dispatches {
        assert!(matches!(finish(dispatch).expect_err("stopped").cause, Cause::Closed));
    }
    assert_eq!(children[0].get_or_initialize(ORDER).err(), Some(SupplierStopped));
}

#[test]
fn a_dropped_supplier_stops_gracefully() {
    let owner = supplier("dropped", 1);
    let grouped = grouped(&owner, 1);
    let (latch, started) = (Latch::new(), Latch::new());
    let (source, feed) = Source::over([Ok::<_, wow_testkit::Failure>("id")]);
    let dispatch = {
        let (latch, started) = (latch.clone(), started.clone());
        grouped.dispatch(
            Options::new("dropped"),
            source,
            |id| id,
            move |_| {
                started.release();
                Script::ready().until(&latch)
            },
        )
    };
    started.wait();
    feed.dropped().wait();
    drop(owner);
    latch.release();
    assert_eq!(finish(dispatch).expect("what was accepted is finished").handled, 1);
}

#[test]
fn a_wait_on_a_thread_of_a_pool_is_refused() {
    let owner = supplier("wait", 1);
    let observed = Arc::clone(&owner);
    let one = stream::iter([Ok::<_, String>("id")]);
    let dispatch = grouped(&owner, 1).dispatch(
        Options::new("wait"),
        one,
        |id| id,
        move |_| {
            let refused = observed.stop_gracefully().wait();
            async move { refused.map(drop).map_err(|refused| refused.to_string()) }
        },
    );
    let failed = wow_testkit::finish_within(PATIENCE, dispatch).expect("it ends").expect_err("refused");
    assert!(failed.to_string().contains("a blocking wait on a worker thread"), "{failed}");
    assert_eq!(ended(owner.stop_gracefully()), Ending::Graceful);
}
