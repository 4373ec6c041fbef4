//! How an operation of this crate is refused: one type each, reasons the caller can act on.
//!
//! How a dispatch ends is told in the executor's words (`Cause`, `DispatchError`, `Ledger`), so that a dispatcher need
//! not care which strategy ran it.

use std::error::Error;
use std::fmt;

/// The supplier was asked for a scheduler after its stop began; it never hands out one again (LS-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupplierStopped;

impl fmt::Display for SupplierStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scheduler supplier is stopped")
    }
}

impl Error for SupplierStopped {}
