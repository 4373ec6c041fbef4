//! The keys of an engine: where a key is, how it becomes live, and how it is forgotten.
//!
//! Rule 6 of seat/README.md says who reads a key when. A key lies in its entry's cell exactly as long as the directory knows
//! it; what the user's comparison, `Debug` or `Drop` does is the caller's to contain, and a `Drop` is left to it altogether.
//! Which entry a key gets is the intake's.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::Engine;
use crate::error::Outcome;
use crate::intake::{Intake, Place};

/// A key as its `Debug` writes it.
#[cold]
pub(crate) fn text_of<K: Debug>(key: &K) -> String {
    crate::contain::contain(|| format!("{key:?}")).unwrap_or_else(|_| "<its Debug panicked>".to_owned())
}

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// The hash of a key: computed once for each message.
    #[inline]
    pub(crate) fn hash(&self, key: &K) -> u64 {
        self.hasher.hash(key)
    }

    /// Where a key is.
    #[inline]
    pub(crate) fn find(&self, intake: &Intake, hash: u64, key: &K) -> Place {
        #[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
        if crate::tests::breaks::happens(crate::tests::breaks::Break::KeyMissed) {
            return Place::Absent;
        }
        intake.find(hash, |entry| {
            // SAFETY: rule 6 of seat/README.md: the entry is in the directory, so its key was written and not dropped.
            self.keys[entry as usize].with(|known| unsafe { (*known).assume_init_ref() == key })
        })
    }

    /// Makes a key live.
    #[inline]
    pub(crate) fn admit(&self, intake: &mut Intake, hash: u64, key: K, worker: usize) -> u32 {
        let entry = intake.admit(hash, worker);
        // SAFETY: rule 6 of seat/README.md: the entry was free, so nobody reads its key.
        self.keys[entry as usize].with_mut(|place| unsafe { (*place).write(key) });
        entry
    }

    /// A key as its `Debug` writes it, while a message of its entry is outstanding.
    #[cold]
    pub(crate) fn key_text(&self, entry: u32) -> String {
        self.with_key(entry, text_of)
    }

    /// Reads a key while a message of its entry is outstanding.
    pub(crate) fn with_key<R>(&self, entry: u32, read: impl FnOnce(&K) -> R) -> R {
        // SAFETY: rule 6 of seat/README.md: a message of this entry is outstanding.
        self.keys[entry as usize].with(|key| read(unsafe { (*key).assume_init_ref() }))
    }

    /// Takes completions back from every lane; keys without messages are forgotten, permits are free.
    ///
    /// The keys go into `dead`: their `Drop` is the user's, and the caller may hold a lock.
    #[inline]
    pub(crate) fn reclaim(&self, intake: &mut Intake, dead: &mut Vec<K>) {
        intake.since_reclaim = 0;
        for (index, lane) in self.lanes.iter().enumerate() {
            let published = lane.completions.published();
            while intake.reclaimed[index] < published {
                // SAFETY: rule 5 of seat/README.md: the caller owns the intake, so it is the lane's only consumer.
                let item = unsafe { lane.completions.read(intake.reclaimed[index]) };
                intake.reclaimed[index] += 1;
                if intake.give_back(item.entry(), item.slot()) {
                    self.bury_key(item.entry(), dead);
                }
            }
        }
    }

    /// Moves a key that was forgotten out of its place, for the caller to drop.
    #[inline]
    fn bury_key(&self, entry: u32, dead: &mut Vec<K>) {
        // SAFETY: rule 6 of seat/README.md: the entry was just forgotten, its last message came back.
        let key = self.keys[entry as usize].with_mut(|key| unsafe { (*key).assume_init_read() });
        if std::mem::needs_drop::<K>() {
            dead.push(key);
        }
    }

    /// Drops the keys that are still live when the dispatch itself is dropped.
    pub(crate) fn drop_keys(&self, intake: &mut Intake, dead: &mut Vec<K>) {
        self.reclaim(intake, dead);
        let live: Vec<u32> = intake.live_entries().collect();
        for entry in live {
            self.bury_key(entry, dead);
        }
        for key in dead.drain(..) {
            crate::contain::drop_contained("a key", key);
        }
    }
}
