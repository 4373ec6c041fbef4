//! The stage: where in the order of a service a component belongs.
//!
//! Plain data. Invariant: components start in the order of their stages, those of one stage in the order in which
//! they were added, and stop in reverse. It does not express dependencies between single components.

/// A component's place in the order of start; lower starts earlier and stops later.
///
/// # Examples
/// ```
/// use wow_runtime::Stage;
/// assert!(Stage::RESOURCES < Stage::COMMANDS && Stage::COMMANDS < Stage::PROJECTIONS);
/// assert!(Stage::custom(150) < Stage::EVENTS);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stage(u16);

impl Stage {
    /// Writers and producers: first to start, so that they outlive everything that writes through them.
    pub const RESOURCES: Self = Self(0);
    /// Copies that a local-first bus keeps for a distributed one.
    pub const LOCAL_COPIES: Self = Self(50);
    /// Command dispatchers.
    pub const COMMANDS: Self = Self(100);
    /// Event dispatchers.
    pub const EVENTS: Self = Self(200);
    /// Projections.
    pub const PROJECTIONS: Self = Self(300);
    /// Sagas.
    pub const SAGAS: Self = Self(400);
    /// Snapshots.
    pub const SNAPSHOTS: Self = Self(500);

    /// A stage of your own between, before or after the named ones.
    #[must_use]
    pub const fn custom(order: u16) -> Self {
        Self(order)
    }
}
