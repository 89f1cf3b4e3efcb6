//! What a goal leaves is taken away, and never its work.

use std::fs;
use std::os::unix::fs::symlink;

use towline_workspace::{
    Commit, Consent, LeftBehind, PreservedWork, Protect, Remains, Repository, Unmerged, WorkKind, Workspace,
    WorkspaceError, WorkspacePlan, create,
};

use crate::nested::with_submodule;
use crate::support::{BRANCH, GOAL, Project, State, commit_all, git, strings, write};

struct Scene {
    project: Project,
    workspace: Workspace,
}

impl Scene {
    fn new() -> Self {
        let project = Project::new();
        let workspace = create(&project.repository(), &project.plan()).unwrap();
        Self { project, workspace }
    }

    fn remains(&self, candidate: Option<&Commit>) -> Remains {
        Remains {
            goal: GOAL.to_owned(),
            path: self.workspace.path().to_path_buf(),
            branch: BRANCH.to_owned(),
            base: self.workspace.base().clone(),
            candidate: candidate.cloned(),
            protect: Protect::new(&strings(&["tests/**"])).unwrap(),
        }
    }

    /// The agent changes a file, and a protected one.
    fn work(&self) -> Commit {
        write(self.workspace.path(), "src/lib.rs", "work\n");
        write(self.workspace.path(), "tests/a.rs", "weakened\n");
        let commit = self.workspace.candidate(1, &self.remains(None).protect).unwrap().commit;
        self.project.own().publish(&commit, &format!("refs/towline/{GOAL}/candidates/1")).unwrap();
        commit
    }

    fn unmerged(&self, candidate: Option<&Commit>) -> Vec<Unmerged> {
        self.project.own().unmerged(&self.remains(candidate)).unwrap()
    }

    fn remove(&self, candidate: Option<&Commit>) -> LeftBehind {
        let repository = self.project.own();
        let left = repository.remove_workspace(&self.remains(candidate)).unwrap();
        repository.remove_refs(GOAL).unwrap();
        left
    }

    fn refs(&self) -> String {
        git(&self.project.root, ["for-each-ref", "--format=%(refname)", "refs/towline", "refs/heads/towline"])
    }
}

#[test]
fn a_workspace_without_work_is_no_work_and_goes_without_a_trace() {
    let scene = Scene::new();
    let users = State::of(&scene.project.root);
    write(scene.workspace.path(), "debug.log", "ignored\n");
    assert_eq!(scene.unmerged(None), []);
    assert_eq!(scene.remove(None), LeftBehind::default());
    assert_eq!((scene.refs(), scene.workspace.path().exists()), (String::new(), false));
    assert_eq!(git(&scene.project.root, ["worktree", "list"]).lines().count(), 1);
    assert_eq!(State::of(&scene.project.root), users);
    assert_eq!(scene.remove(None), LeftBehind::default(), "once more is no harm");
}

#[test]
fn a_merged_candidate_leaves_nothing_unmerged() {
    let scene = Scene::new();
    let candidate = scene.work();
    let unmerged = Unmerged { kind: WorkKind::Candidate, commit: candidate.clone() };
    assert_eq!(scene.unmerged(Some(&candidate)), [unmerged]);
    git(&scene.project.root, ["merge", "-q", candidate.as_str()]);
    assert_eq!(scene.unmerged(Some(&candidate)), []);
    assert_eq!(scene.remove(Some(&candidate)), LeftBehind::default());
    assert_eq!(scene.refs(), "");
}

#[test]
fn changes_of_protected_files_get_a_name_before_the_workspace_goes() {
    let scene = Scene::new();
    let candidate = scene.work();
    write(scene.workspace.path(), "tests/new.rs", "a good test\n");
    git(&scene.project.root, ["merge", "-q", candidate.as_str()]);
    assert_eq!(scene.unmerged(Some(&candidate)), []);
    let own = scene.project.own();
    let preserved = own.keep_protected(&scene.remains(Some(&candidate))).unwrap().unwrap();
    assert_eq!(preserved.reference, format!("refs/towline/removed/{GOAL}/work"));
    scene.remove(Some(&candidate));
    let files = ["tests/a.rs", "tests/new.rs"].map(|path| format!("{}:{path}", preserved.reference));
    assert_eq!(files.map(|file| git(&scene.project.root, ["show", &file])), ["weakened", "a good test"]);

    let scene = Scene::new();
    write(scene.workspace.path(), "src/lib.rs", "work\n");
    assert_eq!(scene.project.own().keep_protected(&scene.remains(None)).unwrap(), None);
}

