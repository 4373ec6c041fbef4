//! Unsafe code: where it may stand, and that each use is argued from something a reader can look up.
//!
//! A use (`unsafe { .. }` or `unsafe impl`) has a `SAFETY:` comment directly above its statement that cites a
//! numbered rule of a README below the crate's src, or names the contract of the standard library that it fulfils;
//! "as above" repeats the argument of the use before it. A rule that is cited must exist.

use std::collections::BTreeSet;

use super::rust_text::{RustText, whole_word};
use super::tree::Tree;
use crate::finding::Finding;
use crate::workspace::Package;

/// The one crate that may contain unsafe code.
const CRATE: &str = "crates/keyed-executor/";

pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rules = rules(tree);
    for file in tree.ending(".rs") {
        let rust = RustText::of(&file.text);
        for (line, text) in uses(&rust) {
            if !file.path.starts_with(CRATE) {
                findings.push(Finding::at(&file.path, line, format!("unsafe code outside {CRATE}")));
            } else if let Some(objection) = text {
                findings.push(Finding::at(&file.path, line, objection));
            }
        }
        for (line, _, comment) in rust.lines().filter(|_| file.path.starts_with(CRATE)) {
            for rule in cited(comment).into_iter().filter(|rule| !rules.contains(rule)) {
                let text =
                    format!("rule {rule} is cited, but no README below {CRATE}src has a rule of that number");
                findings.push(Finding::at(&file.path, line, text));
            }
        }
    }
    findings.extend(forbidden(tree, packages));
    findings
}

/// Libraries and programs that do not forbid unsafe code.
fn forbidden(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let targets = packages.iter().flat_map(|package| &package.targets);
    let roots = targets.filter(|target| matches!(target.kind.as_str(), "lib" | "bin" | "proc-macro"));
    let files =
        roots.filter(|target| !target.path.starts_with(CRATE)).filter_map(|target| tree.file(&target.path));
    let open = files.filter(|file| !RustText::of(&file.text).code.contains("#![forbid(unsafe_code)]"));
    open.map(|file| Finding::file(&file.path, "does not say `#![forbid(unsafe_code)]`")).collect()
}

/// Each use of unsafe code with what is wrong with its comment.
fn uses(rust: &RustText) -> Vec<(usize, Option<&'static str>)> {
    let code: Vec<&str> = rust.code.lines().collect();
    let comments: Vec<&str> = rust.comments.lines().collect();
    let mut uses: Vec<(usize, Option<&'static str>)> = Vec::new();
    for at in whole_word(&rust.code, "unsafe") {
        let after = rust.code[at + "unsafe".len()..].trim_start();
        if !after.starts_with('{') && !after.starts_with("impl") {
            continue;
        }
        let line = rust.code[..at].matches('\n').count();
        let argument = argument(&code, &comments, line);
        let objection = match uses.last() {
            Some((_, before)) if argument.contains("SAFETY: as above") => *before,
            _ => objection(&argument),
        };
        uses.push((line + 1, objection));
    }
    uses
}

/// The comment above the statement that `line` is in: past the lines of the statement, then comments and attributes.
fn argument(code: &[&str], comments: &[&str], line: usize) -> String {
    let mut first = line;
    let complete = |above: &str| above.is_empty() || above.ends_with([';', '{', '}', ',', ']']);
    while first > 0 && comments[first - 1].trim().is_empty() && !complete(code[first - 1].trim()) {
        first -= 1;
    }
    let mut above = Vec::new();
    for index in (0..first).rev() {
        let (code, comment) = (code[index].trim(), comments[index].trim());
        let attribute = code.starts_with("#[");
        if !attribute && (comment.is_empty() || !code.is_empty()) {
            break;
        }
        above.push(comment);
    }
    above.reverse();
    above.join("\n")
}

fn objection(argument: &str) -> Option<&'static str> {
    let Some((_, reason)) = argument.split_once("SAFETY:") else {
        return Some("unsafe code without a `// SAFETY:` comment above its statement");
    };
    let names_contract = whole_word(reason, "contract").next().is_some();
    (cited(reason).is_empty() && !names_contract).then_some(
        "the SAFETY comment cites neither a numbered rule nor the contract of the standard library",
    )
}

