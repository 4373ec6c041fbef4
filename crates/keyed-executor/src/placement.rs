//! Which worker a new mailbox goes to: the shortest expected wait, and no wake-up that costs more than it saves.
//!
//! In this order: the lowest running worker with a short expected wait (queued messages times their measured cost, at
//! most [`SHORT_NS`], and not stuck inside one handler); else a worker that sleeps or was never started, from a
//! rotating start; else the least backlog. Lowest first, because rotating over running workers keeps all of them warm
//! for nothing; rotating over sleepers, because two keys that arrive with all workers parked want two workers (KE-22).
//!
//! Before all of that, where messages are dear (over [`DEAR_NS`]): the worker that the key's hash names, if it is awake and its
//! wait at most [`AHEAD_NS`] over the shortest. It most likely had the key before, and what the handler keeps of a key then lies in
//! the cache of its core (docs/adr/0010). Cheap messages stay on as few workers as can keep up, whatever their keys.
//!
//! A cost that was never measured counts as long, and what holds such a worker is known at the first look. What other
//! workers wrote is re-read rarely: a choice for a running worker is good for a few more keys. The mailbox keeps its worker
//! for its whole life (KE-20).

use crate::seat::inside::Inside;
use crate::sync::Arc;
use crate::time::nanos;
use crate::worker::Worker;

/// An expected wait up to this is not worth waking somebody for: it takes several microseconds of the waker and tens
/// until the sleeper runs, and with fewer cores than runnable threads everybody pays for one more (docs/adr/0004).
pub(crate) const SHORT_NS: u64 = 40_000;
/// A worker that is inside one piece of user code for longer than a wake-up takes is not a short wait.
const STUCK_NS: u64 = 7_000;
/// From this cost on keys keep to their workers: below it another core costs more than a cold line of memory.
const DEAR_NS: u64 = 1_000;
/// How much longer than the shortest the wait of a key's own worker may be.
const AHEAD_NS: u64 = 80_000;
/// The most keys placed on one look at a worker.
const KEYS_A_LOOK: u64 = 16;

/// How many keys fit into so much time, by one look at most.
fn keys_within(nanos: u64, cost: u64) -> u32 {
    nanos.checked_div(cost).unwrap_or(0).min(KEYS_A_LOOK) as u32
}

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

/// What an intake remembers of a worker.
#[derive(Clone, Copy, Default)]
struct Known {
    inside: Inside,
    /// Its expected wait at the last look; None if it was not awake.
    wait: Option<u64>,
    /// What a message cost there when it was last looked at, 0 if that is unknown.
    cost: u64,
    /// How many more of its own keys go to it by that look.
    own_keys: u32,
}

/// What is added to the wait of a worker that is inside one piece of user code for so long.
pub(crate) fn penalty(stuck: u64) -> u64 {
    // Its queue may be short and its cost small: it still is not a short wait, and the longer the less.
    if stuck > STUCK_NS { stuck.saturating_add(SHORT_NS) } else { 0 }
}

/// What an intake remembers about where keys went.
pub(crate) struct Placement {
    current: u32,
    left: u32,
    start: u32,
    /// Whether the last look left room for keys on workers of their own.
    has_own_keys: bool,
    known: Box<[Known]>,
}

impl Placement {
    /// `start` spreads the first keys of different intakes.
    pub(crate) fn new(workers: usize, start: usize) -> Self {
        let known = vec![Known::default(); workers].into_boxed_slice();
        Self { current: 0, left: 0, start: start as u32, has_own_keys: false, known }
    }