#[test]
fn work_that_was_squashed_or_rebased_is_merged_and_on_a_branch_without_it_is_not() {
    let scene = Scene::new();
    let root = &scene.project.root;
    let candidate = scene.work();
    write(root, "README.md", "the branch has moved on\n");
    commit_all(root, "meanwhile");
    assert_eq!(scene.unmerged(Some(&candidate)).len(), 1);
    git(root, ["merge", "-q", "--squash", candidate.as_str()]);
    commit_all(root, "squashed");
    assert_eq!(scene.unmerged(Some(&candidate)), []);

    git(root, ["switch", "-q", "-c", "other", "HEAD~1"]);
    assert_eq!(scene.unmerged(Some(&candidate)).len(), 1, "the branch that the user is on counts");
    git(root, ["branch", "-q", "--set-upstream-to=main"]);
    assert_eq!(scene.unmerged(Some(&candidate)), [], "and the one that it follows");
    let own = scene.project.own();
    git(root, ["switch", "-q", "--orphan", "unrelated"]);
    assert_eq!(own.unmerged(&scene.remains(Some(&candidate))).unwrap().len(), 1);
    git(root, ["commit", "-q", "--allow-empty", "-m", "nothing in common"]);
    assert_eq!(scene.unmerged(Some(&candidate)).len(), 1);
}

#[test]
fn work_on_the_goals_own_branch_is_not_merged_although_the_users_branch_follows_that() {
    let scene = Scene::new();
    let root = &scene.project.root;
    let work = scene.work();
    assert!(scene.project.own().publish_branch(GOAL, BRANCH, &work).unwrap());
    git(root, ["branch", "-q", &format!("--set-upstream-to={BRANCH}")]);
    assert_eq!(scene.unmerged(Some(&work)), [Unmerged { kind: WorkKind::Candidate, commit: work }]);
}

#[test]
fn work_that_a_rule_for_merges_would_drop_is_not_merged() {
    for (rule, mine) in [("ours", "fn mine() {}\n"), ("union", "pub fn one() -> u8 {\n    2\n}\n")] {
        let project = Project::new();
        git(&project.root, ["config", "merge.ours.driver", "true"]);
        write(&project.root, ".gitattributes", &format!("*.rs merge={rule}\n"));
        commit_all(&project.root, "a rule");
        let workspace = create(&project.repository(), &project.plan()).unwrap();
        let scene = Scene { project, workspace };
        write(scene.workspace.path(), "src/lib.rs", "pub fn one() -> u8 {\n}\n");
        let work = scene.workspace.candidate(1, &Protect::nothing()).unwrap().commit;
        write(&scene.project.root, "src/lib.rs", mine);
        commit_all(&scene.project.root, "the same file");
        let unmerged = Unmerged { kind: WorkKind::Candidate, commit: work.clone() };
        assert_eq!(scene.unmerged(Some(&work)), [unmerged], "{rule}");
        write(&scene.project.root, "src/lib.rs", "pub fn one() -> u8 {\n}\n");
        commit_all(&scene.project.root, "by hand");
        assert_eq!(scene.unmerged(Some(&work)), [], "the same bytes need no rule: {rule}");
    }
}

#[test]
fn squashed_work_that_was_reverted_is_work_again() {
    let scene = Scene::new();
    let root = &scene.project.root;
    let candidate = scene.work();
    git(root, ["merge", "-q", "--squash", candidate.as_str()]);
    commit_all(root, "squashed");
    assert_eq!(scene.unmerged(Some(&candidate)), []);
    git(root, ["revert", "--no-edit", "HEAD"]);
    assert_eq!(scene.unmerged(Some(&candidate)).len(), 1);
}

#[test]
fn work_on_uncommitted_changes_is_merged_once_the_branch_has_both_and_not_before() {
    let project = Project::new();
    let root = project.root.clone();
    write(&root, "dirty.rs", "of the user\n");
    let repository = project.repository();
    let base = repository.snapshot_dirty(Consent::WithinBounds).unwrap().base;
    let workspace = create(&repository, &WorkspacePlan { base, ..project.plan() }).unwrap();
    let scene = Scene { project, workspace };
    let candidate = scene.work();
    fs::remove_file(root.join("dirty.rs")).unwrap();
    write(&root, "src/lib.rs", "work\n");
    commit_all(&root, "only what the agent did");
    assert_eq!(scene.unmerged(Some(&candidate)).len(), 1, "the uncommitted changes are nowhere else");
    write(&root, "dirty.rs", "of the user\n");
    commit_all(&root, "and what the user did");
    assert_eq!(scene.unmerged(Some(&candidate)), []);
}

#[test]
fn files_that_were_changed_after_the_merge_are_work_again() {
    let scene = Scene::new();
    let candidate = scene.work();
    git(&scene.project.root, ["merge", "-q", candidate.as_str()]);
    write(scene.workspace.path(), "later.rs", "by hand\n");
    let unmerged = scene.unmerged(Some(&candidate));
    assert_eq!(unmerged.iter().map(|work| work.kind).collect::<Vec<_>>(), [WorkKind::Files]);
    let files = scene.project.files_of(&unmerged[0].commit);
    assert_eq!(files["later.rs"], "100644 by hand\n");
    assert_eq!(files["tests/a.rs"], "100644 weakened\n", "everything that would be deleted is in it");
}

