//! What this process used and what the rest of the machine did meanwhile, as far as the system tells (Linux).
//!
//! Per thread, so that threads which have ended are not counted: look before they end.

use std::fs;

/// Nanoseconds of one tick of /proc/stat.
const TICK: u64 = 10_000_000;

/// Totals of the threads that live now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_nanos: u64,
    pub(crate) switches: u64,
    /// Threads that run handlers or poll sources, by their names.
    pub(crate) threads: u64,
}

impl Usage {
    /// `None` where the system does not tell.
    pub(crate) fn now(prefix: &str) -> Option<Self> {
        let mut usage = Self::default();
        for task in fs::read_dir("/proc/self/task").ok()? {
            let path = task.ok()?.path();
            // A thread may end between the list and the look.
            let Ok(status) = fs::read_to_string(path.join("status")) else { continue };
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|value| value.trim().parse::<u64>().ok())
            };
            usage.switches += field("voluntary_ctxt_switches:").unwrap_or(0);
            usage.switches += field("nonvoluntary_ctxt_switches:").unwrap_or(0);
            let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
            usage.threads += u64::from(name.starts_with(prefix));
            let times = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            usage.cpu_nanos += times.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
        }
        Some(usage)
    }
}

/// How busy the machine was since the look, and with whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    all: Option<(u64, u64)>,
    own: Option<u64>,
}

impl Machine {
    pub(crate) fn now() -> Self {
        Self { all: all(), own: own() }
    }

    /// What others took of the processors since, in words.
    pub(crate) fn since(self) -> String {
        let now = Self::now();
        let others = || {
            let ((busy, total), (busy_then, total_then)) = (now.all?, self.all?);
            let busy = (busy - busy_then).saturating_sub(now.own? - self.own?);
            Some(100.0 * busy as f64 / (total - total_then).max(1) as f64)
        };
        match others() {
            Some(share) => format!("others took {share:.0} % of the machine"),
            None => "what others took of the machine is not known".to_owned(),
        }
    }
}

/// Busy and all nanoseconds of the machine's processors.
fn all() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let total: u64 = fields.iter().take(8).sum();
    // Idle, and waiting for a disk.
    let idle = fields.get(3)? + fields.get(4)?;
    Some(((total - idle) * TICK, total * TICK))
}

/// Processor time of this process, ended threads included.
fn own() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) * TICK)
}
