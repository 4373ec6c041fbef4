//! What an executor is told: plain data, its defaults and its accepted ranges.
//!
//! The constants here are the single home of every default and limit; documentation and configuration loaders read
//! or are checked against them.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The values an executor uses where nothing was said.
pub mod defaults {
    use std::time::Duration;

    /// Prefix of the worker threads' names.
    pub const NAME: &str = "wow-dispatch";
    /// Messages of one dispatch or keyspace accepted and not finished.
    pub const MAX_IN_FLIGHT: usize = 256;
    /// Messages beyond the limits of their keys, where keys have one.
    pub const OVERFLOW: usize = 1_024;
    /// The longest key, where keys are weighed.
    pub const MAX_KEY_BYTES: usize = 1_024;
    /// Messages one mailbox may finish before it goes behind the others.
    pub const THROUGHPUT: usize = 16;
    /// How long a worker that ran dry polls before it parks.
    pub const SPIN: Duration = Duration::ZERO;
    /// Threads that may take over for stuck ones.
    pub const RESCUE_THREADS: usize = 32;
    /// How long a handler may hold its thread before another one goes on with the rest of its worker.
    pub const RESCUE_AFTER: Duration = Duration::from_millis(1);
    /// How long user code may hold its thread before it is named.
    pub const STUCK_AFTER: Duration = Duration::from_secs(1);

    /// One worker for each available processor, 1 where that cannot be told.
    #[must_use]
    pub fn workers() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from).min(*super::limits::WORKERS.end())
    }
}

/// The accepted ranges.
pub mod limits {
    use std::ops::RangeInclusive;
    use std::time::Duration;

    /// Worker threads of one executor.
    pub const WORKERS: RangeInclusive<usize> = 1..=1024;
    /// The window of one dispatch or keyspace.
    pub const MAX_IN_FLIGHT: RangeInclusive<usize> = 1..=1_048_576;
    /// Messages of one key that may hold permits of a window.
    pub const MAX_PER_KEY: RangeInclusive<usize> = 1..=1_048_576;
    /// Messages beyond the limits of their keys, of one dispatch or keyspace.
    pub const OVERFLOW: RangeInclusive<usize> = 0..=1_048_576;
    /// Messages a turn.
    pub const THROUGHPUT: RangeInclusive<usize> = 1..=65_536;
    /// The longest spin.
    pub const MAX_SPIN: Duration = Duration::from_millis(1);
    /// Threads that may take over for stuck ones; 0 turns the rescue off.
    pub const RESCUE_THREADS: RangeInclusive<usize> = 0..=4_096;
    /// The longest time before a rescue.
    pub const MAX_RESCUE_AFTER: Duration = Duration::from_secs(60);
    /// The longest time before stuck code is named.
    pub const MAX_STUCK_AFTER: Duration = Duration::from_secs(3_600);
}

/// What an executor is told. Plain data; checked when the executor is built.
///
/// ```
/// use keyed_executor::Config;
///
/// let config = Config { workers: 2, ..Config::default() };
/// assert!(config.validate().is_ok());
/// assert!(Config { workers: 0, ..Config::default() }.validate().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Worker threads are named `<name>-<n>`, n from 1.
    pub name: String,
    /// Number of worker threads; each starts with its first work.
    pub workers: usize,
    /// Messages of one dispatch or keyspace that may be accepted and not finished.
    pub max_in_flight: usize,
    /// Messages of one key that may hold permits of a window, if there is a limit: a key that is stuck or hot then leaves
    /// the rest of the window to the others. A limit of at least the window is none.
    pub max_per_key: Option<usize>,
    /// Messages beyond the limits of their keys, of all keys of one dispatch or keyspace together; without a limit it means
    /// nothing.
    pub overflow: usize,
    /// Messages one mailbox may finish before the other ready mailboxes of its worker get their turn.
    pub throughput: usize,
    /// How long a worker that ran dry polls for work before it parks; zero parks at once.
    pub spin: Duration,
    /// Threads beside the workers that may take over for stuck ones; they are started when needed and end unused. 0 turns
    /// the rescue off.
    pub rescue_threads: usize,
    /// How long a handler, or the source, may hold its thread before another one goes on with the rest of its worker.
    pub rescue_after: Duration,
    /// How long a piece of user code may hold its thread before it is named in the log and by
    /// [`Builder::on_stuck`](crate::Builder::on_stuck); None names none.
    pub stuck_after: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: defaults::NAME.to_owned(),
            workers: defaults::workers(),
            max_in_flight: defaults::MAX_IN_FLIGHT,
            max_per_key: None,
            overflow: defaults::OVERFLOW,
            throughput: defaults::THROUGHPUT,
            spin: defaults::SPIN,
            rescue_threads: defaults::RESCUE_THREADS,
            rescue_after: defaults::RESCUE_AFTER,
            stuck_after: Some(defaults::STUCK_AFTER),
        }
    }
}

impl Config {
    /// Checks every value.
    ///
    /// # Errors
    /// All values that are out of range, at once.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        let mut within = |field: &'static str, value: usize, range: &RangeInclusive<usize>| {
            if !range.contains(&value) {
                problems.push(ConfigProblem {
                    field,
                    value: value.to_string(),
                    accepted: format!("{} to {}", range.start(), range.end()),
                });
            }
        };
        within("workers", self.workers, &limits::WORKERS);
        within("max_in_flight", self.max_in_flight, &limits::MAX_IN_FLIGHT);
        within("max_per_key", self.max_per_key.unwrap_or(1), &limits::MAX_PER_KEY);
        within("overflow", self.overflow, &limits::OVERFLOW);
        within("throughput", self.throughput, &limits::THROUGHPUT);
        within("rescue_threads", self.rescue_threads, &limits::RESCUE_THREADS);
        if self.rescue_after > limits::MAX_RESCUE_AFTER {
            problems.push(ConfigProblem {
                field: "rescue_after",
                value: format!("{:?}", self.rescue_after),
                accepted: format!("0 to {:?}", limits::MAX_RESCUE_AFTER),
            });
        }
        if self.stuck_after.is_some_and(|after| after.is_zero() || after > limits::MAX_STUCK_AFTER) {
            problems.push(ConfigProblem {
                field: "stuck_after",
                value: format!("{:?}", self.stuck_after),
                accepted: format!("None, or above 0 to {:?}", limits::MAX_STUCK_AFTER),
            });
        }
        if self.spin > limits::MAX_SPIN {
            problems.push(ConfigProblem {
                field: "spin",
                value: format!("{:?}", self.spin),
                accepted: format!("0 to {:?}", limits::MAX_SPIN),
            });
        }
        if self.name.is_empty() || self.name.contains('\0') {
            problems.push(ConfigProblem {
                field: "name",
                value: format!("{:?}", self.name),
                accepted: "a text that is not empty and has no NUL".to_owned(),
            });
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
    }
}

/// Every value of a [`Config`] that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<ConfigProblem>,
}

impl ConfigError {
    /// The refused values, at least one.
    #[must_use]
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// One refused value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The field of [`Config`].
    pub field: &'static str,
    /// What it held.
    pub value: String,
    /// What it may hold.
    pub accepted: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, accepted is {}", self.field, self.value, self.accepted)
    }
}
