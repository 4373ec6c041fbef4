//! One worker: what others see of it, and its thread's loop.
//!
//! The loop takes tasks, wakes and lanes in turn, each bounded, and sleeps when all of them are dry. What a lane does
//! in its round is `turn.rs` and `source.rs`; how a worker sleeps is `sleep.rs`; who may touch the seat is
//! `seat/README.md`.

use std::cell::RefCell;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::contain::contain;
use crate::cx::Cx;
use crate::executor::Guard;
use crate::lanes::{Lanes, Round};
use crate::metrics::WorkerCounters;
use crate::placement::SHORT_NS;
use crate::seat::token::{Back, Borrowed, Token};
use crate::seat::{Remains, Seat};
use crate::shared::Shared;
use crate::sleep::Sleeper;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, OnceLock, Ordering, SegQueue, UnsafeCell, Weak, local, spin_hint,
};
use crate::task::Task;
use crate::time::{Clock, nanos};
use crate::wake::WakeStack;

/// Tasks run before the lanes get their turn.
const TASKS_A_ROUND: usize = 16;
/// A worker that is always busy gives back what is finished at least once in so many rounds.
const BUSY_ROUNDS: u32 = 16;
/// With so many cold dispatches every second round asks all of them for news, with twice as many every third.
const COLD_A_ROUND: usize = 32;
/// A worker whose last sleep was shorter lets others run before it parks: messages come faster than threads wake.
const BRIEF_NS: u64 = 1_000_000;
/// Polls of an empty worker between two looks at the clock while it spins.
const POLLS_A_LOOK: u32 = 32;

local! {
    /// The executor whose worker this thread is.
    static CURRENT: RefCell<Option<Current>> = RefCell::new(None);
}

/// What a worker's thread knows of itself.
struct Current {
    executor: Weak<Guard>,
    worker: Arc<Worker>,
    thread: usize,
}

/// The executor whose worker this thread is; an executor whose last handle was dropped is none any more.
pub(crate) fn current() -> Option<Arc<Guard>> {
    CURRENT.with(|current| current.borrow().as_ref().and_then(|current| current.executor.upgrade()))
}

/// Whether this thread is a worker of some executor.
pub(crate) fn on_worker() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Whether this thread is on a worker's seat and owns it right now.
pub(crate) fn owns(worker: &Arc<Worker>) -> bool {
    CURRENT.with(|current| {
        current.borrow().as_ref().is_some_and(|current| {
            Arc::ptr_eq(&current.worker, worker) && worker.token_of(current.thread).is_owned()
        })
    })
}

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

/// How a thread's time on a seat ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The executor is closed and nothing is left to do on it.
    Done,
    /// Another thread has it: this one is free.
    Lost,
}

/// How a thread gets onto a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is the seat's first thread.
    First,
    /// The seat was taken for it from under another thread.
    Adopts,
}

/// A thread's time on a worker's seat.
pub(crate) fn occupy(shared: &Arc<Shared>, worker: &Arc<Worker>, thread: usize, entry: Entry) -> Left {
    let current = Current { executor: shared.guard(), worker: Arc::clone(worker), thread };
    CURRENT.with(|known| *known.borrow_mut() = Some(current));
    worker.sleeper.introduce();
    worker.clock.read();
    let token = worker.token_of(thread);
    if entry == Entry::First {
        let back = token.take_back();
        debug_assert_eq!(back, Back::Mine, "a seat that nobody was on yet cannot be lost");
    }
    shared.rescue.watch();
    // SAFETY: rule 1 of seat/README.md: this thread owns its token, taken back above or given to it with the seat.
    let cx = unsafe { Cx::occupant(worker, token) };
    // A panic that gets out of `work` is a bug of this crate: everything of the user's is contained.
    let body = || {
        if entry == Entry::Adopts {
            cx.adopt();
        }
        work(shared, &cx)
    };
    // In a model such a bug has to end the model, not the worker.
    let left = if cfg!(any(keyed_loom, keyed_shuttle)) { Ok(body()) } else { contain(body) };
    if left != Ok(Left::Lost) {
        shared.seat_ended(&cx, left.err());
    }
    CURRENT.with(|current| *current.borrow_mut() = None);
    if token.has_seat() { Left::Done } else { Left::Lost }
}

