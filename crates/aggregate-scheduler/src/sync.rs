//! The shim for threads and shared memory: the only file of this crate that names `std::sync` and `std::thread`.
//!
//! It owns no state. Invariant: no lock of this crate is held while a handler, a source, a wake-up or a `Drop` of the
//! user runs, with the one exception of a task's future, whose lock nobody else waits for. So a poisoned lock follows
//! only a contained panic, and [`lock`] reads through it.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
pub(crate) use std::thread;

/// Locks `mutex`, whatever happened to an earlier holder.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condition` and locks again, whatever happened to an earlier holder.
pub(crate) fn wait<'a, T>(condition: &Condvar, held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(held).unwrap_or_else(PoisonError::into_inner)
}
