//! Interleaved rounds: every contender once a round, in an order that turns, so that what the machine does meanwhile
//! meets all of them alike.
//!
//! A run that other processes disturbed is repeated a few times and the least disturbed one is kept; how often that
//! happened is part of the result. A run that does not end ends the program, by name.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::contender::{ALL, Entry};
use crate::course::Course;
use crate::measure::{Length, Sample, run};
use crate::workload::Workload;

/// The share of all processors that others may take before a run counts as disturbed.
pub const DISTURBED: f64 = 0.10;
/// The clock of others ticks every 10 ms; less than so much cannot be told from nothing.
const TELLABLE: u64 = 30_000_000;
/// How long a run may take before it is taken to hang.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
    /// The contenders' names on the command line.
    pub contenders: Vec<&'static str>,
    /// How long a run is.
    pub length: Length,
    /// Rounds of each workload.
    pub rounds: usize,
    /// How often a disturbed run is repeated.
    pub repeats: usize,
}

/// A contender on a workload, with a sample for each round.
#[derive(Clone, Debug)]
pub struct Measured {
    /// On what.
    pub workload: Workload,
    /// Who.
    pub entry: Entry,
    /// One for each round, in order.
    pub samples: Vec<Sample>,
    /// Runs that were thrown away because others disturbed them more than the one that was kept.
    pub repeated: usize,
}

/// Runs the plan; `tell` is told what is done, for whoever watches.
pub fn measure(plan: &Plan, allocations: Option<fn() -> u64>, mut tell: impl FnMut(&str)) -> Vec<Measured> {
    let watchdog = Watchdog::start();
    let mut all = Vec::new();
    for &workload in &plan.workloads {
        let course = Course::new(workload, plan.length.messages);
        let chosen = ALL.iter().filter(|entry| plan.contenders.contains(&entry.id) && entry.takes(workload));
        let mut measured: Vec<Measured> = chosen
            .map(|entry| Measured { workload, entry: *entry, samples: Vec::new(), repeated: 0 })
            .collect();
        for round in 0..plan.rounds {
            tell(&format!("{} round {} of {}", workload.name(), round + 1, plan.rounds));
            let count = measured.len().max(1);
            measured.rotate_left(round % count);
            for one in &mut measured {
                watchdog.expect(format!("{} on {}", one.entry.id, workload.name()));
                let (sample, repeated) =
                    undisturbed(plan.repeats, || run(&one.entry, course, plan.length, allocations));
                one.samples.push(sample);
                one.repeated += repeated;
            }
            measured.rotate_right(round % count);
        }
        all.extend(measured);
    }
    all
}

/// The first run that nobody disturbed, or the least disturbed of all; and how many were thrown away.
fn undisturbed(repeats: usize, mut run: impl FnMut() -> Sample) -> (Sample, usize) {
    let mut best = run();
    let mut thrown_away = 0;
    while thrown_away < repeats && is_disturbed(&best) {
        let again = run();
        thrown_away += 1;
        if again.share_of_others() < best.share_of_others() {
            best = again;
        }
    }
    (best, thrown_away)
}

/// Whether others took so much of the machine that the sample says more about them.
#[must_use]
pub fn is_disturbed(sample: &Sample) -> bool {
    sample.used.other_nanos > TELLABLE && sample.share_of_others() > DISTURBED
}

/// Ends the program when a run does not end.
struct Watchdog {
    expected: Sender<String>,
}

impl Watchdog {
    fn start() -> Self {
        let (expected, runs) = channel::<String>();
        std::thread::spawn(move || {
            let mut name = String::new();
            loop {
                match runs.recv_timeout(HANGS_AFTER) {
                    Ok(next) => name = next,
                    Err(RecvTimeoutError::Timeout) => hangs(&name),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self { expected }
    }

    fn expect(&self, name: String) {
        // The thread ends only after this sender, and its absence would only mean that nobody watches.
        let _ = self.expected.send(name);
    }
}

#[expect(clippy::print_stderr, reason = "the last words of a program that hangs")]
fn hangs(name: &str) {
    eprintln!("error: {name} did not end within {} s", HANGS_AFTER.as_secs());
    std::process::exit(3);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Faults;
    use crate::usage::Used;

    fn sample(other_nanos: u64) -> Sample {
        let used = Used { own_nanos: 1, switches: 0, other_nanos };
        let faults = Faults::default();
        Sample { messages: 1, nanos: 100_000_000, used, latency: [None; 3], faults, allocations: None }
    }

    #[test]
    fn a_disturbed_run_is_repeated_and_the_least_disturbed_is_kept() {
        let mut runs = vec![sample(0), sample(900_000_000), sample(800_000_000)];
        let (kept, thrown_away) = undisturbed(5, || runs.pop().expect("three runs"));
        assert_eq!((kept.used.other_nanos, thrown_away), (0, 2));
        let mut runs = vec![sample(900_000_000), sample(700_000_000), sample(800_000_000)];
        let (kept, thrown_away) = undisturbed(2, || runs.pop().expect("three runs"));
        assert_eq!((kept.used.other_nanos, thrown_away), (700_000_000, 2));
    }

    #[test]
    fn every_chosen_contender_has_a_sample_of_every_round() {
        let plan = Plan {
            workloads: vec![Workload::A, Workload::F],
            contenders: vec!["ours-source", "crossbeam"],
            length: Length { messages: 5_000, millis: 100 },
            rounds: 3,
            repeats: 0,
        };
        let measured = measure(&plan, None, |_| {});
        let who: Vec<_> =
            measured.iter().map(|one| (one.workload, one.entry.id, one.samples.len())).collect();
        let expected =
            [(Workload::A, "ours-source", 3), (Workload::A, "crossbeam", 3), (Workload::F, "ours-source", 3)];
        assert_eq!(who, expected);
    }
}
