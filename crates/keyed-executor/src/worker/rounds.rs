//! The rounds of a worker's thread: tasks, wakes and lanes in turn, each bounded, and sleep when all of them are dry.
//!
//! It owns how the bounds of a round, the spin and the sleep follow each other. A thread sleeps only after it announced it
//! and then found nothing, and touches nothing of a seat that it lost. What a lane does in its round is `round.rs` and
//! `source/home.rs`; how a worker sleeps is `sleep.rs`; who may touch the seat is `seat/README.md`.

use super::{Job, Left};
use crate::cx::Cx;
use crate::lanes::Round;
use crate::seat::{Remains, Seat};
use crate::shared::Shared;
use crate::sleep::Offers;
use crate::sync::{Arc, Ordering, spin_hint};
use crate::time::nanos;

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

/// Works on the seat until nothing is left to do on it or another thread has it.
pub(super) fn work(shared: &Shared, cx: &Cx<'_>) -> Left {
    let worker = cx.worker;
    let spin = u64::try_from(shared.config.spin.as_nanos()).unwrap_or(u64::MAX);
    // The first wait of a thread counts as infinitely long (KE-16).
    let mut last_wait = u64::MAX;
    let mut last_sleep = u64::MAX;
    let mut offers = Offers::default();
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
                offers.before_sleep(&worker.sleeper);
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
