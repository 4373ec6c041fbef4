//! L3, and X5: a key that is forgotten while a message for it arrives: the message runs once, the directory ends empty.
//!
//! ```text
//! submitter: find entry, add, push        worker: last message ends, completion published
//! submitter: ... reclaim, forget, place again
//! ```
//! Looked for: a message pushed to an entry that was forgotten, or a key forgotten with a message behind it. Window
//! two, so every submission takes completions back. Broken by hand: giving a slot back without counting `outstanding`
//! makes the directory forget a live key, which its assertion reports.
//!
//! Searched: preemption bound 2: about 96,000 executions, 15 s.

use crate::sync::{Arc, AtomicU32, Ordering};

#[test]
fn loom_retire_vs_submit() {
    super::model::model("retire_vs_submit", || {
        let executor = super::model::executor(1, 2, 2);
        let ran = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ran);
        let keyspace = executor.keyspace(move |_message: u32| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        let mut accepted = 0;
        for message in 0..3 {
            accepted += u32::from(keyspace.try_submit(1u8, message).is_ok());
        }
        let ledger = loom::future::block_on(keyspace.drained());
        assert_eq!(ledger.handled, u64::from(accepted));
        assert_eq!(keyspace.live_keys(), 0, "no message, no key");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed), accepted, "each accepted message ran once");
    });
}

#[test]
fn loom_retire_vs_submit_by_two() {
    super::model::large_model("retire_vs_submit_by_two", 1, || {
        let executor = super::model::executor(1, 2, 2);
        let ran = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ran);
        let keyspace = executor.keyspace(move |_message: u32| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        let second = keyspace.clone();
        let producer = loom::thread::spawn(move || u32::from(second.try_submit(1u8, 9).is_ok()));
        let mut accepted = 0;
        for message in 0..2 {
            accepted += u32::from(keyspace.try_submit(1u8, message).is_ok());
        }
        accepted += producer.join().expect("the producer ends");
        let ledger = loom::future::block_on(keyspace.drained());
        assert_eq!(ledger.handled, u64::from(accepted));
        assert_eq!(keyspace.live_keys(), 0, "no message, no key");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed), accepted, "each accepted message ran once");
    });
}
