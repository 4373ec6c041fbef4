//! Random keys and handlers for a while, random panics and failures, both doors: every single id is checked.
//!
//! Observes KM-8, KM-27, KE-14, KW-4, KF-5, KO-1 under load; scenarios T2, T18, T29. `STRESS_SECONDS` says for how long
//! (2 unless set), `STRESS_SEED` brings a run back; the seed is printed when it fails. A seed fixes what each message
//! does, not how threads interleave.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Ledger, OnFailure, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wow_testkit::{
    Failure, History, Latch, Message, Rng, Script, Seed, Source, Tally, finish_within, release_after,
};

const DEFAULT_SECONDS: u64 = 2;
/// Far beyond what the last messages of a run need, on any machine.
const DRAIN: Duration = Duration::from_secs(120);

fn seconds() -> u64 {
    match std::env::var("STRESS_SECONDS") {
        Ok(text) => text.trim().parse().expect("STRESS_SECONDS must be a number of seconds"),
        Err(_) => DEFAULT_SECONDS,
    }
}

/// What one run is made of, drawn from its seed.
#[derive(Clone, Copy, Debug)]
struct Plan {
    keys: usize,
    hot: usize,
    workers: usize,
    window: usize,
    throughput: usize,
    spin: Duration,
    producers: usize,
    /// A limit for each key, none at or above the window, and its overflow.
    bounds: (usize, usize),
    /// Of a thousand messages; nothing goes wrong in some plans, much in others.
    failures: u64,
    panics: u64,
    waits: u64,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let pick = |rng: &mut Rng, of: &[u64]| of[rng.index(of.len())];
        let window = pick(rng, &[1, 2, 16, 64, 256, 1024]) as usize;
        Plan {
            keys: pick(rng, &[1, 3, 37, 1_000, 20_000]) as usize,
            hot: 1 + rng.index(4),
            workers: 1 + rng.index(4),
            window,
            throughput: pick(rng, &[1, 2, 16, 200]) as usize,
            spin: Duration::from_micros(pick(rng, &[0, 0, 20])),
            producers: 1 + rng.index(4),
            bounds: (pick(rng, &[1, 2, 8, 10_000]) as usize, pick(rng, &[0, 1, 50]) as usize),
            failures: pick(rng, &[0, 1, 50]),
            panics: pick(rng, &[0, 1, 20]),
            waits: pick(rng, &[0, 50, 400]),
        }
    }

    fn key(&self, rng: &mut Rng) -> usize {
        if rng.chance(1, 4) { rng.index(self.hot.min(self.keys)) } else { rng.index(self.keys) }
    }

    fn script(&self, rng: &mut Rng) -> Play {
        let mut script = Script::ready();
        if rng.chance(self.waits, 1_000) {
            script = match rng.below(8) {
                0..4 => script.yields(1 + rng.index(3)),
                4..7 => script.elsewhere(),
                _ => script.after(Duration::from_micros(rng.below(500))),
            };
        }
        if rng.chance(self.failures, 1_000) {
            script = script.fails("planned");
        }
        Play { script, panics: rng.chance(self.panics, 1_000) }
    }
}

/// A message with what its handler shall do.
struct Play {
    script: Script,
    panics: bool,
}

async fn handle(message: Message, play: Play) -> Result<(), Failure> {
    let running = message.start();
    if play.panics {
        let _ended_by_the_panic = running;
        // However the script ends: the panic is how the message does.
        let _ = play.script.await;
        // Without the hook's output: thousands of them are part of the plan.
        std::panic::resume_unwind(Box::new("planned"));
    }
    running.play(play.script).await
}

/// Ends a run when its time is over.
#[derive(Clone)]
struct Bell {
    rung: Latch,
    asked: Arc<AtomicU64>,
}

impl Bell {
    fn after(time: Duration) -> Bell {
        let bell = Bell { rung: Latch::new(), asked: Arc::default() };
        release_after(time, &bell.rung);
        bell
    }

    fn is_rung(&self) -> bool {
        // One look at the latch, which has a lock, for 64 messages.
        self.asked.fetch_add(1, Ordering::Relaxed) % 64 == 0 && self.rung.is_released()
    }
}

