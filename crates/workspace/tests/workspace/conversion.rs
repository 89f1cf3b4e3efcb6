//! A workspace that an earlier version made, a linked worktree of the user's repository, becomes a private clone at the same
//! path with everything in it.

use std::fs;
use std::path::{Path, PathBuf};

use towline_workspace::{
    Commit, LeftBehind, Protect, Remains, Unmerged, WorkKind, Workspace, WorkspaceError, create,
};

use crate::private_clone::collect_garbage;
use crate::support::{BRANCH, GOAL, Project, State, commit_all, files_below, git, names_below, write};

/// A project with a worktree as earlier versions made it.
struct Scene {
    project: Project,
    base: Commit,
    path: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let project = Project::new();
        let (base, path) = (project.head(), project.plan().path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        git(&project.root, ["update-ref", &format!("refs/towline/{GOAL}/base"), base.as_str()]);
        git(&project.root, ["worktree", "add", "-q", "-b", BRANCH, path.to_str().unwrap()]);
        let scene = Self { project, base, path };
        fs::write(scene.record().join("towline-ready"), GOAL).unwrap();
        scene
    }

    fn record(&self) -> PathBuf {
        self.project.root.join(".git/worktrees/fix")
    }

    /// Commits and changes of every kind.
    fn work(&self) -> Commit {
        write(&self.path, "committed.rs", "committed\n");
        let head = commit_all(&self.path, "work");
        write(&self.path, "src/lib.rs", "unstaged\n");
        write(&self.path, "staged.rs", "staged\n");
        git(&self.path, ["add", "staged.rs"]);
        write(&self.path, "untracked.rs", "untracked\n");
        fs::remove_file(self.path.join("tests/a.rs")).unwrap();
        write(&self.path, "debug.log", "ignored\n");
        head
    }

    fn convert(&self) -> Workspace {
        create(&self.project.repository(), &self.project.plan()).unwrap()
    }

    fn remains(&self) -> Remains {
        Remains {
            goal: GOAL.to_owned(),
            path: self.path.clone(),
            branch: BRANCH.to_owned(),
            base: self.base.clone(),
            candidate: None,
            protect: Protect::nothing(),
        }
    }

