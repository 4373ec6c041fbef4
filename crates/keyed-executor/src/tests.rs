//! Tests that look inside: the mailbox table, injected faults, and the loom models.

#[cfg(not(keyed_loom))]
mod mailbox_table;
