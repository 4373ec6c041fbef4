//! The one message of a source that found no room beside the window: set aside, and the source is not asked meanwhile.
//!
//! A source is asked with a permit of the window in hand, and its message may be of a key that has its limit of messages while
//! the overflow is full, or heavier than what is left of the byte budget. It cannot go back, so the home keeps it (rule 5 of seat/README.md: it survives the loss of the seat)
//! with the permit it was asked for, tries again whenever something came back, and asks for nothing until it found room. That
//! is the back-pressure of a source: what is behind the message in it, of whatever key, waits in the source. Accepted
//! messages of all keys go on.
//!
//! The message counts as accepted: a closed door lets it in, a dispatch that stops drops it, once. Nothing outstanding
//! means that everything is free, so it never waits alone.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::accept::Start;
use super::pull::take;
use super::{Core, Input};
use crate::contain::contain;
use crate::cx::Cx;
use crate::engine::ErrorOf;
use crate::error::{Cause, Outcome};
use crate::intake::Place;
use crate::turn::Lost;
use crate::weigh::TooMuch;

/// Whether a message may come in.
enum Room<E> {
    /// It may; its key is there.
    At(Place),
    /// Not before something comes back.
    NotNow,
    /// Never.
    Never(Cause<E>),
}

/// A message without room, with its key and the key's hash.
pub(super) struct Aside<K, M> {
    key: K,
    hash: u64,
    message: M,
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
    /// Lets a message in that has room; one that has none now is set aside, and one that never has ends the dispatch.
    #[inline(never)]
    pub(super) unsafe fn let_in_if_room(
        &self,
        cx: &Cx<'_>,
        key: K,
        hash: u64,
        message: &mut Option<M>,
        start: Start,
        place: Place,
    ) -> Result<(), Lost<ErrorOf<F>>> {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let brought = message.as_ref().expect("a step that brought a message left it beside it");
            match self.room(cx, hash, &key, brought, place) {
                Room::At(place) => return self.let_in::<true>(cx, key, hash, message, start, place),
                Room::NotNow => self.set_aside(key, hash, take(message)),
                Room::Never(cause) => {
                    self.refuse(cx, take(message), cause);
                    cx.drop_user("a key", key);
                }
            }
        }
        Ok(())
    }

    /// Whether a message whose key was found there may come in, after a look at what came back if it has no room.
    unsafe fn room(&self, cx: &Cx<'_>, hash: u64, key: &K, message: &M, place: Place) -> Room<ErrorOf<F>> {
        let bytes = match self.weigh(key, message) {
            Ok(bytes) => bytes,
            Err(cause) => return Room::Never(cause),
        };
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let lacks = |place| self.side(|side| side.intake.lack(place, bytes).is_some());
            let mut place = place;
            if lacks(place) {
                if !self.take_back(cx) {
                    return Room::NotNow;
                }
                place = match self.find_anew(cx, hash, key) {
                    Ok(place) => place,
                    Err(message) => return Room::Never(Cause::KeyPanicked { message }),
                };
                if lacks(place) {
                    return Room::NotNow;
                }
            }
            self.side(|side| side.arriving = bytes);
            Room::At(place)
        }
    }

    /// Where a key is, on a worker that can run it: asked for again, off the way that most messages go.
    #[inline(never)]
    pub(super) unsafe fn find_anew(&self, cx: &Cx<'_>, hash: u64, key: &K) -> Result<Place, String> {
        let find = || {
            contain(|| {
                // SAFETY: rule 5 of seat/README.md: this function's contract; the intake is only read.
                self.side.with(|side| unsafe { self.engine.find(&(*side).intake, hash, key) })
            })
        };
        let found = find();
        match found {
            Ok(Place::Live { worker, .. }) if self.engine.shared.workers[worker].sleeper().is_gone() => {
                // What the dead worker still held is dropped; then its keys are free.
                self.engine.shared.sweep(worker);
                // SAFETY: rule 5 of seat/README.md: this function's contract.
                let _ = unsafe { self.take_back(cx) };
                find()
            }
            found => found,
        }
    }

    /// What a message weighs with its key. The weigher is the user's and may panic.
    fn weigh(&self, key: &K, message: &M) -> Result<usize, Cause<ErrorOf<F>>> {
        let Some(scale) = &self.scale else { return Ok(0) };
        match contain(|| scale.weigh(key, message)) {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(TooMuch::Key { bytes, max })) => Err(Cause::KeyTooLong { bytes, max }),
            Ok(Err(TooMuch::Weight { bytes, max })) => {
                let key =
                    contain(|| format!("{key:?}")).unwrap_or_else(|_| "<its Debug panicked>".to_owned());
                Err(Cause::TooHeavy { key, bytes, max })
            }
            Err(message) => Err(Cause::KeyPanicked { message }),
        }
    }

    /// Sets a message aside that has no room, with the permit it was asked for.
    #[cold]
    unsafe fn set_aside(&self, key: K, hash: u64, message: M) {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        unsafe {
            self.side(|side| {
                debug_assert!(
                    side.aside.is_none(),
                    "a source is not asked beside a message that waits for room"
                );
                side.budget -= 1;
                side.aside = Some(Aside { key, hash, message });
                if side.input == Input::Ready {
                    side.input = Input::Held;
                }
            });
        }
    }

    /// Tries again to let the message in that was set aside.
    #[inline]
    pub(super) unsafe fn retry_aside(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if self.side(|side| side.aside.is_some()) {
                self.accept_aside(cx);
            }
        }
    }

    #[cold]
    unsafe fn accept_aside(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            let Some(Aside { key, hash, message }) = self.take_aside() else { return };
            // Never in place: this is not the home's turn at its source.
            match self.find_anew(cx, hash, &key) {
                Ok(place) => {
                    let let_in = self.let_in_if_room(cx, key, hash, &mut Some(message), Start::Queued, place);
                    debug_assert!(let_in.is_ok(), "nothing is run where it was set aside");
                }
                Err(panic) => self.refuse(cx, message, Cause::KeyPanicked { message: panic }),
            }
            self.notify_touched();
        }
    }

    /// Drops the message that was set aside: the dispatch is stopping.
    pub(super) unsafe fn discard_aside(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract; the message is taken off before the user's
        // `Drop` runs, so that nobody finds it again.
        unsafe {
            let Some(Aside { key, message, .. }) = self.take_aside() else { return };
            self.side(|side| side.intake.passed_through());
            self.engine.plain(self.home, |plain| plain.tally.discarded += 1);
            cx.drop_user("a message", message);
            cx.drop_user("a key", key);
        }
    }

    /// Takes the message and its permit back; the source may be asked again.
    unsafe fn take_aside(&self) -> Option<Aside<K, M>> {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        unsafe {
            self.side(|side| {
                let aside = side.aside.take()?;
                side.budget += 1;
                if side.input == Input::Held {
                    side.input = Input::Ready;
                }
                Some(aside)
            })
        }
    }
}
