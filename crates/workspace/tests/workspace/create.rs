//! Making workspaces: once, again, after a crash, side by side, and where something is in the way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use towline_workspace::{Commit, Protect, Workspace, WorkspaceError, WorkspacePlan, create, verification};

use crate::support::{
    BRANCH, GOAL, Project, State, commit_all, files_below, git, names_below, strings, write,
};

/// The commit that the clone is on.
fn head(workspace: &Workspace) -> Commit {
    Commit::new(git(workspace.path(), ["rev-parse", "HEAD"]))
}

/// What Towline has noted about the workspace.
fn note(project: &Project) -> PathBuf {
    project.plan().own.join("towline-workspace")
}

#[test]
fn a_workspace_is_a_checkout_of_the_base_on_its_own_branch() {
    let project = Project::new();
    write(&project.root, "src/lib.rs", "the user is at work\n");
    let before = State::of(&project.root);

    let workspace = project.workspace();

    assert_eq!(workspace.path(), project.plan().path);
    assert_eq!(names_below(workspace.path()), [".gitignore", "src/lib.rs", "tests/a.rs", "tests/b.rs"]);
    assert_eq!(git(workspace.path(), ["status", "--porcelain"]), "");
    assert_eq!(git(workspace.path(), ["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
    assert_eq!(head(&workspace), project.head());
    assert_eq!(project.reference("refs/heads/towline"), None);
    assert_eq!(project.reference(&format!("refs/towline/{GOAL}/base")), Some(project.head()));
    assert_eq!(State::of(&project.root), before);
}

#[test]
fn a_base_other_than_head_is_checked_out() {
    let project = Project::new();
    let first = project.head();
    write(&project.root, "later", "x");
    commit_all(&project.root, "later");
    let plan = WorkspacePlan { base: first.clone(), ..project.plan() };
    let workspace = create(&project.repository(), &plan).unwrap();
    assert_eq!(head(&workspace), first);
    assert!(!workspace.path().join("later").exists());
}

#[test]
fn making_it_again_finds_it_with_the_work_in_it() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "committed\n");
    commit_all(workspace.path(), "work");
    git(workspace.path(), ["checkout", "-q", "--detach"]);
    write(workspace.path(), "src/lib.rs", "unstaged\n");
    write(workspace.path(), "debug.log", "ignored\n");
    fs::remove_file(workspace.path().join("tests/a.rs")).unwrap();
    let before = State::of(workspace.path());

    let again = project.workspace();

    assert_eq!(again.path(), workspace.path());
    assert_eq!(State::of(workspace.path()), before);
}

#[test]
fn a_stored_workspace_opens_again_and_gives_the_same_candidate() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "new.rs", "new\n");
    let first = workspace.candidate(1, &Protect::nothing()).unwrap();

    let plan = project.plan();
    let opened = Workspace::open(&project.own(), GOAL, &plan.path, BRANCH, &plan.base).unwrap();

    assert_eq!((opened.path(), opened.branch(), opened.base()), (workspace.path(), Some(BRANCH), &plan.base));
    assert_eq!(opened.candidate(1, &Protect::nothing()).unwrap(), first);
}

#[test]
fn a_workspace_that_is_gone_does_not_open() {
    let project = Project::new();
    let workspace = project.workspace();
    let plan = project.plan();
    fs::remove_dir_all(workspace.path()).unwrap();
    let open = || Workspace::open(&project.own(), GOAL, &plan.path, BRANCH, &plan.base);
    assert!(matches!(open(), Err(WorkspaceError::Broken { .. })));
    symlink(&project.root, &plan.path).unwrap();
    assert!(matches!(open(), Err(WorkspaceError::Broken { .. })));
}

#[test]
fn a_checkout_that_was_cut_off_is_completed() {
    let project = Project::new();
    let workspace = project.workspace();
    let whole = files_below(workspace.path());
    let own = project.plan().own;
    fs::write(note(&project), "making").unwrap();
    fs::write(own.join("index.lock"), "").unwrap();
    fs::remove_file(workspace.path().join("tests/a.rs")).unwrap();
    fs::remove_file(workspace.path().join(".git/HEAD")).unwrap();
    fs::write(workspace.path().join("src/lib.rs"), "pub fn o").unwrap();

    let again = project.workspace();

    assert_eq!(files_below(again.path()), whole);
    assert_eq!(git(again.path(), ["status", "--porcelain"]), "");
    assert_eq!(fs::read(note(&project)).unwrap(), b"ready");
}

