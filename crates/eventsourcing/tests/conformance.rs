//! The in-memory store passes the suite that every store runs, T98 among it.

use std::sync::Arc;

use wow_eventsourcing::{AppendError, EventStore, MemoryEventStore, conformance};
use wow_message::{AggregateId, EventStream, NamedAggregate, Version};

#[tokio::test]
async fn the_memory_store_conforms() {
    conformance::run(&MemoryEventStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_writers_of_a_version_exactly_one_wins() {
    let store = Arc::new(MemoryEventStore::new());
    let id = AggregateId::new(NamedAggregate::new("bank", "account"), "1");
    for version in 1..=100 {
        let writers = (0..8_u32).map(|writer| {
            let (store, id) = (store.clone(), id.clone());
            tokio::spawn(async move {
                let stream = EventStream::builder(id, Version::new(version)).event("e", writer);
                store.append(stream.build().expect("an event")).await
            })
        });
        let mut won = 0;
        for writer in writers.collect::<Vec<_>>() {
            match writer.await.expect("no panic") {
                Ok(()) => won += 1,
                Err(AppendError::VersionConflict { .. } | AppendError::DuplicateAggregateId(_)) => {}
                Err(other) => panic!("unexpected: {other}"),
            }
        }
        assert_eq!(won, 1, "version {version}");
    }
    assert_eq!(store.n_streams(), 100);
}
