//! The waker of a suspended mailbox, and the stack on which woken ones reach their worker.
//!
//! A cell belongs to one (worker, dispatch, entry) for ever, so a waker that outlived its future wakes at most a later
//! future of the same entry on the same worker, once: a spurious poll. `notified` goes 0 -> 1 with the one push that
//! the stack needs, and back when the worker has taken the cell off the stack and *before* the future is polled, so a
//! wake during the poll is never lost. The worker takes the stack whole; nothing of it is held across a poll.
//!
//! A future that wakes itself inside its own poll sets a flag of its thread instead: no push, no atomic.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::seat::AttachId;
use crate::sleep::Notified;
use crate::sync::{Arc, AtomicBool, AtomicPtr, Ordering, UnsafeCell, local};
use crate::worker::Worker;

/// Stands for the source in place of an entry.
pub(crate) const SOURCE: u32 = u32::MAX;

local! {
    /// The cell whose future this thread polls, and whether that future woke itself.
    static POLLING: Cell<(*const WakeCell, bool)> = Cell::new((ptr::null(), false));
}

/// What a waker points at.
pub(crate) struct WakeCell {
    notified: AtomicBool,
    next: UnsafeCell<*const WakeCell>,
    worker: Arc<Worker>,
    attached: AttachId,
    entry: u32,
    resident: UnsafeCell<Resident>,
}

/// What the worker keeps for an entry that was placed on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resident {
    /// Whether its future waits for a wake.
    pub(crate) waiting: bool,
    /// Whether a thread that lost its seat is inside its handler.
    pub(crate) detached: bool,
}

// SAFETY: rule 8 of seat/README.md: `next` is touched only by the thread that set `notified`, then by the one that
// took the stack; rule 1: `resident` is touched by the holder of the seat only; everything else is immutable or atomic.
unsafe impl Send for WakeCell {}
// SAFETY: as above.
unsafe impl Sync for WakeCell {}

impl WakeCell {
    pub(crate) fn new(worker: Arc<Worker>, attached: AttachId, entry: u32) -> Arc<Self> {
        Arc::new(Self {
            notified: AtomicBool::new(false),
            next: UnsafeCell::new(ptr::null()),
            worker,
            attached,
            entry,
            resident: UnsafeCell::new(Resident::default()),
        })
    }

    /// Works on what the worker keeps for the entry.
    ///
    /// # Safety
    /// Rule 1 of seat/README.md: the caller holds the seat of the cell's worker; `access` calls no user code.
    #[inline]
    pub(crate) unsafe fn resident<R>(&self, access: impl FnOnce(&mut Resident) -> R) -> R {
        // SAFETY: the caller's contract.
        self.resident.with_mut(|resident| access(unsafe { &mut *resident }))
    }

    /// Under which number the cell's dispatch is attached.
    pub(crate) fn attached(&self) -> AttachId {
        self.attached
    }

    /// The cell as [`polling`] takes it.
    #[inline]
    pub(crate) fn borrowed(self: &Arc<Self>) -> CellRef {
        CellRef(Arc::as_ptr(self))
    }

    /// The entry that is woken, or [`SOURCE`].
    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    fn wake(self: &Arc<Self>) {
        let mine: *const Self = Arc::as_ptr(self);
        // A thread that is ending has no such local any more, and polls nothing.
        let self_woken = POLLING
            .try_with(|polling| ptr::eq(polling.get().0, mine) && polling.replace((mine, true)).0 == mine);
        if self_woken.unwrap_or(false) {
            return;
        }
        // AcqRel: the Release half pairs with the Acquire in `WakeStack::take` and publishes what this thread did
        // before it woke, also where the cell is on the stack already.
        if !self.notified.swap(true, Ordering::AcqRel) {
            self.worker.wakes().push(Arc::clone(self));
            if self.worker.sleeper().notify() == Notified::Gone {
                // Nobody polls any more: the futures were dropped. What this thread pushed must not keep the worker
                // alive through the cells on its own stack.
                self.worker.wakes().take(drop);
            }
        }
    }
}

/// A cell without a count of its own, so that a poll costs none.
#[derive(Clone, Copy)]
pub(crate) struct CellRef(*const WakeCell);

