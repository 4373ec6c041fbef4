//! `Run`: what the source, the groups and the handle of one dispatch share.
//!
//! Owns the ledger, the window, the groups that were used so far, and the end. Invariants: the phase only rises; `open`
//! counts the unfinished messages and one for the source, and whoever brings it to 0 ends the run; every accepted message
//! is counted once as handled, failed, cancelled or discarded. It knows neither handler nor source, those are tasks.

use keyed_executor::{Cause, DispatchError, Ledger, OnFailure, Options};

use crate::completion::Completion;
use crate::contain::drop_contained;
use crate::group::Group;
use crate::scheduler::{Control, Lease};
use crate::sync::{Arc, AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Mutex, OnceLock, Ordering, lock};
use crate::task::Task;

/// How far a run is; a later phase never goes back to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Open,
    /// The source is to be let go; what was accepted goes on.
    Quiescing,
    /// Nothing is started any more.
    Cancelled,
}

impl Phase {
    fn of(word: u8) -> Self {
        match word {
            0 => Self::Open,
            1 => Self::Quiescing,
            _ => Self::Cancelled,
        }
    }
}

/// How one message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Handled,
    Failed,
    Cancelled,
    Discarded,
}

pub(crate) struct Run<M, E> {
    pub(crate) label: String,
    pub(crate) on_failure: OnFailure,
    window: usize,
    /// Once the window was full, the source goes on when so few are unfinished: a sixteenth of the window came back.
    resume_at: usize,
    phase: AtomicU8,
    open: AtomicUsize,
    source_waits: AtomicBool,
    source: OnceLock<Arc<Task>>,
    groups: Mutex<Vec<Arc<Group<M>>>>,
    counts: Counts,
    cause: Mutex<Option<Cause<E>>>,
    leases: Mutex<Vec<Lease>>,
    pub(crate) completion: Arc<Completion<E>>,
}

#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    handled: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    discarded: AtomicU64,
}

impl<M: Send + 'static, E: Send + 'static> Run<M, E> {
    /// A run that is open, with its source counted.
    pub(crate) fn new(options: Options) -> Arc<Self> {
        let limits = keyed_executor::limits::MAX_IN_FLIGHT;
        let window = options.max_in_flight.unwrap_or(keyed_executor::defaults::MAX_IN_FLIGHT);
        let window = window.clamp(*limits.start(), *limits.end());
        Arc::new(Self {
            label: options.label,
            on_failure: options.on_failure,
            window,
            resume_at: window - (window / 16).max(1),
            phase: AtomicU8::new(0),
            open: AtomicUsize::new(1),
            source_waits: AtomicBool::new(false),
            source: OnceLock::new(),
            groups: Mutex::default(),
            counts: Counts::default(),
            cause: Mutex::new(None),
            leases: Mutex::default(),
            completion: Arc::default(),
        })
    }

    /// Gives it its places on the schedulers' lists, kept until its end.
    pub(crate) fn hold(&self, leases: Vec<Lease>) {
        *lock(&self.leases) = leases;
    }

