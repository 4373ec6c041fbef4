//! Memory is what the window takes: an idle executor is small, a live key costs what is stated, and nothing stays behind.
//!
//! Observes the growth figures: bytes of an idle executor, bytes of a live mailbox, and live bytes back at the start after
//! many messages over many keys. One test in a process of its own: the counter sees every thread. `MEMORY_MESSAGES` and
//! `MEMORY_KEYS` make the run larger; what was measured is printed.
#![cfg(not(keyed_loom))]
#![expect(unsafe_code, reason = "an allocator is the only way to count bytes")]

use keyed_executor::{KeyedExecutor, Keyspace, Options};
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future, pending};
use std::hint::black_box;
use std::mem::size_of_val;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use wow_testkit::{eventually, finish, finish_within};

/// The system's allocator, counting the bytes that are in use.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

fn count(bytes: usize, sign: i64) {
    LIVE.fetch_add(sign * bytes as i64, Ordering::Relaxed);
}

// SAFETY: the contract of `GlobalAlloc` is the one of `System`, to which every call is passed on unchanged; counting
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`: the layout is not of size zero.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`: `ptr` came from this allocator, thus from
        // `System`, with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`: the layout is not of size zero.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(new_size, 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`: `ptr` came from this allocator, thus from
        // `System`, with this layout, and the new size is neither zero nor too large.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn live() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

const WORKERS: usize = 2;
/// Of the keyspace whose keys are all live.
const MANY: usize = 32_768;
/// The usual one.
const WINDOW: usize = 256;
const MESSAGES: u64 = 400_000;
const KEYS: u64 = 40_000;
/// What the runtime of a thread, a queue's block or a log line may keep, and no message.
const SLACK: i64 = 16 * 1024;
/// A worker that is given its first keys late makes a waker for each place then, and keeps it.
const LATE_WORKERS: i64 = (WORKERS as i64 - 1) * WINDOW as i64 * 80;
const PATIENCE: Duration = Duration::from_secs(600);

/// README, "Sizes": bytes of an executor of two workers before its first work.
const IDLE: i64 = 8 * 1024;
/// README, "Sizes": bytes of a live mailbox beside its message, its key and its future, on two workers.
const MAILBOX: i64 = 160;

/// As large as a message of the workloads.
type Message = [u64; 12];

async fn handle(message: Message) {
    black_box(message);
}

/// Keeps its message and never ends.
async fn wait(message: Message) {
    pending::<()>().await;
    black_box(message);
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.trim().parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

fn executor() -> KeyedExecutor {
    KeyedExecutor::builder().name("memory").workers(WORKERS).build().expect("the settings are in range")
}

/// Bytes of a live mailbox beside message, key and future, when every message of a full window is of a key of its own.
fn of_a_mailbox<F>(executor: &KeyedExecutor, handler: fn(Message) -> F) -> i64
where
    F: Future<Output = ()> + Send + 'static,
{
    let future = size_of_val(&handler([0; 12]));
    let before = live();
    let keyspace: Keyspace<u64, Message> =
        executor.keyspace_with(Options::new("many").max_in_flight(MANY), handler);
    for key in 0..MANY as u64 {
        keyspace.try_submit(key, [key; 12]).expect("there is room");
    }
    assert_eq!(keyspace.live_keys(), MANY, "every handler waits");
    // Every handler was started: wakers are made with the first poll.
    eventually("the workers sleep", || executor.metrics().workers.iter().all(|worker| worker.parked));
    let all = live() - before;
    keyspace.cancel();
    finish(keyspace.drained());
    drop(keyspace);
    all / MANY as i64 - (size_of::<Message>() + size_of::<u64>() + future) as i64
}

/// Waits until no more is in use than before; a worker lets go of a dispatch after whoever awaited it was told.
fn comes_back(before: i64, of: &str) -> i64 {
    eventually(&format!("at most {SLACK} bytes stay of {of}"), || live() - before <= SLACK);
    live() - before
}

fn through_a_keyspace(executor: &KeyedExecutor, messages: u64, keys: u64) -> (i64, i64) {
    let keyspace: Keyspace<u64, Message> =
        executor.keyspace_with(Options::new("round").max_in_flight(WINDOW), handle);
    let send = |first: u64, count: u64| {
        let sent = finish_within(PATIENCE, async {
            for n in first..first + count {
                keyspace.submit(n % keys, [n; 12]).await.expect("the keyspace is open");
            }
            keyspace.drained().await;
        });
        sent.expect("the messages are handled");
        assert_eq!(keyspace.live_keys(), 0);
        live()
    };
    let early = send(0, 20 * WINDOW as u64);
    (early, send(0, messages))
}

fn through_a_source(executor: &KeyedExecutor, messages: u64, keys: u64) {
    let source = futures_util::stream::iter((0..messages).map(|n| [n; 12]));
    let dispatch = executor.dispatch(source, move |message: &Message| message[0] % keys, handle);
    let ledger = finish_within(PATIENCE, dispatch).expect("the source ends").expect("no handler fails");
    assert_eq!(ledger.handled, messages);
}

#[test]
#[expect(clippy::print_stdout, reason = "what was measured is asked for with --nocapture")]
fn memory_is_bounded_by_the_window_and_comes_back() {
    let (messages, keys) = (number("MEMORY_MESSAGES", MESSAGES), number("MEMORY_KEYS", KEYS));
    let before = live();
    let executor = executor();
    let idle = live() - before;
    assert!(idle <= IDLE, "an idle executor takes {idle} bytes");

    // What is made once: threads, their names, the first block of each queue.
    through_a_source(&executor, 1_000, 10);
    through_a_keyspace(&executor, 1_000, 10);
    let started = live();

    let waiting = of_a_mailbox(&executor, wait);
    assert!(waiting <= MAILBOX, "a live mailbox takes {waiting} bytes beside its message, key and future");
    comes_back(started, "many live keys");

    let (early, late) = through_a_keyspace(&executor, messages, keys);
    assert!(
        late - early <= SLACK + LATE_WORKERS,
        "an open keyspace grew by {} bytes over {messages} messages",
        late - early
    );
    through_a_source(&executor, messages, keys);
    let back = comes_back(started, "many messages over many keys");

    executor.close();
    finish(executor.terminated());
    drop(executor);
    let left = comes_back(before, "an executor that ended");
    println!(
        "idle executor {idle} bytes, live mailbox {waiting} bytes beside message, key and future; \
         {messages} messages over {keys} keys by each door left {back} bytes, the executor {left}"
    );
}
