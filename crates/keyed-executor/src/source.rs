//! The `dispatch` door: a source whose intake is a turn of one worker, its *home*.
//!
//! The home polls the source while the window has room, looks each key up in the directory that it owns, and either
//! runs the message where it is (its key is not live, nothing is queued here, and a message costs less than a
//! microsecond), or queues it, here or on another worker. Demand comes back in batches of window/16, as KW-3 says: a
//! window's rest below one batch asks for nothing. Other workers are notified once at the end of the home's turn.
//!
//! The dispatch is over when the source ended and everything accepted came back; its handle learns that last.

mod items;
mod pull;

pub(crate) use items::Items;
use pull::{Polled, Start, Step};

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use crate::completion::Completion;
use crate::credit::{Need, Then};
use crate::cx::Cx;
use crate::dispatch::{Control, Dispatch};
use crate::engine::{Engine, ErrorOf, phase};
use crate::error::{Cause, DispatchError, Outcome};
use crate::executor::Guard;
use crate::intake::Intake;
use crate::lanes::{Lanes, Round, Shut};
use crate::seat::AttachId;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, UnsafeCell, Weak, lock};
use crate::turn::Lost;
use crate::wake::{SOURCE, WakeCell, waker};
use crate::worker::Worker;

/// The one ticket of a source on its credit.
const HOME: u64 = 0;

/// What the source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// It may have a message.
    Ready,
    /// It will wake its cell.
    Waiting,
    /// A thread that lost the home's seat is inside it; what it brings will be handed in.
    Detached,
    /// It is gone: ended, failed or shut.
    Gone,
}

/// What the home owns beside its lane: rule 5 of seat/README.md.
struct Home<K> {
    intake: Intake,
    cell: Option<Arc<WakeCell>>,
    input: Input,
    /// Messages that may still be asked for.
    budget: usize,
    /// Messages that ended since the budget was last raised.
    earned: usize,
    /// Completions taken back, as the credit counts them.
    came_back: u64,
    /// Keys that were forgotten, to be dropped as user code; kept for its room.
    dead: Vec<K>,
    /// Measured cost of a step at the source, and the steps since it was measured.
    step_cost: u64,
    unmeasured_steps: u32,
    /// Workers that were given something in this turn.
    touched: Box<[bool]>,
    /// The executor was closed before the source had ended.
    shut_early: bool,
    /// The source is being polled.
    polling: bool,
    /// The key of the message that runs in place.
    in_place: Option<(K, u64)>,
    /// The source is to be dropped as soon as nobody is inside it.
    unwanted: bool,
}

/// What a step of the home brings, unless its thread lost the seat meanwhile.
type OnSeat<T, K, M, E> = Result<T, LostAt<K, M, E>>;

/// Where a thread was when it lost the home's seat, and what it brought back.
enum LostAt<K, M, E> {
    Message(Lost<E>),
    Source(Polled<K, M, E>),
}

struct Core<S, KF, K, M, H, F: Future>
where
    F::Output: Outcome,
{
    engine: Engine<K, M, H, F>,
    home: usize,
    key: KF,
    /// Pinned: dropped where it is.
    source: UnsafeCell<Option<S>>,
    side: UnsafeCell<Home<K>>,
    /// What a thread that lost the seat inside the source brought.
    handed_step: Mutex<Option<Polled<K, M, ErrorOf<F>>>>,
    closing: AtomicBool,
    /// The home's thread died: nobody will end this dispatch.
    orphaned: AtomicBool,
    completion: Arc<Completion<ErrorOf<F>>>,
    me: Weak<Self>,
}

// SAFETY: rule 5 of seat/README.md: source and side are touched by the home's seat only; the key selector is called by
// the home only, but dropped by any thread.
unsafe impl<S: Send, KF: Send, K: Send + Sync, M: Send, H: Send + Sync, F: Future + Send> Send
    for Core<S, KF, K, M, H, F>
