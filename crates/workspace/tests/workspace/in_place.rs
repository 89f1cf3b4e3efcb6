//! Working in the user's own directory, with git and without.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use towline_core::GitSettings;
use towline_workspace::{Commit, Consent, Protect, Repository, Workspace, WorkspaceError, verification};

use crate::private_clone::collect_garbage;
use crate::support::{GOAL, Project, State, expected, files_below, git, names_below, strings, write};

/// A folder without git, and the place of its history.
struct Folder {
    scratch: TempDir,
    root: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap().join("folder");
        write(&root, "src/a", "one\n");
        write(&root, "src/b", "two\n");
        write(&root, "tests/t", "whole\n");
        write(&root, ".gitignore", "*.log\n");
        write(&root, "out.log", "ignored\n");
        Self { scratch, root }
    }

    fn history(&self) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join("state/goal.git")
    }

    fn create_own(&self) -> Repository {
        fs::create_dir_all(self.history().parent().unwrap()).unwrap();
        Repository::create_own(&self.root, &self.history(), &GitSettings::default()).unwrap()
    }

    fn begin(&self) -> Workspace {
        let repository = self.create_own();
        let before = repository.keep_before(Consent::WithinBounds).unwrap();
        Workspace::in_place(&repository, GOAL, &before.base).unwrap()
    }

    fn files_of(&self, commit: &Commit) -> Vec<String> {
        let list = git(&self.history(), ["ls-tree", "-r", "--name-only", commit.as_str()]);
        list.lines().map(str::to_owned).collect()
    }
}

/// Work that changes, adds, deletes and touches what is protected.
fn work_in(root: &Path) {
    write(root, "src/a", "changed\n");
    write(root, "src/new/c", "added\n");
    fs::remove_file(root.join("src/b")).unwrap();
    write(root, "tests/t", "broken\n");
    write(root, "more.log", "ignored\n");
}

#[test]
fn a_folder_without_git_has_a_base_candidates_diffs_and_checkouts_all_the_same() {
    let folder = Folder::new();
    let before = files_below(&folder.root);
    let workspace = folder.begin();
    assert_eq!(files_below(&folder.root), before);
    assert!(!folder.root.join(".git").exists());
    assert_eq!((workspace.path(), workspace.branch()), (folder.root.as_path(), None));
    assert_eq!(folder.files_of(workspace.base()), [".gitignore", "src/a", "src/b", "tests/t"]);

    work_in(&folder.root);
    let protect = Protect::new(&strings(&["tests/**"])).unwrap();
    let candidate = workspace.candidate(1, &protect).unwrap();
    assert_eq!(folder.files_of(&candidate.commit), [".gitignore", "src/a", "src/new/c", "tests/t"]);
    assert_eq!(candidate.restored, ["tests/t"]);
    assert_eq!(
        candidate.warnings,
        ["protected paths are judged as they were, but stay changed in your files: tests/t"]
    );
    assert_eq!(workspace.candidate(1, &protect).unwrap(), candidate);
    let changed: Vec<String> =
        workspace.diff_stat().unwrap().files.into_iter().map(|file| file.path).collect();
    assert_eq!(changed, ["src/a", "src/b", "src/new/c", "tests/t"]);

    let repository = Repository::open_own(&folder.root, &folder.history(), &GitSettings::default()).unwrap();
    assert!(repository.diff(workspace.base(), &candidate.commit).unwrap().contains("+changed"));
    let place = folder.root.parent().unwrap().join("verify");
    let checkout = verification(&repository, &place, &candidate.commit, &strings(&["out.log"])).unwrap();
    assert_eq!(names_below(checkout.path()), [".gitignore", "out.log", "src/a", "src/new/c", "tests/t"]);
    assert_eq!(fs::read_to_string(place.join("tests/t")).unwrap(), "whole\n");
    checkout.remove().unwrap();
    assert!(!place.exists());
}

