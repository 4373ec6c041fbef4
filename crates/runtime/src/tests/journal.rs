//! The journal: what happened, in order, with the state of the gate; and the scripted parts that write it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::activity::ActivityGate;
use crate::component::{Component, ComponentError};
use crate::context::{Context, StopContext};
use crate::drive::block_on;
use crate::entry::Entry;
use crate::executor::ExecutorLifecycle;
use crate::lifecycle::{Lifecycle, Settings};
use crate::report::WorkLedger;
use crate::runtime::Runtime;
use crate::timer::Timer;
use crate::timer_manual::ManualTimer;
use crate::waiters::Signal;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const QUIET: Duration = Duration::from_secs(1);

/// Runs `future` on this thread, at most 30 seconds.
pub(crate) fn within<F: Future>(future: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a test runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), future).await.expect("nothing here takes 30 seconds")
    })
}

#[derive(Clone, Default)]
pub(crate) struct Journal {
    lines: Arc<Mutex<Vec<String>>>,
    gate: Arc<Mutex<Option<ActivityGate>>>,
}

impl Journal {
    pub(crate) fn write(&self, line: impl Into<String>) {
        let closed = self.gate.lock().unwrap().as_ref().is_some_and(ActivityGate::is_closed);
        let suffix = if closed { " (closed)" } else { "" };
        self.lines.lock().unwrap().push(format!("{}{suffix}", line.into()));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// The lines without the state of the gate.
    pub(crate) fn verbs(&self) -> Vec<String> {
        self.lines().iter().map(|line| line.replace(" (closed)", "")).collect()
    }

    pub(crate) fn count(&self, verb: &str) -> usize {
        self.verbs().iter().filter(|line| *line == verb).count()
    }
}

pub(crate) struct FakeExecutor(pub(crate) Journal);

impl ExecutorLifecycle for FakeExecutor {
    fn close(&self) {
        self.0.write("executor close");
    }

    fn force_close(&self) {
        self.0.write("executor force");
    }

    fn terminated(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.write("executor terminated");
        Box::pin(std::future::ready(()))
    }
}

type Hook =
    Box<dyn Fn(&Context) -> Pin<Box<dyn Future<Output = Result<(), ComponentError>> + Send>> + Send + Sync>;
type StopHook = Box<
    dyn Fn(StopContext) -> Pin<Box<dyn Future<Output = Result<(), ComponentError>> + Send>> + Send + Sync,
>;
type Prompt = Box<dyn Fn() -> Result<(), ComponentError> + Send + Sync>;

/// A component that writes every call and does what its hooks say.
pub(crate) struct Scripted {
    name: &'static str,
    journal: Journal,
    context: Mutex<Option<Context>>,
    prepare: Hook,
    start: Prompt,
    suspend: Prompt,
    quiesce: Prompt,
    stop: StopHook,
    force: Prompt,
    pub(crate) forced: AtomicUsize,
    work: Option<WorkLedger>,
}

pub(crate) fn ok() -> Prompt {
    Box::new(|| Ok(()))
}

pub(crate) fn fails(text: &'static str) -> Prompt {
    Box::new(move || Err(text.into()))
}

impl Scripted {
    pub(crate) fn new(name: &'static str, journal: &Journal) -> Self {
        Self {
            name,
            journal: journal.clone(),
            context: Mutex::new(None),
            prepare: Box::new(|_| Box::pin(std::future::ready(Ok(())))),
            start: ok(),
            suspend: ok(),
            quiesce: ok(),
            stop: Box::new(|_| Box::pin(std::future::ready(Ok(())))),
            force: ok(),
            forced: AtomicUsize::new(0),
            work: None,
        }
    }

