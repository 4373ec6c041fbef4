//! `Groups`: how many logical groups a dispatch has, and in which of them an aggregate id lies.
//!
//! Invariant: the group of an id depends on the id's text and the number of groups only, so it is the same in every
//! process, and the same as in the 9.2 line of the JVM. It knows no thread; which worker serves a group is the pool's.

use std::num::NonZeroU32;

use crate::sync::thread;

/// Groups per available processor where nothing else is said.
pub const GROUPS_PER_CORE: u32 = 64;

/// The number of logical groups of one dispatch (LS-6). Not the number of threads.
///
/// ```
/// use std::num::NonZeroU32;
/// use wow_aggregate_scheduler::Groups;
///
/// let groups = Groups::new(NonZeroU32::new(128).unwrap());
/// assert_eq!(groups.of("hello"), groups.of("hello"));
/// // Different ids may collide and then share one serial group.
/// assert_eq!(groups.of("Aa"), groups.of("BB"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups(NonZeroU32);

impl Groups {
    /// So many groups.
    #[must_use]
    pub const fn new(groups: NonZeroU32) -> Self {
        Self(groups)
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> NonZeroU32 {
        self.0
    }

    /// The group of an aggregate id, from 0.
    #[must_use]
    pub fn of(self, id: &str) -> u32 {
        group_of(id, self.0)
    }
}

impl Default for Groups {
    /// [`GROUPS_PER_CORE`] for each available processor, of which there is one where that cannot be told.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let groups = u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(GROUPS_PER_CORE);
        Self(NonZeroU32::new(groups).unwrap_or(NonZeroU32::MIN))
    }
}

/// The group of an aggregate id: the floor modulo of [`java_string_hash`] by the number of groups (LS-7).
///
/// Neither tenant nor aggregate name takes part.
#[must_use]
pub fn group_of(id: &str, groups: NonZeroU32) -> u32 {
    let rest = i64::from(java_string_hash(id)).rem_euclid(i64::from(groups.get()));
    u32::try_from(rest).expect("the rest of a division by a u32 is not negative and smaller than it")
}

/// The hash that Java gives a string: the polynomial of 31 over its UTF-16 units, wrapping at 32 bits.
#[must_use]
pub fn java_string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}
