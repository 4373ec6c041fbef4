//! The whole path at its smallest: submit, place, run, suspend, wake from another thread, retire, placed again.
//!
//! ```text
//! submitter: submit 0 (waits for the wake), submit 1     worker: start 0, park, resume 0, start 1     waker: wake 0
//! ```
//! Looked for: whatever the single-race models cannot see because it needs two protocols at once: a wake that falls
//! into the sleep which a submission ends, a retirement behind a resumed message. Broken by hand: leaving the resident
//! marked as waiting after its wake makes the mailbox table panic.
//!
//! Searched: preemption bound 2: about 67,000 executions, 9 s.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::sync::{Arc, AtomicU32, Mutex, Ordering, lock};

#[derive(Default)]
struct Gate {
    open: bool,
    waker: Option<Waker>,
}

#[test]
fn loom_whole_path() {
    super::model::model("whole_path", || {
        let executor = super::model::executor(1, 2, 1);
        let gate = Arc::new(Mutex::new(Gate::default()));
        let order = Arc::new(AtomicU32::new(0));
        let (held, ran) = (Arc::clone(&gate), Arc::clone(&order));
        let keyspace = executor.keyspace(move |message: u32| {
            let (held, ran) = (Arc::clone(&held), Arc::clone(&ran));
            poll_fn(move |cx| {
                if message == 0 {
                    let mut gate = lock(&held);
                    if !gate.open {
                        gate.waker = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                }
                assert_eq!(ran.fetch_add(1, Ordering::Relaxed), message, "messages of a key run in order");
                Poll::Ready(())
            })
        });
        let opener = Arc::clone(&gate);
        let waker = loom::thread::spawn(move || {
            let waker = {
                let mut gate = lock(&opener);
                gate.open = true;
                gate.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        keyspace.try_submit(1u8, 0).expect("there is room");
        keyspace.try_submit(1u8, 1).expect("there is room");
        waker.join().expect("the waker ends");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(order.load(Ordering::Relaxed), 2, "both messages ran to their end");
    });
}
