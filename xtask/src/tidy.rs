//! What a compiler does not check: headers, arguments for unsafe code, tables, names, links.
//!
//! It owns the list of checks; each is a file in tidy/ and a pure function from the tree to findings, so that its
//! tests show it failing. Invariant: nothing is repaired here, only named.

mod rust_text;
mod tree;

mod headers;
mod models;
mod shim;
mod transition_table;
mod unsafety;

mod adr;
mod attributes;
mod configuration;
mod glossary;
mod links;
mod places;

use crate::finding::Finding;
use crate::workspace::{Package, Workspace};
use tree::Tree;

/// Runs every check over the work tree.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    match Tree::read(&workspace.root) {
        Ok(tree) => all(&tree, &workspace.packages, &places::of_this_machine(&workspace.root)),
        Err(error) => vec![Finding::file(".", error)],
    }
}

fn all(tree: &Tree, packages: &[Package], folders: &[String]) -> Vec<Finding> {
    let mut findings = headers::check(tree);
    findings.extend(unsafety::check(tree, packages));
    findings.extend(shim::check(tree));
    findings.extend(transition_table::check(tree));
    findings.extend(models::check(tree));
    findings.extend(attributes::check(tree));
    findings.extend(glossary::check(tree));
    findings.extend(configuration::check(tree));
    findings.extend(links::check(tree));
    findings.extend(adr::check(tree));
    findings.extend(places::check(tree, folders));
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_run() {
        let code = "fn f() { unsafe { g() } }\n#[ignore]\nuse std::sync::Arc;\n// at /data/clone\n";
        let model = "crates/keyed-executor/src/tests/loom_a.rs";
        let executor = "crates/keyed-executor/src/a.rs";
        let tree = Tree::of(&[(executor, code), (model, "//! A.\n"), ("README.md", "[a](gone.md)\n")]);
        let findings = all(&tree, &[], &["/data/clone".to_owned()]);
        let found: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
        for part in [
            "begin with",
            "SAFETY",
            "model's header",
            "std::sync",
            "ignored",
            "path of one machine",
            "no such file",
            "no record",
        ] {
            assert!(found.iter().any(|text| text.contains(part)), "nothing about {part}: {found:?}");
        }
        for file in ["mailbox/state.rs", "docs/glossary.md", "docs/configuration.md"] {
            let missing =
                findings.iter().any(|finding| finding.file.ends_with(file) && finding.text == "is missing");
            assert!(missing, "{file} is not asked for");
        }
    }
}
