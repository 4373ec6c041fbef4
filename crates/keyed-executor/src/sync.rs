//! The loom shim: the one file that names `std::sync`, `std::thread` and `UnsafeCell`.
//!
//! Every word that two threads touch is declared with a type of this module, so that `--cfg keyed_loom` swaps the
//! whole crate onto loom's types without a second copy of any protocol. The cfg is our own (docs/adr/0006) because a
//! RUSTFLAGS cfg reaches every dependency and several of them hide items under `cfg(loom)`.
//!
//! Reference counts (`Arc`, `Weak`), write-once cells and the task queue are not modelled: under loom they stay the
//! real ones or a plain locked queue. What the models check is the crate's own protocols.

#[cfg(not(keyed_loom))]
pub(crate) use real::*;

#[cfg(keyed_loom)]
pub(crate) use modelled::*;

pub(crate) use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// Takes a lock whatever happened to an earlier holder.
///
/// Every critical section of this crate leaves its data consistent at each point where user code could panic, so a
/// poisoned lock carries no information.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition for a time at most; whether the time ran out.
pub(crate) fn wait_for<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    time: std::time::Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, result) = condition.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
    (guard, result.timed_out())
}

#[cfg(not(keyed_loom))]
mod real {
    pub(crate) use crossbeam_queue::SegQueue;
    /// A seed of its own for each dispatch: keys cannot be crafted to collide.
    pub(crate) use foldhash::fast::RandomState as HashSeed;
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread::{Thread, current, park, park_timeout, yield_now};

    /// Starts a named thread; the error is the operating system's.
    pub(crate) fn spawn_named(name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        std::thread::Builder::new().name(name).spawn(body).map(drop)
    }

    /// Tells the processor that this thread polls a word.
    #[inline]
    pub(crate) fn spin_hint() {
        std::hint::spin_loop();
    }

    /// `std::cell::UnsafeCell` with loom's interface: the pointer never outlives the closure.
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[inline]
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
            access(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
            access(self.0.get())
        }
    }

    /// Declares a thread-local with a constant initial value.
    macro_rules! local {
        ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
            std::thread_local! { $(#[$meta])* static $name: $ty = const { $init }; }
        };
    }
    pub(crate) use local;
}

#[cfg(keyed_loom)]
mod modelled {
    /// A model must do the same in each of its executions.
    pub(crate) use foldhash::fast::FixedState as HashSeed;
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::{Thread, current, park, yield_now};

    pub(crate) fn spawn_named(_name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        // The handle is not joined: a model ends only when all its threads did.
        drop(loom::thread::spawn(body));
        Ok(())
    }

    /// Only the monitor parks for a time, and models have none.
    pub(crate) fn park_timeout(_time: std::time::Duration) {
        park();
    }

    pub(crate) fn spin_hint() {
        loom::thread::yield_now();
    }

    /// A queue that is one step for the model: the real one is crossbeam's, which loom cannot see into.
    pub(crate) struct SegQueue<T>(Mutex<std::collections::VecDeque<T>>);

    impl<T> SegQueue<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(std::collections::VecDeque::new()))
        }

        pub(crate) fn push(&self, item: T) {
            super::lock(&self.0).push_back(item);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            super::lock(&self.0).pop_front()
        }

        pub(crate) fn is_empty(&self) -> bool {
            super::lock(&self.0).is_empty()
        }
    }

    macro_rules! local {
        ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
            loom::thread_local! { $(#[$meta])* static $name: $ty = $init; }
        };
    }
    pub(crate) use local;
}
