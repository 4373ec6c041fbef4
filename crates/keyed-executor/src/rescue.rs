//! Spare threads: who goes on with a seat that was taken from under a stuck thread.
//!
//! Threads are workers, stuck ones, and idle spares, together at most workers + `rescue_threads`. A spare is started when
//! a seat is taken and none is idle; a thread that lost its seat becomes one when it comes back; one that is not needed
//! for [`UNUSED`] ends. Which seats are taken, and when, is `monitor.rs`.

use std::ops::Range;
use std::time::Duration;

use crate::metrics::MonitorMetrics;
use crate::sleep::{Notified, Sleeper};
use crate::sync::{Arc, Condvar, Mutex, lock, wait_for};
use crate::time::nanos;
use crate::watchdog::{self, Stuck, StuckCode};
use crate::worker::Worker;

/// A spare that was not needed for this long ends.
const UNUSED: Duration = Duration::from_secs(3);

/// A thread without a seat, waiting for one.
pub(crate) struct Spare {
    /// The number of its token.
    pub(crate) thread: usize,
    given: Mutex<Given>,
    told: Condvar,
}

/// What a waiting spare was told.
enum Given {
    Nothing,
    Seat(Arc<Worker>),
    End,
}

impl Spare {
    fn new(thread: usize) -> Arc<Self> {
        Arc::new(Self { thread, given: Mutex::new(Given::Nothing), told: Condvar::new() })
    }

    /// Gives it a seat that was taken for it.
    pub(crate) fn give(&self, worker: Arc<Worker>) {
        *lock(&self.given) = Given::Seat(worker);
        self.told.notify_one();
    }

    fn end(&self) {
        let mut given = lock(&self.given);
        if let Given::Nothing = *given {
            *given = Given::End;
        }
        self.told.notify_one();
    }
}

#[derive(Default)]
struct Pool {
    idle: Vec<Arc<Spare>>,
    /// Tokens of threads that do not exist.
    free: Vec<usize>,
    /// Threads that lost their seat and have not come back.
    lost: Vec<LostThread>,
    /// Seats taken so far.
    rescues: u64,
    ended: bool,
}

/// A thread that lost its seat, and what it is inside of.
pub(crate) struct LostThread {
    pub(crate) thread: usize,
    /// The worker whose seat it lost.
    pub(crate) worker: usize,
    pub(crate) code: StuckCode,
    /// When it was first seen there.
    pub(crate) since: u64,
    /// It was named already.
    pub(crate) named: bool,
}

/// The spares of an executor, and the sleep of their monitor.
pub(crate) struct Rescue {
    pool: Mutex<Pool>,
    monitor: Arc<Sleeper>,
    /// How many threads there may be beside the workers.
    spares: usize,
    /// Whether there is a monitor, for these or for the watchdog.
    is_watched: bool,
}

/// A spare to be had.
pub(crate) enum Found {
    /// One that waits.
    Idle(Arc<Spare>),
    /// One whose thread is to be started.
    New(Arc<Spare>),
}

impl Rescue {
    /// A pool that may start as many threads as there are `tokens`; whether somebody watches without any, too.
    pub(crate) fn new(tokens: Range<usize>, is_watched: bool) -> Self {
        let spares = tokens.len();
        let free = tokens.rev().collect();
        Self {
            pool: Mutex::new(Pool { free, ..Pool::default() }),
            monitor: Arc::new(Sleeper::new()),
            spares,
            is_watched: is_watched || spares > 0,
        }
    }

    /// Whether there may be spares.
    pub(crate) fn is_on(&self) -> bool {
        self.spares > 0
    }

