//! Checkers and scripted parts for tests of ordered dispatch.
//!
//! Owns: a [`History`] that checks order, exclusion, completeness and concurrency of every single message; futures and
//! streams that do what a test tells them ([`Script`], [`Source`]); waiting for facts ([`Latch`], [`Counter`],
//! [`finish`], [`eventually`]); what was logged ([`Log`]); small seeded randomness ([`Seed`], [`Rng`]). Invariant: nothing here knows the code under
//! test, so nothing here can be wrong in the same way. Deliberately absent: sleeping as a way to synchronise, and any
//! dependency on a crate of this workspace.
//!
//! ```
//! use wow_testkit::{History, Script, finish};
//!
//! let history = History::new(7, 1);
//! let message = history.issue(0, 0);
//! finish(message.start().play(Script::ready().yields(2))).unwrap();
//! assert_eq!(history.verify().handled, 1);
//! ```
#![forbid(unsafe_code)]

mod fault;
mod history;
mod tally;

mod script;
mod source;

mod elsewhere;
mod latch;
mod log;
mod seed;
#[cfg(target_os = "linux")]
pub mod threads;
mod wait;

pub use crate::elsewhere::{after, release_after};
pub use crate::fault::{Fault, Id, Report};
pub use crate::history::{History, Message, Running};
pub use crate::latch::{Counter, Latch, Level, Reached, Released};
pub use crate::log::{Line, Log};
pub use crate::script::{Failure, Script};
pub use crate::seed::{Rng, Seed, SeedReport};
pub use crate::source::{Feed, Source};
pub use crate::tally::{Ending, Tally};
pub use crate::wait::{PATIENCE, eventually, finish, finish_within};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
