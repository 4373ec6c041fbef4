//! Tasks with affinity: closures that run once on one worker, in submission order.
//!
//! A task is claimed exactly once: by the worker that runs it, by whoever discards it, or by its own submitter that
//! found the worker gone after it had queued the task (KE-41). It knows nothing of queues.

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// A queued task without its type.
pub(crate) trait Task: Send + Sync {
    /// Runs it, unless somebody claimed it before.
    fn run(&self);
    /// Drops it, unless somebody claimed it before; false then.
    fn discard(&self) -> bool;
}

/// A closure and who has claimed it.
pub(crate) struct TaskCell<T> {
    claimed: AtomicBool,
    task: UnsafeCell<Option<T>>,
}

// SAFETY: rule 4 of seat/README.md in small: the closure is touched only by the one thread that changed `claimed`
// from false to true, and `T: Send` lets that be any thread.
unsafe impl<T: Send> Send for TaskCell<T> {}
// SAFETY: as above; no `&T` is ever shared.
unsafe impl<T: Send> Sync for TaskCell<T> {}

impl<T> TaskCell<T> {
    pub(crate) fn new(task: T) -> Self {
        Self { claimed: AtomicBool::new(false), task: UnsafeCell::new(Some(task)) }
    }

    /// Takes the task out; None if somebody did before.
    pub(crate) fn claim(&self) -> Option<T> {
        // AcqRel: one winner; the queue has published the closure already.
        if self.claimed.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: rule 4 of seat/README.md: this thread won the claim, nobody else touches the closure.
        self.task.with_mut(|task| unsafe { (*task).take() })
    }
}

impl<T: FnOnce() + Send> Task for TaskCell<T> {
    fn run(&self) {
        if let Some(task) = self.claim() {
            task();
        }
    }

    fn discard(&self) -> bool {
        self.claim().map(drop).is_some()
    }
}
