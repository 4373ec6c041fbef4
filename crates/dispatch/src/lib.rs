//! From a receiver to a handler: the dispatch engine, its kinds, and the service that puts them together.
//!
//! A message goes through six steps, each with its file:
//!
//! ```text
//!   transport ─▶ source ──────▶ intake ───────▶ execution ────▶ kind.handle ─▶ acknowledge ─▶ under way ends
//!                stop switch    screen, admit,  in order per    command.rs,                   admission.rs
//!                source.rs      key, confirm    aggregate       projection.rs
//!                               intake.rs       execution.rs
//! ```
//!
//! Open first: [`Service`] for how an application is written, then [`DispatchKind`] and [`Dispatcher`] for the engine.
//! Guarantees: the messages of one aggregate are handled one after the other, in the order they arrived, those of different
//! aggregates at the same time; a message holds an activity of the runtime until it has ended, so a graceful stop loses nothing
//! that was admitted; what is not admitted is not acknowledged. All of it holds with either [`Strategy`]; with the default, the
//! keyed executor, no aggregate waits for another. Starts no thread of its own and reads no configuration.
#![forbid(unsafe_code)]

mod admission;
mod child;
mod cleanup;
mod command;
mod config;
mod decide;
mod dispatcher;
mod error;
mod event;
mod execution;
mod functions;
mod intake;
mod kind;
mod ledger;
mod notes;
mod projection;
mod service;
mod source;
mod watch;
mod weight;

pub use cleanup::CleanupRefused;
pub use command::{
    AggregateFunctions, AggregateFunctionsBuilder, CommandError, CommandErrorHandler, CommandFailure,
    CommandKind, GuardRefusal, InstanceCache, NotSent, NotSentReason,
};
pub use config::{DispatchConfig, Strategy, defaults, limits};
pub use decide::{AggregateCommand, CommandMode, Events, Handle};
pub use dispatcher::Dispatcher;
pub use error::{DispatchFailure, PrepareError, StartError};
pub use event::Event;
pub use execution::Execution;
pub use functions::{EventFailure, EventOutcome, FunctionName};
pub use kind::{DispatchKind, Handled, Screening};
pub use notes::{Doing, HandlerName, Notes, StuckHandler};
pub use projection::{EventErrorHandler, Projection, ProjectionKind, UnrecordedFailure};
pub use service::{
    Buses, DispatcherMetrics, Observer, Processed, Reply, Running, SendAndWait, SendForReply, SendUnheard,
    Sender, Sending, Sent, Service, ServiceBuildError, ServiceBuilder, ServiceMetrics, ServiceProblem, Stage,
};
pub use wow_aggregate_scheduler::Groups;