fn executor(plan: &Plan) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("stress")
        .workers(plan.workers)
        .max_in_flight(plan.window)
        .throughput(plan.throughput)
        .spin(plan.spin)
        .max_per_key(plan.bounds.0)
        .overflow(plan.bounds.1)
        .build()
        .expect("every plan is in range")
}

fn options() -> Options {
    Options::new("test").on_failure(OnFailure::Continue)
}

fn from_source(
    executor: &KeyedExecutor,
    history: &Arc<History>,
    plan: &Plan,
    mut rng: Rng,
    bell: &Bell,
) -> Ledger {
    let (issued, bell) = (Arc::clone(history), bell.clone());
    let draw = *plan;
    let items = std::iter::from_fn(move || {
        if bell.is_rung() {
            return None;
        }
        let key = draw.key(&mut rng);
        Some((issued.issue(key, 0), draw.script(&mut rng)))
    });
    let (source, _feed) = Source::over(items);
    let dispatch = executor.dispatch_with(
        options(),
        source,
        |(message, _): &(Message, Play)| message.key(),
        |(message, play)| handle(message, play),
    );
    finish_within(total() + DRAIN, dispatch).expect("the dispatch hangs").expect("it was told to continue")
}

fn from_producers(
    executor: &KeyedExecutor,
    history: &Arc<History>,
    plan: &Plan,
    mut rng: Rng,
    bell: &Bell,
) -> Ledger {
    let keyspace = executor.keyspace_with(options(), |(message, play)| handle(message, play));
    std::thread::scope(|scope| {
        for producer in 0..plan.producers {
            let (keyspace, mut rng) = (keyspace.clone(), rng.fork());
            scope.spawn(move || {
                while !bell.is_rung() {
                    let key = plan.key(&mut rng);
                    let message = (history.issue(key, producer), plan.script(&mut rng));
                    if rng.chance(1, 3) {
                        if let Err(refused) = keyspace.try_submit(key, message) {
                            refused.into_message().0.refuse();
                        }
                    } else {
                        let submitted = finish_within(DRAIN, keyspace.submit(key, message));
                        submitted.expect("a submission hangs").expect("the keyspace is open");
                    }
                }
            });
        }
    });
    finish_within(DRAIN, keyspace.drained()).expect("the keyspace hangs")
}

fn total() -> Duration {
    Duration::from_secs(seconds())
}

fn check(plan: &Plan, history: &History, ledger: Ledger) -> Tally {
    let tally = history.verify();
    assert_eq!(ledger.accepted, tally.issued - tally.refused, "{plan:?}");
    assert_eq!((ledger.handled, ledger.failed), (tally.handled, tally.failed + tally.panicked), "{plan:?}");
    assert_eq!(
        (ledger.cancelled, ledger.discarded, tally.cancelled, tally.discarded),
        (0, 0, 0, 0),
        "{plan:?}"
    );
    tally
}

type Door = fn(&KeyedExecutor, &Arc<History>, &Plan, Rng, &Bell) -> Ledger;

/// Plans one after the other until the time is over, each for a share of it.
fn stress(name: &str, door: Door) {
    let seed = Seed::from_env("STRESS_SEED");
    let _told = seed.told_on_panic("STRESS_SEED");
    let mut rng = seed.rng();
    let total = total();
    let share = (total / 8).clamp(Duration::from_millis(100), Duration::from_secs(10));
    let over = Latch::new();
    release_after(total, &over);
    let mut sum = 0;
    while !over.is_released() {
        let plan = Plan::draw(&mut rng);
        let executor = executor(&plan);
        let history = History::bounded(seed.0, plan.keys, plan.window);
        let ledger = door(&executor, &history, &plan, rng.fork(), &Bell::after(share));
        sum += check(&plan, &history, ledger).issued;
        executor.close();
        finish_within(DRAIN, executor.terminated()).expect("the executor does not end");
    }
    assert!(sum > 0, "{name} sent nothing");
}

#[test]
fn a_dispatch_keeps_every_promise_under_load() {
    stress("the source", from_source);
}

#[test]
fn a_keyspace_keeps_every_promise_under_load() {
    stress("the producers", from_producers);
}
