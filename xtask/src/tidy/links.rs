//! Links inside the repository lead somewhere: to a file or folder that is there, to a heading that is there.
//!
//! A path in backticks counts as a link where it begins with a folder of the root: documents name the files that prove
//! what they say. Links to other sites are not followed.

use super::tree::Tree;
use crate::finding::Finding;
use crate::markdown;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.ending(".md") {
        for (line, target) in markdown::links(&file.text).into_iter().filter(|(_, target)| is_ours(target)) {
            if let Some(text) = broken(tree, &file.path, &target) {
                findings.push(Finding::at(&file.path, line, format!("link `{target}`: {text}")));
            }
        }
        for line in markdown::lines(&file.text).iter().filter(|line| line.fence.is_none()) {
            let named = markdown::code_spans(line.text).into_iter().filter(|path| is_path(tree, path));
            for path in named.filter(|path| !tree.paths.contains(path.trim_end_matches('/'))) {
                findings.push(Finding::at(
                    &file.path,
                    line.number,
                    format!("`{path}`: there is no such file"),
                ));
            }
        }
    }
    findings
}

/// Whether a code span is a path from the root, and not a pattern or a command.
fn is_path(tree: &Tree, span: &str) -> bool {
    let plain = span.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let folder = span.split_once('/').map(|(folder, _)| folder);
    plain && folder.is_some_and(|folder| !folder.is_empty() && tree.paths.contains(folder))
}

/// Neither a link with a scheme nor a path of Rust, as the documentation of a crate uses it.
fn is_ours(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:") && !target.contains("::")
}

fn broken(tree: &Tree, from: &str, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { Some(from.to_owned()) } else { resolve(from, path) };
    let Some(path) = path else { return Some("leads out of the repository".to_owned()) };
    if !path.is_empty() && !tree.paths.contains(&path) {
        return Some("there is no such file".to_owned());
    }
    let (Some(anchor), Some(file)) = (anchor, tree.file(&path).filter(|_| path.ends_with(".md"))) else {
        return None;
    };
    let mut headings = markdown::headings(&file.text).into_iter();
    let found = headings.any(|(_, _, heading)| markdown::anchor(heading) == anchor);
    (!found).then(|| format!("`{path}` has no heading `#{anchor}`"))
}

/// The path that a link means, or `None` if it climbs above the root.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = match link.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').collect(),
    };
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree =
            Tree::of(&[("docs/a.md", text), ("docs/adr/b.md", "# Some `title`, here\n"), ("x.rs", "")]);
        check(&tree).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[a](adr/b.md) [b](adr/b.md#some-title-here) [c](../x.rs) [d](adr) [e](/x.rs) [f](..)\n\
            [g](https://example.org/none) [h](crate::none) [i](mailto:a@example.org)\n# Own\n[j](#own)\n";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn a_path_in_backticks_that_is_gone_is_a_finding() {
        assert_eq!(
            found("`docs/adr/b.md`, `docs/adr/`, `docs/*.md`, `other/x`, `a/b`"),
            Vec::<String>::new()
        );
        assert_eq!(found("see `docs/gone.md`"), ["`docs/gone.md`: there is no such file"]);
    }

    #[test]
    fn links_that_lead_nowhere_are_findings() {
        assert_eq!(found("[a](gone.md)"), ["link `gone.md`: there is no such file"]);
        assert_eq!(found("[a](../../up.md)"), ["link `../../up.md`: leads out of the repository"]);
        assert_eq!(
            found("[a](adr/b.md#none)"),
            ["link `adr/b.md#none`: `docs/adr/b.md` has no heading `#none`"]
        );
        assert_eq!(found("[r]: gone/\n"), ["link `gone/`: there is no such file"]);
    }
}
