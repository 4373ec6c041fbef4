//! How an executor ends, as a numbered procedure.
//!
//! `close`:
//! 1. `closed` is set: submissions look at it first and are refused.
//! 2. No thread is started from here on (under the lock that starts them).
//! 3. Every registered dispatch shuts its door: a keyspace under its lock, a source at its home. An arrival that was
//!    inside the lock is accepted and will be run; one that comes later is refused. Registration looks at `closed`
//!    under the list's lock, so a dispatch is either in the list or refused.
//! 4. `draining` is set and everybody is woken. A worker ends once no intake is open, nothing is attached to its seat
//!    and its queue is empty. Without "no intake is open" a worker could end between a submitter's look at `closed` and
//!    its push; with it nobody can push to a worker that ended, save a task (step 5).
//! 5. A worker first says that it is gone, then takes what is left in its queue; a submitter first queues its task, then
//!    looks whether the worker is gone, and then takes its own task back if nobody claimed it (KE-41).
//!
//! `force_close`: `forced` is set first, then all of `close`, with every dispatch told to stop. Then each seat in turn is
//! borrowed, as soon as its occupant is in user code or asleep, and everything that waits on it is dropped on the calling
//! thread. A handler that is running finishes its step; its thread finds nothing to start and ends.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::contain::contain;
use crate::cx::Cx;
use crate::lanes::Shut;
use crate::shared::{Lifetime, Shared};
use crate::sync::{Arc, Ordering, PoisonError, fence, lock, yield_now};
use crate::worker::{self, Job, Worker};

/// The threads of an executor.
#[derive(Default)]
pub(crate) struct Threads {
    /// Threads that run, spares and the monitor among them.
    pub(crate) live: usize,
    /// Seats whose occupant has not ended.
    pub(crate) seats: usize,
    /// The monitor was started, or could not be.
    pub(crate) monitored: bool,
    /// No thread is started any more.
    pub(crate) closed: bool,
    /// Workers whose thread could not be started, and why.
    pub(crate) unstartable: HashMap<usize, String>,
    /// Who waits for the end, and the number that names it.
    waiters: Vec<(u64, Waker)>,
    next_waiter: u64,
}

impl Threads {
    fn have_ended(&self) -> bool {
        self.closed && self.live == 0
    }
}

impl Shared {
    /// See the header.
    pub(crate) fn close(&self) {
        self.close_as(Shut::Close);
    }

    fn close_as(&self, how: Shut) {
        if self.lifetime == Lifetime::Process {
            return;
        }
        if self.closed.swap(true, Ordering::AcqRel) && how == Shut::Close {
            return;
        }
        let no_seat_left = {
            let mut threads = lock(&self.threads);
            threads.closed = true;
            threads.seats == 0
        };
        if no_seat_left {
            self.rescue.end();
        }
        for dispatch in self.dispatches() {
            // Waiting submitters are woken in there. Whatever they do, the others' doors are shut too.
            if let Err(panic) = contain(|| dispatch.shut(how)) {
                tracing::error!(panic, "shutting a dispatch panicked");
            }
        }
        self.draining.swap(true, Ordering::AcqRel);
        self.notify_all();
        self.tell_if_ended();
    }

    /// See the header.
    pub(crate) fn force_close(self: &Arc<Self>) {
        if self.lifetime == Lifetime::Process || self.forced.swap(true, Ordering::AcqRel) {
            return;
        }
        self.close_as(Shut::Force);
        let mut discarded = 0;
        for worker in &self.workers {
            // A call from a worker's own code between two pieces of user code (a key's comparison, say) finds that seat
            // owned by itself: it drops what waits there as soon as this call returned.
            if worker.is_running() && !worker::owns(worker) {
                discarded += Self::discard_on(worker);
            }
        }
        if discarded > 0 {
            tracing::warn!(
                discarded,
                executor = self.config.name,
                "queued tasks were dropped by a forced close"
            );
        }
        self.notify_all();
    }

    /// Borrows a seat as soon as it can be had and drops what waits on it.
    fn discard_on(worker: &Arc<Worker>) -> usize {
        // The call comes from a key's `Debug` inside a look at that worker, which drops what waits there after the look.
        if crate::inspect::looks_at(worker) {
            return 0;
        }
        loop {
            if let Some((token, borrowed)) = worker.try_borrow() {
                // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back after the last use.
                let cx = unsafe { Cx::borrower(worker) };
                let discarded = cx.discard_all();
                token.give_back(borrowed);
                return discarded;
            }
            // Owned for microseconds, or borrowed by somebody who does the same.
            yield_now();
        }
    }

