//! L6 for keys: a submitter whose key is full is never left asleep once a message of the key came back.
//!
//! ```text
//! worker:    publish completion │ returned += n │ fence │ read mark
//! submitter: takes back, key full │ into the list │ watch: takes back │ mark = any │ fence │ read returned │ wait
//! ```
//! Looked for: a completion between the submitter's look and the registration of the watch, and a watch that another
//! submitter's registration replaces with one that has seen less. The production keyspace with a limit of one for each
//! key and no overflow. Broken by hand: without the last look at `returned` in `watch`, the first model deadlocks.
//!
//! Searched: preemption bound 2: about 30,000 executions for one submitter, 10 s; bound 1: about 16,000 for two.

use crate::sync::{Arc, AtomicU32, Ordering};
use crate::{Keyspace, Options};

fn keyspace(executor: &crate::KeyedExecutor, ran: &Arc<AtomicU32>) -> Keyspace<u8, u32> {
    let count = Arc::clone(ran);
    let options = Options::new("model").max_per_key(1).overflow(0);
    executor.keyspace_with(options, move |_message: u32| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(())
    })
}

#[test]
fn loom_key_waiter() {
    super::model::model("key_waiter", || {
        let executor = super::model::executor(1, 2, 1);
        let ran = Arc::new(AtomicU32::new(0));
        let keyspace = keyspace(&executor, &ran);
        keyspace.try_submit(1, 1).expect("the key has room");
        loom::future::block_on(keyspace.submit(1, 2)).expect("the keyspace is open");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed), 2, "each accepted message ran once");
    });
}

#[test]
fn loom_key_waiter_two() {
    super::model::large_model("key_waiter_two", 1, || {
        let executor = super::model::executor(1, 2, 1);
        let ran = Arc::new(AtomicU32::new(0));
        let keyspace = keyspace(&executor, &ran);
        keyspace.try_submit(1, 1).expect("the key has room");
        let second = keyspace.clone();
        let other = loom::thread::spawn(move || {
            loom::future::block_on(second.submit(1, 2)).expect("the keyspace is open");
        });
        loom::future::block_on(keyspace.submit(1, 3)).expect("the keyspace is open");
        other.join().expect("the other submitter ends");
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(ran.load(Ordering::Relaxed), 3, "each accepted message ran once");
    });
}
