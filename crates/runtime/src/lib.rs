//! The life cycle of a service: its parts come up together, serve, and go down losing nothing that was accepted.
//!
//! ```text
//!            prepare each, start each                 stop
//!   New ──────────────────────────────▶ Running ───────────────▶ Stopping ─────────────▶ Stopped
//!    │            Starting                 │   suspend, quiet, close, quiesce, drain,        ▲
//!    │               │                     │   stop each in reverse, close the executor      │
//!    │               ▼ failed              ▼ forced, or past the deadline                    │
//!    │           (roll back)          ForceStopping ─────────────────────────────────────────┤
//!    └──────────────────────────────── stop ─────────────────────────────────────────────────┘
//! ```
//!
//! This crate owns the order of those steps and the count of what is under way. It knows no message, no transport and
//! no configuration file, and it needs no async runtime: a start runs in the caller's task, a stop on a thread of its
//! own, and timers on a thread that exists only while one is set.
//!
//! Open first: [`Component`], then `phase.rs` for the states and `shutdown.rs` for the numbered procedure.
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//! use wow_runtime::{async_trait, Component, ComponentError, Context, Runtime, Stage, StopContext};
//! use keyed_executor::{Config, KeyedExecutor};
//!
//! struct Clock;
//!
//! #[async_trait]
//! impl Component for Clock {
//!     fn name(&self) -> &str { "clock" }
//!     async fn prepare(&self, _: Context) -> Result<(), ComponentError> { Ok(()) }
//!     fn start(&self) -> Result<(), ComponentError> { Ok(()) }
//!     fn quiesce(&self) -> Result<(), ComponentError> { Ok(()) }
//!     async fn stop_gracefully(&self, _: StopContext) -> Result<(), ComponentError> { Ok(()) }
//!     fn force_stop(&self) -> Result<(), ComponentError> { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let executor = KeyedExecutor::new(Config { workers: 1, ..Config::default() })?;
//! let runtime = Runtime::builder(executor)
//!     .component(Stage::RESOURCES, Arc::new(Clock))
//!     .quiet_period(std::time::Duration::ZERO)
//!     .build()?;
//! runtime.start().await?;
//! let report = runtime.stop().await;
//! assert!(report.is_clean(), "{report}");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod activity;
mod builder;
mod component;
mod context;
mod drive;
mod entry;
mod error;
mod executor;
mod failure;
mod force;
mod lifecycle;
mod phase;
mod quiet;
mod report;
mod runtime;
mod shutdown;
mod stage;
mod start;
mod sync;
mod termination;
#[cfg(test)]
mod tests;
mod timer;
#[cfg(any(test, feature = "test-util"))]
mod timer_manual;
mod waiters;

pub use activity::{Activity, ActivityGate, Idle};
pub use async_trait::async_trait;
pub use builder::{Builder, defaults};
pub use component::{Component, ComponentError};
pub use context::{Context, StopContext};
pub use error::{BuildError, BuildProblem, StartError, WaitError};
pub use failure::{Failure, FailureCause, Step};
pub use phase::Phase;
pub use report::{ComponentEnd, ComponentReport, Ending, ShutdownReport, StepTime, WorkLedger};
pub use runtime::Runtime;
pub use stage::Stage;
pub use termination::Termination;
pub use timer::{Callback, Scheduled, SystemTimer, Timer, TimerError};
#[cfg(any(test, feature = "test-util"))]
pub use timer_manual::ManualTimer;
