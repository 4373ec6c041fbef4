//! In steady state a message costs no allocation, through either door.
//!
//! Observes KM-10 and the figure "0.000 allocations a message". One test in a process of its own: the counter sees every
//! thread, so nothing else may run beside it.
#![cfg(not(keyed_loom))]
#![expect(unsafe_code, reason = "an allocator is the only way to count allocations")]

use keyed_executor::{KeyedExecutor, Keyspace};
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use wow_testkit::finish;

/// The system's allocator, counting how often memory is asked for.
struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: the contract of `GlobalAlloc` is the one of `System`, to which every call is passed on unchanged; counting
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`: the layout is not of size zero.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`: `ptr` came from this allocator, thus from
        // `System`, with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`: the layout is not of size zero.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`: `ptr` came from this allocator, thus from
        // `System`, with this layout, and the new size is neither zero nor too large.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WARM_UP: u64 = 50_000;
const MEASURED: u64 = 200_000;
const KEYS: u64 = 500;
/// One growth of some list that had not met its peak yet is no cost per message; one in a thousand messages is.
const SPARE: u64 = MEASURED / 1_000;

/// Handlers that end at once, and every seventh that waits and wakes itself.
async fn handle(n: u64) {
    if n % 7 == 0 {
        let mut waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

fn through_a_source(executor: &KeyedExecutor) -> u64 {
    let (at_start, at_end) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (start, end) = (Arc::clone(&at_start), Arc::clone(&at_end));
    let numbers = (0..WARM_UP + MEASURED).inspect(move |&n| {
        if n == WARM_UP {
            start.store(ASKED.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        end.store(ASKED.load(Ordering::Relaxed), Ordering::Relaxed);
    });
    let dispatch = executor.dispatch(futures_util::stream::iter(numbers), |n: &u64| *n % KEYS, handle);
    assert_eq!(finish(dispatch).expect("no handler fails").handled, WARM_UP + MEASURED);
    at_end.load(Ordering::Relaxed) - at_start.load(Ordering::Relaxed)
}

fn through_a_keyspace(executor: &KeyedExecutor) -> u64 {
    let keyspace: Keyspace<u64, u64> = executor.keyspace(handle);
    finish(async {
        for n in 0..WARM_UP {
            keyspace.submit(n % KEYS, n).await.expect("the keyspace is open");
        }
        let before = ASKED.load(Ordering::Relaxed);
        for n in 0..MEASURED {
            keyspace.submit(n % KEYS, n).await.expect("the keyspace is open");
        }
        let after = ASKED.load(Ordering::Relaxed);
        keyspace.drained().await;
        after - before
    })
}

#[test]
fn a_message_costs_no_allocation_in_steady_state() {
    // The counter counts: a box is one.
    let before = ASKED.load(Ordering::Relaxed);
    drop(std::hint::black_box(Box::new(1_u64)));
    assert!(ASKED.load(Ordering::Relaxed) > before);

    for workers in [1, 2] {
        let executor = KeyedExecutor::builder()
            .name("alloc")
            .workers(workers)
            .build()
            .expect("the settings are in range");
        let source = through_a_source(&executor);
        let submit = through_a_keyspace(&executor);
        assert!(
            source <= SPARE && submit <= SPARE,
            "{MEASURED} messages on {workers} workers: {source} allocations from a source, {submit} with submit"
        );
        executor.close();
        finish(executor.terminated());
    }
}
