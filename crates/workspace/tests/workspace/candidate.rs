//! Candidates hold all of the work and leave the agent's worktree as it is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use towline_workspace::{Candidate, Protect, Workspace};

use crate::support::{GOAL, Project, State, commit_all, expected, git, git_fails, strings, write};

const IGNORE: (&str, &str) = (".gitignore", "100644 *.log\n.env\ntarget/\n");

fn candidate(workspace: &Workspace) -> Candidate {
    workspace.candidate(1, &Protect::nothing()).unwrap()
}

#[test]
fn it_holds_committed_staged_unstaged_untracked_and_deleted_and_touches_nothing() {
    let project = Project::new();
    for (key, value) in [("user.name", "A User"), ("user.email", "user@example.org")] {
        git(&project.root, ["config", key, value]);
    }
    let users = State::of(&project.root);
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "committed.rs", "committed\n");
    let head = commit_all(path, "work");
    write(path, "staged.rs", "staged\n");
    git(path, ["add", "staged.rs"]);
    write(path, "staged.rs", "staged, then changed\n");
    write(path, "src/lib.rs", "unstaged\n");
    write(path, "deep/er/untracked.rs", "untracked\n");
    write(path, "intended.rs", "intended\n");
    git(path, ["add", "-N", "intended.rs"]);
    fs::remove_file(path.join("tests/a.rs")).unwrap();
    git(path, ["rm", "-q", "tests/b.rs"]);
    write(path, "debug.log", "ignored\n");
    write(path, "target/out", "ignored\n");
    write(path, ".env", "SECRET=1\n");
    let before = State::of(path);

    let made = candidate(&workspace);

    assert_eq!(State::of(path), before);
    assert_eq!(State::of(&project.root), users);
    assert_eq!(
        project.files_of(&made.commit),
        expected(&[
            IGNORE,
            ("committed.rs", "100644 committed\n"),
            ("deep/er/untracked.rs", "100644 untracked\n"),
            ("intended.rs", "100644 intended\n"),
            ("src/lib.rs", "100644 unstaged\n"),
            ("staged.rs", "100644 staged, then changed\n"),
        ])
    );
    assert_eq!(
        String::from_utf8(project.git_of_goal([
            "log",
            "-1",
            "--format=%P %an <%ae> %T",
            made.commit.as_str()
        ]))
        .unwrap(),
        format!("{head} A User <user@example.org> {}\n", made.tree)
    );
    assert_eq!((made.restored, made.warnings), (strings(&[]), strings(&[])));
    let uncommitted =
        ["deep/er/untracked.rs", "intended.rs", "src/lib.rs", "staged.rs", "tests/a.rs", "tests/b.rs"];
    assert_eq!((made.head, made.uncommitted), (head, strings(&uncommitted)));
    assert_eq!(project.own_reference(&format!("refs/towline/{GOAL}/candidates/1")), Some(made.commit));
    let indexes = project.plan().own.join("towline");
    assert_eq!(fs::read_dir(indexes).unwrap().count(), 0, "no index is left behind");
}

#[test]
fn without_work_or_with_all_committed_it_is_head_itself() {
    let project = Project::new();
    let workspace = project.workspace();
    assert_eq!(candidate(&workspace), project.own().as_candidate(&project.head()).unwrap());
    write(workspace.path(), "work.rs", "x");
    let head = commit_all(workspace.path(), "work");
    write(workspace.path(), "debug.log", "ignored");
    let second = workspace.candidate(2, &Protect::nothing()).unwrap();
    let whole = project.own().as_candidate(&head).unwrap();
    assert_eq!(second, Candidate { ignored: strings(&["debug.log"]), ..whole });
    assert_eq!(project.own_reference(&format!("refs/towline/{GOAL}/candidates/2")), Some(head));
}

#[test]
fn candidates_survive_garbage_collection() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "new.rs", "new\n");
    let made = candidate(&workspace);
    fs::remove_file(workspace.path().join("new.rs")).unwrap();
    git(&project.root, ["-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now"]);
    assert_eq!(project.files_of(&made.commit)["new.rs"], "100644 new\n");
}

