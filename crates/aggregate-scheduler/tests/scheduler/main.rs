//! The aggregate scheduler seen from outside: one file for each group of rules.

mod common;
mod contention;

mod endings;
mod groups;
mod hash;
mod supplier;
#[cfg(feature = "tokio")]
mod tokio_handle;
