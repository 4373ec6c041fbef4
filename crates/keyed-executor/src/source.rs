//! The `dispatch` door: a source whose intake is a turn of one worker, its *home*.
//!
//! The home polls the source while the window has room, looks each key up in the directory that it owns, and either
//! runs the message where it is (its key is not live, nothing is queued here, and a message costs less than a
//! microsecond), or queues it, here or on another worker. Demand comes back in batches of window/16, as KW-3 says: a
//! window's rest below one batch asks for nothing. Other workers are notified once at the end of the home's turn.
//!
//! The dispatch is over when the source ended and everything accepted came back; its handle learns that last.

mod accept;
mod aside;
mod home;
mod in_place;
mod items;
mod lanes;
mod noted;
mod pull;

use aside::Aside;
pub(crate) use items::Items;
use pull::Brought;

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crossbeam_utils::CachePadded;
use futures_core::Stream;

use crate::completion::Completion;
use crate::dispatch::{Control, Dispatch};
use crate::engine::{Engine, ErrorOf};
use crate::error::{Cause, DispatchError, Outcome};
use crate::executor::Guard;
use crate::hot::{Samples, Sketch};
use crate::intake::Intake;
use crate::lanes::Lanes;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, UnsafeCell, Weak};
use crate::turn::Lost;
use crate::wake::WakeCell;
use crate::weigh::{Scale, Weigh};

/// The one ticket of a source on its credit.
const HOME: u64 = 0;

/// What the source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// It may have a message.
    Ready,
    /// It will wake its cell.
    Waiting,
    /// It is not asked until its last message found room.
    Held,
    /// A thread that lost the home's seat is inside it; what it brings will be handed in.
    Detached,
    /// It is gone: ended, failed or shut.
    Gone,
}

/// What the home owns beside its lane: rule 5 of seat/README.md.
struct Home<K, M> {
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
    /// What a message was last heard to cost on each other worker, 0 before.
    heard: Box<[u64]>,
    /// The executor was closed before the source had ended.
    shut_early: bool,
    /// The source is being polled.
    polling: bool,
    /// The key of the message that runs in place.
    in_place: Option<(K, u64)>,
    /// The message that found no room.
    aside: Option<Aside<K, M>>,
    /// What the message weighs that is being let in; means nothing unless messages are weighed.
    arriving: usize,
    /// The source is to be dropped as soon as nobody is inside it.
    unwanted: bool,
    /// The auditor's cell of the message that runs in place.
    audited: u32,
    /// Whether there is an auditor or a bound beside the window: something to do for each message.
    is_careful: bool,
    /// The hot keys of its source.
    hot: Sketch,
}

/// What a step of the home brings, unless its thread lost the seat meanwhile.
type OnSeat<T, K, M, E> = Result<T, LostAt<K, M, E>>;

/// Where a thread was when it lost the home's seat, and what it brought back.
enum LostAt<K, M, E> {
    Message(Lost<E>),
    Source(Brought<K, M, E>),
}

struct Core<S, KF, K, M, H, F: Future>
where
    F::Output: Outcome,
{
    engine: Engine<K, M, H, F>,
    home: usize,
    key: KF,
    scale: Option<Scale<K, M>>,
    /// Pinned: dropped where it is.
    source: CachePadded<UnsafeCell<Option<S>>>,
    /// Written with every message, so apart from what the other workers read; so is the source.
    side: CachePadded<UnsafeCell<Home<K, M>>>,
    /// What a thread that lost the seat inside the source brought.
    handed_step: Mutex<Option<Brought<K, M, ErrorOf<F>>>>,
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
pub(crate) fn start<W, S, KF, K, M, H, F>(
    guard: Arc<Guard>,
    options: crate::Options<W>,
    source: S,
    key: KF,
    handler: H,
) -> Dispatch<ErrorOf<F>>
where
    W: Weigh<K, M>,
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
    let (scale, options) = options.take_scale();
    let core = Arc::new_cyclic(|me| {
        let engine = Engine::new(Arc::clone(&shared), options, scale.is_some(), Samples::Source, handler);
        let side = Home {
            intake: Intake::new(engine.window, engine.limits, workers, home + 1),
            cell: None,
            input: Input::Ready,
            budget: engine.window,
            earned: 0,
            came_back: 0,
            dead: Vec::new(),
            step_cost: 0,
            unmeasured_steps: 0,
            touched: vec![false; workers].into_boxed_slice(),
            heard: vec![0; workers].into_boxed_slice(),
            shut_early: false,
            polling: false,
            in_place: None,
            aside: None,
            arriving: 0,
            unwanted: false,
            audited: crate::mailbox::NONE,
            is_careful: engine.limits.is_on() || engine.auditor.is_some(),
            hot: Sketch::default(),
        };
        Core {
            engine,
            home,
            key,
            scale,
            source: CachePadded::new(UnsafeCell::new(Some(source))),
            side: CachePadded::new(UnsafeCell::new(side)),
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

impl<S, KF, K, M, H, F> Control for Core<S, KF, K, M, H, F>
where
    S: Stream<Item = Result<M, ErrorOf<F>>> + Send + 'static,
    KF: Fn(&M) -> K + Send + 'static,
    K: Hash + Eq + Debug + Send + Sync + 'static,
    M: Send + 'static,
    H: Fn(M) -> F + Send + Sync + 'static,
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    fn cancel(&self) {
        self.engine.stop(Cause::Cancelled);
    }

    fn metrics(&self) -> crate::DispatchMetrics {
        self.engine.shared.figures(&[self.me()]).pop().unwrap_or_default()
    }

    fn hot_keys(&self, limit: usize) -> Vec<crate::HotKey> {
        self.engine.shared.hot_keys(&[self.me()], limit)
    }

    fn inspect(&self, limit: usize) -> crate::Inspection {
        self.engine.shared.inspect(&[self.me()], limit)
    }
}

impl<S, KF, K, M, H, F: Future> Drop for Core<S, KF, K, M, H, F>
where
    F::Output: Outcome,
{
    fn drop(&mut self) {
        // Every key went with its last message; one that is left belongs to a home whose thread died. Models do not see
        // that the last count of an `Arc` comes after the others.
        debug_assert!(
            cfg!(keyed_loom)
                || self.orphaned.load(Ordering::Relaxed)
                || self.side.with(|side| {
                    // SAFETY: rule 5 of seat/README.md: nobody else has the core any more.
                    unsafe { (*side).intake.live() == 0 }
                }),
            "a dispatch that ended has no live key"
        );
    }
}
