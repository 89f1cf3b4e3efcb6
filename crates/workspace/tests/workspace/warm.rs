//! Checkouts with the warm directories of an earlier one hold the candidate, those directories, and nothing else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use towline_workspace::{Commit, Protect, Scope, Verification, aside_of, verification, warm_verification};

use crate::support::{Project, commit_all, files_below, git, names_below, strings, write};

fn place(project: &Project) -> PathBuf {
    project.beside("verify/one")
}

/// A checkout that is left for the next verdict, with times of long ago.
fn leave(project: &Project, commit: &Commit, build: impl FnOnce(&Path)) -> PathBuf {
    let checkout = verification(&project.own(), &place(project), commit, &[]).unwrap();
    build(checkout.path());
    age(checkout.path());
    checkout.keep_warm().unwrap();
    checkout.path().to_path_buf()
}

fn warm(project: &Project, commit: &Commit, directories: &[&str]) -> Verification {
    let (own, directories) = (project.own(), strings(directories));
    warm_verification(&own, &place(project), commit, &[], &directories).unwrap()
}

fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

/// Gives everything below a directory a time of long ago.
fn age(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            age(&entry.path());
        }
        if !entry.file_type().unwrap().is_symlink() {
            fs::File::open(entry.path()).unwrap().set_modified(long_ago()).unwrap();
        }
    }
}

fn is_aged(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().modified().unwrap() == long_ago()
}

fn assert_clean(checkout: &Verification) {
    assert!(!checkout.is_warm());
    assert!(!checkout.path().join("target").exists());
    assert!(!aside_of(checkout.path()).exists());
}