where
    F::Output: Outcome,
{
}
// SAFETY: as above.
unsafe impl<S: Send, KF: Send, K: Send + Sync, M: Send, H: Send + Sync, F: Future + Send> Sync
    for Core<S, KF, K, M, H, F>
where
    F::Output: Outcome,
{
}

/// Starts a dispatch; on an executor that cannot run it the handle tells so.
pub(crate) fn start<S, KF, K, M, H, F>(
    guard: Arc<Guard>,
    options: crate::Options,
    source: S,
    key: KF,
    handler: H,
) -> Dispatch<ErrorOf<F>>
where
    S: Stream<Item = Result<M, ErrorOf<F>>> + Send + 'static,
    KF: Fn(&M) -> K + Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    let shared = Arc::clone(guard.shared());
    let completion = Completion::new();
    let refuse = |cause| {
        completion.resolve(Err(DispatchError { cause, ledger: crate::Ledger::default() }));
        Dispatch::ended(Arc::clone(&completion))
    };
    let home = match shared.a_started_worker() {
        Ok(home) => home,
        Err(crate::RejectReason::Closed) => return refuse(Cause::Closed),
        Err(reason) => return refuse(Cause::NoWorker { message: reason.to_string() }),
    };
    let workers = shared.workers.len();
    let core = Arc::new_cyclic(|me| {
        let engine = Engine::new(Arc::clone(&shared), options, handler);
        let side = Home {
            intake: Intake::new(engine.window, workers, home + 1),
            cell: None,
            input: Input::Ready,
            budget: engine.window,
            earned: 0,
            came_back: 0,
            dead: Vec::new(),
            step_cost: 0,
            unmeasured_steps: 0,
            touched: vec![false; workers].into_boxed_slice(),
            shut_early: false,
            polling: false,
            in_place: None,
            unwanted: false,
        };
        Core {
            engine,
            home,
            key,
            source: UnsafeCell::new(Some(source)),
            side: UnsafeCell::new(side),
            handed_step: Mutex::new(None),
            closing: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
            completion: Arc::clone(&completion),
            me: Weak::clone(me),
        }
    });
    let registered: Weak<Core<S, KF, K, M, H, F>> = Arc::downgrade(&core);
    if !shared.register(registered) {
        return refuse(Cause::Closed);
    }
    core.engine.attach(home, Arc::clone(&core) as Arc<dyn Lanes>);
    core.engine.notify(home);
    Dispatch::running(completion, core, guard)
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
    /// Works on what the home owns.
    ///
    /// # Safety
    /// Rule 5 of seat/README.md: the caller holds the home's seat; `access` calls no user code and not this function.
    #[inline]
    unsafe fn side<R>(&self, access: impl FnOnce(&mut Home<K>) -> R) -> R {
        // SAFETY: the caller's contract.
        self.side.with_mut(|side| access(unsafe { &mut *side }))
    }

    /// One round of the home: queued work, then the source.
    #[inline]
    unsafe fn home_round(&self, cx: &Cx<'_>) -> OnSeat<Round, K, M, ErrorOf<F>> {
        // SAFETY: rules 1 and 5 of seat/README.md: the caller holds the home's seat.
        unsafe {
            let phase = self.engine.see_phase(cx);
            if phase == phase::ENDED {
                return Ok(Round::Ended);
            }
            self.take_back(cx);
            if self.closing.load(Ordering::Relaxed) && self.side(|side| side.input != Input::Gone) {
                self.side(|side| side.shut_early = true);
                self.drop_source(cx);
            }
            if phase == phase::STOPPING {
                self.drop_source(cx);
                if self.engine.lane_holds_something(cx) {
                    self.engine.discard_lane(cx);
                    self.take_back(cx);
                }
                return Ok(if self.ended(cx) { Round::Ended } else { Round::Dry });
            }
            self.engine.run_lane(cx).map_err(LostAt::Message)?;
            let more = self.pull(cx)?;
            if self.ended(cx) {
                return Ok(Round::Ended);
            }
            // After the pull: what it queued here, or what ran in place and woke itself, is ready too.
            let backlog_ns = self.engine.backlog(self.home);
            Ok(if more || backlog_ns > 0 { Round::Busy { backlog_ns } } else { Round::Dry })
        }
    }

    /// Takes completions back and raises the budget by whole batches; true if anything came back.
    #[inline]
    unsafe fn take_back(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        let came_back = unsafe {
            self.side(|side| {
                let before = side.intake.returned;
                self.engine.reclaim(&mut side.intake, &mut side.dead);
                let came_back = side.intake.returned - before;
                side.came_back += came_back;
                side.earn(came_back as usize, self.engine.batch);
                came_back > 0
            })
        };
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        while let Some(key) = unsafe { self.side(|side| side.dead.pop()) } {
            cx.drop_user("a key", key);
        }
        came_back
    }

    /// Discards a message that cannot be taken in, and ends the dispatch.
    #[cold]
    unsafe fn refuse(&self, cx: &Cx<'_>, message: M, cause: Cause<ErrorOf<F>>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.side(|side| side.intake.passed_through());
            self.engine.plain(self.home, |plain| plain.tally.discarded += 1);
            cx.drop_user("a message", message);
            self.fail(cx, cause);
        }
    }

    #[cold]
    unsafe fn fail(&self, cx: &Cx<'_>, cause: Cause<ErrorOf<F>>) {
        self.engine.stop(cause);
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        unsafe { self.drop_source(cx) };
    }

    /// Drops the source and shuts the door; once.
    #[cold]
    unsafe fn drop_source(&self, cx: &Cx<'_>) {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        let input = unsafe {
            self.side(|side| match side.input {
                Input::Detached => {
                    side.unwanted = true;
                    Input::Detached
                }
                _ => std::mem::replace(&mut side.input, Input::Gone),
            })
        };
        // One that somebody is inside of is dropped when that thread is back.
        if matches!(input, Input::Gone | Input::Detached) {
            return;
        }
        let dropped = cx.user(|| {
            // SAFETY: rules 5 and 9 of seat/README.md: the input is Gone, so nobody polls the source any more; it is
            // dropped in its place.
            self.source.with_mut(|source| unsafe { *source = None });
        });
        if let Err(panic) = dropped {
            tracing::error!(label = &*self.engine.options.label, panic, "dropping the source panicked");
        }
        self.engine.shared.intake_closed();
    }

    /// Ends the dispatch if nothing of it is left.
    #[inline]
    unsafe fn ended(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 5 of seat/README.md: this function's contract.
        unsafe {
            if self.side(|side| side.input != Input::Gone || side.intake.outstanding() > 0) {
                return false;
            }
            self.finish(cx);
        }
        true
    }

    #[cold]
    unsafe fn finish(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        let (accepted, shut_early) = unsafe {
            self.engine.publish(cx, Then::Dry);
            self.side(|side| (side.intake.accepted, side.shut_early))
        };
        let ledger = self.engine.ledger(accepted);
        let cause = self.engine.take_failure().or(shut_early.then_some(Cause::Closed));
        self.engine.end();
        let result = match cause {
            None => Ok(ledger),
            Some(cause) => Err(DispatchError { cause, ledger }),
        };
        // The waker of whoever waits is theirs: user code.
        if let Err(panic) = cx.user(|| self.completion.resolve(result)) {
            tracing::error!(
                label = &*self.engine.options.label,
                panic,
                "waking who awaits a dispatch panicked"
            );
        }
    }

    /// The home runs dry: what it waits for besides its source.
    unsafe fn settle_home(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.publish(cx, Then::Dry);
            if self.take_back(cx) {
                return true;
            }
            let batch = self.engine.batch as u64;
            let half = (self.engine.window / 2).max(self.engine.batch) as u64;
            let wanted = self.side(|side| {
                let outstanding = side.intake.outstanding();
                let lasts = side.input == Input::Gone || !self.engine.is_running();
                // The end takes everything; a full window asks for what makes a batch of demand (KW-3); and keys are
                // forgotten within one batch while the source has nothing.
                let earned = if side.budget == 0 { side.earned as u64 } else { 0 };
                let need = |messages: u64| side.came_back + messages.saturating_sub(earned).max(1);
                match outstanding {
                    0 => None,
                    all if lasts => Some(Need { busy: need(all), dry: need(all), empty_at: None }),
                    _ => Some(Need { busy: need(half), dry: need(batch), empty_at: None }),
                }
            });
            let Some(need) = wanted else {
                self.engine.credit.forget(HOME);
                return false;
            };
            let waker = self.side(|side| side.cell.as_ref().map(waker));
            let Some(waker) = waker else { return false };
            self.engine.credit.register(HOME, need, &waker) > self.side(|side| side.came_back)
                && self.take_back(cx)
        }
    }

    fn me(&self) -> Arc<dyn Lanes> {
        self.me.upgrade().expect("a core that is used is alive")
    }

    /// Leaves what a thread brought that lost the seat, and wakes the seat's new occupant for it.
    fn hand_in(&self, worker: &Arc<Worker>, lost: LostAt<K, M, ErrorOf<F>>) {
        // Before anything is left: once it is taken, nothing else keeps this core alive for this thread.
        let me = self.me();
        match lost {
            LostAt::Message(lost) => self.engine.hand_in(lost),
            LostAt::Source(polled) => *lock(&self.handed_step) = Some(polled),
        }
        self.engine.shared.tell_handed_in(worker, me);
    }

    /// Acts on what was polled by a thread that lost the seat meanwhile.
    unsafe fn take_handed_step(&self, cx: &Cx<'_>) {
        let Some(polled) = lock(&self.handed_step).take() else { return };
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract; nobody is inside the source any more.
        unsafe {
            let unwanted = self.side(|side| {
                side.input = Input::Ready;
                std::mem::replace(&mut side.unwanted, false)
            });
            if unwanted || !self.engine.is_running() {
                if let Ok(Step::Item { message, .. }) = polled {
                    self.side(|side| side.intake.passed_through());
                    self.engine.plain(self.home, |plain| plain.tally.discarded += 1);
                    cx.drop_user("a message", message);
                }
                self.drop_source(cx);
                return;
            }
            // Never in place: this is not the home's turn at its source.
            let stepped = self.step(cx, polled, Start::Queued);
            debug_assert!(stepped.is_ok(), "nothing is run where it was handed in");
        }
    }
}

