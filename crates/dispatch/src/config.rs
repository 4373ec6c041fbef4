//! `DispatchConfig`: what a service is told about how its messages run: the strategy, and the values of either.
//!
//! Plain data. The constants here are the home of the strategy's and the groups' defaults and limits; those of the executor
//! are its own. It reads no file: `wow-config` does, and is checked against it.

use std::fmt;
use std::num::NonZeroU16;

use keyed_executor::Config;
use wow_aggregate_scheduler::Groups;

/// The values a service uses where nothing was said.
pub mod defaults {
    use super::Strategy;

    /// What messages run on.
    pub const STRATEGY: Strategy = Strategy::Keyed;

    /// 64 serial groups for each available processor, of which there is one where that cannot be told.
    #[must_use]
    pub fn groups() -> u32 {
        super::Groups::default().count().get().min(*super::limits::GROUPS.end())
    }
}

/// The accepted values.
pub mod limits {
    use std::ops::RangeInclusive;

    use super::Strategy;

    /// The strategies there are.
    pub const STRATEGY: [Strategy; 2] = [Strategy::Keyed, Strategy::Grouped];
    /// Serial groups of one receiver and aggregate type.
    pub const GROUPS: RangeInclusive<u32> = 1..=1_048_576;
    /// Bytes of one receiver's messages that may be admitted and unfinished.
    pub const MAX_BYTES: RangeInclusive<usize> = 1..=4_294_967_295;
}

/// What a dispatcher's messages run on. Order per aggregate, window, admission, acknowledgement, ledger and stop are the
/// same with either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The keyed executor: a few workers for all dispatchers, and no aggregate waits for another.
    #[default]
    Keyed,
    /// The scheduler of 9.2: a pool of threads for each dispatcher and aggregate type, on which the aggregates of one hash
    /// group wait for each other. See [`Execution::Grouped`](crate::Execution::Grouped) for what it cannot do.
    Grouped,
}

impl Strategy {
    /// As configuration files write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keyed => "keyed",
            Self::Grouped => "grouped",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the messages of a service run. Plain data; checked when the service is built.
///
/// ```
/// use wow_dispatch::{DispatchConfig, Strategy};
///
/// let config = DispatchConfig { strategy: Strategy::Grouped, ..DispatchConfig::default() };
/// assert_eq!(config.strategy.to_string(), "grouped");
/// // An executor's configuration alone leaves the strategy as it is by default.
/// let workers = keyed_executor::Config { workers: 2, ..keyed_executor::Config::default() };
/// assert_eq!(DispatchConfig::from(workers).strategy, Strategy::Keyed);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchConfig {
    /// Workers and window, whatever the strategy: with groups, `workers` is the threads of each pool that run handlers.
    /// The limit for each key and its overflow, throughput, spin and rescue are the executor's alone.
    pub executor: Config,
    /// What messages run on.
    pub strategy: Strategy,
    /// Serial groups of one receiver and aggregate type; only with [`Strategy::Grouped`].
    pub groups: Groups,
    /// Bytes of one receiver's messages that may be admitted and unfinished, beside their number; None is no budget. What messages
    /// weigh is told to the service ([`ServiceBuilder::weigh_commands`](crate::ServiceBuilder::weigh_commands)). Only with
    /// [`Strategy::Keyed`].
    pub max_bytes: Option<usize>,
    /// Lines about settings that have no effect, from whoever read them: a service logs each once, as a warning, when it starts.
    pub notices: Vec<String>,
}

impl DispatchConfig {
    /// The threads for handlers in each pool.
    pub(crate) fn threads(&self) -> NonZeroU16 {
        let threads = u16::try_from(self.executor.workers).unwrap_or(u16::MAX);
        NonZeroU16::new(threads).unwrap_or(NonZeroU16::MIN)
    }
}

/// The default strategy with this executor.
impl From<Config> for DispatchConfig {
    fn from(executor: Config) -> Self {
        Self { executor, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{DispatchConfig, Strategy, defaults, limits};

    #[test]
    fn the_defaults_are_those_of_the_constants() {
        let config = DispatchConfig::default();
        assert_eq!(config.strategy, defaults::STRATEGY);
        assert_eq!(config.groups.count().get(), defaults::groups());
        assert!(limits::GROUPS.contains(&defaults::groups()));
        assert_eq!(limits::STRATEGY.map(Strategy::name), ["keyed", "grouped"]);
    }
}
