//! The vocabulary every other crate speaks: identities, commands, event streams, headers.
//!
//! ```text
//!   Command ──(one aggregate decides)──► EventStream [DomainEvent, ...] ──► projections, sagas
//!      │                                     │
//!      └── AggregateId, RequestId, Header ───┘   identity and context travel with both
//! ```
//!
//! Owns plain data only. Invariant: what a bus emitted does not change any more; a message's parts are shared behind one
//! reference count and only its [`Header`] can be written, until it is made read-only. Deliberately absent: transport,
//! storage, serialisation formats, executors.
//!
//! ```
//! use wow_message::{AggregateId, Command, EventStream, NamedAggregate, Version};
//!
//! let account = NamedAggregate::new("bank", "account");
//! let command = Command::builder(AggregateId::new(account, "4711"), "withdraw 5").name("withdraw").build();
//! let stream = EventStream::answering(&command, Version::INITIAL)
//!     .event("withdrawn", 5_i64)
//!     .build()?;
//! assert_eq!(stream.command_id(), Some(command.id()));
//! assert_eq!(stream.events()[0].body_as::<i64>(), Some(&5));
//! # Ok::<(), wow_message::EmptyEventStream>(())
//! ```
#![forbid(unsafe_code)]

mod aggregate;
mod answer;
mod command;
mod error_info;
mod event;
mod header;
mod id;
mod message;
mod name;
mod stream;
mod time;
mod topic;

pub use aggregate::{AggregateId, AggregateKey, DEFAULT_TENANT, IdTooLong, NamedAggregate, Version};
pub use answer::Answer;
pub use command::{Command, CommandBuilder, CommandUse, Creation};
pub use error_info::{ErrorInfo, Recoverability, codes};
pub use event::{DEFAULT_REVISION, DomainEvent};
pub use header::{Header, ReadOnlyHeader, keys};
pub use id::{MessageId, ParseMessageIdError, RequestId};
pub use message::{Body, Message};
pub use name::Name;
pub use stream::{EmptyEventStream, EventStream, EventStreamBuilder};
pub use time::Timestamp;
pub use topic::TopicKind;
