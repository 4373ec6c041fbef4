//! Every loom model says what it is worth: the interleaving it looks for, the bound and size of its search, and the
//! break made by hand that it caught.
//!
//! The words are searched in the `//!` header of the file; whether what they say is true is for the reader.

use super::tree::Tree;
use crate::finding::Finding;

const FOLDER: &str = "crates/keyed-executor/src/tests/";
/// What a header contains, and what it tells the reader there.
const PARTS: [(&str, &str); 4] = [
    ("Looked for:", "which interleaving"),
    ("Broken by hand:", "which break it caught"),
    ("preemption", "the bound of the search"),
    ("executions", "how many executions, and in what time"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs").filter(|file| file.path.starts_with(FOLDER)) {
        if !file.path[FOLDER.len()..].starts_with("loom_") {
            continue;
        }
        let header: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let header = header.join("\n");
        for (part, meaning) in PARTS.iter().filter(|(part, _)| !header.contains(part)) {
            let text = format!("the model's header lacks `{part}`: {meaning}");
            findings.push(Finding::at(&file.path, 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_does_not_say_what_it_caught_is_a_finding() {
        let path = format!("{FOLDER}loom_a.rs");
        let header = "//! Looked for: x. Broken by hand: y.\n//! At 2 preemptions 812 executions in 1 s.\n";
        assert!(check(&Tree::of(&[(path.as_str(), header)])).is_empty());
        let silent = header.replace("Broken by hand: y.", "");
        let found = check(&Tree::of(&[(path.as_str(), silent.as_str())]));
        assert_eq!(found[0].text, "the model's header lacks `Broken by hand:`: which break it caught");
    }

    #[test]
    fn other_tests_are_no_models() {
        let path = format!("{FOLDER}mailbox_table.rs");
        assert!(check(&Tree::of(&[(path.as_str(), "//! A table.\n")])).is_empty());
    }
}
