//! The monitor's looks, one by one, made by the test: the executors here have no monitor of their own.
//!
//! What it sees is real: one worker that is inside a handler, which is held. What the looks lead to is `monitoring.rs`.

use std::io;
use std::time::Duration;

use crate::KeyedExecutor;
use crate::Keyspace;
use crate::builder::Builder;
use crate::monitor::{Seen, Tried};
use crate::shared::Lifetime;
use crate::sync::spawn_named;
use wow_testkit::{Counter, Latch, eventually};

/// As long as a look, unless something else says so.
const EVERY: Duration = Duration::from_millis(77);
/// Soon again.
const SOON: Duration = Duration::from_millis(1);

/// Every thread is given but the monitor's.
fn no_monitor(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    if name == "rescue:unwatched" {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "no thread left"));
    }
    spawn_named(name, body)
}

/// One worker, inside the handler of message 0 until the gate is open; the other messages are counted.
struct Stuck {
    executor: KeyedExecutor,
    keyspace: Keyspace<u32, u32>,
    gate: Latch,
    others: Counter,
    seen: [Seen; 1],
}

impl Stuck {
    fn new(rescue_after: Duration, stuck_after: Option<Duration>) -> Self {
        let executor = Builder::default()
            .name("unwatched")
            .workers(1)
            .rescue_threads(1)
            .rescue_after(rescue_after)
            .stuck_after(stuck_after)
            .start_for(Lifetime::Handles, no_monitor);
        let (gate, entered, others) = (Latch::new(), Latch::new(), Counter::new());
        let (held, inside, count) = (gate.clone(), entered.clone(), others.clone());
        let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
            if n == 0 {
                inside.release();
                held.wait();
            } else {
                count.add(1);
            }
            std::future::ready(())
        });
        keyspace.try_submit(0, 0).expect("there is room");
        entered.wait();
        Self { executor, keyspace, gate, others, seen: [Seen::default()] }
    }

    fn look(&mut self) -> (Option<Duration>, Tried) {
        let next = self.executor.inner().look_at_threads(&mut self.seen, EVERY);
        (next, self.seen[0].tried)
    }

    fn ends(self) {
        self.gate.release();
        self.executor.close();
        self.executor.join().expect("not a worker");
    }
}

#[test]
fn a_seat_that_is_lent_is_looked_at_again_soon_until_a_rescue_was_tried() {
    let mut early = Stuck::new(Duration::from_secs(600), None);
    for _ in 0..3 {
        assert_eq!(early.look(), (Some(SOON), Tried::Not), "it is not held for long enough");
    }
    early.ends();
    let mut alone = Stuck::new(Duration::ZERO, None);
    for _ in 0..3 {
        assert_eq!(alone.look(), (Some(EVERY), Tried::NothingWaits), "nobody waits for it");
    }
    alone.ends();
}

#[test]
fn what_was_seen_of_a_seat_is_forgotten_with_the_thread_that_it_was_taken_from() {
    let mut stuck = Stuck::new(Duration::ZERO, None);
    stuck.keyspace.try_submit(1, 1).expect("there is room");
    assert_eq!(stuck.look(), (Some(SOON), Tried::Not), "it is another thread's seat from here on");
    assert_eq!((stuck.seen[0].word, stuck.seen[0].since), (0, 0));
    stuck.others.wait_for(1);
    assert_eq!(stuck.executor.metrics().monitor.rescues, 1);
    stuck.ends();
}

#[test]
fn a_piece_of_user_code_is_named_once_it_has_held_its_thread_for_as_long_as_was_said() {
    let ms = Duration::from_millis;
    let due = |seen: &Seen| {
        [(19, Some(20)), (20, Some(20)), (21, Some(20)), (21, None)]
            .map(|(held, after)| seen.is_to_be_named(ms(held), after.map(ms)))
    };
    let mut seen = Seen { word: 9, ..Seen::default() };
    assert_eq!(due(&seen), [false, true, true, false]);
    seen.named = Some(crate::StuckCode::Other);
    assert_eq!(due(&seen), [false; 4], "it has a name");
    assert_eq!(due(&Seen::default()), [false; 4], "it is inside of nothing");
}

#[test]
fn a_worker_that_goes_to_sleep_again_and_again_tells_the_monitor_who_holds_its_neighbour() {
    let executor = Builder::default()
        .name("unwatched")
        .workers(2)
        .rescue_threads(1)
        .rescue_after(SOON)
        .start_for(Lifetime::Handles, no_monitor);
    let (gate, entered) = (Latch::new(), Latch::new());
    let (held, inside) = (gate.clone(), entered.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
        inside.release();
        held.wait();
        std::future::ready(())
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    let workers = &executor.inner().workers;
    let on = workers.iter().position(|worker| worker.token().lent().is_some()).expect("it is inside");
    let word = workers[on].token().lent().expect("it is inside");
    let others = Counter::new();
    eventually("the neighbour told it", || {
        let count = others.clone();
        executor.execute_pinned(1 - on as i64, move || count.add(1)).expect("the executor is open");
        workers[on].is_suspect(word)
    });
    gate.release();
    executor.close();
}
