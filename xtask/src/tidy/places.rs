//! What is true on one machine only stays out of the repository: its paths, its mirrors of package registries.
//!
//! Paths are the folder of this checkout, the one around it, the home of whoever runs the check, and the usual roots
//! of homes. In Cargo.lock every foreign package comes from the public registry by its public name.

use std::path::Path;

use super::tree::Tree;
use crate::finding::Finding;

/// Roots of homes; written in two halves, so that this file can name what no file may contain.
const HOMES: [&str; 3] = [concat!("/", "home/"), concat!("/", "root/"), concat!("/", "Users/")];
/// Folders of the system that any file may name.
const SYSTEM: [&str; 12] =
    ["/", "/bin", "/dev", "/etc", "/lib", "/mnt", "/opt", "/proc", "/src", "/tmp", "/usr", "/var"];
/// Where Cargo.lock says that foreign packages come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The folders that are particular to this machine.
pub(crate) fn of_this_machine(root: &Path) -> Vec<String> {
    let home = std::env::var("HOME").ok();
    let folders = [Some(root), root.parent(), home.as_deref().map(Path::new)];
    let folders = folders.into_iter().flatten().map(|folder| folder.to_string_lossy().into_owned());
    let mut folders: Vec<String> = folders.filter(|folder| is_particular(folder)).collect();
    folders.sort();
    folders.dedup();
    folders
}

fn is_particular(folder: &str) -> bool {
    folder.starts_with('/') && !SYSTEM.contains(&folder.trim_end_matches('/')) && folder.len() > 1
}

pub(crate) fn check(tree: &Tree, folders: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            let folders = folders.iter().map(String::as_str).chain(HOMES);
            if let Some(folder) = folders.into_iter().find(|folder| names(line, folder)) {
                let text = format!("names `{folder}`, a path of one machine");
                findings.push(Finding::at(&file.path, index + 1, text));
            }
        }
    }
    if let Some(lock) = tree.file("Cargo.lock") {
        for (index, line) in lock.text.lines().enumerate() {
            let source = line.strip_prefix("source = ").map(|source| source.trim_matches('"'));
            if let Some(source) = source.filter(|source| *source != REGISTRY) {
                let text = format!("a package comes from `{source}`, not from `{REGISTRY}`");
                findings.push(Finding::at(&lock.path, index + 1, text));
            }
        }
    }
    findings
}

/// Whether the folder is named as an absolute path, not as the middle of a longer one.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + folder.len()..].chars().next();
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && !"_-.~*}/".contains(c));
        let ends = folder.ends_with('/') || after.is_none_or(|c| !c.is_alphanumeric() && !"_-.".contains(c));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let folders = ["/data/clone".to_owned()];
        check(&Tree::of(&[(path, text)]), &folders).into_iter().filter_map(|finding| finding.line).collect()
    }

    #[test]
    fn paths_of_a_machine_are_findings() {
        let text = format!("cd /data/clone/x\nsee \"/data/clone\"\nand {}me/x\n", HOMES[0]);
        assert_eq!(found("a.md", &text), [1, 2, 3]);
    }

    #[test]
    fn parts_of_other_paths_are_no_findings() {
        let text = "https://example.org/data/clone\n$HOME/data/clone\n/data/clones\n../home/x\n#!/usr/bin/env bash\n";
        assert_eq!(found("a.md", text), Vec::<usize>::new());
    }

    #[test]
    fn a_mirror_in_the_lock_file_is_a_finding() {
        let text = format!("source = \"{REGISTRY}\"\nsource = \"sparse+https://mirror.example.org/\"\n");
        assert_eq!(found("Cargo.lock", &text), [2]);
    }

    #[test]
    fn folders_of_the_system_are_not_particular() {
        assert!(!is_particular("/tmp"));
        assert!(!is_particular("/"));
        assert!(is_particular("/data/clone"));
    }
}
