//! `DefaultSchedulerSupplier`: a pool of a fixed number of threads for each named aggregate.
//!
//! Owns the cache and the stop. Invariants: one lock serialises every access (LS-5), so a name has one scheduler; the stop
//! takes the cache under that lock, so a scheduler is either stopped with it or was never made; the termination is made
//! once. Pools are stopped outside the lock, because their dispatches drop what is the user's.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;

use crate::error::SupplierStopped;
use crate::named::NamedAggregate;
use crate::pool::Surroundings;
use crate::scheduler::Scheduler;
use crate::supplier::SchedulerSupplier;
use crate::sync::{Arc, Mutex, lock, thread};
use crate::termination::Termination;

/// Caches one [`Scheduler`] per named aggregate, each with its own threads.
///
/// Dropping it stops it gracefully, without waiting.
///
/// ```
/// use std::num::NonZeroU16;
/// use wow_aggregate_scheduler::{DefaultSchedulerSupplier, Ending, NamedAggregate, SchedulerSupplier};
///
/// let supplier = DefaultSchedulerSupplier::new("commands", NonZeroU16::new(2).unwrap());
/// let order = NamedAggregate { context: "shop", aggregate: "order" };
/// let scheduler = supplier.get_or_initialize(order)?;
/// assert_eq!((scheduler.name(), scheduler.parallelism()), ("commands-order", 2));
///
/// assert_eq!(supplier.stop_gracefully().wait()?, Ending::Graceful);
/// assert!(supplier.get_or_initialize(order).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DefaultSchedulerSupplier {
    name: String,
    parallelism: NonZeroU16,
    surroundings: Surroundings,
    state: Mutex<State>,
}

/// Schedulers by context, then by aggregate.
type Cache = BTreeMap<String, BTreeMap<String, Arc<Scheduler>>>;

enum State {
    Open(Cache),
    Stopped { schedulers: Vec<Arc<Scheduler>>, termination: Termination },
}

impl State {
    /// Closes creation: the snapshot and the one termination, and whether this call closed it.
    fn stop(&mut self) -> (Vec<Arc<Scheduler>>, Termination, Closed) {
        match self {
            Self::Stopped { schedulers, termination } => {
                (schedulers.clone(), termination.clone(), Closed::Before)
            }
            Self::Open(cache) => {
                let schedulers: Vec<_> =
                    std::mem::take(cache).into_values().flat_map(BTreeMap::into_values).collect();
                let termination = Termination::of(schedulers.len());
                *self = Self::Stopped { schedulers: schedulers.clone(), termination: termination.clone() };
                (schedulers, termination, Closed::Now)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    Now,
    Before,
}

impl DefaultSchedulerSupplier {
    /// A supplier whose pools have so many threads for handlers each.
    pub fn new(name: impl Into<String>, parallelism: NonZeroU16) -> Self {
        let state = Mutex::new(State::Open(Cache::new()));
        Self { name: name.into(), parallelism, surroundings: Surroundings::default(), state }
    }

    /// A supplier whose pools have one thread for each available processor (LS-3), one where that cannot be told.
    pub fn with_defaults(name: impl Into<String>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let parallelism = u16::try_from(cores).unwrap_or(u16::MAX);
        Self::new(name, NonZeroU16::new(parallelism).unwrap_or(NonZeroU16::MIN))
    }

    /// Every thread of the pools made from here on enters this runtime, so that its timers and I/O work in handlers.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub fn tokio(mut self, handle: tokio::runtime::Handle) -> Self {
        self.surroundings.tokio = Some(handle);
        self
    }

    /// The first part of its threads' names.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The threads for handlers in each pool.
    #[must_use]
    pub fn parallelism(&self) -> NonZeroU16 {
        self.parallelism
    }
}

impl SchedulerSupplier for DefaultSchedulerSupplier {
    fn get_or_initialize(&self, named: NamedAggregate<'_>) -> Result<Arc<Scheduler>, SupplierStopped> {
        let mut state = lock(&self.state);
        let State::Open(cache) = &mut *state else { return Err(SupplierStopped) };
        let known = cache.get(named.context).and_then(|of_context| of_context.get(named.aggregate));
        if let Some(scheduler) = known {
            return Ok(Arc::clone(scheduler));
        }
        let name = format!("{}-{}", self.name, named.aggregate);
        let scheduler = Scheduler::new(&name, self.parallelism, self.surroundings.clone());
        let of_context = cache.entry(named.context.to_owned()).or_default();
        of_context.insert(named.aggregate.to_owned(), Arc::clone(&scheduler));
        Ok(scheduler)
    }

    fn stop_gracefully(&self) -> Termination {
        let (schedulers, termination, closed) = lock(&self.state).stop();
        if closed == Closed::Now {
            for scheduler in schedulers {
                scheduler.stop_gracefully(termination.clone());
            }
        }
        termination
    }

    fn force_stop(&self) {
        let (schedulers, termination, _) = lock(&self.state).stop();
        termination.take_over(|| {
            for scheduler in &schedulers {
                scheduler.force_stop();
            }
        });
    }
}

impl Drop for DefaultSchedulerSupplier {
    fn drop(&mut self) {
        drop(self.stop_gracefully());
    }
}

impl fmt::Debug for DefaultSchedulerSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schedulers, ending) = match &*lock(&self.state) {
            State::Open(cache) => (cache.values().map(BTreeMap::len).sum(), None),
            State::Stopped { schedulers, termination } => (schedulers.len(), Some(termination.ending())),
        };
        f.debug_struct("DefaultSchedulerSupplier")
            .field("name", &self.name)
            .field("parallelism", &self.parallelism)
            .field("schedulers", &schedulers)
            .field("stopped", &ending)
            .finish_non_exhaustive()
    }
}
