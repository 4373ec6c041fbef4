//! Commands over a store that takes its time (PF-13): from which delay on does the hand-over between threads not matter any more?
//!
//! A whole service: commands decided, events appended to a store in memory that first waits so long without a thread, sender told.
//! One command under way at a time, then 64. The wait comes from a timer thread, so that a short one lasts longer than it says,
//! the same for both. A regression is a ratio without delay that falls by more than a third.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use keyed_executor::Config;
use wow_dispatch::{
    AggregateCommand, CommandMode, DispatchConfig, Events, Handle, Processed, Running, Service, Strategy,
};
use wow_eventsourcing::{Aggregate, AggregateEvent, AppendError, EventStore, LoadError, MemoryEventStore};
use wow_message::{AggregateId, Answer, EventStream, Name, NamedAggregate, RequestId, Timestamp, Version};
use wow_testkit::{after, finish};

use crate::clock::{now, pass};
use crate::sample::{Sample, WARM_UP};
use crate::table::Columns;
use crate::usage::Usage;
use crate::{Part, Scenario};

const TIME: Duration = Duration::from_millis(150);
/// Accounts of one caller; nobody else sends to them.
const ACCOUNTS: u64 = 4;

pub(crate) const PART: Part = Part {
    name: "store",
    title: "Commands over a store with a delay (PF-13)",
    columns: Columns::Latency,
    scenarios,
};

fn scenarios() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for n_callers in [1, 64] {
        for micros in [0, 20, 100, 500, 2_000] {
            let callers = if n_callers == 1 { "1 caller".to_owned() } else { format!("{n_callers} callers") };
            let name = match micros {
                0 => format!("no delay, {callers}"),
                _ => format!("{micros} us, {callers}"),
            };
            let delay = Duration::from_micros(micros);
            scenarios.push(Scenario::new(name, move |strategy| run(strategy, delay, n_callers)));
        }
    }
    scenarios
}

fn run(strategy: Strategy, delay: Duration, n_callers: u64) -> Sample {
    let executor = Config { name: Strategy::Keyed.name().to_owned(), ..Config::default() };
    let service = Service::builder(strategy.name())
        .aggregate::<Account>(|account| account.command::<Pay>())
        .store(Slow { inner: Arc::new(MemoryEventStore::new()), delay })
        .config(DispatchConfig { executor, strategy, ..DispatchConfig::default() })
        .quiet_period(Duration::ZERO)
        .build()
        .expect("a valid service");
    let running = finish(service.start()).expect("starts");
    let (measuring, stopping) = (AtomicBool::new(false), AtomicBool::new(false));
    let (latencies, time, used) = thread::scope(|scope| {
        let (running, measuring, stopping) = (&running, &measuring, &stopping);
        let callers = scope.spawn(move || {
            let calls = (0..n_callers).map(|caller| call(running, caller, measuring, stopping));
            finish(join_all(calls)).concat()
        });
        pass(WARM_UP);
        let before = Usage::now(strategy.name());
        let began_at = now();
        measuring.store(true, Ordering::Relaxed);
        pass(TIME);
        measuring.store(false, Ordering::Relaxed);
        let time = began_at.elapsed();
        let used = before.zip(Usage::now(strategy.name()));
        stopping.store(true, Ordering::Relaxed);
        (callers.join().expect("a caller does not panic"), time, used)
    });
    let report = finish(running.stop());
    assert!(report.is_clean(), "{strategy}: {report}");
    Sample::of(latencies.len() as u64, time, latencies, used)
}

/// Sends one command after the other; an account refuses one that is out of order.
async fn call(running: &Running, caller: u64, measuring: &AtomicBool, stopping: &AtomicBool) -> Vec<u64> {
    let accounts: Vec<Name> = (0..ACCOUNTS).map(|n| Name::from(format!("{caller}-{n}"))).collect();
    let mut latencies = Vec::with_capacity(1 << 14);
    for number in 0.. {
        for account in &accounts {
            if stopping.load(Ordering::Relaxed) {
                return latencies;
            }
            let sent_at = now();
            let processed = running.send(Pay { account: account.clone(), number }).wait_for(Processed).await;
            processed.expect("every command is in order");
            if measuring.load(Ordering::Relaxed) {
                latencies.push(u64::try_from(sent_at.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
        }
    }
    latencies
}

// === The service ===

#[derive(Default)]
struct Account {
    n_paid: u64,
}

struct Paid;

struct Pay {
    account: Name,
    number: u64,
}

#[derive(Debug)]
struct OutOfOrder;

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a payment is out of order")
    }
}

impl std::error::Error for OutOfOrder {}

impl AggregateEvent for Paid {
    fn name(&self) -> &'static str {
        "paid"
    }
}

impl Aggregate for Account {
    const NAME: &'static str = "account";
    type Event = Paid;
    type Error = OutOfOrder;

    fn apply(&mut self, _: &Paid) {
        self.n_paid += 1;
    }
}

impl AggregateCommand for Pay {
    type Aggregate = Account;
    const NAME: &'static str = "pay";
    const MODE: CommandMode = CommandMode::CreateOrUpdate;

    fn aggregate_id(&self) -> Name {
        self.account.clone()
    }
}

impl Handle<Pay> for Account {
    type Reply = ();

    fn handle(&self, pay: &Pay, events: &mut Events<Paid>) -> Result<(), OutOfOrder> {
        if pay.number != self.n_paid {
            return Err(OutOfOrder);
        }
        events.push(Paid);
        Ok(())
    }
}

/// A store whose appends take a while.
struct Slow {
    inner: Arc<MemoryEventStore>,
    delay: Duration,
}

impl EventStore for Slow {
    fn append(&self, stream: EventStream) -> Answer<Result<(), AppendError>> {
        if self.delay.is_zero() {
            return self.inner.append(stream);
        }
        let (inner, waited) = (Arc::clone(&self.inner), after(self.delay));
        Answer::when(async move {
            waited.await;
            inner.append(stream).await
        })
    }

    fn load(
        &self,
        id: &AggregateId,
        versions: RangeInclusive<Version>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>> {
        self.inner.load(id, versions)
    }

    fn load_by_time(
        &self,
        id: &AggregateId,
        times: RangeInclusive<Timestamp>,
    ) -> Answer<Result<Vec<EventStream>, LoadError>> {
        self.inner.load_by_time(id, times)
    }

    fn last(&self, id: &AggregateId) -> Answer<Result<Option<EventStream>, LoadError>> {
        self.inner.last(id)
    }

    fn exists_request_id(&self, id: &AggregateId, request_id: &RequestId) -> Answer<Result<bool, LoadError>> {
        self.inner.exists_request_id(id, request_id)
    }

    fn scan(
        &self,
        named: NamedAggregate,
        after: Option<&AggregateId>,
        limit: usize,
    ) -> Answer<Result<Vec<AggregateId>, LoadError>> {
        self.inner.scan(named, after, limit)
    }
}
