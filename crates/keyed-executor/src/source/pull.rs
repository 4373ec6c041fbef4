//! The home's turn at its source: poll, key, and what a poll brought.
//!
//! Bounded by [`TURN_NS`] of measured work and [`MOST_PULLED`] messages, so that several dispatches and mailboxes share a
//! worker fairly. The source is polled with the seat lent and never after it ended, failed or was asked to close. Where a
//! message goes is `accept.rs`; what becomes of a dispatch is the parent file.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::accept::Start;
use super::{Core, Input, LostAt, OnSeat};
use crate::contain::contain;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::{Cause, Outcome};
use crate::meter::Meter;
use crate::seat::token::Back;
use crate::sync::Ordering;
use crate::turn::Lost;
use crate::wake::polling;

/// A message runs where it arrives only if one costs less than this.
pub(super) const IN_PLACE_NS: u64 = 1_000;
/// The home comes back to its other work after about this much work of the source.
const TURN_NS: u64 = 10_000;
/// The most messages taken from the source in one turn.
const MOST_PULLED: usize = 256;

/// What one poll of the source brought. Each part is written once, where it is read: the way through the value of a
/// contained closure costs more than a cheap handler, and a message is moved only into its future or its slot.
pub(super) struct Brought<K, M, E> {
    pub(super) message: Option<M>,
    /// The message's key, with its hash.
    pub(super) key: Option<(K, u64)>,
    /// Anything but a message with its key.
    other: Option<Other<E>>,
}

impl<K, M, E> Brought<K, M, E> {
    fn nothing() -> Self {
        Self { message: None, key: None, other: None }
    }

    /// Whether the source has nothing and will wake its cell.
    pub(super) fn waits(&self) -> bool {
        matches!(self.other, Some(Other::Pending { .. }))
    }
}

/// What a source brings beside messages.
enum Other<E> {
    /// The message's key could not be told: the text of a panic.
    NoKey(String),
    Failed(E),
    Panicked(String),
    Pending {
        woken: bool,
    },
    End,
}

/// Takes the message that a poll brought.
#[inline]
pub(super) fn take<M>(message: &mut Option<M>) -> M {
    message.take().expect("a message lies where its poll left it")
}

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
    /// Asks the source while the window has room; true if there is more to do at once.
    #[inline]
    pub(super) unsafe fn pull(&self, cx: &Cx<'_>) -> OnSeat<bool, K, M, ErrorOf<F>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if self.side(|side| side.input != Input::Ready || side.budget == 0) {
                return Ok(false);
            }
            let cost = self.engine.plain(self.home, |plain| plain.cost);
            let (step_cost, unmeasured) = self.side(|side| (side.step_cost, side.unmeasured_steps));
            let is_cheap = cost > 0 && cost <= IN_PLACE_NS && step_cost <= IN_PLACE_NS;
            let start = if is_cheap { Start::InPlace } else { Start::Queued };
            // A step is the source's work and, in place, the handler's: both are bounded by it.
            let mut meter = Meter::start(cx.worker.clock(), step_cost, unmeasured, TURN_NS);
            let mut pulled = 0;
            let mut yielded = false;
            let mut brought = Brought::nothing();
            let mut sample_at = self.side(|side| side.hot.left());
            while self.side(|side| side.input == Input::Ready && side.budget > 0)
                && self.engine.is_running()
                // A poll that began before the close may still bring a message, which is taken in; none begins after it.
                && !self.closing.load(Ordering::Acquire)
                && pulled < MOST_PULLED
                && !meter.is_used_up()
                && !yielded
            {
                pulled += 1;
                if self.poll_source(cx, &mut brought) == Back::Lost {
                    return Err(LostAt::Source(brought));
                }
                // A source that woke itself has nothing yet: the others get their turn first.
                yielded = matches!(brought.other, Some(Other::Pending { woken: true }));
                if pulled >= sample_at {
                    sample_at = pulled + self.sample_pulled(&brought);
                }
                self.step(cx, &mut brought, start).map_err(LostAt::Message)?;
                meter.ran();
            }
            self.side(|side| {
                (side.step_cost, side.unmeasured_steps) = meter.finish(side.unmeasured_steps);
                // What ends a turn and is no message is the last that was asked for.
                let no_message = yielded || side.input == Input::Waiting;
                side.hot.set_left(sample_at - (pulled - usize::from(no_message)));
            });
            self.notify_touched();
            Ok(self.side(|side| side.input == Input::Ready && side.budget > 0))
        }
    }

    /// Acts on what one poll of the source brought.
    #[inline]
    pub(super) unsafe fn step(
        &self,
        cx: &Cx<'_>,
        brought: &mut Brought<K, M, ErrorOf<F>>,
        start: Start,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if let Some((key, hash)) = brought.key.take() {
                return self.accept(cx, key, hash, &mut brought.message, start);
            }
            match brought.other.take().expect("a poll brings something") {
                Other::NoKey(panic) => {
                    self.refuse(cx, take(&mut brought.message), Cause::KeyPanicked { message: panic });
                }
                Other::Pending { woken } => {
                    if !woken {
                        self.side(|side| side.input = Input::Waiting);
                    }
                }
                Other::End => self.drop_source(cx),
                Other::Failed(error) => self.fail(cx, Cause::Source(error)),
                Other::Panicked(message) => self.fail(cx, Cause::SourcePanicked { message }),
            }
        }
        Ok(())
    }

    /// One poll of the source, with the key of what it brought.
    #[inline]
    unsafe fn poll_source(&self, cx: &Cx<'_>, into: &mut Brought<K, M, ErrorOf<F>>) -> Back {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        let cell = unsafe {
            self.side(|side| {
                side.polling = true;
                side.cell.as_ref().expect("the home runs only while it is attached").borrowed()
            })
        };
        let (contained, back) = cx.lent(|| {
            // SAFETY: rule 8 of seat/README.md: the home keeps the source's cell as long as this core lives.
            let (polled, woken) = unsafe {
                polling(cell, |waker| {
                    self.source.with_mut(|source| {
                        // SAFETY: rules 5 and 9 of seat/README.md: only the home polls the source, with its seat lent;
                        // the source is never moved out of its cell.
                        let source = (*source).as_mut().expect("a source that is asked is there");
                        Pin::new_unchecked(source).poll_next(&mut Context::from_waker(waker))
                    })
                })
            };
            match polled {
                Poll::Ready(Some(Ok(message))) => {
                    let message = into.message.insert(message);
                    // Contained on its own: the message survives it and is discarded by the caller, once.
                    let told = contain(|| {
                        let key = (self.key)(message);
                        let hash = self.engine.hash(&key);
                        into.key = Some((key, hash));
                    });
                    if let Err(panic) = told {
                        into.other = Some(Other::NoKey(panic));
                    }
                }
                Poll::Ready(Some(Err(error))) => into.other = Some(Other::Failed(error)),
                Poll::Ready(None) => into.other = Some(Other::End),
                Poll::Pending => into.other = Some(Other::Pending { woken }),
            }
        });
        if let Err(panic) = contained {
            into.other = Some(Other::Panicked(panic));
        }
        if back == Back::Mine {
            // SAFETY: rule 5 of seat/README.md: this function's contract.
            unsafe { self.side(|side| side.polling = false) };
        }
        back
    }
}
