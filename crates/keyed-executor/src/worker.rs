//! One worker, as others see it: who is on its seat, what was brought for it, and how it is doing.
//!
//! It owns the seat's cell and hands it out to whoever has the token (`seat/README.md`); everything else of it is made
//! for sharing. A worker outlives the threads that are on it. It does nothing by itself: a thread's time on it is
//! `worker/stay.rs`, what the thread does there `worker/rounds.rs`, when it does it `worker/pace.rs`, and how it sleeps
//! `sleep.rs`.

mod pace;
mod rounds;
mod stay;

pub(crate) use rounds::has_news;
pub(crate) use stay::{Entry, Left, current, occupy, on_worker, owns};

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::lanes::Lanes;
use crate::metrics::WorkerCounters;
use crate::placement::SHORT_NS;
use crate::seat::Seat;
use crate::seat::token::{Borrowed, Token};
use crate::sleep::Sleeper;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, OnceLock, Ordering, SegQueue, UnsafeCell};
use crate::task::Task;
use crate::time::Clock;
use crate::wake::WakeStack;

/// Work for one worker that is not a message.
pub(crate) enum Job {
    /// A task with affinity.
    Task(Arc<dyn Task>),
    /// A dispatch that will have messages here.
    Attach(Arc<dyn Lanes>),
    /// A thread that lost this seat left an outcome with the dispatch.
    HandedIn(Arc<dyn Lanes>),
}

/// One worker, as others see it.
pub(crate) struct Worker {
    index: usize,
    tokens: Arc<[CachePadded<Token>]>,
    /// Whose word says who may touch the seat.
    occupant: AtomicUsize,
    sleeper: CachePadded<Sleeper>,
    wakes: CachePadded<WakeStack>,
    jobs: SegQueue<Job>,
    started: AtomicBool,
    /// The word of a piece of user code that somebody else saw for long: the monitor need not see it twice.
    suspect: AtomicU64,
    watched_by: OnceLock<(Arc<Sleeper>, u64)>,
    /// Estimated nanoseconds of ready work at the end of the last round.
    backlog: CachePadded<AtomicU64>,
    counters: WorkerCounters,
    clock: Clock,
    seat: UnsafeCell<Seat>,
}

// SAFETY: rule 1 of seat/README.md: the seat is touched by the owner of the token only; everything else is made for
// sharing.
unsafe impl Send for Worker {}
// SAFETY: as above.
unsafe impl Sync for Worker {}

impl Worker {
    pub(crate) fn new(index: usize, tokens: Arc<[CachePadded<Token>]>) -> Arc<Self> {
        Arc::new(Self {
            index,
            tokens,
            occupant: AtomicUsize::new(index),
            sleeper: CachePadded::new(Sleeper::new()),
            wakes: CachePadded::new(WakeStack::new()),
            jobs: SegQueue::new(),
            started: AtomicBool::new(false),
            suspect: AtomicU64::new(0),
            watched_by: OnceLock::new(),
            backlog: CachePadded::new(AtomicU64::new(0)),
            counters: WorkerCounters::default(),
            clock: Clock::default(),
            seat: UnsafeCell::new(Seat::default()),
        })
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The word of the thread that occupies the seat now, as a hint.
    pub(crate) fn token(&self) -> &Token {
        self.token_of(self.occupant.load(Ordering::Acquire))
    }

    /// The thread that occupies the seat, for a caller that borrowed it.
    pub(crate) fn occupant(&self) -> usize {
        self.occupant.load(Ordering::Acquire)
    }

    /// The word of a thread.
    pub(crate) fn token_of(&self, thread: usize) -> &Token {
        &self.tokens[thread]
    }

    /// Borrows the seat if its occupant is not on it.
    pub(crate) fn try_borrow(&self) -> Option<(&Token, Borrowed)> {
        let occupant = self.occupant.load(Ordering::Acquire);
        let token = self.token_of(occupant);
        let borrowed = token.try_borrow()?;
        // The thread may have lost this seat meanwhile and be on another one. It cannot while its word is borrowed; and
        // if it did before, its successor was written before its word said so, which the borrow has acquired.
        if self.occupant.load(Ordering::Acquire) == occupant {
            return Some((token, borrowed));
        }
        token.give_back(borrowed);
        None
    }

    /// The seat has another occupant from here on. The caller has borrowed it and will take it from the thread before.
    pub(crate) fn set_occupant(&self, thread: usize) {
        self.occupant.store(thread, Ordering::Release);
    }

    /// Says who looks after this worker, and how long a piece of user code may hold its thread before that one has to.
    pub(crate) fn watched_by(&self, monitor: Arc<Sleeper>, after: Duration) {
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let _ = self.watched_by.set((monitor, after));
    }

    /// Somebody saw the same piece of user code for so long: the monitor need not wait for its next look.
    pub(crate) fn seen_inside(&self, word: u64, for_ns: u64) {
        if let Some((monitor, after)) = self.watched_by.get() {
            // Relaxed: the monitor is woken behind it, and compares it with the word. Once for each piece of code.
            if for_ns >= *after && self.suspect.swap(word, Ordering::Relaxed) != word {
                monitor.interrupt();
            }
        }
    }

    /// Whether somebody saw this piece of user code for long.
    pub(crate) fn is_suspect(&self, word: u64) -> bool {
        self.suspect.load(Ordering::Relaxed) == word
    }

    pub(crate) fn sleeper(&self) -> &Sleeper {
        &self.sleeper
    }

    pub(crate) fn wakes(&self) -> &WakeStack {
        &self.wakes
    }

    pub(crate) fn jobs(&self) -> &SegQueue<Job> {
        &self.jobs
    }

    pub(crate) fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// When its thread last looked at the clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether its thread was started and is not gone.
    pub(crate) fn is_running(&self) -> bool {
        self.started.load(Ordering::Acquire) && !self.sleeper.is_gone()
    }

    pub(crate) fn mark_started(&self) {
        self.started.store(true, Ordering::Release);
    }

    /// How long a new key would wait here, in nanoseconds; what was never measured counts as long.
    pub(crate) fn expected_wait(&self, queued: u64, cost: u64) -> u64 {
        if cost == 0 {
            return SHORT_NS.saturating_mul(queued.saturating_add(2));
        }
        queued.saturating_mul(cost).saturating_add(self.backlog.load(Ordering::Relaxed))
    }

    /// Works on the seat.
    ///
    /// # Safety
    /// The caller owns or borrowed the token, and does not call user code or this function inside `access`.
    #[inline]
    pub(crate) unsafe fn with_seat<R>(&self, access: impl FnOnce(&mut Seat) -> R) -> R {
        // SAFETY: rule 1 of seat/README.md, which is this function's contract.
        self.seat.with_mut(|seat| access(unsafe { &mut *seat }))
    }
}
