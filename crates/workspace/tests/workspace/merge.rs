//! A goal's work gets into a branch whole, or not at all and with nothing changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use towline_workspace::{
    Commit, Consent, MergeError, MergePlan, MergeRequest, MergeStyle, MergeWay, MergedFiles, Protect,
    UncommittedFrom, WorkspaceError, WorkspacePlan, create,
};

use crate::support::{GOAL, Project, State, commit_all, git, git_fails, strings, write};

const MESSAGE: &str = "Merge goal abcd: fix\n\nChecks passed on the candidate: tests\n";

/// A project and a commit in which a goal has changed `src/lib.rs` and added `src/new.rs`.
struct Scene {
    project: Project,
    base: Commit,
    candidate: Commit,
}

impl Scene {
    fn new() -> Self {
        let project = Project::new();
        let base = project.head();
        Self::on(project, base)
    }

    /// The goal starts from this commit.
    fn on(project: Project, base: Commit) -> Self {
        let plan = WorkspacePlan { base: base.clone(), ..project.plan() };
        let workspace = create(&project.repository(), &plan).unwrap();
        let lib = fs::read_to_string(workspace.path().join("src/lib.rs")).unwrap();
        write(workspace.path(), "src/lib.rs", &lib.replace("    1\n", "    2\n"));
        write(workspace.path(), "src/new.rs", "new\n");
        let candidate = workspace.candidate(1, &Protect::nothing()).unwrap().commit;
        project.own().publish(&candidate, &format!("refs/towline/{GOAL}/candidates/1")).unwrap();
        Self { project, base, candidate }
    }

    fn plan(&self, into: Option<&str>) -> Result<MergePlan, MergeError> {
        let (candidate, base) = (&self.candidate, &self.base);
        self.project.repository().plan_merge(&MergeRequest {
            candidate,
            base,
            into,
            message: MESSAGE,
            style: MergeStyle::FastForward,
        })
    }

    /// The user commits another file.
    fn base_moves(&self) -> Commit {
        write(&self.project.root, "other.rs", "other\n");
        commit_all(&self.project.root, "other work")
    }

    /// What was refused, after making sure that nothing has changed.
    fn refused(&self, into: Option<&str>) -> MergeError {
        let before = State::of(&self.project.root);
        let refused = self.plan(into).unwrap_err();
        assert_eq!(State::of(&self.project.root), before);
        refused
    }

    /// Has the user's own hook do this after each merge.
    fn after_merges(&self, script: &str) {
        let hook = self.project.root.join(".git/hooks/post-merge");
        write(&self.project.root, ".git/hooks/post-merge", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.root.join(name)).unwrap()
    }

    fn status(&self) -> String {
        git(&self.project.root, ["status", "--porcelain"])
    }
}

#[test]
fn a_tag_with_the_name_of_the_branch_is_not_mistaken_for_it() {
    let scene = Scene::new();
    git(&scene.project.root, ["tag", "main"]);
    for into in [None, Some("main")] {
        let merged = scene.plan(into).unwrap().carry_out().unwrap();
        assert_eq!(
            (merged, scene.project.reference("refs/heads/main")),
            (scene.candidate.clone(), Some(scene.candidate.clone()))
        );
    }
    assert_eq!(scene.project.reference("refs/tags/main"), Some(scene.base.clone()));
}

#[test]
fn a_branch_that_has_not_moved_is_forwarded_to_the_very_commit() {
    let scene = Scene::new();
    let before = State::of(&scene.project.root);
    let mut plan = scene.plan(None).unwrap();
    assert_eq!(State::of(&scene.project.root), before, "planning changes nothing");
    assert_eq!((plan.way, plan.files), (MergeWay::FastForward, MergedFiles::AsInCandidate));
    assert_eq!(
        (&plan.into[..], &plan.before, &plan.after),
        ("main", &scene.base, &Some(scene.candidate.clone()))
    );
    assert_eq!(plan.changed, strings(&["src/lib.rs", "src/new.rs"]));
    assert_eq!(plan.checkout(), Some(scene.project.root.as_path()));
    plan.carry_out().unwrap();
    assert_eq!(scene.project.head(), scene.candidate);
    assert_eq!((scene.status(), scene.read("src/new.rs")), (String::new(), "new\n".to_owned()));
}

