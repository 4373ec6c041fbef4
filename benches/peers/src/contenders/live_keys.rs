//! The table of live keys that per-key peers share between their producer and their handlers.
//!
//! Invariant: a key that is looked up under the lock stays in the table until the lock is released, so what is found
//! there still takes messages. The hash is the fastest there is, in favour of the peers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A table by key, with the hash that our own directory uses.
pub(crate) type Table<V> = HashMap<u32, V, foldhash::fast::FixedState>;

/// A table behind a lock.
pub(crate) struct LiveKeys<V>(Arc<Mutex<Table<V>>>);

impl<V> Clone for LiveKeys<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> LiveKeys<V> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Table::default())))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Table<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something with the number of messages that it still has to handle.
pub(crate) struct Counted<V> {
    pub(crate) value: V,
    pub(crate) pending: usize,
}

impl<V> LiveKeys<Counted<V>> {
    /// Counts one more message of a key and runs `hand_in` with what the key has, made where it has nothing.
    pub(crate) fn with(&self, key: u32, make: impl FnOnce() -> V, hand_in: impl FnOnce(&V)) {
        let mut table = self.lock();
        let entry = table.entry(key).or_insert_with(|| Counted { value: make(), pending: 0 });
        entry.pending += 1;
        hand_in(&entry.value);
    }

    /// Counts one message of a key as handled; what the key had comes back when it was the last one.
    pub(crate) fn handled(&self, key: u32) -> Option<V> {
        let mut table = self.lock();
        let entry = table.get_mut(&key)?;
        entry.pending -= 1;
        if entry.pending > 0 {
            return None;
        }
        table.remove(&key).map(|entry| entry.value)
    }
}