    /// Drops what was pushed to a worker whose thread is gone.
    #[cold]
    pub(crate) fn sweep(&self, worker: usize) {
        let _ = Self::discard_on(&self.workers[worker]);
    }

    /// An intake accepts nothing more.
    pub(crate) fn intake_closed(&self) {
        if self.open_intakes.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Pairs with the fences of `notify` after `draining` was set: either this thread sees `draining`, or the
            // workers that are woken then see that no intake is open.
            fence(Ordering::SeqCst);
            if self.draining.load(Ordering::Relaxed) {
                self.notify_all();
            }
        }
    }

    /// Whether nothing can be brought to a worker any more but what is in its queue.
    pub(crate) fn no_more_work(&self) -> bool {
        self.draining.load(Ordering::Acquire) && self.open_intakes.load(Ordering::Acquire) == 0
    }

    fn notify_all(&self) {
        for worker in &self.workers {
            if worker.is_running() {
                let _ = worker.sleeper().notify();
            }
        }
    }

    /// The last words on a worker's seat, which its thread still owns.
    pub(crate) fn seat_ended(&self, cx: &Cx<'_>, panic: Option<String>) {
        let worker = cx.worker;
        // First gone, then the last look at the queue: KE-41.
        worker.sleeper().leave();
        if let Some(panic) = panic {
            tracing::error!(worker = worker.index() + 1, panic, "a worker ended unexpectedly");
            cx.bury_all();
        } else if !self.is_forced() {
            while let Some(job) = worker.jobs().pop() {
                if let Job::Task(task) = job {
                    if let Err(panic) = cx.user(move || task.run()) {
                        tracing::error!(panic, "a task panicked");
                    }
                }
            }
        }
        let _ = cx.discard_all();
        worker.wakes().take(drop);
        cx.leave();
        let no_seat_left = {
            let mut threads = lock(&self.threads);
            threads.seats -= 1;
            threads.closed && threads.seats == 0
        };
        if no_seat_left {
            self.rescue.end();
        }
    }

    /// The last words of a thread.
    pub(crate) fn thread_ended(&self) {
        lock(&self.threads).live -= 1;
        self.tell_if_ended();
    }

    fn tell_if_ended(&self) {
        let waiters = {
            let mut threads = lock(&self.threads);
            if !threads.have_ended() {
                return;
            }
            std::mem::take(&mut threads.waiters)
        };
        self.last_thread.notify_all();
        for (_, waiter) in waiters {
            // The waker is the waiter's own code: what it does must not end this thread's own business.
            if let Err(panic) = contain(|| waiter.wake()) {
                tracing::error!(panic, "waking who waits for the threads' end panicked");
            }
        }
    }

    /// Blocks until the executor is closed and no thread is left.
    pub(crate) fn wait_for_threads(&self) {
        let mut threads = lock(&self.threads);
        while !threads.have_ended() {
            threads = self.last_thread.wait(threads).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Waits until an executor is closed and every worker thread ended:
/// [`KeyedExecutor::terminated`](crate::KeyedExecutor::terminated).
#[must_use = "waiting begins when it is awaited"]
pub struct Terminated {
    shared: Arc<Shared>,
    waiter: Option<u64>,
}

impl std::fmt::Debug for Terminated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminated").finish_non_exhaustive()
    }
}

impl Terminated {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, waiter: None }
    }
}

impl Future for Terminated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Cloning and dropping a waker is the user's code: neither happens under the lock.
        let waker = cx.waker().clone();
        let this = &mut *self;
        let replaced = {
            let mut threads = lock(&this.shared.threads);
            if threads.have_ended() {
                this.waiter = None;
                return Poll::Ready(());
            }
            let known =
                this.waiter.and_then(|waiter| threads.waiters.iter_mut().find(|(id, _)| *id == waiter));
            if let Some((_, known)) = known {
                Some(std::mem::replace(known, waker))
            } else {
                let waiter = threads.next_waiter;
                threads.next_waiter += 1;
                threads.waiters.push((waiter, waker));
                this.waiter = Some(waiter);
                None
            }
        };
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Terminated {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter else { return };
        let removed = {
            let mut threads = lock(&self.shared.threads);
            let at = threads.waiters.iter().position(|(id, _)| *id == waiter);
            at.map(|at| threads.waiters.swap_remove(at))
        };
        drop(removed);
    }
}
