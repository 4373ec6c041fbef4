//! The layer block of docs/architecture.md, and whether the manifests keep to it.
//!
//! It owns the grammar of that block:
//! `L2 dispatch -> runtime, L0` places a crate and names what it may depend on (crates, whole layers, or `*`
//! for everything below it); `dev * -> testkit` opens one crate to the tests of all others;
//! `absent L0 -> tokio` keeps a package out of crates or layers. Invariant: a dependency points to a lower
//! layer and is allowed by a line, and every crate of the workspace has exactly one line. It reads manifests only;
//! what the code does with its dependencies is the compiler's business.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::markdown;
use crate::workspace::{Kind, Workspace};

const DOCUMENT: &str = "docs/architecture.md";
/// Packages carry this prefix in front of the name of their folder, which is the name the block uses.
const PREFIX: &str = "wow-";

/// Compares the block with the manifests.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    match std::fs::read_to_string(workspace.root.join(DOCUMENT)) {
        Ok(text) => compare(&text, workspace),
        Err(error) => vec![Finding::file(DOCUMENT, format!("cannot be read: {error}"))],
    }
}

fn compare(document: &str, workspace: &Workspace) -> Vec<Finding> {
    let Some(lines) = markdown::fenced(document, "layers") else {
        return vec![Finding::file(DOCUMENT, "has no code block marked `layers`")];
    };
    let mut findings = Vec::new();
    let mut block = Block::default();
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        if let Err(text) = block.read(line.number, line.text.trim()) {
            findings.push(Finding::at(DOCUMENT, line.number, text));
        }
    }
    findings.extend(block.contradictions());
    findings.extend(block.members(workspace));
    findings.extend(block.dependencies(workspace));
    findings.extend(block.strangers(workspace));
    findings
}

/// The block, read.
#[derive(Debug, Default)]
struct Block {
    crates: BTreeMap<String, Place>,
    open_to_tests: Vec<(usize, String)>,
    absent: Vec<Absent>,
}

/// A line `L<layer> <crate> -> <allowed>`.
#[derive(Debug)]
struct Place {
    line: usize,
    layer: u32,
    allowed: Vec<String>,
}

