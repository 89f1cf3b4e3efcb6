//! Copied files come from the user's checkout, stay inside the roots and replace nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use towline_workspace::{
    Protect, Verification, Workspace, WorkspaceError, WorkspacePlan, create, verification,
};

use crate::support::{Project, State, commit_all, git, names_below, strings, write};

fn workspace(project: &Project, copy: &[&str]) -> Result<Workspace, WorkspaceError> {
    create(&project.repository(), &WorkspacePlan { copy: strings(copy), ..project.plan() })
}

fn checkout(project: &Project, copy: &[&str]) -> Result<Verification, WorkspaceError> {
    let place = project.beside("verify");
    verification(&project.own(), &place, &project.head(), &strings(copy))
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn files_and_directories_arrive_in_both_places_with_their_modes() {
    let project = Project::new();
    write(&project.root, ".env", "SECRET=1\n");
    fs::set_permissions(project.root.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    write(&project.root, "target/tool", "#!/bin/sh\n");
    fs::set_permissions(project.root.join("target/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("tool", project.root.join("target/link")).unwrap();
    write(&project.root, "target/deep/cache.log", "x");
    let before = State::of(&project.root);

    let workspace = workspace(&project, &[".env", "./target/"]).unwrap();
    let checkout = checkout(&project, &[".env", "target"]).unwrap();

    for place in [workspace.path(), checkout.path()] {
        assert_eq!(
            names_below(place),
            [
                ".env",
                ".gitignore",
                "src/lib.rs",
                "target/deep/cache.log",
                "target/link",
                "target/tool",
                "tests/a.rs",
                "tests/b.rs"
            ]
        );
        assert_eq!(read(place, ".env"), "SECRET=1\n");
        let mode = |name: &str| fs::metadata(place.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(".env"), mode("target/tool")), (0o600, 0o755));
        assert_eq!(fs::read_link(place.join("target/link")).unwrap(), Path::new("tool"));
    }
    assert_eq!(workspace.candidate(1, &Protect::nothing()).unwrap().commit, project.head());
    assert_eq!((workspace.warnings(), checkout.warnings()), (&[][..], &[][..]));
    assert_eq!(State::of(&project.root), before);
}

#[test]
fn the_verification_takes_them_from_the_user_and_not_from_the_agent() {
    let project = Project::new();
    write(&project.root, ".env", "the user's\n");
    let workspace = workspace(&project, &[".env"]).unwrap();
    write(workspace.path(), ".env", "the agent's\n");
    assert_eq!(read(checkout(&project, &[".env"]).unwrap().path(), ".env"), "the user's\n");
}

#[test]
fn missing_ones_are_named_in_warnings() {
    let project = Project::new();
    symlink("nowhere", project.root.join("dangling.log")).unwrap();
    let expected: Vec<String> = [".env", "dangling.log"]
        .map(|name| format!("{name} was to be copied, but is not in {}", project.root.display()))
        .to_vec();
    assert_eq!(workspace(&project, &[".env", "dangling.log"]).unwrap().warnings(), expected);
    assert_eq!(checkout(&project, &[".env", "dangling.log"]).unwrap().warnings(), expected);
}

#[test]
fn what_is_part_of_the_candidate_is_not_replaced() {
    let project = Project::new();
    write(&project.root, "src/lib.rs", "not committed\n");
    let expected = strings(&["src/lib.rs is already in the checkout and was not replaced"]);
    let workspace = workspace(&project, &["src/lib.rs"]).unwrap();
    let checkout = checkout(&project, &["src/lib.rs"]).unwrap();
    for (place, warnings) in
        [(workspace.path(), workspace.warnings()), (checkout.path(), checkout.warnings())]
    {
        assert_eq!(warnings, expected);
        assert_eq!(read(place, "src/lib.rs"), "pub fn one() -> u8 {\n    1\n}\n");
    }
}

#[test]
fn a_file_that_would_end_up_in_the_candidate_is_refused() {
    let project = Project::new();
    write(&project.root, "secret.txt", "not ignored\n");
    write(&project.root, "private/key", "not ignored\n");
    for name in ["secret.txt", "private"] {
        match workspace(&project, &[name]) {
            Err(WorkspaceError::NotIgnored { path }) => assert_eq!(path.trim_end_matches('/'), name),
            other => panic!("{other:?}"),
        }
    }
    write(&project.root, ".git/info/exclude", "secret.txt\n/private\n");
    let workspace = workspace(&project, &["secret.txt", "private"]).unwrap();
    assert_eq!(read(workspace.path(), "private/key"), "not ignored\n");
    assert_eq!(git(workspace.path(), ["status", "--porcelain"]), "");
}

#[test]
fn paths_that_lead_out_are_refused_by_name_and_nothing_is_made() {
    let project = Project::new();
    let outside = project.beside("outside");
    write(&outside, "secret", "s");
    symlink(outside.join("secret"), project.root.join("a.log")).unwrap();
    symlink("../outside", project.root.join("b.log")).unwrap();
    fs::create_dir_all(project.root.join("target")).unwrap();
    symlink(outside.join("secret"), project.root.join("target/absolute")).unwrap();
    let absolute = outside.join("secret");
    let absolute = absolute.to_str().unwrap();
    for name in [
        absolute,
        "../outside/secret",
        "src/../../outside",
        "a.log",
        "b.log",
        "b.log/secret",
        ".",
        "",
        ".git/config",
    ] {
        for result in [workspace(&project, &[name]).map(drop), checkout(&project, &[name]).map(drop)] {
            match result {
                Err(WorkspaceError::OutsideRoot { path, root, .. }) => {
                    assert_eq!((path.as_str(), root), (name, project.root.clone()));
                }
                other => panic!("{name:?} gave {other:?}"),
            }
        }
    }
    assert!(!project.plan().path.exists() && !project.beside("verify").exists());

    match checkout(&project, &["target"]) {
        Err(WorkspaceError::OutsideRoot { path, .. }) => assert_eq!(path, "target/absolute"),
        other => panic!("{other:?}"),
    }
    assert!(!project.beside("verify/target").exists());
}

#[test]
fn a_symlink_inside_a_copied_directory_that_goes_out_and_in_again_is_refused() {
    let project = Project::new();
    fs::create_dir_all(project.root.join("target")).unwrap();
    symlink("../../repo/src/lib.rs", project.root.join("target/around")).unwrap();
    match checkout(&project, &["target"]) {
        Err(WorkspaceError::OutsideRoot { path, .. }) => assert_eq!(path, "target/around"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_symlink_in_the_candidate_cannot_send_a_copy_out_of_the_checkout() {
    let project = Project::new();
    let outside = project.beside("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, project.root.join("conf")).unwrap();
    commit_all(&project.root, "a symlink that leads out");
    let commit = project.head();
    fs::remove_file(project.root.join("conf")).unwrap();
    write(&project.root, "conf/.env", "SECRET=1\n");
    let place = project.beside("verify");
    match verification(&project.own(), &place, &commit, &strings(&["conf/.env"])) {
        Err(WorkspaceError::OutsideRoot { path, root, .. }) => {
            assert_eq!((path.as_str(), root), ("conf/.env", place))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_copy_that_was_cut_off_is_finished_and_the_agents_own_is_preserved() {
    let project = Project::new();
    write(&project.root, ".env", "SECRET=1\n");
    write(&project.root, "target/cache", "whole\n");
    let first = workspace(&project, &[".env"]).unwrap();
    write(first.path(), ".env", "the agent's\n");
    assert_eq!(read(workspace(&project, &[".env"]).unwrap().path(), ".env"), "the agent's\n");

    fs::write(project.plan().own.join("towline-workspace"), "making").unwrap();
    fs::remove_file(first.path().join(".env")).unwrap();
    write(first.path(), ".towline-copy-.env", "SECR");
    write(first.path(), ".towline-copy-target/cache", "wh");
    let again = workspace(&project, &[".env", "target"]).unwrap();
    assert_eq!(
        names_below(again.path()),
        [".env", ".gitignore", "src/lib.rs", "target/cache", "tests/a.rs", "tests/b.rs"]
    );
    assert_eq!(read(again.path(), ".env"), "SECRET=1\n");
    assert_eq!(read(again.path(), "target/cache"), "whole\n");
}
