//! A look at a seat while its thread is anywhere: it reads what nobody writes meanwhile, and moves nothing.
//!
//! ```text
//! looker: borrow seat │ read inbox, ring, mailbox, key │ give back
//! worker: take inbox │ lend │ handler │ take back │ next │ publish │ park
//! ```
//! Looked for: a look that reads a mailbox, a slot or a key that its worker, or the intake, writes (loom's cells report
//! it), a message lost to a look, a worker that waits for ever. Broken by hand: looking without the token is reported as a race on the
//! lane's plain data.
//!
//! Searched: preemption bound 1 in the fast set: about 1,200 executions, below 1 s.

use crate::sync::{Arc, AtomicU32, Ordering};

#[test]
fn loom_inspect_vs_running() {
    super::model::large_model("inspect_vs_running", 1, || {
        let executor = super::model::executor(1, 2, 1);
        let ran = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ran);
        let keyspace = executor.keyspace(move |_message: u32| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        for message in 0..2 {
            assert!(keyspace.try_submit(1u8, message).is_ok(), "there is room");
        }
        let seen = executor.inspect(2);
        assert!(seen.live <= 1 && seen.mailboxes.iter().all(|mailbox| mailbox.key == "1"), "{seen:?}");
        assert!(seen.mailboxes.iter().all(|mailbox| mailbox.queued <= 2), "{seen:?}");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed), 2, "each message ran once");
        assert_eq!(executor.inspect(2).live, 0, "nothing lives on a closed executor");
    });
}
