//! `Log`: what a program logged, line by line, for tests of what is told there.
//!
//! A subscriber of `tracing` that keeps every line with its level and fields. It filters nothing and writes nothing; a test
//! picks the lines of its own names.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Every line that was logged since it subscribed. Clones are the same log.
///
/// ```
/// use wow_testkit::Log;
///
/// let log = Log::default();
/// tracing::subscriber::with_default(log.clone(), || tracing::warn!(worker = 2, "it waits"));
/// assert_eq!(log.lines()[0].get("worker"), Some("2"));
/// assert_eq!(log.warnings(), ["it waits"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Line>>>);

/// One line of a [`Log`].
#[derive(Clone, Debug)]
pub struct Line {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Log {
    /// The lines so far, in their order.
    ///
    /// # Panics
    /// If a value panicked while it was logged.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.0.lock().expect("logging does not panic").clone()
    }

    /// The texts of the warnings so far.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let is_warning = |line: &Line| (line.level == Level::WARN).then(|| line.text().to_owned());
        self.lines().iter().filter_map(is_warning).collect()
    }

    /// How many lines contain every one of these texts, in their level or in a field.
    #[must_use]
    pub fn count(&self, texts: &[&str]) -> usize {
        let lines = self.lines().into_iter().map(|line| line.to_string());
        lines.filter(|line| texts.iter().all(|text| line.contains(text))).count()
    }
}

impl Line {
    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        self.get("message").unwrap_or_default()
    }

    /// The value of a field, without quotes around it.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }
}

/// As `WARN message=it waits worker=2`.
impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.level)?;
        self.fields.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

struct Fields<'a>(&'a mut Line);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.fields.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.fields.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut Fields(&mut line));
        self.0.lock().expect("logging does not panic").push(line);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