    /// The worker for a new mailbox of a key with this hash; None if every worker is gone or `start` refused it.
    ///
    /// `view` says what is queued on a worker's lane, `start` starts a worker's thread if it has none.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        hash: u64,
        workers: &[Arc<Worker>],
        view: impl Fn(usize) -> LaneView,
        start: impl Fn(&Arc<Worker>) -> bool,
    ) -> Option<usize> {
        let current = self.current as usize;
        if self.left > 0 && !workers[current].sleeper().is_gone() {
            self.left -= 1;
            return Some(current);
        }
        self.choose_anew(hash, workers, view, start)
    }

    #[inline(never)]
    fn choose_anew(
        &mut self,
        hash: u64,
        workers: &[Arc<Worker>],
        view: impl Fn(usize) -> LaneView,
        start: impl Fn(&Arc<Worker>) -> bool,
    ) -> Option<usize> {
        self.own_worker(hash, workers).or_else(|| self.look(hash, workers, view, start))
    }

    /// The worker that a hash names, if the last look left room on it for keys of its own.
    fn own_worker(&mut self, hash: u64, workers: &[Arc<Worker>]) -> Option<usize> {
        let own = ((u128::from(hash) * workers.len() as u128) >> u64::BITS) as usize;
        let own_keys = &mut self.known[own].own_keys;
        if !self.has_own_keys
            || *own_keys == 0
            || !workers[own].is_running()
            || workers[own].sleeper().sleeps()
        {
            return None;
        }
        *own_keys -= 1;
        Some(own)
    }

    fn look(
        &mut self,
        hash: u64,
        workers: &[Arc<Worker>],
        view: impl Fn(usize) -> LaneView,
        start: impl Fn(&Arc<Worker>) -> bool,
    ) -> Option<usize> {
        self.left = 0;
        self.has_own_keys = false;
        let mut short: Option<usize> = None;
        let mut least: Option<(u64, usize)> = None;
        let mut all_awake = true;
        for (index, worker) in workers.iter().enumerate() {
            self.known[index].wait = None;
            if !worker.is_running() || worker.sleeper().sleeps() {
                all_awake &= worker.sleeper().is_gone();
                continue;
            }
            let LaneView { queued, cost, worker: doing } = view(index);
            let wait = if doing == Doing::Looking && queued == 0 {
                // Nothing to wait for; but a message that costs much would hold up the source behind it.
                if cost <= SHORT_NS { 0 } else { cost }
            } else {
                worker.expected_wait(queued, cost).saturating_add(self.stuck_for(index, worker, cost))
            };
            (self.known[index].wait, self.known[index].cost) = (Some(wait), cost);
            if wait <= SHORT_NS && short.is_none() {
                short = Some(index);
                if cost <= DEAR_NS {
                    return Some(self.settle_on(index, wait, cost));
                }
            }
            if least.is_none_or(|(shortest, _)| wait < shortest) {
                least = Some((wait, index));
            }
        }
        // With long waits only, one that sleeps is woken.
        if let Some((shortest, _)) = least {
            // Whoever knows: one that rarely has a message rarely measures.
            let costs = self.known.iter().map(|known| known.cost).filter(|cost| *cost > 0);
            if (all_awake || short.is_some()) && costs.min().is_some_and(|cost| cost > DEAR_NS) {
                self.share_out(shortest);
            }
        }
        if let Some(own) = self.own_worker(hash, workers) {
            return Some(own);
        }
        if let Some(index) = short {
            let Known { wait, cost, .. } = self.known[index];
            let index = self.settle_on(index, wait.unwrap_or(0), cost);
            if self.has_own_keys {
                // The next key may have a worker of its own.
                self.left = 0;
            }
            return Some(index);
        }
        if let Some(index) = self.rouse(workers, start) {
            return Some(index);
        }
        // A worker that slept at the first look and was awake at the second one is in neither list.
        least.map(|(_, index)| index).or_else(|| workers.iter().position(|worker| worker.is_running()))
    }

    /// One that sleeps or was never started, from a rotating start.
    fn rouse(&mut self, workers: &[Arc<Worker>], start: impl Fn(&Arc<Worker>) -> bool) -> Option<usize> {
        let n = workers.len();
        for offset in 0..n {
            let index = (self.start as usize + offset) % n;
            let worker = &workers[index];
            if (!worker.is_running() || worker.sleeper().sleeps())
                && !worker.sleeper().is_gone()
                && start(worker)
            {
                self.start = ((index + 1) % n) as u32;
                return Some(index);
            }
        }
        None
    }

    /// Takes a worker with a short wait, for as many more keys as keep it short.
    fn settle_on(&mut self, index: usize, wait: u64, cost: u64) -> usize {
        self.current = index as u32;
        self.left = keys_within(SHORT_NS - wait, cost);
        index
    }

    /// Leaves room for keys of their own on the workers that were found, where messages are dear.
    fn share_out(&mut self, shortest: u64) {
        for known in &mut self.known {
            let room = known.wait.map_or(0, |wait| shortest.saturating_add(AHEAD_NS).saturating_sub(wait));
            known.own_keys = keys_within(room, known.cost);
            self.has_own_keys |= known.own_keys > 0;
        }
    }

    /// A penalty that makes a worker long which holds its thread inside one piece of user code, the same as at an earlier look.
    ///
    /// Where a message's cost was never measured the first look is enough: the clock is read then at the start of each round,
    /// so that piece is at most as old as the reading.
    fn stuck_for(&mut self, index: usize, worker: &Worker, cost: u64) -> u64 {
        let inside = &mut self.known[index].inside;
        let Some(word) = worker.token().lent() else {
            inside.forget();
            return 0;
        };
        let now = nanos();
        let mut stuck = 0;
        if let Some(same) = inside.in_the_same(word, now) {
            stuck = same;
            worker.seen_inside(word, stuck);
        }
        if cost == 0 {
            stuck = stuck.max(now.saturating_sub(worker.clock().last()));
        }
        penalty(stuck)
    }
}
