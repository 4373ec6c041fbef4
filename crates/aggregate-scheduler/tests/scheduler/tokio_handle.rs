//! With the feature `tokio`, handlers use the timers of a runtime that is the user's.

use std::num::NonZeroU16;
use std::time::Duration;

use futures_util::stream;
use keyed_executor::Options;
use wow_aggregate_scheduler::{DefaultSchedulerSupplier, Grouped, SchedulerSupplier};
use wow_testkit::finish;

use crate::common::{ORDER, groups};

#[test]
fn a_tokio_timer_works_inside_a_handler_and_holds_its_group_only() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let runtime = runtime.expect("a runtime can be built");
    let supplier = DefaultSchedulerSupplier::new("timers", NonZeroU16::MIN).tokio(runtime.handle().clone());
    let scheduler = supplier.get_or_initialize(ORDER).expect("open");
    let ids = (0..20).map(|n| Ok::<_, String>(format!("id-{n}")));
    let dispatch = Grouped::on(scheduler, groups(4)).dispatch(
        Options::new("timers"),
        stream::iter(ids),
        |id| id.as_str(),
        |_| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        },
    );
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 20);
}
