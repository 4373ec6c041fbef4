//! Permits coming back: how a worker that finished messages wakes whoever waits for room, and no sooner than it pays.
//!
//! `returned` counts every message given back, after its completion was published. A waiter reads the completions,
//! finds too little, registers and lowers the marks, puts a fence, and reads `returned` again; a worker adds to
//! `returned`, puts a fence, and reads a mark. One of the two sees the other. Wakers run outside the waiters' lock.
//!
//! Two marks, because a wake costs two hundred cheap messages: a worker with more to do wakes at half a window free, a
//! worker that runs dry at one batch (window/16). Waiting for everything (`drained`) has no such slack.

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests;

use std::task::Waker;

use crossbeam_utils::CachePadded;

use crate::contain::{contain, drop_contained};
use crate::sync::{AtomicU64, Mutex, Ordering, fence, lock};

const NEVER: u64 = u64::MAX;

/// What a waiter waits for, as a value of `returned`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Woken by any worker from here on.
    pub(crate) busy: u64,
    /// Woken by a worker that ran dry from here on.
    pub(crate) dry: u64,
    /// What `returned` was when the waiter found no permit free; None for one that takes no permit.
    pub(crate) empty_at: Option<u64>,
}

impl Need {
    /// That of a submitter which found no permit free with so many messages given back: half a window of them, or a batch from
    /// a worker that runs dry.
    pub(crate) fn permit(returned: u64, window: usize, batch: usize) -> Self {
        let half = half(window);
        Self { busy: returned + half, dry: returned + (batch as u64).min(half), empty_at: Some(returned) }
    }

    /// That of who looks after others: anything that comes back, from a worker that goes on half a window of it.
    pub(crate) fn anything(returned: u64, window: usize) -> Self {
        Self { busy: returned + half(window), dry: returned + 1, empty_at: None }
    }

    /// That of who waits until all of so many messages came back.
    pub(crate) fn all(accepted: u64) -> Self {
        Self { busy: accepted, dry: accepted, empty_at: None }
    }
}

/// Half of a window, as many messages as a wake-up is worth.
fn half(window: usize) -> u64 {
    (window / 2).max(1) as u64
}

/// Wakes one waiter; whatever its waker does, the others get their wake-up too.
pub(crate) fn wake_contained(waker: Waker) {
    if let Err(panic) = contain(|| waker.wake()) {
        tracing::error!(panic, "waking a waiter panicked");
    }
}

/// Names a registered waiter.
pub(crate) type Ticket = u64;

struct Waiter {
    ticket: Ticket,
    need: Need,
    waker: Waker,
}

/// The permits of one dispatch or keyspace on their way back.
pub(crate) struct Credit {
    returned: CachePadded<AtomicU64>,
    wake_busy: CachePadded<AtomicU64>,
    wake_dry: AtomicU64,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    /// In the order of their tickets.
    queue: Vec<Waiter>,
    /// Room for the wakers of one wake-up, kept so that waking allocates nothing in steady state.
    room: Vec<Waker>,
}

/// Whether a check woke somebody.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woke {
    /// Nobody was due.
    Nobody,
    /// At least one waiter, who will look at what came back.
    Some,
}

/// What a worker is about to do after it gave permits back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It has more to do.
    Busy,
    /// It runs dry.
    Dry,
}

