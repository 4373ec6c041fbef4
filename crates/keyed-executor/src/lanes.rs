//! A dispatch as its workers and its executor see it: without its types.
//!
//! Both doors implement it; one call is made for each lane and round, never for each message.

use crate::cx::Cx;
use crate::figures::{DispatchMetrics, LaneFigures};
use crate::hot::Gathered;
use crate::look::Look;
use crate::seat::AttachId;
use crate::watchdog::StuckCode;

/// What a dispatch has left to do on one worker after its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// More is ready; the estimate is for placement.
    Busy { backlog_ns: u64 },
    /// Nothing is ready.
    Dry,
    /// The dispatch is over and may be detached.
    Ended,
    /// The seat was lost meanwhile: the caller touches nothing of it any more.
    Lost,
}

/// How an executor shuts a dispatch's door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shut {
    /// Accept nothing more; finish what was accepted.
    Close,
    /// Accept nothing more and start nothing more.
    Force,
}

/// A dispatch as its workers see it, without its types.
///
/// # Safety
/// Every `unsafe` method asks the caller to hold the seat of `cx` (rule 1 of seat/README.md).
pub(crate) trait Lanes: Send + Sync {
    /// The dispatch is on the seat under this number.
    unsafe fn attached(&self, cx: &Cx<'_>, id: AttachId);
    /// Runs what is ready here, for a bounded time.
    unsafe fn round(&self, cx: &Cx<'_>) -> Round;
    /// A waker of this lane fired.
    unsafe fn wake(&self, cx: &Cx<'_>, entry: u32);
    /// The worker runs dry: give back what is finished; true if that brought new work.
    unsafe fn settle(&self, cx: &Cx<'_>) -> bool;
    /// The worker is about to sleep: what can be tidied up is.
    unsafe fn rest(&self, cx: &Cx<'_>);
    /// Whether something came since the last round.
    unsafe fn has_news(&self, cx: &Cx<'_>) -> bool;
    /// Whether something waits here that another thread could go on with.
    unsafe fn waits(&self, cx: &Cx<'_>) -> bool;
    /// What the seat's thread is inside of, if it is of this dispatch; the seat was borrowed while it was lent.
    unsafe fn running(&self, cx: &Cx<'_>) -> Option<StuckCode>;
    /// The seat was taken from under what ran here, if anything did: it is detached.
    unsafe fn adopt(&self, cx: &Cx<'_>);
    /// Outcomes were handed in by threads that lost this seat.
    unsafe fn handed_in(&self, cx: &Cx<'_>);
    /// Looks at what lives here and changes nothing.
    unsafe fn look(&self, cx: &Cx<'_>, look: &mut Look);
    /// The key of a mailbox that was found in a look, while the seat is still held.
    unsafe fn key_line(&self, cx: &Cx<'_>, entry: u32) -> String;
    /// Adds the hot keys of the lane.
    unsafe fn hot_keys(&self, cx: &Cx<'_>, dispatch: usize, gathered: &mut Gathered);
    /// Drops what waits here; what runs is left alone.
    unsafe fn discard(&self, cx: &Cx<'_>);
    /// The worker's thread died of a bug: what it ran is given up.
    unsafe fn bury(&self, cx: &Cx<'_>);
    /// What its options call it.
    fn label(&self) -> &str;
    /// What is counted of the dispatch, from any thread.
    fn figures(&self) -> DispatchMetrics;
    /// What is counted of its lane on a worker, from any thread.
    fn lane_figures(&self, worker: usize) -> &LaneFigures;
    /// Shuts the door, from any thread.
    fn shut(&self, how: Shut);
}