fn work(shared: &Shared, cx: &Cx<'_>) -> Left {
    let worker = cx.worker;
    let spin = u64::try_from(shared.config.spin.as_nanos()).unwrap_or(u64::MAX);
    // The first wait of a thread counts as infinitely long (KE-16).
    let mut last_wait = u64::MAX;
    let mut last_sleep = u64::MAX;
    let mut busy_rounds = 0;
    let mut rounds_since_scan = usize::MAX;
    loop {
        let busy = match round(shared, cx, &mut rounds_since_scan) {
            Did::Lost => return Left::Lost,
            did => did == Did::More,
        };
        busy_rounds += u32::from(busy);
        if busy && busy_rounds < BUSY_ROUNDS {
            continue;
        }
        busy_rounds = 0;
        if settle(cx) || busy {
            continue;
        }
        let ran_dry_at = if spin > 0 { nanos() } else { 0 };
        if spin > 0 && last_wait < spin && spun_into_work(shared, cx, ran_dry_at, spin) {
            last_wait = nanos() - ran_dry_at;
            rounds_since_scan = usize::MAX;
            continue;
        }
        rounds_since_scan = usize::MAX;
        worker.sleeper.announce();
        if has_news(cx) {
            worker.sleeper.cancel();
            continue;
        }
        if may_end(shared, cx) {
            worker.sleeper.cancel();
            return Left::Done;
        }
        // A notifier that comes from here on finds this worker asleep and wakes it, whatever `rest` still does.
        while let Some(index) = cx.seat(Seat::next_untidy) {
            if let Some(lanes) = cx.lanes(index) {
                // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `round`.
                unsafe { (*lanes).rest(cx) };
            }
        }
        worker.counters.parks.add(1);
        let asleep_at = worker.clock.read();
        cx.park_while(|| {
            if last_sleep < BRIEF_NS {
                worker.sleeper.let_others_run();
            }
            worker.sleeper.sleep();
        });
        last_sleep = worker.clock.read() - asleep_at;
        worker.counters.asleep.add(last_sleep);
        shared.rescue.watch();
        if spin > 0 {
            last_wait = nanos() - ran_dry_at;
        }
    }
}

/// What a round left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    /// There is more.
    More,
    /// Nothing is ready.
    All,
    /// The seat is another thread's: nothing of it may be touched any more.
    Lost,
}

/// One round over everything that is warm; what is cold is asked for news in some of them.
fn round(shared: &Shared, cx: &Cx<'_>, rounds_since_scan: &mut usize) -> Did {
    let worker = cx.worker;
    let mut busy = run_jobs(shared, cx);
    if !worker.wakes.is_empty() {
        busy = true;
        worker.wakes.take(|cell| {
            let lanes = cx.seat(|seat| {
                let lanes = seat.find(cell.attached()).map(Arc::as_ptr)?;
                seat.warm_up(cell.attached().index as usize);
                Some(lanes)
            });
            if let Some(lanes) = lanes {
                // SAFETY: rule 1; the dispatch stays attached, as in `discard_all`.
                unsafe { (*lanes).wake(cx, cell.entry()) };
            }
        });
    }
    // A scan costs a few nanoseconds for each of them, a round some microseconds: a few per cent at most.
    *rounds_since_scan = rounds_since_scan.saturating_add(1);
    if *rounds_since_scan > cx.attachments() / COLD_A_ROUND {
        *rounds_since_scan = 0;
        warm_up_what_has_news(cx);
    }
    let mut backlog = 0;
    let mut position = 0;
    while let Some(index) = cx.seat(|seat| seat.warm_at(position)) {
        let Some(lanes) = cx.lanes(index) else {
            debug_assert!(false, "what is warm is attached");
            position += 1;
            continue;
        };
        // SAFETY: rule 1; the dispatch stays attached until `detach` below.
        match unsafe { (*lanes).round(cx) } {
            Round::Busy { backlog_ns } => {
                busy = true;
                backlog += backlog_ns;
                cx.seat(|seat| seat.had_round(position, Remains::Work));
                position += 1;
            }
            Round::Dry => {
                cx.seat(|seat| seat.had_round(position, Remains::Nothing));
                position += 1;
            }
            Round::Lost => return Did::Lost,
            Round::Ended => {
                let ended = cx.seat(|seat| seat.detach(index));
                cx.drop_user("a dispatch that ended", ended);
            }
        }
    }
    if worker.backlog.load(Ordering::Relaxed) != backlog {
        worker.backlog.store(backlog, Ordering::Relaxed);
    }
    if busy { Did::More } else { Did::All }
}