#[test]
fn a_finished_workspace_is_never_checked_out_again_whatever_happened_to_its_git_directory() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "work\n");
    fs::remove_dir_all(workspace.path().join(".git")).unwrap();
    let before = files_below(workspace.path());

    project.workspace();

    assert_eq!(files_below(workspace.path()), before);
}

#[test]
fn a_workspace_of_which_only_the_directory_was_made_is_made() {
    let project = Project::new();
    fs::create_dir_all(project.plan().path).unwrap();
    let workspace = project.workspace();
    assert_eq!(names_below(workspace.path()), [".gitignore", "src/lib.rs", "tests/a.rs", "tests/b.rs"]);
}

#[test]
fn a_directory_somebody_deleted_is_made_again_and_what_was_judged_is_preserved() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "committed", "x");
    let committed = commit_all(workspace.path(), "by the agent");
    let candidate = workspace.candidate(1, &Protect::nothing()).unwrap().commit;
    fs::remove_dir_all(workspace.path()).unwrap();

    let again = project.workspace();

    assert_eq!((head(&again), candidate.clone()), (project.head(), committed));
    assert_eq!(project.own_reference(&format!("refs/towline/{GOAL}/candidates/1")), Some(candidate));
}

#[test]
fn a_place_that_is_something_else_is_refused_and_left_alone() {
    let project = Project::new();
    let plan = project.plan();
    write(&plan.path, "precious", "mine\n");
    let refused = |plan: &WorkspacePlan| match create(&project.repository(), plan) {
        Err(WorkspaceError::PathTaken { path, .. }) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&plan), plan.path);
    assert_eq!(names_below(&plan.path), ["precious"]);
    assert_eq!(project.reference(&format!("refs/heads/{BRANCH}")), None);

    let file = WorkspacePlan { path: plan.path.join("precious"), ..plan.clone() };
    assert_eq!(refused(&file), file.path);

    let symlink_path = WorkspacePlan { path: project.beside("link"), ..plan.clone() };
    symlink(&plan.path, &symlink_path.path).unwrap();
    assert_eq!(refused(&symlink_path), symlink_path.path);
    assert_eq!(names_below(&plan.path), ["precious"]);

    let linked_tree = WorkspacePlan { path: project.beside("theirs"), ..plan };
    git(&project.root, ["worktree", "add", "-q", "-b", "theirs", linked_tree.path.to_str().unwrap()]);
    assert_eq!(refused(&linked_tree), linked_tree.path);
    let checkout = WorkspacePlan { path: project.root.clone(), ..linked_tree };
    assert_eq!(refused(&checkout), checkout.path);
}

#[test]
fn the_workspace_of_another_goal_is_refused() {
    let project = Project::new();
    project.workspace();
    let other = WorkspacePlan {
        goal: "other".to_owned(),
        branch: "towline/other".to_owned(),
        own: project.beside("workspaces/other.git"),
        ..project.plan()
    };
    let error = create(&project.repository(), &other).unwrap_err();
    assert!(matches!(error, WorkspaceError::PathTaken { .. }), "{error:?}");
}