    pub(crate) fn prepare<F>(mut self, hook: impl Fn(&Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ComponentError>> + Send + 'static,
    {
        self.prepare = Box::new(move |context| Box::pin(hook(context)));
        self
    }

    pub(crate) fn stop<F>(mut self, hook: impl Fn(StopContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ComponentError>> + Send + 'static,
    {
        self.stop = Box::new(move |stop| Box::pin(hook(stop)));
        self
    }

    pub(crate) fn start(mut self, hook: Prompt) -> Self {
        self.start = hook;
        self
    }

    pub(crate) fn suspend(mut self, hook: Prompt) -> Self {
        self.suspend = hook;
        self
    }

    pub(crate) fn quiesce(mut self, hook: Prompt) -> Self {
        self.quiesce = hook;
        self
    }

    pub(crate) fn force(mut self, hook: Prompt) -> Self {
        self.force = hook;
        self
    }

    pub(crate) fn work(mut self, work: WorkLedger) -> Self {
        self.work = Some(work);
        self
    }

    pub(crate) fn context(&self) -> Context {
        self.context.lock().unwrap().clone().expect("prepared")
    }
}

#[async_trait]
impl Component for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    async fn prepare(&self, context: Context) -> Result<(), ComponentError> {
        self.journal.write(format!("{} prepare", self.name));
        *self.context.lock().unwrap() = Some(context.clone());
        let result = (self.prepare)(&context).await;
        self.journal.write(format!("{} prepared", self.name));
        result
    }

    fn start(&self) -> Result<(), ComponentError> {
        self.journal.write(format!("{} start", self.name));
        (self.start)()
    }

    fn suspend_durable_intake(&self) -> Result<(), ComponentError> {
        self.journal.write(format!("{} suspend", self.name));
        (self.suspend)()
    }

    fn quiesce(&self) -> Result<(), ComponentError> {
        self.journal.write(format!("{} quiesce", self.name));
        (self.quiesce)()
    }

    async fn stop_gracefully(&self, stop: StopContext) -> Result<(), ComponentError> {
        self.journal.write(format!("{} stop", self.name));
        let result = (self.stop)(stop).await;
        self.journal.write(format!("{} stopped", self.name));
        result
    }

    fn force_stop(&self) -> Result<(), ComponentError> {
        self.forced.fetch_add(1, Ordering::SeqCst);
        self.journal.write(format!("{} force", self.name));
        (self.force)()
    }

    fn work(&self) -> Option<WorkLedger> {
        self.work
    }
}

/// A runtime over a fake executor and a manual timer.
pub(crate) struct Rig {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) timer: ManualTimer,
    pub(crate) journal: Journal,
}

pub(crate) fn rig(journal: &Journal, components: Vec<Arc<Scripted>>) -> Rig {
    let timer = ManualTimer::new();
    let runtime = runtime_on(journal, components, Arc::new(timer.clone()), QUIET);
    Rig { runtime, timer, journal: journal.clone() }
}

pub(crate) fn runtime_on(
    journal: &Journal,
    components: Vec<Arc<Scripted>>,
    timer: Arc<dyn Timer>,
    quiet_period: Duration,
) -> Arc<Runtime> {
    let entries = components.into_iter().map(|component| Entry::new(component)).collect();
    let settings = Settings { shutdown_timeout: TIMEOUT, quiet_period };
    let executor = Box::new(FakeExecutor(journal.clone()));
    let lifecycle = Lifecycle::new(entries, executor, None, timer, settings);
    *journal.gate.lock().unwrap() = Some(lifecycle.gate.clone());
    Arc::new(Runtime::new(Arc::new(lifecycle)))
}

impl Rig {
    pub(crate) fn start(&self) {
        within(self.runtime.start()).expect("the runtime starts");
    }

    /// Waits until the stop has armed its deadline and its quiet period, then lets the period pass.
    pub(crate) fn pass_quiet_period(&self) {
        self.timer.wait_for_pending(2);
        self.timer.advance(QUIET);
    }
}

/// Blocks the calling thread until the signal fires; for components that block where they must not.
pub(crate) fn block_until(signal: &Signal) {
    block_on(signal.fired());
}

/// Polls `future` once.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::future::poll_fn(|cx| std::task::Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}
