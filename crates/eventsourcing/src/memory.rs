//! `MemoryEventStore`: streams in the memory of this process, for tests and for services that may forget.
//!
//! Aggregates are spread over shards with a lock each, held only for one look or push, so every answer is there at once.
//! Invariant: a log's versions rise strictly and its request ids are distinct, the tenant being part of the aggregate.
//! Deliberately keeps everything: memory grows with the events.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use wow_message::{AggregateId, Answer, EventStream, Message, NamedAggregate, RequestId, Timestamp, Version};

use crate::error::{AppendError, LoadError};
use crate::store::EventStore;

const N_SHARDS: usize = 64;
/// Up to this many requests are kept in a list, which is faster to search than a set.
const MAX_LISTED: usize = 16;

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
    hasher: RandomState,
}

type Shard = HashMap<AggregateId, Log, RandomState>;

#[derive(Default)]
struct Log {
    streams: Vec<EventStream>,
    /// The version of the last stream, kept here so that an append need not fetch that stream.
    last: Version,
    requests: Requests,
}

/// The hashes of the requests that a log answers, so that most logs are searched without touching their streams.
enum Requests {
    Few(Vec<u64>),
    Many(HashSet<u64, RandomState>),
}

impl Default for Requests {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Requests {
    fn may_contain(&self, hash: u64) -> bool {
        match self {
            Self::Few(hashes) => hashes.contains(&hash),
            Self::Many(hashes) => hashes.contains(&hash),
        }
    }

    fn insert(&mut self, hash: u64) {
        match self {
            Self::Few(hashes) if hashes.len() < MAX_LISTED => hashes.push(hash),
            Self::Few(hashes) => {
                let mut many: HashSet<_, _> = hashes.drain(..).collect();
                many.insert(hash);
                *self = Self::Many(many);
            }
            Self::Many(hashes) => {
                hashes.insert(hash);
            }
        }
    }
}

impl MemoryEventStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let shards = (0..N_SHARDS).map(|_| Mutex::new(Shard::default())).collect();
        Self { shards, hasher: RandomState::default() }
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
    /// Appends a stream whose request has this hash.
    fn append(&mut self, stream: EventStream, hash: u64) -> Result<(), AppendError> {
        self.check(&stream, hash)?;
        self.requests.insert(hash);
        self.last = stream.version();
        self.streams.push(stream);
        Ok(())
    }

    /// First the version, then the request; but a create resent for the request that created is that request again.
    fn check(&self, stream: &EventStream, hash: u64) -> Result<(), AppendError> {
        let (aggregate_id, version) = (stream.aggregate_id(), stream.version());
        let duplicate_request = || AppendError::DuplicateRequestId {
            aggregate_id: aggregate_id.clone().into(),
            request_id: stream.request_id().clone(),
        };
        let last = self.last;
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
        if self.answers(stream.request_id(), hash) { Err(duplicate_request()) } else { Ok(()) }
    }

    fn answers(&self, request_id: &RequestId, hash: u64) -> bool {
        self.requests.may_contain(hash) && self.streams.iter().any(|stored| stored.request_id() == request_id)
    }
}

impl EventStore for MemoryEventStore {
    fn append(&self, stream: EventStream) -> Answer<Result<(), AppendError>> {
        let hash = self.hasher.hash_one(stream.request_id());
        let mut shard = self.shard(stream.aggregate_id());
        Answer::ready(match shard.get_mut(stream.aggregate_id()) {
            Some(log) => log.append(stream, hash),
            None => {
                let mut log = Log::default();
                let id = stream.aggregate_id().clone();
                let appended = log.append(stream, hash);
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
        let hash = self.hasher.hash_one(request_id);
        Answer::ready(Ok(self.shard(id).get(id).is_some_and(|log| log.answers(request_id, hash))))
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
