//! One worker: what others see of it, and its thread's loop.
//!
//! The loop takes tasks, wakes and lanes in turn, each bounded, and sleeps when all of them are dry. What a lane does
//! in its round is `turn.rs` and `source.rs`; how a worker sleeps is `sleep.rs`; who may touch the seat is
//! `seat/README.md`.

use std::cell::RefCell;

use crossbeam_utils::CachePadded;

use crate::contain::contain;
use crate::executor::Guard;
use crate::lanes::{Lanes, Round};
use crate::metrics::WorkerCounters;
use crate::placement::SHORT_NS;
use crate::seat::Seat;
use crate::seat::token::Token;
use crate::shared::Shared;
use crate::sleep::Sleeper;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, SegQueue, UnsafeCell, Weak, local, spin_hint};
use crate::task::Task;
use crate::time::nanos;
use crate::wake::WakeStack;

/// Tasks run before the lanes get their turn.
const TASKS_A_ROUND: usize = 16;
/// A worker that is always busy gives back what is finished at least once in so many rounds.
const BUSY_ROUNDS: u32 = 16;
/// Polls of an empty worker between two looks at the clock while it spins.
const POLLS_A_LOOK: u32 = 32;

local! {
    /// The executor whose worker this thread is.
    static CURRENT: RefCell<Option<Weak<Guard>>> = RefCell::new(None);
}

/// The executor whose worker this thread is; an executor whose last handle was dropped is none any more.
pub(crate) fn current() -> Option<Arc<Guard>> {
    CURRENT.with(|current| current.borrow().as_ref().and_then(Weak::upgrade))
}

/// Whether this thread is a worker of some executor.
pub(crate) fn on_worker() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Work for one worker that is not a message.
pub(crate) enum Job {
    /// A task with affinity.
    Task(Arc<dyn Task>),
    /// A dispatch that will have messages here.
    Attach(Arc<dyn Lanes>),
}

/// One worker, as others see it.
pub(crate) struct Worker {
    index: usize,
    token: CachePadded<Token>,
    sleeper: CachePadded<Sleeper>,
    wakes: CachePadded<WakeStack>,
    jobs: SegQueue<Job>,
    started: AtomicBool,
    /// Estimated nanoseconds of ready work at the end of the last round.
    backlog: CachePadded<AtomicU64>,
    counters: WorkerCounters,
    seat: UnsafeCell<Seat>,
}

// SAFETY: rule 1 of seat/README.md: the seat is touched by the owner of the token only; everything else is made for
// sharing.
unsafe impl Send for Worker {}
// SAFETY: as above.
unsafe impl Sync for Worker {}

impl Worker {
    pub(crate) fn new(index: usize) -> Arc<Self> {
        Arc::new(Self {
            index,
            token: CachePadded::new(Token::new()),
            sleeper: CachePadded::new(Sleeper::new()),
            wakes: CachePadded::new(WakeStack::new()),
            jobs: SegQueue::new(),
            started: AtomicBool::new(false),
            backlog: CachePadded::new(AtomicU64::new(0)),
            counters: WorkerCounters::new(),
            seat: UnsafeCell::new(Seat::default()),
        })
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
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
            return SHORT_NS.saturating_mul(2).saturating_add(queued);
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

/// How the holder of a seat holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is the worker's own thread: user code runs with the seat lent.
    Occupant,
    /// It borrowed the seat: user code runs with the seat borrowed, which keeps everybody else out already.
    Borrower,
}

/// A worker whose seat the caller holds.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub(crate) worker: &'a Arc<Worker>,
    hold: Hold,
}

impl<'a> Cx<'a> {
    /// # Safety
    /// The caller holds the worker's seat, as `hold` says, for as long as the context lives.
    pub(crate) unsafe fn new(worker: &'a Arc<Worker>, hold: Hold) -> Self {
        Self { worker, hold }
    }

    /// Runs user code with the seat lent; a panic comes back as its text.
    #[inline]
    pub(crate) fn user<R>(&self, code: impl FnOnce() -> R) -> Result<R, String> {
        if self.hold == Hold::Borrower {
            return contain(code);
        }
        self.worker.token.lend();
        let result = contain(code);
        self.worker.token.take_back();
        result
    }

    /// Drops something of the user's; a panic in its `Drop` is logged.
    pub(crate) fn drop_user<T>(&self, what: &'static str, value: T) {
        if let Err(panic) = self.user(|| drop(value)) {
            tracing::error!(panic, "dropping {what} panicked");
        }
    }

    /// Takes a dispatch onto the seat.
    pub(crate) fn attach(&self, lanes: Arc<dyn Lanes>) {
        let raw = Arc::clone(&lanes);
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        let attached = unsafe { self.worker.with_seat(|seat| seat.attach(lanes)) };
        // SAFETY: as above.
        unsafe { raw.attached(self, attached) };
    }

    /// The dispatch under a number, to call while it stays attached.
    fn lanes(&self, index: usize) -> Option<*const dyn Lanes> {
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        unsafe { self.worker.with_seat(|seat| seat.get(index).map(Arc::as_ptr)) }
    }

    fn attachments(&self) -> usize {
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        unsafe { self.worker.with_seat(|seat| seat.len()) }
    }

