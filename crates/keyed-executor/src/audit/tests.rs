//! What the auditor learns of a message that began where its source yielded it and waits: it is one like any other from then on.
//!
//! The engine is asked call by call, by the thread on the seat; cells one by one are `cells/tests.rs`.

use std::future::{Ready, ready};

use super::Accepted;
use crate::engine::Engine;
use crate::hot::Samples;
use crate::intake::Intake;
use crate::intake::bounds::Limits;
use crate::mailbox::NONE;
use crate::sync::{Arc, Ordering};
use crate::tests::held_seat::{executor, on_seat};
use crate::{Audit, Audited, Options};

const HASH: u64 = 7;

#[test]
fn a_message_that_waits_where_its_source_yielded_it_is_met_compared_and_given_back_like_any_other() {
    let executor = executor("settled");
    let options = Options::new("pulled").max_in_flight(16).audit(Audit::On);
    let handler: fn(()) -> Ready<()> = |()| ready(());
    let engine = Engine::new(Arc::clone(executor.inner()), options, false, Samples::Source, handler);
    let auditor = engine.auditor.as_ref().expect("it is on");
    let mut intake = Intake::new(16, Limits::NONE, 1, 0);
    let [first, missed, other] = [3_u32, 3, 4].map(|key| engine.admit(&mut intake, HASH, key, 0));
    on_seat(&executor, |cx| {
        let starts = |entry, slot, number| {
            engine.note(slot, number, HASH);
            engine.audit_start(auditor, cx, entry, slot);
            auditor.read(0)
        };
        let cell = engine.audit_in_place(auditor, cx, HASH);
        assert_ne!(cell, NONE);
        assert_eq!(
            starts(missed, 9, 1),
            Audited { checked: 0, unclear: 1, violations: 0 },
            "its key is out of sight"
        );
        engine.audit_settled(auditor, first, 5, Accepted { number: 12, hash: HASH }, cell);
        assert_eq!(starts(other, 9, 13), Audited { checked: 0, unclear: 1, violations: 0 }, "another key");
        assert_eq!(starts(missed, 9, 14), Audited { checked: 0, unclear: 1, violations: 1 }, "an overlap");
        auditor.ended(5);
        assert_eq!(
            starts(first, 6, 12),
            Audited { checked: 0, unclear: 1, violations: 2 },
            "not after number 12"
        );
        let note = &auditor.notes[6];
        assert_eq!(note.cell.load(Ordering::Relaxed), cell, "the cell was free again");
    });
}
