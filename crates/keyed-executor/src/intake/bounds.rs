//! What bounds a dispatch beside the count of its window: the messages of one key, their overflow, and bytes.
//!
//! Plain data of the intake (rule 5 of seat/README.md), off unless asked for. A key's first `per_key` outstanding
//! messages hold permits of the window; each further one holds a permit of the *overflow*, which all keys of the dispatch
//! share. Which is which is arithmetic and no mark on a message: of `n` outstanding ones `n - per_key` are in the overflow,
//! so a message that ends gives an overflow permit back exactly if `per_key` or more of its key are left. Hence, always:
//!
//! - the window holds `sum of min(n, per_key)` permits and the overflow `sum of max(n - per_key, 0)`, over the live keys;
//! - a live key holds a permit of the window, so live keys are never more than the window;
//! - slots are window + overflow, so a message that may come in finds one.
//!
//! Where messages are weighed, each holds its bytes of the budget as long as its permit; they are kept by slot.
//!
//! It counts. Who waits for what is told here is the doors' business, and what a message weighs is `weigh.rs`.

/// What an intake is told at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Messages of one key that may hold permits of the window; `u32::MAX` is no limit.
    pub(crate) per_key: u32,
    /// Permits for messages of keys beyond that.
    pub(crate) overflow: u32,
    /// Bytes of the messages that are outstanding; `usize::MAX` is no budget.
    pub(crate) max_bytes: usize,
    /// Whether messages are weighed at all.
    pub(crate) weighs: bool,
}

impl Limits {
    /// No bound but the window.
    pub(crate) const NONE: Self =
        Self { per_key: u32::MAX, overflow: 0, max_bytes: usize::MAX, weighs: false };

    pub(crate) fn is_on(self) -> bool {
        self != Self::NONE
    }
}

/// What a message has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// A permit of the window.
    Window,
    /// An end of a message of its key, or a permit of the overflow.
    Key,
    /// Bytes of the budget.
    Bytes,
}

/// Something came back that a waiting message of this kind could use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eased {
    /// A permit of the overflow: any key's.
    Overflow,
    /// A place of this entry's key below its limit; the entry may be free meanwhile.
    Key(u32),
}

/// Which permit a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    Window,
    Overflow,
}

/// The bounds of one intake.
pub(crate) struct Bounds {
    /// Whether there is any: looked at once for each message that comes or goes.
    pub(crate) is_on: bool,
    per_key: u32,
    overflow_free: u32,
    /// Messages that came back and had a permit of the overflow.
    overflow_returned: u64,
    bytes_free: usize,
    /// What the message in each slot weighs; empty unless messages are weighed.
    weights: Box<[usize]>,
    /// Whether somebody waits for what comes back here: only then is it noted.
    pub(crate) is_watched: bool,
    /// What came back since it was last looked at.
    pub(crate) eased: Vec<Eased>,
}

impl Bounds {
    pub(crate) fn new(limits: Limits, slots: usize) -> Self {
        Self {
            is_on: limits.is_on(),
            per_key: limits.per_key,
            overflow_free: limits.overflow,
            overflow_returned: 0,
            bytes_free: limits.max_bytes,
            weights: vec![0; if limits.weighs { slots } else { 0 }].into_boxed_slice(),
            is_watched: false,
            eased: Vec::new(),
        }
    }

    /// Permits of the overflow that are free.
    #[inline]
    pub(crate) fn overflow_free(&self) -> usize {
        self.overflow_free as usize
    }

    /// Messages that came back and had held no permit of the window.
    #[inline]
    pub(crate) fn overflow_returned(&self) -> u64 {
        self.overflow_returned
    }

    /// Whether a key with `outstanding` messages has its limit of them.
    #[inline]
    pub(crate) fn is_full(&self, outstanding: u32) -> bool {
        outstanding >= self.per_key
    }

    /// Whether the budget has room for so many bytes.
    #[inline]
    pub(crate) fn has_bytes(&self, bytes: usize) -> bool {
        bytes <= self.bytes_free
    }

    /// What a message of so many bytes lacks whose key has `outstanding` ones, with `room` permits of the window free.
    #[inline]
    pub(crate) fn lack(&self, outstanding: u32, bytes: usize, room: usize) -> Option<Lack> {
        let has_permit = if self.is_full(outstanding) { self.overflow_free > 0 } else { room > 0 };
        match has_permit {
            false if self.is_full(outstanding) => Some(Lack::Key),
            false => Some(Lack::Window),
            true => (!self.has_bytes(bytes)).then_some(Lack::Bytes),
        }
    }

    /// Takes the bytes of a message that has no slot yet; [`settle`](Self::settle) gives it one.
    #[inline]
    pub(crate) fn take_bytes(&mut self, bytes: usize) {
        self.bytes_free -= bytes;
    }

    /// Gives the bytes of a message back that never had a slot.
    #[inline]
    pub(crate) fn give_bytes(&mut self, bytes: usize) {
        self.bytes_free += bytes;
    }

    /// Notes what the message in a slot weighs, whose bytes were taken.
    #[inline]
    pub(crate) fn settle(&mut self, slot: u32, bytes: usize) {
        if let Some(weight) = self.weights.get_mut(slot as usize) {
            *weight = bytes;
        }
    }

    /// Charges a message of a key with `outstanding` others, of which [`lack`](Self::lack) said that nothing is lacking.
    #[inline]
    pub(crate) fn charge(&mut self, outstanding: u32, slot: u32, bytes: usize) -> Permit {
        self.take_bytes(bytes);
        self.settle(slot, bytes);
        if !self.is_full(outstanding) {
            return Permit::Window;
        }
        self.overflow_free -= 1;
        Permit::Overflow
    }

    /// Takes back what a message held whose key has `left` others.
    #[inline]
    pub(crate) fn give_back(&mut self, entry: u32, slot: u32, left: u32) {
        self.give_bytes(self.weights.get(slot as usize).copied().unwrap_or(0));
        let eased = if self.is_full(left) {
            self.overflow_free += 1;
            self.overflow_returned += 1;
            Eased::Overflow
        } else {
            Eased::Key(entry)
        };
        if self.is_watched {
            self.eased.push(eased);
        }
    }
}
