//! Protected paths are as in the base, whatever was done to them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use towline_workspace::{Candidate, Protect, Workspace};

use crate::support::{Project, State, commit_all, git, strings, write};

fn candidate(workspace: &Workspace) -> Candidate {
    let before = State::of(workspace.path());
    let made =
        workspace.candidate(1, &Protect::new(&strings(&["tests/**", "towline.toml"])).unwrap()).unwrap();
    assert_eq!(State::of(workspace.path()), before);
    made
}

/// The candidate's protected paths are those of the base; everything else that was changed is `changed`.
fn assert_as_in_base(project: &Project, made: &Candidate, restored: &[&str], changed: &str) {
    assert_eq!(made.restored, strings(restored));
    let base = project.head();
    let changes = ["diff-tree", "-r", "--name-status", "--no-renames", base.as_str(), made.commit.as_str()];
    let changes = String::from_utf8(project.git_of_goal(changes)).unwrap();
    assert_eq!(changes.trim_end(), changed);
}

#[test]
fn rewritten_files_are_restored_committed_or_not() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "tests/a.rs", "weakened\n");
    let head = commit_all(path, "weaker");
    write(path, "tests/b.rs", "weakened\n");
    write(path, "src/lib.rs", "fixed\n");
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/a.rs", "tests/b.rs"], "M\tsrc/lib.rs");
    assert_eq!(project.parent_of(&made.commit), head);
}

#[test]
fn deleted_files_come_back() {
    let project = Project::new();
    let workspace = project.workspace();
    fs::remove_file(workspace.path().join("tests/a.rs")).unwrap();
    git(workspace.path(), ["rm", "-q", "tests/b.rs"]);
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/a.rs", "tests/b.rs"], "");
    assert_ne!(made.commit, project.head(), "a restored candidate is never HEAD itself");
}

#[test]
fn added_files_are_removed() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "tests/new.rs", "untracked\n");
    write(workspace.path(), "tests/deep/new.rs", "staged\n");
    git(workspace.path(), ["add", "tests/deep"]);
    write(workspace.path(), "towline.toml", "checks = []\n");
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/deep/new.rs", "tests/new.rs", "towline.toml"], "");
}

#[test]
fn files_renamed_away_come_back_and_their_copies_stay() {
    let project = Project::new();
    let workspace = project.workspace();
    git(workspace.path(), ["mv", "tests/a.rs", "src/a.rs"]);
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/a.rs"], "A\tsrc/a.rs");
}

#[test]
fn modes_and_symlinks_are_restored() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    fs::set_permissions(path.join("tests/a.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(path.join("tests/b.rs")).unwrap();
    symlink("/dev/null", path.join("tests/b.rs")).unwrap();
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/a.rs", "tests/b.rs"], "");
}

#[test]
fn a_file_or_symlink_in_place_of_a_protected_directory_gives_way() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    fs::remove_dir_all(path.join("tests")).unwrap();
    write(path, "elsewhere/a.rs", "weak\n");
    symlink("elsewhere", path.join("tests")).unwrap();
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests", "tests/a.rs", "tests/b.rs"], "A\telsewhere/a.rs");
}

#[test]
fn a_directory_in_place_of_a_protected_file_gives_way() {
    let project = Project::new();
    write(&project.root, "towline.toml", "[protect]\n");
    commit_all(&project.root, "settings");
    let workspace = project.workspace();
    fs::remove_file(workspace.path().join("towline.toml")).unwrap();
    write(workspace.path(), "towline.toml/inside", "x\n");
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["towline.toml", "towline.toml/inside"], "");
}

#[test]
fn files_hidden_by_new_ignore_rules_come_back() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), ".gitignore", "tests/\n");
    git(workspace.path(), ["rm", "-q", "-r", "--cached", "tests"]);
    write(workspace.path(), "tests/a.rs", "weakened\n");
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/a.rs", "tests/b.rs"], "M\t.gitignore");
}

#[test]
fn a_repository_made_in_a_protected_directory_changes_nothing() {
    let project = Project::new();
    let workspace = project.workspace();
    let tests = workspace.path().join("tests");
    git(&tests, ["init", "-q"]);
    write(&tests, "a.rs", "weakened\n");
    commit_all(&tests, "inside");
    git(workspace.path(), ["rm", "-q", "-r", "--cached", "tests"]);
    git(workspace.path(), ["add", "tests"]);
    git(workspace.path(), ["commit", "-q", "-m", "tests are a commit of another repository now"]);
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &["tests/a.rs"], "");
}

#[test]
fn untouched_paths_are_not_called_restored() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "fixed\n");
    let made = candidate(&workspace);
    assert_as_in_base(&project, &made, &[], "M\tsrc/lib.rs");
}

#[test]
fn what_was_done_to_protected_paths_is_no_uncommitted_work() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "tests/a.rs", "weakened\n");
    write(path, "src/lib.rs", "fixed\n");
    let head = commit_all(path, "all at once");
    // Put back by the agent itself, changed, added, and moved away.
    write(path, "tests/a.rs", "assert a\n");
    write(path, "towline.toml", "checks = []\n");
    fs::rename(path.join("tests/b.rs"), path.join("src/b.rs")).unwrap();
    let made = candidate(&workspace);
    assert_eq!((made.head, made.uncommitted), (head, strings(&["src/b.rs"])));
    assert_eq!(made.restored, strings(&["tests/b.rs", "towline.toml"]));
}

#[test]
fn a_file_in_the_way_of_protected_paths_is_no_uncommitted_work_either() {
    let project = Project::new();
    let workspace = project.workspace();
    fs::remove_dir_all(workspace.path().join("tests")).unwrap();
    write(workspace.path(), "tests", "a file\n");
    assert_eq!(candidate(&workspace).uncommitted, strings(&[]));
}
