//! Cold commands beside slow and hot aggregates (PF-10): what does an aggregate pay for its neighbours?
//!
//! Slow aggregates wait 5 ms without their thread, each with one command under way at any time; one hot aggregate has 8 under
//! way, of 200 steps each. Observed is the round trip of a command to an aggregate that nobody has seen before. Together they
//! stay far below the window of 256, so that the window does not decide. A regression is a ratio that falls by more than half.

use std::time::Duration;

use wow_dispatch::Strategy;

use crate::sample::Sample;
use crate::sender::{Counts, Plan, To, observe};
use crate::stage::{Load, Setup, Stage};
use crate::table::Columns;
use crate::{Part, Scenario};

const TIME: Duration = Duration::from_millis(400);
const WAIT: Duration = Duration::from_millis(5);

pub(crate) const PART: Part = Part {
    name: "cold",
    title: "Cold commands beside slow aggregates (PF-10)",
    columns: Columns::Latency,
    scenarios,
};

fn scenarios() -> Vec<Scenario> {
    let of = |(n_slow, n_senders): (usize, usize)| {
        let senders = if n_senders == 1 { "1 sender".to_owned() } else { format!("{n_senders} senders") };
        let name = format!("{n_slow} slow aggregates, {senders}");
        Scenario::new(name, move |strategy| run(strategy, n_slow, n_senders))
    };
    [(0, 1), (0, 3), (16, 1), (16, 3), (128, 1), (128, 3)].map(of).into()
}

fn run(strategy: Strategy, n_slow: usize, n_senders: usize) -> Sample {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = u16::try_from(cores).unwrap_or(u16::MAX);
    let stage = Stage::new(strategy, Setup { workers: cores, pool: cores, groups: None, types: 1 });
    for n in 0..n_slow {
        stage.keep_busy(format!("slow-{n}"), 1, Load::Wait(WAIT));
    }
    stage.keep_busy("hot".to_owned(), 8, Load::Compute(200));
    let cold =
        || Plan { to: To::Fresh(stage.named(0)), load: Load::Nothing, depth: 1, counts: Counts::Latency };
    let plans = (0..n_senders).map(|_| cold()).collect();
    observe(stage, plans, TIME)
}
