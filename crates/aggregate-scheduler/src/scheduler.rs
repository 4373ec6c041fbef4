//! `Scheduler`: the execution pool of one aggregate type, and the dispatches that run on it.
//!
//! Owns its pool and the list of its dispatches. Invariants: a dispatch is either in the list when a stop looks at it, or
//! refused; a graceful stop closes the pool when the list is empty, not before. It is stopped by the supplier that owns
//! it and by nobody else. What a dispatch does is in run.rs.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;

use crate::pool::{Pool, StartError, Surroundings};
use crate::sync::{Arc, Mutex, Weak, lock};
use crate::termination::Termination;
use crate::worker::Worker;

/// What a scheduler and a handle can ask of a dispatch, without its types.
pub(crate) trait Control: Send + Sync {
    /// Takes nothing more from the source; what was accepted goes on.
    fn quiesce(&self);
    /// Drops what waits and cancels what runs, because the pool is closed.
    fn force(&self);
    /// The same, because its user says so.
    fn cancel(&self);
}

/// An execution pool for one named aggregate: neither a thread for each aggregate id nor a lock (LS-1).
///
/// Made by a [`SchedulerSupplier`](crate::SchedulerSupplier); use it with [`Grouped`](crate::Grouped). Its threads are
/// named `<supplier>-<aggregate>-<n>`, n from 1, and `<supplier>-<aggregate>-source` for the one that polls sources.
/// They start with its first dispatch and sleep while there is nothing to do.
pub struct Scheduler {
    pool: Arc<Pool>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    stage: Stage,
    next: u64,
    dispatches: BTreeMap<u64, Weak<dyn Control>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    Draining,
    Forced,
}

impl Scheduler {
    pub(crate) fn new(name: &str, parallelism: NonZeroU16, surroundings: Surroundings) -> Arc<Self> {
        let pool = Pool::new(name, parallelism, surroundings);
        Arc::new(Self { pool, members: Mutex::default() })
    }

    /// The prefix of its threads' names: `<supplier>-<aggregate>`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.pool.name()
    }

    /// How many threads run handlers. A different number from that of [`Groups`](crate::Groups).
    #[must_use]
    pub fn parallelism(&self) -> usize {
        self.pool.parallelism()
    }

    /// The worker for a group that is used for the first time.
    pub(crate) fn next_worker(&self) -> Arc<Worker> {
        self.pool.next_worker()
    }

    pub(crate) fn source_worker(&self) -> Arc<Worker> {
        Arc::clone(self.pool.sources())
    }

    /// Puts a dispatch on the list, and the threads to work.
    pub(crate) fn attach(self: &Arc<Self>, dispatch: Weak<dyn Control>) -> Result<Lease, StartError> {
        let mut members = lock(&self.members);
        if members.stage != Stage::Open {
            return Err(StartError::Closed);
        }
        self.pool.start()?;
        members.next += 1;
        let id = members.next;
        members.dispatches.insert(id, dispatch);
        Ok(Lease { scheduler: Arc::clone(self), id })
    }

    fn detach(&self, id: u64) {
        let close = {
            let mut members = lock(&self.members);
            members.dispatches.remove(&id);
            members.stage == Stage::Draining && members.dispatches.is_empty()
        };
        if close {
            self.pool.close();
        }
    }

    /// Refuses new dispatches, lets the running ones finish what they accepted, then closes the pool.
    pub(crate) fn stop_gracefully(&self, observer: Termination) {
        self.pool.observe(observer);
        for dispatch in self.leave(Stage::Draining) {
            dispatch.quiesce();
        }
        let close = lock(&self.members).dispatches.is_empty();
        if close {
            self.pool.close();
        }
    }

    /// Refuses new dispatches, cancels the running ones and closes the pool; waits for no handler.
    pub(crate) fn force_stop(&self) {
        for dispatch in self.leave(Stage::Forced) {
            dispatch.force();
        }
        self.pool.close();
    }

    fn leave(&self, to: Stage) -> Vec<Arc<dyn Control>> {
        let mut members = lock(&self.members);
        // A force that came in between is final.
        if members.stage != Stage::Forced {
            members.stage = to;
        }
        members.dispatches.values().filter_map(Weak::upgrade).collect()
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stage, dispatches) = {
            let members = lock(&self.members);
            (members.stage, members.dispatches.len())
        };
        f.debug_struct("Scheduler")
            .field("pool", &self.pool)
            .field("stage", &stage)
            .field("dispatches", &dispatches)
            .finish()
    }
}

/// A dispatch's place on the list of a scheduler; keeps the scheduler alive.
pub(crate) struct Lease {
    scheduler: Arc<Scheduler>,
    id: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.scheduler.detach(self.id);
    }
}
