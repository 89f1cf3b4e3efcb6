//! Commits that a merge makes have the verified files, and what the user wants besides. A push sends the verified commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use towline_workspace::{
    Commit, MergeError, MergePlan, MergeRequest, MergeStyle, MergeWay, MergedFiles, Protect,
};

use crate::support::{GOAL, Project, State, commit_all, git, strings, write};

const MESSAGE: &str = "Fix the library\n\nTowline-Goal: abcd\n";

/// A project of a known user, and a goal's work in it.
struct Scene {
    project: Project,
    base: Commit,
    candidate: Commit,
}

impl Scene {
    fn new() -> Self {
        let project = Project::new();
        for (key, value) in [("user.name", "A User"), ("user.email", "user@example.org")] {
            git(&project.root, ["config", key, value]);
        }
        let workspace = project.workspace().with_message(MESSAGE.to_owned());
        write(workspace.path(), "src/new.rs", "new\n");
        let candidate = workspace.candidate(1, &Protect::nothing()).unwrap().commit;
        project.own().publish(&candidate, &format!("refs/towline/{GOAL}/candidates/1")).unwrap();
        Self { base: project.head(), project, candidate }
    }

    fn plan(&self, style: MergeStyle) -> MergePlan {
        let (candidate, base) = (&self.candidate, &self.base);
        let request = MergeRequest { candidate, base, into: None, message: MESSAGE, style };
        self.project.repository().plan_merge(&request).unwrap()
    }

    fn user_commits(&self) -> Commit {
        write(&self.project.root, "other.rs", "other\n");
        commit_all(&self.project.root, "other work")
    }

    fn hook(&self, name: &str, script: &str) {
        add_hook(&self.project.root.join(".git/hooks"), name, script);
    }

    /// Parents, author, committer and message of a commit.
    fn about(&self, commit: &Commit) -> String {
        git(&self.project.root, ["log", "-1", "--format=%P|%an <%ae>|%cn <%ce>|%B", commit.as_str()])
    }
}

