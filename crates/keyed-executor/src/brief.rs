//! Taking a lock that is held for less time than a thread takes to sleep and to wake up.
//!
//! Whoever sleeps at a lock makes its holder wake it, with a system call, and everybody who comes meanwhile goes to sleep there
//! too: several submitters of one keyspace then take turns at the speed of wake-ups (docs/adr/0011). So a lock like that is polled for
//! about a microsecond, then others are let run some times, the holder among them if it lost its processor, and only then does
//! the caller sleep. It bounds itself by counts, and by what others do with a processor that was offered to them.

use crate::sync::{Mutex, MutexGuard, TryLockError, lock, spin_hint, yield_now};
use crate::time::nanos;

/// Polls, each twice as far from the last. A model has no time to lose.
const POLLS: u32 = if cfg!(any(keyed_loom, keyed_shuttle)) { 0 } else { 6 };
/// How often others are let run.
const YIELDS: u32 = if cfg!(any(keyed_loom, keyed_shuttle)) { 0 } else { 10 };
/// Others that keep a processor for longer compute: among them a thread that sleeps is up sooner than one that offers again.
const KEPT_NS: u64 = 200_000;

/// Takes a lock that is never held for long, whatever happened to an earlier holder (see [`lock`]).
#[inline]
pub(crate) fn lock_brief<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    try_lock(mutex).unwrap_or_else(|| contended(mutex))
}

#[inline]
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cold]
fn contended<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for attempt in 0..POLLS {
        (0..1 << attempt).for_each(|_| spin_hint());
        if let Some(guard) = try_lock(mutex) {
            return guard;
        }
    }
    for _ in 0..YIELDS {
        let before = nanos();
        yield_now();
        if let Some(guard) = try_lock(mutex) {
            return guard;
        }
        if nanos() - before > KEPT_NS {
            break;
        }
    }
    lock(mutex)
}
