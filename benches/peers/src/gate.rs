//! A gate that handlers block at until enough other handlers have been there: what workload L is about.
//!
//! Whoever waits holds its thread, without a limit; a contender that gives every thread to such handlers never opens it.
//! Invariant: nobody is behind the gate before the last of those that open it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A gate that opens when it was asked to so many times.
#[derive(Debug)]
pub struct Gate {
    asked_for: u32,
    missing: Mutex<u32>,
    opened: Condvar,
}

impl Gate {
    /// A gate that is shut until [`open`](Self::open) was called so many times.
    #[must_use]
    pub fn new(asked_for: u32) -> Self {
        Self { asked_for, missing: Mutex::new(asked_for), opened: Condvar::new() }
    }

    /// Shuts it again; only while no handler runs.
    pub fn shut(&self) {
        *self.missing() = self.asked_for;
    }

    /// One of the calls that open it.
    pub fn open(&self) {
        let mut missing = self.missing();
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            self.opened.notify_all();
        }
    }

    /// Blocks the calling thread until it is open.
    pub fn wait(&self) {
        let missing = self.missing();
        drop(self.opened.wait_while(missing, |missing| *missing > 0).unwrap_or_else(PoisonError::into_inner));
    }

    fn missing(&self) -> MutexGuard<'_, u32> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_passes_before_the_last_call_and_everybody_after_it() {
        let gate = Gate::new(2);
        let (passed, who) = channel();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let passed = passed.clone();
                let gate = &gate;
                scope.spawn(move || {
                    gate.wait();
                    passed.send(*gate.missing()).expect("the test waits for everybody");
                });
            }
            gate.open();
            // Whoever passed now would have told by then, or else the test proves less.
            assert!(who.recv_timeout(Duration::from_millis(50)).is_err());
            gate.open();
        });
        assert_eq!(who.try_iter().collect::<Vec<_>>(), [0, 0, 0]);
    }
}