#[test]
fn a_branch_that_has_moved_gets_a_merge_commit_of_the_user() {
    let scene = Scene::new();
    let moved = scene.base_moves();
    for (key, value) in [("user.name", "A User"), ("user.email", "user@example.org")] {
        git(&scene.project.root, ["config", key, value]);
    }
    let mut plan = scene.plan(None).unwrap();
    assert_eq!((plan.way, plan.files), (MergeWay::MergeCommit, MergedFiles::Mixed));
    assert_eq!(scene.project.head(), moved, "the branch has not moved yet");
    assert_eq!(plan.carry_out().unwrap(), scene.project.head());
    let about = git(&scene.project.root, ["log", "-1", "--format=%P|%an <%ae>|%cn|%B"]);
    let parents = format!("{moved} {}", scene.candidate);
    assert_eq!(about, format!("{parents}|A User <user@example.org>|A User|{}", MESSAGE.trim_end()));
    assert_eq!((scene.status(), scene.read("other.rs")), (String::new(), "other\n".to_owned()));
    assert!(scene.read("src/lib.rs").contains("    2\n"));
}

#[test]
fn a_user_without_a_configured_name_still_gets_the_merge() {
    let scene = Scene::new();
    scene.base_moves();
    git(&scene.project.root, ["config", "user.useConfigOnly", "true"]);
    let mut plan = scene.plan(None).unwrap();
    assert_eq!(plan.carry_out().unwrap(), scene.project.head());
}

