//! A clean checkout is compared with its commit, whatever happened to its files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use towline_workspace::{Change, Difference, Protect, Scope, Verification, verification};

use crate::hostile_git::fifo;
use crate::support::{Project, commit_all, git, git_with_input, strings, write};
use Change::{Added, Changed, Deleted};

fn protect() -> Protect {
    Protect::of(&strings(&["tests/**", "link", "conftest.py", "lib"]), &[]).unwrap()
}

/// A project with an executable, a symlink, and directories in directories.
fn project() -> Project {
    let project = Project::new();
    write(&project.root, "tests/run.sh", "#!/bin/sh\n");
    fs::set_permissions(project.root.join("tests/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&project.root, "tests/deep/er/c.rs", "assert c\n");
    symlink("src/lib.rs", project.root.join("link")).unwrap();
    commit_all(&project.root, "more files");
    project
}

fn check_out(project: &Project) -> Verification {
    verification(&project.own(), &project.beside("verify"), &project.head(), &[]).unwrap()
}

fn name(difference: &Difference) -> String {
    difference.path.to_string_lossy().into_owned()
}

/// All differences, and those of protected paths, each as path and kind.
fn found(checkout: &Verification) -> [Vec<(String, Change)>; 2] {
    let known = BTreeSet::new();
    let named = |all: Vec<Difference>| all.iter().map(|one| (name(one), one.kind)).collect();
    [
        checkout.differences(Scope::All, &protect(), &known).map(named).unwrap(),
        checkout.differences(Scope::Protected, &protect(), &known).map(named).unwrap(),
    ]
}

fn expected(list: &[(&str, Change)]) -> Vec<(String, Change)> {
    list.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect()
}

type Action = fn(&Path);
type Expected = &'static [(&'static str, Change)];

