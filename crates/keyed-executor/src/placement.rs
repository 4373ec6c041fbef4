//! Which worker a new mailbox goes to: the shortest expected wait, and no wake-up that costs more than it saves.
//!
//! In this order: the lowest running worker with a short expected wait (queued messages times their measured cost, at
//! most [`SHORT_NS`], and not stuck inside one handler); else a worker that sleeps or was never started, from a
//! rotating start; else the least backlog. Lowest first, because rotating over running workers keeps all of them warm
//! for nothing; rotating over sleepers, because two keys that arrive with all workers parked want two workers (KE-22).
//!
//! A cost that was never measured counts as long, and what holds such a worker is known at the first look. What other
//! workers wrote is re-read rarely: a choice for a running worker is good for a few more keys. The mailbox keeps its worker
//! for its whole life (KE-20).

use crate::sync::Arc;
use crate::time::nanos;
use crate::worker::Worker;

/// An expected wait up to this is not worth waking somebody for: it takes several microseconds of the waker and tens
/// until the sleeper runs, and with fewer cores than runnable threads everybody pays for one more (docs/adr/0004).
pub(crate) const SHORT_NS: u64 = 40_000;
/// A worker that is inside one piece of user code for longer than a wake-up takes is not a short wait.
const STUCK_NS: u64 = 7_000;
/// The most keys placed on one look at a worker.
const KEYS_A_LOOK: u64 = 16;

/// What an intake knows of one worker's lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneView {
    /// Messages pushed and not yet taken.
    pub(crate) queued: u64,
    /// Measured cost of a message in nanoseconds, 0 if unknown.
    pub(crate) cost: u64,
    /// What its worker is doing meanwhile.
    pub(crate) worker: Doing,
}

/// What a worker does while an intake looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Whatever it does: it may be inside its first handler, so an unknown cost counts as long.
    Anything,
    /// It is the one that looks, between two handlers: with nothing queued there is nothing to wait for.
    Looking,
}

/// The piece of user code that a worker was seen in, and since when.
#[derive(Clone, Copy, Default)]
struct Seen {
    word: Option<u64>,
    since: u64,
}

/// What an intake remembers about where keys went.
pub(crate) struct Placement {
    current: usize,
    left: u64,
    start: usize,
    seen: Box<[Seen]>,
}

impl Placement {
    /// `start` spreads the first keys of different intakes.
    pub(crate) fn new(workers: usize, start: usize) -> Self {
        Self { current: 0, left: 0, start, seen: vec![Seen::default(); workers].into_boxed_slice() }
    }

    /// The worker for a new mailbox; None if every worker is gone or `start` refused it.
    ///
    /// `view` says what is queued on a worker's lane, `start` starts a worker's thread if it has none.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        workers: &[Arc<Worker>],
        view: impl Fn(usize) -> LaneView,
        start: impl Fn(&Arc<Worker>) -> bool,
    ) -> Option<usize> {
        if self.left > 0 && !workers[self.current].sleeper().is_gone() {
            self.left -= 1;
            return Some(self.current);
        }
        self.look(workers, view, start)
    }

    #[inline(never)]
    fn look(
        &mut self,
        workers: &[Arc<Worker>],
        view: impl Fn(usize) -> LaneView,
        start: impl Fn(&Arc<Worker>) -> bool,
    ) -> Option<usize> {
        self.left = 0;
        let mut least: Option<(u64, usize)> = None;
        for (index, worker) in workers.iter().enumerate() {
            if !worker.is_running() || worker.sleeper().sleeps() {
                continue;
            }
            let LaneView { queued, cost, worker: doing } = view(index);
            let wait = if doing == Doing::Looking && queued == 0 {
                // Nothing to wait for; but a message that costs much would hold up the source behind it.
                if cost <= SHORT_NS { 0 } else { cost }
            } else {
                worker.expected_wait(queued, cost).saturating_add(self.stuck_for(index, worker, cost))
            };
            if wait <= SHORT_NS {
                self.current = index;
                self.left = (SHORT_NS - wait).checked_div(cost).unwrap_or(0).min(KEYS_A_LOOK);
                return Some(index);
            }
            if least.is_none_or(|(shortest, _)| wait < shortest) {
                least = Some((wait, index));
            }
        }
        let n = workers.len();
        for offset in 0..n {
            let index = (self.start + offset) % n;
            let worker = &workers[index];
            if (!worker.is_running() || worker.sleeper().sleeps())
                && !worker.sleeper().is_gone()
                && start(worker)
            {
                self.start = (index + 1) % n;
                return Some(index);
            }
        }
        // A worker that slept at the first look and was awake at the second one is in neither list.
        least.map(|(_, index)| index).or_else(|| workers.iter().position(|worker| worker.is_running()))
    }

    /// A penalty that makes a worker long which holds its thread inside one piece of user code, the same as at an earlier look.
    ///
    /// Where a message's cost was never measured the first look is enough: the clock is read then at the start of each round,
    /// so that piece is at most as old as the reading.
    fn stuck_for(&mut self, index: usize, worker: &Worker, cost: u64) -> u64 {
        let seen = &mut self.seen[index];
        let Some(word) = worker.token().lent() else {
            seen.word = None;
            return 0;
        };
        let now = nanos();
        let mut stuck = 0;
        if seen.word == Some(word) {
            stuck = now - seen.since;
            worker.seen_inside(word, stuck);
        } else {
            *seen = Seen { word: Some(word), since: now };
        }
        if cost == 0 {
            stuck = stuck.max(now.saturating_sub(worker.clock().last()));
        }
        // Its queue may be short and its cost small: it still is not a short wait, and the longer the less.
        if stuck > STUCK_NS { stuck.saturating_add(SHORT_NS) } else { 0 }
    }
}
