//! Looks at a project on disk: the only part of `init` that reads files.

use std::io::Read;
use std::path::Path;

use ignore::WalkBuilder;

use super::python::ENVIRONMENTS;
use super::tree::{DEEPEST, MANIFESTS, Tree, join};

/// A manifest beyond this size is not read.
const LONGEST: u64 = 1 << 20;

/// What is in the project at `root`.
pub(super) fn look(root: &Path) -> Tree {
    let mut tree = Tree::default();
    // Two levels further than a folder that counts by itself: its tests are in a folder below it.
    let mut walk = WalkBuilder::new(root);
    walk.max_depth(Some(DEEPEST + 2)).hidden(false).require_git(false).filter_entry(|entry| {
        let name = entry.file_name();
        name != ".git" && name != "node_modules"
    });
    for entry in walk.build().filter_map(Result::ok) {
        let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
        // A name that is not text can be in no configuration either.
        let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        if is_file {
            let is_manifest = entry.file_name().to_str().is_some_and(|name| MANIFESTS.contains(&name));
            let text = if is_manifest { read(entry.path()) } else { String::new() };
            tree.add(path, text);
        }
    }
    add_ignored(&mut tree, root);
    tree
}

/// Files that a checkout may need although git ignores them.
fn add_ignored(tree: &mut Tree, root: &Path) {
    // From a linked worktree the way to the user's checkout would lead to another one.
    let environments = if root.join(".git").is_dir() { &ENVIRONMENTS[..] } else { &[] };
    let pytest = environments.iter().map(|environment| format!("{environment}/bin/pytest"));
    let names: Vec<String> = std::iter::once(".env".to_owned()).chain(pytest).collect();
    for folder in tree.folders() {
        for name in names.iter().filter(|name| root.join(&folder).join(name).is_file()) {
            if !tree.has(&folder, name) {
                tree.add_ignored(join(&folder, name));
            }
        }
    }
}

/// The text of a file; empty if it cannot be read.
fn read(path: &Path) -> String {
    let mut text = String::new();
    let read =
        towline_files::open_following(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}
