//! The loom and shuttle shim of the executor: only sync.rs names what they replace.
//!
//! A type of `std::sync` that slips in elsewhere would be invisible to the models, which would then prove nothing
//! about it. Tests are free to use what they like.

use super::rust_text::{RustText, whole_word};
use super::tree::Tree;
use crate::finding::Finding;

const SOURCES: &str = "crates/keyed-executor/src/";
const SHIM: &str = "crates/keyed-executor/src/sync.rs";
/// Paths that loom or shuttle has a counterpart for, and the two themselves.
const REPLACED: [&str; 7] = [
    "std::sync",
    "core::sync",
    "std::thread",
    "std::cell::UnsafeCell",
    "core::cell::UnsafeCell",
    "loom",
    "shuttle",
];

/// A question to the system rather than a thread: loom has no counterpart, and no model asks it.
const HARMLESS: &str = "std::thread::available_parallelism";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.ending(".rs").filter(|file| {
        let inner = file.path.strip_prefix(SOURCES);
        inner.is_some_and(|path| file.path != SHIM && !is_test(path))
    });
    let mut findings = Vec::new();
    for file in files {
        let rust = RustText::of(&file.text);
        let for_tests = rust.test_lines();
        for (line, path) in paths(&rust.code) {
            let replaced = REPLACED.iter().find(|replaced| path != HARMLESS && begins_with(&path, replaced));
            if let (Some(replaced), false) = (replaced, for_tests[line - 1]) {
                let text =
                    format!("names `{replaced}`; loom cannot see it here, import it through `crate::sync`");
                findings.push(Finding::at(&file.path, line, text));
            }
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path == "tests.rs"
        || path.ends_with("/tests.rs")
}

fn begins_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The paths that begin with `std`, `core`, `loom` or `shuttle`, with the groups of `use` written out.
fn paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for root in ["std", "core", "loom", "shuttle"] {
        for at in whole_word(code, root) {
            let before = code[..at].trim_end();
            let inner = before.ends_with("::") && before[..before.len() - 2].ends_with(is_path_char);
            if !inner && code[at + root.len()..].trim_start().starts_with("::") {
                let line = code[..at].matches('\n').count() + 1;
                expand(&code[at..], "", &mut |path| found.push((line, path)));
            }
        }
    }
    found
}

fn is_path_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Hands out every path that the tree at the start of `code` stands for, and returns what follows it.
fn expand<'a>(code: &'a str, prefix: &str, out: &mut dyn FnMut(String)) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = expand(rest, prefix, out).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                Some(more) => return more.trim_start().strip_prefix('}').unwrap_or_default(),
                None => return rest.strip_prefix('}').unwrap_or_default(),
            }
        }
    }
    let end = code.find(|c: char| !is_path_char(c)).unwrap_or(code.len());
    let (word, rest) = code.split_at(end);
    let path = if prefix.is_empty() { word.to_owned() } else { format!("{prefix}::{word}") };
    match rest.trim_start().strip_prefix("::") {
        Some(more) if end > 0 && more.trim_start().starts_with(|c: char| is_path_char(c) || c == '{') => {
            expand(more, &path, out)
        }
        _ => {
            out(path.trim_end_matches("::self").to_owned());
            let after = rest.trim_start().strip_prefix("as ");
            after.map_or(rest, |renamed| renamed.trim_start().trim_start_matches(is_path_char))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, code: &str) -> Vec<String> {
        let path = format!("{SOURCES}{path}");
        check(&Tree::of(&[(path.as_str(), code)]))
            .into_iter()
            .map(|f| format!("{}: {}", f.line.unwrap(), f.text))
            .collect()
    }

    #[test]
    fn a_path_of_std_sync_outside_the_shim_is_a_finding() {
        let found = found("lane.rs", "use std::time::Duration;\nuse std::sync::Arc;\n");
        assert_eq!(found, ["2: names `std::sync`; loom cannot see it here, import it through `crate::sync`"]);
    }

    #[test]
    fn groups_and_inline_paths_are_seen() {
        let code = "use std::{fmt, cell::{Cell as C, UnsafeCell}, thread};\nfn f() { ::core::sync::atomic::fence() }\n";
        let found = found("lane.rs", code);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn other_paths_comments_and_macros_are_no_findings() {
        let code = "//! std::sync is named here.\nuse std::cell::Cell;\nuse crate::std::sync;\nstd::thread_local!(static A: u8 = 1);\n\
            fn f() { std::thread::available_parallelism() }\n";
        assert_eq!(found("lane.rs", code), Vec::<String>::new());
    }

    #[test]
    fn the_shim_and_tests_are_free() {
        let code = "use std::sync::Mutex;\nuse loom::thread;\nuse shuttle::thread;\n";
        assert!(found("sync.rs", code).is_empty());
        assert!(found("tests/loom_wake.rs", code).is_empty());
        assert!(found("a.rs", "#[cfg(test)]\nmod tests {\n    use std::sync::Arc;\n}\n").is_empty());
        assert_eq!(found("a.rs", code).len(), 3);
    }
}
