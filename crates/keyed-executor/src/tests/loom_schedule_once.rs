//! L1: two producers, one key, one worker: every message runs once, in each producer's order, never two at a time.
//!
//! ```text
//! producer 1: submit 0, submit 1      producer 2: submit 2      worker: turns of one message
//! ```
//! Looked for: a mailbox queued twice or not at all while messages arrive between its turns. The whole production
//! `submit` door. Broken by hand: an `enqueue` that does not queue an idle mailbox deadlocks; one that queues a ready
//! one again panics in the mailbox table.
//!
//! Searched: preemption bound 1 in the fast set: about 12,000 executions, 4 s.

use crate::sync::{Arc, Mutex, lock};

#[test]
fn loom_schedule_once() {
    super::model::large_model("schedule_once", 1, || {
        let executor = super::model::executor(1, 4, 1);
        let ran = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&ran);
        let keyspace = executor.keyspace(move |message: u32| {
            lock(&log).push(message);
            std::future::ready(())
        });
        let second = keyspace.clone();
        let producer = loom::thread::spawn(move || second.try_submit(1u8, 2).expect("there is room"));
        keyspace.try_submit(1, 0).expect("there is room");
        keyspace.try_submit(1, 1).expect("there is room");
        producer.join().expect("the producer ends");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        let ran = lock(&ran);
        let mut sorted = ran.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2], "each message runs once");
        let place = |message| ran.iter().position(|ran| *ran == message);
        assert!(place(0) < place(1), "one producer's messages keep their order: {ran:?}");
    });
}