#[test]
fn what_was_there_before_comes_back_byte_for_byte() {
    let folder = Folder::new();
    let before = files_below(&folder.root);
    let workspace = folder.begin();
    work_in(&folder.root);
    let worked = files_below(&folder.root);

    let opened = Repository::open_own(&folder.root, &folder.history(), &GitSettings::default()).unwrap();
    let opened = Workspace::in_place(&opened, GOAL, workspace.base()).unwrap();
    opened.restore(&strings(&["tests"])).unwrap();
    assert_eq!(fs::read_to_string(folder.root.join("tests/t")).unwrap(), "whole\n");
    assert_eq!(fs::read_to_string(folder.root.join("src/a")).unwrap(), "changed\n");

    for path in ["nowhere", "../outside"] {
        let error = opened.restore(&strings(&[path])).unwrap_err();
        assert!(matches!(&error, WorkspaceError::NoSuchPath { paths, .. } if paths == path), "{error:?}");
    }
    write(&folder.root, "tests/t", "broken\n");
    let replaced = opened.restore(&[]).unwrap();
    let mut now = files_below(&folder.root);
    // What is ignored is in no snapshot, and stays.
    assert!(now.remove(Path::new("more.log")).is_some());
    assert_eq!(now, before);
    assert_eq!(folder.files_of(&replaced), [".gitignore", "src/a", "src/new/c", "tests/t"]);
    assert!(worked.contains_key(Path::new("src/new/c")));
}

#[test]
fn what_is_ignored_since_is_preserved_before_it_is_written_over() {
    let project = Project::new();
    write(&project.root, "notes/mine", "before\n");
    write(&project.root, "plan", "before\n");
    write(&project.root, "deep/a/file", "before\n");
    let before = project.own().keep_before(Consent::WithinBounds).unwrap();
    let workspace = Workspace::in_place(&project.own(), GOAL, &before.base).unwrap();
    write(&project.root, ".gitignore", "notes/\nplan\ndeep\nother\n");
    write(&project.root, "other", "ignored, and in nobody's way\n");
    write(&project.root, "notes/mine", "changed\n");
    // A directory where a file was, and a file where a directory was.
    fs::remove_file(project.root.join("plan")).unwrap();
    write(&project.root, "plan/step", "added\n");
    fs::remove_dir_all(project.root.join("deep")).unwrap();
    write(&project.root, "deep", "flat\n");

    let replaced = workspace.restore(&[]).unwrap();
    let preserved = project.files_of(&replaced);
    let preserved = ["notes/mine", "plan/step", "deep"].map(|path| preserved[path].as_str());
    assert_eq!(preserved, ["100644 changed\n", "100644 added\n", "100644 flat\n"]);
    for path in ["notes/mine", "plan", "deep/a/file"] {
        assert_eq!(fs::read_to_string(project.root.join(path)).unwrap(), "before\n", "{path}");
    }
    assert!(project.root.join("other").exists());
}

#[test]
fn beginning_in_a_folder_can_be_repeated_after_it_was_cut_off() {
    let folder = Folder::new();
    fs::create_dir_all(folder.history().join("refs")).unwrap();
    let first = folder.begin();
    let again = folder.begin();
    assert_eq!(folder.files_of(first.base()), folder.files_of(again.base()));
}

