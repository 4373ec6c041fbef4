//! How the whole executor is run under shuttle: a seed is a run, and a run can be repeated from its seed.
//!
//! Each seed is run three times: with a random choice at every operation, with the oldest thread first, and with random
//! priorities that change a few times (PCT). `KEYED_SHUTTLE_ITERATIONS` says for how many seeds, `KEYED_SHUTTLE_SEED`
//! where they begin; the seed of a failure is printed. What loom covers exhaustively in the small is met here by chance
//! in the large. Orderings are not looked at: shuttle takes every operation as sequentially consistent, so a fence that
//! is missing is loom's to find.

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use wow_testkit::Seed;

/// Seeds of each scenario where nothing is said.
const ITERATIONS: u64 = 10;
/// Far beyond what the longest run takes: a run that gets here goes round in circles.
const MAX_STEPS: usize = 3_000_000;
/// Of a thread's stack: a panic with its text needs more than shuttle's default.
const STACK: usize = 256 * 1024;
/// PCT finds what needs up to this many orderings to come together.
const PCT_DEPTH: usize = 4;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.trim().parse().unwrap_or_else(|error| panic!("{name} must be a number, not `{text}`: {error}")))
}

/// Runs a scenario for every seed.
pub(super) fn explore(name: &str, scenario: fn(u64)) {
    let iterations = number("KEYED_SHUTTLE_ITERATIONS").unwrap_or(ITERATIONS);
    let first = number("KEYED_SHUTTLE_SEED").unwrap_or_else(|| Seed::fresh().0);
    for seed in (0..iterations).map(|offset| first.wrapping_add(offset)) {
        let told = Told { name: name.to_owned(), seed };
        run(RandomScheduler::new_from_seed(seed, 1), scenario, seed);
        // The first run of this scheduler is the oldest-first one; it tells how long a run is.
        run(PctScheduler::new_from_seed(seed, PCT_DEPTH, 2), scenario, seed);
        drop(told);
    }
}

/// Runs a scenario once, with a random choice at every operation.
pub(super) fn run_once(seed: u64, scenario: fn(u64)) {
    run(RandomScheduler::new_from_seed(seed, 1), scenario, seed);
}

fn run(scheduler: impl Scheduler + 'static, scenario: fn(u64), seed: u64) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    // The seed is shorter than the schedule.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    // Whoever is still running would only blur what was found.
    config.ungraceful_shutdown_config.immediately_return_on_panic = true;
    Runner::new(scheduler, config).run(move || {
        crate::sync::reset_clock();
        scenario(seed);
    });
}

/// Says how to repeat a run that panicked.
struct Told {
    name: String,
    seed: u64,
}

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, seed } = self;
            let line = format!("repeat with: cargo xtask shuttle {name} --iterations 1 --seed {seed}\n");
            // A test's reader misses nothing if standard error is gone.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        }
    }
}
