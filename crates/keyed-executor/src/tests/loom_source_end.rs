//! The `dispatch` door over two workers: the home never sleeps over the last completion of the other one, and a cancel
//! from outside is never missed.
//!
//! ```text
//! home:  pull, place on the other worker, settle: register │ fence │ read returned │ sleep
//! other: run, publish completion, returned += n            │ fence │ read mark, wake the home's cell
//! ```
//! Looked for: a dispatch whose handle never resolves. Two keys: with an unknown cost the first is queued at home, the
//! second goes to the other worker. Broken by hand: a home that does not register when its source is gone, and a stop
//! that does not notify the lanes, deadlock.
//!
//! Searched: preemption bound 1 in the fast set for the end (1,080 executions), 2 for the cancel (6,201), 2 s.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

/// Yields 0, 1, ... below `end`, then ends or waits for ever.
struct Numbers {
    next: u32,
    end: u32,
    ends: bool,
}

impl Stream for Numbers {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<u32>> {
        if self.next == self.end {
            return if self.ends { Poll::Ready(None) } else { Poll::Pending };
        }
        self.next += 1;
        Poll::Ready(Some(self.next - 1))
    }
}

#[test]
fn loom_source_end() {
    super::model::large_model("source_end", 1, || {
        let executor = super::model::executor(2, 2, 1);
        let numbers = Numbers { next: 0, end: 2, ends: true };
        let dispatch = executor.dispatch(numbers, |n| *n, |_| std::future::ready(()));
        let ledger = loom::future::block_on(dispatch).expect("no handler fails");
        assert_eq!((ledger.accepted, ledger.handled), (2, 2));
        executor.close();
        executor.join().expect("not on a worker");
    });
}

#[test]
fn loom_source_cancel() {
    super::model::model("source_cancel", || {
        let executor = super::model::executor(1, 2, 1);
        let numbers = Numbers { next: 0, end: 1, ends: false };
        let dispatch = executor.dispatch(numbers, |n| *n, |_| std::future::ready(()));
        dispatch.cancel();
        let failed = loom::future::block_on(dispatch).expect_err("it was cancelled");
        assert!(matches!(failed.cause, crate::Cause::Cancelled));
        assert_eq!(failed.ledger.in_flight(), 0);
        executor.close();
        executor.join().expect("not on a worker");
    });
}
