//! Many threads at once on one supplier: accesses, dispatches, graceful stops and a force, in whatever order the system runs them
//! (LS-4, LS-5, LS-11). One name has one pool, every observer sees the one end, and every message is counted.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Barrier};
use std::thread;

use futures_util::stream;
use keyed_executor::{Cause, Options};
use wow_aggregate_scheduler::{
    DefaultSchedulerSupplier, Ending, Grouped, NamedAggregate, Scheduler, SchedulerSupplier,
};
use wow_testkit::finish;

use crate::common::{groups, supplier};

const ROUNDS: u32 = 300;
const USERS: usize = 4;
const STOPPERS: usize = 3;
const MESSAGES: u32 = 20;
const NAMES: [&str; 2] = ["order", "cart"];

/// Whether somebody forces the supplier while others stop it gracefully.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Force {
    Nobody,
    Somebody,
}

/// A pool that was handed out, by the name that was asked for.
type Given = (&'static str, Arc<Scheduler>);

/// Asks for pools and runs messages on them, until the supplier is stopped. The window is small, so that sources wait and go on.
fn use_until_stopped(supplier: &DefaultSchedulerSupplier) -> Vec<Given> {
    let mut given = Vec::new();
    for name in NAMES.into_iter().cycle() {
        let named = NamedAggregate { context: "shop", aggregate: name };
        let Ok(scheduler) = supplier.get_or_initialize(named) else { return given };
        given.push((name, Arc::clone(&scheduler)));
        let messages = stream::iter((0..MESSAGES).map(Ok::<_, Infallible>));
        let grouped = Grouped::on(scheduler, groups(4));
        let dispatch = grouped.dispatch(
            Options::new("use").max_in_flight(4),
            messages,
            |n| ["a", "b", "c"][*n as usize % 3],
            |n| async move {
                if n % 5 == 0 {
                    thread::yield_now();
                }
                Ok(())
            },
        );
        let ledger = match finish(dispatch) {
            Ok(ledger) => {
                assert_eq!(ledger.handled, u64::from(MESSAGES), "all of its source was read and handled");
                ledger
            }
            Err(ended) => {
                assert!(matches!(ended.cause, Cause::Closed), "{ended}");
                ended.ledger
            }
        };
        let ends = ledger.handled + ledger.failed + ledger.cancelled + ledger.discarded;
        assert_eq!(ledger.accepted, ends, "every accepted message ended");
    }
    given
}

fn round(force: Force) {
    let supplier = supplier("contended", 2);
    let threads = USERS + STOPPERS + usize::from(force == Force::Somebody);
    let start = Barrier::new(threads);
    let (given, ends) = thread::scope(|scope| {
        let (supplier, start) = (&*supplier, &start);
        let users: Vec<_> = (0..USERS)
            .map(|_| {
                scope.spawn(move || {
                    start.wait();
                    use_until_stopped(supplier)
                })
            })
            .collect();
        let stoppers: Vec<_> = (0..STOPPERS)
            .map(|n| {
                scope.spawn(move || {
                    start.wait();
                    // Each somewhat later than the one before: the first finds the users in the middle of it.
                    (0..n * 20).for_each(|_| thread::yield_now());
                    finish(supplier.stop_gracefully())
                })
            })
            .collect();
        if force == Force::Somebody {
            scope.spawn(move || {
                start.wait();
                (0..10).for_each(|_| thread::yield_now());
                supplier.force_stop();
            });
        }
        let given: Vec<Given> =
            users.into_iter().flat_map(|user| user.join().expect("a user does not panic")).collect();
        let ends: Vec<Ending> =
            stoppers.into_iter().map(|one| one.join().expect("a stopper does not panic")).collect();
        (given, ends)
    });
    let last = supplier.stop_gracefully().ending().expect("it has ended");
    assert!(ends.iter().all(|end| *end == last), "one end for all: {ends:?}, later {last:?}");
    assert!(force == Force::Somebody || last == Ending::Graceful, "{last:?}");
    for name in NAMES {
        let pools: BTreeSet<_> =
            given.iter().filter(|(of, _)| *of == name).map(|(_, pool)| Arc::as_ptr(pool)).collect();
        assert!(pools.len() <= 1, "{name} had {} pools", pools.len());
    }
}

#[test]
fn stops_that_meet_accesses_and_dispatches_have_one_end_for_everybody() {
    (0..ROUNDS).for_each(|_| round(Force::Nobody));
}

#[test]
fn a_force_that_meets_stops_accesses_and_dispatches_has_one_end_for_everybody() {
    (0..ROUNDS).for_each(|_| round(Force::Somebody));
}
