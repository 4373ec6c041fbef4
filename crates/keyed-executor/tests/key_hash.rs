//! Every dispatch and keyspace hashes its keys with a seed of its own: keys that meet in one do not meet in another.
//!
//! Observed from a key's own `Hash`, which sees the hasher: with both ways to hash, keys that were crafted to meet in one
//! keyspace are spread in the next ones (by the strong hash as if at random, by the fast one less evenly), and one key has as
//! many hashes as there are dispatches.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyHash, KeyedExecutor, Keyspace, Options};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};
use wow_testkit::finish;

/// The places of a directory for the default window.
const PLACES: u64 = 512;
const CRAFTED: usize = 200;

/// A key that notes what it hashes to.
struct Probe {
    number: u64,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Hash for Probe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.number);
        self.seen.lock().expect("nothing panics here").push(state.finish());
    }
}

impl PartialEq for Probe {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Probe {}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.number)
    }
}

/// What these keys hash to in a keyspace of their own.
fn hashes(executor: &KeyedExecutor, how: KeyHash, keys: &[u64]) -> Vec<u64> {
    let options = Options::new("hashed").key_hash(how);
    let keyspace: Keyspace<Probe, ()> = executor.keyspace_with(options, |()| async {});
    keys.iter()
        .map(|number| {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let key = Probe { number: *number, seen: Arc::clone(&seen) };
            finish(keyspace.submit(key, ())).expect("the keyspace is open");
            let seen = seen.lock().expect("nothing panics here");
            assert!(seen.iter().all(|hash| hash == &seen[0]), "a key has one hash in its keyspace");
            seen[0]
        })
        .collect()
}

#[test]
fn keys_that_meet_in_one_keyspace_are_spread_in_another() {
    let executor = KeyedExecutor::builder().name("hash-meet").workers(1).build().expect("it is in range");
    for how in [KeyHash::Fast, KeyHash::Strong] {
        let attacked: Keyspace<Probe, ()> =
            executor.keyspace_with(Options::new("attacked").key_hash(how), |()| async {});
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut crafted = Vec::new();
        for number in 0.. {
            let key = Probe { number, seen: Arc::clone(&seen) };
            finish(attacked.submit(key, ())).expect("the keyspace is open");
            if seen.lock().expect("nothing panics here").drain(..).any(|hash| hash % PLACES == 0) {
                crafted.push(number);
                if crafted.len() == CRAFTED {
                    break;
                }
            }
        }
        for _ in 0..10 {
            let mut in_place: HashMap<u64, usize> = HashMap::new();
            for hash in hashes(&executor, how, &crafted) {
                *in_place.entry(hash % PLACES).or_default() += 1;
            }
            let most = in_place.values().copied().max().unwrap_or(0);
            // Of 4,000 pairs of seeds the worst was 25 for the fast hash, 7 for the strong one, which is as if at random.
            let accepted = if how == KeyHash::Fast { CRAFTED / 4 } else { CRAFTED / 10 };
            assert!(most <= accepted, "{how:?}: {most} of {CRAFTED} keys meet again");
        }
    }
    executor.close();
}

#[test]
fn a_key_has_another_hash_in_every_dispatch() {
    let executor = KeyedExecutor::builder().name("hash-own").workers(1).build().expect("it is in range");
    for how in [KeyHash::Fast, KeyHash::Strong] {
        let all: HashSet<u64> = (0..50).map(|_| hashes(&executor, how, &[4_711])[0]).collect();
        assert_eq!(all.len(), 50, "{how:?}");
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let seen = Arc::clone(&seen);
        let key = move |_: &u32| Probe { number: 4_711, seen: Arc::clone(&seen) };
        let dispatch = executor.dispatch(futures_util::stream::iter([0_u32]), key, |_| async {});
        finish(dispatch).expect("no handler fails");
    }
    let seen: HashSet<u64> = seen.lock().expect("nothing panics here").iter().copied().collect();
    assert_eq!(seen.len(), 2, "a source's keys too");
    executor.close();
}
