//! Decisions are records of one form: numbered without gaps, with status, context, decision and consequences.

use super::tree::Tree;
use crate::finding::Finding;
use crate::markdown;

const FOLDER: &str = "docs/adr/";
const HEADINGS: [&str; 4] = ["Status", "Context", "Decision", "Consequences"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut expected = 1;
    for file in
        tree.ending(".md").filter(|file| file.path.starts_with(FOLDER) && !file.path.ends_with("README.md"))
    {
        let name = &file.path[FOLDER.len()..];
        if !name.starts_with(&format!("{expected:04}-")) {
            findings.push(Finding::file(&file.path, format!("the next record is number {expected:04}")));
        }
        expected += 1;
        let headings = markdown::headings(&file.text);
        let number = name.split('-').next().unwrap_or_default();
        if !headings.first().is_some_and(|(_, level, title)| *level == 1 && title.starts_with(number)) {
            findings.push(Finding::at(
                &file.path,
                1,
                format!("the title begins with the number: `# {number} ...`"),
            ));
        }
        let found: Vec<&str> =
            headings.iter().filter(|(_, level, _)| *level == 2).map(|(_, _, text)| *text).collect();
        let mut wanted = found.iter().filter(|text| HEADINGS.contains(text));
        for heading in HEADINGS {
            if wanted.next() != Some(&heading) {
                let text = format!(
                    "needs the headings {} in this order, `## {heading}` is not where it belongs",
                    HEADINGS.join(", ")
                );
                findings.push(Finding::file(&file.path, text));
                break;
            }
        }
    }
    if expected == 1 {
        findings.push(Finding::file(FOLDER, "holds no record"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "# 0001 Title\n## Status\na\n## Context\n### More\n## Decision\n## Extra\n## Consequences\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_complete_record_is_fine() {
        assert_eq!(found(&[("docs/adr/0001-a.md", GOOD)]), Vec::<String>::new());
    }

    #[test]
    fn a_missing_heading_number_or_title_is_a_finding() {
        let missing = GOOD.replace("## Decision", "## Choice");
        assert!(
            found(&[("docs/adr/0001-a.md", &missing)])[0].contains("`## Decision` is not where it belongs")
        );
        let gap = GOOD.replace("0001", "0003");
        assert_eq!(
            found(&[("docs/adr/0001-a.md", GOOD), ("docs/adr/0003-b.md", &gap)]),
            ["the next record is number 0002"]
        );
        let title = GOOD.replace("# 0001 Title", "# Title");
        assert_eq!(
            found(&[("docs/adr/0001-a.md", &title)]),
            ["the title begins with the number: `# 0001 ...`"]
        );
        assert_eq!(found(&[]), ["holds no record"]);
    }
}