#[test]
fn a_repeated_call_gives_the_same_commit_and_new_work_another() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "new.rs", "new\n");
    let first = candidate(&workspace);
    // Commits carry their time in whole seconds; in the same one they would be equal by chance.
    project.wait_for_a_second_after(&workspace.path().join("new.rs"));
    assert_eq!(candidate(&workspace), first);
    write(workspace.path(), "new.rs", "newer\n");
    let second = candidate(&workspace);
    assert_ne!(second.commit, first.commit);
    assert_ne!(second.tree, first.tree);
}

#[test]
fn a_detached_head_or_another_branch_is_the_parent() {
    let project = Project::new();
    let workspace = project.workspace();
    for switch in [vec!["checkout", "-q", "--detach"], vec!["checkout", "-q", "-b", "other"]] {
        git(workspace.path(), &switch);
        write(workspace.path(), "work.rs", switch[2]);
        let head = commit_all(workspace.path(), "work");
        write(workspace.path(), "more.rs", switch[2]);
        let made = candidate(&workspace);
        assert_eq!(project.parent_of(&made.commit), head);
        assert_eq!(project.files_of(&made.commit)["more.rs"], format!("100644 {}", switch[2]));
    }
}

#[test]
fn a_branch_without_commits_is_put_on_the_base_with_a_warning() {
    let project = Project::new();
    let workspace = project.workspace();
    git(workspace.path(), ["checkout", "-q", "--orphan", "fresh"]);
    write(workspace.path(), "work.rs", "x");
    let made = candidate(&workspace);
    assert_eq!(project.parent_of(&made.commit), project.head());
    assert_eq!(
        made.warnings,
        strings(&["the workspace is on a branch without commits; its files are put on the base"])
    );
}

#[test]
fn an_unfinished_merge_is_taken_as_it_lies_there() {
    for operation in ["merge", "rebase"] {
        let project = Project::new();
        let workspace = project.workspace();
        let path = workspace.path();
        write(path, "src/lib.rs", "ours\n");
        git(path, ["rm", "-q", "tests/a.rs"]);
        commit_all(path, "ours");
        write(&project.root, "src/lib.rs", "theirs\n");
        write(&project.root, "tests/a.rs", "theirs\n");
        commit_all(&project.root, "theirs");
        git(path, ["fetch", "-q", project.root.to_str().unwrap(), "main"]);
        git_fails(path, [operation, "FETCH_HEAD"]);
        let in_tree = fs::read_to_string(path.join("src/lib.rs")).unwrap();
        assert!(in_tree.contains("<<<<<<<"), "{in_tree}");
        let before = State::of(path);

        let made = candidate(&workspace);

        assert_eq!(State::of(path), before, "{operation}");
        assert_eq!(
            project.files_of(&made.commit),
            expected(&[
                IGNORE,
                ("src/lib.rs", &format!("100644 {in_tree}")),
                ("tests/a.rs", "100644 theirs\n"),
                ("tests/b.rs", "100644 assert b\n"),
            ])
        );
        // A rebase is on top of the other side by then.
        let warnings = made.warnings.iter().filter(|warning| !warning.contains("commits have main ("));
        assert_eq!(
            warnings.cloned().collect::<Vec<_>>(),
            strings(&[
                "unfinished merge: src/lib.rs, tests/a.rs taken as in the working tree, conflict marks and all"
            ])
        );
    }
}

#[test]
fn files_that_are_tracked_although_ignored_and_those_that_are_ignored_instead_of_tracked_are_distinguished() {
    let project = Project::new();
    write(&project.root, "dist/old.js", "built\n");
    commit_all(&project.root, "with build output");
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "committed.log", "committed\n");
    git(path, ["add", "-f", "committed.log"]);
    commit_all(path, "a log");
    write(path, "staged.log", "staged\n");
    git(path, ["add", "-f", "staged.log"]);
    write(path, "ignored.log", "ignored\n");
    write(path, ".gitignore", "*.log\n.env\ntarget/\ndist/\n");
    git(path, ["rm", "-q", "-r", "--cached", "dist"]);
    let made = candidate(&workspace);
    let changed: Vec<String> = project
        .own()
        .diff_stat(workspace.base(), &made.commit)
        .unwrap()
        .files
        .into_iter()
        .map(|file| file.path)
        .collect();
    assert_eq!(changed, [".gitignore", "committed.log", "dist/old.js", "staged.log"]);
    assert!(!project.files_of(&made.commit).contains_key("dist/old.js"));
    assert_eq!(made.warnings, strings(&[]));
}

