//! What an operator sees of a running executor: its live mailboxes, and the age of what is unfinished.
//!
//! A look borrows each worker's seat in turn, for as long as it takes to walk through what lives there, and never waits for
//! one that it cannot have: a worker that was between two pieces of user code at each of [`TRIES`] attempts is named as
//! not seen. It runs no user code but the `Debug` of the keys it tells, contained. What a look finds is `look.rs`.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::time::Duration;

use crate::cx::Cx;
use crate::figures::DispatchMetrics;
use crate::hot::{Gathered, HotKey};
use crate::lanes::Lanes;
use crate::look::Look;
use crate::seat::token::{Borrowed, Token};
use crate::shared::Shared;
use crate::sync::{Arc, local, yield_now};
use crate::time::nanos;
use crate::worker::{Worker, owns};

/// Attempts at borrowing a seat for a look; its occupant owns it for microseconds at a time.
const TRIES: u32 = if cfg!(keyed_loom) { 2 } else { 1_000 };

local! {
    /// The worker that this thread has borrowed for a look.
    static LOOKING: Cell<*const Worker> = Cell::new(ptr::null());
}

/// What a live mailbox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MailboxState {
    /// It has a message to start and stands in its worker's run queue, or its worker has not taken it in yet.
    Ready,
    /// Its worker is inside its handler.
    Running,
    /// Its handler waits for a wake, which holds the key and no worker.
    Waiting,
    /// Its handler was woken and stands in its worker's run queue to be polled.
    Resumed,
    /// A thread that lost its seat to a rescue is still inside its handler.
    Detached,
}

/// A key with unfinished messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxView {
    /// The label of its dispatch or keyspace.
    pub dispatch: String,
    /// The key as its `Debug` writes it, cut to a line of at most 200 bytes.
    pub key: String,
    /// What it does.
    pub state: MailboxState,
    /// Messages of it that are not started.
    pub queued: usize,
    /// For how long its oldest unfinished message has been on its worker, to about a millisecond.
    ///
    /// It may say more than is true, never less: times are taken from what the worker's thread last read of the clock, after
    /// a sleep and at least every 32 messages. For a message that its worker has not taken in, or that runs where its
    /// source yielded it, it is the time since that reading, and nothing on a worker that sleeps: it is being woken.
    pub age: Duration,
    /// The worker it lives on, as in [`ExecutorMetrics::workers`](crate::ExecutorMetrics::workers).
    pub worker: usize,
}

impl fmt::Display for MailboxView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dispatch, key, state, queued, age, worker } = self;
        write!(f, "{dispatch} {key}: {state:?} for {age:.3?}, {queued} queued, worker {worker}")
    }
}

/// The live mailboxes of an executor, a dispatch or a keyspace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// Those whose oldest unfinished message is oldest, the oldest first, at most as many as were asked for.
    pub mailboxes: Vec<MailboxView>,
    /// How many there were.
    pub live: usize,
    /// Workers whose part is missing: they were between two pieces of user code at every attempt.
    pub unseen: Vec<usize>,
}

impl Shared {
    /// Looks at what lives of some dispatches, worker by worker; which workers could not be looked at.
    fn look_at_seats(&self, dispatches: &[Arc<dyn Lanes>], look: &mut Look) -> Vec<usize> {
        let mut unseen = Vec::new();
        for worker in &self.workers {
            if !worker.is_running() {
                continue;
            }
            let seen = look_at(worker, |cx, looked_at| {
                if !worker.is_running() {
                    return;
                }
                (look.worker, look.looked_at, look.now) = (worker.index(), looked_at, nanos());
                for (index, lanes) in dispatches.iter().enumerate() {
                    look.dispatch = index;
                    // SAFETY: rule 1 of seat/README.md: `look_at` gives a context whose seat was borrowed.
                    unsafe { lanes.look(cx, look) };
                }
                look.cut();
                for found in &mut look.found {
                    if found.worker == worker.index() {
                        // SAFETY: as above; the mailbox was found with the seat in hand, which is so still.
                        found.key = Some(unsafe { dispatches[found.dispatch].key_line(cx, found.entry) });
                    }
                }
            });
            if seen.is_none() {
                unseen.push(worker.index());
            }
        }
        unseen
    }

