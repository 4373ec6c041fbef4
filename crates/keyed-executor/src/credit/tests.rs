//! The marks that a worker reads: they are what the next waiter needs, so nobody looks at the queue for a waiter that is gone.
//!
//! Who is woken, and when, is `crates/keyed-executor/src/tests/admission.rs`.

use std::task::Waker;

use super::{Credit, NEVER, Need, Then, Woke};
use crate::sync::Ordering;

fn marks(credit: &Credit) -> (u64, u64) {
    (credit.wake_busy.load(Ordering::Relaxed), credit.wake_dry.load(Ordering::Relaxed))
}

#[test]
fn the_marks_are_those_of_the_next_waiter_and_of_none_when_the_last_one_is_woken_or_gone() {
    let credit = Credit::new();
    let register = |ticket, busy, dry| {
        let _ = credit.register(ticket, Need { busy, dry, empty_at: None }, Waker::noop());
    };
    assert_eq!(marks(&credit), (NEVER, NEVER));
    register(1, 20, 3);
    register(2, 10, 5);
    assert_eq!(marks(&credit), (10, 3));
    assert_eq!(credit.give(3, Then::Dry), Woke::Some);
    assert_eq!(marks(&credit), (10, 5), "one is left");
    assert_eq!(credit.give(7, Then::Busy), Woke::Some);
    assert_eq!(marks(&credit), (NEVER, NEVER));
    register(3, 30, 20);
    assert!(credit.forget(3));
    assert_eq!(marks(&credit), (NEVER, NEVER), "it waits no more");
    register(4, 30, 20);
    credit.wake_all();
    assert_eq!(marks(&credit), (NEVER, NEVER));
}
