//! A source that blocks its thread holds nothing but itself; a spare thread goes on with the rest of its worker.
//!
//! B-11. Observed: other dispatches of its worker go on; what the stuck poll brings is taken in, in order; a wake during it is not
//! lost; a panic is its one outcome; cancelling and a forced close end the dispatch when it is back.
#![cfg(not(keyed_loom))]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures_util::stream;
use keyed_executor::{Cause, Dispatch, KeyedExecutor};
use wow_testkit::{Latch, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name(name)
        .workers(workers)
        .rescue_threads(4)
        .build()
        .expect("the settings are in range")
}

/// A dispatch whose source is inside its first poll, and whose seat was taken: something else ran beside it.
struct Blocked {
    dispatch: Dispatch<Infallible>,
    /// Lets the source go.
    gate: Latch,
}

/// `brings` is what the first poll does when it is let go.
fn blocked_by(
    executor: &KeyedExecutor,
    mut brings: impl FnMut() -> Poll<Option<u32>> + Send + 'static,
) -> Blocked {
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let source = stream::poll_fn(move |_| {
        inside.release();
        held.wait();
        brings()
    });
    let dispatch = executor.dispatch(source, |n| *n, |_| async {});
    entered.wait();
    something_else_runs(executor);
    Blocked { dispatch, gate }
}

fn something_else_runs(executor: &KeyedExecutor) {
    let other = executor.dispatch(stream::iter(0..10_u32), |n| *n, |_| async {});
    assert_eq!(finish(other).expect("no handler fails").handled, 10);
}

#[test]
fn a_source_that_blocks_holds_nothing_but_itself() {
    let executor = executor("resc-source", 1);
    let (entered, gate) = (Latch::new(), Latch::new());
    let (inside, held) = (entered.clone(), gate.clone());
    let mut next = 0_u32;
    let source = stream::poll_fn(move |_| {
        next += 1;
        if next == 3 {
            inside.release();
            held.wait();
        }
        Poll::Ready((next <= 5).then_some(next))
    });
    let blocked = executor.dispatch(source, |n| *n, |_| async {});
    entered.wait();
    let other = executor.dispatch(stream::iter(0..100_u32), |n| *n, |_| async {});
    assert_eq!(finish(other).expect("no handler fails").handled, 100);
    gate.release();
    assert_eq!(finish(blocked).expect("no handler fails").handled, 5);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_cancelled_dispatch_ends_when_its_blocked_source_comes_back() {
    let executor = executor("resc-csrc", 1);
    let Blocked { dispatch, gate } = blocked_by(&executor, || Poll::Ready(Some(7)));
    dispatch.cancel();
    gate.release();
    let failed = finish(dispatch).expect_err("it was cancelled");
    assert!(matches!(failed.cause, Cause::Cancelled));
    assert_eq!((failed.ledger.accepted, failed.ledger.discarded), (1, 1));
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_wake_of_a_source_during_its_stuck_poll_is_not_lost() {
    let executor = executor("resc-wsrc", 1);
    let (entered, gate) = (Latch::new(), Latch::new());
    let waker = Arc::new(Mutex::new(None));
    let (inside, held, kept) = (entered.clone(), gate.clone(), Arc::clone(&waker));
    let mut polls = 0;
    let source = stream::poll_fn(move |context| {
        polls += 1;
        match polls {
            1 => {
                *kept.lock().expect("nobody panics") = Some(context.waker().clone());
                inside.release();
                held.wait();
                Poll::Pending
            }
            2 => Poll::Ready(Some(7_u32)),
            _ => Poll::Ready(None),
        }
    });
    let blocked = executor.dispatch(source, |n| *n, |_| async {});
    entered.wait();
    // The seat was taken; the wake comes while the source is still stuck.
    something_else_runs(&executor);
    let woken = waker.lock().expect("nobody panics").take();
    woken.expect("the source left its waker").wake();
    // The seat's thread has taken the wake when it has run something that came after it.
    something_else_runs(&executor);
    gate.release();
    assert_eq!(finish(blocked).expect("no handler fails").handled, 1);
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_panic_of_a_stuck_source_ends_its_dispatch() {
    let executor = executor("resc-psrc", 1);
    let Blocked { dispatch, gate } = blocked_by(&executor, || panic!("stuck, then broken"));
    gate.release();
    let failed = finish(dispatch).expect_err("its source panicked");
    assert!(matches!(&failed.cause, Cause::SourcePanicked { message } if message == "stuck, then broken"));
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_forced_close_ends_a_dispatch_whose_source_is_stuck_as_soon_as_that_is_back() {
    let executor = executor("resc-fsrc", 1);
    let Blocked { dispatch, gate } = blocked_by(&executor, || Poll::Ready(Some(7)));
    executor.force_close();
    gate.release();
    let failed = finish(dispatch).expect_err("it was closed");
    assert!(matches!(failed.cause, Cause::Closed));
    assert_eq!((failed.ledger.accepted, failed.ledger.discarded), (1, 1));
    finish(executor.terminated());
}
