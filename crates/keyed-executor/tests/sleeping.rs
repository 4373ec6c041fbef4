//! A worker without work sleeps, whatever it may spin before, and no wake-up is lost.
//!
//! Observes KE-12 to KE-17; scenarios T2, T14 to T16, as far as a spin of at most 1 ms can be told from outside. Every
//! test gives its executor a name of its own, so that threads of tests that run beside it are not counted.
#![cfg(all(not(keyed_loom), target_os = "linux"))]

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wow_testkit::threads::{self, Activity};
use wow_testkit::{Counter, Latch, Script, Seed, eventually, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Runs one task and waits for it.
fn run_one(executor: &KeyedExecutor, affinity: i64) {
    let done = Latch::new();
    let ran = done.clone();
    executor.execute_pinned(affinity, move || ran.release()).expect("the executor is open");
    done.wait();
}

fn parked(name: &str, workers: usize) -> bool {
    let found = threads::named(name);
    found.len() == workers && found.iter().all(|thread| thread.activity == Activity::Sleeping)
}

#[test]
fn many_producers_reach_sleeping_and_busy_workers_alike() {
    for spin in [Duration::ZERO, Duration::from_micros(20)] {
        for round in 0..20 {
            let executor = KeyedExecutor::builder()
                .name("wrk-storm")
                .workers(4)
                .spin(spin)
                .build()
                .expect("the settings are in range");
            let ran = Counter::new();
            let producers: Vec<_> = (0..4_i64)
                .map(|producer| {
                    let (executor, ran) = (executor.clone(), ran.clone());
                    std::thread::spawn(move || {
                        for n in 0..5_000_i64 {
                            let ran = ran.clone();
                            executor.execute_pinned(producer + n, move || ran.add(1)).expect("it is open");
                            if (n + round) % 97 == 0 {
                                std::thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            producers.into_iter().for_each(|producer| producer.join().expect("no producer panics"));
            ran.wait_for(20_000);
            executor.close();
            finish(executor.terminated());
        }
    }
}

#[test]
fn work_that_meets_a_worker_on_its_way_to_sleep_is_done() {
    const ROUNDS: u64 = 20_000;
    let seed = Seed::from_env("SLEEPING_SEED");
    let _told = seed.told_on_panic("SLEEPING_SEED");
    let mut rng = seed.rng();
    for spin in [Duration::ZERO, Duration::from_micros(5)] {
        let executor = KeyedExecutor::builder()
            .name("wrk-meet")
            .workers(1)
            .spin(spin)
            .build()
            .expect("the settings are in range");
        let (ran, waiter) = (Arc::new(AtomicU64::new(0)), std::thread::current());
        let count = {
            let ran = Arc::clone(&ran);
            move || {
                ran.fetch_add(1, Ordering::Release);
                // Only after this thread gave up looking; most rounds do not need it.
                waiter.unpark();
            }
        };
        let counted = count.clone();
        let keyspace: Keyspace<u64, u64> = executor.keyspace(move |_| {
            counted();
            async {}
        });
        for round in 0..ROUNDS {
            // The worker ran dry a moment ago: somewhere between its last look and its sleep.
            for _ in 0..rng.below(300) {
                std::hint::spin_loop();
            }
            if round % 2 == 0 {
                executor.execute_pinned(0, count.clone()).expect("the executor is open");
            } else {
                finish(keyspace.submit(round, round)).expect("the keyspace is open");
            }
            let mut looks = 0_u32;
            while ran.load(Ordering::Acquire) <= round {
                looks += 1;
                if looks < 10_000 {
                    std::hint::spin_loop();
                } else {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                assert!(looks < 40_000, "round {round}: a worker sleeps beside its work");
            }
        }
        executor.close();
        finish(executor.terminated());
    }
}

#[test]
fn a_worker_without_work_sleeps() {
    for spin in [Duration::ZERO, limits::MAX_SPIN] {
        let executor = KeyedExecutor::builder()
            .name("wrk-sleep")
            .workers(2)
            .spin(spin)
            .build()
            .expect("the settings are in range");
        run_one(&executor, 0);
        run_one(&executor, 1);
        let keyspace: Keyspace<u32, u32> = executor.keyspace(|_| Script::ready().yields(1));
        for _ in 0..5 {
            // Each waits for the one before, so that the worker's waits are short and it spins where it may.
            for n in 0..200 {
                finish(keyspace.submit(n, n)).expect("the keyspace is open");
                finish(keyspace.drained());
            }
            // A worker that spun for ever would never be seen asleep.
            eventually("both workers sleep", || parked("wrk-sleep-", 2));
        }
        // And wakes for the next work.
        run_one(&executor, 0);
        executor.close();
        finish(executor.terminated());
        eventually("the threads are gone", || threads::count("wrk-sleep-") == 0);
    }
}

#[test]
fn a_handler_that_waits_keeps_no_worker_awake() {
    let executor = executor("wrk-wait", 2);
    run_one(&executor, 0);
    run_one(&executor, 1);
    let open = Latch::new();
    let (gate, started) = (open.clone(), Counter::new());
    let begun = started.clone();
    let dispatch = executor.dispatch(
        stream::iter(0..50_u32),
        |n: &u32| *n,
        move |_| {
            begun.add(1);
            Script::ready().until(&gate)
        },
    );
    started.wait_for(50);
    eventually("both workers sleep", || parked("wrk-wait-", 2));
    open.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 50);
    executor.close();
}

#[test]
fn a_spin_ends_with_a_close() {
    for force in [false, true] {
        let executor = KeyedExecutor::builder()
            .name("wrk-spin")
            .workers(2)
            .spin(limits::MAX_SPIN)
            .build()
            .expect("the settings are in range");
        (0..200).for_each(|n| run_one(&executor, n));
        if force {
            executor.force_close();
        } else {
            executor.close();
        }
        finish(executor.terminated());
        eventually("the threads are gone", || threads::count("wrk-spin-") == 0);
    }
}
