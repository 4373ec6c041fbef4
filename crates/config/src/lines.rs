//! Lines: where in a file a key stands and how its value was written.
//!
//! A light scan of block style TOML and YAML, for messages only: the parser decides what a file means, this tells
//! where. Invariant: it never fails and never changes what is accepted; a key it cannot find (one inside braces, say)
//! gets the line of its nearest parent.

use crate::file::Format;

/// One key with its line, counted from 1.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    pub(crate) written: String,
}

/// The keys of one file, from top to bottom.
#[derive(Debug)]
pub(crate) struct Lines {
    entries: Vec<Entry>,
}

impl Lines {
    pub(crate) fn scan(text: &str, format: Format) -> Self {
        let entries = match format {
            Format::Toml => scan_toml(text),
            Format::Yaml => scan_yaml(text),
        };
        Self { entries }
    }

    /// The line of `path`, or of its nearest parent.
    pub(crate) fn line_of(&self, path: &[String]) -> Option<usize> {
        (1..=path.len()).rev().find_map(|length| self.entry(&path[..length])).map(|entry| entry.line)
    }

    /// The value of `path` as the file writes it.
    pub(crate) fn written(&self, path: &[String]) -> Option<&str> {
        self.entry(path).map(|entry| entry.written.as_str()).filter(|written| !written.is_empty())
    }

    /// The key that stands on `line`.
    pub(crate) fn at(&self, line: usize) -> Option<&[String]> {
        self.entries.iter().find(|entry| entry.line == line).map(|entry| entry.path.as_slice())
    }

    /// Every key, from top to bottom.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Every key that stood before already, with the line of the first time.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().filter_map(|entry| {
            let first = self.entry(&entry.path)?.line;
            (first < entry.line).then_some((first, entry))
        })
    }

    fn entry(&self, path: &[String]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }
}

fn scan_toml(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut section: Vec<String> = Vec::new();
    for (line, content) in numbered(text) {
        let content = content.trim();
        if let Some(header) = content.strip_prefix('[') {
            let Some(end) = find_unquoted(header, ']') else { continue };
            section = names(header[..end].trim_start_matches('['));
            entries.push(Entry { path: section.clone(), line, written: String::new() });
        } else if let Some(equals) = find_unquoted(content, '=') {
            let mut path = section.clone();
            path.extend(names(&content[..equals]));
            entries.push(Entry { path, line, written: without_comment(&content[equals + 1..]) });
        }
    }
    entries
}

fn scan_yaml(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    for (line, content) in numbered(text) {
        let inner = content.trim_start();
        let Some(colon) = find_unquoted(inner, ':') else { continue };
        let after = &inner[colon + 1..];
        if inner.starts_with('-') || !(after.is_empty() || after.starts_with([' ', '\t'])) {
            continue;
        }
        let indent = content.len() - inner.len();
        parents.retain(|(outer, _)| *outer < indent);
        parents.push((indent, unquoted(&inner[..colon])));
        let path = parents.iter().map(|(_, name)| name.clone()).collect();
        entries.push(Entry { path, line, written: without_comment(after) });
    }
    entries
}

/// The lines with their numbers, without those that are blank or a comment.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, line)| {
        let inner = line.trim_start();
        !inner.is_empty() && !inner.starts_with('#')
    })
}

fn names(dotted: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = dotted;
    while let Some(dot) = find_unquoted(rest, '.') {
        names.push(unquoted(&rest[..dot]));
        rest = &rest[dot + 1..];
    }
    names.push(unquoted(rest));
    names
}

fn unquoted(name: &str) -> String {
    let name = name.trim();
    let inner = |quote| name.strip_prefix(quote).and_then(|name: &str| name.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(name).to_owned()
}

fn without_comment(value: &str) -> String {
    let end = find_unquoted(value, '#').unwrap_or(value.len());
    value[..end].trim().to_owned()
}

/// The first `wanted` outside quotes.
fn find_unquoted(text: &str, wanted: char) -> Option<usize> {
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == wanted => return Some(index),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => {}
        }
    }
    None
}
