//! The loom and shuttle shim: the one file that names `std::sync`, `std::thread` and `UnsafeCell`.
//!
//! Every word that two threads touch is declared with a type of this module, so that `--cfg keyed_loom` swaps the
//! whole crate onto loom's types, and `--cfg keyed_shuttle` onto shuttle's, without a second copy of any protocol. The
//! cfgs are our own (docs/adr/0006) because a RUSTFLAGS cfg reaches every dependency and several of them hide items
//! under `cfg(loom)`.
//!
//! Reference counts (`Arc`, `Weak`), write-once cells and the task queue are not modelled: under either tool they stay
//! the real ones or a plain locked queue, and so do figures that one thread at a time writes and others are only shown.
//! What the models check is the crate's own protocols.

#[cfg(not(any(keyed_loom, keyed_shuttle)))]
pub(crate) use real::*;

#[cfg(keyed_loom)]
pub(crate) use modelled::*;

#[cfg(keyed_shuttle)]
pub(crate) use shuffled::*;

/// A number that is shown: no protocol rests on what another thread reads of it, so no model looks at it.
pub(crate) use std::sync::atomic::AtomicU64 as Figure;
pub(crate) use std::sync::{Arc, OnceLock, PoisonError, TryLockError, Weak};

/// Takes a lock whatever happened to an earlier holder.
///
/// Every critical section of this crate leaves its data consistent at each point where user code could panic, so a
/// poisoned lock carries no information.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition for a time at most; whether the time ran out.
#[cfg(not(keyed_shuttle))]
pub(crate) fn wait_for<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    time: std::time::Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, result) = condition.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
    (guard, result.timed_out())
}

#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod real {
    pub(crate) use crossbeam_queue::SegQueue;
    /// Where instructions are counted, every run must do the same.
    #[cfg(keyed_counted)]
    pub(crate) use foldhash::fast::FixedState as HashSeed;
    /// A seed of its own for each dispatch (`hash.rs`).
    #[cfg(not(keyed_counted))]
    pub(crate) use foldhash::fast::RandomState as HashSeed;
    pub(crate) use std::hash::RandomState as StrongSeed;
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

    /// Every look at the clock is as much later as a look takes, however slow the counter runs.
    #[cfg(keyed_counted)]
    #[inline]
    pub(crate) fn look_at_clock() -> u64 {
        static CLOCK: AtomicU64 = AtomicU64::new(1);
        CLOCK.fetch_add(32, Ordering::Relaxed)
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
    pub(crate) use foldhash::fast::{FixedState as HashSeed, FixedState as StrongSeed};
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

    /// Time stands still in a model: what depends on it must be right at any speed.
    pub(crate) fn look_at_clock() -> u64 {
        1
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

/// Shuttle's types: one thread of the operating system runs all threads of a run, and which one goes on is drawn at
/// every operation of this module. Every ordering is sequentially consistent there.
#[cfg(keyed_shuttle)]
mod shuffled {
    use std::cell::Cell;

    /// A run must be repeatable from its seed.
    pub(crate) use foldhash::fast::{FixedState as HashSeed, FixedState as StrongSeed};
    use shuttle::rand::Rng as _;
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread::{Thread, current, park, yield_now};

    pub(crate) fn spawn_named(name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        shuttle::thread::Builder::new().name(name).spawn(body).map(drop)
    }

    /// The time runs out as soon as this thread is chosen again: whoever parks for a time looks around and parks again.
    pub(crate) fn park_timeout(_time: std::time::Duration) {
        yield_now();
    }

    /// The time runs out at once, or never: which of the two is drawn.
    pub(crate) fn wait_for<'a, T>(
        condition: &Condvar,
        guard: MutexGuard<'a, T>,
        _time: std::time::Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        if shuttle::rand::thread_rng().gen_ratio(1, 4) {
            return (guard, true);
        }
        (condition.wait(guard).unwrap_or_else(super::PoisonError::into_inner), false)
    }

    pub(crate) fn spin_hint() {
        yield_now();
    }

    std::thread_local! {
        static CLOCK: Cell<u64> = const { Cell::new(1) };
    }

    /// Every look at the clock is a tenth of a millisecond later, so that waiting for time to pass is a matter of looking.
    pub(crate) fn look_at_clock() -> u64 {
        CLOCK.replace(CLOCK.get() + 100_000)
    }

    /// A run begins at the same time as every other.
    #[cfg(test)]
    pub(crate) fn reset_clock() {
        CLOCK.set(1);
    }

    /// A cell that notices when two accesses overlap: what loom reports as a causality violation.
    pub(crate) struct UnsafeCell<T: ?Sized> {
        /// Readers inside, or -1 for a writer.
        inside: Cell<isize>,
        value: std::cell::UnsafeCell<T>,
    }

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self { inside: Cell::new(0), value: std::cell::UnsafeCell::new(value) }
        }

        pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
            assert!(self.inside.get() >= 0, "a cell is read while another access writes it");
            let _inside = Inside::enter(&self.inside, 1);
            access(self.value.get())
        }

        pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
            assert!(self.inside.get() == 0, "a cell is written while another access uses it");
            let _inside = Inside::enter(&self.inside, -1);
            access(self.value.get())
        }
    }

    struct Inside<'a>(&'a Cell<isize>, isize);

    impl<'a> Inside<'a> {
        fn enter(inside: &'a Cell<isize>, change: isize) -> Self {
            inside.set(inside.get() + change);
            Self(inside, change)
        }
    }

    impl Drop for Inside<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - self.1);
        }
    }

    /// A queue that is one step for a run: the real one is crossbeam's, which shuttle cannot see into.
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
            shuttle::thread_local! { $(#[$meta])* static $name: $ty = $init; }
        };
    }
    pub(crate) use local;
}
