//! Values: whole numbers, durations and names, as files and variables write them.
//!
//! Owns no state. Invariant: what is returned is inside the key's range; everything else is `None`, and the caller
//! says what was refused. Signs, blanks, fractions and digit groups are not accepted.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use keyed_executor::limits;
use wow_dispatch::{DispatchConfig, Groups, Strategy};

use crate::key::Key;

/// A value before it is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw<'a> {
    /// A number of a file.
    Integer(i128),
    /// A text of a file.
    Text(&'a str),
    /// The text of a variable, which may stand for a number.
    Variable(&'a str),
    /// Anything else of a file: a fraction, a truth value, a list, a table, nothing.
    Other,
}

/// Puts `raw` into the field of `key`; `None`, and the field as it was, if it is not accepted.
pub(crate) fn set(config: &mut DispatchConfig, key: Key, raw: Raw<'_>) -> Option<()> {
    match key {
        Key::Workers => config.executor.workers = count(raw, &limits::WORKERS)?,
        Key::MaxInFlight => config.executor.max_in_flight = count(raw, &limits::MAX_IN_FLIGHT)?,
        Key::MaxPerKey => config.executor.max_per_key = Some(count(raw, &limits::MAX_PER_KEY)?),
        Key::Overflow => config.executor.overflow = count(raw, &limits::OVERFLOW)?,
        Key::Throughput => config.executor.throughput = count(raw, &limits::THROUGHPUT)?,
        Key::Spin => config.executor.spin = duration(raw, limits::MAX_SPIN)?,
        Key::RescueThreads => config.executor.rescue_threads = count(raw, &limits::RESCUE_THREADS)?,
        Key::RescueAfter => config.executor.rescue_after = duration(raw, limits::MAX_RESCUE_AFTER)?,
        Key::StuckAfter => {
            let after = duration(raw, limits::MAX_STUCK_AFTER)?;
            config.executor.stuck_after = (!after.is_zero()).then_some(after);
        }
        Key::MaxBytes => config.max_bytes = Some(count(raw, &wow_dispatch::limits::MAX_BYTES)?),
        Key::Strategy => config.strategy = strategy(raw)?,
        Key::Groups => config.groups = groups(raw, &wow_dispatch::limits::GROUPS)?,
    }
    Some(())
}

fn count(raw: Raw<'_>, accepted: &RangeInclusive<usize>) -> Option<usize> {
    let number = match raw {
        Raw::Integer(number) => usize::try_from(number).ok()?,
        Raw::Variable(text) => digits(text)?.try_into().ok()?,
        Raw::Text(_) | Raw::Other => return None,
    };
    accepted.contains(&number).then_some(number)
}

fn strategy(raw: Raw<'_>) -> Option<Strategy> {
    match raw {
        Raw::Text(text) | Raw::Variable(text) => {
            wow_dispatch::limits::STRATEGY.into_iter().find(|strategy| strategy.name() == text)
        }
        Raw::Integer(_) | Raw::Other => None,
    }
}

fn groups(raw: Raw<'_>, accepted: &RangeInclusive<u32>) -> Option<Groups> {
    let end = |end: &u32| usize::try_from(*end).unwrap_or(usize::MAX);
    let number = count(raw, &(end(accepted.start())..=end(accepted.end())))?;
    NonZeroU32::new(u32::try_from(number).ok()?).map(Groups::new)
}

fn duration(raw: Raw<'_>, max: Duration) -> Option<Duration> {
    let nanos = match raw {
        Raw::Integer(millis) => u64::try_from(millis).ok()?.checked_mul(MILLIS)?,
        Raw::Text(text) | Raw::Variable(text) => {
            let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let (number, unit) = text.split_at(split);
            digits(number)?.checked_mul(unit_nanos(unit)?)?
        }
        Raw::Other => return None,
    };
    Some(Duration::from_nanos(nanos)).filter(|duration| *duration <= max)
}

const MILLIS: u64 = 1_000_000;

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "" | "ms" => MILLIS,
        "s" => 1_000_000_000,
        _ => return None,
    })
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}
