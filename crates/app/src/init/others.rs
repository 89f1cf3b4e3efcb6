//! Projects of cargo, go, Maven and Gradle, and those that are tested by make or just.

use toml::Table;

use super::plan::Planned;
use super::tree::{Tree, above};

/// What a folder with a `Cargo.toml` is checked by. A member of a workspace is tested with that.
pub(super) fn cargo(tree: &Tree, folder: &str) -> Option<Planned> {
    let manifest = cargo_manifest(tree, folder)?;
    let is_workspace = manifest.contains_key("workspace");
    if !is_workspace && is_member(tree, folder) {
        return None;
    }
    let all = if is_workspace { " --workspace" } else { "" };
    let mut planned = Planned::of(folder, "cargo");
    planned.checks.push(("cargo test".to_owned(), format!("cargo test{all}")));
    let clippy = format!("cargo clippy{all} --all-targets -- -D warnings");
    planned.suggestions.push(("clippy".to_owned(), clippy));
    planned.suggestions.push(("format".to_owned(), "cargo fmt --all --check".to_owned()));
    Some(planned)
}

fn cargo_manifest(tree: &Tree, folder: &str) -> Option<Table> {
    tree.text(folder, "Cargo.toml").map(|text| text.parse().unwrap_or_default())
}

/// Whether the folder belongs to a workspace above it that does not exclude it.
fn is_member(tree: &Tree, folder: &str) -> bool {
    let workspace = |above| Some((above, cargo_manifest(tree, above)?.remove("workspace")?));
    let Some((above, workspace)) = above(folder).find_map(workspace) else { return false };
    let from_there = folder.strip_prefix(above).unwrap_or(folder).trim_start_matches('/');
    let excluded = workspace.get("exclude").and_then(|list| list.as_array());
    !excluded.is_some_and(|list| list.iter().any(|path| path.as_str() == Some(from_there)))
}

/// What a Go module is checked by.
pub(super) fn go(tree: &Tree, folder: &str) -> Option<Planned> {
    tree.text(folder, "go.mod")?;
    let mut planned = Planned::of(folder, "go");
    planned.checks.push(("go test".to_owned(), "go test ./...".to_owned()));
    planned.suggestions.push(("go vet".to_owned(), "go vet ./...".to_owned()));
    Some(planned)
}

/// What a project of Maven is checked by. A module is tested with the project above it.
pub(super) fn maven(tree: &Tree, folder: &str) -> Option<Planned> {
    java(tree, folder, &["pom.xml"], "mvn", "mvnw", "-B test")
}

/// What a build of Gradle is checked by. A subproject is tested with the build above it.
pub(super) fn gradle(tree: &Tree, folder: &str) -> Option<Planned> {
    let manifests = ["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"];
    java(tree, folder, &manifests, "gradle", "gradlew", "test")
}

fn java(
    tree: &Tree,
    folder: &str,
    manifests: &[&str],
    program: &'static str,
    wrapper: &str,
    task: &str,
) -> Option<Planned> {
    let is_project = |folder: &str| manifests.iter().any(|name| tree.has(folder, name));
    if !is_project(folder) || above(folder).any(is_project) {
        return None;
    }
    // The wrapper brings the program, but not Java.
    let (needed, run) = match tree.has(folder, wrapper) {
        true => ("java", format!("./{wrapper} {task}")),
        false => (program, format!("{program} {task}")),
    };
    let mut planned = Planned::of(folder, needed);
    planned.checks.push((format!("{program} test"), run));
    Some(planned)
}

/// What a folder with a makefile or a justfile is checked by, if that has a target for it.
pub(super) fn runner(tree: &Tree, folder: &str) -> Option<Planned> {
    let text = |names: [&str; 3]| names.into_iter().find_map(|name| tree.text(folder, name));
    let wanted = |targets: &[&str]| ["test", "check"].into_iter().find(|wanted| targets.contains(wanted));
    // In the order in which make itself looks for them.
    let make = text(["GNUmakefile", "makefile", "Makefile"]).and_then(|text| {
        let targets = rules(text).flat_map(str::split_whitespace);
        wanted(&targets.collect::<Vec<_>>())
    });
    let just = text(["justfile", "Justfile", ".justfile"]).and_then(|text| {
        // The name of a recipe comes before its parameters.
        let names = rules(text).filter_map(|recipe| recipe.split_whitespace().next());
        wanted(&names.map(|name| name.trim_start_matches('@')).collect::<Vec<_>>())
    });
    let (program, target) = make.map(|target| ("make", target)).or(just.map(|recipe| ("just", recipe)))?;
    let mut planned = Planned::of(folder, program);
    planned.checks.push((format!("{program} {target}"), format!("{program} {target}")));
    Some(planned)
}

/// The lines that begin a rule or a recipe, up to their colon.
fn rules(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.starts_with(['\t', '#', ' ']));
    let rules = lines.filter_map(|line| line.split_once(':'));
    rules.filter(|(_, rest)| !rest.starts_with(['=', ':'])).map(|(rule, _)| rule)
}