/// Gives back what is finished; true if that brought new work.
fn settle(cx: &Cx<'_>) -> bool {
    let mut busy = false;
    let mut position = 0;
    while let Some(index) = cx.seat(|seat| seat.warm_at(position)) {
        // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `round`.
        let brought = cx.lanes(index).is_some_and(|lanes| unsafe { (*lanes).settle(cx) });
        busy |= brought;
        if brought || !cx.seat(|seat| seat.cool_down(position)) {
            position += 1;
        }
    }
    busy
}

/// Looks at every dispatch that is cold.
fn warm_up_what_has_news(cx: &Cx<'_>) {
    for index in 0..cx.attachments() {
        if !cx.seat(|seat| seat.is_cold(index)) {
            continue;
        }
        // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `round`.
        if cx.lanes(index).is_some_and(|lanes| unsafe { (*lanes).has_news(cx) }) {
            cx.seat(|seat| seat.warm_up(index));
        }
    }
}

fn run_jobs(shared: &Shared, cx: &Cx<'_>) -> bool {
    for ran in 0..TASKS_A_ROUND {
        match cx.worker.jobs.pop() {
            None => return ran > 0,
            Some(Job::Attach(lanes)) => cx.attach(lanes),
            Some(Job::HandedIn(lanes)) => cx.take_handed_in(&*lanes),
            Some(Job::Task(task)) if shared.is_forced() => {
                if let Err(panic) = cx.user(|| task.discard()) {
                    tracing::error!(panic, "discarding a task panicked");
                }
            }
            Some(Job::Task(task)) => {
                cx.worker.counters.tasks.add(1);
                // The cell is dropped inside as well: by then the closure is gone, but its captures' drops ran there.
                if let Err(panic) = cx.user(move || task.run()) {
                    cx.worker.counters.panics.add(1);
                    tracing::error!(panic, "a task panicked");
                }
                cx.worker.clock.read();
            }
        }
    }
    true
}

/// Whether something was brought since the last round, after the worker announced its sleep.
pub(crate) fn has_news(cx: &Cx<'_>) -> bool {
    let worker = cx.worker;
    if !worker.jobs.is_empty() || !worker.wakes.is_empty() {
        return true;
    }
    (0..cx.attachments()).any(|index| {
        // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `round`.
        cx.lanes(index).is_some_and(|lanes| unsafe { (*lanes).has_news(cx) })
    })
}

/// Polls for up to `spin` nanoseconds; true if there is something to do.
fn spun_into_work(shared: &Shared, cx: &Cx<'_>, since: u64, spin: u64) -> bool {
    loop {
        for _ in 0..POLLS_A_LOOK {
            if has_news(cx) {
                return true;
            }
            if shared.is_closed() {
                return false;
            }
            spin_hint();
        }
        if nanos().saturating_sub(since) >= spin {
            return false;
        }
    }
}

/// Whether this thread may end: nothing can be brought any more and nothing is here.
fn may_end(shared: &Shared, cx: &Cx<'_>) -> bool {
    // The last intake that closes is seen (Acquire) before the queue is looked at: its attachments are in there.
    shared.no_more_work() && cx.worker.jobs.is_empty() && cx.seat(|seat| seat.is_empty())
}
