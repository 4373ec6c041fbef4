//! The suite every event store runs, feature `conformance`: what the crate's page promises, as checks.
//!
//! Aggregates are named afresh by each check, so checks can share a database. Bodies are numbers (`u32`): a store that
//! serialises needs a codec for those.
//!
//! ```
//! use wow_eventsourcing::{MemoryEventStore, conformance};
//!
//! # let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! tokio.block_on(conformance::run(&MemoryEventStore::new()));
//! ```

use wow_message::{
    AggregateId, EventStream, Message, MessageId, NamedAggregate, RequestId, Timestamp, Version,
};

use crate::error::{AppendError, LoadError};
use crate::store::EventStore;

/// Every check, one after the other.
///
/// # Panics
/// If the store breaks a promise; the message says which.
pub async fn run(store: &impl EventStore) {
    a_version_is_taken_once(store).await;
    the_first_version_creates(store).await;
    a_request_is_answered_once_per_aggregate(store).await;
    a_resent_create_is_a_duplicate_request(store).await;
    versions_may_have_gaps_but_only_rise(store).await;
    loads_are_in_order_and_inclusive(store).await;
    loads_by_time_are_inclusive(store).await;
    an_inverted_range_is_refused(store).await;
    loaded_streams_are_copies(store).await;
    an_unknown_aggregate_is_empty(store).await;
    tenants_are_apart(store).await;
    scans_list_each_aggregate_once_in_order(store).await;
    many_requests_stay_distinct(store).await;
}

/// Of two streams of one version the second conflicts.
pub async fn a_version_is_taken_once(store: &impl EventStore) {
    let id = fresh_id();
    append(store, stream(&id, 1)).await;
    append(store, stream(&id, 2)).await;
    let second = store.append(stream(&id, 2)).await;
    assert!(
        matches!(&second, Err(AppendError::VersionConflict { version, last, .. }) if version.get() == 2 && last.get() == 2),
        "version 2 twice is a conflict, not {second:?}"
    );
    let held = store.load(&id, Version::INITIAL..=Version::MAX).await.expect("loads");
    assert!(held.len() == 2, "a refused stream is not stored");
}

/// Version 1 twice means the aggregate exists.
pub async fn the_first_version_creates(store: &impl EventStore) {
    let id = fresh_id();
    append(store, stream(&id, 1)).await;
    let second = store.append(stream(&id, 1)).await;
    assert!(
        matches!(&second, Err(AppendError::DuplicateAggregateId(given)) if **given == id),
        "version 1 twice is a duplicate aggregate id, not {second:?}"
    );
}

/// The same request cannot be answered twice by one aggregate, but by two.
pub async fn a_request_is_answered_once_per_aggregate(store: &impl EventStore) {
    let (id, other) = (fresh_id(), fresh_id());
    let request = RequestId::from(MessageId::next());
    append(store, answering(&id, 1, &request)).await;
    let second = store.append(answering(&id, 2, &request)).await;
    assert!(
        matches!(&second, Err(AppendError::DuplicateRequestId { request_id, .. }) if *request_id == request),
        "one request twice is a duplicate request id, not {second:?}"
    );
    append(store, answering(&other, 1, &request)).await;
    assert!(store.exists_request_id(&id, &request).await.expect("answers"), "an answered request is known");
    let unknown = RequestId::from(MessageId::next());
    assert!(!store.exists_request_id(&id, &unknown).await.expect("answers"), "another one is not");
}

/// A create that is sent again under its request id is that request, not another aggregate.
pub async fn a_resent_create_is_a_duplicate_request(store: &impl EventStore) {
    let id = fresh_id();
    let request = RequestId::from(MessageId::next());
    append(store, answering(&id, 1, &request)).await;
    let again = store.append(answering(&id, 1, &request)).await;
    assert!(matches!(&again, Err(AppendError::DuplicateRequestId { .. })), "a resent create is {again:?}");
}

/// A gap is accepted, a version below the last one is not.
pub async fn versions_may_have_gaps_but_only_rise(store: &impl EventStore) {
    let id = fresh_id();
    append(store, stream(&id, 1)).await;
    append(store, stream(&id, 5)).await;
    assert!(matches!(store.append(stream(&id, 3)).await, Err(AppendError::VersionConflict { .. })));
    let last = store.last(&id).await.expect("answers").expect("there is one");
    assert!(last.version() == Version::new(5), "the last stream has the highest version");
}

/// Both ends of a range belong to it.
pub async fn loads_are_in_order_and_inclusive(store: &impl EventStore) {
    let id = fresh_id();
    for version in 1..=5 {
        append(store, stream(&id, version)).await;
    }
    for (head, tail, expected) in [(0, 0, vec![]), (2, 4, vec![2, 3, 4]), (1, 1, vec![1]), (4, 9, vec![4, 5])]
    {
        let loaded = store.load(&id, Version::new(head)..=Version::new(tail)).await.expect("loads");
        let versions: Vec<_> = loaded.iter().map(|stream| stream.version().get()).collect();
        assert!(versions == expected, "versions {head} to {tail} are {expected:?}, not {versions:?}");
    }
}

