//! The shim for threads and shared memory: the only file of this crate that names `std::sync` and `std::thread`.
//!
//! It owns no state. Invariant: no lock of this crate is held while code of a component, a waker or a callback runs,
//! so a poisoned lock can only follow a panic of our own between two plain assignments; `lock` reads through it
//! because a shutdown must go on. What it does not do: it offers no condition variable to production code; waiting
//! is done by futures.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
pub(crate) use std::thread;

/// Locks `mutex`, whatever happened to an earlier holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
