//! The dispatch engine, its kinds and the service, through the public API, on the keyed executor.
//!
//! `tests/grouped.rs` has the same files run on hash groups.

mod bank;
mod budget;
mod commands;
mod engine;
mod guards;
mod lifecycle;
mod projections;
mod service;
mod support;
mod visibility;

/// What every dispatcher of these tests runs on.
const STRATEGY: wow_dispatch::Strategy = wow_dispatch::Strategy::Keyed;
