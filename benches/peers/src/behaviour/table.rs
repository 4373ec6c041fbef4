//! The answers as Markdown: medians over the rounds, with the lowest and the highest where they differ.

use std::fmt::Write;

use super::{HANGS_AFTER, Observed};
use crate::behaviour::probe::Idle;
use crate::contender::WORKERS;
use crate::report::{Surroundings, median, number};

/// What all contenders answered, ready to be written.
#[derive(Debug)]
pub struct Behaviour<'a> {
    observed: &'a [Observed],
    rounds: usize,
    surroundings: Surroundings,
}

impl<'a> Behaviour<'a> {
    /// Sums the answers up.
    #[must_use]
    pub fn new(observed: &'a [Observed], rounds: usize, surroundings: Surroundings) -> Self {
        Self { observed, rounds, surroundings }
    }

    /// Both tables.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let about = &self.surroundings;
        let _ = writeln!(
            text,
            "# keyed-executor beside its peers: behaviour

Commit {}, {} x {}. {WORKERS} workers; every contender in a process of its own, {} rounds, medians; the lowest and the
highest in parentheses where they differ.
",
            about.commit, about.processors, about.processor, self.rounds,
        );
        self.blocking(&mut text);
        self.idle(&mut text);
        text
    }

    fn blocking(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "## Twenty handlers that block until the next twenty are done

Who does not finish within {} s counts as hanging, is ended, and is not asked again.

| contender | fed by | finishes | ms |
|---|---|---|--:|",
            HANGS_AFTER.as_secs(),
        );
        for Observed { entry, finished, hung, .. } in self.observed {
            let verdict = match (hung, finished.len()) {
                (true, 0) => "hangs".to_owned(),
                (true, times) => format!("{times} of {} times", times + 1),
                (false, _) => "yes".to_owned(),
            };
            let millis = finished.iter().map(|finished| finished.nanos as f64 / 1_000_000.0).collect();
            let _ =
                writeln!(text, "| {} | {} | {verdict} | {} |", entry.name, entry.door.name(), over(millis));
        }
        let _ = writeln!(text);
    }

    fn idle(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "## A second of nothing

After a short load, all of it handled: threads, context switches and processor time of the process, without its main
thread, which only waits.

| contender | fed by | threads before the first message | threads when idle | context switches | CPU us |
|---|---|--:|--:|--:|--:|"
        );
        for Observed { entry, idle, .. } in self.observed {
            let of = |value: fn(&Idle) -> f64| over(idle.iter().map(value).collect());
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                entry.name,
                entry.door.name(),
                of(|idle| idle.threads_before as f64),
                of(|idle| idle.threads_after as f64),
                of(|idle| idle.switches as f64),
                // What is below a microsecond is the time between two questions to the kernel.
                of(|idle| (idle.nanos / 1_000) as f64),
            );
        }
    }
}

/// The median, with the lowest and the highest value where they differ.
fn over(values: Vec<f64>) -> String {
    let (low, high) =
        values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    match values.len() {
        0 => "-".to_owned(),
        _ if low == high => short(low),
        _ => format!("{} ({} to {})", short(median(values)), short(low), short(high)),
    }
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 && value < 100.0 { format!("{value:.0}") } else { number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::probe::Finished;
    use crate::contender::ALL;

    #[test]
    fn who_hangs_is_shown_to_and_whoever_finishes_has_a_time() {
        let idle = |switches| Idle { threads_before: 0, threads_after: 2, switches, nanos: 999 };
        let observed = |at: usize, finished: &[u64], hung| Observed {
            entry: ALL[at],
            finished: finished.iter().map(|nanos| Finished { nanos: *nanos }).collect(),
            hung,
            idle: vec![idle(0), idle(4), idle(1)],
        };
        let surroundings = Surroundings { processor: "x".to_owned(), processors: 2, commit: "c".to_owned() };
        let all =
            [observed(0, &[], true), observed(1, &[7_000_000, 9_500_000], false), observed(2, &[1], true)];
        let text = Behaviour::new(&all, 3, surroundings).markdown();
        assert!(text.contains("| keyed-executor, submit | thread | hangs | - |\n"), "{text}");
        assert!(text.contains("| yes | 8.25 (7 to 9.50) |\n"), "{text}");
        assert!(text.contains("| 1 of 2 times |"), "{text}");
        assert!(text.contains("| keyed-executor, submit | thread | 0 | 2 | 1 (0 to 4) | 0 |\n"), "{text}");
    }
}
