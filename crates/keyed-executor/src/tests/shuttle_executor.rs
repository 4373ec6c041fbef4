//! The whole executor under shuttle: 4 workers, 8 keys, 200 messages through both doors, every one accounted for.
//!
//! Handlers end at once, yield, wait for a wake from another thread (twice, late, or never needed) or hold their
//! thread; some fail and some panic. Order and exclusion per key, the window, and what became of every message are
//! checked in each run by the history of the test kit, and both ledgers against it. Variants end gracefully, by close,
//! cancel or force close at a random moment, or run with spare threads.
//!
//! Broken by hand and found: see docs/verification.md.

use std::time::Duration;

use shuttle::future::block_on;
use wow_testkit::{History, Rng, Seed, Tally};

use super::shuttle_load::{Items, KEYS, Opener, Play, handle};
use super::shuttle_run::{explore, run_once};
use crate::sync::{Arc, AtomicBool, Ordering, yield_now};
use crate::{KeyedExecutor, Keyspace, Ledger, OnFailure, Options};

const WORKERS: usize = 4;
/// Of both doors together.
const MESSAGES: usize = 200;
const PRODUCERS: usize = 2;
/// Messages of one producer; the source yields as many as all of them.
const OF_ONE: usize = MESSAGES / 2 / PRODUCERS;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Everything is handled, then the executor is closed.
    Drained,
    /// The executor is closed at some moment.
    Closed,
    /// Dispatch and keyspace are cancelled at some moment.
    Cancelled,
    /// The executor is forced to close at some moment.
    Forced,
}

/// What one run is made of, drawn from its seed.
struct Plan {
    end: End,
    /// Turns of the ender's thread before it acts.
    end_after: u64,
    window: usize,
    throughput: usize,
    spin: Duration,
    spares: usize,
    /// Of a hundred messages.
    holds: u64,
}

impl Plan {
    fn draw(rng: &mut Rng, end: End, spares: usize) -> Self {
        Self {
            end,
            end_after: rng.below(600),
            window: [1, 2, 8, 64][rng.index(4)],
            throughput: [1, 2, 16][rng.index(3)],
            spin: Duration::from_micros([0, 0, 150][rng.index(3)]),
            spares,
            holds: if spares > 0 { 15 } else { 3 },
        }
    }
}

fn produce(
    keyspace: &Keyspace<usize, Play>,
    history: &Arc<History>,
    plan: &Plan,
    producer: usize,
    mut rng: Rng,
) {
    for _ in 0..OF_ONE {
        let key = rng.index(KEYS);
        let play = Play::draw(&mut rng, plan.holds, history.issue(key, producer));
        let refused = if rng.chance(1, 4) {
            keyspace.try_submit(key, play).err()
        } else {
            block_on(keyspace.submit(key, play)).err()
        };
        if let Some(refused) = refused {
            refused.into_message().message.refuse();
        }
    }
}

fn compare(tally: Tally, ledger: Ledger, door: &str) {
    assert_eq!(ledger.accepted, tally.issued - tally.refused, "{door}: {ledger:?} {tally:?}");
    assert_eq!(ledger.handled, tally.handled, "{door}: {ledger:?} {tally:?}");
    assert_eq!(ledger.failed, tally.failed + tally.panicked, "{door}: {ledger:?} {tally:?}");
    assert_eq!(ledger.cancelled, tally.cancelled, "{door}: {ledger:?} {tally:?}");
    assert_eq!(ledger.discarded, tally.discarded, "{door}: {ledger:?} {tally:?}");
}

