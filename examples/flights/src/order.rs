//! The order check: each aircraft's rows are decided and projected in the order of the file, none left out or twice.
//!
//! Owns one counter for each aircraft. The reading side numbers the rows of an aircraft in file order; the aggregate's
//! decision reports the number it was asked for, refused ones too, and the projection the line it sees. Invariant: a
//! number that is not the one after the last is counted as a violation. It is an auditor: it corrects nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

/// Counts what came out of order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Violations(Arc<AtomicU64>);

impl Violations {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self) {
        // Relaxed: only the sum matters, and it is read after everything has ended.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Numbers the rows of each aircraft.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    aircraft: HashMap<Box<str>, (u64, Arc<Track>), RandomState>,
    violations: Violations,
}

#[derive(Debug)]
struct Track {
    last: AtomicU64,
    violations: Violations,
}

/// The place of one row among those of its aircraft.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    number: u64,
    track: Arc<Track>,
}

impl Numbering {
    pub(crate) fn new(violations: Violations) -> Self {
        Self { aircraft: HashMap::default(), violations }
    }

    /// The next place of this aircraft; called in file order.
    pub(crate) fn next(&mut self, tail_number: &str) -> Place {
        if let Some((number, track)) = self.aircraft.get_mut(tail_number) {
            *number += 1;
            return Place { number: *number, track: Arc::clone(track) };
        }
        let track = Arc::new(Track { last: AtomicU64::new(0), violations: self.violations.clone() });
        self.aircraft.insert(tail_number.into(), (1, Arc::clone(&track)));
        Place { number: 1, track }
    }

    /// Every aircraft that was numbered.
    pub(crate) fn aircraft(&self) -> impl Iterator<Item = &str> {
        self.aircraft.keys().map(AsRef::as_ref)
    }
}

impl Place {
    /// Reports that the row is being decided. The same row may be decided again at once, after a lost race of writers.
    pub(crate) fn decided(&self) {
        // AcqRel: the decisions of one aircraft exclude each other; if they did not, both would still be compared.
        let before = self.track.last.swap(self.number, Ordering::AcqRel);
        if self.number != before + 1 && self.number != before {
            self.track.violations.add();
        }
    }
}

/// What the projection has seen last of each aircraft.
#[derive(Debug, Default)]
pub(crate) struct LinesSeen {
    last: HashMap<Box<str>, u64, RandomState>,
}

impl LinesSeen {
    /// Whether `line` comes after everything seen of this aircraft.
    pub(crate) fn follows(&mut self, tail_number: &str, line: u64) -> bool {
        match self.last.get_mut(tail_number) {
            Some(last) => std::mem::replace(last, line) < line,
            None => {
                self.last.insert(tail_number.into(), line);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LinesSeen, Numbering, Violations};

    #[test]
    fn rows_decided_in_file_order_violate_nothing() {
        let violations = Violations::default();
        let mut numbering = Numbering::new(violations.clone());
        let places: Vec<_> = ["a", "b", "a", "a", "b"].map(|tail| numbering.next(tail)).into();
        for place in [0, 2, 1, 4, 3].map(|index: usize| &places[index]) {
            place.decided();
        }
        places[3].decided();
        assert_eq!(violations.count(), 0, "deciding the last row again is no violation");
        assert_eq!(numbering.aircraft().count(), 2);
    }

    #[test]
    fn a_row_too_early_too_late_left_out_or_repeated_is_counted() {
        for (order, expected) in [(vec![1, 0], 2), (vec![0, 2], 1), (vec![0, 1, 0], 1), (vec![2, 1, 0], 3)] {
            let violations = Violations::default();
            let mut numbering = Numbering::new(violations.clone());
            let places: Vec<_> = (0..3).map(|_| numbering.next("a")).collect();
            for index in &order {
                places[*index as usize].decided();
            }
            assert_eq!(violations.count(), expected, "{order:?}");
        }
    }

    #[test]
    fn a_projection_that_sees_a_line_again_or_late_notices() {
        let mut seen = LinesSeen::default();
        assert!(seen.follows("a", 2) && seen.follows("b", 1) && seen.follows("a", 5));
        assert!(!seen.follows("a", 5));
        assert!(!seen.follows("a", 4));
    }
}