    /// Whether there is a monitor.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched
    }

    pub(crate) fn monitor(&self) -> &Arc<Sleeper> {
        &self.monitor
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.pool).ended
    }

    /// A thread is on its seat again: the monitor has something to look at.
    #[inline]
    pub(crate) fn watch(&self) {
        if self.is_watched {
            // A monitor that is gone, or not started yet, has nothing to lose.
            let _: Notified = self.monitor.notify();
        }
    }

    /// An idle spare, or one to start; None if there are as many threads as there may be.
    pub(crate) fn find(&self) -> Option<Found> {
        let mut pool = lock(&self.pool);
        if pool.ended {
            return None;
        }
        if let Some(spare) = pool.idle.pop() {
            return Some(Found::Idle(spare));
        }
        Some(Found::New(Spare::new(pool.free.pop()?)))
    }

    /// The thread of a new spare could not be started: its token is free again.
    pub(crate) fn not_started(&self, spare: &Spare) {
        lock(&self.pool).free.push(spare.thread);
    }

    /// A seat was taken from a thread.
    pub(crate) fn taken_from(&self, lost: LostThread) {
        let mut pool = lock(&self.pool);
        pool.rescues += 1;
        pool.lost.push(lost);
    }

    /// The first wait of a thread that was started for a seat.
    pub(crate) fn wait_for_seat(spare: &Spare) -> Option<Arc<Worker>> {
        Self::wait(spare, || false)
    }

    /// The wait of a thread that lost its seat; None if it is to end.
    pub(crate) fn wait_again(&self, thread: usize) -> Option<Arc<Worker>> {
        let spare = Spare::new(thread);
        let (lost, ended) = {
            let mut pool = lock(&self.pool);
            let at = pool.lost.iter().position(|lost| lost.thread == thread);
            let lost = at.map(|at| pool.lost.swap_remove(at));
            if !pool.ended {
                pool.idle.push(Arc::clone(&spare));
            }
            (lost, pool.ended)
        };
        if let Some(LostThread { worker, code, since, named: true, .. }) = lost {
            watchdog::log_end(&code, worker, Duration::from_nanos(nanos() - since));
        }
        if ended {
            return None;
        }
        Self::wait(&spare, || {
            // Unused: it ends, unless somebody has found it in the meantime.
            let mut pool = lock(&self.pool);
            let at = pool.idle.iter().position(|idle| Arc::ptr_eq(idle, &spare));
            if let Some(at) = at {
                pool.idle.swap_remove(at);
                pool.free.push(thread);
            }
            at.is_some()
        })
    }

    fn wait(spare: &Spare, mut unused: impl FnMut() -> bool) -> Option<Arc<Worker>> {
        let mut given = lock(&spare.given);
        loop {
            match std::mem::replace(&mut *given, Given::Nothing) {
                Given::Seat(worker) => return Some(worker),
                Given::End => return None,
                Given::Nothing => {}
            }
            let timed_out;
            (given, timed_out) = wait_for(&spare.told, given, UNUSED);
            if timed_out && matches!(*given, Given::Nothing) {
                drop(given);
                if unused() {
                    return None;
                }
                given = lock(&spare.given);
            }
        }
    }

    /// The threads that lost their seat and are not back after `stuck_after`, each once; and when the next one is due.
    pub(crate) fn overdue(&self, now: u64, stuck_after: Duration) -> (Vec<Stuck>, Option<Duration>) {
        let mut overdue = Vec::new();
        let mut next: Option<Duration> = None;
        for lost in lock(&self.pool).lost.iter_mut().filter(|lost| !lost.named) {
            let held = Duration::from_nanos(now.saturating_sub(lost.since));
            if held < stuck_after {
                let due = stuck_after - held;
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            lost.named = true;
            overdue.push(Stuck { code: lost.code.clone(), worker: lost.worker, held, rescued: true });
        }
        (overdue, next)
    }

    /// What there is to say of the spares now.
    pub(crate) fn metrics(&self) -> MonitorMetrics {
        let pool = lock(&self.pool);
        MonitorMetrics {
            rescues: pool.rescues,
            stuck: pool.lost.len(),
            spares: self.spares.saturating_sub(pool.free.len()),
            idle_spares: pool.idle.len(),
            ..MonitorMetrics::default()
        }
    }

    /// No seat is left: spares and the monitor end.
    pub(crate) fn end(&self) {
        {
            let mut pool = lock(&self.pool);
            pool.ended = true;
            for spare in pool.idle.drain(..) {
                spare.end();
            }
        }
        self.monitor.interrupt();
    }
}
