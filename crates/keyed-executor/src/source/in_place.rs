//! A message that runs where it arrived, without a queue, a slot and a mailbox.
//!
//! Its key and hash stand in the home's side while its handler runs, so that whoever takes the seat meanwhile finds them. A
//! handler that waits is settled: it gets what a queued message has, and is Running from then on. Nothing of it is known to
//! the directory before. Whether a message may run in place is `accept.rs`; what is noted of it is `noted.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::Core;
use super::pull::take;
use crate::audit::Accepted;
use crate::contain::contain;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::Outcome;
use crate::figures::SHOWS;
use crate::mailbox::state::Event;
use crate::mailbox::{Mailbox, NONE};
use crate::seat::token::Back;
use crate::turn::{Lost, Ran};

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
    /// Runs a message where it arrived; only one whose handler waits gets a mailbox.
    #[inline]
    pub(super) unsafe fn run_in_place<const CAREFUL: bool>(
        &self,
        cx: &Cx<'_>,
        key: K,
        hash: u64,
        message: &mut Option<M>,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        let here = self.home;
        // SAFETY: rules 1, 5 and 7 of seat/README.md: this function's contract; the place is the one that the intake
        // would give out next, and this thread owns the intake.
        unsafe {
            // A worker that was given something must not wait for the end of this handler.
            self.notify_touched();
            if CAREFUL {
                self.audit_in_place(cx, hash);
            }
            let entry = self.side(|side| {
                side.budget -= 1;
                if CAREFUL {
                    side.intake.bounds.take_bytes(side.arriving);
                }
                // Where whoever takes the seat meanwhile finds it.
                side.in_place = Some((key, hash));
                side.intake.next_entry().expect("the budget is within the window")
            });
            let cell = self.engine.cell(cx, entry);
            let (ran, back) = self.engine.begin(cx, entry, cell, || take(message));
            if back == Back::Lost {
                return Err(Lost { worker: here, entry, ran });
            }
            if let Ran::Pending { woken } = ran {
                let placed = self.settle_in_place(cx);
                debug_assert_eq!(placed, Some(entry), "nobody else gives places out");
                self.engine.suspend(here, entry, woken);
                return Ok(());
            }
            let key = self.side(|side| side.in_place.take());
            if CAREFUL {
                self.audit_passed();
            }
            let failed = self.engine.account(cx, ran, || {
                contain(|| match &key {
                    Some((key, _)) => format!("{key:?}"),
                    None => String::new(),
                })
                .unwrap_or_else(|_| "<its Debug panicked>".to_owned())
            });
            self.engine.plain(here, |plain| {
                plain.tally.in_place += u64::from(SHOWS);
                if failed {
                    plain.tally.failed += 1;
                } else {
                    plain.tally.handled += 1;
                }
            });
            self.side(|side| {
                if CAREFUL {
                    side.intake.bounds.give_bytes(side.arriving);
                }
                side.intake.passed_through();
                side.earn(1, self.engine.batch);
            });
            if std::mem::needs_drop::<K>() {
                cx.drop_user("a key", key);
            }
        }
        Ok(())
    }

    /// Gives a message that was started in place a mailbox, Running, and says which; None if none was started.
    pub(super) unsafe fn settle_in_place(&self, cx: &Cx<'_>) -> Option<u32> {
        // SAFETY: rules 1, 5 and 7 of seat/README.md: this function's contract.
        unsafe {
            let entry = self.side(|side| {
                let (key, hash) = side.in_place.take()?;
                let entry = self.engine.admit(&mut side.intake, hash, key, self.home);
                let slot = side.intake.take_slot().expect("the budget is within the window");
                if side.intake.bounds.is_on {
                    side.intake.bounds.settle(slot, side.arriving);
                }
                side.intake.add(entry);
                self.engine.mailbox(entry, |mailbox| {
                    *mailbox = Mailbox::new();
                    let _ = mailbox.on(Event::Enqueue);
                    let _ = mailbox.on(Event::Begin);
                    mailbox.running = slot;
                });
                self.engine.reached(cx, slot);
                if let Some(auditor) = &self.engine.auditor {
                    let claimed = std::mem::replace(&mut side.audited, NONE);
                    let number = side.intake.accepted;
                    self.engine.audit_settled(auditor, entry, slot, Accepted { number, hash }, claimed);
                }
                Some(entry)
            })?;
            self.engine.plain(self.home, |plain| plain.tally.placements += u64::from(SHOWS));
            let figures = &self.engine.lanes[self.home].figures;
            figures.kept.add(1);
            figures.live.up();
            Some(entry)
        }
    }
}
