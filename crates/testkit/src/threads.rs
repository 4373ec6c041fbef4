//! The threads of this process, as the kernel lists them (Linux only).
//!
//! Owns the reading of `/proc/self/task`. Invariant: it looks and never changes anything. The kernel keeps 15 bytes of a
//! name, so a test that asks for a thread's full name must give its executor a short one.

use std::fs;
use std::path::Path;

/// What the kernel says a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It runs or could run.
    Running,
    /// It sleeps until it is woken.
    Sleeping,
    /// Anything else: waiting for a disk, stopped, ending.
    Other,
}

/// One thread of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its name, cut to 15 bytes.
    pub name: String,
    /// What it did when it was looked at.
    pub activity: Activity,
}

/// The threads whose names start with `prefix`, sorted by name.
///
/// # Panics
/// If `/proc` cannot be read at all.
pub fn named(prefix: &str) -> Vec<ThreadInfo> {
    let tasks = fs::read_dir("/proc/self/task").expect("a Linux process can list its threads");
    // A thread may end between the listing and the look at it: then it is not there.
    let mut found: Vec<ThreadInfo> = tasks
        .filter_map(|task| look(&task.ok()?.path()))
        .filter(|thread| thread.name.starts_with(prefix))
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// How many threads have names that start with `prefix`.
///
/// # Panics
/// If `/proc` cannot be read at all.
pub fn count(prefix: &str) -> usize {
    named(prefix).len()
}

fn look(task: &Path) -> Option<ThreadInfo> {
    let name = fs::read_to_string(task.join("comm")).ok()?.trim_end().to_owned();
    let stat = fs::read_to_string(task.join("stat")).ok()?;
    // The state follows the name, and the name is in parentheses that it may itself contain.
    let (_, after_name) = stat.rsplit_once(')')?;
    let activity = match after_name.trim_start().chars().next()? {
        'R' => Activity::Running,
        'S' => Activity::Sleeping,
        'Z' | 'X' => return None,
        _ => Activity::Other,
    };
    Some(ThreadInfo { name, activity })
}

#[cfg(test)]
mod tests {
    use super::{Activity, count, named};
    use crate::{Latch, eventually};

    #[test]
    fn a_thread_is_listed_while_it_lives() {
        assert_eq!(count("tk-listed"), 0);
        let latch = Latch::new();
        let held = latch.clone();
        let thread = std::thread::Builder::new()
            .name("tk-listed-1".to_owned())
            .spawn(move || held.wait())
            .expect("one thread can start");
        eventually("the waiting thread sleeps", || {
            let threads = named("tk-listed");
            threads.len() == 1
                && threads[0].name == "tk-listed-1"
                && threads[0].activity == Activity::Sleeping
        });
        latch.release();
        thread.join().expect("it only waits");
        eventually("the ended thread is gone", || count("tk-listed") == 0);
    }
}
