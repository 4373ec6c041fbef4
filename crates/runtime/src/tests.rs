//! Tests of the life cycle against an executor and components that write a journal.

mod activity;
mod failures;
mod force;
mod journal;
mod phase_table;
mod quiet;
mod start;
mod stop;
mod timers;