impl Credit {
    pub(crate) fn new() -> Self {
        Self {
            returned: CachePadded::new(AtomicU64::new(0)),
            wake_busy: CachePadded::new(AtomicU64::new(NEVER)),
            wake_dry: AtomicU64::new(NEVER),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Every message given back so far.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    /// Gives `count` permits back; their completions were published before.
    pub(crate) fn give(&self, count: u64, then: Then) -> Woke {
        // Release: a waiter that reads this count (Acquire) sees the completions behind it.
        self.returned.fetch_add(count, Ordering::AcqRel);
        self.check(then)
    }

    /// Wakes who can go on. A worker that runs dry calls it even with nothing to give: a waiter may have come since.
    pub(crate) fn check(&self, then: Then) -> Woke {
        // Pairs with the fence in `register`.
        fence(Ordering::SeqCst);
        let mark = match then {
            Then::Busy => &*self.wake_busy,
            Then::Dry => &self.wake_dry,
        };
        if self.returned.load(Ordering::Relaxed) >= mark.load(Ordering::Relaxed) {
            return self.wake(then);
        }
        Woke::Nobody
    }

    #[cold]
    fn wake(&self, then: Then) -> Woke {
        let mut due = {
            let mut guard = lock(&self.waiters);
            let waiters = &mut *guard;
            let mut due = std::mem::take(&mut waiters.room);
            let returned = self.returned.load(Ordering::Acquire);
            // No more of them than there are permits: a woken waiter takes one, and passes the wake on if it can.
            let empty_at = waiters.queue.iter().filter_map(|waiter| waiter.need.empty_at).max();
            let mut permits = empty_at.map_or(0, |empty_at| returned.saturating_sub(empty_at));
            let mut at = 0;
            while let Some(waiter) = waiters.queue.get(at) {
                let mark = if then == Then::Dry { waiter.need.dry } else { waiter.need.busy };
                let takes = u64::from(waiter.need.empty_at.is_some());
                if returned >= mark && permits >= takes {
                    permits -= takes;
                    due.push(waiters.queue.remove(at).waker);
                } else {
                    at += 1;
                }
            }
            self.measure(waiters);
            due
        };
        let woke = if due.is_empty() { Woke::Nobody } else { Woke::Some };
        for waker in due.drain(..) {
            wake_contained(waker);
        }
        let mut waiters = lock(&self.waiters);
        if waiters.room.capacity() == 0 {
            waiters.room = due;
        }
        woke
    }

    /// Registers a waiter; `returned` as it is afterwards comes back. If that is more than the waiter had counted, it
    /// must look again (and [`forget`](Self::forget) itself if it found enough).
    pub(crate) fn register(&self, ticket: Ticket, need: Need, waker: &Waker) -> u64 {
        // Cloning and dropping a waker is the user's code: neither happens under the lock.
        let waker = waker.clone();
        let replaced;
        {
            let mut waiters = lock(&self.waiters);
            let at = waiters.queue.partition_point(|waiter| waiter.ticket < ticket);
            match waiters.queue.get_mut(at) {
                Some(waiter) if waiter.ticket == ticket => {
                    waiter.need = need;
                    replaced = Some(std::mem::replace(&mut waiter.waker, waker));
                }
                _ => {
                    waiters.queue.insert(at, Waiter { ticket, need, waker });
                    replaced = None;
                }
            }
            // Under the waiters' lock, like every store to a mark. Only lowered here, never measured anew: a mark that
            // is too low costs one look, one that is too high would cost a waiter its wake-up.
            for (mark, need) in [(&*self.wake_busy, need.busy), (&self.wake_dry, need.dry)] {
                mark.store(mark.load(Ordering::Relaxed).min(need), Ordering::Relaxed);
            }
        }
        drop_contained("a waker", replaced);
        // Pairs with the fence in `check`.
        fence(Ordering::SeqCst);
        self.returned()
    }

    /// Takes a waiter off; false if it was woken already or never registered.
    pub(crate) fn forget(&self, ticket: Ticket) -> bool {
        let forgotten = {
            let mut waiters = lock(&self.waiters);
            let at = waiters.queue.binary_search_by_key(&ticket, |waiter| waiter.ticket);
            let forgotten = at.ok().map(|at| waiters.queue.remove(at));
            if waiters.queue.is_empty() {
                self.measure(&waiters);
            }
            forgotten
        };
        let waited = forgotten.is_some();
        drop_contained("a waker", forgotten);
        waited
    }

    /// Wakes every waiter, whatever it needs: the door was closed.
    pub(crate) fn wake_all(&self) {
        let all = {
            let mut waiters = lock(&self.waiters);
            let all = std::mem::take(&mut waiters.queue);
            self.measure(&waiters);
            all
        };
        for waiter in all {
            wake_contained(waiter.waker);
        }
    }

    /// Sets the marks to what the queue needs now.
    fn measure(&self, waiters: &Waiters) {
        let busy = waiters.queue.iter().map(|waiter| waiter.need.busy).min().unwrap_or(NEVER);
        let dry = waiters.queue.iter().map(|waiter| waiter.need.dry).min().unwrap_or(NEVER);
        self.wake_busy.store(busy, Ordering::Relaxed);
        self.wake_dry.store(dry, Ordering::Relaxed);
    }
}
