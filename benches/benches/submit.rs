//! What does a message cost when another thread submits it?
//!
//! Unit: time for each message (criterion divides by the messages of an iteration), from the first submission until
//! nothing is unfinished; handlers add one number. Window 256, one submitting thread, one and two workers; one key is
//! the longest queue, 64 keys fit a window, 10,000 keys are each new when they come.
//!
//! `floor` hands the same numbers to one thread through a bounded channel of the same size: what the machine charges
//! for the hand-over itself. A regression is a ratio to `floor`, of the same run, more than a tenth above the one in
//! docs/performance.md; absolute times move with the machine and its neighbours.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use keyed_executor::{KeyedExecutor, Keyspace};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wow_testkit::finish;

const MESSAGES: u64 = 20_000;
const WINDOW: usize = 256;

fn executor(workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("bench")
        .workers(workers)
        .max_in_flight(WINDOW)
        .build()
        .expect("the settings are in range")
}

fn adding(sum: &Arc<AtomicU64>) -> impl Fn(u64) -> std::future::Ready<()> + Send + Sync + use<> {
    let sum = Arc::clone(sum);
    move |n| {
        sum.fetch_add(n, Ordering::Relaxed);
        std::future::ready(())
    }
}

fn submit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("submit");
    group.throughput(Throughput::Elements(MESSAGES));
    let sum = Arc::new(AtomicU64::new(0));

    group.bench_function("floor", |bencher| {
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Option<u64>>(WINDOW);
        let (handled, done) = std::sync::mpsc::sync_channel(1);
        let handler = adding(&sum);
        let worker = std::thread::spawn(move || {
            for message in receiver {
                match message {
                    Some(n) => drop(handler(n)),
                    None => handled.send(()).expect("the bench waits for the end of its iteration"),
                }
            }
        });
        bencher.iter(|| {
            for n in 0..MESSAGES {
                sender.send(Some(black_box(n))).expect("the worker lives");
            }
            sender.send(None).expect("the worker lives");
            done.recv().expect("the worker lives");
        });
        drop(sender);
        worker.join().expect("adding does not panic");
    });

    for workers in [1, 2] {
        let executor = executor(workers);
        for keys in [1, 64, 10_000] {
            let id = BenchmarkId::new(format!("{workers} workers"), format!("{keys} keys"));
            let keyspace: Keyspace<u64, u64> = executor.keyspace(adding(&sum));
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    finish(async {
                        for n in 0..MESSAGES {
                            keyspace.submit(n % keys, black_box(n)).await.expect("the keyspace is open");
                        }
                        keyspace.drained().await
                    })
                });
            });
        }
        executor.close();
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = submit
}
criterion_main!(benches);