    /// Starts polling the source.
    pub(crate) fn begin(&self, source: Arc<Task>) {
        let source = self.source.get_or_init(|| source);
        if self.phase() == Phase::Cancelled {
            // The cancel may have come before the task was in its place.
            source.cancel();
        } else {
            source.schedule();
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        // SeqCst, here and in `rise`: one order with the groups' list, so that a group that is added late is seen by the
        // cancel or sees it.
        Phase::of(self.phase.load(Ordering::SeqCst))
    }

    fn rise(&self, to: Phase) -> Phase {
        Phase::of(self.phase.fetch_max(to as u8, Ordering::SeqCst))
    }

    // === the window ===

    /// Whether the source may be polled. If not, whoever makes room has it polled again.
    pub(crate) fn has_room(&self) -> bool {
        // SeqCst throughout: the source says that it waits and then looks at `open`; who finishes lowers `open` and then
        // looks whether the source waits. One of them sees the other.
        let waited = self.source_waits.load(Ordering::SeqCst);
        let limit = if waited { self.resume_at } else { self.window - 1 };
        if self.in_flight() <= limit {
            self.source_waits.store(false, Ordering::SeqCst);
            return true;
        }
        self.source_waits.store(true, Ordering::SeqCst);
        let room = self.in_flight() <= self.resume_at;
        if room {
            self.source_waits.store(false, Ordering::SeqCst);
        }
        room
    }

    /// Unfinished messages while the source is counted too.
    fn in_flight(&self) -> usize {
        self.open.load(Ordering::SeqCst).saturating_sub(1)
    }

    // === messages ===

    /// Counts a message that came from the source.
    pub(crate) fn accept(&self) {
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts how an accepted message ended, and gives its place back.
    pub(crate) fn finish(&self, ended: Ended) {
        let count = match ended {
            Ended::Handled => &self.counts.handled,
            Ended::Failed => &self.counts.failed,
            Ended::Cancelled => &self.counts.cancelled,
            Ended::Discarded => &self.counts.discarded,
        };
        // Relaxed: published by the change of `open` that follows.
        count.fetch_add(1, Ordering::Relaxed);
        self.leave();
    }

    /// Drops a message that no handler will see.
    pub(crate) fn discard(&self, message: M) {
        drop_contained("a message", message);
        self.finish(Ended::Discarded);
    }

    /// The source is gone.
    pub(crate) fn source_ended(&self) {
        self.leave();
    }

    fn leave(&self) {
        let before = self.open.fetch_sub(1, Ordering::SeqCst);
        if before == 1 {
            return self.end();
        }
        let in_flight = before.saturating_sub(2);
        let waits = self.source_waits.load(Ordering::SeqCst) && in_flight <= self.resume_at;
        if waits && self.source_waits.swap(false, Ordering::SeqCst) {
            if let Some(source) = self.source.get() {
                source.schedule();
            }
        }
    }

    // === groups ===

    /// Takes a new group in; one that comes after the cancel is cancelled here.
    pub(crate) fn add(&self, group: &Arc<Group<M>>) {
        lock(&self.groups).push(Arc::clone(group));
        if self.phase() == Phase::Cancelled {
            self.cancel_group(group);
        }
    }

    fn cancel_group(&self, group: &Group<M>) {
        for message in group.close() {
            self.discard(message);
        }
        group.cancel();
    }

    // === the end ===

    /// Keeps the first cause of a bad end. That a source was let go is the weakest: what fails meanwhile is told instead.
    pub(crate) fn blame(&self, cause: Cause<E>) {
        let quiescing = self.phase() == Phase::Quiescing;
        let replaced = {
            let mut first = lock(&self.cause);
            match &*first {
                None => first.replace(cause),
                Some(Cause::Closed) if quiescing => first.replace(cause),
                Some(_) => Some(cause),
            }
        };
        let Some(later) = replaced else { return };
        tracing::debug!(dispatch = self.label, cause = kind_of(&later), "one more cause of a dispatch's end");
        drop_contained("a handler's error", later);
    }

    /// Ends the run for this cause: waiting messages are dropped here; the source and running handlers are dropped here,
    /// or by their worker after the step that they are in.
    pub(crate) fn abort(&self, cause: Cause<E>) {
        self.blame(cause);
        if self.rise(Phase::Cancelled) == Phase::Cancelled {
            return;
        }
        let groups = lock(&self.groups).clone();
        for group in groups {
            self.cancel_group(&group);
        }
        if let Some(source) = self.source.get() {
            source.cancel();
        }
    }

    /// Nothing is open any more.
    fn end(&self) {
        // Nobody starts anything from here on; the groups' tasks, which wait for messages, let go of this run.
        self.rise(Phase::Cancelled);
        let groups = std::mem::take(&mut *lock(&self.groups));
        for group in groups {
            group.cancel();
        }
        let ledger = self.ledger();
        let cause = lock(&self.cause).take();
        self.completion.resolve(match cause {
            None => Ok(ledger),
            Some(cause) => Err(DispatchError { cause, ledger }),
        });
        let leases = std::mem::take(&mut *lock(&self.leases));
        drop(leases);
    }

    fn ledger(&self) -> Ledger {
        // Relaxed: every count was published by the change of `open` that followed it.
        Ledger {
            accepted: self.counts.accepted.load(Ordering::Relaxed),
            handled: self.counts.handled.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            cancelled: self.counts.cancelled.load(Ordering::Relaxed),
            discarded: self.counts.discarded.load(Ordering::Relaxed),
        }
    }
}

impl<M: Send + 'static, E: Send + 'static> Control for Run<M, E> {
    fn quiesce(&self) {
        self.rise(Phase::Quiescing);
        if let Some(source) = self.source.get() {
            source.schedule();
        }
    }

    fn force(&self) {
        self.abort(Cause::Closed);
    }

    fn cancel(&self) {
        self.abort(Cause::Cancelled);
    }
}

fn kind_of<E>(cause: &Cause<E>) -> &'static str {
    match cause {
        Cause::Source(_) => "the source failed",
        Cause::SourcePanicked { .. } => "the source panicked",
        Cause::KeyPanicked { .. } => "selecting a group panicked",
        Cause::KeyTooLong { .. } | Cause::TooHeavy { .. } => "a message is too large",
        Cause::Handler { .. } => "a handler failed",
        Cause::HandlerPanicked { .. } => "a handler panicked",
        Cause::NoWorker { .. } => "no worker",
        Cause::Closed => "closed",
        Cause::Cancelled => "cancelled",
    }
}