#[test]
fn odd_names_symlinks_and_modes_are_preserved() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    for name in ["with space", "new\nline", "\"quoted\"", ":(top)colon", "-dash", "ünï", "star*"] {
        write(path, name, name);
    }
    fs::write(path.join(OsStr::from_bytes(b"latin\xe9")), "bytes").unwrap();
    symlink("src/lib.rs", path.join("link")).unwrap();
    symlink("/nowhere/at all", path.join("dangling")).unwrap();
    write(path, "run.sh", "#!/bin/sh\n");
    fs::set_permissions(path.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(path.join("tests/a.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(path.join("tests/b.rs")).unwrap();
    symlink("a.rs", path.join("tests/b.rs")).unwrap();

    let made = candidate(&workspace);

    assert_eq!(
        project.files_of(&made.commit),
        expected(&[
            IGNORE,
            ("\"quoted\"", "100644 \"quoted\""),
            ("-dash", "100644 -dash"),
            (":(top)colon", "100644 :(top)colon"),
            ("dangling", "120000 /nowhere/at all"),
            ("latin\u{fffd}", "100644 bytes"),
            ("link", "120000 src/lib.rs"),
            ("new\nline", "100644 new\nline"),
            ("run.sh", "100755 #!/bin/sh\n"),
            ("src/lib.rs", "100644 pub fn one() -> u8 {\n    1\n}\n"),
            ("star*", "100644 star*"),
            ("tests/a.rs", "100755 assert a\n"),
            ("tests/b.rs", "120000 a.rs"),
            ("with space", "100644 with space"),
            ("ünï", "100644 ünï"),
        ])
    );
}

#[test]
fn files_that_git_is_configured_not_to_look_at_are_looked_at() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    git(path, ["update-index", "--assume-unchanged", "tests/a.rs"]);
    git(path, ["update-index", "--skip-worktree", "tests/b.rs"]);
    write(path, "tests/a.rs", "changed a\n");
    write(path, "tests/b.rs", "changed b\n");
    let before = State::of(path);
    let files = project.files_of(&candidate(&workspace).commit);
    assert_eq!(State::of(path), before);
    assert_eq!([&files["tests/a.rs"], &files["tests/b.rs"]], ["100644 changed a\n", "100644 changed b\n"]);
}

#[test]
fn files_left_out_by_a_sparse_checkout_stay_in_the_candidate() {
    let project = Project::new();
    let workspace = project.workspace();
    git(workspace.path(), ["sparse-checkout", "set", "src"]);
    assert!(!workspace.path().join("tests/a.rs").exists());
    write(workspace.path(), "src/lib.rs", "changed\n");
    write(workspace.path(), "other/new.rs", "outside of what is checked out\n");
    assert_eq!(
        project.files_of(&candidate(&workspace).commit),
        expected(&[
            IGNORE,
            ("other/new.rs", "100644 outside of what is checked out\n"),
            ("src/lib.rs", "100644 changed\n"),
            ("tests/a.rs", "100644 assert a\n"),
            ("tests/b.rs", "100644 assert b\n"),
        ])
    );
}

#[test]
fn an_edit_of_the_same_size_in_the_second_of_the_last_commit_is_seen() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "work.rs", "aaaa");
    commit_all(path, "work");
    write(path, "work.rs", "bbbb");
    // Git compares whole seconds: the candidate's index must be written in a later one than the edit.
    project.wait_for_a_second_after(&path.join("work.rs"));
    assert_eq!(project.files_of(&candidate(&workspace).commit)["work.rs"], "100644 bbbb");
}

