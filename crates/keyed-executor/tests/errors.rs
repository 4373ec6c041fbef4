//! What was refused or failed says in one line why and where, and the error behind it is its source.
//!
//! Observed: the text of every cause, refusal and rejection, which of them have a source, and that a text of the user's
//! comes through as it is.
#![cfg(not(keyed_loom))]

use std::error::Error;
use std::ops::RangeInclusive;

use keyed_executor::{
    Cause, DispatchError, KeyedExecutor, Ledger, RejectReason, Rejected, SubmitError, SubmitRefusal,
    WouldBlockWorker, limits,
};
use wow_testkit::Failure;

fn ended(cause: Cause<Failure>) -> DispatchError<Failure> {
    DispatchError { cause, ledger: Ledger::default() }
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn a_failed_dispatch_says_why_and_for_which_key() {
    let causes = [
        (Cause::Source(Failure(text("no route"))), "the source failed: no route"),
        (Cause::SourcePanicked { message: text("out of bounds") }, "the source panicked: out of bounds"),
        (Cause::KeyPanicked { message: text("no key") }, "selecting a message's key panicked: no key"),
        (Cause::KeyTooLong { bytes: 300, max: 256 }, "the key has 300 bytes, and keys may have 256"),
        (
            Cause::TooHeavy { key: text("\"a\""), bytes: 70, max: 64 },
            "of key \"a\": the message weighs 70 bytes with its key, and the whole budget is 64",
        ),
        (
            Cause::Handler { key: text("\"a\""), error: Failure(text("no stock")) },
            "the handler of key \"a\" failed: no stock",
        ),
        (
            Cause::HandlerPanicked { key: text("7"), message: text("no order") },
            "the handler of key 7 panicked: no order",
        ),
        (Cause::NoWorker { message: text("no thread left") }, "no worker thread can run it: no thread left"),
        (Cause::Closed, "the executor is closed"),
        (Cause::Cancelled, "the dispatch was cancelled"),
    ];
    for (cause, expected) in causes {
        assert_eq!(cause.to_string(), expected);
        assert_eq!(ended(cause).to_string(), expected);
    }
}

#[test]
fn the_error_of_the_source_or_of_the_handler_is_the_source_of_the_failure() {
    let told = |failed: &DispatchError<Failure>| failed.source().map(ToString::to_string);
    assert_eq!(told(&ended(Cause::Source(Failure(text("no route"))))), Some(text("no route")));
    let of_handler = Cause::Handler { key: text("1"), error: Failure(text("no stock")) };
    assert_eq!(told(&ended(of_handler)), Some(text("no stock")));
    for cause in [
        Cause::SourcePanicked { message: text("out of bounds") },
        Cause::HandlerPanicked { key: text("1"), message: text("no order") },
        Cause::Closed,
        Cause::Cancelled,
    ] {
        assert_eq!(told(&ended(cause)), None);
    }
}

#[test]
fn a_refused_submission_says_why() {
    let refusals = [
        (SubmitRefusal::Full, "the window is full"),
        (SubmitRefusal::KeyFull, "the key has its limit of unfinished messages and the overflow is full"),
        (SubmitRefusal::BytesFull, "the byte budget is full"),
        (
            SubmitRefusal::TooHeavy { bytes: 70, max: 64 },
            "the message weighs 70 bytes with its key, and the whole budget is 64",
        ),
        (SubmitRefusal::KeyTooLong { bytes: 300, max: 256 }, "the key has 300 bytes, and keys may have 256"),
        (SubmitRefusal::Closed, "the keyspace is closed"),
        (SubmitRefusal::Failed, "the keyspace failed"),
        (SubmitRefusal::NoWorker, "no worker thread can run it"),
    ];
    for (reason, expected) in refusals {
        assert_eq!(reason.to_string(), expected);
        assert_eq!(SubmitError { reason, message: () }.to_string(), expected);
    }
}

#[test]
fn a_rejected_task_says_why() {
    let reasons = [
        (RejectReason::Closed, "the executor is closed"),
        (
            RejectReason::Unstartable(text("no thread left")),
            "the worker thread could not be started: no thread left",
        ),
        (RejectReason::Dead, "the worker thread is dead"),
    ];
    for (reason, expected) in reasons {
        let rejected = Rejected { task: (), reason };
        assert_eq!(rejected.to_string(), format!("the task was rejected: {expected}"));
    }
}

#[test]
fn a_refused_wait_says_what_to_do_instead() {
    let expected = "a blocking wait on a worker thread of an executor is refused: await it instead";
    assert_eq!(WouldBlockWorker.to_string(), expected);
}

#[test]
fn wrong_settings_are_told_with_what_was_given_and_what_would_do() {
    let error = KeyedExecutor::builder().name("err-set").workers(0).throughput(0).build();
    let told = error.expect_err("both are out of range").to_string();
    let accepted = |range: RangeInclusive<usize>| format!("{} to {}", range.start(), range.end());
    let (workers, throughput) = (accepted(limits::WORKERS), accepted(limits::THROUGHPUT));
    assert_eq!(
        told,
        format!("workers is 0, accepted is {workers}; throughput is 0, accepted is {throughput}")
    );
}
