//! A keyspace as its handles see it: what they may ask, and what that takes.
//!
//! It owns nothing: it puts the core's lock, the acceptance and the credit together to what a handle may ask. A worker is
//! notified and a dead one swept after the lock, never under it. Whoever registers looks again afterwards, so that nobody
//! waits for what came meanwhile. How a submission is accepted is `accept.rs`; who waits beside the window is `watch.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::task::Waker;

use super::accept::{Accepted, Refused, Waited};
use super::core::Core;
use super::{Door, Given};
use crate::brief::lock_brief;
use crate::credit::{Need, Ticket};
use crate::error::{Cause, Ledger, Outcome, SubmitRefusal};
use crate::figures::DispatchMetrics;
use crate::hot::HotKey;
use crate::inspect::Inspection;
use crate::prefetch::Access;
use crate::sync::Ordering;

impl<K, M, H, F> Door<K, M> for Core<K, M, H, F>
where
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    fn try_submit(&self, given: &mut Given<K, M>, ticket: Option<Ticket>) -> Result<(), SubmitRefusal> {
        let hash = self.engine.hash(given.key());
        let bytes = self.weigh(given.key(), given.message())?;
        loop {
            match self.accept(hash, given, Waited { bytes, ticket }) {
                Ok(Accepted { worker, next_slot }) => {
                    self.engine.foresee(next_slot, Access::Write);
                    self.engine.notify(worker);
                    return Ok(());
                }
                Err(Refused::ForGood(reason)) => return Err(reason),
                Err(Refused::ByTheDead { worker }) => {
                    // What the dead worker still held is dropped, outside the lock; then its keys are free.
                    self.engine.shared.sweep(worker);
                    self.with_side(|side| self.take_back(side));
                }
            }
        }
    }

    fn register(&self, ticket: Ticket, waker: &Waker) -> bool {
        if self.engine.limits.is_on() {
            self.leave_list(ticket);
        }
        let (returned, refused) = {
            let intake = &lock_brief(&self.side).intake;
            (intake.returned, self.refusal(intake).is_some() || intake.room() > 0)
        };
        if refused {
            return false;
        }
        let need = Need::permit(returned, self.engine.window, self.engine.batch);
        let now = self.engine.credit.register(ticket, need, waker);
        // Looked at again after the registration: a completion, or a door that was shut meanwhile.
        if now > returned || self.refusal(&lock_brief(&self.side).intake).is_some() {
            // Woken already, or not: either way this submitter looks again.
            self.engine.credit.forget(ticket);
            return false;
        }
        true
    }

    fn register_beside_window(&self, ticket: Ticket, key: &K, message: &M, waker: &Waker) -> bool {
        // It may have been woken for a permit of the window that it does not take.
        self.leave_window(ticket);
        self.wait_beside_window(ticket, key, message, waker)
    }

    fn forget(&self, ticket: Ticket, submits: bool) {
        if !submits {
            self.engine.credit.forget(ticket);
            return;
        }
        if self.engine.limits.is_on() {
            self.leave_list(ticket);
        }
        self.leave_window(ticket);
    }

    fn ticket(&self) -> Ticket {
        // Relaxed: only uniqueness and each caller's own order count.
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    fn in_flight(&self) -> usize {
        self.with_side(|side| {
            self.take_back(side);
            side.intake.outstanding() as usize
        })
    }

    fn live_keys(&self) -> usize {
        self.with_side(|side| {
            self.take_back(side);
            side.intake.live()
        })
    }

    fn drained(&self, ticket: Ticket, waker: &Waker) -> Option<Ledger> {
        loop {
            let (accepted, outstanding) = self.with_side(|side| {
                self.take_back(side);
                (side.intake.accepted, side.intake.outstanding())
            });
            // The completions are taken back just before they are counted, so `returned` may lag behind them.
            if outstanding == 0 && self.engine.credit.returned() >= accepted {
                self.engine.credit.forget(ticket);
                return Some(self.engine.ledger(accepted));
            }
            let all = Need::all(accepted);
            if self.engine.credit.register(ticket, all, waker) < accepted {
                return None;
            }
        }
    }

    fn refused(&self, reason: SubmitRefusal) {
        self.engine.refusals.count(reason);
    }

    fn metrics(&self) -> DispatchMetrics {
        self.engine.shared.figures(&[self.me()]).pop().unwrap_or_default()
    }

    fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        self.engine.shared.hot_keys(&[self.me()], limit)
    }

    fn inspect(&self, limit: usize) -> Inspection {
        self.engine.shared.inspect(&[self.me()], limit)
    }

    fn close(&self) {
        self.close_intake();
    }

    fn cancel(&self) {
        // The door first: whoever waits at it finds it closed, not failed.
        self.close_intake();
        self.engine.stop(Cause::Cancelled);
    }
}
