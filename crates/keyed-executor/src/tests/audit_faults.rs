//! An auditor that is on tells of every break of a key's order or exclusion (B-7): the production code is broken, not the keys.
//!
//! Observed: what it tells, and that the break did happen. What is broken is `breaks.rs`; more breaks, made by hand, are in
//! docs/verification.md.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use wow_testkit::{Latch, eventually, finish};

use super::breaks::{Break, next};
use crate::{Audit, Audited, KeyedExecutor, Keyspace, Misorder, Options, Violation};

const LONG: Duration = Duration::from_secs(30);

/// An executor of one thread with a keyspace whose first message waits for a latch.
struct Audits {
    executor: KeyedExecutor,
    keyspace: Keyspace<u8, u64>,
    gate: Latch,
    told: Receiver<Misorder>,
    ended: Receiver<u64>,
}

impl Audits {
    fn new(name: &str) -> Self {
        let (tell, told): (Sender<Misorder>, _) = channel();
        let executor = KeyedExecutor::builder()
            .name(name)
            .workers(1)
            .rescue_threads(0)
            .on_misorder(move |misorder| tell.send(misorder.clone()).expect("the test listens"))
            .build()
            .expect("the settings are in range");
        let (gate, (end, ended)) = (Latch::new(), channel());
        let held = gate.clone();
        let keyspace = executor.keyspace_with(Options::new("orders").audit(Audit::On), move |n: u64| {
            let (end, held) = (end.clone(), held.clone());
            async move {
                if n == 1 {
                    held.released().await;
                }
                end.send(n).expect("the test listens");
            }
        });
        Self { executor, keyspace, gate, told, ended }
    }

    fn submit(&self, message: u64) {
        self.keyspace.try_submit(7, message).expect("there is room");
    }

    /// The order in which so many messages ended.
    fn ends<const N: usize>(&self) -> [u64; N] {
        [(); N].map(|()| self.ended.recv_timeout(LONG).expect("it is handled"))
    }

    /// The only violation is this one, among so many messages.
    fn told_of(self, what: Violation, text: &str, checked: u64) {
        let misorder = self.told.recv_timeout(LONG).expect("it is told");
        assert_eq!((&*misorder.dispatch, &*misorder.key, misorder.what), ("orders", "7", what));
        assert_eq!(misorder.to_string(), text);
        finish(self.keyspace.drained());
        let audited = self.keyspace.metrics().audited.expect("it is on");
        assert_eq!(audited, Audited { checked, unclear: 0, violations: 1 });
        self.executor.close();
        self.executor.join().expect("not a worker");
    }
}

#[test]
fn a_message_that_was_accepted_later_and_started_before_is_told() {
    let audits = Audits::new("overtaken");
    audits.gate.release();
    next(Break::Numbered(9));
    (1..=3).for_each(|n| audits.submit(n));
    assert_eq!(audits.ends(), [1, 2, 3], "the numbers were wrong, the order was not");
    let what = Violation::Overtaken { started: 2, after: 9 };
    audits.told_of(what, "orders 7: message 2 was started after message 9", 3);
}

#[test]
fn a_mailbox_that_gives_out_its_second_message_first_is_told() {
    let audits = Audits::new("second");
    (1..=4).for_each(|n| audits.submit(n));
    eventually("the first one waits", || audits.keyspace.metrics().waiting == 1);
    audits.executor.execute_pinned(0, || next(Break::SecondFirst)).expect("it is open");
    audits.gate.release();
    assert_eq!(audits.ends(), [1, 3, 2, 4], "the code is broken");
    let what = Violation::Overtaken { started: 2, after: 3 };
    audits.told_of(what, "orders 7: message 2 was started after message 3", 4);
}

#[test]
fn a_directory_that_misses_a_live_key_is_told() {
    let audits = Audits::new("missed");
    audits.submit(1);
    eventually("it waits", || audits.keyspace.metrics().waiting == 1);
    next(Break::KeyMissed);
    audits.submit(2);
    assert_eq!(audits.ends(), [2], "the code is broken: the key has two mailboxes");
    audits.gate.release();
    assert_eq!(audits.ends(), [1]);
    let what = Violation::Overlap { started: 2 };
    audits.told_of(what, "orders 7: message 2 was started before another one had ended", 2);
}