/// A line `absent <who> -> <packages>`.
#[derive(Debug)]
struct Absent {
    line: usize,
    who: Vec<String>,
    packages: Vec<String>,
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn layer(word: &str) -> Option<u32> {
    word.strip_prefix('L')?.parse().ok()
}

fn short(package: &str) -> &str {
    package.strip_prefix(PREFIX).unwrap_or(package)
}

impl Block {
    fn read(&mut self, line: usize, text: &str) -> Result<(), String> {
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left.trim(), names(right)),
            None => (text, Vec::new()),
        };
        let unreadable =
            || format!("`{text}` is neither `L<n> crate -> ...`, `dev * -> ...` nor `absent ... -> ...`");
        let (word, rest) = left.split_once(' ').ok_or_else(unreadable)?;
        let rest = rest.trim();
        if let Some(layer) = layer(word) {
            let place = Place { line, layer, allowed: right };
            return match self.crates.insert(rest.to_owned(), place) {
                None => Ok(()),
                Some(first) => Err(format!("`{rest}` has a line already: line {}", first.line)),
            };
        }
        match (word, right.is_empty()) {
            ("dev", false) if rest == "*" => {
                self.open_to_tests.extend(right.into_iter().map(|name| (line, name)));
                Ok(())
            }
            ("absent", false) => {
                self.absent.push(Absent { line, who: names(rest), packages: right });
                Ok(())
            }
            _ => Err(unreadable()),
        }
    }

    /// What is wrong with the block whatever the manifests say.
    fn contradictions(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, place) in &self.crates {
            for allowed in place.allowed.iter().filter(|allowed| *allowed != "*") {
                let target = layer(allowed).or_else(|| self.crates.get(allowed).map(|target| target.layer));
                let text = match target {
                    None => format!("`{name}` may depend on `{allowed}`, which is no crate of the block"),
                    Some(target) if target >= place.layer => {
                        format!(
                            "`{name}` is in L{}: it cannot depend on `{allowed}` of L{target}",
                            place.layer
                        )
                    }
                    Some(_) => continue,
                };
                findings.push(Finding::at(DOCUMENT, place.line, text));
            }
        }
        let tests = self.open_to_tests.iter().map(|(line, name)| (*line, name));
        let absent = self.absent.iter().flat_map(|rule| rule.who.iter().map(|name| (rule.line, name)));
        for (line, name) in tests.chain(absent) {
            if layer(name).is_none() && !self.crates.contains_key(name) {
                findings.push(Finding::at(DOCUMENT, line, format!("`{name}` is no crate of the block")));
            }
        }
        findings
    }

    /// Crates without a line, and lines without a crate.
    fn members(&self, workspace: &Workspace) -> Vec<Finding> {
        let missing =
            workspace.packages.iter().filter(|package| !self.crates.contains_key(short(&package.name)));
        let missing = missing.map(|package| {
            Finding::file(DOCUMENT, format!("package `{}` has no line in the layer block", package.name))
        });
        let stands = |name: &str| workspace.packages.iter().any(|package| short(&package.name) == name);
        let gone = self.crates.iter().filter(|(name, _)| !stands(name)).map(|(name, place)| {
            Finding::at(DOCUMENT, place.line, format!("`{name}` is no package of the workspace"))
        });
        missing.chain(gone).collect()
    }

    fn dependencies(&self, workspace: &Workspace) -> Vec<Finding> {
        let mut findings = Vec::new();
        for package in &workspace.packages {
            let name = short(&package.name);
            let Some(place) = self.crates.get(name) else { continue };
            for dependency in &package.dependencies {
                let target = short(&dependency.name);
                let Some(lower) = self.crates.get(target) else { continue };
                if workspace.package(&dependency.name).is_none() || name == target {
                    continue;
                }
                if let Some(text) = self.objection(place, dependency.kind, target, lower.layer) {
                    let text = format!(
                        "`{name}` (L{}) depends on `{target}` (L{}): {text}",
                        place.layer, lower.layer
                    );
                    findings.push(Finding::at(DOCUMENT, place.line, text));
                }
            }
        }
        findings
    }

    fn objection(&self, place: &Place, kind: Kind, target: &str, lower: u32) -> Option<String> {
        let downward = lower < place.layer;
        if kind == Kind::Dev {
            let open = self.open_to_tests.iter().any(|(_, name)| name == target);
            let text = "a dev-dependency points downward or to a crate that `dev *` opens to tests";
            return (!downward && !open).then(|| text.to_owned());
        }
        if !downward {
            return Some("a dependency points to a lower layer".to_owned());
        }
        let allowed =
            place.allowed.iter().any(|name| name == "*" || name == target || layer(name) == Some(lower));
        (!allowed).then(|| "its line does not allow it".to_owned())
    }

    /// Packages of others that a crate must not know.
    fn strangers(&self, workspace: &Workspace) -> Vec<Finding> {
        let mut findings = Vec::new();
        for rule in &self.absent {
            for package in &workspace.packages {
                let name = short(&package.name);
                let Some(place) = self.crates.get(name) else { continue };
                if !rule.who.iter().any(|who| who == name || layer(who) == Some(place.layer)) {
                    continue;
                }
                let fixed = package.dependencies.iter().filter(|d| d.kind != Kind::Dev && !d.optional);
                for stranger in fixed.filter(|d| rule.packages.contains(&d.name)) {
                    let text =
                        format!("`{name}` depends on `{}`, which this line keeps out of it", stranger.name);
                    findings.push(Finding::at(DOCUMENT, rule.line, text));
                }
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, Package};

    fn package(name: &str, dependencies: &[(&str, Kind, bool)]) -> Package {
        let dependencies = dependencies.iter().map(|&(name, kind, optional)| {
            let name = name.to_owned();
            Dependency { name, kind, optional }
        });
        Package { name: name.to_owned(), dependencies: dependencies.collect(), ..Package::default() }
    }

    fn findings(block: &str, packages: Vec<Package>) -> Vec<String> {
        let workspace = Workspace { root: "".into(), target: "".into(), packages };
        let document = format!("# x\n\n```layers\n{block}\n```\n");
        compare(&document, &workspace).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_tree_that_keeps_to_the_block_has_no_findings() {
        let block =
            "L0 core\nL1 bus -> core\nL2 kit -> L0, L1\nL3 app -> *\ndev * -> kit\nabsent L0 -> tokio";
        let packages = vec![
            package("core", &[("tokio", Kind::Normal, true), ("wow-kit", Kind::Dev, false)]),
            package("wow-bus", &[("core", Kind::Normal, false)]),
            package("wow-kit", &[("core", Kind::Normal, false), ("wow-bus", Kind::Normal, false)]),
            package("app", &[("wow-kit", Kind::Normal, false), ("wow-bus", Kind::Build, false)]),
        ];
        assert_eq!(findings(block, packages), Vec::<String>::new());
    }

    #[test]
    fn a_dependency_upward_or_sideways_is_named_with_its_line() {
        let packages = vec![package("core", &[("wow-bus", Kind::Normal, false)]), package("wow-bus", &[])];
        let expected =
            "docs/architecture.md:4: `core` (L0) depends on `bus` (L1): a dependency points to a lower layer";
        assert_eq!(findings("L0 core\nL1 bus", packages), [expected]);
    }

    #[test]
    fn a_dependency_that_no_line_allows_is_a_finding() {
        let packages = vec![package("core", &[]), package("wow-bus", &[("core", Kind::Normal, false)])];
        let expected =
            "docs/architecture.md:5: `bus` (L1) depends on `core` (L0): its line does not allow it";
        assert_eq!(findings("L0 core\nL1 bus", packages), [expected]);
    }

    #[test]
    fn a_dev_dependency_upward_needs_an_opened_crate() {
        let packages = || vec![package("core", &[("wow-bus", Kind::Dev, false)]), package("wow-bus", &[])];
        let found = findings("L0 core\nL1 bus", packages());
        assert!(found[0].contains("a dev-dependency points downward"), "{found:?}");
        assert_eq!(findings("L0 core\nL1 bus\ndev * -> bus", packages()), Vec::<String>::new());
    }

    #[test]
    fn a_stranger_is_refused_unless_it_is_optional() {
        let block = "L0 core\nabsent core -> serde";
        let found = findings(block, vec![package("core", &[("serde", Kind::Normal, false)])]);
        assert_eq!(
            found,
            ["docs/architecture.md:5: `core` depends on `serde`, which this line keeps out of it"]
        );
        assert!(findings(block, vec![package("core", &[("serde", Kind::Normal, true)])]).is_empty());
    }

    #[test]
    fn crates_without_line_and_lines_without_crate_are_findings() {
        let found = findings("L0 core\nL0 gone", vec![package("core", &[]), package("wow-new", &[])]);
        assert_eq!(
            found,
            [
                "docs/architecture.md: package `wow-new` has no line in the layer block",
                "docs/architecture.md:5: `gone` is no package of the workspace",
            ]
        );
    }

    #[test]
    fn a_block_that_contradicts_itself_is_a_finding() {
        let found = findings("L0 core -> L1, ghost\nL0 core\nL1\n", vec![package("core", &[])]);
        assert!(found[0].contains("`core` has a line already: line 4"), "{found:?}");
        assert!(found[1].contains("`L1` is neither"), "{found:?}");
        let found = findings("L0 core -> L1, ghost", vec![package("core", &[])]);
        assert!(found[0].contains("`core` is in L0: it cannot depend on `L1` of L1"), "{found:?}");
        assert!(found[1].contains("`ghost`, which is no crate of the block"), "{found:?}");
    }

    #[test]
    fn a_document_without_the_block_is_a_finding() {
        let workspace = Workspace { root: "".into(), target: "".into(), packages: Vec::new() };
        assert!(compare("# nothing", &workspace)[0].text.contains("no code block marked `layers`"));
    }
}
