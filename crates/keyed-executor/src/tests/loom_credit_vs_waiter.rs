//! L6: a waiter with a permit to come is never left asleep, and no permit is seen twice.
//!
//! ```text
//! worker: publish completion │ returned += n │ fence │ read mark
//! waiter: reads completions  │ mark = need   │ fence │ read returned │ wait
//! ```
//! Looked for: the worker reads the old mark and the waiter the old count. The production `Credit`; two workers give
//! one permit each, one busy and one dry; the waiter needs both. Broken by hand: without the fence in `register` or
//! the last look at `returned`, the model deadlocks.
//!
//! Searched: preemption bound 2: 2,418 executions, below 1 s.

use std::task::{Poll, Waker};

use crate::credit::{Credit, Need, Then};
use crate::sync::Arc;

#[test]
fn loom_credit_vs_waiter() {
    super::model::model("credit_vs_waiter", || {
        let credit = Arc::new(Credit::new());
        let givers: Vec<_> = [Then::Busy, Then::Dry]
            .into_iter()
            .map(|then| {
                let credit = Arc::clone(&credit);
                loom::thread::spawn(move || credit.give(1, then))
            })
            .collect();
        let need = Need { busy: 2, dry: 2, empty_at: Some(0) };
        loom::future::block_on(std::future::poll_fn(|cx| {
            let waker: &Waker = cx.waker();
            if credit.returned() >= 2 || credit.register(0, need, waker) >= 2 {
                credit.forget(0);
                return Poll::Ready(());
            }
            Poll::Pending
        }));
        assert_eq!(credit.returned(), 2);
        for giver in givers {
            let _ = giver.join().expect("a giver ends");
        }
    });
}