/// Runs one poll with `cell`'s waker and says whether the future woke itself meanwhile.
///
/// # Safety
/// The lane or the source that owns the cell keeps it until this call returned.
#[inline]
pub(crate) unsafe fn polling<R>(cell: CellRef, poll: impl FnOnce(&Waker) -> R) -> (R, bool) {
    struct Restore((*const WakeCell, bool));
    impl Drop for Restore {
        fn drop(&mut self) {
            POLLING.with(|polling| polling.set(self.0));
        }
    }
    // SAFETY: contract of `RawWaker`: the waker borrows the owner's count for the time of this call (this function's
    // contract), and `ManuallyDrop` keeps it from giving back a count that it does not own.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw(cell.0)) });
    let restore = Restore(POLLING.with(|polling| polling.replace((cell.0, false))));
    let result = poll(&waker);
    let woken = POLLING.with(Cell::get).1;
    drop(restore);
    (result, woken)
}

/// An owned waker of a cell.
pub(crate) fn waker(cell: &Arc<WakeCell>) -> Waker {
    // SAFETY: contract of `RawWaker`: the count taken by `into_raw` is the waker's, given back by its drop or wake.
    unsafe { Waker::from_raw(raw(Arc::into_raw(Arc::clone(cell)))) }
}

fn raw(cell: *const WakeCell) -> RawWaker {
    RawWaker::new(cell.cast(), &VTABLE)
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone_raw, wake_raw, wake_by_ref_raw, drop_raw);

unsafe fn clone_raw(data: *const ()) -> RawWaker {
    // SAFETY: contract of `RawWaker`: data is a live waker's, so it holds a count of this `Arc`.
    unsafe { Arc::increment_strong_count(data.cast::<WakeCell>()) };
    raw(data.cast())
}

unsafe fn wake_raw(data: *const ()) {
    // SAFETY: contract of `RawWaker`: wake consumes the waker and with it its count.
    unsafe { Arc::from_raw(data.cast::<WakeCell>()) }.wake();
}

unsafe fn wake_by_ref_raw(data: *const ()) {
    // SAFETY: contract of `RawWaker`: the waker stays alive for this call and keeps its count.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<WakeCell>()) }).wake();
}

unsafe fn drop_raw(data: *const ()) {
    // SAFETY: contract of `RawWaker`: drop consumes the waker and with it its count.
    drop(unsafe { Arc::from_raw(data.cast::<WakeCell>()) });
}

/// Cells woken since the worker last looked; any thread pushes, the worker takes all.
pub(crate) struct WakeStack(AtomicPtr<WakeCell>);

impl WakeStack {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn push(&self, cell: Arc<WakeCell>) {
        let node = Arc::into_raw(cell).cast_mut();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: rule 8 of seat/README.md: this thread changed `notified` 0 -> 1, the link is its own until the
            // CAS; the count that went into the node keeps the cell alive.
            unsafe { (*node).next.with_mut(|next| *next = head) };
            // Release: pairs with the Acquire in `take`; publishes the link and what was done before the wake.
            match self.0.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }

    /// Whether something was woken, as far as this thread can see.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Takes every woken cell, in the order of their wakes, and makes each of them wakeable again before it is handed
    /// to `woken`.
    pub(crate) fn take(&self, mut woken: impl FnMut(Arc<WakeCell>)) {
        // Acquire: pairs with the Release of every push in the chain.
        let mut node = self.0.swap(ptr::null_mut(), Ordering::Acquire).cast_const();
        let mut in_order: *const WakeCell = ptr::null();
        while !node.is_null() {
            // SAFETY: rule 8: the stack was taken whole, its links are this thread's.
            let next = unsafe { (*node).next.with_mut(|next| std::mem::replace(&mut *next, in_order)) };
            in_order = node;
            node = next;
        }
        while !in_order.is_null() {
            // SAFETY: the count is the one that `push` put into the node; rule 8 for the link, which is read before
            // `notified` is cleared.
            let cell = unsafe { Arc::from_raw(in_order) };
            // SAFETY: rule 8 of seat/README.md, as above.
            in_order = cell.next.with(|next| unsafe { *next });
            // A swap with Acquire: pairs with the swap of every waker that found the cell notified already, whose
            // writes the coming poll must see.
            cell.notified.swap(false, Ordering::AcqRel);
            woken(cell);
        }
    }
}

impl Drop for WakeStack {
    fn drop(&mut self) {
        self.take(drop);
    }
}
