//! Where events are kept, and how an aggregate's state comes out of them.
//!
//! ```text
//!   decide ──► EventStream ──append──► EventStore ──load──► AggregateState::source ──► state at a version
//! ```
//!
//! # The store's contract
//! [`EventStore::append`] is atomic per aggregate. Per aggregate a version is taken once and a request is answered once: of two
//! writers of one version exactly one wins, the other gets [`AppendError::VersionConflict`] (or
//! [`AppendError::DuplicateAggregateId`] at the first version). Loads give copies in the order of versions.
//!
//! Owns the contract, the in-memory store and state sourcing. Deliberately decides nothing, publishes nothing, and knows no
//! executor.
//!
//! ```
//! use wow_eventsourcing::{Aggregate, AggregateEvent, AggregateState, EventStore, MemoryEventStore, load_state};
//! use wow_message::{AggregateId, EventStream, NamedAggregate, Version};
//!
//! #[derive(Default)]
//! struct Account { balance: i64 }
//! struct PaidIn(i64);
//!
//! impl AggregateEvent for PaidIn {
//!     fn name(&self) -> &'static str { "paid_in" }
//! }
//! impl Aggregate for Account {
//!     const NAME: &'static str = "account";
//!     type Event = PaidIn;
//!     type Error = std::convert::Infallible;
//!     fn apply(&mut self, event: &PaidIn) { self.balance += event.0; }
//! }
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let store = MemoryEventStore::new();
//! let id = AggregateId::new(NamedAggregate::new("bank", Account::NAME), "4711");
//! let stream = EventStream::builder(id.clone(), Version::INITIAL).event("paid_in", PaidIn(5)).build()?;
//! store.append(stream.clone()).await?;
//! assert!(store.append(stream).await.is_err(), "a version is taken once");
//!
//! let state: AggregateState<Account> = load_state(&store, id).await?;
//! assert_eq!((state.version(), state.root().balance), (Version::INITIAL, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap().unwrap();
//! ```
#![forbid(unsafe_code)]

mod aggregate;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod lifecycle;
mod memory;
mod state;
mod store;

pub use aggregate::{Aggregate, AggregateEvent, Spaces};
pub use error::{AppendError, LoadError, LoadStateError, SourcingError};
pub use lifecycle::LifecycleEvent;
pub use memory::MemoryEventStore;
pub use state::{AggregateState, load_state};
pub use store::EventStore;
