//! The page of guarantees and the tests that observe them say the same.
//!
//! Each section of docs/guarantees.md quotes the first sentence of a test file of this folder, each file is quoted, and
//! each test the page names is there. Compared where the page is: a published package comes without it.
#![cfg(not(keyed_loom))]

use std::collections::BTreeMap;
use std::path::Path;

/// The first paragraph of each test file, in one line.
fn promises(folder: &Path) -> BTreeMap<String, (String, String)> {
    let files = std::fs::read_dir(folder).expect("the folder of this test can be read");
    files
        .filter_map(|file| {
            let path = file.expect("the folder of this test can be read").path();
            let name = path.file_name()?.to_str()?.to_owned();
            if path.extension()? != "rs" || name == "guarantees.rs" {
                return None;
            }
            let text = std::fs::read_to_string(&path).expect("a test file can be read");
            let header =
                text.lines().map_while(|line| line.strip_prefix("//! ")).collect::<Vec<_>>().join(" ");
            Some((name, (header, text)))
        })
        .collect()
}

#[test]
fn the_page_and_the_tests_agree() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(page) = std::fs::read_to_string(here.join("../../docs/guarantees.md")) else { return };
    let files = promises(&here.join("tests"));
    let quoted: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    for (name, (header, _)) in &files {
        assert!(
            quoted.contains(&header.as_str()),
            "{name} begins with a promise the page does not make: {header}"
        );
        assert!(page.contains(&format!("`{name}`")), "the page does not name {name}");
    }
    assert_eq!(quoted.len(), files.len(), "the page makes a promise that no file begins with: {quoted:#?}");

    let rows =
        page.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | ").map(|(_, last)| last));
    for row in rows.filter(|row| row.contains("`:") || row.contains(".rs`")) {
        let named: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let mut of = None;
        for name in named {
            if name.ends_with(".rs") {
                of = Some(
                    files.get(name).unwrap_or_else(|| panic!("the page names {name}, which is not there")),
                );
            } else {
                let (_, text) =
                    of.unwrap_or_else(|| panic!("the page names the test {name} without its file"));
                assert!(
                    text.contains(&format!("fn {name}()")),
                    "the page names the test {name}, which is not there"
                );
            }
        }
    }
}
