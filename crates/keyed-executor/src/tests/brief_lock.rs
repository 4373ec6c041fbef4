//! The lock of a keyspace as `brief.rs` takes it: whoever waits gets it, and a panic inside costs nobody else anything.

use std::thread;

use crate::brief::lock_brief;
use crate::sync::Mutex;
use wow_testkit::Latch;

#[test]
fn several_threads_get_it_one_at_a_time() {
    const THREADS: usize = 4;
    const TIMES: usize = 20_000;
    let mutex = Mutex::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    let mut guard = lock_brief(&mutex);
                    guard.0 += 1;
                    assert_eq!(guard.0, guard.1 + 1, "nobody else is inside");
                    guard.1 += 1;
                }
            });
        }
    });
    assert_eq!(*lock_brief(&mutex), (THREADS * TIMES, THREADS * TIMES));
}

#[test]
fn one_that_is_held_for_long_is_waited_for() {
    let (mutex, came) = (Mutex::new(0), Latch::new());
    thread::scope(|scope| {
        let mut held = lock_brief(&mutex);
        let waiter = scope.spawn(|| {
            came.release();
            *lock_brief(&mutex)
        });
        came.wait();
        assert!(!waiter.is_finished(), "the lock is held");
        *held = 1;
        drop(held);
        assert_eq!(waiter.join().expect("it gets the lock"), 1);
    });
}

#[test]
fn one_whose_holder_panicked_is_taken_all_the_same() {
    let mutex = Mutex::new(7);
    let holder = thread::scope(|scope| {
        let panics = || {
            let _held = lock_brief(&mutex);
            panic!("inside");
        };
        scope.spawn(panics).join()
    });
    assert!(holder.is_err());
    assert_eq!(*lock_brief(&mutex), 7);
}
