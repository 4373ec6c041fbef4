//! The files of the repository, read once: the text of those that people write, the names of all.
//!
//! It owns what counts as part of the repository: everything below the root but git's own folder and build output.
//! It judges nothing.

use std::collections::BTreeSet;
use std::path::Path;

/// Endings of the files whose text is checked.
const TEXT: [&str; 9] = [".rs", ".md", ".toml", ".yml", ".yaml", ".lock", ".sh", ".svg", ".gitignore"];
/// Files without such an ending whose text is checked.
const TEXT_FILES: [&str; 1] = [".ci/run"];
/// Cargo puts this file into every folder of build output.
const BUILD_OUTPUT: &str = "CACHEDIR.TAG";

/// The files, with paths relative to the root and forward slashes, in order.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    /// Every file and folder, also those without text.
    pub(crate) paths: BTreeSet<String>,
}

/// A file with its text.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Tree {
    /// Reads the tree below a folder.
    ///
    /// # Errors
    ///
    /// The folder or file that could not be read, and why.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("`{folder}` cannot be read: {error}");
        for entry in std::fs::read_dir(root.join(folder)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                if name == ".git" || name == "target" || entry.path().join(BUILD_OUTPUT).exists() {
                    continue;
                }
                self.paths.insert(path.clone());
                self.read_folder(root, &path)?;
            } else if kind.is_file() {
                let text =
                    TEXT.iter().any(|ending| path.ends_with(ending)) || TEXT_FILES.contains(&path.as_str());
                self.paths.insert(path.clone());
                if text {
                    let text = std::fs::read_to_string(entry.path());
                    let text = text.map_err(|error| format!("`{path}` cannot be read: {error}"))?;
                    self.files.push(File { path, text });
                }
            }
        }
        Ok(())
    }

    /// The files with that ending.
    pub(crate) fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// The file at that path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A tree made of these files, for the tests of the checks.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let mut folder = String::new();
            for part in path.split('/') {
                folder = if folder.is_empty() { part.to_owned() } else { format!("{folder}/{part}") };
                tree.paths.insert(folder.clone());
            }
            tree.files.push(File { path: (*path).to_owned(), text: (*text).to_owned() });
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_read_without_its_build_output() {
        let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let root = Path::new(&package).join("..");
        let tree = Tree::read(&root).unwrap();
        assert!(tree.file("xtask/src/tidy/tree.rs").is_some());
        assert!(tree.paths.contains("xtask/src"));
        assert!(!tree.paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let error = Tree::read(Path::new("no/such/folder")).unwrap_err();
        assert!(error.contains("cannot be read"), "{error}");
    }
}
