//! What the process used, and what the rest of the machine used beside it.
//!
//! Own use comes from the kernel's accounting of this process, ended threads included; the machine's from /proc/stat,
//! whose ticks of 10 ms make the share of others coarse in short runs. Where there is no /proc/stat, the share of
//! others is not known and nothing counts as disturbed. What a process does while it has nothing to do is told without
//! the thread that asks.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeVal};
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of one tick of /proc/stat, the same on every Linux that Rust supports.
const TICK: u64 = 10_000_000;

/// Totals since the process or the machine started.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    own_nanos: u64,
    switches: u64,
    machine_nanos: Option<u64>,
}

/// What was used between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Processor time of this process.
    pub own_nanos: u64,
    /// Context switches of this process, voluntary or not.
    pub switches: u64,
    /// Processor time of everything else, what the host took away included.
    pub other_nanos: u64,
}

impl Usage {
    /// The totals now.
    ///
    /// # Panics
    /// If the kernel does not tell a process what it used.
    #[must_use]
    pub fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask for its own use");
        let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
        Self {
            own_nanos: nanos(usage.user_time()) + nanos(usage.system_time()),
            switches: switches as u64,
            machine_nanos: std::fs::read_to_string("/proc/stat").ok().and_then(|text| busy(&text)),
        }
    }

    /// What was used since.
    #[must_use]
    pub fn since(self, before: Self) -> Used {
        let own_nanos = self.own_nanos - before.own_nanos;
        let machine =
            self.machine_nanos.zip(before.machine_nanos).map(|(now, then)| now.saturating_sub(then));
        Used {
            own_nanos,
            switches: self.switches - before.switches,
            other_nanos: machine.map_or(0, |machine| machine.saturating_sub(own_nanos)),
        }
    }
}

/// What the other threads of this process used since it started, those that ended included.
#[derive(Clone, Copy, Debug)]
pub struct OtherThreads {
    nanos: i64,
    switches: i64,
}

impl OtherThreads {
    /// The totals now.
    ///
    /// # Panics
    /// If the kernel does not tell a process what it used.
    #[must_use]
    pub fn now() -> Self {
        let time = |clock| {
            let time: TimeSpec = clock_gettime(clock).expect("a process may ask for its own use");
            time.tv_sec() * 1_000_000_000 + time.tv_nsec()
        };
        let switches = |who| {
            let usage = getrusage(who).expect("a process may ask for its own use");
            usage.voluntary_context_switches() + usage.involuntary_context_switches()
        };
        let (own, all) = (time(ClockId::CLOCK_THREAD_CPUTIME_ID), time(ClockId::CLOCK_PROCESS_CPUTIME_ID));
        let own_switches = switches(UsageWho::RUSAGE_THREAD);
        Self { nanos: all - own, switches: switches(UsageWho::RUSAGE_SELF) - own_switches }
    }

    /// Processor time in nanoseconds and context switches since. The time between two questions to the kernel is part
    /// of it, a fraction of a microsecond.
    #[must_use]
    pub fn since(self, before: Self) -> (u64, u64) {
        let (nanos, switches) = (self.nanos - before.nanos, self.switches - before.switches);
        (nanos.max(0) as u64, switches.max(0) as u64)
    }
}

/// How many threads this process has; not known where there is no /proc.
#[must_use]
pub fn threads() -> Option<usize> {
    std::fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

fn nanos(time: TimeVal) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1_000
}

/// Time that all processors were busy or taken away: user, nice, system, irq, softirq and steal, not idle and iowait.
fn busy(text: &str) -> Option<u64> {
    let fields: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let counted = [0, 1, 2, 5, 6, 7];
    counted.iter().map(|at| fields.get(*at).copied()).sum::<Option<u64>>().map(|ticks| ticks * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_use() {
        assert_eq!(busy("cpu  1 2 3 1000 1000 4 5 6 0 0\ncpu0 1 1\n"), Some(21 * TICK));
        assert_eq!(busy("nothing\n"), None);
    }

    #[test]
    fn another_threads_work_is_seen_and_the_own_is_not() {
        let before = OtherThreads::now();
        let steps = crate::time::steps_for(std::time::Duration::from_millis(20));
        let other = std::thread::spawn(move || {
            let before = nix::sys::resource::getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may ask");
            crate::time::compute(steps);
            let after = nix::sys::resource::getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may ask");
            nanos(after.user_time()) - nanos(before.user_time())
        });
        let used = other.join().expect("it does not panic");
        assert!(OtherThreads::now().since(before).0 >= used / 2);
    }

    #[test]
    fn own_work_is_seen() {
        let before = Usage::now();
        let steps = crate::time::steps_for(std::time::Duration::from_millis(20));
        crate::time::compute(steps);
        assert!(Usage::now().since(before).own_nanos > 0);
    }
}
