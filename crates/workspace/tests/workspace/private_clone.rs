//! An agent's clone is a clone like any other to work in, and the user's repository is out of its reach.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use towline_workspace::{Protect, Workspace};

use crate::support::{BRANCH, GOAL, Project, State, commit_all, git, git_data, git_fails, write};

/// A project with a remote `origin` that has one more commit on `main` than the project.
fn with_remote() -> Project {
    let project = Project::new();
    let remote = project.beside("remote.git");
    git(&project.root, ["tag", "-a", "v1.0", "-m", "first"]);
    git(&project.root, ["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    git(&project.root, ["remote", "add", "origin", remote.to_str().unwrap()]);
    git(&project.root, ["fetch", "-q", "origin"]);
    git(&project.root, ["branch", "-q", "--set-upstream-to=origin/main"]);
    let other = project.beside("other");
    git(&project.root, ["clone", "-q", remote.to_str().unwrap(), other.to_str().unwrap()]);
    write(&other, "later.rs", "later\n");
    commit_all(&other, "later");
    git(&other, ["push", "-q", "origin", "main"]);
    project
}

fn add_hook(git_dir: &Path, name: &str) {
    write(git_dir, format!("hooks/{name}"), "#!/bin/sh\necho hooked >> \"$HOME/hooked\"\nexit 1\n");
    fs::set_permissions(git_dir.join("hooks").join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn nothing_that_an_agent_does_with_git_in_its_workspace_reaches_the_users_repository() {
    let project = with_remote();
    write(&project.root, "stashed.rs", "of the user\n");
    git(&project.root, ["stash", "-q", "-u"]);
    let workspace = project.workspace();
    let remote = git_data(&project.beside("remote.git"));
    let before = (State::of(&project.root), git_data(&project.root.join(".git")));

    let path = workspace.path();
    for (key, value) in [
        ("user.name", "An Agent"),
        ("core.bare", "true"),
        ("core.hooksPath", "/tmp"),
        ("extensions.worktreeConfig", "true"),
    ] {
        git(path, ["config", key, value]);
        git(path, ["config", "--unset", key]);
    }
    git(path, ["config", "user.name", "An Agent"]);
    write(path, "src/lib.rs", "stashed by the agent\n");
    git(path, ["stash", "-q"]);
    git(path, ["branch", "-q", "-f", "main"]);
    git(path, ["branch", "-q", "mine"]);
    git(path, ["tag", "-f", "v1.0", "-m", "moved"]);
    git(path, ["update-ref", "refs/remotes/origin/main", "HEAD"]);
    add_hook(&path.join(".git"), "pre-merge-commit");
    git(path, ["worktree", "add", "-q", "-b", "side", "../side"]);
    write(path, "work.rs", "work\n");
    let work = commit_all(path, "work");
    for target in ["origin", "v1.0"] {
        git_fails(path, ["push", "-q", target, "HEAD:refs/heads/pushed"]);
    }
    git_fails(path, ["push", "--all"]);
    git(path, ["reflog", "expire", "--expire=now", "--all"]);
    git(path, ["gc", "-q", "--prune=now"]);

    assert_eq!((State::of(&project.root), git_data(&project.root.join(".git"))), before);
    assert_eq!(git_data(&project.beside("remote.git")), remote);
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(made.commit, work);
    assert_eq!((State::of(&project.root), git_data(&project.root.join(".git"))), before);
    git(&project.root, ["fsck", "--strict", "--no-progress"]);
}

#[test]
fn history_blame_names_and_remotes_are_those_of_a_normal_clone() {
    let project = with_remote();
    let workspace = project.workspace();
    let path = workspace.path();
    assert_eq!(git(path, ["log", "--format=%s"]), "start");
    assert!(git(path, ["blame", "src/lib.rs"]).contains("Someone"));
    assert_eq!(git(path, ["describe", "--always"]), "v1.0");
    assert_eq!(git(path, ["branch", "--format=%(refname:short)"]), format!("main\n{BRANCH}"));
    assert_eq!(git(path, ["rev-parse", "--abbrev-ref", "main@{upstream}"]), "origin/main");
    assert_eq!(git(path, ["log", "--format=%s", "origin/main"]), "start");
    git(path, ["fetch", "-q", "origin"]);
    assert_eq!(git(path, ["log", "-1", "--format=%s", "origin/main"]), "later");
    assert_eq!(git(&project.root, ["log", "-1", "--format=%s", "origin/main"]), "start");
    git(path, ["rebase", "-q", "origin/main"]);
    git(path, ["fsck", "--strict", "--no-progress"]);
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(project.files_of(&made.commit)["later.rs"], "100644 later\n");
}

#[test]
fn a_remote_that_is_the_users_repository_itself_is_not_in_the_clone() {
    let project = Project::new();
    let linked = project.beside("linked");
    git(&project.root, ["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    let own = project.root.to_str().unwrap().to_owned();
    let git_dir = project.root.join(".git");
    for (name, url) in [
        ("plain", own.clone()),
        ("git-dir", git_dir.to_str().unwrap().to_owned()),
        ("file", format!("file://{own}")),
        ("here", ".".to_owned()),
        ("relative", "../repo".to_owned()),
        ("elsewhere", "../other.git".to_owned()),
        ("nearby", "other.git".to_owned()),
    ] {
        git(&project.root, ["remote", "add", name, &url]);
    }
    let expected = [("elsewhere", project.beside("other.git")), ("nearby", project.root.join("other.git"))];
    for directory in [&project.beside("other.git"), &project.root.join("other.git")] {
        git(&project.root, ["init", "-q", "--bare", directory.to_str().unwrap()]);
    }
    let expected = expected.map(|(name, path)| format!("{name} {}", path.display()));
    let workspace = project.workspace();
    let remotes = |path: &Path| {
        let names = git(path, ["remote"]);
        let urls = names
            .lines()
            .map(|name| format!("{name} {}", git(path, ["config", &format!("remote.{name}.url")])));
        urls.collect::<Vec<String>>()
    };
    assert_eq!(remotes(workspace.path()), expected);
    let project = project.with_root(linked);
    fs::remove_dir_all(project.beside("workspaces")).unwrap();
    let workspace = project.workspace();
    assert_eq!(remotes(workspace.path())[..1], expected[..1]);
}

#[test]
fn hooks_and_programs_in_the_users_configuration_are_not_in_the_clone() {
    let project = Project::new();
    add_hook(&project.root.join(".git"), "pre-commit");
    for (key, value) in [
        ("core.hooksPath", "hooks"),
        ("core.fsmonitor", "/bin/false"),
        ("core.sshCommand", "/bin/false"),
        ("alias.status", "!false"),
        ("merge.mine.driver", "/bin/false"),
        ("commit.gpgSign", "true"),
        ("gpg.program", "/bin/false"),
        ("user.name", "A User"),
        ("user.email", "user@example.org"),
        ("core.worktree", "/elsewhere"),
    ] {
        git(&project.root, ["config", key, value]);
    }
    git(&project.root, ["config", "--unset", "core.worktree"]);
    let workspace = project.workspace();
    let path = workspace.path();
    assert!(!path.join(".git/hooks").exists());
    let settings = git(path, ["config", "--local", "--list", "--name-only"]);
    let names: Vec<&str> = settings.lines().collect();
    for left_out in [
        "core.hookspath",
        "core.fsmonitor",
        "core.sshcommand",
        "alias.status",
        "merge.mine.driver",
        "gpg.program",
    ] {
        assert!(!names.contains(&left_out), "{settings}");
    }
    assert_eq!(git(path, ["config", "user.name"]), "A User");
    write(path, "work.rs", "work\n");
    commit_all(path, "neither hooked nor signed");
}

#[test]
fn a_branch_is_published_once_and_one_of_the_user_never_moves() {
    let project = Project::new();
    let workspace = project.workspace();
    let candidate = |n: u32| {
        write(workspace.path(), "work.rs", &format!("{n}\n"));
        workspace.candidate(n, &Protect::nothing()).unwrap().commit
    };
    let branch = format!("refs/heads/{BRANCH}");
    let own = project.own();
    let publish = |commit| own.publish_branch(GOAL, BRANCH, commit).unwrap();
    let [first, second, third] = [1, 2, 3].map(candidate);
    assert!(publish(&first) && publish(&first));
    assert_eq!(project.reference(&branch), Some(first.clone()));
    assert!(publish(&second));
    assert_eq!(project.reference(&branch), Some(second.clone()));

    git(&project.root, ["branch", "-f", BRANCH, first.as_str()]);
    assert!(!publish(&third), "somebody has moved it");
    assert_eq!(project.reference(&branch), Some(first.clone()));
    assert_eq!(project.reference(&format!("refs/towline/{GOAL}/published")), Some(third.clone()));

    git(&project.root, ["branch", "-f", BRANCH, third.as_str()]);
    git(&project.root, ["switch", "-q", BRANCH]);
    assert!(publish(&third));
    let before = State::of(&project.root);
    assert!(!publish(&second), "it is checked out");
    assert_eq!(State::of(&project.root), before);

    git(&project.root, ["switch", "-q", "main"]);
    git(&project.root, ["branch", "-q", "-D", BRANCH]);
    git(&project.root, ["branch", "-q", "towline"]);
    assert!(!publish(&second), "a branch is in the way");
    assert_eq!(project.reference("refs/heads/towline"), Some(project.head()));
}

#[test]
fn a_branch_of_ours_stays_ours_after_a_crash_and_after_a_merge() {
    let project = Project::new();
    let workspace = project.workspace();
    let own = project.own();
    for n in 1..=3 {
        write(workspace.path(), "work.rs", &format!("{n}\n"));
        let commit = workspace.candidate(n, &Protect::nothing()).unwrap().commit;
        // All that a merge does before it moves the user's branch, and as far as a publication came before a crash.
        own.publish(&commit, &format!("refs/towline/{GOAL}/published")).unwrap();
        if n != 2 {
            assert!(own.publish_branch(GOAL, BRANCH, &commit).unwrap());
            assert_eq!(project.reference(&format!("refs/heads/{BRANCH}")), Some(commit));
        }
    }
}

#[test]
fn refs_whose_objects_the_user_has_deleted_are_removed_and_all_others_stay() {
    let project = with_remote();
    git(&project.root, ["switch", "-q", "-c", "short-lived"]);
    write(&project.root, "experiment.rs", "x\n");
    commit_all(&project.root, "experiment");
    git(&project.root, ["switch", "-q", "main"]);
    let workspace = project.workspace();
    let path = workspace.path();
    git(path, ["branch", "-q", "mine"]);
    git(path, ["pack-refs", "--all"]);
    git(&project.root, ["branch", "-q", "-D", "short-lived"]);
    collect_garbage(&project.root);
    git_fails(path, ["log", "--all"]);
    workspace.repair_clone().unwrap();
    assert_eq!(git(path, ["branch", "--format=%(refname:short)"]), format!("main\nmine\n{BRANCH}"));
    git(path, ["log", "--all"]);
    git(path, ["fetch", "-q", "origin"]);
}

#[test]
fn refs_of_the_agent_stay_when_others_are_removed() {
    let project = with_remote();
    git(&project.root, ["switch", "-q", "-c", "short-lived"]);
    write(&project.root, "experiment.rs", "x\n");
    commit_all(&project.root, "experiment");
    git(&project.root, ["tag", "-m", "a tag with an object of its own", "experiment"]);
    git(&project.root, ["switch", "-q", "main"]);
    let workspace = project.workspace();
    let path = workspace.path();
    for change in ["committed", "stashed"] {
        write(path, "work.rs", change);
        git(path, ["add", "-A"]);
        match change {
            "committed" => git(path, ["commit", "-q", "-m", change]),
            _ => git(path, ["stash", "push", "-q"]),
        };
    }
    git(path, ["tag", "-m", "the agent's", "v1"]);
    git(path, ["switch", "-q", "-c", "side"]);
    collect_garbage(path);
    let all = git(path, ["for-each-ref"]);
    workspace.repair_clone().unwrap();
    assert_eq!(git(path, ["for-each-ref"]), all);

    git(&project.root, ["tag", "-d", "experiment"]);
    git(&project.root, ["branch", "-q", "-D", "short-lived"]);
    collect_garbage(&project.root);
    workspace.repair_clone().unwrap();
    let left: Vec<&str> = all
        .lines()
        .filter(|line| !line.ends_with("refs/tags/experiment") && !line.ends_with("refs/heads/short-lived"))
        .collect();
    assert_eq!(git(path, ["for-each-ref"]), left.join("\n"));
    git(path, ["log", "--all"]);
}

/// What the user may do at any time.
pub(crate) fn collect_garbage(root: &Path) {
    git(root, ["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"]);
    git(root, ["gc", "-q", "--prune=now"]);
}

#[test]
fn collecting_garbage_in_the_users_repository_loses_nothing_of_a_goal() {
    let project = Project::new();
    git(&project.root, ["switch", "-q", "-c", "side"]);
    write(&project.root, "base.rs", "only on this branch\n");
    commit_all(&project.root, "the base of the goal");
    let plan = project.plan();
    let workspace = project.workspace();
    git(&project.root, ["switch", "-q", "main"]);
    git(&project.root, ["branch", "-q", "-D", "side"]);
    let own = project.repository().own(&plan.own, &plan.base, &plan.settings).unwrap();
    let check = |workspace: &Workspace, n: u32| {
        collect_garbage(&project.root);
        let made = workspace.candidate(n, &Protect::nothing()).unwrap();
        let place = project.beside("verify");
        let checkout = towline_workspace::verification(&own, &place, &made.commit, &[]).unwrap();
        assert_eq!(fs::read_to_string(place.join("base.rs")).unwrap(), "only on this branch\n");
        checkout.remove().unwrap();
        collect_garbage(&project.root);
        assert_eq!(own.diff_stat(workspace.base(), &made.commit).unwrap(), workspace.diff_stat().unwrap());
        made.commit
    };
    check(&workspace, 1);
    write(workspace.path(), "work.rs", "committed\n");
    commit_all(workspace.path(), "work");
    write(workspace.path(), "more.rs", "uncommitted\n");
    let last = check(&workspace, 2);
    // After the goal has ended, too.
    assert!(own.publish_branch(GOAL, BRANCH, &last).unwrap());
    check(&workspace, 2);
    let files = git(&project.root, ["ls-tree", "-r", "--name-only", BRANCH]);
    let files: Vec<&str> = files.lines().filter(|name| name.ends_with(".rs")).collect();
    assert_eq!(files, ["base.rs", "more.rs", "src/lib.rs", "tests/a.rs", "tests/b.rs", "work.rs"]);
}

/// Work that the user had in a commit once, and has given up: its objects are there, and no ref has them.
fn given_up(root: &Path, name: &str, text: &str) {
    write(root, name, text);
    commit_all(root, "given up");
    git(root, ["reset", "-q", "--hard", "HEAD~1"]);
}

#[test]
fn work_that_the_user_once_had_is_stored_before_they_collect_it() {
    let project = Project::new();
    given_up(&project.root, "work.rs", "the same\n");
    let workspace = project.workspace();
    write(workspace.path(), "work.rs", "the same\n");
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    collect_garbage(&project.root);
    assert_eq!(project.files_of(&made.commit)["work.rs"], "100644 the same\n");
}

#[test]
fn commits_with_what_the_user_once_had_stay_whole_in_the_clone() {
    let project = Project::new();
    given_up(&project.root, "work.rs", "the same\n");
    let workspace = project.workspace();
    write(workspace.path(), "work.rs", "the same\n");
    let commit = commit_all(workspace.path(), "work");
    assert_eq!(workspace.candidate(1, &Protect::nothing()).unwrap().commit, commit);
    collect_garbage(&project.root);
    git_fails(workspace.path(), ["show", "HEAD:work.rs"]);
    workspace.repair_clone().unwrap();
    git(workspace.path(), ["fsck"]);
    write(workspace.path(), "more.rs", "more\n");
    let commit = commit_all(workspace.path(), "more");
    let made = workspace.candidate(2, &Protect::nothing()).unwrap();
    assert_eq!((made.commit, made.warnings), (commit.clone(), Vec::new()));
    assert_eq!(project.files_of(&commit)["work.rs"], "100644 the same\n");
}
