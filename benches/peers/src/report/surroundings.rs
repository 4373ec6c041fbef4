//! What a figure cannot be read without: machine, commit, compiler's profile.

use std::process::Command;

use serde_json::{Value, json};

/// Where and on what was measured.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The processor, as the system names it.
    pub processor: String,
    /// How many of it.
    pub processors: usize,
    /// The commit, and whether files differ from it.
    pub commit: String,
}

/// Asks the system and git; what they do not tell is unknown.
#[must_use]
pub fn surroundings() -> Surroundings {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates/keyed-executor"]);
    let changed =
        if changed.is_some_and(|files| !files.is_empty()) { " with uncommitted changes" } else { "" };
    Surroundings {
        processor: processor.map_or("unknown", |(_, name)| name).to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        commit: format!("{commit}{changed}"),
    }
}

impl Surroundings {
    pub(crate) fn json(&self) -> Value {
        json!({ "processor": self.processor, "processors": self.processors, "commit": self.commit })
    }
}
