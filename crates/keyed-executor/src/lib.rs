//! Runs messages **in order per key, in parallel across keys, with a bounded number unfinished**, on a few worker
//! threads of its own.
//!
//! ```text
//!   source ──▶ home worker ─┐ in place                ┌─ worker 1: mailboxes, futures ─┐
//!                           ├─▶ intake: key → worker ─┤                               ├─▶ handler(message)
//!   submit ──▶ short lock ──┘   permits, placement    └─ worker n                     ┘   completions, permits back
//! ```
//!
//! Two doors lead in. [`KeyedExecutor::dispatch`] takes a stream and ends when the stream and everything accepted ended;
//! [`KeyedExecutor::keyspace`] takes messages from any thread, waiting for room or handing them back. A message that
//! waits for I/O or a timer holds its key, never a thread. A key costs memory only while it has messages.
//!
//! ```
//! use futures_util::stream;
//! use keyed_executor::KeyedExecutor;
//!
//! let executor = KeyedExecutor::builder().workers(2).build()?;
//! let payments = [("alice", 3), ("bob", 5), ("alice", -1)];
//! let dispatch = executor.dispatch(
//!     stream::iter(payments),
//!     |payment| payment.0,
//!     // The second payment of alice starts when her first one ended.
//!     |payment| async move { if payment.1 < 0 { Err(format!("{} owes", payment.0)) } else { Ok(()) } },
//! );
//! let failed = dispatch.wait()?.expect_err("the third payment fails its dispatch");
//! assert_eq!(failed.to_string(), "the handler of key \"alice\" failed: alice owes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The files, in reading order:

#![warn(missing_docs)]

mod config;
mod options;
mod weigh;
mod hash;
mod error;
mod executor;
mod builder;

mod source;
mod keyspace;
mod dispatch;
mod completion;

mod intake;
mod directory;
mod placement;
mod lane;
mod credit;

mod lanes;
mod engine;
mod round;
mod turn;
mod detached;
mod mailbox;
mod meter;
mod prefetch;
mod figures;
mod hot;
mod audit;
mod discard;

mod worker;
mod cx;
mod seat;
mod rescue;
mod monitor;
mod watchdog;
mod stranded;
mod inspect;
mod look;
mod wake;
mod sleep;
mod task;
mod shared;
mod shutdown;

mod contain;
mod metrics;
mod brief;
mod sync;
mod time;

#[cfg(test)]
mod tests;

/// The README's example is compiled and run like every other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use audit::{Audited, Misorder, Violation};
pub use builder::Builder;
pub use config::{Config, ConfigError, ConfigProblem, defaults, limits};
pub use dispatch::{Canceller, Dispatch};
pub use error::{
    Cause, DispatchError, Ledger, Outcome, RejectReason, Rejected, SubmitError, SubmitRefusal,
    WouldBlockWorker,
};
pub use executor::KeyedExecutor;
pub use figures::{DispatchMetrics, Refused, TurnLengths};
pub use hash::KeyHash;
pub use hot::HotKey;
pub use inspect::{Inspection, MailboxState, MailboxView};
pub use keyspace::{Drained, Keyspace, Submit};
pub use metrics::{ExecutorMetrics, MonitorMetrics, WorkerMetrics};
pub use options::{Audit, OnFailure, Options};
pub use shutdown::Terminated;
pub use watchdog::{Stuck, StuckCode};
pub use weigh::{Unweighed, Weigh, Weights};
