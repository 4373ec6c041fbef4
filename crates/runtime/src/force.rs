//! The forced stop, as a numbered procedure on the thread that asked for it.
//!
//! 1. Close admission. Otherwise a message could be accepted that nobody will ever handle.
//! 2. Force-close the executor: queued messages are discarded, unacknowledged. Before the components, because a
//!    component that lets go first would see its own queued messages fail one by one against it.
//! 3. Detach the orderly procedures: they enter no further component.
//! 4. Force every registered component in reverse order, those that were never prepared too.
//! 5. Publish the termination. Threads of the executor that are still inside a handler are not waited for.
//!
//! Invariants: it is carried out once; it waits for nothing; a failing or panicking component keeps no other from
//! being forced. What it must not do is take part in who wins: the table of `phase.rs` has decided that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::entry::panic_text;
use crate::failure::{Failure, FailureCause, Step};
use crate::lifecycle::Lifecycle;
use crate::phase::{Duty, Event};
use crate::report::Ending;

impl Lifecycle {
    /// The procedure; for the one caller that was told to `Force`.
    pub(crate) fn carry_out_force(&self) {
        let since = self.timer.now();
        self.gate.close();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.executor.force_close())) {
            let cause = FailureCause::Panic(panic_text(payload.as_ref()));
            self.record(Failure::of_runtime(Step::Force, cause));
        }
        self.forced.fire();
        for entry in self.entries.iter().rev() {
            if let Err(failure) = entry.force() {
                self.record(failure);
            }
        }
        self.step_ended(Step::Force, since);
        if self.transition(Event::Forced).1 == Duty::Publish {
            self.publish(Ending::Forced);
        }
    }
}
