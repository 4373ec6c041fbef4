//! What one worker and one intake share: two rings of words, and the worker's plain data beside them.
//!
//! `inbox` carries (entry, slot) from the intake's owner to the worker; `completions` carries them back. Each ring has
//! one producer and one consumer and room for every slot, so a push never finds it full: an item holds its slot as long
//! as it is in a ring. Who the two sides are at any time is rule 5 and rule 1 of seat/README.md.
//!
//! The lane moves words. It neither decides where a key goes nor runs anything.

use crossbeam_utils::CachePadded;

use crate::figures::LaneFigures;
use crate::hot::Sketch;
use crate::mailbox::NONE;
use crate::seat::AttachId;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, UnsafeCell};
use crate::wake::WakeCell;

/// An entry and one of its slots in one word, with a mark for an entry that is new to its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item(u64);

const FRESH: u64 = 1 << 63;

impl Item {
    #[inline]
    pub(crate) fn new(entry: u32, slot: u32) -> Self {
        Self(u64::from(entry) << 32 | u64::from(slot))
    }

    /// The first message of an entry on its worker.
    #[inline]
    pub(crate) fn fresh(entry: u32, slot: u32) -> Self {
        Self(Self::new(entry, slot).0 | FRESH)
    }

    #[inline]
    pub(crate) fn entry(self) -> u32 {
        ((self.0 & !FRESH) >> 32) as u32
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn is_fresh(self) -> bool {
        self.0 & FRESH != 0
    }
}

/// A ring of words from one producer to one consumer.
pub(crate) struct Ring {
    tail: CachePadded<AtomicU64>,
    items: Box<[UnsafeCell<u64>]>,
}

impl Ring {
    pub(crate) fn new(slots: usize) -> Self {
        let room = slots.next_power_of_two();
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            items: (0..room).map(|_| UnsafeCell::new(0)).collect(),
        }
    }

    #[inline]
    fn cell(&self, position: u64) -> &UnsafeCell<u64> {
        &self.items[position as usize & (self.items.len() - 1)]
    }

    /// Writes an item that [`Self::publish`] will show.
    ///
    /// # Safety
    /// The caller is the producer, and `position` counts on from what it published, by less than the room.
    #[inline]
    pub(crate) unsafe fn write(&self, position: u64, item: Item) {
        // SAFETY: the caller is the only producer and the ring has room for every slot (header), so the
        // consumer is past this cell: rule 4 of seat/README.md.
        self.cell(position).with_mut(|cell| unsafe { *cell = item.0 });
    }

    /// Shows every item below `tail` to the consumer.
    #[inline]
    pub(crate) fn publish(&self, tail: u64) {
        // Release: pairs with the Acquire in `published`; the items and the messages behind them come first.
        self.tail.store(tail, Ordering::Release);
    }

    /// Up to where the consumer may read.
    #[inline]
    pub(crate) fn published(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    /// Reads an item.
    ///
    /// # Safety
    /// The caller is the consumer, and `position` is below what [`Self::published`] returned to it.
    #[inline]
    pub(crate) unsafe fn read(&self, position: u64) -> Item {
        // SAFETY: the Acquire in `published` saw a tail above this position, so the producer has written the cell and
        // will not touch it before the consumer gave the item's permit back: rule 4 of seat/README.md.
        Item(self.cell(position).with(|cell| unsafe { *cell }))
    }
}

/// What the worker counts since it last published.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) handled: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) discarded: u64,
    /// Of those that were handled or failed, those that ran where their source yielded them.
    pub(crate) in_place: u64,
    pub(crate) turns: u64,
    /// Mailboxes that were placed here.
    pub(crate) placements: u64,
}

/// The worker's own data of one lane: rule 1 of seat/README.md.
pub(crate) struct Plain {
    /// Under which number the lane's dispatch is attached; None before.
    pub(crate) attached: Option<AttachId>,
    /// Inbox items taken.
    pub(crate) taken: u64,
    /// Completions written.
    pub(crate) written: u64,
    /// Completions published.
    pub(crate) shown: u64,
    /// Completions published when the worker last went to sleep.
    pub(crate) rested: u64,
    /// Whether waiters were looked for, as a dry worker does, since the last completion was published.
    pub(crate) told_dry: bool,
    /// First and last ready mailbox; how many is one of the lane's figures.
    pub(crate) ready_head: u32,
    pub(crate) ready_tail: u32,
    /// The waker of each entry that was placed on this worker, made with its first poll here and kept.
    pub(crate) residents: Vec<Option<Arc<WakeCell>>>,
    /// Messages taken off their mailboxes to be dropped.
    pub(crate) doomed: Vec<Item>,
    pub(crate) tally: Tally,
    /// Measured cost of a message in nanoseconds, 0 before the first measurement.
    pub(crate) cost: u64,
    /// Messages since the last measurement.
    pub(crate) unmeasured: u32,
    /// The mailbox whose turn it is, or [`NONE`].
    pub(crate) turn: u32,
    /// The phase of the dispatch that the last round acted on.
    pub(crate) seen_phase: u8,
    /// Its hot keys.
    pub(crate) hot: Sketch,
}

/// One worker's side and one intake's side, each on lines of its own.
pub(crate) struct Lane {
    pub(crate) inbox: Ring,
    pub(crate) completions: Ring,
    /// Whether the dispatch was handed to the worker; written by the intake's owner, read by who notifies all.
    pub(crate) attached: AtomicBool,
    /// What the worker tells placement: items taken, and the measured cost.
    pub(crate) taken: CachePadded<AtomicU64>,
    pub(crate) cost: AtomicU64,
    /// What the holder of the seat counts, for everybody to see.
    pub(crate) figures: CachePadded<LaneFigures>,
    pub(crate) plain: CachePadded<UnsafeCell<Plain>>,
}

impl Lane {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            inbox: Ring::new(slots),
            completions: Ring::new(slots),
            attached: AtomicBool::new(false),
            taken: CachePadded::new(AtomicU64::new(0)),
            cost: AtomicU64::new(0),
            figures: CachePadded::new(LaneFigures::default()),
            plain: CachePadded::new(UnsafeCell::new(Plain {
                attached: None,
                taken: 0,
                written: 0,
                shown: 0,
                rested: 0,
                told_dry: false,
                ready_head: NONE,
                ready_tail: NONE,
                residents: Vec::new(),
                doomed: Vec::new(),
                tally: Tally::default(),
                cost: 0,
                unmeasured: 0,
                turn: NONE,
                seen_phase: crate::engine::phase::RUNNING,
                hot: Sketch::default(),
            })),
        }
    }
}
