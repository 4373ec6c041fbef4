//! The account of a run: how many messages ended in which way.
//!
//! Owns the list of endings and their sum. Invariant: `issued` is the sum of all endings and what is still open. It says
//! nothing about order; that is the history's part.

/// How one message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its handler finished.
    Handled,
    /// Its handler reported an error.
    Failed,
    /// Its handler panicked.
    Panicked,
    /// Its handler was dropped before it finished.
    Cancelled,
    /// It was dropped before a handler started.
    Discarded,
    /// It came back to its sender.
    Refused,
}

/// How many messages were issued and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages handed out.
    pub issued: u64,
    /// Messages whose handler finished.
    pub handled: u64,
    /// Messages whose handler reported an error.
    pub failed: u64,
    /// Messages whose handler panicked.
    pub panicked: u64,
    /// Messages whose handler was dropped before it finished.
    pub cancelled: u64,
    /// Messages dropped before a handler started.
    pub discarded: u64,
    /// Messages that came back to their sender.
    pub refused: u64,
}

impl Tally {
    /// How many ended in this way.
    pub fn ended(&self, ending: Ending) -> u64 {
        match ending {
            Ending::Handled => self.handled,
            Ending::Failed => self.failed,
            Ending::Panicked => self.panicked,
            Ending::Cancelled => self.cancelled,
            Ending::Discarded => self.discarded,
            Ending::Refused => self.refused,
        }
    }

    /// How many have not ended.
    pub fn open(&self) -> u64 {
        self.issued
            - (self.handled + self.failed + self.panicked + self.cancelled + self.discarded + self.refused)
    }

    pub(crate) fn count(&mut self, ending: Ending) {
        *match ending {
            Ending::Handled => &mut self.handled,
            Ending::Failed => &mut self.failed,
            Ending::Panicked => &mut self.panicked,
            Ending::Cancelled => &mut self.cancelled,
            Ending::Discarded => &mut self.discarded,
            Ending::Refused => &mut self.refused,
        } += 1;
    }

    pub(crate) fn absorb(&mut self, other: &Tally) {
        self.issued += other.issued;
        self.handled += other.handled;
        self.failed += other.failed;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
        self.discarded += other.discarded;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, Tally};

    const ENDINGS: [Ending; 6] = [
        Ending::Handled,
        Ending::Failed,
        Ending::Panicked,
        Ending::Cancelled,
        Ending::Discarded,
        Ending::Refused,
    ];

    #[test]
    fn what_is_issued_is_open_until_it_ended() {
        let mut tally = Tally { issued: 7, ..Tally::default() };
        for (n, ending) in (1..).zip(ENDINGS) {
            tally.count(ending);
            assert_eq!((tally.ended(ending), tally.open()), (1, 7 - n));
        }
        let mut sum = tally;
        sum.absorb(&tally);
        assert!(ENDINGS.iter().all(|&ending| sum.ended(ending) == 2));
        assert_eq!((sum.issued, sum.open()), (14, 2));
    }
}
