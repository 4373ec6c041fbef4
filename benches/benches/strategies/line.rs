//! Head of line (PF-14): what do three fast aggregates pay for a fourth one that is slow?
//!
//! Four aggregates, each with its own sender and one command under way; 16 groups. One is in control: its handler does nothing,
//! computes 100,000 steps, or waits 1 ms without its thread. Observed are the three others. Their ids have the group of the
//! one in control, or one of their own each; the executor knows no groups, so for it the two are the same. A regression is a
//! p99 of the fast ones under `keyed` that depends on the group.

use std::time::Duration;

use wow_aggregate_scheduler::group_of;
use wow_dispatch::Strategy;

use crate::sample::Sample;
use crate::sender::{Counts, Plan, To, observe};
use crate::stage::{Key, Load, Setup, Stage};
use crate::table::Columns;
use crate::{Part, Scenario};

const TIME: Duration = Duration::from_millis(100);
const GROUPS: std::num::NonZeroU32 = std::num::NonZeroU32::new(16).expect("16 is not 0");

pub(crate) const PART: Part =
    Part { name: "line", title: "Head of line (PF-14)", columns: Columns::Latency, scenarios };

/// In which group the fast aggregates are.
#[derive(Clone, Copy, Debug)]
enum Group {
    OfTheSlow,
    OfItsOwn,
}

fn scenarios() -> Vec<Scenario> {
    let loads = [
        ("is fast too", Load::Nothing),
        ("computes 100,000 steps", Load::Compute(100_000)),
        ("waits 1 ms", Load::Wait(Duration::from_millis(1))),
    ];
    let mut scenarios = Vec::new();
    for (does, load) in loads {
        for pool in [4, 1] {
            for (where_, group) in [("same group", Group::OfTheSlow), ("other groups", Group::OfItsOwn)] {
                let threads = if pool == 1 { "1 thread".to_owned() } else { format!("{pool} threads") };
                let name = format!("the fourth {does}, {threads}, {where_}");
                scenarios.push(Scenario::new(name, move |strategy| run(strategy, load, pool, group)));
            }
        }
    }
    scenarios
}

fn run(strategy: Strategy, load: Load, pool: u16, group: Group) -> Sample {
    let setup = Setup { workers: pool, pool, groups: Some(GROUPS.get()), types: 1 };
    let stage = Stage::new(strategy, setup);
    let [slow, fast @ ..] = ids(group);
    let plan = |id: String, load: Load, counts: Counts| {
        let to = To::Ring(vec![Key::new(stage.named(0), id)]);
        Plan { to, load, depth: 1, counts }
    };
    let mut plans = vec![plan(slow, load, Counts::Nothing)];
    plans.extend(fast.map(|id| plan(id, Load::Nothing, Counts::Latency)));
    observe(stage, plans, TIME)
}

/// The slow one's id, then those of the fast ones.
fn ids(group: Group) -> [String; 4] {
    let first_in = |group: u32, nth: usize| {
        let ids = (0_u32..).map(|n| format!("id-{n}")).filter(|id| group_of(id, GROUPS) == group);
        ids.take(nth + 1).last().unwrap_or_default()
    };
    std::array::from_fn(|n| match group {
        Group::OfTheSlow => first_in(0, n),
        Group::OfItsOwn => first_in(u32::try_from(n).unwrap_or(0), 0),
    })
}
