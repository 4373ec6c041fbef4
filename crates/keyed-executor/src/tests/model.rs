//! How a loom model of this crate is run, and the small executor that most of them share.
//!
//! `LOOM_MAX_PREEMPTIONS` bounds the preemptions (2 where it is not set). A model of the whole executor is too large for
//! that in the fast set and says so with a bound of its own, which `KEYED_LOOM_FULL=1` lifts, for ten minutes a model:
//! `cargo xtask loom` runs the fast set, `cargo xtask loom --full` everything at a bound of 3.

use crate::KeyedExecutor;

/// Runs a model, and prints how many executions it took.
pub(super) fn model(name: &str, body: impl Fn() + Send + Sync + 'static) {
    large_model(name, usize::MAX, body);
}

/// Runs a model whose bound in the fast set is at most `fast`.
pub(super) fn large_model(name: &str, fast: usize, body: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = std::sync::Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    let wanted = builder.preemption_bound.unwrap_or(2);
    let full = std::env::var_os("KEYED_LOOM_FULL").is_some_and(|value| value == "1");
    let bound = if full { wanted } else { wanted.min(fast) };
    builder.preemption_bound = Some(bound);
    if full && fast < wanted {
        // Too large to be exhausted at that bound: as far as ten minutes go.
        builder.max_duration = Some(std::time::Duration::from_secs(600));
    }
    builder.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    let executions = executions.load(std::sync::atomic::Ordering::Relaxed);
    let line = format!("{name}: {executions} executions, preemption bound {bound}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("stderr takes a line");
}

/// An executor as small as a model allows.
pub(super) fn executor(workers: usize, window: usize, throughput: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("model")
        .workers(workers)
        .max_in_flight(window)
        .throughput(throughput)
        // Models have no clock, so no monitor.
        .rescue_threads(0)
        .stuck_after(None)
        .build()
        .expect("the values of a model are in range")
}