/// Changes of a checkout, and what they are found as.
const CHANGES: [(&str, Action, Expected); 14] = [
    ("content", |at| write(at, "tests/a.rs", "weakened\n"), &[("tests/a.rs", Changed)]),
    (
        "content of the same size and time",
        |at| {
            let file = at.join("tests/a.rs");
            let time = fs::metadata(&file).unwrap().modified().unwrap();
            fs::write(&file, "assert x\n").unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        },
        &[("tests/a.rs", Changed)],
    ),
    ("gone", |at| fs::remove_file(at.join("tests/a.rs")).unwrap(), &[("tests/a.rs", Deleted)]),
    (
        "a directory gone",
        |at| fs::remove_dir_all(at.join("tests/deep")).unwrap(),
        &[("tests/deep/er/c.rs", Deleted)],
    ),
    ("added", |at| write(at, "tests/new.rs", "x"), &[("tests/new.rs", Added)]),
    ("added at the top", |at| write(at, "conftest.py", "x"), &[("conftest.py", Added)]),
    ("added below", |at| write(at, "tests/other/new.rs", "x"), &[("tests/other/new.rs", Added)]),
    (
        "executable",
        |at| {
            fs::set_permissions(at.join("tests/a.rs"), fs::Permissions::from_mode(0o755)).unwrap();
        },
        &[("tests/a.rs", Changed)],
    ),
    (
        "not executable",
        |at| {
            fs::set_permissions(at.join("tests/run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        },
        &[("tests/run.sh", Changed)],
    ),
    (
        "a symlink to the very same content",
        |at| {
            fs::rename(at.join("tests/a.rs"), at.join("a.rs")).unwrap();
            symlink("../a.rs", at.join("tests/a.rs")).unwrap();
        },
        &[("tests/a.rs", Changed)],
    ),
    (
        "a file in the place of a symlink, with the same text",
        |at| {
            fs::remove_file(at.join("link")).unwrap();
            fs::write(at.join("link"), "src/lib.rs").unwrap();
        },
        &[("link", Changed)],
    ),
    (
        "another target",
        |at| {
            fs::remove_file(at.join("link")).unwrap();
            symlink("src/other", at.join("link")).unwrap();
        },
        &[("link", Changed)],
    ),
    (
        "a FIFO",
        |at| {
            fs::remove_file(at.join("tests/a.rs")).unwrap();
            fifo(&at.join("tests/a.rs"));
        },
        &[("tests/a.rs", Changed)],
    ),
    (
        "a directory in the place of a file",
        |at| {
            fs::remove_file(at.join("tests/a.rs")).unwrap();
            fs::create_dir(at.join("tests/a.rs")).unwrap();
        },
        &[("tests/a.rs", Changed)],
    ),
];

#[test]
fn every_change_of_a_protected_file_is_found() {
    let project = project();
    for (what, change, differences) in CHANGES {
        let checkout = check_out(&project);
        assert_eq!(found(&checkout), [expected(&[]), expected(&[])], "before: {what}");
        change(checkout.path());
        assert_eq!(found(&checkout), [expected(differences), expected(differences)], "{what}");
        let other = [("src/lib.rs", Changed)];
        write(checkout.path(), "src/lib.rs", "changed\n");
        write(checkout.path(), "src/untracked.rs", "what is neither tracked nor protected does not count\n");
        let mut all = expected(differences);
        all.extend(expected(&other));
        all.sort_by(|one, another| one.0.cmp(&another.0));
        assert_eq!(found(&checkout), [all, expected(differences)], "{what}, and another file");
    }
}

#[test]
fn a_directory_that_became_a_symlink_is_found_although_all_files_are_the_same() {
    let project = project();
    for (directory, files) in [
        ("tests", vec!["tests/a.rs", "tests/b.rs", "tests/deep/er/c.rs", "tests/run.sh"]),
        ("tests/deep", vec!["tests/deep/er/c.rs"]),
    ] {
        let checkout = check_out(&project);
        let moved = project.beside("moved");
        fs::rename(checkout.path().join(directory), &moved).unwrap();
        symlink(&moved, checkout.path().join(directory)).unwrap();
        let [all, protected] = found(&checkout);
        let mut changed: Vec<(String, Change)> =
            files.iter().map(|file| ((*file).to_owned(), Changed)).collect();
        changed.insert(0, (directory.to_owned(), Added));
        assert_eq!((&all, &protected), (&changed, &changed), "{directory}");
        fs::remove_dir_all(&moved).unwrap();
    }
}

#[test]
fn a_symlink_that_leads_in_a_circle_and_a_closed_directory_are_differences_and_no_errors() {
    let project = project();
    let checkout = check_out(&project);
    fs::remove_dir_all(checkout.path().join("tests/deep")).unwrap();
    symlink("deep", checkout.path().join("tests/deep")).unwrap();
    let both = expected(&[("tests/deep", Added), ("tests/deep/er/c.rs", Changed)]);
    assert_eq!(found(&checkout), [both.clone(), both]);
}

#[test]
fn directories_with_a_path_that_is_too_long_are_a_difference_and_no_error() {
    let project = project();
    let checkout = check_out(&project);
    let mut directory = fs::File::open(checkout.path().join("src")).unwrap();
    let name = "d".repeat(255);
    // By handles: the system takes no path of this length.
    for _ in 0..20 {
        mkdirat(&directory, &name, Mode::RWXU).unwrap();
        directory = openat(&directory, &name, OFlags::DIRECTORY, Mode::empty()).unwrap().into();
    }
    let added = expected(&[(&format!("src/{name}/"), Added)]);
    assert_eq!(found(&checkout), [added.clone(), added]);
    let added = checkout.differences(Scope::All, &protect(), &BTreeSet::new()).unwrap();
    assert_eq!(checkout.remove_added(added).unwrap(), []);
    assert_eq!(found(&checkout), [expected(&[]), expected(&[])]);
}

#[test]
fn an_added_file_is_removed_whatever_the_bytes_of_its_name() {
    let project = project();
    let checkout = check_out(&project);
    fs::write(checkout.path().join(OsStr::from_bytes(b"tests/\xff.py")), "").unwrap();
    assert_eq!(found(&checkout)[1], expected(&[("tests/\u{fffd}.py", Added)]));
    let added = checkout.differences(Scope::Protected, &protect(), &BTreeSet::new()).unwrap();
    assert_eq!(checkout.remove_added(added).unwrap(), []);
    assert_eq!(found(&checkout), [expected(&[]), expected(&[])]);
}

#[test]
fn what_a_difference_holds_now_is_named_by_the_id_that_git_would_give() {
    let project = project();
    let checkout = check_out(&project);
    write(checkout.path(), "tests/a.rs", "weakened\n");
    write(checkout.path(), "tests/new.rs", "new\n");
    fs::remove_file(checkout.path().join("tests/b.rs")).unwrap();
    let id = |content: &str| {
        let id = git_with_input(&project.root, ["hash-object", "--stdin"], content);
        Some(String::from_utf8(id).unwrap().trim_end().to_owned())
    };
    let difference = |path: &str, kind, now| Difference { path: path.into(), kind, now };
    assert_eq!(
        checkout.differences(Scope::All, &protect(), &BTreeSet::new()).unwrap(),
        [
            difference("tests/a.rs", Changed, id("weakened\n")),
            difference("tests/b.rs", Deleted, None),
            difference("tests/new.rs", Added, id("new\n")),
        ]
    );
}

#[test]
fn build_output_and_directories_that_are_known_do_not_count() {
    let project = project();
    let checkout = check_out(&project);
    let protect = Protect::of(&strings(&["**/*.rs", "tests/**"]), &[]).unwrap();
    write(checkout.path(), "node_modules/tests/a.rs", "installed\n");
    write(checkout.path(), "tests/__pycache__/a.pyc", "cached\n");
    let named = |known: &[&str]| {
        let known = known.iter().map(|path| path.as_bytes().to_vec()).collect();
        let all = checkout.differences(Scope::All, &protect, &known).unwrap();
        all.iter().map(name).collect::<Vec<String>>()
    };
    assert_eq!(named(&[]), ["tests/__pycache__/a.pyc"]);
    assert_eq!(named(&["tests/__pycache__/"]), strings(&[]));
    let added = checkout.differences(Scope::All, &protect, &BTreeSet::new()).unwrap();
    assert_eq!(checkout.remove_added(added).unwrap(), []);
    assert_eq!(named(&[]), strings(&[]));
}

/// Files that git writes in another way than it stores them are accepted as they were checked out, and compared with that.
fn converted(project: &Project, file: &str, as_written: &[u8]) {
    let checkout = check_out(project);
    assert_eq!(fs::read(checkout.path().join(file)).unwrap(), as_written, "{file}");
    assert_eq!(found(&checkout), [expected(&[]), expected(&[])], "{file}");
    // What git stores would be turned back into the same commit, but it is not what was checked out.
    let stored = git_bytes_of(project, file);
    assert_ne!(stored, as_written, "{file}");
    fs::write(checkout.path().join(file), stored).unwrap();
    assert_eq!(found(&checkout)[0], expected(&[(file, Changed)]), "{file}");
    fs::write(checkout.path().join(file), as_written).unwrap();
    assert_eq!(found(&checkout)[0], expected(&[]), "{file}");
}

fn git_bytes_of(project: &Project, file: &str) -> Vec<u8> {
    crate::support::git_bytes(&project.root, ["cat-file", "blob", &format!("HEAD:{file}")])
}

#[test]
fn line_endings_by_attributes_and_by_settings_are_accepted() {
    let project = Project::new();
    write(&project.root, ".gitattributes", "tests/*.txt text eol=crlf\n");
    write(&project.root, "tests/text.txt", "one\ntwo\n");
    commit_all(&project.root, "text");
    converted(&project, "tests/text.txt", b"one\r\ntwo\r\n");

    let project = Project::new();
    git(&project.root, ["config", "core.autocrlf", "true"]);
    converted(&project, "tests/a.rs", b"assert a\r\n");
}

#[test]
fn ids_and_encodings_are_accepted() {
    let project = Project::new();
    write(&project.root, ".gitattributes", "id.txt ident\nwide.txt working-tree-encoding=UTF-16LE\n");
    write(&project.root, "id.txt", "$Id$\n");
    fs::write(
        project.root.join("wide.txt"),
        "hé\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
    )
    .unwrap();
    commit_all(&project.root, "converted files");
    let id = git(&project.root, ["rev-parse", "HEAD:id.txt"]);
    converted(&project, "id.txt", format!("$Id: {id} $\n").as_bytes());
    converted(&project, "wide.txt", b"h\0\xe9\0\n\0");
}

#[test]
fn files_from_a_filter_of_the_user_are_accepted() {
    let project = Project::new();
    for (key, value) in [("clean", "tr A-Z a-z"), ("smudge", "tr a-z A-Z"), ("required", "true")] {
        git(&project.root, ["config", &format!("filter.case.{key}"), value]);
    }
    write(&project.root, ".gitattributes", "*.up filter=case\n");
    write(&project.root, "tests/a.up", "LOUD\n");
    commit_all(&project.root, "a filtered file");
    assert_eq!(git_bytes_of(&project, "tests/a.up"), b"loud\n");
    converted(&project, "tests/a.up", b"LOUD\n");
}

#[test]
fn a_file_that_a_sparse_checkout_leaves_out_may_be_missing_and_no_other() {
    let project = Project::new();
    git(&project.root, ["sparse-checkout", "set", "--no-cone", "/*", "!/tests/b.rs"]);
    let checkout = check_out(&project);
    assert!(!checkout.path().join("tests/b.rs").exists());
    assert_eq!(found(&checkout), [expected(&[]), expected(&[])]);
    fs::remove_file(checkout.path().join("tests/a.rs")).unwrap();
    let gone = expected(&[("tests/a.rs", Deleted)]);
    assert_eq!(found(&checkout), [gone.clone(), gone]);
    write(checkout.path(), "tests/a.rs", "assert a\n");
    write(checkout.path(), "tests/b.rs", "weakened\n");
    let changed = expected(&[("tests/b.rs", Changed)]);
    assert_eq!(found(&checkout), [changed.clone(), changed]);
    write(checkout.path(), "tests/b.rs", "assert b\n");
    assert_eq!(found(&checkout), [expected(&[]), expected(&[])]);
}

#[test]
fn a_submodule_may_be_filled_and_may_not_become_something_else() {
    let project = Project::new();
    let library = Project::new();
    git(&project.root, ["submodule", "--quiet", "add", library.root.to_str().unwrap(), "lib"]);
    commit_all(&project.root, "with a submodule");
    let checkout = check_out(&project);
    assert_eq!(found(&checkout), [expected(&[]), expected(&[])]);
    fs::remove_dir(checkout.path().join("lib")).unwrap();
    symlink("src", checkout.path().join("lib")).unwrap();
    let changed = expected(&[("lib", Changed)]);
    assert_eq!(found(&checkout), [changed.clone(), changed]);
}

#[test]
fn modes_do_not_count_where_the_user_sets_that_files_have_none() {
    for no in ["false", "no", "Off", "0"] {
        let project = project();
        git(&project.root, ["config", "core.fileMode", no]);
        let checkout = check_out(&project);
        fs::set_permissions(checkout.path().join("tests/run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(found(&checkout), [expected(&[]), expected(&[])], "{no}");
    }
}
