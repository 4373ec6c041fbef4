//! The activity gate: which operations are under way, and whether another may begin.
//!
//! Owns one word: a closed bit, the number of unfinished operations and a count of every operation ever admitted.
//! Dispatchers call [`ActivityGate::try_acquire`] per message from any thread; the shutdown waits for idleness and
//! closes. Invariants: once the closed bit is set the number only falls and nothing is admitted again; the gate can
//! be closed *only if* nothing was admitted since a given moment, in one step, so that a quiet period that was
//! interrupted can never close it. It does not time anything: the quiet period belongs to `quiet.rs`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering};
use crate::waiters::Waiters;

/// Bit 0: no further admission. Final.
const CLOSED: u64 = 1;
/// Bits 1 to 31: unfinished operations.
const COUNT_ONE: u64 = 1 << 1;
const COUNT_MASK: u64 = ((1 << 31) - 1) << 1;
/// Bits 32 to 63: operations admitted so far, modulo 2^32; overflow leaves the word at the top and touches nothing.
const ADMITTED_ONE: u64 = 1 << 32;
const ADMITTED_MASK: u64 = !(ADMITTED_ONE - 1);

fn count(word: u64) -> u64 {
    (word & COUNT_MASK) / COUNT_ONE
}

/// Admits operations while open and tells when none is under way. Clones share one gate.
///
/// # Examples
/// ```
/// let gate = wow_runtime::ActivityGate::new();
/// let activity = gate.try_acquire().expect("an open gate admits");
/// gate.close();
/// assert!(gate.try_acquire().is_none());
/// assert_eq!(gate.active(), 1);
/// drop(activity);
/// assert_eq!(gate.active(), 0);
/// ```
#[derive(Clone)]
pub struct ActivityGate {
    inner: Arc<Inner>,
}

struct Inner {
    word: AtomicU64,
    /// Whether somebody waits for the number to reach zero; spares the common release the waiters' lock.
    watched: AtomicBool,
    waiters: Waiters,
}

impl ActivityGate {
    /// An open gate without operations.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                word: AtomicU64::new(0),
                watched: AtomicBool::new(false),
                waiters: Waiters::default(),
            }),
        }
    }

    #[cfg(test)]
    pub(crate) fn at_end_of_admission_counter() -> Self {
        let gate = Self::new();
        gate.inner.word.store(ADMITTED_MASK, Ordering::SeqCst);
        gate
    }

    /// Admits one operation, or `None` if the gate is closed.
    ///
    /// The operation is under way until the returned [`Activity`] is dropped. Never blocks.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Activity> {
        let mut word = self.inner.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 || word & COUNT_MASK == COUNT_MASK {
                return None;
            }
            let next = word.wrapping_add(COUNT_ONE + ADMITTED_ONE);
            // Acquire: pairs with the Release half of close(); whoever is refused sees what the closer did before.
            // SeqCst is not needed: the shutdown's decision is one compare-exchange on this same word.
            match self.inner.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(Activity { inner: Arc::clone(&self.inner) }),
                Err(seen) => word = seen,
            }
        }
    }

    /// Ends admission for good; operations under way go on. Idempotent.
    pub fn close(&self) {
        if self.inner.word.fetch_or(CLOSED, Ordering::SeqCst) & CLOSED == 0 {
            self.inner.waiters.wake_all();
        }
    }

    /// Whether admission has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// How many operations are under way.
    #[must_use]
    pub fn active(&self) -> u64 {
        count(self.inner.word.load(Ordering::Acquire))
    }

    /// Resolves once no operation is under way.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub fn idle(&self) -> Idle {
        Idle { gate: self.clone(), after: None, slot: None }
    }

    /// Resolves once the gate is idle with operations admitted since `mark`, or closed.
    pub(crate) fn idle_after(&self, mark: IdleMark) -> Idle {
        Idle { gate: self.clone(), after: Some(mark), slot: None }
    }

    /// Closes the gate if it is as it was at `mark`: idle, and nothing admitted since.
    ///
    /// `false` if something was admitted; the gate is then as open as before.
    pub(crate) fn close_if_still(&self, mark: IdleMark) -> bool {
        // SeqCst: one order with every admission and release on this word; the exchange itself is the decision.
        let closed = self
            .inner
            .word
            .compare_exchange(mark.0, mark.0 | CLOSED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if closed {
            self.inner.waiters.wake_all();
        }
        closed
    }
}

impl Default for ActivityGate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ActivityGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.inner.word.load(Ordering::Acquire);
        f.debug_struct("ActivityGate")
            .field("closed", &(word & CLOSED != 0))
            .field("active", &count(word))
            .finish_non_exhaustive()
    }
}

// === Activity ===

/// One admitted operation; it ends when this is dropped, exactly once, on any thread.
#[must_use = "the operation ends as soon as its activity is dropped"]
pub struct Activity {
    inner: Arc<Inner>,
}

impl Drop for Activity {
    fn drop(&mut self) {
        // SeqCst: one order with `watched`. Either this release sees `watched` and wakes, or the waiter, which sets
        // `watched` before it looks at the word again, sees the number at zero.
        let before = self.inner.word.fetch_sub(COUNT_ONE, Ordering::SeqCst);
        debug_assert!(count(before) > 0, "an activity ends at most once");
        if count(before) == 1 && self.inner.watched.load(Ordering::SeqCst) {
            self.inner.waiters.wake_all();
        }
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").finish_non_exhaustive()
    }
}

// === Idle ===

/// The word of an open or closed gate at a moment without operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdleMark(u64);

/// Waits for [`ActivityGate::idle`].
#[must_use = "futures do nothing unless they are polled"]
#[derive(Debug)]
pub struct Idle {
    gate: ActivityGate,
    after: Option<IdleMark>,
    slot: Option<u64>,
}

impl Idle {
    fn look(&self) -> Option<IdleMark> {
        let word = self.gate.inner.word.load(Ordering::SeqCst);
        match self.after {
            None => (word & COUNT_MASK == 0).then_some(IdleMark(word)),
            Some(_) if word & CLOSED != 0 => Some(IdleMark(word)),
            Some(mark) => {
                let moved = word & ADMITTED_MASK != mark.0 & ADMITTED_MASK;
                (moved && word & COUNT_MASK == 0).then_some(IdleMark(word))
            }
        }
    }

    /// The poll that keeps the mark.
    pub(crate) fn poll_mark(&mut self, cx: &mut Context<'_>) -> Poll<IdleMark> {
        if let Some(mark) = self.look() {
            return Poll::Ready(mark);
        }
        self.gate.inner.waiters.register(&mut self.slot, cx.waker());
        self.gate.inner.watched.store(true, Ordering::SeqCst);
        self.look().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Future for Idle {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_mark(cx).map(|_| ())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.gate.inner.waiters.forget(&mut self.slot);
    }
}
