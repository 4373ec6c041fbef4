//! Nothing is switched off or put off: no ignored test, no `allow`, no marker of unfinished work.

use super::rust_text::{RustText, whole_word};
use super::tree::Tree;
use crate::finding::Finding;

/// Written in two halves, so that this file can name what no file may contain.
const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            for marker in MARKERS.iter().filter(|marker| whole_word(line, marker).next().is_some()) {
                let text = format!("`{marker}`: do it, or open an issue and say what is absent");
                findings.push(Finding::at(&file.path, index + 1, text));
            }
        }
    }
    for file in tree.ending(".rs") {
        let code = RustText::of(&file.text).code;
        for (at, attribute) in attributes(&code) {
            let line = code[..at].matches('\n').count() + 1;
            if switches_off(attribute, "ignore") {
                findings.push(Finding::at(&file.path, line, "an ignored test: make it fit, or remove it"));
            }
            if switches_off(attribute, "allow") {
                let text = "`allow`: write `expect(lint, reason = \"...\")` at the item";
                findings.push(Finding::at(&file.path, line, text));
            }
        }
    }
    findings
}

/// Each `#[...]` and `#![...]` with its position.
fn attributes(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('#').filter_map(|(at, _)| {
        let rest = code[at + 1..].trim_start_matches('!').strip_prefix('[')?;
        let mut depth = 1;
        let end = rest.char_indices().find_map(|(end, c)| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            (depth == 0).then_some(end)
        })?;
        Some((at, &rest[..end]))
    })
}

/// Whether the attribute is `name`, or applies it under a condition.
fn switches_off(attribute: &str, name: &str) -> bool {
    let first = attribute.trim_start().strip_prefix(name);
    let directly = first.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
    let conditional = attribute.trim_start().starts_with("cfg_attr");
    directly || conditional && whole_word(attribute, name).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().filter_map(|finding| finding.line).collect()
    }

    #[test]
    fn ignored_tests_and_allows_are_findings_however_they_are_written() {
        let text = "#![allow(dead_code)]\n#[ignore = \"slow\"]\n#[cfg_attr(windows, ignore)]\n#[cfg_attr(\n    test,\n    allow(unused)\n)]\n";
        assert_eq!(found("a.rs", text), [1, 2, 3, 4]);
    }

    #[test]
    fn expectations_and_mentions_are_no_findings() {
        let text =
            "#[expect(dead_code, reason = \"x\")]\n// #[allow(x)]\nlet a = \"#[ignore]\";\n#[allowed]\n";
        assert_eq!(found("a.rs", text), Vec::<usize>::new());
    }

    #[test]
    fn markers_of_unfinished_work_are_findings_in_every_text() {
        let text = format!("a\n# {} later\nmy{}x\n", MARKERS[0], MARKERS[1]);
        assert_eq!(found("a.toml", &text), [2]);
        assert_eq!(found("a.rs", &format!("// {}", MARKERS[1])), [1]);
    }
}
