//! What do a limit for each key, a byte budget, the stronger hash and the order auditor cost?
//!
//! Unit: time for each message, until nothing is unfinished; 64 keys, window 256, one worker, handlers add one number. The
//! variants take turns in one process, round by round, and the median of the rounds is told beside the one without any: a
//! comparison that a noisy machine disturbs less than one after the other. No bound is reached, so what is told is the price
//! of counting and checking. Both doors: `source` runs the messages where they arrive, `queued` through mailboxes, `submit` from another
//! thread. A regression is `off` dearer than the commit before, or a variant over `off` by more than docs/performance.md says.

use futures_util::stream;
use keyed_executor::{Audit, KeyHash, KeyedExecutor, Keyspace, Options, Weigh, Weights};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Instant;
use wow_testkit::finish;

const MESSAGES: u64 = 100_000;
const KEYS: u64 = 64;
const ROUNDS: usize = 41;

/// One way to run the messages: how many nanoseconds each took.
type Run = Box<dyn Fn(&KeyedExecutor) -> f64>;

#[expect(clippy::disallowed_methods, reason = "a bench looks at the clock, and has no other")]
fn timed(body: impl FnOnce()) -> f64 {
    let started = Instant::now();
    body();
    started.elapsed().as_nanos() as f64 / MESSAGES as f64
}

async fn add(sum: Arc<AtomicU64>, n: u64, yields: bool) {
    let mut waits = yields;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waits, false) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
    sum.fetch_add(n, Ordering::Relaxed);
}

fn source<W: Weigh<u64, u64>>(options: impl Fn() -> Options<W> + 'static, yields: bool) -> Run {
    Box::new(move |executor| {
        let sum = Arc::new(AtomicU64::new(0));
        timed(|| {
            let source = stream::iter(0..black_box(MESSAGES));
            let handler = move |n| add(Arc::clone(&sum), n, yields);
            let dispatch = executor.dispatch_with(options(), source, |n: &u64| *n % KEYS, handler);
            finish(dispatch).expect("adding does not fail");
        })
    })
}

fn submit<W: Weigh<u64, u64>>(options: impl Fn() -> Options<W> + 'static) -> Run {
    Box::new(move |executor| {
        let sum = Arc::new(AtomicU64::new(0));
        let handler = move |n| add(Arc::clone(&sum), n, false);
        let keyspace: Keyspace<u64, u64> = executor.keyspace_with(options(), handler);
        timed(|| {
            finish(async {
                for n in 0..MESSAGES {
                    keyspace.submit(n % KEYS, black_box(n)).await.expect("the keyspace is open");
                }
                keyspace.drained().await
            });
        })
    })
}

/// The variants of one door.
fn variants(run: impl Fn(Bound) -> Run) -> Vec<(&'static str, Run)> {
    [
        ("off", Bound::Off),
        ("limit for each key", Bound::Key),
        ("byte budget", Bound::Bytes),
        ("limit and budget", Bound::Both),
        ("strong hash", Bound::Hash),
        ("order auditor", Bound::Audit),
        ("off again", Bound::Off),
    ]
    .map(|(name, bound)| (name, run(bound)))
    .into()
}

#[derive(Clone, Copy)]
enum Bound {
    Off,
    Key,
    Bytes,
    Both,
    Hash,
    Audit,
}

fn limited() -> Options {
    Options::new("bench").max_per_key(128).overflow(1_024)
}

fn weighed(options: Options) -> Options<impl Weigh<u64, u64>> {
    options.weighed(1 << 30, Weights { key: |_: &u64| 8, message: |_: &u64| 8 })
}

fn main() {
    let executor = KeyedExecutor::builder().name("bench").workers(1).build().expect("it is in range");
    // Only `cargo bench` asks for figures; whoever runs all targets as tests gets one round.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let plain = || Options::new("bench");
    let doors: [(&str, Vec<(&str, Run)>); 3] = [
        (
            "source",
            variants(|bound| match bound {
                Bound::Off => source(plain, false),
                Bound::Key => source(limited, false),
                Bound::Bytes => source(move || weighed(plain()), false),
                Bound::Both => source(|| weighed(limited()), false),
                Bound::Hash => source(move || plain().key_hash(KeyHash::Strong), false),
                Bound::Audit => source(move || plain().audit(Audit::On), false),
            }),
        ),
        (
            "queued",
            variants(|bound| match bound {
                Bound::Off => source(plain, true),
                Bound::Key => source(limited, true),
                Bound::Bytes => source(move || weighed(plain()), true),
                Bound::Both => source(|| weighed(limited()), true),
                Bound::Hash => source(move || plain().key_hash(KeyHash::Strong), true),
                Bound::Audit => source(move || plain().audit(Audit::On), true),
            }),
        ),
        (
            "submit",
            variants(|bound| match bound {
                Bound::Off => submit(plain),
                Bound::Key => submit(limited),
                Bound::Bytes => submit(move || weighed(plain())),
                Bound::Both => submit(|| weighed(limited())),
                Bound::Hash => submit(move || plain().key_hash(KeyHash::Strong)),
                Bound::Audit => submit(move || plain().audit(Audit::On)),
            }),
        ),
    ];
    for (door, variants) in &doors {
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
        for _ in 0..rounds {
            for (times, (_, run)) in taken.iter_mut().zip(variants) {
                times.push(run(&executor));
            }
        }
        // Each round against its own first variant: what disturbs a round disturbs both.
        let off = taken[0].clone();
        for (times, (name, _)) in taken.iter().zip(variants) {
            let mut over: Vec<f64> = times.iter().zip(&off).map(|(time, off)| time - off).collect();
            let mut times = times.clone();
            for list in [&mut over, &mut times] {
                list.sort_by(f64::total_cmp);
            }
            let [over, time] = [&over, &times].map(|list| list[list.len() / 2]);
            tell(&format!("{door:>7} {name:<20} {time:8.1} ns a message, {over:+6.1} to off\n"));
        }
    }
    executor.close();
}

fn tell(line: &str) {
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("stdout takes a line");
}