/// One run of everything; what became of the messages of both doors.
fn play(seed: u64, end: End, spares: usize) -> (Tally, Tally) {
    let mut rng = Seed(seed).rng();
    let plan = Arc::new(Plan::draw(&mut rng, end, spares));
    let executor = KeyedExecutor::builder()
        .name("shuttle")
        .workers(WORKERS)
        .max_in_flight(plan.window)
        .throughput(plan.throughput)
        .spin(plan.spin)
        .rescue_threads(plan.spares)
        .rescue_after(Duration::from_micros(300))
        .build()
        .expect("every plan is in range");
    let opener = Arc::new(Opener::default());
    let opening = {
        let (opener, rng) = (Arc::clone(&opener), rng.fork());
        shuttle::thread::spawn(move || opener.run(rng))
    };
    let options = |label: &str| Options::new(label).on_failure(OnFailure::Continue);

    let of_source = History::bounded(seed, KEYS, plan.window);
    let items = Items::new(rng.fork(), plan.holds, Arc::clone(&of_source), PRODUCERS * OF_ONE);
    let opener_of_source = Arc::clone(&opener);
    let dispatch = executor.dispatch_with(
        options("source"),
        items,
        |play: &Play| play.message.key(),
        move |play| handle(play, Arc::clone(&opener_of_source)),
    );

    let of_producers = History::bounded(seed, KEYS, plan.window);
    let opener_of_keyspace = Arc::clone(&opener);
    let keyspace =
        executor.keyspace_with(options("submit"), move |play| handle(play, Arc::clone(&opener_of_keyspace)));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (keyspace, history, plan) = (keyspace.clone(), Arc::clone(&of_producers), Arc::clone(&plan));
            let rng = rng.fork();
            shuttle::thread::spawn(move || produce(&keyspace, &history, &plan, producer, rng))
        })
        .collect();

    let ended = Arc::new(AtomicBool::new(false));
    let ender = {
        let (executor, keyspace, canceller) = (executor.clone(), keyspace.clone(), dispatch.canceller());
        let (plan, ended) = (Arc::clone(&plan), Arc::clone(&ended));
        shuttle::thread::spawn(move || {
            for _ in 0..plan.end_after {
                if ended.load(Ordering::Acquire) {
                    break;
                }
                yield_now();
            }
            match plan.end {
                End::Drained => {}
                End::Closed => executor.close(),
                End::Cancelled => {
                    canceller.cancel();
                    keyspace.cancel();
                }
                End::Forced => executor.force_close(),
            }
        })
    };

    for producer in producers {
        producer.join().expect("a producer ends");
    }
    let from_source =
        if rng.chance(1, 2) { dispatch.wait().expect("no worker waits") } else { block_on(dispatch) };
    let from_source = from_source.unwrap_or_else(|error| {
        assert_ne!(plan.end, End::Drained, "{error}");
        error.ledger
    });
    let from_producers = block_on(keyspace.drained());
    ended.store(true, Ordering::Release);
    ender.join().expect("the ender ends");
    drop(keyspace);
    executor.close();
    executor.join().expect("no worker waits");
    opener.end();
    opening.join().expect("the opener ends");

    let tallies = (of_source.verify(), of_producers.verify());
    compare(tallies.0, from_source, "source");
    compare(tallies.1, from_producers, "submit");
    if end == End::Drained {
        assert_eq!(from_source.accepted, (PRODUCERS * OF_ONE) as u64, "the source was taken to its end");
    }
    tallies
}

#[test]
fn shuttle_everything_is_handled_in_order() {
    explore("shuttle_everything_is_handled_in_order", |seed| {
        play(seed, End::Drained, 0);
    });
}

#[test]
fn shuttle_close_finishes_what_was_accepted() {
    explore("shuttle_close_finishes_what_was_accepted", |seed| {
        let (source, producers) = play(seed, End::Closed, 0);
        assert_eq!((source.cancelled, source.discarded), (0, 0), "close drops nothing");
        assert_eq!((producers.cancelled, producers.discarded), (0, 0), "close drops nothing");
    });
}

#[test]
fn shuttle_cancel_accounts_for_every_message() {
    explore("shuttle_cancel_accounts_for_every_message", |seed| {
        play(seed, End::Cancelled, 0);
    });
}

#[test]
fn shuttle_force_close_accounts_for_every_message() {
    explore("shuttle_force_close_accounts_for_every_message", |seed| {
        play(seed, End::Forced, 0);
    });
}

#[test]
fn shuttle_stuck_threads_lose_their_seats_and_nothing_else() {
    explore("shuttle_stuck_threads_lose_their_seats_and_nothing_else", |seed| {
        let ends = [End::Drained, End::Drained, End::Closed, End::Cancelled, End::Forced];
        play(seed, ends[(seed % 5) as usize], 2);
    });
}

#[test]
fn shuttle_a_seed_is_a_run() {
    static SEEN: std::sync::Mutex<Vec<(Tally, Tally, u64)>> = std::sync::Mutex::new(Vec::new());
    let scenario = |seed| {
        let (source, producers) = play(seed, End::Forced, 1);
        SEEN.lock().expect("no run panics here").push((source, producers, crate::time::nanos()));
    };
    run_once(7, scenario);
    run_once(7, scenario);
    let seen = SEEN.lock().expect("no run panics here");
    assert_eq!(seen[0], seen[1], "the same seed gave two runs");
}