/// The numbers after `rule` or `rules`: "rule 3", "rules 2 and 5", "rules 1, 4".
fn cited(comment: &str) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for word in ["rule", "rules"] {
        for at in whole_word(comment, word) {
            let tail = comment[at + word.len()..].split_whitespace();
            for word in tail {
                let digits = word.trim_end_matches([',', ';', '.', ':', ')']);
                match digits.parse::<u32>() {
                    Ok(number) => numbers.insert(number),
                    Err(_) if word == "and" || word == "//" => continue,
                    Err(_) => break,
                };
            }
        }
    }
    numbers
}

/// The numbers of all rules: items `1.`, `2.`, ... of the READMEs below the crate's src.
fn rules(tree: &Tree) -> BTreeSet<u32> {
    let readmes = tree.ending("README.md").filter(|file| file.path.starts_with(&format!("{CRATE}src/")));
    let items = readmes.flat_map(|file| file.text.lines()).filter_map(|line| {
        let (number, _) = line.trim_start_matches(['*', '#', '|', ' ']).split_once(['.', ' ', ')'])?;
        number.parse().ok()
    });
    items.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Target;

    const README: (&str, &str) = ("crates/keyed-executor/src/seat/README.md", "1. one\n2. two\n");

    fn found(code: &str) -> Vec<String> {
        let tree = Tree::of(&[README, ("crates/keyed-executor/src/a.rs", code)]);
        check(&tree, &[]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn an_argument_from_a_rule_or_a_contract_is_accepted() {
        let code = "// SAFETY: rule 2 of seat/README.md, begun above.\n#[inline]\nunsafe impl Send for A {}\n\
            fn f() {\n    // SAFETY: rules 1 and 2.\n    let x =\n        unsafe { g() };\n\
            // SAFETY: the contract of Box::from_raw: it came from into_raw.\n    unsafe { h() }\n}\n";
        assert_eq!(found(code), Vec::<String>::new());
    }

    #[test]
    fn unsafe_code_without_a_comment_is_a_finding() {
        let expected = "crates/keyed-executor/src/a.rs:2: unsafe code without a `// SAFETY:` comment above its statement";
        assert_eq!(found("fn f() {\n    unsafe { g() }\n}\n"), [expected]);
    }

    #[test]
    fn a_comment_serves_one_statement_only() {
        let code = "// SAFETY: rule 1.\nunsafe impl Send for A {}\nunsafe impl Sync for A {}\n";
        assert_eq!(found(code).len(), 1);
    }

    #[test]
    fn as_above_is_as_good_as_what_is_above() {
        let pair = "unsafe impl Send for A {}\n// SAFETY: as above.\nunsafe impl Sync for A {}\n";
        assert_eq!(found(&format!("// SAFETY: rule 1.\n{pair}")).len(), 0);
        assert_eq!(found(&format!("// SAFETY: no reason.\n{pair}")).len(), 2);
    }

    #[test]
    fn a_comment_that_cites_nothing_is_a_finding() {
        let found = found("// SAFETY: this is fine.\nunsafe impl Send for A {}\n");
        assert!(found[0].contains("cites neither a numbered rule nor the contract"), "{found:?}");
    }

    #[test]
    fn a_rule_that_does_not_exist_is_a_finding() {
        let found = found("// SAFETY: rule 9.\nunsafe impl Send for A {}\n");
        assert!(found[0].contains("rule 9 is cited, but no README"), "{found:?}");
    }

    #[test]
    fn the_word_in_comments_and_strings_is_no_unsafe_code() {
        assert_eq!(found("// unsafe { }\nlet a = \"unsafe { }\";\nunsafe fn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn other_crates_contain_none_and_forbid_it() {
        let path = "crates/message/src/lib.rs";
        let tree = Tree::of(&[README, (path, "// SAFETY: rule 1.\nunsafe impl Send for A {}\n")]);
        let target = Target { name: "m".into(), kind: "lib".into(), path: path.into() };
        let package = Package { name: "wow-message".into(), targets: vec![target], ..Package::default() };
        let found: Vec<_> = check(&tree, &[package]).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/message/src/lib.rs:2: unsafe code outside crates/keyed-executor/",
                "crates/message/src/lib.rs: does not say `#![forbid(unsafe_code)]`",
            ]
        );
    }
}
