//! Measures keyed-executor beside its peers, in one process: the same messages, the same window, the same checks.
//!
//! What is compared is said in `workload.rs` and `contender.rs`, how in `measure.rs` and `rounds.rs`, what is found out
//! in `course.rs`. It tunes nobody: what would make a peer faster at the same promise belongs into its file here.

#![forbid(unsafe_code)]

pub mod message;
pub mod workload;

pub mod course;
pub mod feed;
pub mod handling;
pub mod latency;
pub mod gate;
pub mod timer;
pub mod window;

pub mod contender;
mod contenders;

pub mod measure;
pub mod rounds;

pub mod behaviour;

pub mod arguments;
pub mod chart;
pub mod report;

pub mod time;
pub mod usage;
