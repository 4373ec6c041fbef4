//! What a compiler does not check: headers, arguments for unsafe code, tables, names, links.
//!
//! It owns the list of checks; each is a file in tidy/ and a pure function from the tree to findings, so that its
//! tests show it failing. Invariant: nothing is repaired here, only named.

mod rust_text;
mod tree;

mod headers;
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
use crate::workspace::Workspace;
use tree::Tree;

/// Runs every check over the work tree.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let tree = match Tree::read(&workspace.root) {
        Ok(tree) => tree,
        Err(error) => return vec![Finding::file(".", error)],
    };
    let mut findings = headers::check(&tree);
    findings.extend(unsafety::check(&tree, &workspace.packages));
    findings.extend(shim::check(&tree));
    findings.extend(transition_table::check(&tree));
    findings.extend(attributes::check(&tree));
    findings.extend(glossary::check(&tree));
    findings.extend(configuration::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(adr::check(&tree));
    findings.extend(places::check(&tree, &places::of_this_machine(&workspace.root)));
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    findings
}
