//! Diffs from the base to a candidate or to the working tree.

use towline_workspace::{Change, ChangedPath, DiffStat, FileStat, Protect, Workspace};

use crate::support::{Project, State, commit_all, git, strings, write};

fn changed_workspace(project: &Project) -> Workspace {
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "pub fn one() -> u8 {\n    2\n}\n");
    commit_all(workspace.path(), "fix");
    git(workspace.path(), ["mv", "tests/a.rs", "tests/renamed a.rs"]);
    write(workspace.path(), "new.rs", "one\ntwo\n");
    std::fs::write(workspace.path().join("image"), [0_u8, 1, 2]).unwrap();
    write(workspace.path(), "debug.log", "ignored\n");
    workspace
}

const PATCH: &str = "\
diff --git a/image b/image
new file mode 100644
index 0000000..aed2973
Binary files /dev/null and b/image differ
Binary sizes - 3
diff --git a/new.rs b/new.rs
new file mode 100644
index 0000000..814f4a4
--- /dev/null
+++ b/new.rs
@@ -0,0 +1,2 @@
+one
+two
diff --git a/src/lib.rs b/src/lib.rs
index 3a7d1ee..9f2b1a5 100644
--- a/src/lib.rs
+++ b/src/lib.rs
@@ -1,3 +1,3 @@
 pub fn one() -> u8 {
-    1
+    2
 }
diff --git a/tests/a.rs b/tests/renamed a.rs
similarity index 100%
rename from tests/a.rs
rename to tests/renamed a.rs
";

/// The patch without the lines of abbreviated hashes.
fn without_hashes(patch: &str) -> String {
    patch.lines().filter(|line| !line.starts_with("index ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_working_tree_is_shown_with_untracked_files_and_left_alone() {
    let project = Project::new();
    // Settings for people's eyes must not change what programs read.
    for (key, value) in [("diff.noprefix", "true"), ("diff.external", "/bin/false"), ("color.ui", "always")] {
        git(&project.root, ["config", key, value]);
    }
    let workspace = changed_workspace(&project);
    let before = State::of(workspace.path());
    assert_eq!(without_hashes(&workspace.diff().unwrap()), without_hashes(PATCH));
    assert_eq!(State::of(workspace.path()), before);
}

#[test]
fn a_candidate_is_shown_as_it_was_made() {
    let project = Project::new();
    let workspace = changed_workspace(&project);
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    write(workspace.path(), "after.rs", "later\n");
    assert_eq!(
        without_hashes(&project.own().diff(workspace.base(), &made.commit).unwrap()),
        without_hashes(PATCH)
    );
}

#[test]
fn numbers_count_lines_by_file() {
    let project = Project::new();
    let workspace = changed_workspace(&project);
    let file = |path: &str, added, removed| FileStat { path: path.to_owned(), added, removed };
    let stat = DiffStat {
        files: vec![
            file("image", None, None),
            file("new.rs", Some(2), Some(0)),
            file("src/lib.rs", Some(1), Some(1)),
            file("tests/renamed a.rs", Some(0), Some(0)),
        ],
    };
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(workspace.diff_stat().unwrap(), stat);
    assert_eq!(project.own().diff_stat(workspace.base(), &made.commit).unwrap(), stat);
    assert_eq!(
        stat.to_string(),
        "image (binary)\nnew.rs +2 -0\nsrc/lib.rs +1 -1\ntests/renamed a.rs +0 -0\n4 files, +3 -1"
    );
}

#[test]
fn no_work_is_an_empty_diff() {
    let project = Project::new();
    let workspace = project.workspace();
    assert_eq!(workspace.diff().unwrap(), "");
    assert_eq!(workspace.diff_stat().unwrap(), DiffStat::default());
}

#[test]
fn changes_under_paths_are_distinguished_and_renames_show_on_both_sides() {
    let project = Project::new();
    let base = project.head();
    let workspace = changed_workspace(&project);
    std::fs::remove_file(workspace.path().join("tests/b.rs")).unwrap();
    git(workspace.path(), ["mv", "src/lib.rs", "tests/lib.rs"]);
    let to = workspace.candidate(1, &Protect::nothing()).unwrap().commit;
    let changes = |patterns: &[&str]| {
        let paths = Protect::new(&strings(patterns)).unwrap();
        project.own().changes_under(&paths, &base, &to).unwrap()
    };
    let changed = |path: &str, change| ChangedPath { path: path.to_owned(), change };
    let under_tests = [
        changed("tests/a.rs", Change::Deleted),
        changed("tests/b.rs", Change::Deleted),
        changed("tests/lib.rs", Change::Added),
        changed("tests/renamed a.rs", Change::Added),
    ];
    assert_eq!(changes(&["tests/**"]), under_tests);
    assert_eq!(changes(&["src", "*.md"]), [changed("src/lib.rs", Change::Deleted)]);
    assert_eq!(changes(&["docs/**", ".gitignore"]), []);

    write(workspace.path(), "tests/a.rs", "assert a\n");
    write(workspace.path(), ".gitignore", "*.log\n");
    let to = workspace.candidate(2, &Protect::nothing()).unwrap().commit;
    let paths = Protect::new(&strings(&["tests/a.rs", ".gitignore"])).unwrap();
    let changes = project.own().changes_under(&paths, &base, &to).unwrap();
    assert_eq!(changes, [changed(".gitignore", Change::Changed)]);
}
