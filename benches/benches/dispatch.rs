//! What does a message cost when a source yields it?
//!
//! Unit: time for each message (criterion divides by the messages of an iteration), from the call of `dispatch` until
//! nothing is unfinished; the source is always ready and handlers add one number. Window 256, one and two workers.
//! `inline` handlers end at their first poll, `yields` wait once and wake themselves, so that each passes its mailbox.
//!
//! `floor` polls the same source and calls the same handler in one loop on one thread: what is left is the price of
//! order and bound. A regression is a ratio to `floor`, of the same run, more than a tenth above the one in
//! docs/performance.md; absolute times move with the machine and its neighbours.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::StreamExt;
use futures_util::stream;
use keyed_executor::KeyedExecutor;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use wow_testkit::finish;

const MESSAGES: u64 = 100_000;

fn executor(workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name("bench").workers(workers).build().expect("the settings are in range")
}

async fn add(sum: Arc<AtomicU64>, n: u64, yields: u32) {
    let mut left = yields;
    std::future::poll_fn(|context| match left.checked_sub(1) {
        None => Poll::Ready(()),
        Some(rest) => {
            left = rest;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
    sum.fetch_add(n, Ordering::Relaxed);
}

fn dispatch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(MESSAGES));
    let sum = Arc::new(AtomicU64::new(0));

    group.bench_function("floor", |bencher| {
        bencher
            .iter(|| finish(stream::iter(0..black_box(MESSAGES)).for_each(|n| add(Arc::clone(&sum), n, 0))));
    });

    for workers in [1, 2] {
        let executor = executor(workers);
        for (kind, yields) in [("inline", 0), ("yields", 1)] {
            for keys in [1, 64, 10_000] {
                let id = BenchmarkId::new(format!("{workers} workers, {kind}"), format!("{keys} keys"));
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        let sum = Arc::clone(&sum);
                        let source = stream::iter(0..black_box(MESSAGES));
                        let dispatch = executor.dispatch(
                            source,
                            move |n: &u64| n % keys,
                            move |n| add(Arc::clone(&sum), n, yields),
                        );
                        finish(dispatch).expect("no handler fails")
                    });
                });
            }
        }
        executor.close();
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = dispatch
}
criterion_main!(benches);
