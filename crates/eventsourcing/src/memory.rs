//! `MemoryEventStore`: streams in the memory of this process, for tests and for services that may forget.
//!
//! Aggregates are spread over shards with a lock each, held only for one look or push, so every answer is there at once.
//! Invariant: a log's versions rise strictly and its request ids are distinct, the tenant being part of the aggregate.
//! Deliberately keeps everything: memory grows with the events.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use wow_message::{AggregateId, Answer, EventStream, Message, NamedAggregate, RequestId, Timestamp, Version};

use crate::error::{AppendError, LoadError};
use crate::store::EventStore;

const N_SHARDS: usize = 64;
/// Up to this many streams a log is searched for a request id; beyond, it keeps a set of them.
const MAX_SEARCHED: usize = 16;

/// An event store in memory.
///
/// ```
/// use wow_eventsourcing::{EventStore, MemoryEventStore};
/// use wow_message::{AggregateId, EventStream, NamedAggregate, Version};
///
/// let store = MemoryEventStore::new();
/// let id = AggregateId::new(NamedAggregate::new("bank", "account"), "1");
/// let stream = EventStream::builder(id.clone(), Version::INITIAL).event("opened", ()).build().unwrap();
/// assert!(store.append(stream).into_ready().unwrap().is_ok());
/// assert_eq!(store.n_streams(), 1);
/// ```
pub struct MemoryEventStore {
    shards: Box<[Mutex<Shard>]>,
}

type Shard = HashMap<AggregateId, Log, RandomState>;

#[derive(Default)]
struct Log {
    streams: Vec<EventStream>,
    requests: Option<HashSet<RequestId, RandomState>>,
}

impl MemoryEventStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let shards = (0..N_SHARDS).map(|_| Mutex::new(Shard::default())).collect();
        Self { shards }
    }

    /// How many streams it holds.
    #[must_use]
    pub fn n_streams(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).values().map(|log| log.streams.len()).sum::<usize>()).sum()
    }

    fn shard(&self, id: &AggregateId) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::try_from(id.key().spread() % N_SHARDS as u64).unwrap_or(0)])
    }

    /// Looks at an aggregate's streams; an unknown one has none.
    fn look<R>(&self, id: &AggregateId, look: impl FnOnce(&[EventStream]) -> R) -> R {
        look(self.shard(id).get(id).map_or(&[], |log| &log.streams))
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ordered<T: Copy + Ord>(range: &RangeInclusive<T>, number: fn(T) -> u64) -> Result<(), LoadError> {
    let (head, tail) = (*range.start(), *range.end());
    if tail < head {
        return Err(LoadError::InvertedRange { head: number(head), tail: number(tail) });
    }
    Ok(())
}

impl Log {
    fn append(&mut self, stream: EventStream) -> Result<(), AppendError> {
        self.check(&stream)?;
        if self.requests.is_none() && self.streams.len() == MAX_SEARCHED {
            self.requests = Some(self.streams.iter().map(|stored| stored.request_id().clone()).collect());
        }
        if let Some(requests) = &mut self.requests {
            requests.insert(stream.request_id().clone());
        }
        self.streams.push(stream);
        Ok(())
    }

    /// First the version, then the request; but a create resent for the request that created is that request again.
    fn check(&self, stream: &EventStream) -> Result<(), AppendError> {
        let (aggregate_id, version) = (stream.aggregate_id(), stream.version());
        let duplicate_request = || AppendError::DuplicateRequestId {
            aggregate_id: aggregate_id.clone().into(),
            request_id: stream.request_id().clone(),
        };
        let last = self.streams.last().map_or(Version::UNINITIALISED, EventStream::version);
        if version <= last {
            let creates = version == Version::INITIAL;
            return Err(match self.streams.first() {
                Some(first) if creates && first.request_id() == stream.request_id() => duplicate_request(),
                Some(_) if creates => AppendError::DuplicateAggregateId(aggregate_id.clone().into()),
                _ => {
                    AppendError::VersionConflict { aggregate_id: aggregate_id.clone().into(), version, last }
                }
            });
        }
        if self.answers(stream.request_id()) { Err(duplicate_request()) } else { Ok(()) }
    }

    fn answers(&self, request_id: &RequestId) -> bool {
        match &self.requests {
            Some(requests) => requests.contains(request_id),
            None => self.streams.iter().any(|stored| stored.request_id() == request_id),
        }
    }
}

impl EventStore for MemoryEventStore {
    fn append(&self, stream: EventStream) -> Answer<Result<(), AppendError>> {
        let mut shard = self.shard(stream.aggregate_id());
        Answer::ready(match shard.get_mut(stream.aggregate_id()) {
            Some(log) => log.append(stream),
            None => {
                let mut log = Log::default();
                let id = stream.aggregate_id().clone();
                let appended = log.append(stream);
                if appended.is_ok() {
                    shard.insert(id, log);
                }
                appended
            }
        })
    }

    fn load(
        &self,
        id: &AggregateId,
        versions: RangeInclusive<Version>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>> {
        Answer::ready(ordered(&versions, Version::get).map(|()| {
            self.look(id, |streams| {
                let head = streams.partition_point(|stored| stored.version() < *versions.start());
                let tail = streams.partition_point(|stored| stored.version() <= *versions.end());
                streams[head..tail].iter().map(Message::writable_copy).collect()
            })
        }))
    }

    fn load_by_time(
        &self,
        id: &AggregateId,
        times: RangeInclusive<Timestamp>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>> {
        Answer::ready(ordered(&times, Timestamp::as_millis).map(|()| {
            self.look(id, |streams| {
                let made_then = streams.iter().filter(|stored| times.contains(&stored.create_time()));
                made_then.map(Message::writable_copy).collect()
            })
        }))
    }

    fn last(&self, id: &AggregateId) -> Answer<Result<Option<EventStream>, LoadError>> {
        Answer::ready(Ok(self.look(id, |streams| streams.last().map(Message::writable_copy))))
    }

    fn exists_request_id(&self, id: &AggregateId, request_id: &RequestId) -> Answer<Result<bool, LoadError>> {
        Answer::ready(Ok(self.shard(id).get(id).is_some_and(|log| log.answers(request_id))))
    }

    fn scan(
        &self,
        aggregate: NamedAggregate,
        after: Option<&AggregateId>,
        limit: usize,
    ) -> Answer<Result<Vec<AggregateId>, LoadError>> {
        let place = |id: &AggregateId| (id.id().clone(), id.tenant().clone());
        let after = after.map(place);
        let mut found: Vec<_> = Vec::new();
        for shard in &self.shards {
            let wanted = |id: &&AggregateId| {
                id.named() == aggregate && after.as_ref().is_none_or(|after| place(id) > *after)
            };
            found.extend(lock(shard).keys().filter(wanted).cloned());
        }
        found.sort_unstable_by_key(place);
        found.truncate(limit);
        Answer::ready(Ok(found))
    }
}

impl Default for MemoryEventStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEventStore").field("n_streams", &self.n_streams()).finish_non_exhaustive()
    }
}
