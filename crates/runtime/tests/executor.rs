//! A runtime over a real executor: a graceful stop finishes what was accepted, a forced one accounts for it, and a
//! worker never waits for the stop it would hold up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use keyed_executor::{Config, KeyedExecutor, Keyspace};
use wow_runtime::{
    Activity, Component, ComponentError, Context, Ending, Runtime, Stage, StopContext, WaitError, WorkLedger,
    async_trait,
};

const LIMIT: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    handled: AtomicU64,
    discarded: AtomicU64,
}

/// A message counts itself: dropped without having been handled, it was discarded.
struct Message {
    number: u64,
    handled: bool,
    counts: Arc<Counts>,
    _activity: Activity,
}

impl Drop for Message {
    fn drop(&mut self) {
        let count = if self.handled { &self.counts.handled } else { &self.counts.discarded };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// A component that hands messages to a keyspace of the runtime's executor.
struct Lane {
    counts: Arc<Counts>,
    gate: tokio::sync::watch::Receiver<bool>,
    context: Mutex<Option<Context>>,
    keyspace: Mutex<Option<Keyspace<u64, Message>>>,
}

impl Lane {
    fn new(gate: tokio::sync::watch::Receiver<bool>) -> Arc<Self> {
        Arc::new(Self { counts: Arc::default(), gate, context: Mutex::new(None), keyspace: Mutex::new(None) })
    }

    fn keyspace(&self) -> Option<Keyspace<u64, Message>> {
        self.keyspace.lock().unwrap().clone()
    }

    /// Whether the message was admitted.
    fn offer(&self, number: u64) -> bool {
        let context = self.context.lock().unwrap().clone().expect("prepared");
        let Some(activity) = context.try_acquire() else { return false };
        let counts = Arc::clone(&self.counts);
        counts.accepted.fetch_add(1, Ordering::SeqCst);
        let message = Message { number, handled: false, counts, _activity: activity };
        self.keyspace().expect("started").try_submit(number % 7, message).is_ok()
    }
}

#[async_trait]
impl Component for Lane {
    fn name(&self) -> &str {
        "lane"
    }

    async fn prepare(&self, context: Context) -> Result<(), ComponentError> {
        *self.context.lock().unwrap() = Some(context);
        Ok(())
    }

    fn start(&self) -> Result<(), ComponentError> {
        let executor = self.context.lock().unwrap().clone().expect("prepared").executor().clone();
        let gate = self.gate.clone();
        let keyspace = executor.keyspace(move |message: Message| {
            let mut gate = gate.clone();
            async move {
                // The whole message, not copies of the two fields that are used.
                let mut message = message;
                let _ = gate.wait_for(|open| *open).await;
                assert!(message.number < u64::MAX);
                message.handled = true;
            }
        });
        *self.keyspace.lock().unwrap() = Some(keyspace);
        Ok(())
    }

    fn quiesce(&self) -> Result<(), ComponentError> {
        if let Some(keyspace) = self.keyspace() {
            keyspace.close();
        }
        Ok(())
    }

    async fn stop_gracefully(&self, _stop: StopContext) -> Result<(), ComponentError> {
        let keyspace = self.keyspace().ok_or("not started")?;
        keyspace.drained().await;
        Ok(())
    }

    fn force_stop(&self) -> Result<(), ComponentError> {
        if let Some(keyspace) = self.keyspace() {
            keyspace.cancel();
        }
        Ok(())
    }

    fn work(&self) -> Option<WorkLedger> {
        let (accepted, handled, discarded) = (
            self.counts.accepted.load(Ordering::SeqCst),
            self.counts.handled.load(Ordering::SeqCst),
            self.counts.discarded.load(Ordering::SeqCst),
        );
        let in_flight = accepted - handled - discarded;
        Some(WorkLedger { accepted, handled, failed: 0, discarded, in_flight })
    }
}

fn executor() -> KeyedExecutor {
    KeyedExecutor::new(Config { workers: 2, ..Config::default() }).expect("a valid configuration")
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("nothing here takes 30 seconds")
}

#[tokio::test]
async fn a_graceful_stop_finishes_everything_accepted() {
    let (open, gate) = tokio::sync::watch::channel(false);
    let lane = Lane::new(gate);
    let executor = executor();
    let runtime = Runtime::builder(executor.clone())
        .component(Stage::COMMANDS, Arc::clone(&lane) as Arc<dyn Component>)
        .quiet_period(Duration::ZERO)
        .build()
        .expect("a valid runtime");
    within(runtime.start()).await.expect("starts");
    for number in 0..200 {
        assert!(lane.offer(number));
    }
    let stopped = runtime.stop();
    assert!(lane.offer(200), "an activity under way keeps admission open");
    assert!(stopped.report().is_none());
    open.send(true).expect("the handlers wait");
    let report = within(stopped).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.ending, Ending::Drained);
    let work = report.components[0].work.expect("the lane counts");
    assert!(work.is_balanced());
    assert_eq!((work.accepted, work.handled, work.in_flight), (201, 201, 0), "{report}");
    assert!(!lane.offer(201), "closed for good");
    assert!(executor.is_closed());
    within(executor.terminated()).await;
}

#[tokio::test]
async fn a_forced_stop_discards_what_waits_and_accounts_for_it() {
    let (_closed, gate) = tokio::sync::watch::channel(false);
    let lane = Lane::new(gate);
    let executor = executor();
    let runtime = Runtime::builder(executor.clone())
        .component(Stage::COMMANDS, Arc::clone(&lane) as Arc<dyn Component>)
        .build()
        .expect("a valid runtime");
    within(runtime.start()).await.expect("starts");
    for number in 0..200 {
        assert!(lane.offer(number));
    }
    let report = within(runtime.force_stop()).await;
    assert_eq!(report.ending, Ending::Forced);
    let work = report.components[0].work.expect("the lane counts");
    assert!(work.is_balanced(), "{report}");
    assert_eq!((work.accepted, work.handled), (200, 0), "{report}");
    within(executor.terminated()).await;
    assert_eq!(lane.counts.discarded.load(Ordering::SeqCst), 200, "nothing outlives the executor");
    assert_eq!(runtime.activities().active(), 0);
}

#[tokio::test]
async fn a_worker_is_refused_a_blocking_stop() {
    let executor = executor();
    let runtime = Arc::new(
        Runtime::builder(executor.clone()).quiet_period(Duration::ZERO).build().expect("a valid runtime"),
    );
    within(runtime.start()).await.expect("starts");
    let (send, receive) = mpsc::channel();
    let stopping = Arc::clone(&runtime);
    executor.execute(move || send.send(stopping.stop_blocking()).expect("awaited")).expect("open");
    assert!(matches!(receive.recv_timeout(LIMIT), Ok(Err(WaitError::OnWorker))));
    assert!(runtime.is_running(), "the stop is not begun");
    assert!(within(runtime.stop()).await.is_clean());
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn with_tokio_a_component_may_use_its_timers_to_drain() {
    struct Timed;
    #[async_trait]
    impl Component for Timed {
        fn name(&self) -> &str {
            "timed"
        }
        async fn prepare(&self, _context: Context) -> Result<(), ComponentError> {
            Ok(())
        }
        fn start(&self) -> Result<(), ComponentError> {
            Ok(())
        }
        fn quiesce(&self) -> Result<(), ComponentError> {
            Ok(())
        }
        async fn stop_gracefully(&self, _stop: StopContext) -> Result<(), ComponentError> {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        }
        fn force_stop(&self) -> Result<(), ComponentError> {
            Ok(())
        }
    }
    let runtime = Runtime::builder(executor())
        .component(Stage::COMMANDS, Arc::new(Timed))
        .quiet_period(Duration::ZERO)
        .tokio(tokio::runtime::Handle::current())
        .build()
        .expect("a valid runtime");
    within(runtime.start()).await.expect("starts");
    let report = within(runtime.stop()).await;
    assert!(report.is_clean(), "{report}");
}
