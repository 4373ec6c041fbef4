//! The termination: one end, any number of observers.
//!
//! Owns the published report. Invariants: it is set once and never changes; a dropped observer changes nothing. An
//! observer is a future that its own task polls, so nobody's code runs on the thread that publishes, and a slow
//! observer delays only itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::report::ShutdownReport;
use crate::sync::{Arc, OnceLock};
use crate::waiters::Waiters;

/// Resolves with the report once the runtime has terminated. Cloning makes another observer.
///
/// # Cancel safety
/// Dropping it stops nothing: the shutdown goes on, and other observers get the same report.
#[must_use = "futures do nothing unless they are polled"]
#[derive(Debug)]
pub struct Termination {
    shared: Arc<Shared>,
    slot: Option<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    report: OnceLock<Arc<ShutdownReport>>,
    waiters: Waiters,
}

impl Termination {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::new(Shared::default()), slot: None }
    }

    /// Publishes the report and wakes every observer.
    pub(crate) fn publish(&self, report: Arc<ShutdownReport>) {
        let first = self.shared.report.set(report).is_ok();
        debug_assert!(first, "the table of phase.rs publishes once");
        self.shared.waiters.wake_all();
    }

    /// The report, if the runtime has terminated.
    #[must_use]
    pub fn report(&self) -> Option<Arc<ShutdownReport>> {
        self.shared.report.get().cloned()
    }
}

impl Clone for Termination {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), slot: None }
    }
}

impl Future for Termination {
    type Output = Arc<ShutdownReport>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(report) = this.shared.report.get() {
            return Poll::Ready(Arc::clone(report));
        }
        this.shared.waiters.register(&mut this.slot, cx.waker());
        this.shared.report.get().cloned().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        self.shared.waiters.forget(&mut self.slot);
    }
}
