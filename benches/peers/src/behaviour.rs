//! What has no rate: whether handlers that block each other finish, and what a contender does while there is nothing
//! to do.
//!
//! Each contender is asked in a process of its own (`probe.rs`), since whoever hangs has to be ended, and threads and
//! context switches are those of a process. Here is who is asked how often, and how long an answer may take; a question
//! that hung once is not asked again. Invariant: no process of a contender is left behind.

mod child;
pub mod probe;
mod table;

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::contender::{ALL, Entry};
use crate::rounds::Plan;
use crate::workload::Workload;
use child::Said;
use probe::{Finished, Idle, Question};
pub use table::Behaviour;

/// How long a contender may take for what takes none of its peers that finish a tenth of a second.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// What one contender answered.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Who.
    pub entry: Entry,
    /// Each time that the blocking handlers finished.
    pub finished: Vec<Finished>,
    /// Whether they once did not.
    pub hung: bool,
    /// What it did while there was nothing to do, each time.
    pub idle: Vec<Idle>,
}

/// Asks the plan's contenders, in as many rounds as it has; `tell` is told what is done.
///
/// # Errors
/// The program cannot be run, or a contender broke a promise or ended without an answer: the text says which.
pub fn observe(program: &Path, plan: &Plan, mut tell: impl FnMut(&str)) -> io::Result<Vec<Observed>> {
    let chosen = ALL.iter().filter(|entry| plan.contenders.contains(&entry.id) && entry.takes(Workload::A));
    let mut all: Vec<Observed> = chosen
        .map(|entry| Observed { entry: *entry, finished: Vec::new(), hung: false, idle: Vec::new() })
        .collect();
    for round in 0..plan.rounds {
        tell(&format!("behaviour round {} of {}", round + 1, plan.rounds));
        for one in &mut all {
            if !one.hung {
                match ask(program, Question::Blocking, &one.entry)? {
                    Some(answer) => one.finished.push(understood(&answer, &one.entry)?),
                    None => one.hung = true,
                }
            }
            let answer = ask(program, Question::Idle, &one.entry)?;
            let answer = answer.ok_or_else(|| io::Error::other(format!("{} hangs on A", one.entry.id)))?;
            one.idle.push(understood(&answer, &one.entry)?);
        }
    }
    Ok(all)
}

/// What it said; nothing if it hangs.
fn ask(program: &Path, question: Question, entry: &Entry) -> io::Result<Option<String>> {
    match child::run(program, &[question.name(), entry.id], HANGS_AFTER)? {
        Said::Answer(answer) => Ok(Some(answer)),
        Said::Nothing => Ok(None),
        Said::Failed(status) => Err(io::Error::other(format!(
            "{} ended with {status} when asked for {}",
            entry.id,
            question.name()
        ))),
    }
}

fn understood<A: std::str::FromStr<Err = String>>(answer: &str, entry: &Entry) -> io::Result<A> {
    answer.parse().map_err(|fault: String| io::Error::other(format!("{}: {fault}", entry.id)))
}
