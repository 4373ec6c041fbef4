//! A contender's own process: it does what it is asked to, and writes down in one line what came of it.
//!
//! *blocking* is workload L: twenty handlers that hold their thread until twenty later ones are done. *idle* is a short
//! load of workload A, everything handled, and then a second without messages; the time in which threads find out that
//! there is nothing to do is not part of that second. The main thread, which waits meanwhile, is not counted.

use std::str::FromStr;
use std::time::Duration;

use crate::contender::Entry;
use crate::course::Course;
use crate::time::block;
use crate::usage::{OtherThreads, threads};
use crate::workload::{GATE_KEYS, Workload};

/// Messages of the short load.
const LOAD: usize = 20_000;
/// How long after the load a process counts as idle: longer than ours without rescue takes, whose monitor looks four
/// times more, a quarter of a second apart, before it sleeps too.
const SETTLED_AFTER: Duration = Duration::from_millis(1_500);
/// How long it is looked at.
const LOOKED_AT: Duration = Duration::from_secs(1);

/// What a contender is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Handlers that block until later ones are done.
    Blocking,
    /// A second of nothing.
    Idle,
}

/// The blocking handlers finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How long they took, from the first message handed in to the last handler's end.
    pub nanos: u64,
}

/// What a process did while there was nothing to do, its main thread left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Threads before the first message.
    pub threads_before: u64,
    /// Threads at the end of the second.
    pub threads_after: u64,
    /// Context switches in the second.
    pub switches: u64,
    /// Processor time in the second.
    pub nanos: u64,
}

impl Question {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Blocking, Self::Idle];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Idle => "idle",
        }
    }

    /// The answer, in one line.
    ///
    /// # Errors
    /// The contender broke a promise, or threads cannot be counted here.
    pub fn answer(self, entry: &Entry) -> Result<String, String> {
        match self {
            Self::Blocking => blocking(entry).map(|finished| finished.nanos.to_string()),
            Self::Idle => idle(entry).map(|idle| {
                let Idle { threads_before, threads_after, switches, nanos } = idle;
                format!("{threads_before} {threads_after} {switches} {nanos}")
            }),
        }
    }
}

fn blocking(entry: &Entry) -> Result<Finished, String> {
    let messages = 2 * GATE_KEYS as usize;
    let course = Course::new(Workload::L, messages);
    course.reset(entry.keeper());
    let mut contender = (entry.open)(course);
    let began_at = course.clock.nanos();
    contender.feed(course.feed(0..messages, u64::MAX));
    let nanos = course.clock.nanos() - began_at;
    drop(contender);
    kept(entry, course)?;
    Ok(Finished { nanos })
}

fn idle(entry: &Entry) -> Result<Idle, String> {
    let count =
        || threads().map(|threads| threads as u64).ok_or("this system does not tell a process its threads");
    let course = Course::new(Workload::A, LOAD);
    course.reset(entry.keeper());
    let others = count()?;
    let mut contender = (entry.open)(course);
    let threads_before = count()? - others;
    contender.feed(course.feed(0..LOAD, u64::MAX));
    block(SETTLED_AFTER);
    let before = OtherThreads::now();
    block(LOOKED_AT);
    let (nanos, switches) = OtherThreads::now().since(before);
    let threads_after = count()? - others;
    drop(contender);
    kept(entry, course)?;
    Ok(Idle { threads_before, threads_after, switches, nanos })
}

fn kept(entry: &Entry, course: &Course) -> Result<(), String> {
    let faults = course.faults(entry.ordered);
    if faults.is_clean(entry.ordered) { Ok(()) } else { Err(format!("broke a promise: {faults:?}")) }
}

/// The numbers of a line, exactly so many.
fn numbers<const N: usize>(line: &str) -> Result<[u64; N], String> {
    let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    numbers.ok().and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| format!("no answer: {line:?}"))
}

impl FromStr for Finished {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        numbers(line).map(|[nanos]| Self { nanos })
    }
}

impl FromStr for Idle {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let [threads_before, threads_after, switches, nanos] = numbers(line)?;
        Ok(Self { threads_before, threads_after, switches, nanos })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::contender::ALL;

    fn entry(id: &str) -> &'static Entry {
        ALL.iter().find(|entry| entry.id == id).expect("a known contender")
    }

    #[test]
    fn handlers_that_block_for_later_ones_finish_where_stuck_threads_are_rescued() {
        for id in ["ours-rescue", "ours-source-rescue"] {
            let (finished, told) = channel();
            std::thread::spawn(move || finished.send(Question::Blocking.answer(entry(id))));
            let answer = told.recv_timeout(Duration::from_secs(60)).expect("it finishes");
            let answer: Finished = answer.and_then(|answer| answer.parse()).expect("every promise is kept");
            assert!(answer.nanos > 0, "{id}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let idle = Idle { threads_before: 1, threads_after: 2, switches: 3, nanos: 4 };
        assert_eq!("1 2 3 4\n".parse(), Ok(idle));
        assert!("1 2 3".parse::<Idle>().is_err() && "1 2".parse::<Finished>().is_err());
        assert!("".parse::<Finished>().unwrap_err().contains("no answer"));
    }
}
