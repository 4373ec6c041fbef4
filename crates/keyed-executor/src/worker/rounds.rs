//! The rounds of a worker's thread: tasks, wakes and lanes in turn, each bounded, and sleep when all of them are dry.
//!
//! It owns how rounds, the spin and the sleep follow each other; after how many and for how long is `pace.rs`. A thread sleeps
//! only after it announced it and then found nothing, and touches nothing of a seat that it lost. What a lane does in its round
//! is `round.rs` and `source/home.rs`; how a worker sleeps is `sleep.rs`; who may touch the seat is `seat/README.md`.

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests;

use super::pace::{Pace, Polled};
use super::{Job, Left, Worker};
use crate::cx::Cx;
use crate::lanes::Round;
use crate::seat::inside::Inside;
use crate::seat::{Remains, Seat};
use crate::shared::Shared;
use crate::sleep::Offers;
use crate::sync::{Arc, Ordering, spin_hint};
use crate::time::nanos;

/// Tasks run before the lanes get their turn.
const TASKS_A_ROUND: usize = 16;

/// Works on the seat until nothing is left to do on it or another thread has it.
pub(super) fn work(shared: &Shared, cx: &Cx<'_>) -> Left {
    let worker = cx.worker;
    let mut pace = Pace::new(shared.config.spin);
    let mut offers = Offers::default();
    let mut neighbour = Inside::default();
    loop {
        let busy = match round(shared, cx, &mut pace) {
            Did::Lost => return Left::Lost,
            did => did == Did::More,
        };
        if !pace.gives_back(busy) {
            continue;
        }
        if settle(cx) || busy || pace.ran_dry(nanos, || poll(shared, cx)) {
            continue;
        }
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
        glance(shared, worker, &mut neighbour, asleep_at);
        cx.park_while(|| {
            if pace.sleeps_briefly() {
                offers.before_sleep(&worker.sleeper);
            }
            worker.sleeper.sleep();
        });
        let slept = worker.clock.read() - asleep_at;
        worker.counters.asleep.add(slept);
        shared.rescue.watch();
        pace.slept(slept, nanos);
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
fn round(shared: &Shared, cx: &Cx<'_>, pace: &mut Pace) -> Did {
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
    if pace.asks_the_cold(cx.attachments()) {
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

/// Looks for something to do while this thread spins.
fn poll(shared: &Shared, cx: &Cx<'_>) -> Polled {
    if has_news(cx) {
        return Polled::Work;
    }
    if shared.is_closed() {
        return Polled::Closed;
    }
    spin_hint();
    Polled::Nothing
}

/// A look at the next worker, by one that is about to sleep: who is inside the same piece of user code as at an earlier look may hold
/// its thread, and the monitor is told before it would have looked by itself.
fn glance(shared: &Shared, worker: &Worker, neighbour: &mut Inside, now: u64) {
    // A hint only: a model would look at each of its orders for nothing.
    if cfg!(keyed_loom) {
        return;
    }
    let next = &shared.workers[(worker.index() + 1) % shared.workers.len()];
    let Some(word) = next.token().lent() else { return };
    if let Some(for_ns) = neighbour.in_the_same(word, now) {
        next.seen_inside(word, for_ns);
    }
}

/// Whether this thread may end: nothing can be brought any more and nothing is here.
fn may_end(shared: &Shared, cx: &Cx<'_>) -> bool {
    // The last intake that closes is seen (Acquire) before the queue is looked at: its attachments are in there.
    shared.no_more_work() && cx.worker.jobs.is_empty() && cx.seat(|seat| seat.is_empty())
}
