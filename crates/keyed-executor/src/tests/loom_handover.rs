//! L10: the whole hand-over of a seat on the whole executor, a second one on top included.
//!
//! ```text
//! worker: lend │ handler of key 1 is stuck │ back: lost │ hand in, Pending │ idle spare │ adopts again
//! main:        submit key 2 │ take for the spare │ wake key 1, let it go │ take from the spare │ close
//! spare:                    adopts: key 1 is detached │ key 2 │ what was handed in │ key 1 again
//! ```
//! The monitor's thread is left out: its look is called where the monitor would make it, when a handler is known to be
//! stuck, or while everybody moves. Everything else is production code: token, borrow, occupant,
//! adoption, hand-in, the pool of spares, and the sleep of whoever has the seat.
//!
//! Looked for: a future that two threads are inside of, or that is dropped beside its poll (loom's cell in it reports
//! it), a message that is handled twice or not at all, an outcome or a wake that is lost (the model deadlocks), and a
//! thread that touches the seat after it lost it.
//!
//! Broken by hand: a Relaxed lend, a borrow by look and store, a return that stores instead of its CAS, an adoption that
//! detaches nothing, a wake that resumes a detached message, a pending hand-in that only waits, an outcome that is
//! announced before it is left, and a hand-in that notifies nobody are each caught. Not caught, because nothing depends on
//! it as long as one monitor moves every seat: a Relaxed take.
//!
//! Searched: preemption bound 2: 14,917 executions beside the return, 5,357 beside a wake, 9,530 nested, 5 s.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::monitor::{Seen, Tried};
use crate::shared::Lifetime;
use crate::sync::{Arc, AtomicU32, Condvar, Mutex, Ordering, UnsafeCell, lock, spawn_named};
use crate::{KeyedExecutor, Keyspace};

/// The model's main thread looks in the monitor's place.
fn without_monitor(name: String, body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    if name == "rescue:model" { Err(std::io::ErrorKind::Unsupported.into()) } else { spawn_named(name, body) }
}

fn executor() -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("model")
        .workers(1)
        .max_in_flight(3)
        .throughput(1)
        .rescue_threads(1)
        .start_for(Lifetime::Handles, without_monitor)
}

/// One look of the monitor at a handler that was seen before; whether it took the seat.
fn look(executor: &KeyedExecutor) -> bool {
    let shared = executor.inner();
    let worker = &shared.workers[0];
    let seen = worker.token().lent().map(|word| Seen { word, ..Seen::default() });
    seen.is_some_and(|seen| shared.try_rescue(worker, &seen) == Tried::Taken)
}

/// A door that stays open.
struct Latch(Mutex<bool>, Condvar);

impl Latch {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(false), Condvar::new()))
    }

    fn open(&self) {
        *lock(&self.0) = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let mut open = lock(&self.0);
        while !*open {
            open = self.1.wait(open).unwrap_or_else(crate::sync::PoisonError::into_inner);
        }
    }
}

/// Where a handler stops: it says that it is inside, then waits to be let go.
#[derive(Clone)]
struct Stop {
    inside: Arc<Latch>,
    go: Arc<Latch>,
}

impl Stop {
    fn new() -> Self {
        Self { inside: Latch::new(), go: Latch::new() }
    }
}

/// What the handlers of a model share with its main thread.
struct Scene {
    /// Where the first messages stop in their first poll.
    stops: Vec<Stop>,
    waker: Mutex<Option<Waker>>,
    handled: AtomicU32,
}

/// A handler's future that loom watches: its polls and its drop have to follow each other.
struct Watched {
    message: u32,
    scene: Arc<Scene>,
    polls: UnsafeCell<u32>,
}

// SAFETY: rule 3 of seat/README.md: one thread at a time is inside a future; that is what the model checks.
unsafe impl Send for Watched {}

