//! The quiet period: admission ends only after a continuous time without any activity.
//!
//! Owns the current timer. Called by `shutdown.rs` alone. Invariants: the gate is closed here only in the one step
//! that also proves that nothing was admitted since the timer was armed; each new activity restarts the period, from
//! the moment it ended. A gate that somebody else closes ends the wait at once. It knows no deadline: that is the
//! shutdown's.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::activity::{ActivityGate, IdleMark};
use crate::drive::Sleep;
use crate::timer::{Timer, TimerError};

/// Waits for `period` of continuous idleness and closes the gate.
pub(crate) async fn close_when_quiet(
    gate: &ActivityGate,
    timer: &dyn Timer,
    period: Duration,
) -> Result<(), TimerError> {
    let mut idle = gate.idle();
    let mut mark = poll_fn(|cx| idle.poll_mark(cx)).await;
    loop {
        if gate.is_closed() || (period.is_zero() && gate.close_if_still(mark)) {
            return Ok(());
        }
        let Some(at) = timer.now().checked_add(period) else {
            return Err("the quiet period ends after the last instant of the clock".into());
        };
        let sleep = Sleep::until(timer, at)?;
        mark = match rang_or_moved(gate, mark, sleep).await {
            Quiet::Rang if gate.close_if_still(mark) => return Ok(()),
            // The timer was published late: something was admitted since it was armed, so it proves nothing.
            Quiet::Rang => {
                let mut idle = gate.idle_after(mark);
                poll_fn(|cx| idle.poll_mark(cx)).await
            }
            Quiet::Moved(mark) => mark,
        };
    }
}

enum Quiet {
    Rang,
    Moved(IdleMark),
}

async fn rang_or_moved(gate: &ActivityGate, mark: IdleMark, mut sleep: Sleep) -> Quiet {
    let mut moved = gate.idle_after(mark);
    poll_fn(|cx| {
        if let Poll::Ready(mark) = moved.poll_mark(cx) {
            return Poll::Ready(Quiet::Moved(mark));
        }
        use std::future::Future;
        Pin::new(&mut sleep).poll(cx).map(|()| Quiet::Rang)
    })
    .await
}
