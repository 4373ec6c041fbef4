//! How a state comes out of streams (SS-1, SS-2, ES-6).

use std::collections::BTreeMap;
use std::convert::Infallible;

use wow_eventsourcing::{
    Aggregate, AggregateEvent, AggregateState, EventStore, LifecycleEvent, MemoryEventStore, SourcingError,
    load_state,
};
use wow_message::{
    AggregateId, ErrorInfo, EventStream, Header, Name, NamedAggregate, Timestamp, Version, codes, keys,
};

#[derive(Default)]
struct Log {
    seen: Vec<u32>,
}

struct Seen(u32);

impl AggregateEvent for Seen {
    fn name(&self) -> &'static str {
        "seen"
    }
}

impl Aggregate for Log {
    const NAME: &'static str = "log";
    type Event = Seen;
    type Error = Infallible;

    fn apply(&mut self, event: &Seen) {
        assert!(event.0 != 666, "an event that cannot be applied");
        self.seen.push(event.0);
    }
}

fn id() -> AggregateId {
    AggregateId::new(NamedAggregate::new("test", Log::NAME), "1")
}

fn stream(version: u64, numbers: &[u32]) -> EventStream {
    let mut stream = EventStream::builder(id(), Version::new(version));
    for n in numbers {
        stream = stream.event("seen", Seen(*n));
    }
    stream.build().expect("an event")
}

#[test]
fn events_are_applied_in_order_and_the_version_follows() {
    let mut state = AggregateState::<Log>::new(id());
    assert_eq!(state.version(), Version::UNINITIALISED);
    state.source(&stream(1, &[1, 2])).expect("the first");
    state.source(&stream(2, &[3])).expect("the second");
    assert_eq!(state.root().seen, [1, 2, 3]);
    assert_eq!(state.version(), Version::new(2));
}

#[test]
fn only_the_next_stream_of_the_same_aggregate_is_applied() {
    let mut state = AggregateState::<Log>::new(id());
    state.source(&stream(1, &[1])).expect("the first");
    for wrong in [1, 3] {
        let refused = state.source(&stream(wrong, &[9])).expect_err("not the next");
        assert!(
            matches!(refused, SourcingError::VersionConflict { expected, .. } if expected == Version::new(2))
        );
    }
    let foreign = EventStream::builder(id().with_tenant("acme"), Version::new(2)).event("seen", Seen(9));
    let refused = state.source(&foreign.build().expect("an event")).expect_err("another aggregate");
    assert!(matches!(refused, SourcingError::OtherAggregate { .. }));
    assert_eq!((state.root().seen.as_slice(), state.version()), (&[1][..], Version::INITIAL), "unchanged");
}

#[test]
fn events_of_unknown_types_are_skipped() {
    let mut state = AggregateState::<Log>::new(id());
    let mixed = EventStream::builder(id(), Version::INITIAL).event("new", "text").event("seen", Seen(1));
    state.source(&mixed.build().expect("events")).expect("applies");
    assert_eq!((state.root().seen.as_slice(), state.version()), (&[1][..], Version::INITIAL));
}

#[test]
fn a_first_stream_of_only_failures_changes_nothing() {
    let failed = |version| {
        let failure = ErrorInfo::new(codes::NOT_FOUND, "nothing there");
        EventStream::builder(id(), Version::new(version)).event("failed", failure).build().expect("an event")
    };
    let mut state = AggregateState::<Log>::new(id());
    state.source(&failed(1)).expect("is ignored");
    assert_eq!(state.version(), Version::UNINITIALISED);
    state.source(&stream(1, &[1])).expect("the aggregate can still be created");
    state.source(&failed(2)).expect("later failures are part of the history");
    assert_eq!(state.version(), Version::new(2));
}

#[test]
fn the_version_does_not_advance_if_an_event_cannot_be_applied() {
    let mut state = AggregateState::<Log>::new(id());
    let deleting = EventStream::builder(id(), Version::INITIAL)
        .event("deleted", LifecycleEvent::Deleted)
        .event("seen", Seen(666))
        .build()
        .expect("events");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| state.source(&deleting)));
    assert!(panicked.is_err());
    assert_eq!(state.version(), Version::UNINITIALISED);
    assert!(!state.is_deleted());
}

#[test]
fn lifecycle_events_change_what_surrounds_the_root() {
    let mut state = AggregateState::<Log>::new(id());
    let mut header = Header::new();
    header.set(keys::OPERATOR, "ann").expect("writable");
    let created = EventStream::builder(id(), Version::INITIAL)
        .owner("ann")
        .space("s1")
        .header(header)
        .create_time(Timestamp::from_millis(1))
        .event("seen", Seen(1))
        .build()
        .expect("an event");
    state.source(&created).expect("applies");
    assert_eq!((state.owner().as_str(), state.space().as_str()), ("ann", "s1"));

    let tags = BTreeMap::from([(Name::from("colour"), vec![Name::from("red")])]);
    let changed = EventStream::builder(id(), Version::new(2))
        .create_time(Timestamp::from_millis(2))
        .event("o", LifecycleEvent::OwnerTransferred { to: Name::from("bob") })
        .event("s", LifecycleEvent::SpaceTransferred { to: Name::from("s2") })
        .event("t", LifecycleEvent::TagsApplied { tags: tags.clone() })
        .event("d", LifecycleEvent::Deleted)
        .build()
        .expect("events");
    state.source(&changed).expect("applies");
    assert_eq!((state.owner().as_str(), state.space().as_str()), ("bob", "s2"));
    assert_eq!(state.tags(), &tags);
    assert!(state.is_deleted());
    assert_eq!((state.first_operator().as_str(), state.last_operator().as_str()), ("ann", ""));
    assert_eq!((state.first_event_at().as_millis(), state.last_event_at().as_millis()), (1, 2));
    assert_eq!(state.last_stream(), Some(changed.id()));

    let recovered = EventStream::builder(id(), Version::new(3)).event("r", LifecycleEvent::Recovered);
    state.source(&recovered.build().expect("an event")).expect("applies");
    assert!(!state.is_deleted());
}

#[tokio::test]
async fn a_state_is_loaded_from_all_its_streams_and_empty_without_any() {
    let store = MemoryEventStore::new();
    let empty: AggregateState<Log> = load_state(&store, id()).await.expect("loads");
    assert_eq!(empty.version(), Version::UNINITIALISED);
    for version in 1..=3 {
        let number = u32::try_from(version).expect("small");
        store.append(stream(version, &[number])).await.expect("appends");
    }
    let state: AggregateState<Log> = load_state(&store, id()).await.expect("loads");
    assert_eq!((state.root().seen.as_slice(), state.version()), (&[1, 2, 3][..], Version::new(3)));
}
