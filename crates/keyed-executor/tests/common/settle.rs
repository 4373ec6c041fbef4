//! Waiting until a worker has nothing more to do of what it could know of.
//!
//! For tests that something does not happen: whatever was queued before it is done with.

use keyed_executor::KeyedExecutor;
use wow_testkit::Latch;

/// Returns once the first worker, the only one in most of these tests, has gone through what was queued on it, twice.
pub(crate) fn settle(executor: &KeyedExecutor) {
    for _ in 0..2 {
        let passed = Latch::new();
        let pass = passed.clone();
        executor.execute_pinned(0, move || pass.release()).expect("the executor is open");
        passed.wait();
    }
}
