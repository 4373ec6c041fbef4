//! `Pool`: the threads of one aggregate type.
//!
//! Owns a fixed number of workers for groups and one for sources, so that a handler that blocks its thread cannot stop
//! the source. Invariants: no thread before the first dispatch, then all of them; none is added, replaced or lent
//! afterwards; the pool has ended once it is closed and its last thread left. It knows nothing of groups and messages.

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU16;

use crate::contain::contain;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock, thread};
use crate::termination::Termination;
use crate::worker::Worker;

thread_local! {
    static ON_POOL_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread belongs to a pool, of whichever supplier: one that must not wait for the end of a pool.
#[must_use]
pub fn on_pool_thread() -> bool {
    ON_POOL_THREAD.get()
}

/// What every thread of a pool is entered into.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    #[cfg(feature = "tokio")]
    pub(crate) tokio: Option<tokio::runtime::Handle>,
}

impl Surroundings {
    fn enter<R>(&self, body: impl FnOnce() -> R) -> R {
        #[cfg(feature = "tokio")]
        let _entered = self.tokio.as_ref().map(tokio::runtime::Handle::enter);
        body()
    }
}

/// Why no thread can run a dispatch.
#[derive(Debug)]
pub(crate) enum StartError {
    Closed,
    Unstartable(String),
}

pub(crate) struct Pool {
    name: String,
    workers: Box<[Arc<Worker>]>,
    sources: Arc<Worker>,
    surroundings: Surroundings,
    next: AtomicUsize,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    /// How many of all workers, sources last, were given their thread.
    started: usize,
    live: usize,
    closed: bool,
    observer: Option<Termination>,
}

impl Pool {
    /// A pool whose threads are named `<name>-<n>`, n from 1, and `<name>-source`.
    pub(crate) fn new(name: &str, parallelism: NonZeroU16, surroundings: Surroundings) -> Arc<Self> {
        // A thread's name cannot hold it.
        let name = name.replace('\0', "");
        let workers = (1..=parallelism.get()).map(|n| Worker::new(format!("{name}-{n}"))).collect();
        let sources = Worker::new(format!("{name}-source"));
        let (next, threads) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { name, workers, sources, surroundings, next, threads })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn parallelism(&self) -> usize {
        self.workers.len()
    }

    /// The worker for a new group: each in turn, in the order in which groups are first used.
    pub(crate) fn next_worker(&self) -> Arc<Worker> {
        // Relaxed: any fair choice will do.
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.workers[turn % self.workers.len()])
    }

    /// The worker that polls sources.
    pub(crate) fn sources(&self) -> &Arc<Worker> {
        &self.sources
    }

    /// Gives every worker its thread, unless it has one. What could not be started is tried again at the next call.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), StartError> {
        let mut threads = lock(&self.threads);
        if threads.closed {
            return Err(StartError::Closed);
        }
        let all = self.workers.iter().chain([&self.sources]);
        for worker in all.skip(threads.started) {
            let (pool, worker) = (Arc::clone(self), Arc::clone(worker));
            thread::Builder::new()
                .name(worker.name().to_owned())
                .spawn(move || pool.serve(&worker))
                .map_err(|error| StartError::Unstartable(error.to_string()))?;
            threads.started += 1;
            threads.live += 1;
        }
        Ok(())
    }

    /// The body of each thread.
    fn serve(&self, worker: &Worker) {
        ON_POOL_THREAD.set(true);
        // What the user wrote is contained one by one; the outer catch is for a logger that panics.
        self.surroundings.enter(|| while contain(|| worker.run()).is_err() {});
        self.tell_if_ended(|threads| threads.live -= 1);
    }

    /// Tells `observer` when the pool has ended; at most one observer, set before the close.
    pub(crate) fn observe(&self, observer: Termination) {
        lock(&self.threads).observer = Some(observer);
    }

    /// Takes no task any more and lets the threads end with what is queued; idempotent.
    pub(crate) fn close(&self) {
        for worker in self.workers.iter().chain([&self.sources]) {
            worker.close();
        }
        self.tell_if_ended(|threads| threads.closed = true);
    }

    fn tell_if_ended(&self, change: impl FnOnce(&mut Threads)) {
        let observer = {
            let mut threads = lock(&self.threads);
            change(&mut threads);
            let ended = threads.closed && threads.live == 0;
            if ended { threads.observer.take() } else { None }
        };
        if let Some(observer) = observer {
            observer.pool_ended();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = lock(&self.threads).live;
        f.debug_struct("Pool")
            .field("name", &self.name)
            .field("parallelism", &self.parallelism())
            .field("live_threads", &live)
            .finish_non_exhaustive()
    }
}
