//! L13 on the whole executor: a forced close borrows the seat while its thread is anywhere, and each message is run or
//! dropped, once.
//!
//! ```text
//! closer: forced │ stop │ borrow seat │ drop inbox, mailboxes, futures │ give back
//! worker: take inbox │ lend │ handler │ take back │ next │ park
//! ```
//! Looked for: a message that both threads take off the lane, a handler started after the flush, a permit lost.
//! Broken by hand: taking the seat without the token (discarding directly) is reported as a race on the lane's plain data.
//!
//! Searched: preemption bound 1 in the fast set: about 21,000 executions, 4 s.

use crate::sync::{Arc, AtomicU32, Ordering};

struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn loom_force_vs_running() {
    super::model::large_model("force_vs_running", 1, || {
        let executor = super::model::executor(1, 2, 1);
        let handled = Arc::new(AtomicU32::new(0));
        let dropped = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&handled);
        let keyspace = executor.keyspace(move |_message: Counted| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        for _ in 0..2 {
            assert!(keyspace.try_submit(1u8, Counted(Arc::clone(&dropped))).is_ok(), "there is room");
        }
        executor.force_close();
        executor.join().expect("not on a worker");
        assert_eq!(dropped.load(Ordering::Relaxed), 2, "each message was dropped once, handled or not");
        let ledger = loom::future::block_on(keyspace.drained());
        assert_eq!(ledger.handled, u64::from(handled.load(Ordering::Relaxed)));
        assert_eq!((ledger.handled + ledger.discarded, ledger.in_flight()), (2, 0));
    });
}