    /// The workspace is a whole private clone with the work, and nothing else of it is in the user's repository.
    fn assert_converted(&self, workspace: &Workspace, head: &Commit, files: &Files) {
        assert_eq!(workspace.path(), self.path);
        assert_eq!(files_below(&self.path), *files);
        assert!(self.path.join(".git").is_dir() && !self.record().exists());
        assert_eq!(
            git(&self.path, ["rev-parse", "--path-format=absolute", "--git-common-dir"]),
            format!("{}/.git", self.path.display())
        );
        assert_eq!(git(&self.path, ["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
        assert_eq!(git(&self.path, ["rev-parse", "HEAD"]), head.as_str());
        assert_eq!(git(&self.project.root, ["worktree", "list"]).lines().count(), 1);
        assert_eq!(self.project.reference(&format!("refs/heads/{BRANCH}")), None);
        git(&self.path, ["fsck", "--no-progress"]);
        collect_garbage(&self.project.root);
        let made = workspace.candidate(1, &Protect::nothing()).unwrap();
        assert_eq!((made.head, made.warnings), (head.clone(), Vec::new()));
        let tracked: Vec<String> = self.project.files_of(&made.commit).into_keys().collect();
        let expected: Vec<String> =
            names_below(&self.path).into_iter().filter(|name| name != "debug.log").collect();
        assert_eq!(tracked, expected);
    }
}

type Files = std::collections::BTreeMap<PathBuf, (u32, Vec<u8>)>;

#[test]
fn files_commits_and_candidates_stay_and_the_record_and_the_branch_go() {
    let scene = Scene::new();
    let head = scene.work();
    let (users, files) = (State::of(&scene.project.root), files_below(&scene.path));
    let status = git(&scene.path, ["status", "--porcelain", "-uall"]).replace("A  staged", "?? staged");
    let workspace = scene.convert();
    scene.assert_converted(&workspace, &head, &files);
    assert_eq!(State::of(&scene.project.root), users);
    let sorted = |status: &str| {
        let mut lines: Vec<&str> = status.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!(sorted(&git(&scene.path, ["status", "--porcelain", "-uall"])), sorted(&status));
    let again = scene.convert();
    scene.assert_converted(&again, &head, &files);
}

#[test]
fn a_worktree_without_work_on_another_branch_or_on_none_is_converted_too() {
    let scene = Scene::new();
    let files = files_below(&scene.path);
    scene.assert_converted(&scene.convert(), &scene.base, &files);

    let scene = Scene::new();
    git(&scene.path, ["switch", "-q", "--detach"]);
    let head = scene.work();
    let files = files_below(&scene.path);
    let workspace = scene.convert();
    assert_eq!(scene.project.reference(&format!("refs/towline/{GOAL}/worktree")), Some(head.clone()));
    // The branch has nothing that the user could miss, but it is not where the worktree was.
    assert_eq!(scene.project.reference(&format!("refs/heads/{BRANCH}")), Some(scene.base.clone()));
    git(&scene.project.root, ["branch", "-q", "-D", BRANCH]);
    scene.assert_converted(&workspace, &head, &files);
}

#[test]
fn a_conversion_that_was_cut_off_anywhere_is_finished() {
    type Cut = fn(&Scene);
    // What is left of an unfinished conversion: the record and the branch come back from an untouched worktree.
    let cuts: [(&str, Cut); 5] = [
        ("after the old .git was removed", |scene| {
            fs::remove_dir_all(scene.path.join(".git")).unwrap();
            fs::remove_file(scene.project.plan().own.join("towline-workspace")).unwrap();
        }),
        ("in the middle of the new .git", |scene| {
            fs::remove_file(scene.path.join(".git/HEAD")).unwrap();
            fs::remove_file(scene.path.join(".git/config")).unwrap();
            fs::remove_file(scene.project.plan().own.join("towline-workspace")).unwrap();
        }),
        ("before it was noted", |scene| {
            fs::remove_file(scene.project.plan().own.join("towline-workspace")).unwrap();
        }),
        ("after it was noted", |scene| {
            fs::write(scene.project.plan().own.join("towline-workspace"), "converted").unwrap();
        }),
        ("after the record was removed", |scene| {
            fs::write(scene.project.plan().own.join("towline-workspace"), "converted").unwrap();
            fs::remove_dir_all(scene.record()).unwrap();
        }),
    ];
    for (what, cut) in cuts {
        let scene = Scene::new();
        let head = scene.work();
        let files = files_below(&scene.path);
        let record = scene.project.beside("record");
        copy(&scene.record(), &record);
        scene.convert();
        copy(&record, &scene.record());
        git(&scene.project.root, ["branch", BRANCH, head.as_str()]);
        cut(&scene);
        let workspace = scene.convert();
        assert_eq!(files_below(&scene.path), files, "{what}");
        scene.assert_converted(&workspace, &head, &files);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_worktree_that_was_never_finished_is_made_anew() {
    let scene = Scene::new();
    fs::remove_file(scene.record().join("towline-ready")).unwrap();
    let whole = files_below(&scene.path);
    fs::remove_dir_all(scene.path.join("tests")).unwrap();
    write(&scene.path, "src/lib.rs", "pub fn o");
    let workspace = scene.convert();
    scene.assert_converted(&workspace, &scene.base, &whole);
}

#[test]
fn a_worktree_whose_directory_is_gone_is_made_anew_and_its_commits_are_preserved() {
    let scene = Scene::new();
    let whole = files_below(&scene.path);
    write(&scene.path, "committed.rs", "committed\n");
    let head = commit_all(&scene.path, "work");
    fs::remove_dir_all(&scene.path).unwrap();
    let workspace = scene.convert();
    assert_eq!(scene.project.reference(&format!("refs/towline/{GOAL}/worktree")), Some(head));
    scene.assert_converted(&workspace, &scene.base, &whole);
}

#[test]
fn worktrees_of_the_user_and_of_other_goals_are_not_converted() {
    for mark in [None, Some("another goal")] {
        let scene = Scene::new();
        git(&scene.path, ["switch", "-q", "-c", "theirs"]);
        match mark {
            Some(goal) => fs::write(scene.record().join("towline-ready"), goal).unwrap(),
            None => fs::remove_file(scene.record().join("towline-ready")).unwrap(),
        }
        scene.work();
        let before = State::of(&scene.path);
        let refused = create(&scene.project.repository(), &scene.project.plan()).unwrap_err();
        assert!(matches!(refused, WorkspaceError::PathTaken { .. }), "{refused:?}");
        assert_eq!(State::of(&scene.path), before);
    }
}

#[test]
fn the_worktree_of_a_goal_that_has_ended_is_removed_without_losing_its_work() {
    let scene = Scene::new();
    scene.work();
    let own = scene.project.own();
    let remains = scene.remains();
    let unmerged = own.unmerged(&remains).unwrap();
    let kinds: Vec<WorkKind> = unmerged.iter().map(|work| work.kind).collect();
    assert_eq!(kinds, [WorkKind::Files, WorkKind::Branch]);
    let preserved = own.keep_unmerged(GOAL, &unmerged).unwrap();
    assert_eq!(own.unmerged(&remains).unwrap(), [] as [Unmerged; 0]);
    assert_eq!(own.remove_workspace(&remains).unwrap(), LeftBehind::default());
    own.remove_refs(GOAL).unwrap();
    assert!(!scene.path.exists() && !scene.record().exists());
    collect_garbage(&scene.project.root);
    let files = git(&scene.project.root, ["ls-tree", "-r", "--name-only", &preserved[0].reference]);
    assert_eq!(files, ".gitignore\ncommitted.rs\nsrc/lib.rs\nstaged.rs\ntests/b.rs\nuntracked.rs");
    let files = git(&scene.project.root, ["ls-tree", "-r", "--name-only", &preserved[1].reference]);
    assert!(files.contains("committed.rs"));
}

#[test]
fn submodules_of_a_worktree_stay_filled() {
    let scene = Scene::new();
    let library = Project::new();
    git(&scene.path, ["submodule", "--quiet", "add", library.root.to_str().unwrap(), "lib"]);
    let head = commit_all(&scene.path, "with a submodule");
    write(&scene.path.join("lib"), "src/lib.rs", "uncommitted\n");
    let files = || {
        let mut files = files_below(&scene.path);
        // It leads to where the submodule's repository is.
        files.remove(Path::new("lib/.git"));
        files
    };
    let before = files();
    let workspace = scene.convert();
    assert_eq!(files(), before);
    assert_eq!(git(&scene.path.join("lib"), ["rev-parse", "HEAD"]), library.head().as_str());
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(made.commit, head);
    assert_eq!(scene.project.own().work_in_submodules(&scene.remains()).unwrap(), ["lib"]);
}
