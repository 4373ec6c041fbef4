//! What every part of an executor shares: workers, flags, the list of its dispatches, and the start of a thread.
//!
//! How it ends is `shutdown.rs`.

use crate::audit::OnMisorder;
use crate::config::Config;
use crate::contain::drop_contained;
use crate::error::{RejectReason, Rejected};
use crate::executor::Guard;
use crate::lanes::Lanes;
use crate::metrics::ExecutorMetrics;
use crate::rescue::{Rescue, Spare};
use crate::shutdown::Threads;
use crate::sleep::Notified;
use crate::sync::{
    Arc, AtomicBool, AtomicUsize, Condvar, Figure, Mutex, OnceLock, Ordering, Weak, lock, spawn_named,
};
use crate::task::{Task, TaskCell};
use crate::watchdog::Watchdog;
use crate::worker::{self, Entry, Job, Left, Worker};

/// Starts a worker's thread; tests put a failing one here.
pub(crate) type Spawn = fn(String, Box<dyn FnOnce() + Send>) -> std::io::Result<()>;

/// Who ends an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Its handles: the last one dropped, or a call of `close`.
    Handles,
    /// Nobody: the process-wide one serves whoever has none of their own.
    Process,
}

/// What a new thread begins with.
pub(crate) enum Seat {
    /// A worker's seat that nobody was on yet.
    Worker(Arc<Worker>),
    /// None: it waits for one that is taken for it.
    Spare(Arc<Spare>),
}

/// What every part of an executor shares.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) lifetime: Lifetime,
    pub(crate) workers: Box<[Arc<Worker>]>,
    pub(crate) guard: OnceLock<Weak<Guard>>,
    pub(crate) closed: AtomicBool,
    pub(crate) forced: AtomicBool,
    /// Every intake was told to close: a worker without work may end.
    pub(crate) draining: AtomicBool,
    pub(crate) open_intakes: AtomicUsize,
    pub(crate) dispatches: Mutex<Vec<Weak<dyn Lanes>>>,
    pub(crate) threads: Mutex<Threads>,
    pub(crate) last_thread: Condvar,
    pub(crate) rescue: Rescue,
    pub(crate) watchdog: Watchdog,
    pub(crate) spawn: Spawn,
    pub(crate) round_robin: AtomicUsize,
    /// Tasks that came back.
    pub(crate) rejected: Figure,
    /// Who is told what an auditor finds.
    pub(crate) on_misorder: Option<OnMisorder>,
    #[cfg(feature = "tokio")]
    pub(crate) tokio: Option<tokio::runtime::Handle>,
}

impl Shared {
    /// The handle's guard, for a worker that wants to know its executor.
    pub(crate) fn guard(&self) -> Weak<Guard> {
        self.guard.get().cloned().unwrap_or_default()
    }

    /// Where the next intake or task starts to look for a worker.
    pub(crate) fn next_start(&self) -> usize {
        // Relaxed: only the spread counts.
        self.round_robin.fetch_add(1, Ordering::Relaxed) % self.workers.len()
    }

    /// Starts a worker's thread if it has none; exactly one caller does.
    pub(crate) fn ensure_started(self: &Arc<Self>, worker: &Arc<Worker>) -> Result<(), RejectReason> {
        if worker.is_running() {
            return Ok(());
        }
        let mut threads = lock(&self.threads);
        if worker.is_running() {
            return Ok(());
        }
        if let Some(cause) = threads.unstartable.get(&worker.index()) {
            return Err(RejectReason::Unstartable(cause.clone()));
        }
        if worker.sleeper().is_gone() {
            return Err(if threads.closed { RejectReason::Closed } else { RejectReason::Dead });
        }
        if threads.closed {
            return Err(RejectReason::Closed);
        }
        let name = format!("{}-{}", self.config.name, worker.index() + 1);
        let (shared, started) = (Arc::clone(self), Arc::clone(worker));
        let body = Box::new(move || shared.thread_body(started.index(), Seat::Worker(started)));
        match (self.spawn)(name, body) {
            Ok(()) => {
                threads.live += 1;
                threads.seats += 1;
                worker.mark_started();
                self.start_monitor(&mut threads);
                Ok(())
            }
            Err(error) => {
                tracing::error!(worker = worker.index() + 1, %error, "a worker thread could not be started");
                // Tried once only: the worker is dead from here on.
                worker.sleeper().leave();
                threads.unstartable.insert(worker.index(), error.to_string());
                Err(RejectReason::Unstartable(error.to_string()))
            }
        }
    }

