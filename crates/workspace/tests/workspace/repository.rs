//! Finding a repository, naming a base, seeing and taking uncommitted changes.

use std::fs;
use std::os::unix::fs::symlink;

use towline_workspace::{Candidate, Commit, Consent, Repository, WorkspaceError};

use crate::support::{Project, State, commit_all, expected, git, strings, write};

#[test]
fn a_repository_is_found_from_a_subdirectory() {
    let project = Project::new();
    let found = Repository::discover(&project.root.join("src")).unwrap();
    assert_eq!(found.root(), project.root);
}

#[test]
fn a_repository_is_found_where_its_path_has_a_line_end() {
    let project = Project::new();
    let root = project.beside("two\nlines");
    fs::rename(&project.root, &root).unwrap();
    assert_eq!(Repository::discover(&root.join("src")).unwrap().root(), root);
}

#[test]
fn a_root_that_was_found_before_leads_to_the_same_repository_wherever_its_history_is() {
    let project = Project::new();
    let linked = project.beside("linked");
    git(&project.root, ["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    let apart = project.beside("apart");
    let history = format!("--separate-git-dir={}", project.beside("history").display());
    git(&project.root, ["clone", "-q", &history, ".", apart.to_str().unwrap()]);
    let by_symlink = project.beside("by-symlink");
    git(&project.root, ["clone", "-q", ".", by_symlink.to_str().unwrap()]);
    fs::rename(by_symlink.join(".git"), project.beside("history-by-symlink")).unwrap();
    symlink(project.beside("history-by-symlink"), by_symlink.join(".git")).unwrap();
    for root in [&project.root, &linked, &apart, &by_symlink] {
        let (at, found) = (Repository::at(root).unwrap(), Repository::discover(root).unwrap());
        assert_eq!(format!("{at:?}"), format!("{found:?}"));
    }
    let damaged = project.beside("damaged");
    git(&project.root, ["clone", "-q", ".", damaged.to_str().unwrap()]);
    fs::remove_dir_all(damaged.join(".git/refs")).unwrap();
    let error = Repository::at(&damaged).unwrap_err();
    assert!(matches!(&error, WorkspaceError::NotARepository { .. }), "{error:?}");
    git(&project.root, ["config", "core.bare", "true"]);
    let error = Repository::at(&project.root).unwrap_err();
    assert!(matches!(&error, WorkspaceError::NoWorkingTree { .. }), "{error:?}");
    fs::remove_file(project.root.join(".git/HEAD")).unwrap();
    let error = Repository::at(&project.root).unwrap_err();
    assert!(matches!(&error, WorkspaceError::NotARepository { .. }), "{error:?}");
}

#[test]
fn a_repository_that_is_gone_is_not_mistaken_for_the_one_around_it() {
    let project = Project::new();
    let inner = project.root.join("inner");
    git(&project.root, ["clone", "-q", ".", "inner"]);
    assert_eq!(Repository::at(&inner).unwrap().root(), inner);
    fs::remove_dir_all(inner.join(".git/refs")).unwrap();
    let error = Repository::at(&inner).unwrap_err();
    assert!(matches!(&error, WorkspaceError::NotARepository { path } if *path == inner), "{error:?}");
    fs::remove_dir_all(inner.join(".git")).unwrap();
    for _ in 0..2 {
        let error = Repository::at(&inner).unwrap_err();
        assert!(matches!(&error, WorkspaceError::RepositoryGone { path } if *path == inner), "{error:?}");
        let _ = fs::remove_dir_all(&inner);
    }
}

#[test]
fn a_directory_outside_any_repository_is_refused_with_the_fix() {
    let scratch = tempfile::tempdir().unwrap();
    let error = Repository::discover(scratch.path()).unwrap_err();
    assert!(matches!(&error, WorkspaceError::NotARepository { path } if path == scratch.path()), "{error:?}");
    assert!(error.to_string().contains("git init"), "{error}");
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let missing = scratch.path().join("missing");
    let error = Repository::discover(&missing).unwrap_err();
    assert!(matches!(&error, WorkspaceError::Io { path, .. } if *path == missing), "{error:?}");
}

#[test]
fn a_bare_repository_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    git(scratch.path(), ["init", "-q", "--bare"]);
    let error = Repository::discover(scratch.path()).unwrap_err();
    assert!(matches!(error, WorkspaceError::NoWorkingTree { .. }), "{error:?}");
}

#[test]
fn branches_tags_hashes_and_expressions_resolve_to_full_commits() {
    let project = Project::new();
    let first = project.head();
    git(&project.root, ["tag", "-a", "-m", "one", "v1"]);
    write(&project.root, "src/lib.rs", "two\n");
    let second = commit_all(&project.root, "two");
    let repository = project.repository();
    let resolve = |base: &str| repository.resolve(base).unwrap();
    assert_eq!(
        [resolve("HEAD"), resolve("main"), resolve("v1"), resolve("HEAD~1"), resolve(&first.as_str()[..10])],
        [second.clone(), second, first.clone(), first.clone(), first]
    );
}

#[test]
fn an_unknown_base_is_named_with_similar_ones() {
    let project = Project::new();
    git(&project.root, ["branch", "release/2024"]);
    for (base, expected) in [
        ("mian", strings(&["main"])),
        ("2024", strings(&["release/2024"])),
        ("-x", strings(&[])),
        ("", strings(&[])),
    ] {
        match project.repository().resolve(base) {
            Err(WorkspaceError::BaseNotFound { base: named, similar, root }) => {
                assert_eq!((named.as_str(), similar, root), (base, expected, project.root.clone()));
            }
            other => panic!("{base:?} gave {other:?}"),
        }
    }
}

#[test]
fn a_repository_without_commits_shows_how_to_make_one() {
    let project = Project::empty();
    for base in ["HEAD", "main", "other"] {
        let error = project.repository().resolve(base).unwrap_err();
        assert!(matches!(&error, WorkspaceError::NoCommits { root } if *root == project.root), "{error:?}");
        assert!(error.to_string().contains("git commit"), "{error}");
    }
    let error = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap_err();
    assert!(matches!(error, WorkspaceError::NoCommits { .. }), "{error:?}");
}

/// Leaves one change of every kind in a working tree.
fn make_dirty(project: &Project) {
    write(&project.root, "src/lib.rs", "unstaged\n");
    write(&project.root, "src/staged file.rs", "staged\n");
    git(&project.root, ["add", "src/staged file.rs"]);
    fs::remove_file(project.root.join("tests/a.rs")).unwrap();
    git(&project.root, ["rm", "-q", "--cached", "tests/b.rs"]);
    write(&project.root, "new/untracked\n.rs", "untracked\n");
    write(&project.root, "debug.log", "ignored\n");
}

#[test]
fn uncommitted_paths_are_named_and_ignored_ones_are_not() {
    let project = Project::new();
    assert_eq!(project.repository().uncommitted().unwrap(), strings(&[]));
    make_dirty(&project);
    let changed = ["new/untracked\n.rs", "src/lib.rs", "src/staged file.rs", "tests/a.rs", "tests/b.rs"];
    assert_eq!(project.repository().uncommitted().unwrap(), strings(&changed));
}

#[test]
fn looking_for_uncommitted_paths_does_not_refresh_the_users_index() {
    let project = Project::new();
    let file = fs::File::options().append(true).open(project.root.join("src/lib.rs")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    let before = State::of(&project.root);
    assert_eq!(project.repository().uncommitted().unwrap(), strings(&[]));
    assert_eq!(State::of(&project.root), before);
}

#[test]
fn a_snapshot_of_a_clean_tree_is_head() {
    let project = Project::new();
    assert_eq!(project.repository().snapshot_dirty(Consent::WithinBounds).unwrap().base, project.head());
}

#[test]
fn a_snapshot_holds_every_change_and_leaves_the_checkout_alone() {
    let project = Project::new();
    make_dirty(&project);
    let clone = project.root.join("vendor/clone");
    fs::create_dir_all(&clone).unwrap();
    git(&clone, ["init", "-q"]);
    write(&clone, "file", "not the user's\n");
    let before = State::of(&project.root);

    let snapshot = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap().base;

    assert_eq!(State::of(&project.root), before);
    assert_eq!(
        project.files_of(&snapshot),
        expected(&[
            (".gitignore", "100644 *.log\n.env\ntarget/\n"),
            ("new/untracked\n.rs", "100644 untracked\n"),
            ("src/lib.rs", "100644 unstaged\n"),
            ("src/staged file.rs", "100644 staged\n"),
            ("tests/b.rs", "100644 assert b\n"),
        ])
    );
    assert_eq!(git(&project.root, ["rev-parse", &format!("{snapshot}^")]), project.head().as_str());
}

#[test]
fn a_commit_is_judged_as_it_is() {
    let project = Project::new();
    let tree = git(&project.root, ["rev-parse", "HEAD^{tree}"]);
    let expected = Candidate {
        commit: project.head(),
        head: project.head(),
        tree,
        restored: Vec::new(),
        uncommitted: Vec::new(),
        warnings: Vec::new(),
        ignored: Vec::new(),
    };
    assert_eq!(project.repository().as_candidate(&project.head()).unwrap(), expected);
    let error = project.repository().as_candidate(&Commit::new("1".repeat(40))).unwrap_err();
    assert!(matches!(error, WorkspaceError::CommitGone { .. }), "{error:?}");
}

#[test]
fn a_commit_is_on_top_of_those_in_its_history_and_of_no_other() {
    let project = Project::new();
    let base = project.head();
    write(&project.root, "a", "a");
    let next = commit_all(&project.root, "next");
    git(&project.root, ["checkout", "-q", "--orphan", "elsewhere"]);
    let elsewhere = commit_all(&project.root, "elsewhere");
    let repository = project.repository();
    let on_top = |commit, of| repository.is_on_top(commit, of).unwrap();
    assert_eq!(
        [on_top(&next, &base), on_top(&base, &next), on_top(&base, &base), on_top(&elsewhere, &base)],
        [true, false, false, false]
    );
}

#[test]
fn only_directories_of_gits_with_objects_are_lent() {
    let project = Project::new();
    let git = project.root.join(".git");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret"), "hush").unwrap();
    fs::create_dir_all(elsewhere.path().join("objects/keys")).unwrap();
    let secret = elsewhere.path().display();
    fs::write(git.join("objects/info/alternates"), format!("{secret}\n{secret}/objects\n/\n")).unwrap();
    fs::create_dir_all(git.join("modules/real/objects/pack")).unwrap();
    fs::create_dir_all(git.join("modules/planted")).unwrap();
    symlink(elsewhere.path(), git.join("modules/planted/objects")).unwrap();
    let lent = project.repository().lends_objects();
    let wanted = [git.join("objects"), git.join("modules/real/objects")];
    assert!(lent.iter().all(|path| wanted.contains(path)), "{lent:?}");
    assert!(wanted.iter().all(|path| lent.contains(path)), "{lent:?}");
}

#[test]
fn an_agent_in_place_gets_the_git_directory_of_its_own_work_tree_alone() {
    let (project, other) = (Project::new(), Project::new());
    let dir = |project: &Project| project.root.join(".git").canonicalize().unwrap();
    assert_eq!(project.repository().git_dirs(), [dir(&project)]);
    fs::write(dir(&project).join("commondir"), dir(&other).display().to_string()).unwrap();
    assert_eq!(project.repository().git_dirs(), [dir(&project)]);
    let linked = project.root.with_file_name("linked");
    git(&other.root, ["worktree", "add", "-q", &linked.display().to_string()]);
    let found = Repository::discover(&linked).unwrap().git_dirs();
    assert_eq!(found, [dir(&other), dir(&other).join("worktrees/linked")]);
    fs::remove_dir_all(dir(&project)).unwrap();
    fs::write(project.root.join(".git"), format!("gitdir: {}\n", dir(&other).display())).unwrap();
    assert_eq!(Repository::discover(&project.root).unwrap().git_dirs(), Vec::<std::path::PathBuf>::new());
}