#[test]
fn in_a_repository_the_dirty_state_is_the_base_and_nothing_of_the_user_is_touched() {
    let project = Project::new();
    write(&project.root, "src/lib.rs", "mine\n");
    write(&project.root, "staged.rs", "mine\n");
    git(&project.root, ["add", "staged.rs"]);
    let clone = project.root.join("vendor/clone");
    fs::create_dir_all(&clone).unwrap();
    git(&clone, ["init", "-q"]);
    write(&clone, "file", "of a clone\n");
    let state = State::of(&project.root);
    let before = project.own().keep_before(Consent::WithinBounds).unwrap();
    let workspace = Workspace::in_place(&project.own(), GOAL, &before.base).unwrap();
    assert_eq!(State::of(&project.root), state);
    let base = expected(&[
        (".gitignore", "100644 *.log\n.env\ntarget/\n"),
        ("src/lib.rs", "100644 mine\n"),
        ("staged.rs", "100644 mine\n"),
        ("tests/a.rs", "100644 assert a\n"),
        ("tests/b.rs", "100644 assert b\n"),
        ("vendor/clone/file", "100644 of a clone\n"),
    ]);
    assert_eq!(project.files_of(&before.base), base);

    write(&project.root, "src/lib.rs", "theirs\n");
    fs::remove_file(project.root.join("tests/b.rs")).unwrap();
    let state = State::of(&project.root);
    let protect = Protect::new(&strings(&["tests/**"])).unwrap();
    let candidate = workspace.candidate(1, &protect).unwrap();
    assert_eq!(State::of(&project.root), state);
    assert_eq!(candidate.head, before.base);
    let mut with_work = base;
    with_work.insert("src/lib.rs".to_owned(), "100644 theirs\n".to_owned());
    assert_eq!(project.files_of(&candidate.commit), with_work);
    assert_eq!(
        (candidate.restored, candidate.uncommitted),
        (strings(&["tests/b.rs"]), strings(&["src/lib.rs"]))
    );
    assert_eq!(git(&project.root, ["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
}

#[test]
fn commits_of_the_agent_in_place_are_seen_and_restoring_leaves_them_alone() {
    let project = Project::new();
    write(&project.root, "mine.rs", "mine\n");
    let start = project.head();
    let before = project.own().keep_before(Consent::WithinBounds).unwrap().base;
    assert_eq!(project.own().committed_base(&before).unwrap(), start);
    assert_eq!(project.own().committed_base(&start).unwrap(), start);
    let workspace = Workspace::in_place(&project.own(), GOAL, &before).unwrap();
    write(&project.root, "src/lib.rs", "theirs\n");
    let commit = crate::support::commit_all(&project.root, "theirs");
    let candidate = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!((&candidate.head, &candidate.commit), (&commit, &commit));

    let index = fs::read(project.root.join(".git/index")).unwrap();
    workspace.restore(&[]).unwrap();
    assert_eq!(project.head(), commit);
    assert_eq!(fs::read(project.root.join(".git/index")).unwrap(), index);
    assert_eq!(
        project.own().diff(&before, &workspace.candidate(2, &Protect::nothing()).unwrap().commit).unwrap(),
        ""
    );
}

#[test]
fn a_folder_with_too_many_files_is_refused_unless_somebody_wants_it_so() {
    let folder = Folder::new();
    fs::create_dir(folder.root.join("many")).unwrap();
    for number in 0..20_001 {
        fs::File::create(folder.root.join(format!("many/{number}"))).unwrap();
    }
    let repository = folder.create_own();
    let error = repository.keep_before(Consent::WithinBounds).unwrap_err();
    assert!(matches!(error, WorkspaceError::TooLarge { .. }), "{error:?}");
    assert!(error.to_string().contains(".gitignore"), "{error}");
    assert!(repository.keep_before(Consent::AnySize).is_ok());
    write(&folder.root, ".gitignore", "many/\n");
    assert!(repository.keep_before(Consent::WithinBounds).is_ok());
}

#[test]
fn a_folder_or_a_history_that_is_gone_is_named() {
    let folder = Folder::new();
    let base = folder.begin().base().clone();
    fs::rename(folder.history(), folder.root.parent().unwrap().join("moved")).unwrap();
    let error = Repository::open_own(&folder.root, &folder.history(), &GitSettings::default()).unwrap_err();
    assert!(error.to_string().contains("goal.git is gone"), "{error}");
    fs::rename(folder.root.parent().unwrap().join("moved"), folder.history()).unwrap();
    let repository = Repository::open_own(&folder.root, &folder.history(), &GitSettings::default()).unwrap();
    fs::remove_dir_all(&folder.root).unwrap();
    for error in [
        Workspace::in_place(&repository, GOAL, &base).unwrap_err(),
        Repository::open_own(&folder.root, &folder.history(), &GitSettings::default()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("the directory is gone"), "{error}");
    }
}

#[test]
fn nothing_that_is_preserved_of_a_goal_in_place_goes_with_what_the_user_deletes() {
    let project = Project::new();
    let before = project.own().keep_before(Consent::WithinBounds).unwrap().base;
    let workspace = Workspace::in_place(&project.own(), GOAL, &before).unwrap();
    write(&project.root, "src/lib.rs", "theirs\n");
    let commit = crate::support::commit_all(&project.root, "theirs");
    let committed = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(committed.commit, commit);
    write(&project.root, "staged.rs", "an hour of work\n");
    git(&project.root, ["add", "-A"]);
    let replaced = workspace.restore(&[]).unwrap();

    for reference in git(&project.root, ["for-each-ref", "--format=%(refname)", "refs/towline"]).lines() {
        git(&project.root, ["update-ref", "-d", reference]);
    }
    git(&project.root, ["reset", "-q", "--hard", "HEAD~1"]);
    collect_garbage(&project.root);
    assert_eq!(project.files_of(&committed.commit)["src/lib.rs"], "100644 theirs\n");
    assert_eq!(project.files_of(&replaced)["staged.rs"], "100644 an hour of work\n");
    assert_eq!(project.files_of(&replaced)["src/lib.rs"], "100644 theirs\n");
}

#[test]
fn a_repository_in_the_place_of_a_file_is_preserved_as_files_before_it_is_written_over() {
    for rules in ["", "src/a\n"] {
        for commits in [false, true] {
            let folder = Folder::new();
            let workspace = folder.begin();
            let inner = folder.root.join("src/a");
            fs::remove_file(&inner).unwrap();
            write(&inner, "work", "first\n");
            write(&inner, "out.log", "ignored\n");
            write(&inner, "deeper/work", "deeper\n");
            write(&folder.root, ".gitignore", &format!("*.log\n{rules}"));
            for repository in [inner.join("deeper"), inner.clone()] {
                git(&repository, ["init", "-q"]);
                if commits {
                    crate::support::commit_all(&repository, "inner");
                }
            }
            write(&inner, "work", "second\n");
            let now = workspace.restore(&[]).unwrap();
            assert_eq!(fs::read_to_string(folder.root.join("src/a")).unwrap(), "one\n");
            let preserved = folder.files_of(&now);
            let preserved: Vec<&str> =
                preserved.iter().map(String::as_str).filter(|name| name.starts_with("src/a")).collect();
            assert_eq!(preserved, ["src/a/deeper/work", "src/a/out.log", "src/a/work"], "{rules} {commits}");
            let place = format!("{now}:src/a/work");
            assert_eq!(git(&folder.history(), ["show", &place]), "second");
        }
    }
}

#[test]
fn commits_in_a_repository_with_refs_in_tables_are_seen_in_place() {
    let project = Project::new();
    let root = project.beside("tables");
    git(&project.root, ["clone", "-q", "--ref-format=reftable", ".", root.to_str().unwrap()]);
    let project = project.with_root(root);
    let before = project.own().keep_before(Consent::WithinBounds).unwrap().base;
    let workspace = Workspace::in_place(&project.own(), GOAL, &before).unwrap();
    let unchanged = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!((unchanged.commit, unchanged.warnings), (before, Vec::new()));
    write(&project.root, "src/lib.rs", "theirs\n");
    let commit = crate::support::commit_all(&project.root, "theirs");
    let made = workspace.candidate(2, &Protect::nothing()).unwrap();
    assert_eq!((made.head, made.commit, made.warnings), (commit.clone(), commit, Vec::new()));
}
