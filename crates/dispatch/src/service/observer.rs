//! `Observer`: what an operator asks a service: figures, live aggregates, hot ones.
//!
//! Passes on what the runtime, its dispatchers and its executor count; it counts nothing itself. Invariant: looking changes
//! nothing, waits for no handler, and neither keeps a service running nor ends it. What to ask when is docs/operating.md.

use std::fmt;
use std::sync::{Arc, Weak};

use keyed_executor::{DispatchMetrics, ExecutorMetrics, HotKey, Inspection};
use wow_runtime::WorkLedger;

use crate::service::Shared;

/// Looks at a service, from anywhere: from any thread, inside a handler, while handlers are stuck, and after it stopped.
///
/// Cheap to clone. It does not keep its service alive: of one that is gone it shows nothing.
#[derive(Clone)]
pub struct Observer {
    shared: Weak<Shared>,
}

/// What is counted of a service at a moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServiceMetrics {
    /// Its dispatchers, in the order of their start.
    pub dispatchers: Vec<DispatcherMetrics>,
    /// The executor under them: workers, monitor, and one entry for each receiver that runs, by its label. With
    /// [`Strategy::Grouped`](crate::Strategy::Grouped) nothing runs on it.
    pub executor: ExecutorMetrics,
}

/// What is counted of one dispatcher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherMetrics {
    /// Its name: `<context>.CommandDispatcher`, `<context>.ProjectionDispatcher`.
    pub name: String,
    /// What it admitted and what became of it, with either strategy. A command that was refused or failed is one that
    /// `failed` here; the executor, to which every outcome that its dispatcher dealt with is a good one, has it under `handled`.
    pub work: WorkLedger,
}

impl ServiceMetrics {
    /// The executor's figures of a dispatcher's receivers, which are labelled by it: window, queue, age of the oldest
    /// unfinished message, turns.
    pub fn receivers_of<'a>(&'a self, dispatcher: &'a str) -> impl Iterator<Item = &'a DispatchMetrics> {
        // Of a dispatcher with several contexts, each is `<name> (<context>)`.
        let is_of = move |label: &str| {
            label.strip_prefix(dispatcher).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        };
        self.executor.dispatches.iter().filter(move |receiver| is_of(&receiver.label))
    }
}

impl Observer {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// What each dispatcher and the executor counted, and the age of what is unfinished. Made for every few seconds.
    #[must_use]
    pub fn metrics(&self) -> ServiceMetrics {
        let Some(shared) = self.shared.upgrade() else { return ServiceMetrics::default() };
        let runtime = &shared.runtime;
        let counted = runtime.work().filter_map(|(name, work)| {
            let name = name.to_owned();
            work.map(|work| DispatcherMetrics { name, work })
        });
        ServiceMetrics { dispatchers: counted.collect(), executor: runtime.executor().metrics() }
    }

    /// The aggregates with unfinished messages, the oldest unfinished message first, at most `limit` of them: which are stuck,
    /// waiting or long. As [`keyed_executor::KeyedExecutor::inspect`]; a key reads `AggregateKey(bank.account/ann)`.
    #[must_use]
    pub fn inspect(&self, limit: usize) -> Inspection {
        let shared = self.shared.upgrade();
        shared.map(|shared| shared.runtime.executor().inspect(limit)).unwrap_or_default()
    }

    /// The aggregates that most of the last messages were for, the hottest first, at most `limit` of them. As
    /// [`keyed_executor::KeyedExecutor::hot_keys`].
    #[must_use]
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        let shared = self.shared.upgrade();
        shared.map(|shared| shared.runtime.executor().hot_keys(limit)).unwrap_or_default()
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("alive", &(self.shared.strong_count() > 0)).finish()
    }
}
