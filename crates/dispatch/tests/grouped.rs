//! The same tests as `tests/dispatch`, file by file, with every dispatcher on hash groups: what the engine promises does not
//! depend on the strategy. What only the groups do is in `grouped/groups.rs`.

#[path = "dispatch/bank.rs"]
mod bank;
#[path = "dispatch/commands.rs"]
mod commands;
#[path = "dispatch/engine.rs"]
mod engine;
#[path = "dispatch/guards.rs"]
mod guards;
#[path = "grouped/groups.rs"]
mod groups;
#[path = "dispatch/lifecycle.rs"]
mod lifecycle;
#[path = "dispatch/projections.rs"]
mod projections;
#[path = "dispatch/service.rs"]
mod service;
#[path = "dispatch/support.rs"]
mod support;

/// What every dispatcher of these tests runs on.
const STRATEGY: wow_dispatch::Strategy = wow_dispatch::Strategy::Grouped;