    /// Gives up what the thread of this seat was running when it died of a bug.
    pub(crate) fn bury_all(&self) {
        for index in 0..self.attachments() {
            if let Some(lanes) = self.lanes(index) {
                // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `discard_all`.
                unsafe { (*lanes).bury(self) };
            }
        }
    }

    /// Drops everything that waits on this seat: tasks, messages, suspended futures. What runs is left alone.
    ///
    /// Returns how many tasks were dropped.
    pub(crate) fn discard_all(&self) -> usize {
        let mut discarded = 0;
        loop {
            while let Some(job) = self.worker.jobs.pop() {
                match job {
                    Job::Attach(lanes) => self.attach(lanes),
                    Job::Task(task) => match self.user(|| task.discard()) {
                        Ok(true) => discarded += 1,
                        Ok(false) => {}
                        Err(panic) => {
                            discarded += 1;
                            tracing::error!(panic, "discarding a task panicked");
                        }
                    },
                }
            }
            for index in 0..self.attachments() {
                if let Some(lanes) = self.lanes(index) {
                    // SAFETY: rule 1 of seat/README.md; the seat keeps the dispatch attached: only its own thread
                    // detaches, in `detach_ended`, which is not running while this thread holds the seat.
                    unsafe { (*lanes).discard(self) };
                }
            }
            if self.worker.jobs.is_empty() {
                return discarded;
            }
        }
    }
}

/// The body of a worker's thread.
pub(crate) fn run(shared: &Arc<Shared>, worker: &Arc<Worker>) {
    CURRENT.with(|current| *current.borrow_mut() = Some(shared.guard()));
    worker.sleeper.introduce();
    worker.token.take_back();
    // A panic that gets here is a bug of this crate: everything of the user's is contained.
    let body = || {
        // SAFETY: rule 1 of seat/README.md: `take_back` above made this thread the occupant, and `work` keeps it so.
        let cx = unsafe { Cx::new(worker, Hold::Occupant) };
        work(shared, &cx);
    };
    // In a model such a bug has to end the model, not the worker.
    let died = if cfg!(keyed_loom) {
        body();
        None
    } else {
        contain(body).err()
    };
    shared.worker_ended(worker, died);
    CURRENT.with(|current| *current.borrow_mut() = None);
}

fn work(shared: &Shared, cx: &Cx<'_>) {
    let worker = cx.worker;
    let spin = u64::try_from(shared.config.spin.as_nanos()).unwrap_or(u64::MAX);
    // The first wait of a thread counts as infinitely long (KE-16).
    let mut last_wait = u64::MAX;
    let mut busy_rounds = 0;
    loop {
        let busy = round(shared, cx);
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
            continue;
        }
        worker.sleeper.announce();
        if has_news(cx) {
            worker.sleeper.cancel();
            continue;
        }
        if may_end(shared, cx) {
            worker.sleeper.cancel();
            return;
        }
        worker.counters.parks.add(1);
        worker.token.park();
        worker.sleeper.sleep();
        worker.token.take_back();
        if spin > 0 {
            last_wait = nanos() - ran_dry_at;
        }
    }
}

/// One round over everything; true if there is more.
fn round(shared: &Shared, cx: &Cx<'_>) -> bool {
    let worker = cx.worker;
    let mut busy = run_jobs(shared, cx);
    if !worker.wakes.is_empty() {
        busy = true;
        worker.wakes.take(|cell| {
            // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
            let lanes = unsafe { worker.with_seat(|seat| seat.find(cell.attached()).map(Arc::as_ptr)) };
            if let Some(lanes) = lanes {
                // SAFETY: rule 1; the dispatch stays attached, as in `discard_all`.
                unsafe { (*lanes).wake(cx, cell.entry()) };
            }
        });
    }
    let mut backlog = 0;
    for index in 0..cx.attachments() {
        let Some(lanes) = cx.lanes(index) else { continue };
        // SAFETY: rule 1; the dispatch stays attached until `detach` below.
        match unsafe { (*lanes).round(cx) } {
            Round::Busy { backlog_ns } => {
                busy = true;
                backlog += backlog_ns;
            }
            Round::Dry => {}
            Round::Ended => {
                // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
                let ended = unsafe { worker.with_seat(|seat| seat.detach(index)) };
                cx.drop_user("a dispatch that ended", ended);
            }
        }
    }
    if worker.backlog.load(Ordering::Relaxed) != backlog {
        worker.backlog.store(backlog, Ordering::Relaxed);
    }
    busy
}

/// Gives back what is finished; true if that brought new work.
fn settle(cx: &Cx<'_>) -> bool {
    let mut busy = false;
    for index in 0..cx.attachments() {
        if let Some(lanes) = cx.lanes(index) {
            // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `round`.
            busy |= unsafe { (*lanes).settle(cx) };
        }
    }
    busy
}

fn run_jobs(shared: &Shared, cx: &Cx<'_>) -> bool {
    for ran in 0..TASKS_A_ROUND {
        match cx.worker.jobs.pop() {
            None => return ran > 0,
            Some(Job::Attach(lanes)) => cx.attach(lanes),
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
            }
        }
    }
    true
}

/// Whether something was brought since the last round, after the worker announced its sleep.
fn has_news(cx: &Cx<'_>) -> bool {
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
    shared.no_more_work()
        && cx.worker.jobs.is_empty()
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        && unsafe { cx.worker.with_seat(|seat| seat.is_empty()) }
}
