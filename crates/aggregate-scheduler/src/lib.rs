//! The aggregate scheduler of the 9.2 line: hash groups on a fixed pool of threads per aggregate type.
//!
//! ```text
//!   supplier ── (context, aggregate) ──▶ scheduler: <name>-<aggregate>-1 .. -n, and -source
//!
//!   source ──▶ group = floor mod of the id's hash ──▶ group 17: m1, m2, m3 ──▶ its thread ──▶ handler(m1), then m2
//!              by the number of groups              └▶ group 42: m4        ──▶ its thread ──▶ handler(m4)
//! ```
//!
//! Kept for two uses: as an execution strategy beside the keyed executor, and as the baseline that the keyed executor
//! is measured against. It holds that one id is handled serially within one dispatch; it does not hold that different
//! ids are independent of each other. The README of this crate has both lists, and says when to choose which.
//!
//! Open first: [`SchedulerSupplier`] for who owns the pools, then [`Grouped`] for what runs on them, then `task.rs` for
//! the one protocol between threads.

#![forbid(unsafe_code)]

mod named;
mod supplier;

mod default_supplier;
mod error;
mod termination;

mod hash;

mod dispatch;
mod scheduler;

mod run;

mod group;
mod source;

mod completion;
mod pool;
mod task;
mod worker;

mod contain;
mod sync;

/// The README's example is compiled and run like every other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use default_supplier::DefaultSchedulerSupplier;
pub use dispatch::{Grouped, GroupedCanceller, GroupedDispatch, Route};
pub use error::SupplierStopped;
pub use hash::{GROUPS_PER_CORE, Groups, group_of, java_string_hash};
pub use named::NamedAggregate;
pub use pool::on_pool_thread;
pub use scheduler::Scheduler;
pub use supplier::{Borrowed, SchedulerSupplier};
pub use termination::{Ending, Termination};