impl Watched {
    fn touch(&self) -> u32 {
        // SAFETY: rule 3 of seat/README.md, as above; loom reports it if another thread is inside too.
        self.polls.with_mut(|polls| unsafe { std::mem::replace(&mut *polls, *polls + 1) })
    }
}

impl Future for Watched {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let first = self.touch() == 0;
        // Message 0 waits for one wake, that comes during its first poll or after it.
        let waits = first && self.message == 0;
        if waits {
            *lock(&self.scene.waker) = Some(cx.waker().clone());
        }
        if let Some(stop) = self.scene.stops.get(self.message as usize).filter(|_| first) {
            stop.inside.open();
            stop.go.wait();
        }
        self.touch();
        if waits {
            return Poll::Pending;
        }
        self.scene.handled.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.touch();
    }
}

impl Scene {
    /// A worker that is inside message 0 of key 1, with message 1 of key 2 behind it.
    fn stuck(stops: Vec<Stop>) -> (Arc<Self>, KeyedExecutor, Keyspace<u8, u32>) {
        let scene = Arc::new(Self { stops, waker: Mutex::new(None), handled: AtomicU32::new(0) });
        let executor = executor();
        let shared = Arc::clone(&scene);
        let keyspace = executor.keyspace(move |message: u32| Watched {
            message,
            scene: Arc::clone(&shared),
            polls: UnsafeCell::new(0),
        });
        keyspace.try_submit(1, 0).expect("there is room");
        scene.stops[0].inside.wait();
        keyspace.try_submit(2, 1).expect("there is room");
        (scene, executor, keyspace)
    }

    fn wake(&self) {
        let waker = lock(&self.waker).take();
        waker.expect("message 0 left its waker").wake();
    }

    fn finish(&self, executor: &KeyedExecutor, keyspace: &Keyspace<u8, u32>, messages: u32) {
        executor.close();
        executor.join().expect("not on a worker");
        assert_eq!(self.handled.load(Ordering::Relaxed), messages, "each message ended once");
        let ledger = loom::future::block_on(keyspace.drained());
        assert_eq!((ledger.handled, ledger.in_flight()), (u64::from(messages), 0));
    }
}

#[test]
fn loom_handover_vs_return() {
    // Both outcomes have to be met, or the model looks at nothing.
    static TAKEN: [std::sync::atomic::AtomicBool; 2] =
        [const { std::sync::atomic::AtomicBool::new(false) }; 2];
    super::model::model("handover_vs_return", || {
        let (scene, executor, keyspace) = Scene::stuck(vec![Stop::new()]);
        scene.stops[0].go.open();
        TAKEN[usize::from(look(&executor))].store(true, Ordering::Relaxed);
        scene.wake();
        scene.finish(&executor, &keyspace, 2);
    });
    assert!(TAKEN.iter().all(|met| met.load(Ordering::Relaxed)));
}

#[test]
fn loom_handover_vs_wake() {
    super::model::model("handover_vs_wake", || {
        let (scene, executor, keyspace) = Scene::stuck(vec![Stop::new()]);
        assert!(look(&executor), "a handler is stuck and another key waits");
        keyspace.try_submit(1, 2).expect("there is room");
        scene.wake();
        scene.stops[0].go.open();
        scene.finish(&executor, &keyspace, 3);
    });
}

#[test]
fn loom_handover_nested() {
    super::model::model("handover_nested", || {
        let (scene, executor, keyspace) = Scene::stuck(vec![Stop::new(), Stop::new()]);
        assert!(look(&executor), "a handler is stuck and another key waits");
        keyspace.try_submit(1, 2).expect("there is room");
        scene.stops[1].inside.wait();
        scene.stops[0].go.open();
        scene.wake();
        // The successor is stuck in its turn; the first thread hands in, is a spare, and gets its seat back.
        while !look(&executor) {
            crate::sync::yield_now();
        }
        scene.stops[1].go.open();
        // Whoever is inside whatever handler by now.
        let _ = look(&executor);
        scene.finish(&executor, &keyspace, 3);
    });
}