#[test]
fn a_damaged_or_missing_index_and_a_forgotten_lock_do_no_harm() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "work.rs", "x");
    let whole = candidate(&workspace);
    for git_dir in [path.join(".git"), project.plan().own] {
        fs::write(git_dir.join("index.lock"), "").unwrap();
        fs::write(git_dir.join("index"), "not an index").unwrap();
        assert_eq!(candidate(&workspace), whole);
        assert_eq!(fs::read(git_dir.join("index")).unwrap(), b"not an index");
        fs::remove_file(git_dir.join("index")).unwrap();
        assert_eq!(candidate(&workspace), whole);
        assert!(git_dir.join("index.lock").exists());
    }
}

#[test]
fn a_workspace_whose_git_directory_was_replaced_is_still_read_with_a_warning() {
    let project = Project::new();
    // Without its .git directory, git would take the directory for a part of this other repository.
    git(project.root.parent().unwrap(), ["init", "-q"]);
    let workspace = project.workspace();
    let path = workspace.path().to_path_buf();
    write(&path, "work.rs", "x");
    let whole = candidate(&workspace);
    let warned = |text: &str| Candidate { warnings: strings(&[text]), ..whole.clone() };
    let gone =
        "the workspace's .git was deleted, replaced or damaged; commits in it are not taken, its files are";
    fs::remove_dir_all(path.join(".git")).unwrap();
    assert_eq!(candidate(&workspace), warned(gone));
    git(&path, ["init", "-q"]);
    commit_all(&path, "in a repository of its own");
    let other = "the agent's commits cannot be used: its object directory is not as git leaves it; its files are \
                 put on the base";
    let changed = "the agent changed in its clone, without effect elsewhere: its git configuration, refs \
                   (refs/heads/main, refs/heads/master)";
    assert_eq!(candidate(&workspace), Candidate { warnings: strings(&[other, changed]), ..whole });
}

#[test]
fn replaced_objects_do_not_change_what_the_base_is() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "tests/a.rs", "weakened\n");
    let weak = commit_all(path, "weaker tests");
    git(path, ["replace", project.head().as_str(), weak.as_str()]);
    let protect = Protect::new(&strings(&["tests"])).unwrap();
    let made = workspace.candidate(1, &protect).unwrap();
    assert_eq!(made.restored, strings(&["tests/a.rs"]));
    git(path, ["replace", "-d", project.head().as_str()]);
    assert_eq!(project.files_of(&made.commit)["tests/a.rs"], "100644 assert a\n");
}

/// Everything in the workspace that is not ignored, as git sees it with no index to start from.
fn tree_from_nothing(project: &Project, workspace: &Workspace) -> String {
    let history = project.beside("from-nothing");
    git(&project.root, ["clone", "-q", "--bare", ".", history.to_str().unwrap()]);
    let place =
        [format!("--git-dir={}", history.display()), format!("--work-tree={}", workspace.path().display())];
    let run =
        |args: &[&str]| git(workspace.path(), place.iter().map(String::as_str).chain(args.iter().copied()));
    run(&["add", "--all"]);
    run(&["write-tree"])
}

