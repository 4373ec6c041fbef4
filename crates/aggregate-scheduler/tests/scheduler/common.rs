//! What the tests of this crate share: names, suppliers, and ids that lie in a chosen group.
//!
//! Invariant: an id is chosen by the hash that `hash.rs` pins with vectors, never by trying a dispatch.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use wow_aggregate_scheduler::{DefaultSchedulerSupplier, Grouped, Groups, NamedAggregate, SchedulerSupplier};
use wow_testkit::PATIENCE;

pub(crate) const ORDER: NamedAggregate<'static> = NamedAggregate { context: "shop", aggregate: "order" };

pub(crate) fn supplier(name: &str, parallelism: u16) -> Arc<DefaultSchedulerSupplier> {
    let parallelism = NonZeroU16::new(parallelism).expect("a test has threads");
    Arc::new(DefaultSchedulerSupplier::new(name, parallelism))
}

pub(crate) fn groups(count: u32) -> Groups {
    Groups::new(NonZeroU32::new(count).expect("a test has groups"))
}

/// Groups on the scheduler for [`ORDER`].
pub(crate) fn grouped(supplier: &DefaultSchedulerSupplier, count: u32) -> Grouped {
    let scheduler = supplier.get_or_initialize(ORDER).expect("the supplier is open");
    Grouped::on(scheduler, groups(count))
}

/// So many different ids in one group.
pub(crate) fn ids_in(group: u32, count: u32, ids: usize) -> Vec<String> {
    let numbered = (0..).map(|n: u32| format!("id-{n}"));
    numbered.filter(|id| groups(count).of(id) == group).take(ids).collect()
}

/// An id in this group.
pub(crate) fn id_in(group: u32, count: u32) -> String {
    ids_in(group, count, 1).remove(0)
}

/// Everything that was sent, once the last sender is dropped; with the handlers that hold one, that is.
#[track_caller]
pub(crate) fn everything<T>(receiver: &Receiver<T>) -> Vec<T> {
    let mut received = Vec::new();
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(item) => received.push(item),
            Err(RecvTimeoutError::Disconnected) => return received,
            Err(RecvTimeoutError::Timeout) => panic!("a sender was kept for {PATIENCE:?}"),
        }
    }
}
