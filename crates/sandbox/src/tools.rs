//! The parts of a home that development tools need: programs to read, and caches.
//!
//! Everything else in the home stays out of sight, because it may hold secrets. This is a list of what is known to hold none.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::room::Rule;

/// Programs and their libraries, relative to the home.
const PROGRAMS: &[&str] = &[
    ".asdf",
    ".bun",
    ".deno",
    ".elan",
    ".fnm",
    ".ghcup",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/claude",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nix-profile",
    ".npm-global",
    ".nvm",
    ".opam",
    ".proto",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
];

/// Caches, relative to the home, and what names another place: a variable, and a path below it.
const CACHES: &[(&str, Option<(&str, &str)>)] = &[
    (".cache/bazel", None),
    (".cache/go-build", Some(("GOCACHE", ""))),
    (".cache/ms-playwright", Some(("PLAYWRIGHT_BROWSERS_PATH", ""))),
    (".cache/pip", Some(("PIP_CACHE_DIR", ""))),
    (".cache/pnpm", None),
    (".cache/pre-commit", Some(("PRE_COMMIT_HOME", ""))),
    (".cache/uv", Some(("UV_CACHE_DIR", ""))),
    (".cache/yarn", None),
    (".cargo", Some(("CARGO_HOME", ""))),
    (".gradle/caches", None),
    (".gradle/wrapper", None),
    (".ivy2/cache", None),
    (".m2/repository", None),
    (".npm", Some(("npm_config_cache", ""))),
    // What is below `src` are projects.
    ("go/bin", Some(("GOPATH", "bin"))),
    ("go/pkg", Some(("GOPATH", "pkg"))),
];

/// What a cache holds beside what is cached: secrets, relative to the cache.
const SECRETS: &[&str] = &["credentials", "credentials.toml"];

/// The places of programs that a variable names.
const PROGRAM_VARIABLES: &[&str] =
    &["RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "JAVA_HOME", "GOROOT"];

/// What a directory of programs has beside it.
const BESIDE_PROGRAMS: &[&str] = &["lib", "libexec"];

/// The rules for the tools of a user with this environment and this home. A cache that the user does not have is one over `empty`.
pub(crate) fn rules(
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
    empty: &Path,
) -> Vec<(PathBuf, Rule)> {
    let mut rules = Vec::new();
    let named = |variable: &str| absolute(environment.get(variable)?);
    // A variable may name the whole home, or what is above it, which must stay out of sight.
    let holds_home = |real: &Path| {
        home.is_some_and(|home| {
            home.starts_with(real) || home.canonicalize().is_ok_and(|home| home.starts_with(real))
        })
    };
    let mut read = |path: PathBuf| match path.canonicalize() {
        Ok(real) if !holds_home(&real) => {
            let is_plain = path.components().all(|part| part != Component::ParentDir);
            rules.push((if is_plain { path } else { real.clone() }, Rule::Read(real)));
        }
        _ => {}
    };
    if let Some(home) = home {
        PROGRAMS.iter().for_each(|inner| read(home.join(inner)));
    }
    PROGRAM_VARIABLES.iter().filter_map(|variable| named(variable)).for_each(&mut read);
    for folder in std::env::split_paths(environment.get("PATH").map_or("", String::as_str)) {
        if !is_hidden(&folder, home) {
            continue;
        }
        // A program there looks for the real one beside it.
        if folder.ends_with("shims")
            && let Some(manager) = folder.parent()
        {
            read(manager.to_owned());
        }
        if folder.ends_with("bin")
            && let Some(beside) = folder.parent().filter(|parent| Some(*parent) != home)
        {
            BESIDE_PROGRAMS.iter().for_each(|name| read(beside.join(name)));
        }
        read(folder);
    }
    for (inner, variable) in CACHES {
        let elsewhere = variable.and_then(|(variable, below)| Some(joined(named(variable)?, below)));
        let Some(cache) = elsewhere.or_else(|| home.map(|home| home.join(inner))) else { continue };
        let Ok(real) = cache.canonicalize() else {
            if home.is_some_and(|home| cache.starts_with(home)) {
                rules.push((cache, Rule::Layered(empty.to_owned())));
            }
            continue;
        };
        if holds_home(&real) {
            continue;
        }
        // A symlink may lead to the cache, which is then seen at its own place as well.
        for place in [&cache, &real] {
            let secrets = SECRETS.iter().map(|name| place.join(name)).filter(|secret| secret.is_file());
            rules.extend(secrets.map(|secret| (secret, Rule::Hidden)));
        }
        rules.push((cache, Rule::Layered(real)));
    }
    rules
}

/// Whether what is there would be out of sight.
fn is_hidden(folder: &Path, home: Option<&Path>) -> bool {
    let places = ["/home", "/root", "/tmp", "/run", "/var/tmp"].map(Path::new);
    places.into_iter().chain(home).any(|place| folder.starts_with(place) && folder != place)
}

/// A path with an empty one below it would end in a slash.
fn joined(path: PathBuf, below: &str) -> PathBuf {
    if below.is_empty() { path } else { path.join(below) }
}

fn absolute(text: &String) -> Option<PathBuf> {
    // A variable may have several places, of which tools write to the first.
    std::env::split_paths(text).next().filter(|path| path.is_absolute() && path.parent().is_some())
}
