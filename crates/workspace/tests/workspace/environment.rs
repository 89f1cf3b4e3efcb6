//! What surrounds the git program: variables, hooks, locks, missing programs, distrust.
//!
//! A test that needs another environment runs itself once more as a child process with it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use towline_workspace::{
    Commit, Consent, Protect, Repository, Scope, WorkspaceError, WorkspacePlan, create, verification,
};

use crate::support::{Project, State, git, names_below, write};

const CHILD: &str = "TOWLINE_TEST_CHILD";

/// Anybody but the superuser.
const ORDINARY_USER: u32 = 65534;

/// In the child: the directory the parent has prepared.
fn child_directory() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Runs one test of this file again with other variables; it must pass there too.
fn run_again(test: &str, directory: &Path, variables: &[(&str, &str)]) {
    let mut command = again(&std::env::current_exe().unwrap(), test, directory);
    must_pass(command.envs(variables.iter().copied()));
}

/// The same as a user who is not the superuser, for whom permissions count.
fn run_again_as_ordinary_user(test: &str, directory: &Path) {
    // The program may be where only its owner can go.
    let program = directory.join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [directory, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = again(&program, test, directory);
    command.env("TMPDIR", directory).env("HOME", directory).current_dir(directory);
    if rustix::process::geteuid().is_root() {
        command.uid(ORDINARY_USER).gid(ORDINARY_USER);
    }
    must_pass(&mut command);
}

#[expect(clippy::disallowed_methods, reason = "the child is this very test in another environment")]
fn again(program: &Path, test: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([&format!("environment::{test}"), "--exact", "--nocapture"]).env(CHILD, directory);
    command
}

fn must_pass(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the child ran another test: {text}");
}

/// A directory with a `git` that runs `script` before the real one.
fn wrapped_git(directory: &Path, script: &str) -> String {
    let path = std::env::var("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|place| place.join("git")).find(|file| file.is_file()).unwrap();
    let text = format!("#!/bin/sh\nREAL_GIT='{}'\n{script}\nexec \"$REAL_GIT\" \"$@\"\n", real.display());
    write(directory, "bin/git", &text);
    fs::set_permissions(directory.join("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", directory.join("bin").display())
}

fn use_everything(project: &Project) {
    let workspace = project.workspace();
    write(workspace.path(), "work.rs", "with a carriage return\r\n");
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    workspace.diff().unwrap();
    let place = project.beside("verify");
    verification(&project.own(), &place, &made.commit, &[]).unwrap().remove().unwrap();
    write(&project.root, "dirty", "x");
    assert_eq!(project.repository().uncommitted().unwrap(), ["dirty"]);
    assert_ne!(project.repository().snapshot_dirty(Consent::WithinBounds).unwrap().base, project.head());
}

#[test]
fn variables_of_the_caller_and_a_missing_identity_change_nothing() {
    if child_directory().is_some() {
        return use_everything(&Project::new());
    }
    let home = tempfile::tempdir().unwrap();
    let nowhere = home.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    run_again(
        "variables_of_the_caller_and_a_missing_identity_change_nothing",
        home.path(),
        &[
            ("HOME", nowhere),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_DIR", nowhere),
            ("GIT_WORK_TREE", nowhere),
            ("GIT_INDEX_FILE", nowhere),
            ("GIT_OBJECT_DIRECTORY", nowhere),
            ("GIT_NAMESPACE", "other"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_EXTERNAL_DIFF", "/bin/false"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.useConfigOnly"),
            ("GIT_CONFIG_VALUE_0", "true"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("LANGUAGE", "de"),
        ],
    );
}

#[test]
fn no_hook_of_the_user_runs() {
    let project = Project::new();
    let ran = project.beside("hook-ran");
    for hook in ["post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change"] {
        let file = project.root.join(".git/hooks").join(hook);
        write(&project.root, &file, &format!("#!/bin/sh\necho {hook} >> '{}'\nexit 1\n", ran.display()));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    use_everything(&project);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}

#[test]
fn settings_that_run_programs_or_sign_or_hide_changes_have_no_effect() {
    let project = Project::new();
    let ran = project.beside("program-ran");
    let program = project.beside("program");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", program),
        ("gpg.program", program),
        ("diff.external", program),
        ("core.pager", program),
        ("commit.gpgSign", "true"),
        ("core.autocrlf", "input"),
        ("core.safecrlf", "true"),
        ("core.ignoreStat", "true"),
        ("status.showUntrackedFiles", "no"),
    ] {
        git(&project.root, ["config", key, value]);
    }
    use_everything(&project);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}

#[test]
fn a_lock_of_another_process_is_waited_out() {
    if child_directory().is_some() {
        return use_everything(&Project::new());
    }
    let scratch = tempfile::tempdir().unwrap();
    // Each kind of command that takes locks fails twice as git does when another process holds one.
    let script = format!(
        r#"case " $* " in *" update-ref "*|*" worktree "*|*" read-tree "*)
             for step in 1 2; do
               if mkdir "{}/step-$step" 2>/dev/null; then
                 echo "fatal: Unable to create '/repo/.git/x.lock': File exists." >&2; exit 128
               fi
             done ;; esac"#,
        scratch.path().display()
    );
    let path = wrapped_git(scratch.path(), &script);
    let test = "a_lock_of_another_process_is_waited_out";
    run_again(test, scratch.path(), &[("PATH", &path)]);
    assert!(scratch.path().join("step-2").exists(), "the lock was met twice");
}

#[test]
fn git_speaks_plain_c_and_asks_nobody() {
    if child_directory().is_some() {
        return use_everything(&Project::new());
    }
    let scratch = tempfile::tempdir().unwrap();
    let seen = scratch.path().join("seen");
    // The setting distinguishes the commands of the library from those of the test.
    let script = format!(
        r#"case "$*" in *maintenance.auto=false*) echo "$LC_ALL $GIT_TERMINAL_PROMPT" >> '{}';; esac"#,
        seen.display()
    );
    let path = wrapped_git(scratch.path(), &script);
    run_again(
        "git_speaks_plain_c_and_asks_nobody",
        scratch.path(),
        &[("PATH", &path), ("LC_ALL", "de_DE.UTF-8")],
    );
    let mut lines: Vec<String> = fs::read_to_string(&seen).unwrap().lines().map(str::to_owned).collect();
    lines.dedup();
    assert_eq!(lines, ["C 0"]);
}

#[test]
fn what_is_put_into_the_place_of_a_workspace_at_the_last_moment_is_left_alone() {
    if let Some(directory) = child_directory() {
        let project = Project::new();
        let plan = WorkspacePlan { path: directory.join("place"), ..project.plan() };
        let error = create(&project.repository(), &plan).unwrap_err();
        assert!(matches!(error, WorkspaceError::PathTaken { .. }), "{error:?}");
        assert_eq!(names_below(&plan.path), ["src/lib.rs"]);
        assert_eq!(fs::read_to_string(plan.path.join("src/lib.rs")).unwrap(), "theirs\n");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().join("place/src");
    let script = format!(
        r#"case " $* " in *" update-ref "*) mkdir -p '{place}'; echo theirs > '{place}/lib.rs' ;; esac"#,
        place = place.display(),
    );
    let path = wrapped_git(scratch.path(), &script);
    let test = "what_is_put_into_the_place_of_a_workspace_at_the_last_moment_is_left_alone";
    run_again(test, scratch.path(), &[("PATH", &path)]);
}

#[test]
fn a_lock_that_stays_is_an_error_that_names_it() {
    let project = Project::new();
    let workspace = project.workspace();
    write(workspace.path(), "work.rs", "x");
    let lock = project.plan().own.join(format!("refs/towline/{}/candidates/1.lock", crate::support::GOAL));
    write(&project.root, &lock, "");
    match workspace.candidate(1, &Protect::nothing()) {
        Err(WorkspaceError::Locked { command, detail, .. }) => {
            assert_eq!(command, "update-ref");
            assert!(detail.contains("candidates/1.lock"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    fs::remove_file(lock).unwrap();
    workspace.candidate(1, &Protect::nothing()).unwrap();
}

#[test]
fn a_repository_of_another_user_is_an_error_with_the_fix() {
    let test = "a_repository_of_another_user_is_an_error_with_the_fix";
    if let Some(root) = child_directory() {
        let error = Repository::discover(&root).unwrap_err();
        assert!(matches!(&error, WorkspaceError::Untrusted { path, .. } if *path == root), "{error:?}");
        assert!(error.to_string().contains("--add safe.directory"), "{error}");
        return;
    }
    let project = Project::new();
    let path = wrapped_git(&project.beside("wrapped"), "export GIT_TEST_ASSUME_DIFFERENT_OWNER=1");
    let config =
        [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null"), ("PATH", path.as_str())];
    run_again(test, &project.root, &config);
}

#[test]
fn a_machine_without_git_is_asked_to_install_it() {
    let test = "a_machine_without_git_is_asked_to_install_it";
    if let Some(root) = child_directory() {
        let error = Repository::discover(&root).unwrap_err();
        assert!(matches!(error, WorkspaceError::GitNotStarted { .. }), "{error:?}");
        assert!(error.to_string().contains("install git"), "{error}");
        return;
    }
    let project = Project::new();
    run_again(test, &project.root, &[("PATH", project.root.to_str().unwrap())]);
}

#[test]
fn a_failed_command_is_reported_with_its_reason_and_what_to_do() {
    let project = Project::new();
    let workspace = project.workspace();
    let users = State::of(&project.root);
    let tree = git(&project.root, ["rev-parse", "HEAD^{tree}"]);
    let object = project.root.join(".git/objects").join(&tree[..2]).join(&tree[2..]);
    let saved = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    let error = project.own().diff(workspace.base(), &project.head()).unwrap_err();
    fs::write(&object, saved).unwrap();
    match error {
        WorkspaceError::Git { command, directory, detail, hint } => {
            assert_eq!((command.as_str(), directory), ("diff-tree", project.root.clone()));
            assert!(detail.contains("unable to read tree"), "{detail}");
            assert!(!hint.is_empty());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(State::of(&project.root), users);
}

#[test]
fn directories_that_an_agent_has_closed_are_opened_and_those_of_the_user_are_left_closed() {
    let close = |top: &Path| {
        write(top, "closed/deep/work.rs", "work\n");
        for name in ["closed/deep", "closed"] {
            fs::set_permissions(top.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
    };
    if child_directory().is_some() {
        let project = Project::new();
        let workspace = project.workspace();
        close(workspace.path());
        let made = workspace.candidate(1, &Protect::nothing()).unwrap();
        assert_eq!(project.files_of(&made.commit)["closed/deep/work.rs"], "100644 work\n");
        close(&project.root);
        let base = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap().base;
        assert_eq!(base, project.head());
        let mode = fs::metadata(project.root.join("closed")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0);
        // Otherwise the scratch directory could not be removed.
        fs::set_permissions(project.root.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        return fs::set_permissions(project.root.join("closed/deep"), fs::Permissions::from_mode(0o700))
            .unwrap();
    }
    let scratch = tempfile::tempdir().unwrap();
    let test = "directories_that_an_agent_has_closed_are_opened_and_those_of_the_user_are_left_closed";
    run_again_as_ordinary_user(test, scratch.path());
}

#[test]
fn a_directory_that_nobody_can_look_into_is_a_difference() {
    if child_directory().is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let test = "a_directory_that_nobody_can_look_into_is_a_difference";
        return run_again_as_ordinary_user(test, scratch.path());
    }
    let project = Project::new();
    let protect = Protect::of(&["Makefile".to_owned(), "tests/**".to_owned()], &[]).unwrap();
    let place = project.beside("verify");
    // What a check finds by its name alone.
    let closed = [
        (".", "Makefile", 0o311, "changed: ./"),
        ("tests", "tests/conftest.py", 0o311, "changed: tests/"),
        ("tests/new", "tests/new/conftest.py", 0o311, "added: tests/new/"),
        ("src/new", "src/new/.gitattributes", 0o000, "added: src/new/"),
    ];
    for (directory, file, mode, difference) in closed {
        let checkout = verification(&project.own(), &place, &project.head(), &[]).unwrap();
        write(checkout.path(), file, "planted\n");
        let directory = checkout.path().join(directory);
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        let known = BTreeSet::new();
        for found in [
            checkout.differences(Scope::All, &protect, &known),
            checkout.differences(Scope::Protected, &protect, &known),
        ] {
            let found: Vec<String> = found.unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(found, [difference], "{file}");
        }
    }
}

#[test]
fn no_directory_that_an_agent_has_closed_keeps_its_work_from_being_taken() {
    if child_directory().is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let test = "no_directory_that_an_agent_has_closed_keeps_its_work_from_being_taken";
        return run_again_as_ordinary_user(test, scratch.path());
    }
    for (name, mode) in [
        ("src", 0o444),
        ("src", 0o311),
        ("src", 0o555),
        ("sub", 0o444),
        ("sub/.git", 0o000),
        ("sub/.git", 0o600),
        ("sub/.git/refs", 0o000),
        ("sub/.git/refs/heads", 0o444),
        (".git/objects/pack", 0o000),
    ] {
        let project = Project::new();
        let workspace = project.workspace();
        let top = workspace.path();
        write(top, "sub/inner.rs", "inner\n");
        git(&top.join("sub"), ["init", "-q"]);
        git(&top.join("sub"), ["add", "inner.rs"]);
        git(&top.join("sub"), ["commit", "-q", "-m", "inner"]);
        write(top, "src/lib.rs", "work\n");
        crate::hostile_git::fifo(&top.join("src/.gitignore"));
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
        let made = workspace.candidate(1, &Protect::nothing());
        let files = project.files_of(&made.unwrap_or_else(|error| panic!("{name} {mode:o}: {error}")).commit);
        assert_eq!(files["src/lib.rs"], "100644 work\n", "{name} {mode:o}");
        assert_eq!(files["sub/inner.rs"], "100644 inner\n", "{name} {mode:o}");
        // Otherwise the scratch directory could not be removed.
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn a_remote_that_does_not_send_what_is_missing_is_asked_once() {
    let test = "a_remote_that_does_not_send_what_is_missing_is_asked_once";
    if child_directory().is_some() {
        let project = crate::kinds::clone(&["--filter=blob:none"]);
        let base = Commit::new(git(&project.root, ["rev-parse", "HEAD~1"]));
        let plan = WorkspacePlan { base, ..project.plan() };
        // Git itself fetches what a checkout needs.
        create(&project.repository(), &plan).unwrap();
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let script =
        format!(r#"case "$*" in *fetch*--stdin*) echo asked >> '{}'; exit 0;; esac"#, asked.display());
    let path = wrapped_git(scratch.path(), &script);
    run_again(test, scratch.path(), &[("PATH", &path)]);
    assert_eq!(fs::read_to_string(&asked).unwrap(), "asked\n");
}
