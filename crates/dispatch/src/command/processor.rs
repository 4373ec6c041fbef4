//! `Processor`: decides the commands of one aggregate type: take or load the state, guard, decide, apply, append.
//!
//! Decide, apply and append are one unit. Invariants: a state that applied something unstored, or panicked, is thrown away and
//! never decides again; a command is answered from a state that was the latest one when it was decided. A cached state proves
//! that by its append, since the store takes a version once; where nothing is appended the store's last version is compared.
//! What was decided on a state that turns out to be overtaken is decided again, once, on a state loaded afresh.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wow_eventsourcing::{AppendError, EventStore, LoadError};
use wow_message::{AggregateId, Command, Creation, EventStream, Recoverability, Version};

use crate::command::cache::Cache;
use crate::command::failure::CommandFailure;
use crate::command::instance::{AggregateFunctions, Instance};
use crate::command::waits::Waiter;
use crate::error::panic_text;

/// How many states of an aggregate type are kept between commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceCache {
    /// None: every command that is no create loads its aggregate.
    Off,
    /// About this many, the least recently used ones making room.
    Bounded(usize),
}

impl Default for InstanceCache {
    /// 32,768 states.
    fn default() -> Self {
        Self::Bounded(32_768)
    }
}

pub(crate) struct Processor {
    functions: AggregateFunctions,
    store: Arc<dyn EventStore>,
    cache: Cache,
}

/// Where a state came from, and so how far it can be trusted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Empty, for a create.
    Fresh,
    /// Loaded for this command.
    Loaded,
    /// Kept from an earlier command.
    Cached,
}

/// What became of one attempt.
enum Attempt {
    Done(Result<Option<EventStream>, CommandFailure>),
    /// The state had been overtaken before it decided.
    Overtaken,
}

impl Processor {
    pub(super) fn new(
        functions: AggregateFunctions,
        store: Arc<dyn EventStore>,
        cache: InstanceCache,
    ) -> Self {
        let max_states = match cache {
            InstanceCache::Off => 0,
            InstanceCache::Bounded(max_states) => max_states,
        };
        Self { functions, store, cache: Cache::new(max_states) }
    }

    /// Handles one command up to its stored events.
    pub(super) async fn process(
        &self,
        command: &Command,
        waiter: Option<&dyn Waiter>,
    ) -> Result<Option<EventStream>, CommandFailure> {
        self.check_request(command).await?;
        let id = command.aggregate_id();
        let (instance, origin) = if command.creation() == Creation::Create {
            (self.functions.empty(id.clone()), Origin::Fresh)
        } else {
            match self.cache.take(id) {
                Some(cached) => (cached, Origin::Cached),
                None => (self.load(id).await?, Origin::Loaded),
            }
        };
        match self.attempt(instance, origin, command, waiter).await {
            Attempt::Done(result) => result,
            Attempt::Overtaken => {
                let instance = self.load(id).await?;
                match self.attempt(instance, Origin::Loaded, command, waiter).await {
                    Attempt::Done(result) => result,
                    Attempt::Overtaken => {
                        unreachable!("only a cached state can be overtaken before it decides")
                    }
                }
            }
        }
    }

    /// A request that the sender named itself may have been answered before; the command's own id is fresh.
    async fn check_request(&self, command: &Command) -> Result<(), CommandFailure> {
        let (aggregate_id, request_id) = (command.aggregate_id(), command.request_id());
        if request_id.is_message(command.id()) {
            return Ok(());
        }
        let answered = self.store.exists_request_id(aggregate_id, request_id).await;
        if answered.map_err(|failed| CommandFailure::Load(failed.into()))? {
            return Err(CommandFailure::DuplicateRequestId {
                aggregate_id: aggregate_id.clone().into(),
                request_id: request_id.clone(),
            });
        }
        Ok(())
    }

    async fn load(&self, id: &AggregateId) -> Result<Box<dyn Instance>, CommandFailure> {
        let streams = self.store.load(id, Version::INITIAL..=Version::MAX).await;
        let streams = streams.map_err(|failed| CommandFailure::Load(failed.into()))?;
        let mut instance = self.functions.empty(id.clone());
        let source_all = || streams.iter().try_for_each(|stream| instance.source(stream));
        match catch_unwind(AssertUnwindSafe(source_all)) {
            Ok(Ok(())) => Ok(instance),
            Ok(Err(failed)) => Err(CommandFailure::Load(failed.into())),
            Err(panic) => Err(CommandFailure::Panicked(panic_text(panic.as_ref()))),
        }
    }

