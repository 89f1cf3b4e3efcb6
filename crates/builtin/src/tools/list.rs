//! `list`: the files of a folder, or those that match a pattern.

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::places::Places;
use super::walk::{self, Depth, Patience};
use super::words::count;
use super::{Reach, ToolKind};

/// The most files that are named.
const MOST: usize = 500;

pub(super) const TOOL: Tool = Tool {
    name: "list",
    about: "Lists files. Without `pattern`: what is in the folder itself, subfolders with a slash at the end. With \
            `pattern`: all files below the folder that match. Files that git ignores are not shown. At most 500 are \
            named; the answer has the number of the others.",
    fields: &[
        Field::optional(
            "path",
            Form::Text,
            "The folder, relative to the workspace; the workspace itself by default.",
        ),
        Field::optional(
            "pattern",
            Form::Text,
            "A glob relative to the folder, like `src/**/*.rs`; one without a slash, like `*.rs`, is for \
                    names at any depth.",
        ),
    ],
    kind: ToolKind::Read,
    reach: Reach::Looks,
    work: Work::Files(list),
};

pub(super) fn list(places: &Places, arguments: &Arguments, patience: &Patience) -> Result<String, String> {
    let folder = places.to_read(arguments.text("path").unwrap_or("."))?;
    if !folder.is_dir() {
        return Err(format!("{} is not a folder; `read` shows a file", places.shown(&folder)));
    }
    let pattern = arguments.text("pattern").map(walk::glob).transpose()?;
    let depth = if pattern.is_some() { Depth::All } else { Depth::One };
    let (mut named, mut left_out) = (Vec::new(), 0_usize);
    let mut in_time = true;
    for entry in walk::below(&folder, places, depth) {
        if patience.is_over() {
            in_time = false;
            break;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let fits = pattern.as_ref().is_none_or(|pattern| {
            !is_folder && entry.path().strip_prefix(&folder).is_ok_and(|path| pattern.is_match(path))
        });
        if !fits {
            continue;
        }
        if named.len() == MOST {
            left_out += 1;
            continue;
        }
        let slash = if is_folder { "/" } else { "" };
        named.push(format!("{}{slash}", places.shown(entry.path())));
    }
    if named.is_empty() {
        named.push(format!("(no files in {} to show)", places.shown(&folder)));
    }
    if left_out > 0 {
        named.push(format!("({} left out; narrow `path` or `pattern`)", count(left_out, "file", "files")));
    }
    if !in_time {
        named.push("(not all folders were read: it took too long; narrow `path`)".to_owned());
    }
    Ok(named.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    fn file(root: &Path, path: &str) {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), "").unwrap();
    }

    fn list_in(root: &Path, input: &Value) -> Result<Vec<String>, String> {
        let (patience, _give_up) = Patience::new();
        let output = list(&Places::new(root, &[]), &TOOL.parse(input).unwrap(), &patience)?;
        Ok(output.lines().map(str::to_owned).collect())
    }

    fn project() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for path in
            [".git/config", "src/a.rs", "src/deep/b.rs", "target/c.rs", "b.rs", ".env", "src/notes.md"]
        {
            file(root.path(), path);
        }
        fs::write(root.path().join(".gitignore"), "target/\n*.md\n").unwrap();
        root
    }

    #[test]
    fn a_folder_is_listed_without_what_git_ignores() {
        let root = project();
        let named = list_in(root.path(), &json!({})).unwrap();
        assert_eq!(named, [".env", ".gitignore", "b.rs", "src/"]);
        assert_eq!(list_in(root.path(), &json!({"path": "src"})).unwrap(), ["src/a.rs", "src/deep/"]);
        assert_eq!(
            list_in(root.path(), &json!({"path": "b.rs"})),
            Err("b.rs is not a folder; `read` shows a file".to_owned())
        );
    }

    #[test]
    fn patterns_are_for_names_or_for_paths() {
        let root = project();
        let of = |pattern: &str| list_in(root.path(), &json!({"pattern": pattern})).unwrap();
        assert_eq!(of("*.rs"), ["b.rs", "src/a.rs", "src/deep/b.rs"]);
        assert_eq!(of("src/*.rs"), ["src/a.rs"]);
        assert_eq!(of("./src/**/*.rs"), ["src/a.rs", "src/deep/b.rs"]);
        assert_eq!(of("*.none"), ["(no files in . to show)"]);
        let inner = list_in(root.path(), &json!({"path": "src", "pattern": "deep/*"})).unwrap();
        assert_eq!(inner, ["src/deep/b.rs"]);
        assert!(list_in(root.path(), &json!({"pattern": "a[" })).unwrap_err().contains("`a[` is not a glob"));
    }

    #[test]
    fn ignore_files_above_a_workspace_without_a_repository_are_not_used() {
        let above = tempfile::tempdir().unwrap();
        fs::write(above.path().join(".gitignore"), "*\n").unwrap();
        file(above.path(), "root/a.rs");
        file(above.path(), "root/b.log");
        fs::write(above.path().join("root/.gitignore"), "*.log\n").unwrap();
        let named = list_in(&above.path().join("root"), &json!({})).unwrap();
        assert_eq!(named, [".gitignore", "a.rs"]);
    }

    #[test]
    fn files_above_the_limit_are_counted_and_not_named() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..503 {
            file(root.path(), &format!("f{number:04}"));
        }
        let named = list_in(root.path(), &json!({})).unwrap();
        assert_eq!(named.len(), 501);
        assert_eq!(named[500], "(3 files left out; narrow `path` or `pattern`)");
    }

    #[test]
    fn an_abandoned_walk_stops() {
        let root = project();
        let (patience, give_up) = Patience::new();
        drop(give_up);
        let output =
            list(&Places::new(root.path(), &[]), &TOOL.parse(&json!({})).unwrap(), &patience).unwrap();
        assert!(output.ends_with("(not all folders were read: it took too long; narrow `path`)"), "{output}");
    }
}
