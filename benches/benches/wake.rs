//! What does it cost to suspend and resume a handler, and to wake a worker that sleeps?
//!
//! Unit: time for each wake. `itself` is a handler that is pending 1,000 times and wakes itself each time: no other
//! thread is involved. `elsewhere` is a handler woken 100 times by another thread, one wake after the other: a whole way
//! there and back. `parked worker` submits one message to an executor that sleeps and waits for its end.
//!
//! `floor` is the way there and back between two threads over `park` and `unpark`, the least that `elsewhere` and
//! `parked worker` can cost on this machine. A regression is a ratio to `floor` of the same run (for `itself`: a time)
//! more than a tenth above the one in docs/performance.md.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyed_executor::{KeyedExecutor, Keyspace};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;
use wow_testkit::finish;

const BY_ITSELF: u64 = 1_000;
const ELSEWHERE: u64 = 100;

fn executor() -> KeyedExecutor {
    KeyedExecutor::builder().name("bench").workers(1).build().expect("the settings are in range")
}

async fn pending_times(times: u64, wake: impl Fn(&Waker)) {
    let mut left = times;
    std::future::poll_fn(|context| match left.checked_sub(1) {
        None => Poll::Ready(()),
        Some(rest) => {
            left = rest;
            wake(context.waker());
            Poll::Pending
        }
    })
    .await;
}

fn itself(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wake");
    group.throughput(Throughput::Elements(BY_ITSELF));
    let executor = executor();
    let keyspace: Keyspace<u64, u64> = executor.keyspace(|times| pending_times(times, Waker::wake_by_ref));
    group.bench_function("itself", |bencher| {
        bencher.iter(|| {
            finish(async {
                keyspace.submit(0, BY_ITSELF).await.expect("the keyspace is open");
                keyspace.drained().await
            })
        });
    });
    group.finish();
    executor.close();
}

fn elsewhere(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wake");
    group.throughput(Throughput::Elements(ELSEWHERE));
    let executor = executor();
    let (sender, wakers) = std::sync::mpsc::channel::<Waker>();
    let waker_thread = thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
    let keyspace: Keyspace<u64, u64> = executor.keyspace(move |times| {
        let sender = sender.clone();
        pending_times(times, move |waker| sender.send(waker.clone()).expect("the other thread lives"))
    });
    group.bench_function("elsewhere", |bencher| {
        bencher.iter(|| {
            finish(async {
                keyspace.submit(0, ELSEWHERE).await.expect("the keyspace is open");
                keyspace.drained().await
            })
        });
    });
    group.finish();
    drop(keyspace);
    executor.close();
    finish(executor.terminated());
    // The handler held the last sender.
    waker_thread.join().expect("waking does not panic");
}

fn floor(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wake");
    group.throughput(Throughput::Elements(1));
    let (turn, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (their_turn, their_end, asker) = (Arc::clone(&turn), Arc::clone(&ended), thread::current());
    let other = thread::spawn(move || {
        while !their_end.load(Ordering::Acquire) {
            if their_turn.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                asker.unpark();
            } else {
                thread::park();
            }
        }
    });
    group.bench_function("floor", |bencher| {
        bencher.iter(|| {
            turn.store(1, Ordering::Release);
            other.thread().unpark();
            while turn.load(Ordering::Acquire) == 1 {
                thread::park();
            }
        });
    });
    group.finish();
    ended.store(true, Ordering::Release);
    other.thread().unpark();
    other.join().expect("parking does not panic");
}

fn parked_worker(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wake");
    group.throughput(Throughput::Elements(1));
    let executor = executor();
    let keyspace: Keyspace<u64, u64> = executor.keyspace(|_| std::future::ready(()));
    group.bench_function("parked worker", |bencher| {
        bencher.iter(|| {
            finish(async {
                keyspace.submit(0, 0).await.expect("the keyspace is open");
                keyspace.drained().await
            })
        });
    });
    group.finish();
    executor.close();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = itself, floor, elsewhere, parked_worker
}
criterion_main!(benches);
