//! A commit that a proof names is there with everything that its id promises, or it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use towline_workspace::{Commit, ProvenCommit};

use crate::support::{Project, commit_all, git, write};

#[test]
fn a_whole_commit_has_the_tree_that_git_gives_it() {
    let project = Project::new();
    let tree = git(&project.root, ["rev-parse", "HEAD^{tree}"]);
    assert_eq!(project.repository().prove(&project.head()).unwrap(), ProvenCommit::Whole { tree });
    let missing = Commit::new("0".repeat(40));
    assert_eq!(project.repository().prove(&missing).unwrap(), ProvenCommit::Missing);
    assert!(
        project.repository().has(&project.head()).unwrap() && !project.repository().has(&missing).unwrap()
    );
}

#[test]
fn every_object_below_a_commit_is_hashed() {
    for what in ["HEAD", "HEAD^{tree}", "HEAD:src", "HEAD:src/lib.rs"] {
        let project = Project::new();
        let commit = project.head();
        let id = git(&project.root, ["rev-parse", what]);
        write(&project.root, "src/lib.rs", "another\n");
        commit_all(&project.root, "another");
        let lie = git(&project.root, ["rev-parse", what]);
        let loose = |id: &str| project.root.join(".git/objects").join(&id[..2]).join(&id[2..]);
        fs::set_permissions(loose(&id), fs::Permissions::from_mode(0o644)).unwrap();
        fs::copy(loose(&lie), loose(&id)).unwrap();
        let found = project.repository().prove(&commit).unwrap();
        // Git may find no commit in a file that has another one.
        let missing = (what == "HEAD").then_some(ProvenCommit::Missing);
        let expected = [ProvenCommit::Damaged(id), ProvenCommit::Damaged(commit.to_string())];
        assert!(expected.into_iter().chain(missing).any(|one| one == found), "{what}: {found:?}");
    }
}

#[test]
fn large_files_are_proven_one_by_one() {
    let project = Project::new();
    for name in ["one", "two"] {
        write(&project.root, name, &name.repeat(8 << 20));
    }
    commit_all(&project.root, "large");
    let found = project.repository().prove(&project.head()).unwrap();
    assert!(matches!(found, ProvenCommit::Whole { .. }), "{found:?}");
}
