//! L9: a submission that races with close is run or refused, never stranded; the threads end after all that ran.
//!
//! ```text
//! submitter: look at closed │ push task / message │ notify        closer: closed, doors, draining, wake
//! worker:    last look │ gone │ take what is left
//! ```
//! Looked for: a task queued just after its worker saw "closed and empty" (RG-4), and a message pushed to a worker
//! that ended. Broken by hand: leaving out the worker's look after `leave`, or the submitter's `claim`, strands a task.
//!
//! Searched: preemption bound 2: 223 executions for tasks, 876 for messages, below 1 s.

use crate::sync::{Arc, AtomicU32, Ordering};

#[test]
fn loom_close_vs_submit_task() {
    super::model::model("close_vs_submit_task", || {
        let executor = super::model::executor(1, 1, 1);
        let ran = Arc::new(AtomicU32::new(0));
        let (other, count) = (executor.clone(), Arc::clone(&ran));
        let submitter = loom::thread::spawn(move || {
            let mut refused = 0;
            for _ in 0..2 {
                let count = Arc::clone(&count);
                let task = move || {
                    count.fetch_add(1, Ordering::Relaxed);
                };
                refused += u32::from(other.execute_pinned(0, task).is_err());
            }
            refused
        });
        // Lets the submitter go first for free: the race needs it far ahead.
        loom::thread::yield_now();
        executor.close();
        let refused = submitter.join().expect("the submitter ends");
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed) + refused, 2, "run or refused, each once");
    });
}

#[test]
fn loom_close_vs_submit_message() {
    super::model::model("close_vs_submit_message", || {
        let executor = super::model::executor(1, 2, 1);
        let ran = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ran);
        let keyspace = executor.keyspace(move |_message: u32| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        let submitter = loom::thread::spawn(move || u32::from(keyspace.try_submit(1u8, 5).is_err()));
        // Lets the submitter go first for free: the race needs it far ahead.
        loom::thread::yield_now();
        executor.close();
        let refused = submitter.join().expect("the submitter ends");
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed) + refused, 1, "run or refused, once");
    });
}
