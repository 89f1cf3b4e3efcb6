//! What must not be in a committed file: too many lines, a path of someone's machine, a thing left for later.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 600;

/// Folders that exist on one machine only. Written in two parts, so that this file passes its own test.
const MACHINE_FOLDERS: [&str; 3] = [concat!("/", "work"), concat!("/", "root"), concat!("/", "home")];

/// Homes that belong to nobody, in recordings and examples.
const PLACEHOLDERS: [&str; 3] =
    [concat!("/", "home/user"), concat!("/", "home/you"), concat!("/", "home/config.toml")];

/// Words that mark unfinished work.
const LEFT_FOR_LATER: [&str; 3] = [concat!("todo", "!"), concat!("FIX", "ME"), concat!("unimplemented", "!")];

/// The workspace's root; asked for now and not when compiled, since checkouts may share a target folder.
fn root() -> PathBuf {
    let xtask =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets the folder of the test"));
    xtask.parent().expect("xtask is in the workspace").to_path_buf()
}

/// All committed text files that exist, with their content.
#[expect(clippy::disallowed_methods, reason = "git knows what is committed, and this test asks it")]
fn committed_texts() -> Vec<(String, String)> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .expect("git starts");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("names are UTF-8");
    let texts: Vec<_> = names
        .split_terminator('\0')
        .filter_map(|name| Some((name.to_owned(), fs::read_to_string(root().join(name)).ok()?)))
        .collect();
    assert!(texts.iter().any(|(name, _)| name == "Cargo.toml"), "the walk finds the workspace's files");
    texts
}

/// `file:line: why` for each line of `texts` that `why` has something against.
fn complaints(texts: &[(String, String)], why: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in texts {
        let lines = text.lines().enumerate();
        found.extend(lines.filter_map(|(index, line)| Some(format!("{name}:{}: {}", index + 1, why(line)?))));
    }
    found
}

/// A folder counts where an absolute path begins with it, and not inside a longer path, word or address.
fn machine_folder(line: &str) -> Option<String> {
    MACHINE_FOLDERS.iter().find_map(|folder| {
        line.match_indices(folder).find_map(|(start, _)| {
            let (before, rest) = line.split_at(start);
            let after = rest[folder.len()..].chars().next();
            let inside = before.ends_with(|last: char| last.is_alphanumeric() || "._-/*}".contains(last));
            let longer = after.is_some_and(|next| next.is_alphanumeric() || "_-.".contains(next));
            let placeholder = PLACEHOLDERS.iter().any(|known| rest.starts_with(known));
            // Every system has these two; what is below them is of one machine.
            let bare = *folder != MACHINE_FOLDERS[0] && before.ends_with('"') && after == Some('"');
            (!inside && !longer && !placeholder && !bare).then(|| format!("a path of one machine: {folder}"))
        })
    })
}

fn left_for_later(line: &str) -> Option<String> {
    LEFT_FOR_LATER.iter().find(|word| line.contains(*word)).map(|word| format!("left for later: {word}"))
}

#[test]
fn no_source_file_is_too_long() {
    let texts = committed_texts();
    let sources =
        texts.iter().filter(|(name, _)| Path::new(name).extension().is_some_and(|kind| kind == "rs"));
    let long: Vec<_> = sources
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .collect();
    assert_eq!(long, []);
}

/// The type that a line defines. What is indented belongs to a function, a trait or a module of its own.
fn defined_type(line: &str) -> Option<&str> {
    let visible = line.strip_prefix("pub").map(|rest| rest.split_once(' ').map_or("", |(_, rest)| rest));
    let (kind, rest) = visible.unwrap_or(line).split_once(' ')?;
    let is_type = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|_| is_type)
}

/// Each type of a crate with the files that define one of its name. Wire types have the names of their protocol, a platform
/// has a type of its own for each system, and tests may use any name.
fn types(texts: &[(String, String)]) -> BTreeMap<(String, String), Vec<String>> {
    let mut types: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (file, text) in texts {
        let Some((package, path)) = file.split_once("/src/").filter(|_| file.ends_with(".rs")) else {
            continue;
        };
        if ["wire", "platform", "tests"].iter().any(|part| path.split(['/', '.']).any(|name| name == *part)) {
            continue;
        }
        let product = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        for name in product.lines().filter_map(defined_type) {
            types.entry((package.to_owned(), name.to_owned())).or_default().push(path.to_owned());
        }
    }
    types
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    let types = types(&committed_texts());
    assert!(types.contains_key(&("crates/core".to_owned(), "GoalState".to_owned())), "the walk finds types");
    let twice: Vec<_> = types.into_iter().filter(|(_, files)| files.len() > 1).collect();
    assert_eq!(twice, []);
}

#[test]
fn the_first_pages_stay_short() {
    for (page, most) in [("README.md", 120), ("docs/architecture.md", 150)] {
        let text = fs::read_to_string(root().join(page)).expect("the page is there");
        assert!(text.lines().count() <= most, "{page} has more than {most} lines");
    }
}

#[test]
fn no_file_names_a_folder_of_one_machine() {
    assert_eq!(complaints(&committed_texts(), machine_folder), Vec::<String>::new());
}

#[test]
fn no_file_leaves_things_for_later() {
    assert_eq!(complaints(&committed_texts(), left_for_later), Vec::<String>::new());
}

#[test]
fn machine_folders_are_distinguished_from_other_paths() {
    let [first, second, third] = MACHINE_FOLDERS;
    for bad in [
        format!("cd {first}"),
        format!("\"{first}/main\""),
        format!("={second}/.npm"),
        format!("{third}/jo/x"),
    ] {
        assert!(machine_folder(&bad).is_some(), "{bad}");
    }
    let user = PLACEHOLDERS[0];
    for good in [
        format!("{first}space/a"),
        format!("target{first}/x"),
        format!("http://x{third}/"),
        format!("{user}/x"),
        format!("[\"{second}\", \"{third}\"]"),
    ] {
        assert_eq!(machine_folder(&good), None, "{good}");
    }
}

#[test]
fn the_pinned_packages_have_hashes_and_no_addresses() {
    for lock in ["agents/package-lock.json", "agents/jest/package-lock.json", "web/package-lock.json"] {
        assert_hashes_and_no_addresses(&root().join(lock));
    }
}

fn assert_hashes_and_no_addresses(lock: &Path) {
    let lock = fs::read_to_string(lock).expect("the lock file is there");
    let lock: serde_json::Value = serde_json::from_str(&lock).expect("it is JSON");
    let packages = lock["packages"].as_object().expect("it lists packages");
    let installed: Vec<_> = packages.iter().filter(|(path, _)| !path.is_empty()).collect();
    assert!(!installed.is_empty());
    for (path, package) in installed {
        let hash = package["integrity"].as_str().unwrap_or_default();
        assert!(hash.starts_with("sha512-"), "{path} has no hash");
        assert!(package.get("resolved").is_none(), "{path} names the registry it came from");
    }
}