    /// What is counted of some dispatches.
    pub(crate) fn figures(&self, dispatches: &[Arc<dyn Lanes>]) -> Vec<DispatchMetrics> {
        let mut look = Look::new(dispatches.len(), 0);
        self.look_at_seats(dispatches, &mut look);
        let figures = dispatches.iter().zip(look.sums).map(|(lanes, sum)| {
            let mut figures = lanes.figures();
            let most = (figures.window + figures.overflow) as u64;
            figures.in_flight = (figures.in_flight + sum.in_place).min(most);
            figures.oldest_unfinished = sum.oldest.map(Duration::from_nanos);
            figures
        });
        figures.collect()
    }

    /// The hottest keys of some dispatches; what a worker has that cannot be looked at is left out.
    pub(crate) fn hot_keys(&self, dispatches: &[Arc<dyn Lanes>], limit: usize) -> Vec<HotKey> {
        let mut gathered = Gathered::default();
        for worker in &self.workers {
            let _ = look_at(worker, |cx, _| {
                for (index, lanes) in dispatches.iter().enumerate() {
                    // SAFETY: rule 1 of seat/README.md: `look_at` gives a context whose seat was borrowed.
                    unsafe { lanes.hot_keys(cx, index, &mut gathered) };
                }
            });
        }
        gathered.hottest(limit)
    }

    /// The oldest mailboxes of some dispatches.
    pub(crate) fn inspect(&self, dispatches: &[Arc<dyn Lanes>], limit: usize) -> Inspection {
        let mut look = Look::new(dispatches.len(), limit);
        let unseen = self.look_at_seats(dispatches, &mut look);
        look.sort();
        let labels: Vec<&str> = dispatches.iter().map(|lanes| lanes.label()).collect();
        let mailboxes = look.found.into_iter().map(|found| MailboxView {
            dispatch: labels[found.dispatch].to_owned(),
            key: found.key.unwrap_or_default(),
            state: found.state,
            queued: found.queued,
            age: Duration::from_nanos(found.age),
            worker: found.worker,
        });
        Inspection {
            mailboxes: mailboxes.collect(),
            live: look.sums.iter().map(|sum| sum.mailboxes).sum(),
            unseen,
        }
    }
}

/// Borrows a seat for a look at it, which is told since when its thread may not have looked itself; None if its occupant was on it at each of [`TRIES`] attempts, and within another look.
fn look_at<R>(worker: &Arc<Worker>, look: impl FnOnce(&Cx<'_>, u64) -> R) -> Option<R> {
    struct Looking<'a>(&'a Token, Option<Borrowed>);
    impl Drop for Looking<'_> {
        fn drop(&mut self) {
            LOOKING.with(|looking| looking.set(ptr::null()));
            if let Some(borrowed) = self.1.take() {
                self.0.give_back(borrowed);
            }
        }
    }
    if owns(worker) || LOOKING.with(|looking| !looking.get().is_null()) {
        return None;
    }
    for _ in 0..TRIES {
        if let Some((token, borrowed)) = worker.try_borrow() {
            // One that sleeps is woken for whatever comes.
            let looked_at = if borrowed.was_parked() { nanos() } else { worker.clock().last() };
            // Given back also if a bug of ours panics: a worker must not wait for ever.
            let _looking = Looking(token, Some(borrowed));
            LOOKING.with(|looking| looking.set(Arc::as_ptr(worker)));
            // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back after the last use.
            return Some(look(&unsafe { Cx::borrower(worker) }, looked_at));
        }
        // Owned for microseconds, or borrowed by somebody who does the same.
        yield_now();
    }
    None
}

/// Whether this thread is inside a look at a worker, in the `Debug` of one of its keys.
pub(crate) fn looks_at(worker: &Arc<Worker>) -> bool {
    LOOKING.with(|looking| looking.get() == Arc::as_ptr(worker))
}
