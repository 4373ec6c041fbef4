//! The activity gate: admission is final, idleness is exact, and no interleaving of many threads breaks either.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use super::journal::{poll_once, within};
use crate::activity::ActivityGate;
use crate::drive::block_on;

#[test]
fn a_closed_gate_admits_nothing_and_what_was_admitted_ends_once() {
    let gate = ActivityGate::new();
    let first = gate.try_acquire().expect("open");
    let second = gate.try_acquire().expect("open");
    gate.close();
    gate.close();
    assert!(gate.try_acquire().is_none());
    assert!(gate.is_closed());
    assert_eq!(gate.active(), 2);
    drop(first);
    assert_eq!(gate.active(), 1);
    drop(second);
    within(gate.idle());
    assert!(gate.try_acquire().is_none());
}

#[test]
fn the_last_release_wakes_whoever_waits_for_idleness() {
    for _ in 0..500 {
        let gate = ActivityGate::new();
        let activities: Vec<_> = (0..2).map(|_| gate.try_acquire().expect("open")).collect();
        let barrier = Arc::new(Barrier::new(3));
        let threads: Vec<_> = activities
            .into_iter()
            .map(|activity| {
                let barrier = Arc::clone(&barrier);
                std::thread::spawn(move || {
                    barrier.wait();
                    drop(activity);
                })
            })
            .collect();
        barrier.wait();
        within(gate.idle());
        assert_eq!(gate.active(), 0);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_dropped_waiter_leaves_nothing_behind() {
    let gate = ActivityGate::new();
    let activity = gate.try_acquire();
    within(async {
        for _ in 0..100 {
            let mut idle = gate.idle();
            assert!(poll_once(&mut idle).await.is_pending());
        }
    });
    drop(activity);
    within(gate.idle());
}

#[test]
fn the_admission_counter_wraps_without_touching_the_closed_bit() {
    let gate = ActivityGate::at_end_of_admission_counter();
    for _ in 0..5 {
        let activity = gate.try_acquire().expect("an overflow closes nothing");
        assert_eq!(gate.active(), 1);
        drop(activity);
    }
    assert!(!gate.is_closed());
}

/// Threads admit, hold and release while one closes only when quiet: nothing admitted is left out of the count, and
/// nothing is admitted after the close.
#[test]
fn closing_when_still_never_leaves_an_admitted_activity_behind() {
    const THREADS: usize = 4;
    for round in 0..200_u64 {
        let gate = ActivityGate::new();
        let admitted = Arc::new(AtomicU64::new(0));
        let ended = Arc::new(AtomicU64::new(0));
        let running = Arc::new(AtomicUsize::new(THREADS));
        let barrier = Arc::new(Barrier::new(THREADS + 1));
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let (gate, admitted, ended) = (gate.clone(), Arc::clone(&admitted), Arc::clone(&ended));
                let (barrier, running) = (Arc::clone(&barrier), Arc::clone(&running));
                std::thread::spawn(move || {
                    barrier.wait();
                    let mut seed = round * 31 + thread;
                    for _ in 0..2_000 {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let Some(activity) = gate.try_acquire() else { break };
                        admitted.fetch_add(1, Ordering::SeqCst);
                        if seed >> 60 == 0 {
                            std::thread::yield_now();
                        }
                        ended.fetch_add(1, Ordering::SeqCst);
                        drop(activity);
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .collect();
        barrier.wait();
        block_on(async {
            loop {
                let mut idle = gate.idle();
                let mark = std::future::poll_fn(|cx| idle.poll_mark(cx)).await;
                std::thread::yield_now();
                if gate.close_if_still(mark) {
                    break;
                }
            }
        });
        let at_close = (admitted.load(Ordering::SeqCst), ended.load(Ordering::SeqCst));
        assert_eq!(at_close.0, at_close.1, "closed while something was under way, round {round}");
        assert_eq!(gate.active(), 0);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(admitted.load(Ordering::SeqCst), at_close.0, "admitted after the close, round {round}");
    }
}

/// Threads admit while one closes at a random moment: the waiter for idleness sees everything that was admitted end.
#[test]
fn after_a_close_idleness_means_that_all_has_ended() {
    const THREADS: u64 = 4;
    for round in 0..200_u64 {
        let gate = ActivityGate::new();
        let open = Arc::new(AtomicU64::new(0));
        let barrier = Arc::new(Barrier::new(THREADS as usize + 1));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (gate, open, barrier) = (gate.clone(), Arc::clone(&open), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    barrier.wait();
                    let mut n = 0_u64;
                    while let Some(activity) = gate.try_acquire() {
                        open.fetch_add(1, Ordering::SeqCst);
                        n += 1;
                        if n % 64 == 0 {
                            std::thread::yield_now();
                        }
                        open.fetch_sub(1, Ordering::SeqCst);
                        drop(activity);
                    }
                })
            })
            .collect();
        barrier.wait();
        for _ in 0..round {
            std::hint::spin_loop();
        }
        gate.close();
        within(gate.idle());
        assert_eq!(open.load(Ordering::SeqCst), 0, "round {round}");
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
