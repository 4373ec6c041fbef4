//! The workspace as cargo sees it: its packages, their features, targets and dependencies.
//!
//! It owns the reading of `cargo metadata`. It holds facts only; what they must be is said by the checks.

use std::path::PathBuf;

use serde_json::Value;

use crate::shell::Shell;

/// The members of this workspace, in the order of their names.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Without `default`.
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One line of a `[dependencies]`, `[build-dependencies]` or `[dev-dependencies]` table.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    /// The name of the package, also where the manifest renames it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
}

/// Which table of the manifest a dependency stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// A library, program, test, bench or example.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: String,
    /// Relative to the root, with forward slashes.
    pub(crate) path: String,
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Errors
    ///
    /// What cargo said, or what is missing in its answer.
    pub(crate) fn load() -> Result<Self, String> {
        // Asked when it runs, not when it is compiled: checkouts may share one folder of build output.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let text = Shell::cargo(&here, "metadata --format-version 1 --no-deps --locked").output()?;
        Self::parse(&text)
    }

    /// The packages with everything they depend on, as cargo resolves it for all targets.
    ///
    /// # Errors
    ///
    /// What cargo said, or that its answer is not JSON.
    pub(crate) fn resolved(&self) -> Result<Value, String> {
        let text =
            Shell::cargo(&self.root, "metadata --format-version 1 --locked --all-features").output()?;
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let metadata: Value =
            serde_json::from_str(text).map_err(|error| format!("cargo metadata: {error}"))?;
        let root = string(&metadata, "workspace_root")?;
        let target = PathBuf::from(string(&metadata, "target_directory")?);
        let mut packages = list(&metadata, "packages")
            .map(|package| parse_package(package, &root))
            .collect::<Result<Vec<_>, _>>()?;
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { root: PathBuf::from(root), target, packages })
    }

    /// The package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

fn parse_package(package: &Value, root: &str) -> Result<Package, String> {
    let features = package.get("features").and_then(Value::as_object);
    let mut features: Vec<String> = features.map(|map| map.keys().cloned().collect()).unwrap_or_default();
    features.retain(|feature| feature != "default");
    let dependencies = list(package, "dependencies").map(parse_dependency).collect::<Result<_, _>>()?;
    let targets =
        list(package, "targets").map(|target| parse_target(target, root)).collect::<Result<_, _>>()?;
    Ok(Package { name: string(package, "name")?, features, dependencies, targets })
}

fn parse_dependency(dependency: &Value) -> Result<Dependency, String> {
    let kind = match dependency.get("kind").and_then(Value::as_str) {
        None => Kind::Normal,
        Some("build") => Kind::Build,
        Some("dev") => Kind::Dev,
        Some(other) => return Err(format!("cargo metadata: unknown kind of dependency `{other}`")),
    };
    let optional = dependency.get("optional").and_then(Value::as_bool).unwrap_or(false);
    Ok(Dependency { name: string(dependency, "name")?, kind, optional })
}

fn parse_target(target: &Value, root: &str) -> Result<Target, String> {
    let path = string(target, "src_path")?;
    let path = path.strip_prefix(root).unwrap_or(&path).trim_start_matches(['/', '\\']).replace('\\', "/");
    let kind = list(target, "kind").next().and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Target { name: string(target, "name")?, kind, path })
}

fn string(value: &Value, field: &str) -> Result<String, String> {
    let text = value.get(field).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| format!("cargo metadata: no field `{field}`"))
}

/// The elements of a field that holds a list; none if there is no such field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{
        "workspace_root": "/a/b", "target_directory": "/a/b/target",
        "packages": [{
            "name": "one", "rust_version": "1.85", "features": {"default": ["x"], "x": []},
            "dependencies": [
                {"name": "serde", "kind": null, "optional": true},
                {"name": "two", "kind": "dev", "optional": false}],
            "targets": [{"name": "one", "kind": ["lib"], "src_path": "/a/b/crates/one/src/lib.rs"}]
        }]
    }"#;

    #[test]
    fn the_answer_of_cargo_is_read() {
        let workspace = Workspace::parse(ANSWER).unwrap();
        let one = workspace.package("one").unwrap();
        assert_eq!(one.features, ["x"]);
        assert_eq!(one.targets[0].path, "crates/one/src/lib.rs");
        assert_eq!((one.dependencies[0].kind, one.dependencies[0].optional), (Kind::Normal, true));
        assert_eq!(one.dependencies[1].kind, Kind::Dev);
    }

    #[test]
    fn an_answer_without_a_root_is_refused_by_field() {
        assert_eq!(Workspace::parse("{}").unwrap_err(), "cargo metadata: no field `workspace_root`");
        assert!(Workspace::parse("not json").unwrap_err().starts_with("cargo metadata: "));
    }
}
