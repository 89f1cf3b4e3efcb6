//! Starting from what is in no commit: everything that is not ignored is in the snapshot, and its owner notices nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use towline_workspace::{Consent, Protect, WorkspaceError, create};

use crate::support::{Project, State, expected, git, git_fails, names_below, strings, write};

#[test]
fn a_snapshot_holds_renames_modes_symlinks_and_half_staged_files_and_the_index_stays_byte_for_byte() {
    let project = Project::new();
    let root = &project.root;
    write(root, "src/lib.rs", "staged\n");
    git(root, ["add", "src/lib.rs"]);
    write(root, "src/lib.rs", "staged, then changed\n");
    git(root, ["mv", "tests/a.rs", "tests/renamed.rs"]);
    fs::remove_file(root.join("tests/b.rs")).unwrap();
    write(root, "deep/er/untracked.sh", "#!/bin/sh\n");
    fs::set_permissions(root.join("deep/er/untracked.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("src/lib.rs", root.join("link")).unwrap();
    write(root, "intended.rs", "only intended\n");
    git(root, ["add", "--intent-to-add", "intended.rs"]);
    write(root, "out.log", "ignored\n");
    let before = State::of(root);

    let snapshot = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap();

    assert_eq!(State::of(root), before);
    assert_eq!(snapshot.warnings, strings(&[]));
    assert_eq!(
        project.files_of(&snapshot.base),
        expected(&[
            (".gitignore", "100644 *.log\n.env\ntarget/\n"),
            ("deep/er/untracked.sh", "100755 #!/bin/sh\n"),
            ("intended.rs", "100644 only intended\n"),
            ("link", "120000 src/lib.rs"),
            ("src/lib.rs", "100644 staged, then changed\n"),
            ("tests/renamed.rs", "100644 assert a\n"),
        ])
    );
}

#[test]
fn what_a_goal_changed_is_reported_against_the_snapshot() {
    let project = Project::new();
    write(&project.root, "src/lib.rs", "mine\n");
    write(&project.root, "mine.rs", "mine\n");
    let base = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap().base;
    let mut plan = project.plan();
    plan.base = base;
    let workspace = create(&project.repository(), &plan).unwrap();
    assert_eq!(
        names_below(workspace.path()),
        [".gitignore", "mine.rs", "src/lib.rs", "tests/a.rs", "tests/b.rs"]
    );
    write(workspace.path(), "theirs.rs", "theirs\n");
    let changed: Vec<String> =
        workspace.diff_stat().unwrap().files.into_iter().map(|file| file.path).collect();
    assert_eq!(changed, ["theirs.rs"]);
    let candidate = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(project.parent_of(&candidate.commit), plan.base);
}

#[test]
fn an_unfinished_merge_is_refused_by_its_paths() {
    let project = Project::new();
    git(&project.root, ["checkout", "-q", "-b", "other"]);
    write(&project.root, "src/lib.rs", "other\n");
    crate::support::commit_all(&project.root, "other");
    git(&project.root, ["checkout", "-q", "main"]);
    write(&project.root, "src/lib.rs", "main\n");
    crate::support::commit_all(&project.root, "main");
    git_fails(&project.root, ["merge", "other"]);
    let before = State::of(&project.root);
    for error in [
        project.repository().snapshot_dirty(Consent::WithinBounds).unwrap_err(),
        project.own().keep_before(Consent::WithinBounds).unwrap_err(),
    ] {
        assert!(
            matches!(&error, WorkspaceError::Unmerged { paths, .. } if paths == &["src/lib.rs"]),
            "{error:?}"
        );
        assert!(error.to_string().contains("src/lib.rs has conflicts; finish it and commit"), "{error}");
    }
    assert_eq!(State::of(&project.root), before);
}

#[test]
fn a_file_of_many_gigabytes_is_refused_by_name_before_it_is_read() {
    let project = Project::new();
    let huge = fs::File::create(project.root.join("core.dump")).unwrap();
    // Sparse: it takes no space, but reading it would take its time.
    huge.set_len(64 << 30).unwrap();
    let error = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap_err();
    let expected = |error: &WorkspaceError| matches!(error, WorkspaceError::TooLarge { largest, megabytes: 65536, .. } if largest == "core.dump");
    assert!(expected(&error), "{error:?}");
    assert!(expected(&project.own().keep_before(Consent::WithinBounds).unwrap_err()));
    write(&project.root, ".gitignore", "core.dump\n");
    assert!(project.repository().snapshot_dirty(Consent::WithinBounds).is_ok());
}

#[test]
fn a_submodule_stays_its_commit_and_what_is_uncommitted_in_it_is_named() {
    let project = Project::new();
    let library = Project::new();
    let path = library.root.display().to_string();
    git(&project.root, ["submodule", "--quiet", "add", &path, "library"]);
    let inner = git(&project.root.join("library"), ["rev-parse", "HEAD"]);
    write(&project.root.join("library"), "src/lib.rs", "changed inside\n");
    let snapshot = project.repository().snapshot_dirty(Consent::WithinBounds).unwrap();
    assert_eq!(project.files_of(&snapshot.base)["library"], format!("160000 {inner}"));
    assert_eq!(snapshot.warnings, ["submodule library has uncommitted changes; they are not taken along"]);
}