fn add_hook(directory: &Path, name: &str, script: &str) {
    fs::create_dir_all(directory).unwrap();
    let hook = directory.join(name);
    fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_candidate_is_a_commit_of_the_user_with_the_message_of_the_goal() {
    let scene = Scene::new();
    let user = "A User <user@example.org>";
    assert_eq!(scene.about(&scene.candidate), format!("{}|{user}|{user}|{}", scene.base, MESSAGE.trim_end()));
}

#[test]
fn each_style_makes_its_commit_with_the_verified_files() {
    let ways = [
        (MergeStyle::FastForward, MergeWay::FastForward, MergeWay::MergeCommit),
        (MergeStyle::MergeCommit, MergeWay::MergeCommit, MergeWay::MergeCommit),
        (MergeStyle::Squash, MergeWay::Squash, MergeWay::Squash),
        (MergeStyle::Reword, MergeWay::Reworded, MergeWay::MergeCommit),
    ];
    for (style, where_it_was, moved_on) in ways {
        for has_moved in [false, true] {
            let scene = Scene::new();
            let before = if has_moved { scene.user_commits() } else { scene.base.clone() };
            let mut plan = scene.plan(style);
            let way = if has_moved { moved_on } else { where_it_was };
            let files = if has_moved { MergedFiles::Mixed } else { MergedFiles::AsInCandidate };
            assert_eq!((plan.way, plan.files), (way, files), "{style:?}");
            if way != MergeWay::FastForward {
                plan.set_message("Another message\n".to_owned());
            }
            let made = plan.carry_out().unwrap();
            assert_eq!(scene.project.head(), made);
            let about = scene.about(&made);
            let (parents, message) = match way {
                MergeWay::MergeCommit => (format!("{before} {}", scene.candidate), "Another message"),
                MergeWay::Squash => (before.to_string(), "Another message"),
                MergeWay::Reworded => (scene.base.to_string(), "Another message"),
                _ => (scene.base.to_string(), "Fix the library"),
            };
            assert!(about.starts_with(&format!("{parents}|")), "{style:?}: {about}");
            assert!(about.contains(&format!("|{message}")), "{style:?}: {about}");
            let is_same = git(&scene.project.root, ["diff", "--name-only", scene.candidate.as_str(), "HEAD"]);
            assert_eq!(is_same.trim(), if has_moved { "other.rs" } else { "" }, "{style:?}");
            assert_eq!(scene.plan(style).way, MergeWay::AlreadyThere, "{style:?}");
        }
    }
}

#[test]
fn hooks_see_the_files_of_a_commit_that_is_made_and_may_change_its_message() {
    let scene = Scene::new();
    scene.hook("pre-merge-commit", "git ls-files > \"$(git rev-parse --git-dir)/seen\"");
    scene.hook("commit-msg", "echo 'Reviewed: yes' >> \"$1\"");
    let made = scene.plan(MergeStyle::Squash).carry_out().unwrap();
    let seen = fs::read_to_string(scene.project.root.join(".git/seen")).unwrap();
    assert!(seen.contains("src/new.rs"), "{seen}");
    assert!(scene.about(&made).contains("Reviewed: yes"), "{}", scene.about(&made));
    assert!(!scene.project.root.join(".git/TOWLINE_EDITMSG").exists());
}

#[test]
fn a_hook_that_refuses_leaves_everything_as_it_was() {
    for name in ["pre-merge-commit", "commit-msg"] {
        let scene = Scene::new();
        scene.hook(name, "echo 'no ticket number' >&2; exit 1");
        let before = State::of(&scene.project.root);
        let refused = scene.plan(MergeStyle::MergeCommit).carry_out().unwrap_err();
        assert!(
            matches!(&refused, MergeError::RefusedByHook { hook, detail } if *hook == name && detail.contains("ticket")),
            "{refused}"
        );
        assert_eq!(State::of(&scene.project.root), before);
        // A fast-forward makes no commit.
        assert_eq!(scene.plan(MergeStyle::FastForward).carry_out().unwrap(), scene.candidate);
    }
}

#[test]
fn a_message_is_edited_in_the_users_editor_and_an_empty_one_is_none() {
    let scene = Scene::new();
    let repository = scene.project.repository();
    for (editor, expected) in [
        ("sed -i -e s/Fix/Repair/ -e '$a# a comment'", Some("Repair the library\n\nTowline-Goal: abcd")),
        ("truncate --size 0", None),
    ] {
        git(&scene.project.root, ["config", "core.editor", editor]);
        assert_eq!(repository.edit_message(MESSAGE).unwrap().as_deref(), expected, "{editor}");
    }
    git(&scene.project.root, ["config", "core.editor", "false"]);
    let failed = repository.edit_message(MESSAGE).unwrap_err().to_string();
    assert!(failed.contains("editor `false`"), "{failed}");
}

#[test]
fn a_push_sends_the_verified_commit_and_gives_the_answer_of_the_remote() {
    let scene = Scene::new();
    let (root, repository) = (&scene.project.root, scene.project.repository());
    assert_eq!(repository.push_remote().unwrap(), None);
    let remote = scene.project.beside("remote.git");
    git(root, ["init", "--quiet", "--bare", remote.to_str().unwrap()]);
    add_hook(&remote.join("hooks"), "post-receive", "echo 'Create a pull request: https://example.org/new'");
    git(root, ["remote", "add", "elsewhere", remote.to_str().unwrap()]);
    assert_eq!(repository.push_remote().unwrap().as_deref(), Some("elsewhere"));
    let answer = repository.push(&scene.candidate, "towline/abcd-fix", "elsewhere").unwrap();
    assert!(answer.contains("https://example.org/new"), "{answer}");
    let there = git(&remote, ["rev-parse", "refs/heads/towline/abcd-fix"]);
    assert_eq!(there.trim(), scene.candidate.as_str());

    git(root, ["remote", "add", "origin", "https://example.org/origin"]);
    assert_eq!(repository.push_remote().unwrap().as_deref(), Some("origin"));
    git(root, ["config", "branch.main.remote", "elsewhere"]);
    assert_eq!(repository.push_remote().unwrap().as_deref(), Some("elsewhere"));
    git(root, ["config", "remote.pushDefault", "mine"]);
    assert_eq!(repository.push_remote().unwrap().as_deref(), Some("mine"));
    assert_eq!(
        scene.plan(MergeStyle::FastForward).changed,
        strings(&["src/new.rs"]),
        "nothing else has changed"
    );
}
