//! The message that every contender carries: 96 bytes, 64 of them payload, the same for all.
//!
//! Its payload repeats its id, so that the handler sees whether the copy it was given is whole.

/// What the handler does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Checks it, and nothing else.
    Check,
    /// Gives way to the others once.
    Yield,
    /// Keeps the processor busy for 2 us.
    Compute,
    /// Waits for a timer of 1 ms.
    Wait,
    /// Waits for a timer of 5 ms.
    WaitLong,
    /// Blocks its thread for 50 ms.
    Block,
    /// Waits 1 ms for the timer of the harness.
    WaitFine,
    /// Blocks its thread until the gate is open.
    BlockAtGate,
    /// Is one of those that open the gate.
    OpenGate,
}

impl Work {
    const ALL: [Self; 9] = [
        Self::Check,
        Self::Yield,
        Self::Compute,
        Self::Wait,
        Self::WaitLong,
        Self::Block,
        Self::WaitFine,
        Self::BlockAtGate,
        Self::OpenGate,
    ];
}

/// A [`Work`] as a whole word. With values to spare in a byte amid the message an `Option` of it would keep its tag there,
/// and each move would be of pieces to either side of that byte, which cost more than a cheap handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task(u64);

impl From<Work> for Task {
    #[inline]
    fn from(work: Work) -> Self {
        Self(work as u64)
    }
}

impl From<Task> for Work {
    #[inline]
    fn from(task: Task) -> Self {
        Self::ALL[task.0 as usize]
    }
}

/// One message.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Message {
    /// The key, an index into the table of the checks.
    pub key: u32,
    /// How many messages of this key came before.
    pub sequence: u32,
    /// How many messages came before.
    pub id: u64,
    /// When the producer had it, in nanoseconds of the clock; zero if its latency is not sampled.
    pub handed_in_at: u64,
    /// What the handler does with it.
    pub work: Task,
    /// Eight times the id.
    pub payload: [u64; 8],
}

const _: () = assert!(size_of::<Message>() == 96);

impl Message {
    /// Whether the payload is the one that this message was made with.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let sum = self.payload.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
        sum == self.id.wrapping_mul(8)
    }
}

/// Which of `lanes` a key belongs to: the hash of every contender that partitions.
#[inline]
#[must_use]
pub fn lane_of(key: u32, lanes: usize) -> usize {
    let hash = u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((hash * lanes as u64) >> 32) as usize
}
