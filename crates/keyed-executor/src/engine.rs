//! What both doors of a dispatch share: its messages, its lanes and its life.
//!
//! An engine owns the arrays (slots, keys, places), one lane per worker, the credit and the first failure. What is done
//! with a slot is `engine/slots.rs`, with a key `engine/keys.rs`; what was accepted reaches its worker through
//! `engine/handover.rs`, and how it ends is `engine/life.rs`. The doors (`source.rs`, `keyspace.rs`) own an intake beside it
//! and decide what is accepted; `turn.rs` runs what was accepted.
//! Who may touch which part when is `seat/README.md`. An engine never decides where a key goes.

mod handover;
mod keys;
mod life;
mod slots;

pub(crate) use keys::text_of;

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
use crate::lane::{Lane, Plain};
use crate::mailbox::{Mailbox, NONE};
use crate::options::{Audit, Options};
use crate::shared::Shared;
use crate::sync::{Arc, AtomicU8, AtomicU64, Mutex, Ordering, UnsafeCell};
use crate::turn::Lost;

/// The life of a dispatch: it only goes up.
pub(crate) mod phase {
    /// Messages are started.
    pub(crate) const RUNNING: u8 = 0;
    /// Nothing is started any more: it failed, was cancelled or forced. Every lane drops what it has.
    pub(crate) const STOPPING: u8 = 1;
    /// Nothing is left; its workers may forget it.
    pub(crate) const ENDED: u8 = 2;
}

/// The handler's error type.
pub(crate) type ErrorOf<F> = <<F as Future>::Output as Outcome>::Error;

/// Where a mailbox and its running future live; never moved while a future is in it. Laid out by half lines: whole ones
/// were no faster, and a live key would take up to 32 bytes more.
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
    /// Written by every worker that publishes, so on lines of its own.
    counts: CachePadded<Counts>,
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
            counts: CachePadded::default(),
            refusals: Refusals::default(),
            auditor,
            samples,
            shared,
        }
    }

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
        let counters = cx.worker.counters();
        for (count, total) in [
            (tally.handled + tally.failed, &counters.messages),
            (tally.in_place, &counters.in_place),
            (tally.turns, &counters.turns),
            (tally.placements, &counters.placements),
            (tally.discarded, &counters.discards),
        ] {
            if count > 0 {
                total.add(count);
            }
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
