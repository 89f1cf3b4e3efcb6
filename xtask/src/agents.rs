//! `cargo xtask agents`: what npm has newer than the pinned agent CLIs, and the conformance suite on that.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{Places, checks, command, print_line, setup};

/// How long npm may take to answer one question.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the newer ones are installed, below the target folder.
const FOLDER: &str = "agents-newest";

/// What is done with what npm has newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newer {
    /// It is reported.
    Report,
    /// It is installed as well, and the conformance suite is run on it.
    Run,
}

/// A pinned package, and what npm has of it.
struct Package {
    /// The part of the manifest that pins it.
    list: &'static str,
    name: String,
    pinned: String,
    newest: String,
}

impl Package {
    fn is_outdated(&self) -> bool {
        compare(&self.newest, &self.pinned) == Ordering::Greater
    }
}

/// Asks npm about each pinned package, and does with the answers what is wanted.
pub(crate) fn run(places: &Places, newer: Newer) -> Result<()> {
    setup::require_npm(places)?;
    let path = places.root.join("agents/package.json");
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut manifest: Value = serde_json::from_slice(&text).context("agents/package.json is not JSON")?;
    let packages = ask_npm(places, &manifest)?;
    for package in &packages {
        let Package { name, pinned, newest, .. } = package;
        let shown = if package.is_outdated() { format!("npm has {newest}") } else { "newest".to_owned() };
        print_line(&format!("{name:<28} {pinned:<12} {shown}"));
    }
    let outdated: Vec<&Package> = packages.iter().filter(|package| package.is_outdated()).collect();
    if outdated.is_empty() {
        print_line("every pinned agent CLI is the newest");
        return Ok(());
    }
    if newer == Newer::Report {
        print_line("`cargo xtask agents --run` runs the conformance suite on the newer ones");
        return Ok(());
    }
    for package in &outdated {
        manifest[package.list][&package.name] = package.newest.as_str().into();
    }
    let folder = places.target.join(FOLDER);
    setup::install_newest(&folder, &manifest)?;
    checks::run_conformance(places, &folder)?;
    print_line(&format!(
        "the suite passed; to pin these versions, copy package.json and package-lock.json from {} to agents/, and \
         raise the tested versions in crates/agent",
        folder.display()
    ));
    Ok(())
}

/// Every package that is pinned under its own name. One under an alias is older on purpose.
fn ask_npm(places: &Places, manifest: &Value) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    for list in ["dependencies", "optionalDependencies"] {
        for (name, pinned) in manifest[list].as_object().into_iter().flatten() {
            let pinned = pinned.as_str().with_context(|| format!("{name} has no version"))?;
            if !pinned.starts_with("npm:") {
                let (name, pinned) = (name.clone(), pinned.to_owned());
                packages.push(Package { list, newest: newest(&places.root, &name)?, name, pinned });
            }
        }
    }
    Ok(packages)
}

/// The newest version that npm has of a package.
fn newest(directory: &Path, name: &str) -> Result<String> {
    let mut npm = command::program("npm", directory);
    npm.args(["view", name, "version", "--json", "--fetch-retries=0", "--fetch-timeout=20000"]);
    let printed = command::output_within(&mut npm, PATIENCE)
        .with_context(|| format!("npm does not report the newest {name}; the network may be closed"))?;
    let version: Value = serde_json::from_slice(&printed).unwrap_or_default();
    match version.as_str() {
        Some(version) => Ok(version.to_owned()),
        None => bail!("npm printed no version of {name}: {}", String::from_utf8_lossy(&printed).trim()),
    }
}

/// By their numbers; what follows them does not count.
fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        release.split('.').map(|number| number.parse().unwrap_or_default()).collect()
    };
    numbers(one).cmp(&numbers(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let cases = [
            ("2.1.325", "2.1.97", Ordering::Greater),
            ("0.166.0", "0.166.0", Ordering::Equal),
            ("0.9.0", "0.61.0", Ordering::Less),
            ("1.0.0-beta.2", "1.0.0", Ordering::Equal),
        ];
        for (one, other, wanted) in cases {
            assert_eq!(compare(one, other), wanted, "{one} {other}");
        }
    }
}