    async fn attempt(
        &self,
        mut instance: Box<dyn Instance>,
        origin: Origin,
        command: &Command,
        waiter: Option<&dyn Waiter>,
    ) -> Attempt {
        let decided = catch_unwind(AssertUnwindSafe(|| instance.decide(command, waiter)));
        let stream = match decided {
            Ok(Ok(Some(stream))) => stream,
            Ok(nothing_stored) => {
                return self.settle_unchanged(instance, origin, command, nothing_stored).await;
            }
            Err(panic) => return Attempt::Done(Err(CommandFailure::Panicked(panic_text(panic.as_ref())))),
        };
        let applied = match catch_unwind(AssertUnwindSafe(|| instance.source(&stream))) {
            Ok(applied) => applied.map_err(CommandFailure::Apply),
            Err(panic) => Err(CommandFailure::Panicked(panic_text(panic.as_ref()))),
        };
        if let Err(failure) = applied {
            let (id, aggregate) = (command.id(), command.aggregate_id());
            tracing::error!(%id, %aggregate, %failure, "applying decided events failed, nothing is stored");
            return Attempt::Done(Err(failure));
        }
        match self.append(&stream).await {
            Ok(()) => {
                self.cache.put(command.aggregate_id(), instance);
                Attempt::Done(Ok(Some(stream)))
            }
            Err(CommandFailure::Append { append: AppendError::VersionConflict { .. }, .. })
                if origin == Origin::Cached =>
            {
                Attempt::Overtaken
            }
            Err(failure) => Attempt::Done(Err(failure)),
        }
    }

    /// Nothing is to be stored, so no append proves that the state was the latest one: the store is asked.
    async fn settle_unchanged(
        &self,
        instance: Box<dyn Instance>,
        origin: Origin,
        command: &Command,
        result: Result<Option<EventStream>, CommandFailure>,
    ) -> Attempt {
        if origin == Origin::Fresh {
            return Attempt::Done(result);
        }
        if origin == Origin::Cached {
            let last = match self.store.last(command.aggregate_id()).await {
                Ok(last) => last.map_or(Version::UNINITIALISED, |stream| stream.version()),
                Err(failed) => return Attempt::Done(Err(CommandFailure::Load(failed.into()))),
            };
            if last != instance.view().version {
                return Attempt::Overtaken;
            }
        }
        if instance.view().version.is_initialised() {
            self.cache.put(command.aggregate_id(), instance);
        }
        Attempt::Done(result)
    }

    /// Appends, and finds out what happened if the store does not know (CA-8).
    async fn append(&self, stream: &EventStream) -> Result<(), CommandFailure> {
        let Err(append) = self.store.append(stream.clone()).await else { return Ok(()) };
        let mut holder = self.holder(stream).await;
        if matches!(holder, Ok(Holder::Nobody)) && append.recoverability() == Recoverability::Recoverable {
            if self.store.append(stream.clone()).await.is_ok() {
                return Ok(());
            }
            holder = self.holder(stream).await;
        }
        match holder {
            Ok(Holder::Stream) => {
                let (id, aggregate) = (stream.id(), stream.aggregate_id());
                tracing::warn!(stream = %id, %aggregate, failed = %append, "append failed but the stream is stored");
                Ok(())
            }
            Ok(Holder::Nobody | Holder::Other) => Err(CommandFailure::Append { append, read: None }),
            Err(read) => Err(CommandFailure::Append { append, read: Some(read) }),
        }
    }

    /// Who holds the stream's version in the store.
    async fn holder(&self, stream: &EventStream) -> Result<Holder, LoadError> {
        let version = stream.version();
        let held = self.store.load(stream.aggregate_id(), version..=version).await?;
        Ok(match held.first() {
            None => Holder::Nobody,
            Some(held) if held.id() == stream.id() => Holder::Stream,
            Some(_) => Holder::Other,
        })
    }
}

/// Who holds a version.
enum Holder {
    Nobody,
    Stream,
    Other,
}
