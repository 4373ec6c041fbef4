//! The watchdog's look: it names what a thread is inside of while that thread comes back, goes on, and forgets the key.
//!
//! ```text
//! worker:   lend │ handler of key 1 │ back │ complete │ lend │ handler of key 2 │ back │ park
//! watchdog: word? │ borrow │ the same word? │ whose turn │ its key's Debug │ give back     (twice)
//! intake:                                                      key 1 is forgotten and dropped
//! ```
//! Looked for: a key that is read beside or after its drop, and the lane's plain data read beside its worker (loom's cells
//! report both), a code that is named for a word it does not belong to, and a worker that waits for ever. Production code
//! on the whole executor; the monitor's thread is left out and its look is called by the main thread. Broken by hand:
//! giving the seat back before the key is read, and giving it back with Relaxed, are each reported as a race on a cell.
//!
//! Searched: preemption bound 2: 25,696 executions, 5 s.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::shared::{Lifetime, Shared};
use crate::sync::{Arc, AtomicU32, Ordering, UnsafeCell, spawn_named};
use crate::{KeyedExecutor, StuckCode};

/// A key whose readings and whose drop loom watches.
struct Watched {
    id: u8,
    alive: UnsafeCell<bool>,
}

// SAFETY: rule 6 of seat/README.md: every thread may read a key until its intake drops it; that is what the model checks.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn new(id: u8) -> Self {
        Self { id, alive: UnsafeCell::new(true) }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: rule 6 of seat/README.md, as above.
        self.alive.with_mut(|alive| unsafe { *alive = false });
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: rule 6 of seat/README.md, as above.
        assert!(self.alive.with(|alive| unsafe { *alive }), "a key is read before its drop");
        write!(f, "{}", self.id)
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// The model's main thread looks in the monitor's place.
fn without_monitor(name: String, body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    if name == "rescue:model" { Err(std::io::ErrorKind::Unsupported.into()) } else { spawn_named(name, body) }
}

#[test]
fn loom_watchdog() {
    // Both keys have to be met, or the model looks at nothing.
    static NAMED: [std::sync::atomic::AtomicBool; 2] =
        [const { std::sync::atomic::AtomicBool::new(false) }; 2];
    super::model::model("watchdog", || {
        let executor = KeyedExecutor::builder()
            .name("model")
            .workers(1)
            .max_in_flight(2)
            .throughput(1)
            .rescue_threads(0)
            .start_for(Lifetime::Handles, without_monitor);
        let handled = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&handled);
        let keyspace = executor.keyspace(move |_: u8| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        let worker = &executor.inner().workers[0];
        for id in [1, 2] {
            keyspace.try_submit(Watched::new(id), id).expect("there is room");
            let Some(word) = worker.token().inside() else { continue };
            match Shared::name_stuck(worker, word) {
                Some(StuckCode::Handler { label, key }) => {
                    assert_eq!(label, "keyspace");
                    let known = ["1", "2"].iter().position(|known| *known == key);
                    NAMED[known.expect("a key that was submitted")].store(true, Ordering::Relaxed);
                }
                Some(StuckCode::Source { .. }) => panic!("there is no source"),
                // A drop or a waker on the way; or the thread was back.
                Some(StuckCode::Other) | None => {}
            }
        }
        drop(keyspace);
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(handled.load(Ordering::Relaxed), 2);
    });
    assert!(NAMED.iter().all(|named| named.load(Ordering::Relaxed)));
}
