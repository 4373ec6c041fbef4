//! The guard: YAML that would bring the parser down is refused before it is parsed.
//!
//! The parser recurses for each level of a block and copies what an alias names, so a small file could overflow its
//! stack or fill the memory. Invariant: no configuration of ours comes near the limits. It judges nothing else; TOML
//! needs no guard, its parser has limits of its own.

/// The deepest nesting that is parsed; our sections have three levels.
const MAX_DEPTH: usize = 64;

/// The line and the reason if `text` must not be parsed.
pub(crate) fn refused(text: &str) -> Option<(usize, &'static str)> {
    let mut indents: Vec<usize> = Vec::new();
    let mut anchors: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let inner = line.trim_start();
        if inner.is_empty() || inner.starts_with('#') {
            continue;
        }
        let indent = line.len() - inner.len();
        indents.retain(|outer| *outer < indent);
        indents.push(indent);
        // Each dash or question mark that begins a line opens a level of its own.
        let opened = inner.split_ascii_whitespace().take_while(|word| matches!(*word, "-" | "?")).count();
        if indents.len() + opened > MAX_DEPTH {
            return Some((index + 1, "is nested too deep"));
        }
        anchors.extend(marked(line, '&'));
        if marked(line, '*').any(|alias| anchors.contains(&alias)) {
            return Some((index + 1, "an alias (`*name`) is not accepted, write the value"));
        }
    }
    None
}

/// The names in `line` that `mark` stands before.
fn marked(line: &str, mark: char) -> impl Iterator<Item = &str> {
    line.split([' ', '\t', ',', '[', ']', '{', '}', ':'])
        .filter_map(move |word| word.strip_prefix(mark))
        .filter(|name| !name.is_empty())
}