    /// The life of a thread: on its first seat, and as a spare whenever it lost one.
    pub(crate) fn thread_body(self: &Arc<Self>, thread: usize, first: Seat) {
        #[cfg(feature = "tokio")]
        let _entered = self.tokio.as_ref().map(tokio::runtime::Handle::enter);
        let mut seat = match first {
            Seat::Worker(worker) => Some((worker, Entry::First)),
            Seat::Spare(spare) => Rescue::wait_for_seat(&spare).map(|worker| (worker, Entry::Adopts)),
        };
        while let Some((worker, entry)) = seat {
            match worker::occupy(self, &worker, thread, entry) {
                Left::Done => break,
                Left::Lost => {
                    seat = self.rescue.wait_again(thread).map(|worker| (worker, Entry::Adopts));
                }
            }
        }
        self.thread_ended();
    }

    /// Tells a seat's occupant that an outcome was left with a dispatch; `lanes` keeps that alive until it is taken.
    pub(crate) fn tell_handed_in(&self, worker: &Arc<Worker>, lanes: Arc<dyn Lanes>) {
        worker.jobs().push(Job::HandedIn(lanes));
        if worker.sleeper().notify() == Notified::Gone {
            self.sweep(worker.index());
        }
    }

    /// A worker with a thread, the next in turn that can have one.
    pub(crate) fn a_started_worker(self: &Arc<Self>) -> Result<usize, RejectReason> {
        let start = self.next_start();
        let mut refused = RejectReason::Closed;
        for offset in 0..self.workers.len() {
            let index = (start + offset) % self.workers.len();
            match self.ensure_started(&self.workers[index]) {
                Ok(()) => return Ok(index),
                Err(reason) => refused = reason,
            }
        }
        Err(refused)
    }

    /// Queues a task on a worker; it comes back if it will not be run.
    pub(crate) fn submit<T: FnOnce() + Send + 'static>(
        self: &Arc<Self>,
        worker: usize,
        task: T,
    ) -> Result<(), Rejected<T>> {
        let submitted = self.try_submit(worker, task);
        if submitted.is_err() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
        }
        submitted
    }

    fn try_submit<T: FnOnce() + Send + 'static>(
        self: &Arc<Self>,
        worker: usize,
        task: T,
    ) -> Result<(), Rejected<T>> {
        if self.is_closed() {
            return Err(Rejected { task, reason: RejectReason::Closed });
        }
        let worker = &self.workers[worker];
        if let Err(reason) = self.ensure_started(worker) {
            return Err(Rejected { task, reason });
        }
        let cell = Arc::new(TaskCell::new(task));
        worker.jobs().push(Job::Task(Arc::clone(&cell) as Arc<dyn Task>));
        if worker.sleeper().notify() == Notified::Gone {
            // The thread ended after the look above. Either its last look at the queue found the task, or nobody did.
            if let Some(task) = cell.claim() {
                let reason = if self.is_closed() { RejectReason::Closed } else { RejectReason::Dead };
                return Err(Rejected { task, reason });
            }
        }
        Ok(())
    }

    /// Adds a dispatch whose intake is open; false on a closed executor.
    pub(crate) fn register<L: Lanes + 'static>(&self, dispatch: Weak<L>) -> bool {
        let mut dispatches = lock(&self.dispatches);
        // Acquire: pairs with the swap in `close`, which comes before it takes this lock.
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        if dispatches.len() == dispatches.capacity() {
            dispatches.retain(|dispatch| dispatch.strong_count() > 0);
        }
        dispatches.push(dispatch);
        self.open_intakes.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// The dispatches of which something is left, in the order in which they were opened.
    ///
    /// Whoever asks may be the last one to have one of them: it gives them back to [`let_go`].
    pub(crate) fn dispatches(&self) -> Vec<Arc<dyn Lanes>> {
        lock(&self.dispatches).iter().filter_map(Weak::upgrade).collect()
    }

    /// What is counted of the workers and of every dispatch.
    pub(crate) fn metrics(&self) -> ExecutorMetrics {
        let dispatches = self.dispatches();
        let workers = self.workers.iter().enumerate().map(|(index, worker)| {
            let mut metrics = worker.counters().read(worker.is_running(), worker.sleeper().sleeps());
            for lanes in &dispatches {
                let figures = lanes.lane_figures(index);
                metrics.live_mailboxes += figures.live.get();
                metrics.ready += figures.ready.get();
            }
            metrics
        });
        let metrics = ExecutorMetrics {
            workers: workers.collect(),
            dispatches: self.figures(&dispatches),
            rejected_tasks: self.rejected.load(Ordering::Relaxed),
            monitor: self.monitor_metrics(),
        };
        let_go(dispatches);
        metrics
    }

    /// Whether later submissions are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether nothing is started any more.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Acquire)
    }
}

/// Lets go of dispatches that were looked at; what the last one to have a dispatch drops is the user's.
pub(crate) fn let_go(dispatches: Vec<Arc<dyn Lanes>>) {
    for lanes in dispatches {
        drop_contained("a dispatch", lanes);
    }
}

/// Starts a thread of the operating system.
pub(crate) fn spawn(name: String, body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    spawn_named(name, body)
}