#[test]
fn conflicts_are_named_and_the_checkout_is_as_it_was() {
    let scene = Scene::new();
    write(&scene.project.root, "src/lib.rs", "pub fn one() -> u8 {\n    3\n}\n");
    write(&scene.project.root, "src/new.rs", "mine\n");
    commit_all(&scene.project.root, "the same places");
    match scene.refused(None) {
        MergeError::Conflicts { into, files } => {
            assert_eq!((into.as_str(), files), ("main", strings(&["src/lib.rs", "src/new.rs"])));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn uncommitted_files_that_the_merge_does_not_touch_stay_as_they_are() {
    for moves in [false, true] {
        let scene = Scene::new();
        if moves {
            scene.base_moves();
        }
        let root = &scene.project.root;
        write(root, "tests/a.rs", "unstaged\n");
        write(root, "tests/b.rs", "staged\n");
        git(root, ["add", "tests/b.rs"]);
        write(root, "notes.txt", "untracked\n");
        let before = scene.status();
        scene.plan(None).unwrap().carry_out().unwrap();
        assert_eq!(scene.status(), before);
        assert_eq!(scene.read("tests/a.rs"), "unstaged\n");
        assert_eq!(scene.read("src/new.rs"), "new\n");
    }
}

#[test]
fn files_in_no_commit_that_would_be_written_over_are_named() {
    let cases: [(&str, &str); 3] =
        [("src/lib.rs", "changed\n"), ("src/new.rs", "untracked\n"), ("src/new.rs/deep", "in the way\n")];
    for (name, text) in cases {
        let scene = Scene::new();
        write(&scene.project.root, name, text);
        match scene.refused(None) {
            MergeError::InTheWay { files, origin, .. } => {
                assert_eq!(origin, UncommittedFrom::Elsewhere);
                assert!(files.contains(&name.to_owned()), "{files:?}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(scene.read(name), text);
    }
}

#[test]
fn an_ignored_file_is_not_written_over_either() {
    let scene = Scene::new();
    write(&scene.project.root, ".git/info/exclude", "src/new.rs\n");
    write(&scene.project.root, "src/new.rs", "precious\n");
    match scene.refused(None) {
        MergeError::InTheWay { files, .. } => assert_eq!(files, strings(&["src/new.rs"])),
        other => panic!("{other}"),
    }
    assert_eq!(scene.read("src/new.rs"), "precious\n");
}

#[test]
fn a_checkout_on_no_branch_is_refused() {
    let scene = Scene::new();
    git(&scene.project.root, ["switch", "-q", "--detach"]);
    assert!(matches!(scene.refused(None), MergeError::Detached { .. }));
}

#[test]
fn a_checkout_in_the_middle_of_something_is_refused_with_the_way_out() {
    let scene = Scene::new();
    let root = &scene.project.root;
    git(root, ["switch", "-q", "-c", "side"]);
    write(root, "tests/a.rs", "side\n");
    commit_all(root, "side");
    git(root, ["switch", "-q", "main"]);
    write(root, "tests/a.rs", "main\n");
    commit_all(root, "main");
    for (command, what, over) in [
        (vec!["merge", "side"], "a merge", vec!["merge", "--abort"]),
        (vec!["rebase", "side"], "a rebase", vec!["rebase", "--abort"]),
        (vec!["cherry-pick", "side"], "a cherry-pick", vec!["cherry-pick", "--abort"]),
        (vec!["revert", "side~0", "--no-edit"], "a revert", vec!["revert", "--abort"]),
    ] {
        git_fails(root, command);
        match scene.plan(None) {
            Err(MergeError::Unfinished { what: found, way_out, .. }) => {
                assert_eq!(found, what);
                assert!(way_out.contains("--abort"), "{way_out}");
            }
            other => panic!("{what}: {other:?}"),
        }
        git(root, over);
    }
    assert!(scene.plan(None).is_ok());
}

#[test]
fn a_conflict_of_a_stash_is_refused() {
    let scene = Scene::new();
    let root = &scene.project.root;
    write(root, "tests/a.rs", "stashed\n");
    git(root, ["stash", "-q"]);
    write(root, "tests/a.rs", "committed\n");
    commit_all(root, "the same place");
    git_fails(root, ["stash", "pop", "-q"]);
    match scene.refused(None) {
        MergeError::Unfinished { what, .. } => assert_eq!(what, "a conflict that is not resolved"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_branch_without_the_base_is_refused_unless_it_is_named() {
    let scene = Scene::new();
    let root = &scene.project.root;
    git(root, ["switch", "-q", "--orphan", "pages"]);
    write(root, "index.html", "hello\n");
    commit_all(root, "pages");
    match scene.refused(None) {
        MergeError::OtherBranch { into, base, holding } => {
            assert_eq!((into.as_str(), base), ("pages", scene.base.to_string()));
            assert_eq!(holding, strings(&["main"]));
        }
        other => panic!("{other}"),
    }
    let mut plan = scene.plan(Some("main")).unwrap();
    assert_eq!((plan.way, plan.checkout()), (MergeWay::FastForward, None));
    let before = State::of(root).head().to_owned();
    plan.carry_out().unwrap();
    assert_eq!(scene.project.reference("refs/heads/main"), Some(scene.candidate.clone()));
    assert_eq!((State::of(root).head(), scene.status()), (before.as_str(), String::new()));
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_merged_there() {
    let scene = Scene::new();
    let root = &scene.project.root;
    let elsewhere = scene.project.beside("elsewhere");
    git(root, ["switch", "-q", "-c", "side"]);
    git(root, ["worktree", "add", "-q", elsewhere.to_str().unwrap(), "main"]);
    let mut plan = scene.plan(Some("main")).unwrap();
    assert_eq!(plan.checkout(), Some(elsewhere.as_path()));
    plan.carry_out().unwrap();
    assert_eq!(git(&elsewhere, ["rev-parse", "HEAD"]), scene.candidate.as_str());
    assert_eq!(git(&elsewhere, ["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(elsewhere.join("src/new.rs")).unwrap(), "new\n");
    assert_eq!((scene.project.head(), scene.status()), (scene.base.clone(), String::new()));
}

#[test]
fn a_branch_that_does_not_exist_is_refused() {
    let scene = Scene::new();
    assert!(matches!(scene.refused(Some("nope")), MergeError::NoSuchBranch { .. }));
}

#[test]
fn work_that_the_branch_has_is_found_there_however_it_got_there() {
    let scene = Scene::new();
    scene.plan(None).unwrap().carry_out().unwrap();
    assert_eq!(scene.plan(None).unwrap().way, MergeWay::AlreadyThere);
    scene.base_moves();
    let mut again = scene.plan(None).unwrap();
    assert_eq!((again.way, again.changed.len()), (MergeWay::AlreadyThere, 0));
    again.carry_out().unwrap();

    let squashed = Scene::new();
    let root = &squashed.project.root;
    git(root, ["merge", "-q", "--squash", squashed.candidate.as_str()]);
    let head = commit_all(root, "squashed");
    let plan = squashed.plan(None).unwrap();
    assert_eq!((plan.way, &plan.after), (MergeWay::AlreadyThere, &Some(head)));
}

#[test]
fn a_candidate_that_is_gone_is_named() {
    let scene = Scene::new();
    let gone = Commit::new("1".repeat(40));
    let request = MergeRequest {
        candidate: &gone,
        base: &scene.base,
        into: None,
        message: MESSAGE,
        style: MergeStyle::FastForward,
    };
    match scene.project.repository().plan_merge(&request) {
        Err(MergeError::Workspace(WorkspaceError::CommitGone { commit, .. })) => {
            assert_eq!(commit, gone.to_string());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_branch_that_moves_after_the_plan_is_left_alone() {
    let scene = Scene::new();
    let mut plan = scene.plan(None).unwrap();
    scene.base_moves();
    let before = State::of(&scene.project.root);
    assert!(matches!(plan.carry_out(), Err(MergeError::Moved { .. })));
    assert_eq!(State::of(&scene.project.root), before);
    git(&scene.project.root, ["reset", "-q", "--hard", scene.base.as_str()]);
    git(&scene.project.root, ["switch", "-q", "-c", "side"]);
    assert!(matches!(plan.carry_out(), Err(MergeError::Moved { .. })), "another branch is checked out");
}

#[test]
fn a_branch_that_is_checked_out_after_the_plan_is_left_alone() {
    let scene = Scene::new();
    let root = &scene.project.root;
    git(root, ["switch", "-q", "-c", "side"]);
    let mut plan = scene.plan(Some("main")).unwrap();
    assert_eq!(plan.checkout(), None);
    git(root, ["switch", "-q", "main"]);
    let before = State::of(root);
    assert!(matches!(plan.carry_out(), Err(MergeError::Moved { .. })));
    assert_eq!((State::of(root), scene.status()), (before, String::new()));
}

#[test]
fn a_branch_that_is_rebased_or_bisected_anywhere_is_refused_before_and_after_the_plan() {
    for (begin, what, over) in [
        (vec!["rebase", "side"], "a rebase of it", vec!["rebase", "--abort"]),
        (vec!["rebase", "--apply", "side"], "a rebase of it", vec!["rebase", "--abort"]),
        (vec!["bisect", "start", "main", "main~2"], "a bisection of it", vec!["bisect", "reset"]),
    ] {
        let scene = Scene::new();
        let root = &scene.project.root;
        git(root, ["switch", "-q", "-c", "side"]);
        write(root, "tests/a.rs", "side\n");
        commit_all(root, "side");
        let elsewhere = scene.project.beside("elsewhere");
        git(root, ["worktree", "add", "-q", elsewhere.to_str().unwrap(), "main"]);
        for text in ["main\n", "main again\n"] {
            write(&elsewhere, "tests/a.rs", text);
            commit_all(&elsewhere, text);
        }
        git(&elsewhere, ["switch", "-q", "--detach"]);
        let mut plan = scene.plan(Some("main")).unwrap();
        git(&elsewhere, ["switch", "-q", "main"]);
        match begin[0] {
            "rebase" => git_fails(&elsewhere, begin),
            _ => drop(git(&elsewhere, begin)),
        };
        let before = State::of(root);
        for refused in [plan.carry_out().unwrap_err(), scene.refused(Some("main"))] {
            match refused {
                MergeError::InUse { branch, root, what: found, .. } => {
                    assert_eq!((branch.as_str(), root, found), ("main", elsewhere.clone(), what));
                }
                other => panic!("{what}: {other}"),
            }
        }
        assert_eq!(State::of(root), before);
        git(&elsewhere, over);
        assert!(scene.plan(Some("main")).is_ok());
    }
}

#[test]
fn hooks_of_the_user_run_as_for_a_merge_of_theirs() {
    let scene = Scene::new();
    scene.after_merges("git rev-parse HEAD > hooked.log");
    scene.plan(None).unwrap().carry_out().unwrap();
    assert_eq!(scene.read("hooked.log").trim_end(), scene.candidate.as_str());
}

#[test]
fn hooks_that_the_merge_changes_do_not_run() {
    for (folder, hook) in [(".githooks", ".githooks/post-merge"), (".husky/_", ".husky/post-merge")] {
        let project = Project::new();
        let runner = format!("{folder}/post-merge");
        write(&project.root, &runner, &format!("#!/bin/sh\n. ./{hook}\n"));
        fs::set_permissions(project.root.join(&runner), fs::Permissions::from_mode(0o755)).unwrap();
        let base = commit_all(&project.root, "hooks");
        git(&project.root, ["config", "core.hooksPath", folder]);
        let workspace = project.workspace();
        write(workspace.path(), hook, "#!/bin/sh\ntouch agents.log\n");
        let candidate = workspace.candidate(1, &Protect::nothing()).unwrap().commit;
        project.own().publish(&candidate, &format!("refs/towline/{GOAL}/candidates/1")).unwrap();
        let scene = Scene { project, base, candidate };
        let mut plan = scene.plan(None).unwrap();
        assert_eq!(plan.changed_hooks().unwrap(), strings(&[hook]));
        plan.carry_out().unwrap();
        assert!(scene.project.root.join(hook).exists() && !scene.project.root.join("agents.log").exists());
    }
    let scene = Scene::new();
    assert_eq!(scene.plan(None).unwrap().changed_hooks().unwrap(), Vec::<String>::new());
}

#[test]
fn only_a_merge_that_is_meant_is_signed_and_once() {
    let scene = Scene::new();
    scene.base_moves();
    let signer = scene.project.beside("signer");
    let signatures = scene.project.beside("signatures");
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho signed >> '{}'\necho '[GNUPG:] SIG_CREATED ' >&2\necho SIGNATURE\n",
        signatures.display()
    );
    fs::write(&signer, script).unwrap();
    fs::set_permissions(&signer, fs::Permissions::from_mode(0o755)).unwrap();
    for (key, value) in [("commit.gpgSign", "true"), ("gpg.program", signer.to_str().unwrap())] {
        git(&scene.project.root, ["config", key, value]);
    }
    let mut plan = scene.plan(None).unwrap();
    assert_eq!((plan.way, &plan.after, signatures.exists()), (MergeWay::MergeCommit, &None, false));
    let commit = plan.commit().unwrap();
    assert_eq!((plan.carry_out().unwrap(), scene.project.head()), (commit.clone(), commit));
    assert_eq!(fs::read_to_string(&signatures).unwrap(), "signed\n");
    assert!(git(&scene.project.root, ["cat-file", "commit", "HEAD"]).contains("SIGNATURE"));
}

#[test]
fn a_hook_that_leaves_something_running_does_not_hold_up_the_merge() {
    let scene = Scene::new();
    let lock = scene.project.beside("lock");
    fs::write(&lock, "").unwrap();
    let held = fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    scene.after_merges(&format!("flock --timeout 300 '{}' true &", lock.display()));
    scene.plan(None).unwrap().carry_out().unwrap();
    assert_eq!(scene.project.head(), scene.candidate);
    // What the hook has left comes to its end with this.
    held.unlock().unwrap();
}

#[test]
fn a_hook_that_commits_on_top_or_fails_or_leaves_the_branch_does_not_undo_the_merge() {
    for script in ["git commit --quiet --allow-empty -m hooked", "exit 1", "git switch --quiet -c elsewhere"]
    {
        let scene = Scene::new();
        for (key, value) in [("user.name", "A User"), ("user.email", "user@example.org")] {
            git(&scene.project.root, ["config", key, value]);
        }
        scene.after_merges(script);
        scene.plan(None).unwrap().carry_out().unwrap();
        assert_eq!(scene.plan(Some("main")).unwrap().way, MergeWay::AlreadyThere, "{script}");
    }
}

#[test]
fn settings_that_would_change_what_a_merge_does_do_not_count() {
    let scene = Scene::new();
    for (key, value) in [
        ("merge.ff", "false"),
        ("merge.autoStash", "true"),
        ("branch.main.mergeOptions", "--squash"),
        ("commit.gpgSign", "false"),
    ] {
        git(&scene.project.root, ["config", key, value]);
    }
    scene.plan(None).unwrap().carry_out().unwrap();
    assert_eq!(scene.project.head(), scene.candidate);
}

/// A goal that started from uncommitted changes: one in the lines that the agent changes, too, and a new file.
fn with_dirty_base() -> Scene {
    let project = Project::new();
    write(&project.root, "src/lib.rs", "pub fn one() -> u8 {\n    // hello\n    1\n}\n");
    write(&project.root, "fresh.rs", "fresh\n");
    let base = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap().base;
    Scene::on(project, base)
}

#[test]
fn uncommitted_changes_that_the_goal_started_from_are_to_be_committed_first() {
    let scene = with_dirty_base();
    match scene.refused(None) {
        MergeError::InTheWay { files, origin, .. } => {
            assert_eq!((files, origin), (strings(&["fresh.rs", "src/lib.rs"]), UncommittedFrom::GoalsStart));
        }
        other => panic!("{other}"),
    }
    let committed = commit_all(&scene.project.root, "my changes");
    let mut plan = scene.plan(None).unwrap();
    assert_eq!((plan.way, plan.files), (MergeWay::MergeCommit, MergedFiles::AsInCandidate));
    plan.carry_out().unwrap();
    assert!(scene.read("src/lib.rs").contains("    // hello\n    2\n"));
    let parents = git(&scene.project.root, ["log", "-1", "--format=%P"]);
    assert_eq!(parents, format!("{committed} {}", scene.candidate));
}

#[test]
fn uncommitted_changes_that_the_user_threw_away_come_back_with_the_work_that_builds_on_them() {
    let scene = with_dirty_base();
    git(&scene.project.root, ["stash", "-q", "-u"]);
    let mut plan = scene.plan(None).unwrap();
    assert_eq!((plan.way, plan.files), (MergeWay::FastForward, MergedFiles::AsInCandidate));
    plan.carry_out().unwrap();
    assert!(scene.read("src/lib.rs").contains("    // hello\n    2\n"));
    assert_eq!(scene.read("fresh.rs"), "fresh\n");
}

#[test]
fn work_is_compared_with_the_branch_that_is_checked_out() {
    let scene = Scene::new();
    let compare =
        || scene.project.repository().divergence(&scene.candidate, &scene.base).unwrap().expect("a branch");
    let alone = compare();
    assert_eq!((alone.into.as_str(), alone.ahead, alone.behind), ("main", 1, 0));
    scene.base_moves();
    let beside = compare();
    assert_eq!((beside.ahead, beside.behind, beside.conflicts), (1, 1, Vec::new()));
    write(&scene.project.root, "src/new.rs", "the user's own\n");
    commit_all(&scene.project.root, "the same file");
    let before = State::of(&scene.project.root);
    let conflicting = compare();
    assert_eq!((conflicting.ahead, conflicting.behind), (1, 2));
    assert_eq!(conflicting.conflicts, ["src/new.rs"]);
    assert_eq!(State::of(&scene.project.root), before);
    git(&scene.project.root, ["checkout", "-q", "--detach"]);
    assert_eq!(scene.project.repository().divergence(&scene.candidate, &scene.base).unwrap(), None);
}