#[test]
fn a_branch_of_the_user_with_the_goals_name_is_left_alone() {
    let project = Project::new();
    let base = project.head();
    git(&project.root, ["checkout", "-q", "-b", BRANCH]);
    write(&project.root, "theirs", "x");
    let theirs = commit_all(&project.root, "theirs");
    for is_checked_out in [true, false] {
        if !is_checked_out {
            git(&project.root, ["checkout", "-q", "main"]);
        }
        let before = State::of(&project.root);
        let plan = WorkspacePlan { base: base.clone(), ..project.plan() };
        let workspace = create(&project.repository(), &plan).unwrap();
        assert_eq!(git(workspace.path(), ["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
        assert_eq!(head(&workspace), base);
        assert_eq!(State::of(&project.root), before);
        assert_eq!(project.reference(&format!("refs/heads/{BRANCH}")), Some(theirs.clone()));
    }
}

#[test]
fn a_branch_in_place_of_the_branches_directory_is_left_alone() {
    let project = Project::new();
    git(&project.root, ["branch", "towline"]);
    let workspace = project.workspace();
    assert_eq!(git(workspace.path(), ["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
    write(workspace.path(), "work", "x");
    commit_all(workspace.path(), "a commit on that branch");
    assert_eq!(project.reference("refs/heads/towline"), Some(project.head()));
}

#[test]
fn making_it_again_does_not_move_the_ref_of_the_base() {
    let project = Project::new();
    project.workspace();
    let made_from = project.head();
    write(&project.root, "later", "x");
    commit_all(&project.root, "later");
    project.workspace();
    assert_eq!(project.reference(&format!("refs/towline/{GOAL}/base")), Some(made_from));
}

#[test]
fn unusable_names_and_bases_are_refused_before_anything_is_made() {
    let project = Project::new();
    let plan = project.plan();
    let gone = Commit::new("1".repeat(40));
    for plan in [
        WorkspacePlan { goal: "a/b".to_owned(), ..plan.clone() },
        WorkspacePlan { goal: String::new(), ..plan.clone() },
        WorkspacePlan { branch: "two words".to_owned(), ..plan.clone() },
        WorkspacePlan { branch: "-x".to_owned(), ..plan.clone() },
    ] {
        let error = create(&project.repository(), &plan).unwrap_err();
        assert!(matches!(error, WorkspaceError::BadName { .. }), "{error:?}");
    }
    let error = create(&project.repository(), &WorkspacePlan { base: gone, ..plan.clone() }).unwrap_err();
    assert!(matches!(error, WorkspaceError::CommitGone { .. }), "{error:?}");
    assert!(!plan.path.exists());
    assert_eq!(project.reference("refs/towline"), None);
}

/// Takes eight goals from workspace to verification at the same time.
fn work_side_by_side(project: &Project) {
    let goals: Vec<String> = (0..8).map(|number| format!("goal-{number}")).collect();
    let work = |goal: &String| {
        let plan = WorkspacePlan {
            goal: goal.clone(),
            branch: format!("towline/{goal}"),
            path: project.beside(goal),
            own: project.beside(&format!("{goal}.git")),
            ..project.plan()
        };
        let repository = project.repository();
        let workspace = create(&repository, &plan).unwrap();
        write(workspace.path(), "mine.rs", goal);
        let candidate = workspace.candidate(1, &Protect::nothing()).unwrap();
        let place = project.beside(&format!("verify-{goal}"));
        let own = repository.own(&plan.own, &plan.base, &plan.settings).unwrap();
        let checkout = verification(&own, &place, &candidate.commit, &[]).unwrap();
        let seen = fs::read_to_string(checkout.path().join("mine.rs")).unwrap();
        checkout.remove().unwrap();
        seen
    };
    let work = &work;
    let seen: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = goals.iter().map(|goal| scope.spawn(move || work(goal))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(seen, goals);
}

#[test]
fn many_goals_are_prepared_side_by_side() {
    let project = Project::new();
    let before = State::of(&project.root);
    work_side_by_side(&project);
    assert_eq!(State::of(&project.root), before);
}

#[test]
fn a_workspace_of_a_linked_worktree_or_a_subdirectory_works_alike() {
    let project = Project::new();
    let linked = project.beside("linked");
    git(&project.root, ["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    write(&linked, "feature.rs", "x");
    commit_all(&linked, "feature");
    let repository = towline_workspace::Repository::discover(&linked.join("src")).unwrap();
    let plan = WorkspacePlan { base: repository.resolve("HEAD").unwrap(), ..project.plan() };
    let workspace = create(&repository, &plan).unwrap();
    assert_eq!(repository.root(), linked);
    assert_eq!(
        names_below(workspace.path()),
        strings(&[".gitignore", "feature.rs", "src/lib.rs", "tests/a.rs", "tests/b.rs"])
    );
}

#[test]
fn goals_are_prepared_while_somebody_collects_garbage() {
    let project = Project::new();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                git(&project.root, ["gc", "-q", "--prune=now"]);
            }
        });
        let worked = scope.spawn(|| work_side_by_side(&project)).join();
        is_over.store(true, Ordering::Relaxed);
        worked.unwrap();
    });
}
