//! The hot paths as plain programs for an instruction counter: `instructions PATH MESSAGES` runs one of them, once.
//!
//! `cargo xtask bench instructions` runs each path twice, with n and with 2n messages, and counts the instructions of all
//! threads; the difference over n is what a message costs, and everything that happens once cancels out. Nothing is
//! timed here and nothing spins. Meant to be compiled with `--cfg keyed_counted`, under which the executor's clock
//! moves by being looked at and its hash seed is fixed, so that how slow the counter runs decides nothing.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a program's complaint about its arguments")]

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace, Options};

/// A path, for so many messages.
type Run = fn(u64);

/// A path's name, and the program.
const PATHS: [(&str, Run); 6] = [
    ("submit", submit),
    ("in-place", in_place),
    ("yield", yields),
    ("wake", wake),
    ("a-submit", a_submit),
    ("a-dispatch", a_dispatch),
];

/// Keys of workload A.
const KEYS: u64 = 10_000;
/// Its window.
const WINDOW: usize = 256;
/// Handlers that wait at once where a wake is counted.
const WAITING: u64 = 64;

/// As large as a message of the workloads.
type Message = [u64; 12];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let known = match arguments.as_slice() {
        [path, messages] => PATHS.iter().find(|(name, _)| name == path).zip(messages.parse::<u64>().ok()),
        _ => None,
    };
    let Some(((_, run), messages)) = known else {
        let names: Vec<&str> = PATHS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: instructions PATH MESSAGES, where PATH is one of {}", names.join(", "));
        return ExitCode::from(2);
    };
    run(messages);
    ExitCode::SUCCESS
}

fn executor(workers: usize, window: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("count")
        .workers(workers)
        .max_in_flight(window)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range")
}

/// The key of the nth message: every key equally often, neighbours far apart.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS
}

async fn handle(message: Message) {
    black_box(message.iter().fold(0_u64, |sum, part| sum.wrapping_add(*part)));
}

/// One message handed in by a thread while the worker is busy: lock, permit, directory, inbox.
fn submit(messages: u64) {
    let executor = executor(1, 65_536);
    let (started, has_started) = mpsc::channel();
    let keyspace: Keyspace<u64, Message> = executor.keyspace(move |message: Message| {
        if message[0] == u64::MAX {
            started.send(()).expect("the main thread listens");
            // Until the process ends.
            loop {
                thread::park();
            }
        }
        handle(message)
    });
    keyspace.try_submit(KEYS, [u64::MAX; 12]).expect("there is room");
    has_started.recv().expect("the handler starts");
    for n in 0..messages {
        keyspace.try_submit(n % WINDOW as u64, [n; 12]).expect("there is room");
    }
    // What was handed in is never handled: only the way in is counted.
    std::process::exit(0);
}

fn from_source<F>(workers: usize, messages: u64, handler: impl Fn(Message) -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let executor = executor(workers, WINDOW);
    let source = stream::iter((0..messages).map(|n| [n; 12]));
    let options = Options::new("count");
    let dispatch = executor.dispatch_with(options, source, |message| key(message[0]), handler);
    let ledger = dispatch.wait().expect("no worker waits").expect("no handler fails");
    assert_eq!(ledger.handled, messages);
}

/// A message that runs where the source yielded it.
fn in_place(messages: u64) {
    from_source(1, messages, handle);
}

/// A message that gives way once and wakes itself: a mailbox, two polls, one turn behind the others.
fn yields(messages: u64) {
    from_source(1, messages, |message| async move {
        let mut given_way = false;
        poll_fn(|context| {
            if std::mem::replace(&mut given_way, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        handle(message).await;
    });
}

/// What the waiting handlers and the thread that wakes them share.
#[derive(Default)]
struct Bell {
    wakers: Mutex<Vec<Waker>>,
    polls: AtomicU64,
}

/// A wake from another thread, the poll it leads to, and the next wait; `messages` counts the wakes.
fn wake(messages: u64) {
    let executor = executor(1, WINDOW);
    let (bell, main) = (Arc::new(Bell::default()), thread::current());
    let rung = Arc::clone(&bell);
    let rounds = messages / WAITING;
    let keyspace: Keyspace<u64, ()> = executor.keyspace(move |()| {
        let (rung, main) = (Arc::clone(&rung), main.clone());
        let mut left = rounds + 1;
        poll_fn(move |context| {
            left -= 1;
            if left > 0 {
                rung.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            }
            if (rung.polls.fetch_add(1, Ordering::AcqRel) + 1) % WAITING == 0 {
                main.unpark();
            }
            if left > 0 { Poll::Pending } else { Poll::Ready(()) }
        })
    });
    for waiting in 0..WAITING {
        keyspace.try_submit(waiting, ()).expect("there is room");
    }
    for round in 0..rounds {
        while bell.polls.load(Ordering::Acquire) < (round + 1) * WAITING {
            thread::park();
        }
        let wakers = std::mem::take(&mut *bell.wakers.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in wakers {
            waker.wake();
        }
    }
    assert_eq!(block_on(keyspace.drained()).handled, WAITING);
}

/// Workload A through a keyspace: one producer that waits for room, two workers.
fn a_submit(messages: u64) {
    let executor = executor(2, WINDOW);
    let keyspace: Keyspace<u64, Message> = executor.keyspace(handle);
    block_on(async {
        for n in 0..messages {
            keyspace.submit(key(n), [n; 12]).await.expect("the keyspace is open");
        }
        assert_eq!(keyspace.drained().await.handled, messages);
    });
}

/// Workload A from a source, two workers.
fn a_dispatch(messages: u64) {
    from_source(2, messages, handle);
}

/// Wakes a thread that waits in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}
