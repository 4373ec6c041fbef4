//! Which keys are live: an open-addressing table from a key's hash to its entry.
//!
//! It holds (tag, entry) pairs only, a tag being the half of a hash that leads to its place; whether two keys are equal is
//! the caller's question, asked for entries whose tag agrees. Its size is fixed by the window, at most half full, so it never grows, never rehashes and never
//! allocates after it was made. Removal shifts later pairs back instead of leaving tombstones, so a table that saw a
//! hundred million short-lived keys is as fast as a new one.
//!
//! A directory of our own where `hashbrown` would do more: see docs/adr/0005.

use crate::mailbox::NONE;

/// What the directory keeps of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u32);

impl Tag {
    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        Self(hash as u32)
    }
}

#[derive(Clone, Copy)]
struct Pair {
    tag: Tag,
    entry: u32,
}

/// The live keys of one intake.
pub(crate) struct Directory {
    pairs: Box<[Pair]>,
    mask: usize,
    live: usize,
}

impl Directory {
    /// A directory for at most `window` live keys.
    pub(crate) fn new(window: usize) -> Self {
        let room = (window * 2).next_power_of_two().max(8);
        Self {
            pairs: vec![Pair { tag: Tag(0), entry: NONE }; room].into_boxed_slice(),
            mask: room - 1,
            live: 0,
        }
    }

    /// How many keys are live.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    #[inline]
    fn home(&self, tag: Tag) -> usize {
        tag.0 as usize & self.mask
    }

    /// The entry of a live key: the first with this tag that `same` accepts.
    #[inline]
    pub(crate) fn find(&self, tag: Tag, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        loop {
            let pair = self.pairs[at];
            if pair.entry == NONE {
                return None;
            }
            if pair.tag == tag && same(pair.entry) {
                return Some(pair.entry);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds a key that is not in the directory.
    #[inline]
    pub(crate) fn insert(&mut self, tag: Tag, entry: u32) {
        let mut at = self.home(tag);
        while self.pairs[at].entry != NONE {
            at = (at + 1) & self.mask;
        }
        self.pairs[at] = Pair { tag, entry };
        self.live += 1;
    }

    /// Removes the key of an entry.
    ///
    /// # Panics
    /// If it is not there, which is a bug of this crate.
    #[inline]
    pub(crate) fn remove(&mut self, tag: Tag, entry: u32) {
        let mut at = self.home(tag);
        while self.pairs[at].entry != entry {
            assert!(self.pairs[at].entry != NONE, "a key is forgotten once, and only a live one");
            at = (at + 1) & self.mask;
        }
        let mut hole = at;
        let mut next = (hole + 1) & self.mask;
        while self.pairs[next].entry != NONE {
            let home = self.home(self.pairs[next].tag);
            // The pair may move back into the hole if its home is not between the hole and itself.
            if (next.wrapping_sub(home) & self.mask) >= (next.wrapping_sub(hole) & self.mask) {
                self.pairs[hole] = self.pairs[next];
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        self.pairs[hole].entry = NONE;
        self.live -= 1;
    }

    /// Every live entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        self.pairs.iter().map(|pair| pair.entry).filter(|entry| *entry != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Few distinct homes, so that runs collide and wrap around the end of the table.
    #[test]
    fn agrees_with_a_map_under_collisions() {
        for seed in 0..200u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut random = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let mut directory = Directory::new(16);
            let mut model: HashMap<u32, u64> = HashMap::new();
            for _ in 0..400 {
                let entry = (random() % 16) as u32;
                if let Some(hash) = model.remove(&entry) {
                    directory.remove(Tag::of(hash), entry);
                } else {
                    let hash = (random() % 5) + 28;
                    directory.insert(Tag::of(hash), entry);
                    model.insert(entry, hash);
                }
                assert_eq!(directory.live(), model.len(), "seed {seed}");
                for probe in 0..16u32 {
                    let expected = model.get(&probe).copied();
                    let hash = expected.unwrap_or(30);
                    let found = directory.find(Tag::of(hash), |found| found == probe);
                    assert_eq!(found, expected.map(|_| probe), "seed {seed}");
                }
            }
        }
    }
}
