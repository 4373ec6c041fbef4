//! Waiters: the wakers of everybody who waits for one condition, and the one-shot `Signal` built on them.
//!
//! Owns the registered wakers; called by futures under their own check-register-check protocol. Invariant: a future
//! holds at most one slot, and frees it when it is dropped, so the set never outgrows its live waiters. It does not
//! know the condition: whoever waits checks again after registering, whoever signals changes the condition first.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};

/// The wakers of those who wait.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Waiters {
    /// Puts `waker` into the caller's slot, taking a new slot the first time.
    pub(crate) fn register(&self, slot: &mut Option<u64>, waker: &Waker) {
        let mut slots = lock(&self.slots);
        let id = *slot.get_or_insert_with(|| {
            slots.next += 1;
            slots.next
        });
        slots.wakers.insert(id, waker.clone());
    }

    /// Frees the caller's slot, if it has one.
    pub(crate) fn forget(&self, slot: &mut Option<u64>) {
        if let Some(id) = slot.take() {
            lock(&self.slots).wakers.remove(&id);
        }
    }

    /// Wakes everybody once. Wakers run outside the lock.
    pub(crate) fn wake_all(&self) {
        let woken = std::mem::take(&mut lock(&self.slots).wakers);
        for waker in woken.into_values() {
            waker.wake();
        }
    }
}

// === Signal ===

/// A condition that becomes true once and stays true.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signal {
    inner: Arc<SignalInner>,
}

#[derive(Debug, Default)]
struct SignalInner {
    fired: AtomicBool,
    waiters: Waiters,
}

impl Signal {
    /// Makes the condition true and wakes everybody; later calls do nothing.
    pub(crate) fn fire(&self) {
        // SeqCst: the store must be visible before the slots are emptied, so that whoever registers too late for the
        // sweep sees it in the check that follows. The slots' mutex gives that order too; simplicity decides.
        if !self.inner.fired.swap(true, Ordering::SeqCst) {
            self.inner.waiters.wake_all();
        }
    }

    /// Whether the condition is true.
    pub(crate) fn is_fired(&self) -> bool {
        self.inner.fired.load(Ordering::SeqCst)
    }

    /// Resolves once the condition is true.
    pub(crate) fn fired(&self) -> Fired {
        Fired { signal: self.clone(), slot: None }
    }
}

/// Waits for a `Signal`.
#[derive(Debug)]
pub(crate) struct Fired {
    signal: Signal,
    slot: Option<u64>,
}

impl Future for Fired {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.signal.is_fired() {
            return Poll::Ready(());
        }
        this.signal.inner.waiters.register(&mut this.slot, cx.waker());
        if this.signal.is_fired() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Fired {
    fn drop(&mut self) {
        self.signal.inner.waiters.forget(&mut self.slot);
    }
}
