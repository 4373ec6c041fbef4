//! The command line, the same for the program that measures rates and the one that counts allocations.

use std::path::PathBuf;

use clap::Parser;

use crate::contender::ALL;
use crate::measure::Length;
use crate::rounds::Plan;
use crate::workload::Workload;

/// Measures keyed-executor beside its peers.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench peers")]
pub struct Arguments {
    /// Workloads, as letters separated by commas; all if not given.
    #[arg(long, value_delimiter = ',', value_parser = workload)]
    pub workloads: Vec<Workload>,
    /// Contenders, by name, separated by commas; all if not given.
    #[arg(long, value_delimiter = ',', value_parser = contender)]
    pub contenders: Vec<&'static str>,
    /// Messages of a run, at most.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    pub messages: u32,
    /// Time of a run in milliseconds, at most: its producer stops then.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub millis: u64,
    /// Rounds of every workload.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub rounds: u16,
    /// How often a run that others disturbed is repeated, at most.
    #[arg(long, default_value_t = 2)]
    pub repeats: u8,
    /// Tells behaviour in place of rates: who finishes when handlers block each other, and what an idle process does;
    /// each contender in a process of its own.
    #[arg(long, conflicts_with_all = ["workloads", "messages", "millis", "repeats"])]
    pub behaviour: bool,
    /// The folder for peers.json, peers.md and peers.svg, or for behaviour.md, made if it is not there; without it
    /// only the tables are printed.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

impl Arguments {
    /// What they ask to run.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let all = || ALL.iter().map(|entry| entry.id).collect();
        Plan {
            workloads: if self.workloads.is_empty() {
                Workload::ALL.to_vec()
            } else {
                self.workloads.clone()
            },
            contenders: if self.contenders.is_empty() { all() } else { self.contenders.clone() },
            length: Length { messages: self.messages as usize, millis: self.millis },
            rounds: usize::from(self.rounds),
            repeats: usize::from(self.repeats),
        }
    }
}

fn workload(name: &str) -> Result<Workload, String> {
    let names = Workload::ALL.map(Workload::name).join(", ");
    Workload::named(name).ok_or_else(|| format!("no such workload, there are: {names}"))
}

fn contender(name: &str) -> Result<&'static str, String> {
    let found = ALL.iter().find(|entry| entry.id == name).map(|entry| entry.id);
    let names: Vec<&str> = ALL.iter().map(|entry| entry.id).collect();
    found.ok_or_else(|| format!("no such contender, there are: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        let words = std::iter::once("peers").chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|found| found.plan()).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_is_everything() {
        let plan = plan("").unwrap();
        assert_eq!((plan.workloads.len(), plan.contenders.len(), plan.rounds), (12, ALL.len(), 5));
    }

    #[test]
    fn workloads_and_contenders_are_chosen_by_name() {
        let plan = plan("--workloads a,H --contenders ours,hash-64 --messages 5000 --rounds 7").unwrap();
        assert_eq!(plan.workloads, [Workload::A, Workload::H]);
        assert_eq!(plan.contenders, ["ours", "hash-64"]);
        assert_eq!((plan.length.messages, plan.rounds), (5_000, 7));
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_list() {
        assert!(plan("--workloads Z").unwrap_err().contains("there are: A, B, C"));
        assert!(plan("--contenders our").unwrap_err().contains("there are: ours, ours-spin"));
        assert!(plan("--rounds 0").is_err());
        assert!(plan("--behaviour --workloads A").is_err());
    }
}
