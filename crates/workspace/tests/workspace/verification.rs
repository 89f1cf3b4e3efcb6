//! Verification checkouts hold the candidate and nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use towline_workspace::{Candidate, Commit, Protect, Verification, WorkspaceError, verification};

use crate::support::{Project, State, files_below, git, names_below, strings, write};

fn place(project: &Project) -> PathBuf {
    project.beside("verify/one")
}

fn check_out(project: &Project, commit: &Commit) -> Verification {
    verification(&project.own(), &place(project), commit, &[]).unwrap()
}

fn candidate_with_work(project: &Project) -> Candidate {
    let workspace = project.workspace();
    write(workspace.path(), "new.rs", "new\n");
    write(workspace.path(), "debug.log", "ignored\n");
    write(workspace.path(), "target/cache", "ignored\n");
    write(workspace.path(), "tests/a.rs", "weakened\n");
    workspace.candidate(1, &Protect::new(&strings(&["tests"])).unwrap()).unwrap()
}

#[test]
fn it_is_the_candidate_without_ignored_files_and_with_protected_ones_as_in_the_base() {
    let project = Project::new();
    let users = State::of(&project.root);
    let made = candidate_with_work(&project);
    let agents = State::of(&project.plan().path);

    let checkout = check_out(&project, &made.commit);

    assert_eq!(
        names_below(checkout.path()),
        [".gitignore", "new.rs", "src/lib.rs", "tests/a.rs", "tests/b.rs"]
    );
    assert_eq!(fs::read_to_string(checkout.path().join("tests/a.rs")).unwrap(), "assert a\n");
    assert_eq!(git(checkout.path(), ["status", "--porcelain", "--ignored"]), "");
    assert_eq!(git(checkout.path(), ["rev-parse", "HEAD"]), made.commit.as_str());
    assert_eq!((checkout.path(), checkout.commit()), (place(&project).as_path(), &made.commit));
    assert_eq!(checkout.warnings(), strings(&[]));
    assert_eq!(State::of(&project.root), users);
    assert_eq!(State::of(&project.plan().path), agents);
}

#[test]
fn its_remotes_have_no_password_and_the_clone_can_still_fetch() {
    let project = Project::new();
    let address = "https://someone:pass-word@example.org/a.git";
    git(&project.root, ["remote", "add", "origin", address]);
    let workspace = project.workspace();
    let checkout = check_out(&project, &project.head());
    let origin = |directory: &Path| git(directory, ["remote", "get-url", "origin"]);
    assert_eq!(origin(checkout.path()), "https://example.org/a.git");
    assert_eq!(origin(workspace.path()), address);
}

#[test]
fn the_second_run_is_clean_whatever_the_first_left_behind() {
    let project = Project::new();
    let made = candidate_with_work(&project);
    let first = check_out(&project, &made.commit);
    let clean = files_below(first.path());
    write(first.path(), "debug.log", "ignored\n");
    write(first.path(), "target/cache/deep", "ignored\n");
    write(first.path(), "untracked", "x");
    write(first.path(), "new.rs", "changed by a check\n");
    fs::remove_file(first.path().join("src/lib.rs")).unwrap();
    fs::set_permissions(first.path().join("target/cache"), fs::Permissions::from_mode(0o555)).unwrap();
    git(first.path(), ["checkout", "-q", "-b", "left-by-a-check"]);
    fs::remove_dir_all(first.path().join(".git")).unwrap();

    let second = check_out(&project, &made.commit);

    assert_eq!(files_below(second.path()), clean);
    assert_eq!(git(second.path(), ["rev-parse", "HEAD"]), made.commit.as_str());
}

#[test]
fn removing_it_leaves_nothing() {
    let project = Project::new();
    let checkout = check_out(&project, &project.head());
    write(checkout.path(), "target/out", "x");
    checkout.remove().unwrap();
    assert!(!place(&project).exists());
    assert_eq!(git(&project.root, ["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(git(&project.root, ["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn one_that_was_cut_off_while_it_was_made_or_removed_is_made_anew() {
    let project = Project::new();
    let head = project.head();
    let own = project.plan().own;
    type Cut = fn(&Path);
    let cuts: [Cut; 4] = [
        |path| fs::remove_dir_all(path).unwrap(),
        |path| fs::remove_file(path.join("src/lib.rs")).unwrap(),
        |path| fs::remove_dir_all(path.join(".git")).unwrap(),
        |path| {
            fs::remove_dir_all(path).unwrap();
            fs::create_dir(path).unwrap();
        },
    ];
    for cut in cuts {
        cut(check_out(&project, &head).path());
        fs::write(own.join("verification-index"), "half").unwrap();
        fs::write(own.join("verification-index.lock"), "").unwrap();
        let again = check_out(&project, &head);
        assert_eq!(names_below(again.path()), [".gitignore", "src/lib.rs", "tests/a.rs", "tests/b.rs"]);
        assert_eq!(git(again.path(), ["status", "--porcelain", "--ignored"]), "");
    }
}

#[test]
fn a_place_that_is_something_else_is_refused_and_left_alone() {
    let project = Project::new();
    let workspace = project.workspace();
    let linked_tree = project.beside("users-own");
    git(&project.root, ["worktree", "add", "-q", "--detach", linked_tree.to_str().unwrap()]);
    write(&project.beside("precious"), "file", "mine");
    let symlink_path = project.beside("link");
    symlink(project.beside("precious"), &symlink_path).unwrap();
    let head = project.head();
    for taken in [&project.root, workspace.path(), &linked_tree, &project.beside("precious"), &symlink_path] {
        let before = files_below(taken);
        match verification(&project.own(), taken, &head, &[]) {
            Err(WorkspaceError::PathTaken { path, .. }) => assert_eq!(path, *taken),
            other => panic!("{other:?}"),
        }
        assert_eq!(files_below(taken), before);
    }
}

#[test]
fn a_candidate_that_is_gone_is_named_before_anything_is_removed() {
    let project = Project::new();
    let checkout = check_out(&project, &project.head());
    let gone = Commit::new("1".repeat(40));
    match verification(&project.own(), checkout.path(), &gone, &[]) {
        Err(WorkspaceError::CommitGone { commit, .. }) => assert_eq!(commit, gone.as_str()),
        other => panic!("{other:?}"),
    }
    assert!(checkout.path().join("src/lib.rs").exists());
}
