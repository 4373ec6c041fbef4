//! One file: read within a bound, parsed, and walked key by key.
//!
//! Called by `loader.rs`. Invariants: every key of the file is either one of ours or a problem; a problem names the
//! key as it was written; a file that cannot be parsed gives one problem and no value. It does not know about other
//! sources.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use config::{FileFormat, Map, Source, Value, ValueKind};

use crate::error::{Problem, Refusal};
use crate::guard;
use crate::key::{Key, REMOVED, SECTION, nearest};
use crate::lines::Lines;
use crate::loader::{Loading, Origin};
use crate::value::Raw;

/// The most bytes of a configuration file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The formats a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Yaml,
}

impl Format {
    fn of(name: &Path) -> Option<Self> {
        match name.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Reads the file at `path` into `loading`.
pub(crate) fn read(path: &Path, loading: &mut Loading) {
    match bytes(path) {
        Ok(bytes) => parse_bytes(path, bytes, loading),
        Err(refusal) => loading.refuse(Origin::file(path, None), refusal),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Refusal> {
    let unreadable = |error: std::io::Error| Refusal::Unreadable { reason: error.to_string() };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(Refusal::Unreadable { reason: "it is a folder".to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Refusal::TooLong { max_bytes: MAX_BYTES });
    }
    Ok(bytes)
}

fn parse_bytes(path: &Path, bytes: Vec<u8>, loading: &mut Loading) {
    match String::from_utf8(bytes) {
        Ok(text) => parse(path, &text, loading),
        Err(_) => loading.refuse(Origin::file(path, None), Refusal::NotUtf8),
    }
}

/// Reads `text` as the content of a file of this name.
pub(crate) fn parse(path: &Path, text: &str, loading: &mut Loading) {
    let before = loading.problems.len();
    parse_text(path, text, loading);
    // The parser's tables have no order; the report has the file's.
    loading.problems[before..].sort_by_key(|problem| problem.origin.line());
}

fn parse_text(path: &Path, text: &str, loading: &mut Loading) {
    let Some(format) = Format::of(path) else {
        return loading.refuse(Origin::file(path, None), Refusal::UnknownFormat);
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return loading.refuse(Origin::file(path, None), Refusal::Empty);
    }
    if let Some((line, reason)) = (format == Format::Yaml).then(|| guard::refused(text)).flatten() {
        let refusal = Refusal::Malformed { key: None, reason: reason.to_owned() };
        return loading.refuse(Origin::file(path, Some(line)), refusal);
    }
    let lines = Lines::scan(text, format);
    let text = without_first_refused(path, text, format, &lines, loading);
    let parser = match format {
        Format::Toml => FileFormat::Toml,
        Format::Yaml => FileFormat::Yaml,
    };
    match config::File::from_str(&text, parser).collect() {
        Ok(root) => Walk { path, lines: &lines, loading }.root(root),
        Err(error) => malformed(path, &lines, &error.to_string(), loading),
    }
}

/// The text without what would make the parser refuse the whole file although only one of our keys is wrong, so that
/// the other problems of the file are found too.
///
/// A key that is set twice is refused here and its second line blanked. A number beyond 64 bits, which the TOML parser
/// refuses without telling its place, becomes one that no key accepts; the message shows what the file says.
fn without_first_refused(
    path: &Path,
    text: &str,
    format: Format,
    lines: &Lines,
    loading: &mut Loading,
) -> String {
    let mut kept: Vec<String> = text.lines().map(str::to_owned).collect();
    for (first, again) in lines.repeated() {
        let Some(key) = ours(&again.path) else { continue };
        let refusal = Refusal::SetTwice { key: key.to_string(), value: shown(&again.written), first };
        loading.refuse(Origin::file(path, Some(again.line)), refusal);
        kept[again.line - 1].clear();
    }
    for entry in lines.entries().filter(|entry| format == Format::Toml && is_beyond_64_bits(&entry.written)) {
        kept[entry.line - 1] = kept[entry.line - 1].replace(&entry.written, "-1");
    }
    kept.join("\n")
}

/// Says where a file is malformed, with the key of that place if it is one of ours.
fn malformed(path: &Path, lines: &Lines, reason: &str, loading: &mut Loading) {
    // The TOML parser draws the line and marks the place; the reason is the last line of the drawing.
    let mut parts = reason.lines().map(str::trim).filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or("cannot be parsed");
    let reason = parts.next_back().map_or_else(|| first.to_owned(), |last| format!("{first}: {last}"));
    let line = reason.split_once("line ").and_then(|(_, after)| {
        let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    });
    let key = line.and_then(|line| lines.at(line)).and_then(ours);
    let key = key.map(|key| (key.to_string(), key.accepted()));
    loading.refuse(Origin::file(path, line), Refusal::Malformed { key, reason: shown(&reason) });
}

fn is_beyond_64_bits(written: &str) -> bool {
    let digits = written.trim_start_matches(['+', '-']).replace('_', "");
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<i64>().is_err()
}

fn ours(path: &[String]) -> Option<Key> {
    let [section @ .., name] = path else { return None };
    Key::ALL.into_iter().find(|key| section == SECTION && name == key.name())
}

/// A text of a file in a message: not longer than a line of a terminal.
pub(crate) fn shown(text: &str) -> String {
    const MAX: usize = 120;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    text.chars().take(MAX).chain(['…']).collect()
}

/// Goes through the tables of one file.
struct Walk<'a> {
    path: &'a Path,
    lines: &'a Lines,
    loading: &'a mut Loading,
}

impl Walk<'_> {
    fn root(mut self, root: Map<String, Value>) {
        self.table(&[], root, &[SECTION[0]], |walk, path, value| walk.wow(path, value));
    }

    fn wow(&mut self, path: &[String], value: Value) {
        if let Some(table) = self.as_table(path, value) {
            self.table(path, table, &[SECTION[1], REMOVED.0], |walk, path, value| {
                if path[1] == REMOVED.0 {
                    let origin = walk.origin(path);
                    walk.loading.notice_removed(&origin);
                } else if let Some(table) = walk.as_table(path, value) {
                    walk.dispatch(path, table);
                }
            });
        }
    }

    fn dispatch(&mut self, path: &[String], table: Map<String, Value>) {
        let names = Key::ALL.map(Key::name);
        self.table(path, table, &names, |walk, path, value| {
            let Some(key) = ours(path) else { return };
            let raw = match &value.kind {
                ValueKind::I64(number) => Raw::Integer(i128::from(*number)),
                ValueKind::U64(number) => Raw::Integer(i128::from(*number)),
                ValueKind::I128(number) => Raw::Integer(*number),
                ValueKind::String(text) => Raw::Text(text),
                _ => Raw::Other,
            };
            let origin = walk.origin(path);
            if walk.loading.set(key, raw, &origin).is_none() {
                let value = walk.written(path, &value.kind);
                walk.loading.problems.push(refused(origin, key.to_string(), value, key.accepted()));
            }
        });
    }

    /// Hands each known key of `table` to `known` and refuses the others.
    fn table(
        &mut self,
        parent: &[String],
        table: Map<String, Value>,
        names: &[&str],
        mut known: impl FnMut(&mut Self, &[String], Value),
    ) {
        for (name, value) in table {
            let mut path = parent.to_vec();
            path.push(name.clone());
            if names.contains(&name.as_str()) {
                known(self, &path, value);
                continue;
            }
            let full =
                |name: &str| [parent.join(".").as_str(), name].join(".").trim_start_matches('.').to_owned();
            let current = names.iter().copied().filter(|name| *name != REMOVED.0);
            let refusal = Refusal::UnknownKey {
                key: shown(&full(&name)),
                meant: nearest(&name, current.clone()).map(full),
                accepted: current.map(full).collect::<Vec<_>>().join(", "),
            };
            let origin = self.origin(&path);
            self.loading.problems.push(Problem { origin, refusal });
        }
    }

    /// The table under `path`; a section without content is an empty one.
    fn as_table(&mut self, path: &[String], value: Value) -> Option<Map<String, Value>> {
        match value.kind {
            ValueKind::Table(table) => Some(table),
            ValueKind::Nil => Some(Map::new()),
            other => {
                let value = self.written(path, &other);
                let problem =
                    refused(self.origin(path), path.join("."), value, "a section with keys".to_owned());
                self.loading.problems.push(problem);
                None
            }
        }
    }

    fn origin(&self, path: &[String]) -> Origin {
        Origin::file(self.path, self.lines.line_of(path))
    }

    fn written(&self, path: &[String], kind: &ValueKind) -> String {
        let parsed = match kind {
            ValueKind::Nil => return "nothing".to_owned(),
            ValueKind::Table(_) => return "a section".to_owned(),
            ValueKind::Array(_) => return "a list".to_owned(),
            ValueKind::String(text) => format!("{text:?}"),
            ValueKind::Boolean(value) => value.to_string(),
            ValueKind::I64(value) => value.to_string(),
            ValueKind::U64(value) => value.to_string(),
            ValueKind::I128(value) => value.to_string(),
            ValueKind::U128(value) => value.to_string(),
            ValueKind::Float(value) => value.to_string(),
        };
        shown(self.lines.written(path).unwrap_or(&parsed))
    }
}

fn refused(origin: Origin, key: String, value: String, accepted: String) -> Problem {
    Problem { origin, refusal: Refusal::Value { key, value, accepted } }
}