#[test]
fn commits_of_the_agent_are_work_and_those_that_somebody_put_on_the_goals_branch_too() {
    let scene = Scene::new();
    let root = &scene.project.root;
    write(scene.workspace.path(), "one.rs", "1\n");
    let by_agent = commit_all(scene.workspace.path(), "one");
    git(root, ["switch", "-q", "-c", BRANCH]);
    write(root, "two.rs", "2\n");
    let on_branch = commit_all(root, "two");
    git(root, ["switch", "-q", "main"]);
    let expected = [(WorkKind::Files, by_agent), (WorkKind::Branch, on_branch)];
    assert_eq!(scene.unmerged(None), expected.map(|(kind, commit)| Unmerged { kind, commit }));
}

#[test]
fn what_is_preserved_outlives_the_removal_and_is_safe_from_then_on() {
    let scene = Scene::new();
    let candidate = scene.work();
    let repository = scene.project.own();
    let unmerged = scene.unmerged(Some(&candidate));
    let preserved = repository.keep_unmerged(GOAL, &unmerged).unwrap();
    let reference = format!("refs/towline/removed/{GOAL}/candidate");
    assert_eq!(preserved, [PreservedWork { reference: reference.clone(), commit: candidate.clone() }]);
    assert_eq!(scene.unmerged(Some(&candidate)), [], "a removal that was cut off can be resumed");
    scene.remove(Some(&candidate));
    assert_eq!(scene.refs(), reference);
    assert_eq!(scene.unmerged(Some(&candidate)), []);
}

#[test]
fn a_branch_that_the_user_has_checked_out_stays_and_is_named() {
    let scene = Scene::new();
    git(&scene.project.root, ["switch", "-q", "-c", BRANCH]);
    let left = scene.remove(None);
    assert_eq!(left, LeftBehind { branch_in: Some(scene.project.root.clone()), ..LeftBehind::default() });
    assert_eq!(scene.refs(), format!("refs/heads/{BRANCH}"));
}

#[test]
fn a_symlink_in_the_place_of_the_workspace_is_refused_and_what_it_leads_to_stays() {
    let scene = Scene::new();
    let (path, root) = (scene.workspace.path().to_path_buf(), &scene.project.root);
    fs::remove_dir_all(&path).unwrap();
    for target in [root.clone(), scene.project.beside("elsewhere")] {
        write(&target, "mine.txt", "mine\n");
        symlink(&target, &path).unwrap();
        let repository = scene.project.own();
        let refused = [
            repository.unmerged(&scene.remains(None)).map(|_| ()),
            repository.remove_workspace(&scene.remains(None)).map(|_| ()),
        ];
        for refused in refused {
            assert!(
                matches!(&refused, Err(WorkspaceError::Broken { path: at, .. }) if *at == path),
                "{refused:?}"
            );
        }
        assert_eq!(fs::read_to_string(target.join("mine.txt")).unwrap(), "mine\n");
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(scene.remove(None), LeftBehind::default(), "once the symlink is gone all is as ever");
}

#[test]
fn a_worktree_that_has_the_repository_in_it_is_never_removed() {
    let scene = Scene::new();
    let path = scene.workspace.path().to_path_buf();
    let moved = path.join("repo");
    let plan = scene.project.plan();
    fs::rename(&scene.project.root, &moved).unwrap();
    let own = Repository::discover(&moved).unwrap().own(&plan.own, &plan.base, &plan.settings).unwrap();
    let refused = own.remove_workspace(&scene.remains(None));
    assert!(matches!(&refused, Err(WorkspaceError::Broken { .. })), "{refused:?}");
    assert!(moved.join("src/lib.rs").exists() && moved.join(".git/HEAD").exists());
}

#[test]
fn a_directory_that_git_does_not_know_is_left_alone() {
    let scene = Scene::new();
    let path = scene.workspace.path().to_path_buf();
    scene.remove(None);
    write(&path, "somebody.txt", "else's\n");
    assert_eq!(scene.remove(None), LeftBehind { files: Some(path.clone()), ..LeftBehind::default() });
    assert_eq!(fs::read_to_string(path.join("somebody.txt")).unwrap(), "else's\n");
}

#[test]
fn a_worktree_whose_submodules_have_work_that_nobody_else_has_is_left() {
    let project = Project::new();
    let workspace = with_submodule(&project);
    let scene = Scene { project, workspace };
    let (repository, remains) = (scene.project.own(), scene.remains(None));
    let inner = scene.workspace.path().join("lib");
    assert_eq!(repository.work_in_submodules(&remains).unwrap(), strings(&[]));
    write(&inner, "notes", "in no commit\n");
    assert_eq!(repository.work_in_submodules(&remains).unwrap(), ["lib"]);
    commit_all(&inner, "in a commit that only this one has");
    assert_eq!(repository.work_in_submodules(&remains).unwrap(), ["lib"]);
    let left = scene.remove(None);
    assert_eq!((left.files.as_deref(), left.submodules), (Some(scene.workspace.path()), strings(&["lib"])));
    assert_eq!(fs::read_to_string(inner.join("notes")).unwrap(), "in no commit\n");

    git(&inner, ["push", "-q", "origin", "HEAD:refs/heads/pushed"]);
    assert_eq!(repository.work_in_submodules(&remains).unwrap(), strings(&[]));
    assert_eq!(scene.remove(None), LeftBehind::default());
    assert!(!inner.exists());
}
