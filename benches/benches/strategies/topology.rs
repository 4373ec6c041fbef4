//! Topology (PF-15): what do shared workers and a pool for each aggregate type cost?
//!
//! Two senders with 64 commands under way each, over 256 ids of 1, 4 or 16 types; four workers, or four threads for handlers a
//! type; then a budget of 14 threads for handlers in all. A pool has one thread more, for its source. A regression is a ratio
//! that falls by more than a third.

use std::sync::Arc;
use std::time::Duration;

use wow_dispatch::Strategy;

use crate::sample::Sample;
use crate::sender::{Counts, Plan, To, observe};
use crate::stage::{Key, Load, Setup, Stage};
use crate::table::Columns;
use crate::{Part, Scenario};

const TIME: Duration = Duration::from_millis(120);
const IDS: usize = 256;
const SENDERS: usize = 2;

pub(crate) const PART: Part =
    Part { name: "topology", title: "Topology (PF-15)", columns: Columns::Cost, scenarios };

fn scenarios() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for types in [1, 4, 16] {
        let name = format!("{}, 4 workers or 4 threads a type", plural(types));
        scenarios.push(Scenario::new(name, move |strategy| throughput(strategy, types, 4, 4)));
    }
    for (types, pool) in [(1, 14), (2, 7), (7, 2), (14, 1)] {
        let name = format!("{}, 14 threads in all", plural(types));
        scenarios.push(Scenario::new(name, move |strategy| throughput(strategy, types, 14, pool)));
    }
    scenarios
}

fn plural(types: usize) -> String {
    if types == 1 { "1 type".to_owned() } else { format!("{types} types") }
}

fn throughput(strategy: Strategy, types: usize, workers: u16, pool: u16) -> Sample {
    let stage = Stage::new(strategy, Setup { workers, pool, groups: None, types });
    let keys: Vec<_> = (0..IDS).map(|n| Key::new(stage.named(n % types), format!("id-{n}"))).collect();
    let ids_of = |n: usize| {
        // A sender has ids of every type.
        let own = keys.iter().enumerate().filter(|(at, _)| at / types % SENDERS == n);
        own.map(|(_, key)| Arc::clone(key)).collect()
    };
    let plan =
        |n: usize| Plan { to: To::Ring(ids_of(n)), load: Load::Nothing, depth: 64, counts: Counts::Number };
    let plans = (0..SENDERS).map(plan).collect();
    observe(stage, plans, TIME)
}
