//! What both doors of a dispatch share: its messages, its lanes and its life.
//!
//! An engine owns the arrays (slots, keys, places), one lane per worker, the credit and the first failure. What is done
//! with a slot is `engine/slots.rs`, how it ends is `engine/life.rs`. The doors
//! (`source.rs`, `keyspace.rs`) own an intake beside it and decide what is accepted; `turn.rs` runs what was accepted.
//! Who may touch which part when is `seat/README.md`. An engine never decides where a key goes.

mod life;
mod slots;

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::audit::Auditor;
use crate::credit::{Credit, Then, Woke};
use crate::cx::Cx;
use crate::error::{Cause, Outcome};
use crate::figures::Refusals;
use crate::hash::KeyHasher;
use crate::hot::Samples;
use crate::intake::bounds::Limits;
use crate::intake::{Intake, Place};
use crate::lane::{Item, Lane, Plain};
use crate::lanes::Lanes;
use crate::mailbox::{Mailbox, NONE};
use crate::options::{Audit, Options};
use crate::placement::{Doing, LaneView};
use crate::shared::Shared;
use crate::sleep::Notified;
use crate::sync::{Arc, AtomicU8, AtomicU64, Mutex, Ordering, UnsafeCell};
use crate::turn::Lost;
use crate::worker::Job;

/// The life of a dispatch: it only goes up.
pub(crate) mod phase {
    /// Messages are started.
    pub(crate) const RUNNING: u8 = 0;
    /// Nothing is started any more: it failed, was cancelled or forced. Every lane drops what it has.
    pub(crate) const STOPPING: u8 = 1;
    /// Nothing is left; its workers may forget it.
    pub(crate) const ENDED: u8 = 2;
}

/// A key as its `Debug` writes it.
#[cold]
pub(crate) fn text_of<K: Debug>(key: &K) -> String {
    crate::contain::contain(|| format!("{key:?}")).unwrap_or_else(|_| "<its Debug panicked>".to_owned())
}

/// The handler's error type.
pub(crate) type ErrorOf<F> = <<F as Future>::Output as Outcome>::Error;

/// Where a mailbox and its running future live; never moved while a future is in it. Half a line is what places are laid
/// out by: neighbours are mostly one worker's (`intake/numbers.rs`).
#[repr(align(32))]
pub(crate) struct Residence<F> {
    pub(crate) mailbox: UnsafeCell<Mailbox>,
    pub(crate) future: UnsafeCell<MaybeUninit<F>>,
}

#[derive(Default)]
struct Counts {
    handled: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    discarded: AtomicU64,
    panicked: AtomicU64,
}

/// Messages, lanes and life of one dispatch.
pub(crate) struct Engine<K, M, H, F: Future>
where
    F::Output: Outcome,
{
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: Options,
    pub(crate) window: usize,
    /// What bounds it beside the window.
    pub(crate) limits: Limits,
    /// Permits come back in batches of this many (KW-3).
    pub(crate) batch: usize,
    pub(crate) handler: H,
    /// A message crosses threads and its link does not: they lie apart, so that no line carries both.
    slots: Box<[UnsafeCell<MaybeUninit<M>>]>,
    links: Box<[UnsafeCell<u32>]>,
    /// When each message reached its worker, in ticks; as the links, a part of its slot.
    reached: Box<[UnsafeCell<u32>]>,
    keys: Box<[UnsafeCell<MaybeUninit<K>>]>,
    pub(crate) places: Box<[Residence<F>]>,
    pub(crate) lanes: Box<[CachePadded<Lane>]>,
    pub(crate) credit: Credit,
    hasher: KeyHasher,
    phase: CachePadded<AtomicU8>,
    failure: Mutex<Option<Cause<ErrorOf<F>>>>,
    /// Outcomes of messages whose threads lost their seats.
    pub(crate) handed_in: Mutex<Vec<Lost<ErrorOf<F>>>>,
    counts: Counts,
    pub(crate) refusals: Refusals,
    pub(crate) auditor: Option<Box<Auditor>>,
    /// Where its hot keys are found.
    pub(crate) samples: Samples,
}

// SAFETY: rules 1 to 7 of seat/README.md say which one thread touches each cell; keys are read by several threads
// (rule 6), so they are Sync; the handler is called by several threads at once, so it is Sync.
unsafe impl<K: Send + Sync, M: Send, H: Send + Sync, F: Future + Send> Send for Engine<K, M, H, F> where
    F::Output: Outcome
{
}
// SAFETY: as above.
unsafe impl<K: Send + Sync, M: Send, H: Send + Sync, F: Future + Send> Sync for Engine<K, M, H, F> where
    F::Output: Outcome
{
}

impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    pub(crate) fn new(
        shared: Arc<Shared>,
        options: Options,
        weighs: bool,
        samples: Samples,
        handler: H,
    ) -> Self {
        let accepted = crate::config::limits::MAX_IN_FLIGHT;
        let window = options
            .max_in_flight
            .unwrap_or(shared.config.max_in_flight)
            .clamp(*accepted.start(), *accepted.end());
        let workers = shared.workers.len();
        let limits = Limits { weighs, ..options.limits(&shared.config, window) };
        let hasher = KeyHasher::new(options.key_hash);
        let slots = window + limits.overflow as usize;
        let auditor = (options.audit == Audit::On).then(|| Box::new(Auditor::new(window, slots)));
        Self {
            options,
            window,
            limits,
            batch: (window / 16).max(1),
            handler,
            slots: (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            links: (0..slots).map(|_| UnsafeCell::new(NONE)).collect(),
            reached: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
            keys: (0..window).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            places: (0..window)
                .map(|_| Residence {
                    mailbox: UnsafeCell::new(Mailbox::new()),
                    future: UnsafeCell::new(MaybeUninit::uninit()),
                })
                .collect(),
            lanes: (0..workers).map(|_| CachePadded::new(Lane::new(slots))).collect(),
            credit: Credit::new(),
            hasher,
            phase: CachePadded::new(AtomicU8::new(phase::RUNNING)),
            failure: Mutex::new(None),
            handed_in: Mutex::new(Vec::new()),
            counts: Counts::default(),
            refusals: Refusals::default(),
            auditor,
            samples,
            shared,
        }
    }

    // ---- keys, with the intake in hand ----

    /// The hash of a key: computed once for each message.
    #[inline]
    pub(crate) fn hash(&self, key: &K) -> u64 {
        self.hasher.hash(key)
    }

    /// Where a key is.
    #[inline]
    pub(crate) fn find(&self, intake: &Intake, hash: u64, key: &K) -> Place {
        #[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
        if crate::tests::breaks::happens(crate::tests::breaks::Break::KeyMissed) {
            return Place::Absent;
        }
        intake.find(hash, |entry| {
            // SAFETY: rule 6 of seat/README.md: the entry is in the directory, so its key was written and not dropped.
            self.keys[entry as usize].with(|known| unsafe { (*known).assume_init_ref() == key })
        })
    }

    /// Makes a key live.
    #[inline]
    pub(crate) fn admit(&self, intake: &mut Intake, hash: u64, key: K, worker: usize) -> u32 {
        let entry = intake.admit(hash, worker);
        // SAFETY: rule 6 of seat/README.md: the entry was free, so nobody reads its key.
        self.keys[entry as usize].with_mut(|place| unsafe { (*place).write(key) });
        entry
    }

    /// A key as its `Debug` writes it, while a message of its entry is outstanding.
    #[cold]
    pub(crate) fn key_text(&self, entry: u32) -> String {
        self.with_key(entry, text_of)
    }

    /// Reads a key while a message of its entry is outstanding.
    pub(crate) fn with_key<R>(&self, entry: u32, read: impl FnOnce(&K) -> R) -> R {
        // SAFETY: rule 6 of seat/README.md: a message of this entry is outstanding.
        self.keys[entry as usize].with(|key| read(unsafe { (*key).assume_init_ref() }))
    }

    /// Takes completions back from every lane; keys without messages are forgotten, permits are free.
    ///
    /// The keys go into `dead`: their `Drop` is the user's, and the caller may hold a lock.
    #[inline]
    pub(crate) fn reclaim(&self, intake: &mut Intake, dead: &mut Vec<K>) {
        intake.since_reclaim = 0;
        for (index, lane) in self.lanes.iter().enumerate() {
            let published = lane.completions.published();
            while intake.reclaimed[index] < published {
                // SAFETY: rule 5 of seat/README.md: the caller owns the intake, so it is the lane's only consumer.
                let item = unsafe { lane.completions.read(intake.reclaimed[index]) };
                intake.reclaimed[index] += 1;
                if intake.give_back(item.entry(), item.slot()) {
                    self.bury_key(item.entry(), dead);
                }
            }
        }
    }

    /// Moves a key that was forgotten out of its place, for the caller to drop.
    #[inline]
    fn bury_key(&self, entry: u32, dead: &mut Vec<K>) {
        // SAFETY: rule 6 of seat/README.md: the entry was just forgotten, its last message came back.
        let key = self.keys[entry as usize].with_mut(|key| unsafe { (*key).assume_init_read() });
        if std::mem::needs_drop::<K>() {
            dead.push(key);
        }
    }

    /// Drops the keys that are still live when the dispatch itself is dropped.
    pub(crate) fn drop_keys(&self, intake: &mut Intake, dead: &mut Vec<K>) {
        self.reclaim(intake, dead);
        let live: Vec<u32> = intake.live_entries().collect();
        for entry in live {
            self.bury_key(entry, dead);
        }
        for key in dead.drain(..) {
            crate::contain::drop_contained("a key", key);
        }
    }

    // ---- handing over, with the intake in hand ----

    /// What the intake knows of a worker's lane.
    #[inline]
    pub(crate) fn view(&self, pushed: u64, worker: usize) -> LaneView {
        let lane = &self.lanes[worker];
        LaneView {
            queued: pushed.saturating_sub(lane.taken.load(Ordering::Relaxed)),
            cost: lane.cost.load(Ordering::Relaxed),
            worker: Doing::Anything,
        }
    }

    /// Chooses the worker of a new key and starts its thread if it has none.
    #[inline]
    pub(crate) fn choose(&self, intake: &mut Intake) -> Option<usize> {
        let Intake { placement, pushed, .. } = intake;
        placement.choose(
            &self.shared.workers,
            |worker| self.view(pushed[worker], worker),
            |worker| self.shared.ensure_started(worker).is_ok(),
        )
    }

    /// Shows a message to its worker, which `me` has to hand the dispatch to first if it never had a message.
    #[inline]
    pub(crate) fn push(
        &self,
        intake: &mut Intake,
        worker: usize,
        item: Item,
        me: impl FnOnce() -> Arc<dyn Lanes>,
    ) {
        let lane = &self.lanes[worker];
        // Relaxed: only the intake's owner writes it.
        if !lane.attached.load(Ordering::Relaxed) {
            self.attach(worker, me());
        }
        intake.add(item.entry());
        let position = intake.pushed[worker];
        // SAFETY: rule 5 of seat/README.md: the caller owns the intake, so it is the inbox's only producer.
        unsafe { lane.inbox.write(position, item) };
        intake.pushed[worker] = position + 1;
        lane.inbox.publish(position + 1);
    }

    /// Hands the dispatch to a worker, before its first message goes there.
    #[cold]
    pub(crate) fn attach(&self, worker: usize, me: Arc<dyn Lanes>) {
        // Release: pairs with the Acquire in `notify_lanes`.
        self.lanes[worker].attached.store(true, Ordering::Release);
        self.shared.workers[worker].jobs().push(Job::Attach(me));
    }

    /// Makes sure a worker looks at what was pushed. If its thread died meanwhile, what it will never take is dropped
    /// here.
    #[inline]
    pub(crate) fn notify(&self, worker: usize) {
        if self.shared.workers[worker].sleeper().notify() == Notified::Gone {
            self.shared.sweep(worker);
        }
    }

    /// Makes every worker that has a lane of this dispatch look at it.
    pub(crate) fn notify_lanes(&self) {
        for (lane, worker) in self.lanes.iter().zip(&self.shared.workers) {
            if lane.attached.load(Ordering::Acquire) {
                let _ = worker.sleeper().notify();
            }
        }
    }

    // ---- the worker's side, with the seat in hand ----

    /// Works on a lane's plain data.
    ///
    /// # Safety
    /// Rule 1 of seat/README.md: the caller holds the seat; `access` calls no user code and not this function.
    #[inline]
    pub(crate) unsafe fn plain<R>(&self, worker: usize, access: impl FnOnce(&mut Plain) -> R) -> R {
        // SAFETY: the caller's contract.
        self.lanes[worker].plain.with_mut(|plain| access(unsafe { &mut *plain }))
    }

    /// Works on a mailbox.
    ///
    /// # Safety
    /// Rule 2 of seat/README.md: the entry is placed on the worker whose seat the caller holds.
    #[inline]
    pub(crate) unsafe fn mailbox<R>(&self, entry: u32, access: impl FnOnce(&mut Mailbox) -> R) -> R {
        // SAFETY: the caller's contract.
        self.places[entry as usize].mailbox.with_mut(|mailbox| access(unsafe { &mut *mailbox }))
    }

    /// Publishes what the lane finished since it last did.
    ///
    /// # Safety
    /// Rule 1 of seat/README.md: the caller holds the seat of `cx`.
    pub(crate) unsafe fn publish(&self, cx: &Cx<'_>, then: Then) {
        let worker = cx.worker.index();
        let lane = &self.lanes[worker];
        // SAFETY: the caller's contract.
        let (tail, count, tally, told) = unsafe {
            self.plain(worker, |plain| {
                let count = plain.written - plain.shown;
                plain.shown = plain.written;
                let told = plain.told_dry && count == 0;
                plain.told_dry = then == Then::Dry;
                (plain.written, count, std::mem::take(&mut plain.tally), told)
            })
        };
        if tally.discarded > 0 {
            cx.worker.counters().discards.add(tally.discarded);
        }
        for (count, total) in [
            (tally.handled, &self.counts.handled),
            (tally.failed, &self.counts.failed),
            (tally.cancelled, &self.counts.cancelled),
            (tally.discarded, &self.counts.discarded),
        ] {
            if count > 0 {
                total.fetch_add(count, Ordering::Relaxed);
            }
        }
        if count > 0 {
            lane.completions.publish(tail);
            // Wakers of waiting submitters are theirs: user code.
            match cx.user(|| self.credit.give(count, then)) {
                // Whoever was woken takes them back.
                // SAFETY: the caller's contract.
                Ok(Woke::Some) => unsafe { self.plain(worker, |plain| plain.rested = plain.shown) },
                Ok(Woke::Nobody) => {}
                Err(panic) => tracing::error!(panic, "waking a submitter panicked"),
            }
        } else if then == Then::Dry && !told {
            // A waiter may have come since the last look for the sake of a busy worker.
            let woke = cx.user(|| self.credit.check(then));
            if let Err(panic) = woke {
                tracing::error!(panic, "waking a submitter panicked");
            }
        }
    }
}
