//! L2: one key and two workers: never two handlers of the key at once, whoever it is placed on.
//!
//! ```text
//! producer: submit 0 ... retire ... submit 1      workers 1 and 2
//! ```
//! Looked for: the key placed on a second worker while the first still holds it. A handler that touches a plain cell:
//! loom reports two of them without a happens-before between. Broken by hand: forgetting the entry before its
//! completion came back (reclaim by the inbox's `taken` instead of `completions`) is reported as a race.
//!
//! Searched: preemption bound 2: about 25,000 executions, 9 s.

use crate::sync::{Arc, UnsafeCell};

struct Account(UnsafeCell<u32>);

// SAFETY: the guarantee under test, rule 2 of seat/README.md: handlers of one key never overlap.
unsafe impl Sync for Account {}
// SAFETY: as above.
unsafe impl Send for Account {}

#[test]
fn loom_one_key_two_workers() {
    super::model::model("one_key_two_workers", || {
        let executor = super::model::executor(2, 1, 1);
        let account = Arc::new(Account(UnsafeCell::new(0)));
        let handled = Arc::clone(&account);
        let keyspace = executor.keyspace(move |message: u32| {
            // SAFETY: rule 2 of seat/README.md, which this model checks.
            handled.0.with_mut(|value| unsafe {
                assert_eq!(*value, message, "messages of a key run in order");
                *value += 1;
            });
            std::future::ready(())
        });
        let mut submitted = 0;
        for message in 0..2 {
            // The window is one: the second is accepted only if the first came back already.
            if keyspace.try_submit(1u8, message).is_ok() {
                submitted += 1;
            } else {
                break;
            }
        }
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        // SAFETY: rule 2 of seat/README.md: every worker ended.
        assert_eq!(account.0.with(|value| unsafe { *value }), submitted);
    });
}
