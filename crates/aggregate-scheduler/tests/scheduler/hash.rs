//! The group of an id is that of the JVM's 9.2 line: known values of the string hash, and its floor modulo.

use std::num::NonZeroU32;

use crate::common::groups;
use wow_aggregate_scheduler::{GROUPS_PER_CORE, Groups, group_of, java_string_hash};

#[test]
fn the_hash_is_that_of_a_java_string() {
    let known = [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99_162_322),
        // U+00E9 is one unit, and two bytes in UTF-8.
        ("\u{e9}", 233),
        // U+1F600 is the surrogates D83D DE00: 31 * 0xD83D + 0xDE00.
        ("\u{1f600}", 1_772_899),
        // Wraps at 32 bits, to the smallest of all hashes.
        ("polygenelubricants", i32::MIN),
    ];
    for (text, hash) in known {
        assert_eq!(java_string_hash(text), hash, "{text:?}");
    }
}

#[test]
fn a_negative_hash_has_a_group_that_is_not_negative() {
    let count = |count| NonZeroU32::new(count).expect("not zero");
    // -2147483648 mod 7 = 5: the rest of the division is -2.
    assert_eq!(group_of("polygenelubricants", count(7)), 5);
    assert_eq!(group_of("polygenelubricants", count(128)), 0);
    assert_eq!(group_of("polygenelubricants", count(u32::MAX)), (1 << 31) - 1);
    assert_eq!(group_of("hello", count(128)), 99_162_322 % 128);
    assert_eq!(group_of("hello", NonZeroU32::MIN), 0);
}

#[test]
fn ids_with_one_hash_share_their_group_whatever_the_number_of_groups() {
    for count in [1, 2, 3, 64, 128, 1000, u32::MAX] {
        assert_eq!(groups(count).of("Aa"), groups(count).of("BB"), "{count} groups");
    }
}

#[test]
fn every_id_has_a_group_below_their_number() {
    for n in 0..10_000_u32 {
        let id = format!("order-{n}-\u{1f600}");
        assert!(groups(7).of(&id) < 7, "{id}");
    }
}

#[test]
fn by_default_there_are_64_groups_for_each_processor() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(GROUPS_PER_CORE, 64);
    assert_eq!(Groups::default().count().get() as usize, 64 * cores);
}
