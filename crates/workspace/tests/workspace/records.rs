//! Git's records of worktrees are the same whether git makes them or we do.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use towline_workspace::{Protect, Repository, WorkspacePlan, create, verification};

use crate::support::{BRANCH, Project, git, names_below, write};

/// The record that a worktree's `.git` leads to.
fn record_of(worktree: &Path) -> PathBuf {
    let text = fs::read_to_string(worktree.join(".git")).unwrap();
    PathBuf::from(text.strip_prefix("gitdir: ").unwrap().trim_end_matches('\n'))
}

/// The text files of a record, without the index and the logs that come with use.
fn texts_of(record: &Path) -> BTreeMap<String, String> {
    let files =
        fs::read_dir(record).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files
        .map(|path| (name(&path), path))
        .filter(|(name, _)| !name.starts_with("towline-") && name != "index" && name != "ORIG_HEAD")
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn the_record_of_a_workspace_is_what_git_would_have_made() {
    let project = Project::new();
    let workspace = project.workspace();
    let by_git = project.beside("by-git");
    git(&project.root, ["worktree", "add", "-q", "--no-checkout", "-b", "other", by_git.to_str().unwrap()]);
    let expected: BTreeMap<String, String> = texts_of(&record_of(&by_git))
        .into_iter()
        .map(|(name, text)| {
            let text =
                text.replace("refs/heads/other", &format!("refs/heads/{}", workspace.branch().unwrap()));
            (name, text.replace(by_git.to_str().unwrap(), workspace.path().to_str().unwrap()))
        })
        .collect();
    assert_eq!(texts_of(&record_of(workspace.path())), expected);
}

#[test]
fn git_knows_lists_keeps_and_removes_what_we_have_made() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path().to_str().unwrap();
    git(&project.root, ["worktree", "prune", "--expire=now"]);
    assert_eq!(git(workspace.path(), ["status", "--porcelain", "--branch"]), format!("## {BRANCH}"));
    assert!(git(&project.root, ["worktree", "list"]).contains(path));
    git(&project.root, ["fsck", "--no-progress"]);
    let moved = project.beside("moved");
    git(&project.root, ["worktree", "move", path, moved.to_str().unwrap()]);
    git(&project.root, ["worktree", "remove", moved.to_str().unwrap()]);
    assert_eq!(git(&project.root, ["worktree", "list"]).lines().count(), 1);
}

#[test]
fn worktrees_whose_directories_have_the_same_name_are_kept_apart() {
    let project = Project::new();
    let workspace = project.workspace();
    let same_name = project.beside("verify").join(workspace.path().file_name().unwrap());
    let repository = project.repository();
    let checkout = verification(&repository, &same_name, &project.head(), &[], &project.root).unwrap();
    assert_ne!(record_of(workspace.path()), record_of(checkout.path()));
    assert_eq!(names_below(checkout.path()), names_below(workspace.path()));
    checkout.remove().unwrap();
    assert!(record_of(workspace.path()).join("HEAD").exists());
    assert_eq!(git(&project.root, ["worktree", "list"]).lines().count(), 2);
}

#[test]
fn in_a_repository_out_of_the_ordinary_a_worktree_is_as_git_makes_it() {
    let project = Project::new();
    write(&project.root, "docs/page.md", "far away\n");
    git(&project.root, ["add", "-A"]);
    git(&project.root, ["commit", "-q", "-m", "docs"]);
    git(&project.root, ["sparse-checkout", "set", "src"]);
    let by_git = project.beside("by-git");
    git(&project.root, ["worktree", "add", "-q", "--detach", by_git.to_str().unwrap()]);
    let repository = project.repository();
    let place = project.beside("verify");
    let checkout = verification(&repository, &place, &project.head(), &[], &project.root).unwrap();
    assert_eq!(names_below(checkout.path()), names_below(&by_git));
    let [ours, gits] = [&place, &by_git].map(|path| texts_of(&record_of(path)));
    assert_eq!(ours.keys().collect::<Vec<_>>(), gits.keys().collect::<Vec<_>>());
    assert_eq!(ours["config.worktree"], gits["config.worktree"]);
}