#[test]
fn changed_files_are_rewritten_others_keep_their_times_and_only_warm_directories_stay() {
    let project = Project::new();
    let first = project.head();
    write(&project.root, "src/lib.rs", "pub fn two() {}\n");
    write(&project.root, "src/new.rs", "new\n");
    fs::set_permissions(project.root.join("tests/b.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("lib.rs", project.root.join("src/link")).unwrap();
    let second = commit_all(&project.root, "second");
    let path = leave(&project, &first, |top| {
        write(top, "target/debug/out", "built\n");
        write(top, "untracked", "left by a check\n");
        write(top, "debug.log", "ignored\n");
        write(top, "src/gen/out", "untracked, and deeper\n");
        write(top, "other/cache", "not warm\n");
        write(top, "tests/a.rs", "changed by a check\n");
    });

    let checkout = warm(&project, &second, &["target"]);

    assert!(checkout.is_warm());
    assert_eq!(checkout.path(), path, "the path stays the same");
    let names = names_below(checkout.path());
    let expected = [
        ".gitignore",
        "src/lib.rs",
        "src/link",
        "src/new.rs",
        "target/debug/out",
        "tests/a.rs",
        "tests/b.rs",
    ];
    assert_eq!(names, expected);
    assert_eq!(git(checkout.path(), ["status", "--porcelain"]), "");
    assert_eq!(git(checkout.path(), ["rev-parse", "HEAD"]), second.as_str());
    let aged: Vec<&str> = names.iter().map(String::as_str).filter(|name| is_aged(&path.join(name))).collect();
    assert_eq!(aged, [".gitignore", "target/debug/out"], "all others are new or differ");
    assert!(is_aged(&path.join("tests")) && !is_aged(&path.join("src")), "directories with the same names");
    assert_eq!(fs::metadata(path.join("tests/b.rs")).unwrap().mode() & 0o111, 0o111);
    let protect = Protect::new(&strings(&["src/**", "tests/**", "target/**", "untracked"])).unwrap();
    assert_eq!(checkout.differences(Scope::All, &protect, &Default::default()).unwrap(), []);
    assert!(!aside_of(&path).exists());
}

#[test]
fn tracked_files_below_a_warm_directory_are_those_of_the_candidate() {
    let project = Project::new();
    write(&project.root, "build/Makefile", "all:\n");
    write(&project.root, "build/sub/deleted", "x\n");
    write(&project.root, "build/same", "x\n");
    let first = commit_all(&project.root, "first");
    git(&project.root, ["rm", "-q", "build/sub/deleted"]);
    write(&project.root, "build/Makefile", "all: new\n");
    write(&project.root, "build/added/file", "x\n");
    let second = commit_all(&project.root, "second");
    let path = leave(&project, &first, |top| {
        write(top, "build/out/cache", "built\n");
        write(top, "build/sub/cache", "built\n");
        write(top, "build/Makefile", "changed by a check\n");
        fs::remove_file(top.join("build/same")).unwrap();
        // The candidate has a file there.
        write(top, "build/added/file/cache", "built\n");
    });

    let checkout = warm(&project, &second, &["build"]);

    let built: Vec<String> =
        names_below(&path).into_iter().filter(|name| name.starts_with("build/")).collect();
    let expected = ["build/Makefile", "build/added/file", "build/out/cache", "build/same", "build/sub/cache"];
    assert_eq!(built, expected);
    assert_eq!(git(&path, ["diff", "HEAD", "--stat"]), "");
    assert!(checkout.is_warm());
    assert_eq!(checkout.differences(Scope::All, &Protect::nothing(), &Default::default()).unwrap(), []);

    // Once none of it is tracked any more, none of it stays.
    checkout.keep_warm().unwrap();
    git(&project.root, ["rm", "-q", "-r", "build"]);
    let third = commit_all(&project.root, "third");
    let checkout = warm(&project, &third, &["build"]);
    let built: Vec<String> =
        names_below(&path).into_iter().filter(|name| name.starts_with("build/")).collect();
    assert_eq!(built, ["build/out/cache", "build/sub/cache"]);
    assert!(checkout.is_warm());
}

#[test]
fn nested_directories_are_warm_too_and_one_whose_folder_is_gone_is_not() {
    let project = Project::new();
    write(&project.root, "web/package.json", "{}\n");
    write(&project.root, "old/package.json", "{}\n");
    let first = commit_all(&project.root, "first");
    git(&project.root, ["rm", "-q", "-r", "old"]);
    let second = commit_all(&project.root, "second");
    let path = leave(&project, &first, |top| {
        write(top, "web/node_modules/a/a.test.js", "package\n");
        write(top, "old/node_modules/a", "package\n");
    });
    let checkout = warm(&project, &second, &["web/node_modules", "old/node_modules", "./missing", "../up"]);
    assert!(path.join("web/node_modules/a/a.test.js").exists() && !path.join("old").exists());
    // What is in a protected place is not compared there, as packages are not elsewhere.
    let tests = Protect::new(&strings(&["**/*.test.js"])).unwrap();
    assert_eq!(checkout.differences(Scope::All, &tests, &Default::default()).unwrap(), []);
    write(&path, "web/added.test.js", "x");
    assert_eq!(checkout.differences(Scope::All, &tests, &Default::default()).unwrap().len(), 1);
}

#[test]
fn a_directory_that_is_copied_or_of_the_commit_comes_from_there() {
    let project = Project::new();
    write(&project.root, "target/users", "the user's\n");
    write(&project.root, "vendor", "a file by now\n");
    let second = commit_all(&project.root, "second");
    let first = Commit::new(git(&project.root, ["rev-parse", "HEAD^"]));
    let path = leave(&project, &first, |top| {
        write(top, "target/out", "built\n");
        write(top, "vendor/out", "built\n");
        write(top, ".git/out", "built\n");
    });
    let (own, copy) = (project.own(), strings(&["./target"]));
    let names = strings(&["target", "vendor", ".git"]);
    let checkout = warm_verification(&own, &place(&project), &second, &copy, &names).unwrap();
    assert!(!checkout.is_warm());
    assert_eq!(names_below(&path.join("target")), ["users"]);
    assert!(path.join("vendor").is_file() && !path.join(".git/out").exists());
}

#[test]
fn what_is_no_directory_of_the_checkout_is_never_followed() {
    let project = Project::new();
    write(&project.root, "web/build/tracked", "x\n");
    let first = commit_all(&project.root, "first");
    git(&project.root, ["rm", "-q", "web/build/tracked"]);
    write(&project.root, "web/other", "x\n");
    let second = commit_all(&project.root, "second");
    let users = project.beside("users");
    write(&users, "tracked", "precious\n");
    write(&users, "build/tracked", "precious\n");
    let before = files_below(&users);
    let plants: [&dyn Fn(&Path); 3] = [
        &|top| {
            fs::remove_dir_all(top.join("web/build")).unwrap();
            symlink(&users, top.join("web/build")).unwrap();
        },
        &|top| {
            fs::remove_dir_all(top.join("web")).unwrap();
            symlink(&users, top.join("web")).unwrap();
        },
        &|top| {
            fs::remove_dir_all(top.join("web/build")).unwrap();
            fs::write(top.join("web/build"), "a file").unwrap();
        },
    ];
    for plant in plants {
        let path = leave(&project, &first, |top| write(top, "web/build/out", "built"));
        plant(&path);
        let checkout = warm(&project, &second, &["web/build"]);
        assert!(!checkout.is_warm());
        assert!(!path.join("web/build").exists() && !path.join("web").is_symlink());
        assert_eq!(files_below(&users), before);
        checkout.remove().unwrap();
    }
}

#[test]
fn a_way_through_a_symlink_inside_of_a_warm_directory_ends_in_a_clean_checkout() {
    let project = Project::new();
    write(&project.root, "target/sub/tracked", "x\n");
    git(&project.root, ["add", "-f", "target"]);
    let first = commit_all(&project.root, "first");
    let users = project.beside("users");
    write(&users, "tracked", "precious\n");
    let path = leave(&project, &first, |top| {
        write(top, "target/out", "built\n");
        fs::remove_dir_all(top.join("target/sub")).unwrap();
        symlink(&users, top.join("target/sub")).unwrap();
    });
    let checkout = warm(&project, &first, &["target"]);
    assert!(!checkout.is_warm());
    assert_eq!(names_below(&path.join("target")), ["sub/tracked"]);
    assert_eq!(fs::read_to_string(users.join("tracked")).unwrap(), "precious\n");
}

#[test]
fn one_that_was_cut_off_or_left_by_nobody_starts_clean() {
    let project = Project::new();
    let head = project.head();
    let build = |top: &Path| write(top, "target/out", "built\n");
    // A checkout that nobody left for the next verdict.
    let checkout = verification(&project.own(), &place(&project), &head, &[]).unwrap();
    build(checkout.path());
    assert_clean(&warm(&project, &head, &["target"]));
    // A run that used a warm checkout and was killed.
    leave(&project, &head, build);
    assert!(warm(&project, &head, &["target"]).is_warm());
    assert_clean(&warm(&project, &head, &["target"]));
    // One that was killed while the warm directories were moved.
    let path = leave(&project, &head, build);
    fs::rename(&path, aside_of(&path)).unwrap();
    assert_clean(&warm(&project, &head, &["target"]));
    // One whose commit nobody knows, or whose note is no commit.
    let own = project.plan().own;
    for commit in ["1".repeat(40), "--help".to_owned(), String::new()] {
        let path = leave(&project, &head, build);
        fs::write(own.join("towline-warm-checkout"), format!("{commit}\0{}", path.display())).unwrap();
        assert_clean(&warm(&project, &head, &["target"]));
    }
    // One that a clean checkout was made in the place of.
    leave(&project, &head, build);
    let checkout = verification(&project.own(), &place(&project), &head, &[]).unwrap();
    assert_clean(&checkout);
    assert_clean(&warm(&project, &head, &["target"]));
}

#[test]
fn a_checkout_elsewhere_leaves_it_alone() {
    let project = Project::new();
    let head = project.head();
    leave(&project, &head, |top| write(top, "target/out", "built\n"));
    let base = project.beside("verify/base");
    verification(&project.own(), &base, &head, &[]).unwrap().remove().unwrap();
    assert!(warm(&project, &head, &["target"]).is_warm());
}

#[test]
fn files_that_git_converts_keep_their_times() {
    let project = Project::new();
    git(&project.root, ["config", "core.autocrlf", "true"]);
    write(&project.root, "text.txt", "one\r\ntwo\r\n");
    let head = commit_all(&project.root, "text");
    let path = leave(&project, &head, |top| write(top, "target/out", "built\n"));
    assert!(warm(&project, &head, &["target"]).is_warm());
    assert!(is_aged(&path.join("text.txt")));
    assert_eq!(fs::read_to_string(path.join("text.txt")).unwrap(), "one\r\ntwo\r\n");
}