#[test]
fn a_lone_change_of_any_kind_is_seen() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 12] = [
        ("same size", |at| write(at, "src/lib.rs", "pub fn one() -> u8 {\n    2\n}\n")),
        ("same size, old time", |at| {
            let time = fs::metadata(at.join("src/lib.rs")).unwrap().modified().unwrap();
            write(at, "src/lib.rs", "pub fn one() -> u8 {\n    2\n}\n");
            fs::File::options().write(true).open(at.join("src/lib.rs")).unwrap().set_modified(time).unwrap();
        }),
        ("mode", |at| {
            fs::set_permissions(at.join("src/lib.rs"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("where a symlink leads", |at| {
            fs::remove_file(at.join("link")).unwrap();
            symlink("bbb", at.join("link")).unwrap();
        }),
        ("a symlink in place of a file", |at| {
            fs::remove_file(at.join("src/lib.rs")).unwrap();
            symlink("../tests/a.rs", at.join("src/lib.rs")).unwrap();
        }),
        ("a symlink in place of a directory, to the very same files", |at| {
            fs::create_dir(at.join("target")).unwrap();
            fs::rename(at.join("src"), at.join("target/src")).unwrap();
            symlink("target/src", at.join("src")).unwrap();
        }),
        ("a directory in place of a file", |at| {
            fs::remove_file(at.join("src/lib.rs")).unwrap();
            fs::create_dir(at.join("src/lib.rs")).unwrap();
        }),
        ("gone", |at| fs::remove_file(at.join("src/lib.rs")).unwrap()),
        ("to be added, and gone", |at| {
            write(at, "new.rs", "");
            git(at, ["add", "--intent-to-add", "new.rs"]);
            fs::remove_file(at.join("new.rs")).unwrap();
        }),
        ("to be added, and empty", |at| {
            write(at, "new.rs", "");
            git(at, ["add", "--intent-to-add", "new.rs"]);
        }),
        ("staged, then taken back in the file", |at| {
            let before = fs::read_to_string(at.join("src/lib.rs")).unwrap();
            write(at, "src/lib.rs", "staged\n");
            git(at, ["add", "src/lib.rs"]);
            write(at, "src/lib.rs", &before);
        }),
        ("staged", |at| {
            write(at, "src/lib.rs", "staged\n");
            git(at, ["add", "src/lib.rs"]);
        }),
    ];
    for (what, change) in changes {
        let project = Project::new();
        symlink("aaa", project.root.join("link")).unwrap();
        write(&project.root, "text.txt", "one\n");
        commit_all(&project.root, "a symlink");
        let workspace = project.workspace();
        change(workspace.path());
        assert_eq!(candidate(&workspace).tree, tree_from_nothing(&project, &workspace), "{what}");
    }
}

#[test]
fn a_candidate_is_as_it_was_again_whoever_its_commits_claim_to_be_by() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "committed\n");
    git(workspace.path(), ["add", "-A"]);
    let author = "--author=Towline <towline@localhost>";
    git(workspace.path(), ["commit", "-q", author, "-m", "towline: candidate 1"]);
    for more in ["", "uncommitted\n"] {
        if !more.is_empty() {
            write(workspace.path(), "more.rs", more);
        }
        let made = workspace.candidate(1, &Protect::nothing()).unwrap();
        let own = project.own();
        let again = own.candidate_again(&made.commit, Some(&made.head), &made.restored).unwrap();
        assert_eq!((again.head, again.uncommitted), (made.head, made.uncommitted));
    }
}

#[test]
fn a_branch_of_the_users_that_the_agent_merged_is_named() {
    let project = Project::new();
    git(&project.root, ["switch", "-q", "-c", "feature"]);
    write(&project.root, "feature.rs", "the user's work\n");
    let feature = commit_all(&project.root, "feature");
    git(&project.root, ["switch", "-q", "main"]);
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "work\n");
    commit_all(workspace.path(), "work");
    assert_eq!(workspace.candidate(1, &Protect::nothing()).unwrap().warnings, Vec::<String>::new());
    git(workspace.path(), ["merge", "-q", "-s", "ours", "-m", "tidy", "feature"]);
    let made = workspace.candidate(2, &Protect::nothing()).unwrap();
    let named = format!(
        "the agent's commits have feature ({}) in their history",
        git(&project.root, ["rev-parse", "--short", feature.as_str()])
    );
    assert!(
        matches!(made.warnings.as_slice(), [warning] if warning.starts_with(&named)),
        "{:?}",
        made.warnings
    );

    // What the user has taken themselves is no news.
    project.own().publish(&made.commit, &format!("refs/towline/{GOAL}/published")).unwrap();
    git(&project.root, ["merge", "-q", "--ff-only", made.commit.as_str()]);
    write(workspace.path(), "src/lib.rs", "more work\n");
    commit_all(workspace.path(), "more work");
    assert_eq!(workspace.candidate(3, &Protect::nothing()).unwrap().warnings, Vec::<String>::new());
}