#[test]
fn a_record_whose_name_another_worktree_has_by_now_is_left_alone() {
    let project = Project::new();
    let repository = project.repository();
    let check_out = |name: &str| {
        verification(&repository, &project.beside(name), &project.head(), &[], &project.root).unwrap()
    };
    let first = check_out("a/same");
    fs::remove_dir_all(first.path()).unwrap();
    git(&project.root, ["worktree", "prune", "--expire=now"]);
    let second = check_out("b/same");
    first.remove().unwrap();
    assert_eq!(git(second.path(), ["rev-parse", "HEAD"]), project.head().as_str());
}

#[test]
fn whatever_a_kill_leaves_of_a_record_the_next_call_makes_the_workspace() {
    type Kill = fn(&Path, &Path);
    let kills: [(&str, Kill); 5] = [
        ("before the place was made", |_, place| fs::remove_dir_all(place).unwrap()),
        ("before the way from it was made", |_, place| fs::remove_file(place.join(".git")).unwrap()),
        ("while the way from it was made", |_, place| write(place, ".git", "")),
        ("before the record was there", |record, _| fs::remove_dir_all(record).unwrap()),
        ("before it was unlocked", |_, _| ()),
    ];
    for (when, kill) in kills {
        let project = Project::new();
        let workspace = project.workspace();
        let record = record_of(workspace.path());
        for file in names_below(workspace.path()) {
            fs::remove_file(workspace.path().join(file)).unwrap();
        }
        for directory in ["src", "tests"] {
            fs::remove_dir(workspace.path().join(directory)).unwrap();
        }
        fs::remove_file(record.join("index")).unwrap();
        fs::rename(record.join("towline-ready"), record.join("locked")).unwrap();
        kill(&record, workspace.path());
        let again = project.workspace();
        assert_eq!(
            git(again.path(), ["status", "--porcelain", "--branch"]),
            format!("## {BRANCH}"),
            "{when}"
        );
        assert_eq!(again.head().unwrap(), Some(project.head()), "{when}");
        let list = git(&project.root, ["worktree", "list"]);
        assert_eq!((list.lines().count(), list.contains("locked")), (2, false), "{when}: {list}");
    }
}

#[test]
fn a_repository_that_is_a_submodule_or_has_an_odd_name_gets_worktrees_too() {
    let project = Project::new();
    let odd = project.beside("odd").join(OsStr::from_bytes(b"two words\nand \xff"));
    git(&project.root, [OsStr::new("clone"), OsStr::new("-q"), OsStr::new("."), odd.as_os_str()]);
    let above = project.beside("above");
    git(&project.root, ["init", "-q", above.to_str().unwrap()]);
    git(&above, ["submodule", "add", "-q", project.root.to_str().unwrap(), "inner"]);
    for root in [odd, above.join("inner")] {
        let repository = Repository::at(&root).unwrap();
        let plan = WorkspacePlan { path: root.join("target/fix"), ..project.plan() };
        let workspace = create(&repository, &plan).unwrap();
        assert_eq!(git(workspace.path(), ["status", "--porcelain", "--branch"]), format!("## {BRANCH}"));
        write(workspace.path(), "new.rs", "work\n");
        let made = workspace.candidate(1, &Protect::nothing()).unwrap();
        assert_eq!(made.uncommitted, ["new.rs"]);
        let place = root.join("target/verify");
        let checkout = verification(&repository, &place, &made.commit, &[], &root).unwrap();
        assert_eq!(git(checkout.path(), ["rev-parse", "HEAD"]), made.commit.as_str());
        assert_eq!(git(checkout.path(), ["status", "--porcelain"]), "");
        checkout.remove().unwrap();
        git(&root, ["fsck", "--no-progress"]);
        assert_eq!(git(&root, ["status", "--porcelain"]), "");
    }
}
