//! Counts allocations: the same runs under a counting allocator, in a process of its own, since counting would slow
//! down most those that allocate most.
//!
//! It prints one line for each run: workload, contender, allocations for a message.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command line tool: printing is its job")]

use std::alloc::System;

use clap::Parser;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use wow_peers::arguments::Arguments;
use wow_peers::rounds::{Plan, measure};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocations() -> u64 {
    let counted = ALLOCATOR.stats();
    (counted.allocations + counted.reallocations) as u64
}

fn main() {
    let plan = Plan { rounds: 1, repeats: 0, ..Arguments::parse().plan() };
    for one in measure(&plan, Some(allocations), |_| {}) {
        let counted = one.samples.first().and_then(|sample| sample.allocations_per_message());
        println!("{} {} {:.4}", one.workload.name(), one.entry.id, counted.unwrap_or_default());
    }
}
