//! The phase of a runtime: which of its life's procedures owns it.
//!
//! Owns nothing; `lifecycle.rs` calls [`next`] under its lock and must do what the returned duty says. Invariants:
//! `Stopped` is final; `ForceStopping` only ends in `Stopped`; exactly one caller is told `Drain`, `RollBack`,
//! `Force` or `Publish`. It does not know why a stop was asked for: causes are `failure.rs`'s.
//!
//! The table is parsed by a test that checks each row against the code, and every pair that no row names as refused.
//!
//! | event | from | to | duty of the caller |
//! |---|---|---|---|
//! | `Start` | New | Starting | `Enter` — prepare and start the components |
//! | `Start` | Starting, Running, Stopping, ForceStopping, Stopped | same | `Refuse` — a runtime starts once |
//! | `Started` | Starting | Running | `Serve` — every component runs |
//! | `Started` | Stopping, ForceStopping, Stopped | same | `Withdraw` — somebody else ends this runtime |
//! | `Stop` | New | Stopped | `PublishUnused` — close the executor, publish |
//! | `Stop` | Starting | Stopping | `RollBack` — drain what was entered, once the start has left |
//! | `Stop` | Running | Stopping | `Drain` — run the shutdown |
//! | `Stop` | Stopping, ForceStopping, Stopped | same | `Join` — the termination under way is everybody's |
//! | `Fail` | New | Stopped | `PublishUnused` |
//! | `Fail` | Starting | Stopping | `RollBack` |
//! | `Fail` | Running | Stopping | `Drain` |
//! | `Fail` | Stopping | ForceStopping | `Force` — a failure during a stop escalates it |
//! | `Fail` | ForceStopping, Stopped | same | `Join` |
//! | `FailStart` | Starting | Stopping | `RollBack` |
//! | `FailStart` | Stopping, ForceStopping, Stopped | same | `Join` — a start that fails while it is rolled back adds a cause |
//! | `Force` | New, Starting, Running, Stopping | ForceStopping | `Force` — close the executor by force, then the components |
//! | `Force` | ForceStopping, Stopped | same | `Join` |
//! | `Drained` | Stopping | Stopped | `Publish` — seal the failures, tell every observer |
//! | `Drained` | ForceStopping, Stopped | same | `Withdraw` |
//! | `Forced` | ForceStopping | Stopped | `Publish` |

/// Where a runtime is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Built, nothing entered.
    New,
    /// Components are being prepared and started.
    Starting,
    /// Every component runs.
    Running,
    /// A graceful stop or a roll-back drains.
    Stopping,
    /// A forced stop is being carried out.
    ForceStopping,
    /// Terminated; the report is published.
    Stopped,
}

impl Phase {
    /// Whether the runtime came up and has not ended: `Running`, `Stopping` and `ForceStopping`.
    #[must_use]
    pub fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Stopping | Self::ForceStopping)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Start,
    Started,
    Stop,
    Fail,
    FailStart,
    Force,
    Drained,
    Forced,
}

/// What the caller that caused a transition has to do.
#[must_use = "a transition hands its caller a duty"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Enter,
    Refuse,
    Serve,
    Withdraw,
    PublishUnused,
    RollBack,
    Drain,
    Join,
    Force,
    Publish,
}

/// The transition of `event` in `phase`.
///
/// # Panics
/// On a pair the table does not have: only a mistake of this crate can ask for it.
pub(crate) fn next(phase: Phase, event: Event) -> (Phase, Duty) {
    use Phase::{ForceStopping, New, Running, Starting, Stopped, Stopping};
    match (event, phase) {
        (Event::Start, New) => (Starting, Duty::Enter),
        (Event::Start, _) => (phase, Duty::Refuse),
        (Event::Started, Starting) => (Running, Duty::Serve),
        (Event::Started, Stopping | ForceStopping | Stopped) => (phase, Duty::Withdraw),
        (Event::Stop | Event::Fail, New) => (Stopped, Duty::PublishUnused),
        (Event::Stop | Event::Fail | Event::FailStart, Starting) => (Stopping, Duty::RollBack),
        (Event::Stop | Event::Fail, Running) => (Stopping, Duty::Drain),
        (Event::Stop | Event::FailStart, Stopping | ForceStopping | Stopped) => (phase, Duty::Join),
        (Event::Fail, Stopping) => (ForceStopping, Duty::Force),
        (Event::Force, New | Starting | Running | Stopping) => (ForceStopping, Duty::Force),
        (Event::Fail | Event::Force, ForceStopping | Stopped) => (phase, Duty::Join),
        (Event::Drained, Stopping) => (Stopped, Duty::Publish),
        (Event::Drained, ForceStopping | Stopped) => (phase, Duty::Withdraw),
        (Event::Forced, ForceStopping) => (Stopped, Duty::Publish),
        (Event::Started | Event::FailStart, New | Running)
        | (Event::Drained, New | Starting | Running)
        | (Event::Forced, New | Starting | Running | Stopping | Stopped) => {
            panic!("invariant broken: {event:?} cannot happen in {phase:?}")
        }
    }
}
