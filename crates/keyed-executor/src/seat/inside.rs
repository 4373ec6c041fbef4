//! What another thread remembers of the piece of user code that it saw a seat's occupant in.
//!
//! A token's word names that piece (`token.rs`): the same word twice is the same piece, and it has held its thread at least since it was
//! first seen. Whoever looks keeps one of these for each seat that it looks at; nothing is shared, and it reads no clock.

/// The piece of user code that an occupant was seen in, and since when.
#[derive(Clone, Copy, Default)]
pub(crate) struct Inside {
    word: Option<u64>,
    since: u64,
}

impl Inside {
    /// For how long the occupant is in the same piece, in nanoseconds; None where it was not seen in it before.
    #[inline]
    pub(crate) fn in_the_same(&mut self, word: u64, now: u64) -> Option<u64> {
        if self.word == Some(word) {
            return Some(now - self.since);
        }
        *self = Self { word: Some(word), since: now };
        None
    }

    /// The occupant was seen outside user code.
    pub(crate) fn forget(&mut self) {
        self.word = None;
    }
}
