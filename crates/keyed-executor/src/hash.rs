//! How keys are hashed: with a seed of its own for each dispatch, fast or against attackers.
//!
//! The hash of a key chooses its place in the directory (`directory.rs`) and nothing else. Crafted keys that meet in one place
//! cost a search through those that are live at once, so never more than the window; both hashers have random seeds, so that
//! what meets in one dispatch is spread in another, and keys cannot be crafted from the outside without seeing anything.
//! What an attacker can do who sees a lot, by timing for instance, is where the two differ ([`KeyHash`]).

use std::hash::{BuildHasher, Hash};

use crate::sync::{HashSeed, StrongSeed};

/// How the keys of a dispatch or keyspace are hashed.
///
/// ```
/// use keyed_executor::{KeyHash, Options};
///
/// let options = Options::new("public").key_hash(KeyHash::Strong);
/// assert_eq!(options.key_hash, KeyHash::Strong);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyHash {
    /// foldhash with a random seed for each dispatch. Keys cannot be crafted to meet by somebody who sees nothing of the
    /// process; by its own documentation it does not claim to resist somebody who can measure it and tries again and again,
    /// and keys that meet under one seed are spread under another, but not as evenly as at random (at worst an eighth of 200
    /// met again, in 4,000 pairs of seeds).
    #[default]
    Fast,
    /// The keyed hash of the standard library (SipHash 1-3 today) with random keys for each dispatch, made to resist that as
    /// well: for keys that strangers choose and whose handling they can time.
    Strong,
}

/// A hash function with its seed.
pub(crate) enum KeyHasher {
    Fast(HashSeed),
    Strong(StrongSeed),
}

impl KeyHasher {
    pub(crate) fn new(how: KeyHash) -> Self {
        match how {
            KeyHash::Fast => Self::Fast(HashSeed::default()),
            KeyHash::Strong => Self::Strong(StrongSeed::default()),
        }
    }

    #[inline]
    pub(crate) fn hash<K: Hash>(&self, key: &K) -> u64 {
        match self {
            Self::Fast(seed) => seed.hash_one(key),
            Self::Strong(seed) => seed.hash_one(key),
        }
    }
}
