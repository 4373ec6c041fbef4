//! What does a dispatcher's strategy cost, and what does it isolate: the keyed executor beside hash groups?
//!
//! The same dispatcher, bus, messages and checks over both strategies, in one process. Every figure is the median of so many
//! rounds; in a round each scenario runs once with either strategy, one right after the other, and the next round turns their
//! order around. Every message is checked: alone on its key and in the order in which it was sent, and at the end nothing is
//! unfinished; a run that breaks that ends the program. Prints Markdown.
//!
//! A scenario's ratio is the median over the rounds of the rates' ratio within one round. What a regression is, each part's
//! file says.

#![expect(clippy::print_stdout, reason = "the table is the result of the program")]

mod cold;
mod isolation;
mod line;
mod store;
mod topology;

mod stage;

mod sender;

mod sample;
mod table;

mod clock;
mod usage;

use std::process::ExitCode;

use wow_dispatch::Strategy;

use crate::sample::{ROUNDS, Sample};
use crate::table::{Columns, Row};
use crate::usage::Machine;

/// A question, with its scenarios.
struct Part {
    name: &'static str,
    title: &'static str,
    columns: Columns,
    scenarios: fn() -> Vec<Scenario>,
}

/// One line of a table: what runs once with each strategy in every round.
struct Scenario {
    name: String,
    run: Box<dyn Fn(Strategy) -> Sample>,
}

impl Scenario {
    fn new(name: impl Into<String>, run: impl Fn(Strategy) -> Sample + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

const PARTS: [Part; 5] = [cold::PART, store::PART, line::PART, topology::PART, isolation::PART];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let known = PARTS.map(|part| part.name).join(", ");
    if let Some(unknown) = asked.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        println!("no part `{unknown}`, there are: {known}");
        return ExitCode::from(2);
    }
    let started_at = clock::now();
    let machine = Machine::now();
    for part in PARTS.iter().filter(|part| asked.is_empty() || asked.iter().any(|name| name == part.name)) {
        let rows = rounds((part.scenarios)());
        println!("### {}\n\n{}", part.title, part.columns.table(&rows));
    }
    let took = started_at.elapsed();
    println!("{ROUNDS} rounds; {took:.0?} in all; {}", machine.since());
    ExitCode::SUCCESS
}

/// Runs every scenario in every round, and in each both strategies in turn.
fn rounds(scenarios: Vec<Scenario>) -> Vec<Row> {
    let mut rows: Vec<Row> = scenarios.iter().map(|scenario| Row::new(&scenario.name)).collect();
    for round in 0..ROUNDS {
        for (scenario, row) in scenarios.iter().zip(&mut rows) {
            let order = match round % 2 {
                0 => [Strategy::Keyed, Strategy::Grouped],
                _ => [Strategy::Grouped, Strategy::Keyed],
            };
            for strategy in order {
                row.take(strategy, (scenario.run)(strategy));
            }
        }
    }
    rows
}
