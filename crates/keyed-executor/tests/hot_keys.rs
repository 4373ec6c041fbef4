//! The keys that most messages are for are found among any number of others, in bounded memory, while it runs.
//!
//! Observes B-6: a long-tailed stream through either door, keys that move between workers, keys that come in turns.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{HotKey, KeyedExecutor, Keyspace, Options};
use wow_testkit::{Source, finish};

const MESSAGES: u64 = 200_000;

fn executor(name: &str) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(2).build().expect("the settings are in range")
}

/// Keys of which one in `n` is for key `n - 1`, about: 1/2 for 0, 1/4 for 1, ..., the rest among 100,000.
fn long_tailed(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = seed;
    (0..MESSAGES).map(move |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = random >> 20;
        match drawn % 16 {
            0..=4 => 0,
            5..=7 => 1,
            8 => 2,
            _ => 3 + (drawn >> 8) % 100_000,
        }
    })
}

fn check(found: &[HotKey], label: &str) {
    let keys: Vec<&str> = found.iter().map(|hot| &*hot.key).collect();
    assert_eq!(keys[..3], ["0", "1", "2"], "{found:?}");
    for (hot, sixteenths) in found.iter().zip([5, 3, 1]) {
        assert_eq!(hot.dispatch, label);
        // Sampled: within a half of its share, the possible error of the sketch aside.
        let expected = hot.among * sixteenths / 16;
        assert!(hot.messages + expected / 2 >= expected, "{hot:?}");
        assert!(hot.messages - hot.error <= expected + expected / 2, "{hot:?}");
    }
}

#[test]
fn the_hot_keys_of_a_source_are_found() {
    let executor = executor("hot-pull");
    let (looked, mut looks) = (executor.clone(), 0);
    // Asked for by the source itself, when most of it is through.
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&seen);
    let source = long_tailed(7).inspect(move |_| {
        looks += 1;
        if looks == MESSAGES - 1 {
            *told.lock().expect("no look panics") = looked.hot_keys(5);
        }
    });
    let options = Options::new("pulled");
    let dispatch = executor.dispatch_with(options, stream::iter(source), |key| *key, |_| async {});
    finish(dispatch).expect("no handler fails");
    let seen = seen.lock().expect("no look panics");
    check(&seen, "pulled");
    executor.close();
}

#[test]
fn the_hot_keys_of_a_keyspace_are_found_by_all_its_workers_together() {
    let executor = executor("hot-submit");
    let keyspace: Keyspace<u64, u64> = executor.keyspace_with(Options::new("submitted"), |_| async {});
    for key in long_tailed(11) {
        finish(keyspace.submit(key, key)).expect("it is open");
    }
    finish(keyspace.drained());
    let found = keyspace.hot_keys(1_000);
    check(&found, "submitted");
    assert!(found.len() <= 2 * 32, "bounded by the workers, not by the keys: {}", found.len());
    assert_eq!(executor.hot_keys(2).len(), 2);
    executor.close();
}

#[test]
fn a_dispatch_tells_its_own_hot_keys_and_no_others() {
    let executor = executor("hot-own");
    let other: Keyspace<u64, u64> = executor.keyspace_with(Options::new("other"), |_| async {});
    for n in 0..1_000 {
        finish(other.submit(77, n)).expect("it is open");
    }
    finish(other.drained());
    let (source, feed) = Source::fed();
    let dispatch = executor.dispatch_with(Options::new("own"), source, |key| *key, |_| async {});
    feed.extend(long_tailed(7));
    feed.taken().wait_for(MESSAGES);
    let found = dispatch.hot_keys(3);
    assert_eq!(found.len(), 3);
    check(&found, "own");
    feed.end();
    finish(dispatch).expect("no handler fails");
    executor.close();
}

#[test]
fn keys_that_come_in_turns_are_equally_hot() {
    let executor = executor("hot-turns");
    let keyspace: Keyspace<u64, u64> = executor.keyspace(|_| async {});
    for n in 0..MESSAGES {
        finish(keyspace.submit(n % 16, n)).expect("it is open");
    }
    finish(keyspace.drained());
    let found = keyspace.hot_keys(16);
    assert_eq!(found.len(), 16, "{found:?}");
    assert!(found[0].messages < 4 * found[15].messages, "{found:?}");
    executor.close();
}