impl<K> Home<K> {
    /// Messages ended; the budget goes up by all that ended once they are a batch (KW-3).
    #[inline]
    fn earn(&mut self, ended: usize, batch: usize) {
        self.earned += ended;
        if self.earned >= batch {
            self.budget += std::mem::take(&mut self.earned);
        }
    }
}

impl<S, KF, K, M, H, F> Lanes for Core<S, KF, K, M, H, F>
where
    S: Stream<Item = Result<M, ErrorOf<F>>> + Send + 'static,
    KF: Fn(&M) -> K + Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    unsafe fn attached(&self, cx: &Cx<'_>, id: AttachId) {
        let worker = cx.worker.index();
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.plain(worker, |plain| plain.attached = Some(id));
            if worker == self.home {
                let cell = WakeCell::new(Arc::clone(cx.worker), id, SOURCE);
                self.side(|side| side.cell = Some(cell));
            }
        }
    }

    unsafe fn round(&self, cx: &Cx<'_>) -> Round {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            let worker = cx.worker.index();
            let round = if worker == self.home {
                self.home_round(cx)
            } else {
                self.engine.lane_round(cx).map_err(LostAt::Message)
            };
            let round = match round {
                Ok(round) => round,
                Err(lost) => {
                    self.hand_in(cx.worker, lost);
                    return Round::Lost;
                }
            };
            if worker == self.home {
                return round;
            }
            let orphaned = self.orphaned.load(Ordering::Acquire) && !self.engine.lane_holds_something(cx);
            if orphaned { Round::Ended } else { round }
        }
    }

    unsafe fn wake(&self, cx: &Cx<'_>, entry: u32) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            if entry != SOURCE {
                self.engine.woken(cx, entry);
                return;
            }
            self.side(|side| {
                if side.input == Input::Waiting {
                    side.input = Input::Ready;
                }
            });
        }
    }

    unsafe fn settle(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe {
            if cx.worker.index() == self.home {
                return self.settle_home(cx);
            }
            self.engine.publish(cx, Then::Dry);
        }
        false
    }

    unsafe fn rest(&self, _cx: &Cx<'_>) {
        // The home takes its keys back itself, in `settle_home`.
    }

    unsafe fn has_news(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.lane_has_news(cx)
                || (cx.worker.index() == self.home
                    && self.closing.load(Ordering::Relaxed)
                    && self.side(|side| side.input != Input::Gone))
        }
    }

    unsafe fn waits(&self, cx: &Cx<'_>) -> bool {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.lane_waits(cx)
                || (cx.worker.index() == self.home
                    && (self.closing.load(Ordering::Relaxed)
                        || self.side(|side| {
                            side.intake.returned_elsewhere(&self.engine.lanes)
                                || (side.input == Input::Ready && side.budget > 0)
                        })))
        }
    }

    unsafe fn adopt(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.adopt_lane(cx);
            if cx.worker.index() != self.home {
                return;
            }
            if let Some(entry) = self.settle_in_place(cx) {
                self.engine.detach(self.home, entry);
            }
            self.side(|side| {
                if std::mem::replace(&mut side.polling, false) {
                    side.input = Input::Detached;
                }
            });
            self.notify_touched();
        }
    }

    unsafe fn handed_in(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.take_handed_in(cx);
            if cx.worker.index() == self.home {
                self.take_handed_step(cx);
            }
        }
    }

    unsafe fn discard(&self, cx: &Cx<'_>) {
        // SAFETY: rule 1 of seat/README.md: this function's contract.
        unsafe { self.engine.discard_lane(cx) };
    }

    unsafe fn bury(&self, cx: &Cx<'_>) {
        // SAFETY: rules 1 and 5 of seat/README.md: this function's contract.
        unsafe {
            self.engine.bury_lane(cx);
            if cx.worker.index() != self.home {
                return;
            }
            self.engine.stop(Cause::NoWorker { message: "the source's worker died".to_owned() });
            self.drop_source(cx);
            self.orphaned.store(true, Ordering::Release);
            self.engine.notify_lanes();
            let ledger = self.engine.ledger(self.side(|side| side.intake.accepted));
            let cause = self.engine.take_failure().unwrap_or(Cause::Closed);
            if let Err(panic) = cx.user(|| self.completion.resolve(Err(DispatchError { cause, ledger }))) {
                tracing::error!(panic, "waking who awaits a dispatch panicked");
            }
        }
    }

    fn shut(&self, how: Shut) {
        if how == Shut::Force {
            self.engine.stop(Cause::Closed);
        }
        self.closing.store(true, Ordering::Release);
        self.engine.notify_lanes();
    }
}

impl<S, KF, K, M, H, F> Control for Core<S, KF, K, M, H, F>
where
    S: Send + 'static,
    KF: Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    fn cancel(&self) {
        self.engine.stop(Cause::Cancelled);
    }
}

impl<S, KF, K, M, H, F: Future> Drop for Core<S, KF, K, M, H, F>
where
    F::Output: Outcome,
{
    fn drop(&mut self) {
        // Every key went with its last message; one that is left belongs to a home whose thread died.
        debug_assert!(
            self.orphaned.load(Ordering::Relaxed)
                || self.side.with(|side| {
                    // SAFETY: rule 5 of seat/README.md: nobody else has the core any more.
                    unsafe { (*side).intake.live() == 0 }
                }),
            "a dispatch that ended has no live key"
        );
    }
}
