//! Every Rust file begins with its `//!` header, tests, benches and examples included.

use super::tree::Tree;
use crate::finding::Finding;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let headless = tree.ending(".rs").filter(|file| {
        let first = file.text.lines().next().unwrap_or_default();
        first.strip_prefix("//!").is_none_or(|header| header.trim().is_empty())
    });
    let text = "does not begin with a `//!` header that says what the file owns";
    headless.map(|file| Finding::at(&file.path, 1, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_a_finding() {
        let tree = Tree::of(&[
            ("a.rs", "//! One noun.\n"),
            ("b.rs", "use x;\n//! late\n"),
            ("tests/c.rs", "//!\nfn f() {}\n"),
            ("empty.rs", ""),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(found, ["b.rs", "tests/c.rs", "empty.rs"]);
    }
}
