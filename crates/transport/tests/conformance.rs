//! The in-memory bus passes the suite that every bus runs, with every capacity.

use std::time::Duration;

use wow_message::{Command, EventStream, Version};
use wow_transport::conformance::Suite;
use wow_transport::{Capacity, MemoryBus};

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_memory_bus_of_commands_conforms() {
    for capacity in [Capacity::Unbounded, Capacity::Bounded(2), Capacity::Bounded(1_000)] {
        let suite = Suite::new(|| MemoryBus::<Command>::new(capacity), |id| Command::builder(id, ()).build());
        tokio::time::timeout(LIMIT, suite.run()).await.expect("no check hangs");
    }
}

#[tokio::test]
async fn the_memory_bus_of_event_streams_conforms() {
    for capacity in [Capacity::Unbounded, Capacity::Bounded(2), Capacity::Bounded(1_000)] {
        let suite = Suite::new(
            || MemoryBus::<EventStream>::new(capacity),
            |id| EventStream::builder(id, Version::INITIAL).event("happened", ()).build().expect("an event"),
        );
        tokio::time::timeout(LIMIT, suite.run()).await.expect("no check hangs");
    }
}
