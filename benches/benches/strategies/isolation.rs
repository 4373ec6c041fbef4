//! Isolation of types (PF-15): what does one aggregate type pay for another one with expensive handlers?
//!
//! Two types and two threads for handlers in all: two workers for both, or one thread for each. Eight senders with one command
//! under way each, 4 and 4 or 1 and 7 of them on A and B, each with an id of its own; handlers of A do nothing or compute
//! 100,000 steps. Observed is B. Here a thread of one's own can be the better deal: that is what the part is there to show.

use std::time::Duration;

use wow_dispatch::Strategy;

use crate::sample::Sample;
use crate::sender::{Counts, Plan, To, observe};
use crate::stage::{Key, Load, Setup, Stage};
use crate::table::Columns;
use crate::{Part, Scenario};

const TIME: Duration = Duration::from_millis(150);

pub(crate) const PART: Part =
    Part { name: "isolation", title: "Isolation of types (PF-15)", columns: Columns::Latency, scenarios };

fn scenarios() -> Vec<Scenario> {
    let loads = [("is fast too", Load::Nothing), ("computes 100,000 steps", Load::Compute(100_000))];
    let mut scenarios = Vec::new();
    for (a, b) in [(4, 4), (1, 7)] {
        for (does, load) in loads {
            let name = format!("senders {a} to A, {b} to B; A {does}");
            scenarios.push(Scenario::new(name, move |strategy| run(strategy, [a, b], load)));
        }
    }
    scenarios
}

fn run(strategy: Strategy, senders: [usize; 2], load: Load) -> Sample {
    let stage = Stage::new(strategy, Setup { workers: 2, pool: 1, groups: None, types: 2 });
    let kinds = [(load, Counts::Nothing), (Load::Nothing, Counts::Latency)];
    let mut plans = Vec::new();
    for (named, (n_senders, (load, counts))) in senders.into_iter().zip(kinds).enumerate() {
        for n in 0..n_senders {
            let to = To::Ring(vec![Key::new(stage.named(named), format!("{named}-{n}"))]);
            plans.push(Plan { to, load, depth: 1, counts });
        }
    }
    observe(stage, plans, TIME)
}
