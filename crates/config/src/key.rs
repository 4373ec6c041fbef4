//! The keys: their names, their variables and what they accept.
//!
//! Owns the list; files and variables are both read against it. Invariant: every default and range is taken from
//! `keyed_executor` and `wow_dispatch`. It does not parse.

use std::fmt;
use std::time::Duration;

use keyed_executor::limits;
use wow_dispatch::Strategy;

/// The section of the files.
pub(crate) const SECTION: [&str; 2] = ["wow", "dispatch"];
/// What every variable of the section begins with.
pub(crate) const VARIABLE_PREFIX: &str = "WOW_DISPATCH_";
/// A setting of earlier systems that has no meaning any more: tolerated, with a notice.
pub(crate) const REMOVED: (&str, &str) = ("parallelism", "WOW_PARALLELISM");

/// A key of the section `wow.dispatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Worker threads.
    Workers,
    /// The window of one dispatch or keyspace.
    MaxInFlight,
    /// Messages of one key that may hold permits of a window.
    MaxPerKey,
    /// Messages beyond the limits of their keys.
    Overflow,
    /// Bytes of one receiver's messages that may be admitted and unfinished.
    MaxBytes,
    /// Messages of one turn.
    Throughput,
    /// How long a worker that ran dry polls before it parks.
    Spin,
    /// Threads that may go on for stuck ones.
    RescueThreads,
    /// How long user code may hold its thread before one of them goes on.
    RescueAfter,
    /// How long user code may hold its thread before it is named.
    StuckAfter,
    /// What messages run on.
    Strategy,
    /// Serial groups of one receiver and aggregate type.
    Groups,
}

impl Key {
    /// Every key, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::Workers,
        Self::MaxInFlight,
        Self::MaxPerKey,
        Self::Overflow,
        Self::MaxBytes,
        Self::Throughput,
        Self::Spin,
        Self::RescueThreads,
        Self::RescueAfter,
        Self::StuckAfter,
        Self::Strategy,
        Self::Groups,
    ];

    /// The key inside its section, as files write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::MaxInFlight => "max-in-flight",
            Self::MaxPerKey => "max-per-key",
            Self::Overflow => "overflow",
            Self::MaxBytes => "max-bytes",
            Self::Throughput => "throughput",
            Self::Spin => "spin",
            Self::RescueThreads => "rescue-threads",
            Self::RescueAfter => "rescue-after",
            Self::StuckAfter => "stuck-after",
            Self::Strategy => "strategy",
            Self::Groups => "groups",
        }
    }

    /// The variable that overrides the files.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Workers => "WOW_DISPATCH_WORKERS",
            Self::MaxInFlight => "WOW_DISPATCH_MAX_IN_FLIGHT",
            Self::MaxPerKey => "WOW_DISPATCH_MAX_PER_KEY",
            Self::Overflow => "WOW_DISPATCH_OVERFLOW",
            Self::MaxBytes => "WOW_DISPATCH_MAX_BYTES",
            Self::Throughput => "WOW_DISPATCH_THROUGHPUT",
            Self::Spin => "WOW_DISPATCH_SPIN",
            Self::RescueThreads => "WOW_DISPATCH_RESCUE_THREADS",
            Self::RescueAfter => "WOW_DISPATCH_RESCUE_AFTER",
            Self::StuckAfter => "WOW_DISPATCH_STUCK_AFTER",
            Self::Strategy => "WOW_DISPATCH_STRATEGY",
            Self::Groups => "WOW_DISPATCH_GROUPS",
        }
    }

    /// What the key accepts, in words.
    #[must_use]
    pub fn accepted(self) -> String {
        let range = match self {
            Self::Workers => limits::WORKERS,
            Self::MaxInFlight => limits::MAX_IN_FLIGHT,
            Self::MaxPerKey => limits::MAX_PER_KEY,
            Self::Overflow => limits::OVERFLOW,
            Self::MaxBytes => wow_dispatch::limits::MAX_BYTES,
            Self::Throughput => limits::THROUGHPUT,
            Self::RescueThreads => limits::RESCUE_THREADS,
            Self::Spin => return a_duration(limits::MAX_SPIN),
            Self::RescueAfter => return a_duration(limits::MAX_RESCUE_AFTER),
            Self::StuckAfter => return a_duration(limits::MAX_STUCK_AFTER),
            Self::Strategy => return wow_dispatch::limits::STRATEGY.map(Strategy::name).join(" or "),
            Self::Groups => {
                let range = wow_dispatch::limits::GROUPS;
                return format!("a whole number from {} to {}", range.start(), range.end());
            }
        };
        format!("a whole number from {} to {}", range.start(), range.end())
    }
}

impl Key {
    /// The one strategy that reads this key, where it is not both.
    #[must_use]
    pub fn strategy(self) -> Option<Strategy> {
        match self {
            Self::Workers | Self::MaxInFlight | Self::Strategy => None,
            Self::MaxPerKey
            | Self::Overflow
            | Self::MaxBytes
            | Self::Throughput
            | Self::Spin
            | Self::RescueThreads
            | Self::RescueAfter
            | Self::StuckAfter => Some(Strategy::Keyed),
            Self::Groups => Some(Strategy::Grouped),
        }
    }
}

fn a_duration(max: Duration) -> String {
    format!("a duration with its unit (ns, us, ms, s) from 0 to {max:?}, a bare number is in milliseconds")
}

/// The full key, such as `wow.dispatch.max-in-flight`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", SECTION[0], SECTION[1], self.name())
    }
}

/// The one of `known` that somebody who wrote `written` most likely meant.
pub(crate) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let written = plain(written);
    known
        .map(|name| (distance(&written, &plain(name)), name))
        .min_by_key(|(far, _)| *far)
        .filter(|(far, name)| *far <= 2.min(name.len() / 3))
        .map(|(_, name)| name)
}

/// Lower case without separators: what people get wrong first.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).take(64).collect()
}

/// Edits from one word to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
