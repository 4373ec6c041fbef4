//! What is noted of a source's messages where they are pulled: hot keys by a sample, and the auditor's cell of what runs in place.
//!
//! Plain data of the home (rule 5 of seat/README.md). A sample is due once for about 128 messages, wherever they go from here: their
//! workers take none. Nothing here is called for a message that is not sampled, while there is no auditor.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::Core;
use super::pull::Brought;
use crate::contain::line_into;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::Outcome;
use crate::mailbox::NONE;

impl<S, KF, K, M, H, F> Core<S, KF, K, M, H, F>
where
    S: Stream<Item = Result<M, ErrorOf<F>>> + Send + 'static,
    KF: Fn(&M) -> K + Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    /// Samples the key of a message that was pulled; how many messages on the next one is sampled, 0 if this was none.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn sample_pulled(&self, brought: &Brought<K, M, ErrorOf<F>>) -> usize {
        let Some((key, hash)) = &brought.key else { return 0 };
        // SAFETY: rule 5 of seat/README.md: this function's contract; the key's `Debug` runs between two accesses.
        unsafe {
            let untold = self.side(|side| side.hot.count(*hash).map(|at| (at, side.hot.room(at))));
            if let Some((at, mut text)) = untold {
                line_into(&mut text, key);
                self.side(|side| side.hot.tell(at, text));
            }
            self.side(|side| side.hot.draw())
        }
    }

    /// Claims the auditor's cell of a message that is about to run in place, if there is an auditor.
    #[inline(never)]
    pub(super) unsafe fn audit_in_place(&self, cx: &Cx<'_>, hash: u64) {
        if let Some(auditor) = &self.engine.auditor {
            let claimed = self.engine.audit_in_place(auditor, cx, hash);
            // SAFETY: rule 5 of seat/README.md: this function's contract.
            unsafe { self.side(|side| side.audited = claimed) };
        }
    }

    /// Gives the auditor's cell of a message back that ran in place and ended there.
    #[inline(never)]
    pub(super) unsafe fn audit_passed(&self) {
        if let Some(auditor) = &self.engine.auditor {
            // SAFETY: rule 5 of seat/README.md: this function's contract.
            auditor.give_back(unsafe { self.side(|side| std::mem::replace(&mut side.audited, NONE)) });
        }
    }
}
