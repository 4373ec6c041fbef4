//! The rust-version that each crate promises, against what its dependencies need.
//!
//! It owns the comparison of `rust-version` fields along resolved normal and build dependencies. Invariant: no
//! crate promises an older compiler than something it is built with. A dependency that states no version is
//! believed to build; whether our own code uses newer library items is clippy's `incompatible_msrv`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::finding::Finding;
use crate::workspace::{Workspace, list};

/// Compares the versions of every member with those of everything it is built with.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    match workspace.resolved() {
        Ok(metadata) => compare(&metadata),
        Err(error) => vec![Finding::file("Cargo.toml", error)],
    }
}

/// A version as numbers, so that 1.9 is older than 1.85.
type Version = (u64, u64, u64);

fn version(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(|part| part.parse::<u64>().ok());
    Some((parts.next()??, parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn compare(metadata: &Value) -> Vec<Finding> {
    let packages: BTreeMap<&str, &Value> = list(metadata, "packages").map(|p| (text(p, "id"), p)).collect();
    let nodes = metadata.get("resolve").into_iter().flat_map(|resolve| list(resolve, "nodes"));
    let built_with: BTreeMap<&str, Vec<&str>> =
        nodes.map(|node| (text(node, "id"), compiled(node))).collect();
    let mut findings = Vec::new();
    for member in list(metadata, "workspace_members").filter_map(Value::as_str) {
        let Some(package) = packages.get(member) else { continue };
        let name = text(package, "name");
        let Some(promised) = version(text(package, "rust_version")) else {
            findings.push(Finding::file("Cargo.toml", format!("package `{name}` states no rust-version")));
            continue;
        };
        for id in reachable(member, &built_with) {
            let Some(dependency) = packages.get(id) else { continue };
            let needed = text(dependency, "rust_version");
            if version(needed).is_some_and(|needed| needed > promised) {
                let text = format!(
                    "`{name}` promises rust {}, but `{} {}` needs {needed}",
                    text(package, "rust_version"),
                    text(dependency, "name"),
                    text(dependency, "version"),
                );
                findings.push(Finding::file("Cargo.lock", text));
            }
        }
    }
    findings
}

/// The ids that a node depends on other than for its tests.
fn compiled(node: &Value) -> Vec<&str> {
    let deps = list(node, "deps").filter(|dep| {
        let mut kinds = list(dep, "dep_kinds");
        kinds.any(|kind| kind.get("kind").and_then(Value::as_str) != Some("dev") && on_every_build(kind))
    });
    deps.map(|dep| text(dep, "pkg")).collect()
}

/// Whether a dependency stands without the cfgs that only our models set.
fn on_every_build(kind: &Value) -> bool {
    !matches!(kind.get("target").and_then(Value::as_str), Some("cfg(keyed_loom)" | "cfg(keyed_shuttle)"))
}

fn reachable<'a>(from: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(kind: &str, ours: &str) -> Value {
        let text = format!(
            r#"{{"workspace_members": ["a"],
            "packages": [
                {{"id": "a", "name": "ours", "version": "0.1.0", "rust_version": {ours}}},
                {{"id": "b", "name": "middle", "version": "2.0.0", "rust_version": null}},
                {{"id": "c", "name": "new", "version": "3.1.0", "rust_version": "1.90"}}],
            "resolve": {{"nodes": [
                {{"id": "a", "deps": [{{"pkg": "b", "dep_kinds": [{{"kind": {kind}, "target": null}}]}}]}},
                {{"id": "b", "deps": [{{"pkg": "c", "dep_kinds": [{{"kind": null, "target": null}}]}}]}},
                {{"id": "c", "deps": []}}]}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_dependency_of_a_dependency_that_needs_more_is_named() {
        let findings = compare(&metadata("null", "\"1.85\""));
        let expected = "Cargo.lock: `ours` promises rust 1.85, but `new 3.1.0` needs 1.90";
        assert_eq!(findings.iter().map(Finding::to_string).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn tests_may_need_a_newer_compiler() {
        assert!(compare(&metadata("\"dev\"", "\"1.85\"")).is_empty());
    }

    #[test]
    fn a_member_without_a_promise_is_a_finding() {
        let findings = compare(&metadata("null", "null"));
        assert!(findings[0].text.contains("`ours` states no rust-version"));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version("1.9") < version("1.85.1"));
        assert_eq!(version("x"), None);
    }
}
