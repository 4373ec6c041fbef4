//! The progress bar: how much of the input is read, on a terminal and nowhere else.
//!
//! Owns the bar on standard error. Invariant: it is gone before the report is printed. It counts nothing of its own.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::input::Input;

/// A bar, or nothing where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    bytes_read: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn of(input: &Input) -> Self {
        let bytes_read = Arc::clone(&input.bytes_read);
        if !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), bytes_read };
        }
        let (bar, template) = match input.n_bytes {
            Some(n_bytes) => (ProgressBar::new(n_bytes), "{bar:40} {percent:>3}% {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {bytes} {msg}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, bytes_read }
    }

    /// Shows where the run is.
    pub(crate) fn show(&self, n_rows: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_position(self.bytes_read.load(Ordering::Relaxed));
            self.bar.set_message(format!("{n_rows} rows"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
