//! Shows each check of the history passing and failing.

use crate::{Ending, Fault, History, Id, Running, Script, Tally, finish, finish_within};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

const FIRST: Id = Id { key: 0, producer: 0, number: 0 };
const SECOND: Id = Id { key: 0, producer: 0, number: 1 };

/// Two messages whose reports the test writes by hand.
fn two_by_hand(history: &Arc<History>) {
    for _ in 0..2 {
        // Leaked: by hand means that nothing else may report on them.
        std::mem::forget(history.issue(0, 0));
    }
}

fn faults(history: &History) -> Vec<Fault> {
    history.check().expect_err("the history is broken").faults
}

#[test]
fn a_run_in_order_passes_and_is_counted() {
    let history = History::bounded(1, 2, 2);
    let (a, b, c) = (history.issue(0, 0), history.issue(1, 0), history.issue(0, 1));
    let (a, b) = (a.start(), b.start());
    a.finish();
    b.fail();
    c.start().finish();
    let expected = Tally { issued: 3, handled: 2, failed: 1, ..Tally::default() };
    assert_eq!((history.verify(), history.running().peak()), (expected, 2));
    assert_eq!(history.tally_of(1), Tally { issued: 1, failed: 1, ..Tally::default() });
}

#[test]
fn every_way_to_end_is_told_apart() {
    let history = History::new(1, 7);
    let mut messages = (0..7).map(|key| history.issue(key, 0));
    let mut next = || messages.next().expect("seven were issued");
    next().start().finish();
    finish(next().start().play(Script::ready().yields(1))).expect("the script ends well");
    finish(next().start().play(Script::ready().fails("no"))).expect_err("the script fails");
    let panicking = next();
    catch_unwind(AssertUnwindSafe(|| finish(panicking.start().play(Script::ready().panics("no")))))
        .expect_err("the script panics");
    let never = next().start().play(Script::ready().never());
    assert!(finish_within(Duration::ZERO, never).is_none());
    drop(next());
    next().refuse();
    let expected =
        Tally { issued: 7, handled: 2, failed: 1, panicked: 1, cancelled: 1, discarded: 1, refused: 1 };
    assert_eq!(history.verify(), expected);
}

#[test]
fn an_overtaking_message_is_found() {
    let history = History::new(1, 1);
    let (first, second) = (history.issue(0, 0), history.issue(0, 0));
    second.start().finish();
    first.start().finish();
    assert_eq!(faults(&history), [Fault::Overtaken { started: SECOND, waiting: FIRST }]);
}

#[test]
fn a_discarded_or_refused_message_may_be_passed() {
    let history = History::new(1, 1);
    drop(history.issue(0, 0));
    history.issue(0, 0).refuse();
    history.issue(0, 0).start().finish();
    assert_eq!(history.verify().handled, 1);
}

#[test]
fn producers_of_one_key_may_pass_each_other() {
    let history = History::new(1, 1);
    let (first, second) = (history.issue(0, 0), history.issue(0, 1));
    second.start().finish();
    first.start().finish();
    assert_eq!(history.verify().handled, 2);
}

#[test]
fn two_handlers_of_one_key_at_once_are_found() {
    let history = History::new(1, 1);
    let (first, second) = (history.issue(0, 0).start(), history.issue(0, 0).start());
    first.finish();
    second.finish();
    assert_eq!(faults(&history), [Fault::Overlap { started: SECOND }]);
}

#[test]
fn a_message_that_never_ended_is_found() {
    let history = History::new(1, 1);
    two_by_hand(&history);
    history.record_start(FIRST);
    assert_eq!(faults(&history), [Fault::Unfinished { id: FIRST }, Fault::Unfinished { id: SECOND }]);
    assert_eq!(history.tally().open(), 2);
}

#[test]
fn a_message_that_ran_twice_is_found() {
    let history = History::new(1, 1);
    two_by_hand(&history);
    for _ in 0..2 {
        history.record_start(FIRST);
        history.record_end(FIRST, Ending::Handled);
    }
    history.record_end(SECOND, Ending::Refused);
    let expected =
        [Fault::NotWaiting { started: FIRST }, Fault::NotOpen { ended: FIRST, ending: Ending::Handled }];
    assert_eq!(faults(&history), expected);
}

#[test]
fn a_message_dropped_after_it_ran_is_found() {
    let history = History::new(1, 1);
    two_by_hand(&history);
    for id in [FIRST, SECOND] {
        history.record_start(id);
        history.record_end(id, Ending::Handled);
    }
    history.record_end(SECOND, Ending::Discarded);
    assert_eq!(faults(&history), [Fault::NotOpen { ended: SECOND, ending: Ending::Discarded }]);
}

#[test]
fn an_invented_message_is_found() {
    let history = History::new(1, 1);
    history.record_start(FIRST);
    history.record_end(FIRST, Ending::Handled);
    assert_eq!(faults(&history)[0], Fault::NotWaiting { started: FIRST });
}

#[test]
fn one_handler_too_many_is_found() {
    let history = History::bounded(1, 3, 2);
    let running: Vec<_> = (0..3).map(|key| history.issue(key, 0).start()).collect();
    running.into_iter().for_each(Running::finish);
    let started = Id { key: 2, producer: 0, number: 0 };
    assert_eq!(faults(&history), [Fault::TooMany { started, running: 3, limit: 2 }]);
}

#[test]
fn a_report_shows_seed_fault_and_history() {
    let history = History::new(4711, 1);
    let (first, second) = (history.issue(0, 0), history.issue(0, 0));
    second.start().finish();
    drop(first);
    let report = history.check().expect_err("the second overtook the first").to_string();
    for part in [
        "seed 4711",
        "Overtaken",
        "history of key 0",
        "started   1 of producer 0",
        "discarded 0 of producer 0",
    ] {
        assert!(report.contains(part), "`{part}` is missing in:\n{report}");
    }
}

#[test]
#[should_panic(expected = "seed 12: 1 guarantees broken")]
fn verify_panics_with_the_report() {
    let history = History::new(12, 1);
    std::mem::forget(history.issue(0, 0));
    history.verify();
}
