//! The interrupts: Ctrl-C, and the signal that asks a process to end.
//!
//! Owns the listeners. Invariant: once they exist, the first interrupt is seen by whoever waits, never by the system's
//! default. What an interrupt means is the caller's to decide.

use std::io;

/// Waits for interrupts.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Interrupts {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system refuses a listener.
    pub(crate) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Resolves at the next interrupt.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
