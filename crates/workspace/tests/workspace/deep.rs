//! Trees that are as deep as a path can be long, and deeper.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use towline_workspace::{Change, Protect, Scope, verification};

use crate::hostile_git::{candidate, promptly};
use crate::support::{Project, git};

/// So many directories in one another that looking each of them up from the root, for each file below, would take a minute.
const DEEP: usize = 1_500;

/// Makes directories in one another below `top`, with a file in each.
fn nest(top: &Path, depth: usize) {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory: OwnedFd = open(top, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&directory, c"d", Mode::RWXU).unwrap();
        directory = openat(&directory, c"d", flags, Mode::empty()).unwrap();
        let file = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&directory, c"f", file, Mode::RUSR | Mode::WUSR).unwrap();
    }
}

#[test]
fn a_deep_tree_is_compared_promptly_and_one_change_in_it_is_found() {
    let project = Project::new();
    let workspace = project.workspace();
    nest(workspace.path(), DEEP);
    git(workspace.path(), ["add", "--all"]);
    let made = candidate(&workspace, "a deep tree");
    let (own, place) = (project.own(), project.beside("v"));
    let innermost = format!("{}f", "d/".repeat(DEEP));
    let expected = (Change::Changed, innermost.clone().into());
    let found = promptly("the comparison of a deep tree", move || {
        let checkout = verification(&own, &place, &made.commit, &[]).unwrap();
        let differences = || {
            let found = checkout.differences(Scope::All, &Protect::nothing(), &BTreeSet::new()).unwrap();
            found.into_iter().map(|found| (found.kind, found.path)).collect::<Vec<_>>()
        };
        assert_eq!(differences(), []);
        std::fs::write(checkout.path().join(innermost), "changed").unwrap();
        differences()
    });
    assert_eq!(found, [expected]);
}

#[test]
fn a_tree_that_is_deeper_than_a_path_can_be_long_is_reported_by_its_top_and_removed() {
    let project = Project::new();
    let (own, place) = (project.own(), project.beside("v"));
    let checkout = verification(&own, &place, &project.head(), &[]).unwrap();
    std::fs::create_dir(checkout.path().join("new")).unwrap();
    nest(&checkout.path().join("new"), 5_000);
    promptly("a tree without end", move || {
        let protect = Protect::new(&["new/**/g".to_owned()]).unwrap();
        let found = checkout.differences(Scope::All, &protect, &BTreeSet::new()).unwrap();
        let found: Vec<_> = found.into_iter().map(|found| (found.kind, found.path)).collect();
        assert_eq!(found, [(Change::Added, "new/".into())]);
        checkout.remove().unwrap();
        assert!(!place.exists());
    });
}