/// Streams are found by the time they were made.
pub async fn loads_by_time_are_inclusive(store: &impl EventStore) {
    let id = fresh_id();
    for version in 1..=4 {
        let at = Timestamp::from_millis(version * 100);
        let made = EventStream::builder(id.clone(), Version::new(version)).create_time(at).event("e", 0_u32);
        append(store, made.build().expect("an event")).await;
    }
    let times = Timestamp::from_millis(200)..=Timestamp::from_millis(300);
    let loaded = store.load_by_time(&id, times).await.expect("loads");
    let versions: Vec<_> = loaded.iter().map(|stream| stream.version().get()).collect();
    assert!(versions == [2, 3], "made between 200 and 300 ms: {versions:?}");
}

/// A range that ends before it begins is an error of the caller.
pub async fn an_inverted_range_is_refused(store: &impl EventStore) {
    let id = fresh_id();
    let by_version = store.load(&id, Version::new(2)..=Version::new(1)).await;
    assert!(matches!(by_version, Err(LoadError::InvertedRange { head: 2, tail: 1 })), "{by_version:?}");
    let by_time = store.load_by_time(&id, Timestamp::from_millis(2)..=Timestamp::from_millis(1)).await;
    assert!(matches!(by_time, Err(LoadError::InvertedRange { head: 2, tail: 1 })), "{by_time:?}");
}

/// What a caller does with a loaded stream does not reach the store.
pub async fn loaded_streams_are_copies(store: &impl EventStore) {
    let id = fresh_id();
    let mut original = stream(&id, 1);
    original.make_read_only();
    append(store, original).await;
    let mut loaded = store.last(&id).await.expect("answers").expect("there is one");
    loaded.header_mut().set("mine", "yes").expect("a loaded stream is a writable copy");
    let again = store.load(&id, Version::INITIAL..=Version::MAX).await.expect("loads");
    assert!(again[0].header().get("mine").is_none(), "copies share no header");
    assert!(again[0].events()[0].body_as::<u32>() == Some(&1), "copies have the same events");
}

/// Nothing is known of an aggregate without streams.
pub async fn an_unknown_aggregate_is_empty(store: &impl EventStore) {
    let id = fresh_id();
    assert!(store.load(&id, Version::INITIAL..=Version::MAX).await.expect("loads").is_empty());
    assert!(store.last(&id).await.expect("answers").is_none());
    assert!(!store.exists_request_id(&id, &RequestId::from(MessageId::next())).await.expect("answers"));
}

/// The same id of another tenant is another aggregate.
pub async fn tenants_are_apart(store: &impl EventStore) {
    let ours = fresh_id();
    let theirs = ours.clone().with_tenant("acme");
    append(store, stream(&ours, 1)).await;
    append(store, stream(&theirs, 1)).await;
    append(store, stream(&theirs, 2)).await;
    assert!(store.last(&ours).await.expect("answers").expect("there is one").version() == Version::INITIAL);
}

/// A scan goes on after an id, ends at a limit, and sees other types never.
pub async fn scans_list_each_aggregate_once_in_order(store: &impl EventStore) {
    let (named, other) = (fresh_aggregate(), fresh_aggregate());
    let ids: Vec<_> = ["a", "b", "c", "d"].map(|id| AggregateId::new(named, id)).into();
    for id in ids.iter().rev() {
        append(store, stream(id, 1)).await;
        append(store, stream(id, 2)).await;
    }
    append(store, stream(&AggregateId::new(other, "b"), 1)).await;
    let all = store.scan(named, None, 10).await.expect("scans");
    assert!(all == ids, "all, once, in order: {all:?}");
    let some = store.scan(named, Some(&ids[0]), 2).await.expect("scans");
    assert!(some == ids[1..3], "two after the first: {some:?}");
    assert!(store.scan(named, Some(&ids[3]), 10).await.expect("scans").is_empty(), "none after the last");
}

/// However long an aggregate's history, each of its requests is known.
pub async fn many_requests_stay_distinct(store: &impl EventStore) {
    let id = fresh_id();
    let requests: Vec<_> = (0..100).map(|_| RequestId::from(MessageId::next())).collect();
    for (version, request) in (1..).zip(&requests) {
        append(store, answering(&id, version, request)).await;
    }
    for request in &requests {
        assert!(store.exists_request_id(&id, request).await.expect("answers"));
        let again = store.append(answering(&id, 101, request)).await;
        assert!(matches!(again, Err(AppendError::DuplicateRequestId { .. })), "{again:?}");
    }
}

async fn append(store: &impl EventStore, stream: EventStream) {
    store.append(stream).await.expect("the store takes the stream");
}

fn stream(id: &AggregateId, version: u64) -> EventStream {
    answering(id, version, &RequestId::from(MessageId::next()))
}

fn answering(id: &AggregateId, version: u64, request: &RequestId) -> EventStream {
    let body = u32::try_from(version).expect("a small version");
    let stream = EventStream::builder(id.clone(), Version::new(version)).request_id(request.clone());
    stream.event("happened", body).build().expect("an event")
}

fn fresh_aggregate() -> NamedAggregate {
    NamedAggregate::new("conformance", format!("sample-{}", MessageId::next()))
}

fn fresh_id() -> AggregateId {
    AggregateId::new(fresh_aggregate(), "1")
}
