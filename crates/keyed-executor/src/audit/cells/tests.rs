//! Cells one by one: whom a claim meets, where none is free, and whose message may not end.
//!
//! All hashes here lie from the first cell on. What an auditor makes of it is `crates/keyed-executor/src/tests/audit_faults.rs`.

use super::{Auditor, CLAIMED, Claim, FREE, PINNED};
use crate::look::IN_PLACE;
use crate::mailbox::NONE;
use crate::sync::Ordering;

/// The cell, and whether somebody else has it.
fn claim(auditor: &Auditor, hash: u64) -> (u32, bool) {
    match auditor.claim(hash, 100 + hash as u32) {
        Claim::Cell(cell) => (cell, false),
        Claim::Met(cell) => (cell, true),
    }
}

fn entry(auditor: &Auditor, cell: usize) -> u32 {
    auditor.cells[cell].entry.load(Ordering::Relaxed)
}

#[test]
fn a_claim_meets_its_own_hash_and_no_other_and_is_given_up_where_no_cell_in_reach_is_free() {
    let auditor = Auditor::new(16, 16);
    for hash in 1..=4 {
        let cell = hash as u32 - 1;
        assert_eq!(claim(&auditor, hash), (cell, false));
        assert_eq!(entry(&auditor, cell as usize), 100 + hash as u32);
    }
    assert_eq!(claim(&auditor, 5), (NONE, false), "the next cells are out of reach");
    for hash in 1..=4 {
        assert_eq!(claim(&auditor, hash), (hash as u32 - 1, true));
    }
    auditor.give_back(NONE);
    auditor.give_back(1);
    assert_eq!(entry(&auditor, 1), NONE);
    assert_eq!(claim(&auditor, 5), (1, false));
    assert_eq!(entry(&auditor, 1), 105);
    assert_eq!(claim(&auditor, 2), (NONE, false));
    assert_eq!(claim(&auditor, 5), (1, true));
}

#[test]
fn a_message_is_kept_from_ending_by_one_at_a_time_and_only_if_it_has_not_ended() {
    let auditor = Auditor::new(16, 16);
    assert_eq!(claim(&auditor, 7), (0, false));
    let cell = &auditor.cells[0];
    let mine = 7 << 2 | CLAIMED;
    assert!(!cell.pin(6 << 2 | CLAIMED), "another one has it");
    assert!(cell.pin(mine));
    assert_eq!(cell.claim.load(Ordering::Relaxed), mine | PINNED);
    assert!(!cell.pin(mine), "somebody looks already");
    assert_eq!(claim(&auditor, 7), (0, true), "and is met all the same");
    cell.claim.store(mine, Ordering::Relaxed);
    auditor.give_back(0);
    assert_eq!(cell.claim.load(Ordering::Relaxed), FREE);
    assert!(!cell.pin(mine), "it has ended");
}

#[test]
fn a_message_that_runs_in_place_is_unclear_if_it_meets_another_one_or_no_cell_in_reach_is_free() {
    let auditor = Auditor::new(16, 16);
    let in_place = |hash| (auditor.claim_in_place(hash), auditor.read(0).unclear);
    for hash in 1..=3 {
        assert_eq!(in_place(hash), (hash as u32 - 1, 0));
        assert_eq!(entry(&auditor, hash as usize - 1), IN_PLACE);
    }
    assert_eq!(in_place(2), (NONE, 1), "another one of its hash has not ended");
    assert_eq!(in_place(4), (3, 1));
    assert_eq!(in_place(5), (NONE, 2), "all cells in reach are taken");
    auditor.give_back(0);
    assert_eq!(in_place(5), (0, 2));
}
