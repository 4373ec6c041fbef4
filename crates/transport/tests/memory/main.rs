//! The in-memory bus.

mod flow;
mod receipts;
mod support;
