//! The program from outside: its totals against a plain count, its problems, and what an interrupt does.

mod common;
#[cfg(unix)]
mod interrupt;
mod problems;
mod rejected;
mod totals;
