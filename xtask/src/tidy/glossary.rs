//! One name for each concept: what docs/glossary.md says is not used, is not used.
//!
//! The glossary's table has a column `synonyms not used`; the words in backticks there are searched as whole words,
//! in upper and lower case as written, in all Rust and Markdown files but the glossary. Words without backticks are
//! for the reader only.

use super::rust_text::whole_word;
use super::tree::Tree;
use crate::finding::Finding;
use crate::markdown;

const FILE: &str = "docs/glossary.md";
const COLUMNS: [&str; 3] = ["name", "meaning", "synonyms not used"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(FILE) else { return vec![Finding::file(FILE, "is missing")] };
    let mut findings = Vec::new();
    let mut entries: Vec<(&str, &str)> = Vec::new();
    let tables = markdown::tables(&file.text);
    let tables: Vec<_> = tables.iter().filter(|table| table.header == COLUMNS).collect();
    for (line, cells) in tables.iter().flat_map(|table| &table.rows) {
        match cells.as_slice() {
            [name, meaning, synonyms] if !name.is_empty() && !meaning.is_empty() => {
                entries.extend(
                    markdown::code_spans(synonyms).into_iter().map(|synonym| (synonym, name.as_str())),
                );
            }
            _ => findings.push(Finding::at(
                FILE,
                *line,
                "a row has a name, a meaning and the synonyms not used",
            )),
        }
    }
    if entries.is_empty() {
        findings
            .push(Finding::file(FILE, format!("has no table `| {} |` with a synonym", COLUMNS.join(" | "))));
    }
    let others = tree.ending(".rs").chain(tree.ending(".md")).filter(|other| other.path != FILE);
    for other in others {
        for (index, line) in other.text.lines().enumerate() {
            for (synonym, name) in
                entries.iter().filter(|(synonym, _)| whole_word(line, synonym).next().is_some())
            {
                let text = format!("`{synonym}` is called {name} here, see {FILE}");
                findings.push(Finding::at(&other.path, index + 1, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: (&str, &str) = (
        FILE,
        "| name | meaning | synonyms not used |\n|---|---|---|\n| **mailbox** | FIFO of a key | `Pigeonhole`, lane |\n",
    );

    #[test]
    fn a_synonym_in_backticks_is_a_finding_elsewhere() {
        let tree =
            Tree::of(&[GLOSSARY, ("a.rs", "//! ok\nstruct Pigeonhole;\nstruct MyPigeonhole;\n// lane\n")]);
        let found: Vec<_> = check(&tree).iter().map(Finding::to_string).collect();
        assert_eq!(found, ["a.rs:2: `Pigeonhole` is called **mailbox** here, see docs/glossary.md"]);
    }

    #[test]
    fn a_missing_glossary_or_table_is_a_finding() {
        assert_eq!(check(&Tree::default())[0].text, "is missing");
        let found = check(&Tree::of(&[(FILE, "# Glossary\n")]));
        assert!(found[0].text.starts_with("has no table `| name | meaning"), "{found:?}");
    }

    #[test]
    fn a_row_without_meaning_is_a_finding() {
        let table = format!("{}| turn | | `Slice` |\n", GLOSSARY.1);
        let found = check(&Tree::of(&[(FILE, table.as_str())]));
        assert_eq!(found[0].line, Some(4));
    }
}
