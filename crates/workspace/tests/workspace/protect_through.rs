//! Symlinks and submodules give no way around protected paths.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use towline_workspace::Protect;

use crate::support::{Project, commit_all, git, strings, write};

/// What is restored of an agent's changes under these patterns, and what is left of them. Paths that must stay untouched
/// are found by the same rules.
fn judged(project: &Project, patterns: &[&str], work: impl Fn(&Path)) -> (Vec<String>, Vec<String>) {
    let workspace = project.workspace();
    work(workspace.path());
    let base = project.head();
    let patterns = strings(patterns);
    let as_it_is = workspace.candidate(1, &Protect::nothing()).unwrap();
    let touched =
        project.own().changes_under(&Protect::new(&patterns).unwrap(), &base, &as_it_is.commit).unwrap();
    let made = workspace.candidate(2, &Protect::of(&patterns, &[]).unwrap()).unwrap();
    let left = ["diff-tree", "-r", "--name-only", "--no-renames", base.as_str(), made.commit.as_str()];
    let left = String::from_utf8(project.git_of_goal(left)).unwrap();
    let touched: Vec<String> = touched.into_iter().map(|changed| changed.path).collect();
    assert_eq!(touched, made.restored, "untouched and protected differ");
    (made.restored, left.lines().map(str::to_owned).collect())
}

fn with_symlink(name: &str, to: &str) -> Project {
    let project = Project::new();
    write(&project.root, "spec/unit/a.py", "assert 1\n");
    fs::create_dir_all(project.root.join(name).parent().unwrap()).unwrap();
    symlink(to, project.root.join(name)).unwrap();
    commit_all(&project.root, "with a symlink");
    project
}

fn replace_symlink(path: &Path, to: &str) {
    fs::remove_file(path).unwrap();
    symlink(to, path).unwrap();
}

#[test]
fn a_protected_symlink_keeps_its_target_and_stays_a_symlink() {
    let project = with_symlink("e2e", "spec");
    for pattern in ["e2e", "e2e/**", "e2e/unit/*.py", "**/*.py"] {
        let (restored, left) = judged(&project, &[pattern], |path| {
            write(path, "weak/unit/a.md", "weak\n");
            replace_symlink(&path.join("e2e"), "weak");
        });
        assert_eq!((restored, left), (strings(&["e2e"]), strings(&["weak/unit/a.md"])), "{pattern}");
        fs::remove_dir_all(project.beside("workspaces")).unwrap();
    }
    let (restored, left) = judged(&project, &["e2e"], |path| {
        fs::remove_file(path.join("e2e")).unwrap();
        write(path, "e2e/unit/a.py", "weak\n");
    });
    assert_eq!((restored, left), (strings(&["e2e", "e2e/unit/a.py"]), strings(&[])));
}

#[test]
fn what_a_protected_symlink_leads_to_is_protected() {
    let project = with_symlink("e2e", "spec");
    let (restored, left) = judged(&project, &["e2e/**"], |path| {
        write(path, "spec/unit/a.py", "weak\n");
        write(path, "spec/new.py", "weak\n");
        write(path, "src/lib.rs", "fixed\n");
    });
    assert_eq!((restored, left), (strings(&["spec/new.py", "spec/unit/a.py"]), strings(&["src/lib.rs"])));
}

#[test]
fn a_file_behind_a_protected_symlink_is_protected() {
    let project = with_symlink("deep/conftest.py", "../spec/unit/a.py");
    let (restored, left) =
        judged(&project, &["**/conftest.py"], |path| write(path, "spec/unit/a.py", "weak\n"));
    assert_eq!((restored, left), (strings(&["spec/unit/a.py"]), strings(&[])));
}

#[test]
fn a_directory_pattern_keeps_anything_else_from_taking_the_name() {
    let project = Project::new();
    let (restored, left) = judged(&project, &["tests/**", "e2e/**"], |path| {
        fs::rename(path.join("tests"), path.join("elsewhere")).unwrap();
        symlink("elsewhere", path.join("tests")).unwrap();
        write(path, "e2e", "a file\n");
    });
    assert_eq!(restored, strings(&["e2e", "tests", "tests/a.rs", "tests/b.rs"]));
    assert_eq!(left, strings(&["elsewhere/a.rs", "elsewhere/b.rs"]));
}

#[test]
fn a_new_symlink_cannot_bring_protected_names_in() {
    let project = Project::new();
    let outside = project.beside("outside");
    write(&outside, "conftest.py", "weak\n");
    let (restored, left) = judged(&project, &["**/conftest.py", "unit/cases/*.py", "lib/test.py"], |path| {
        symlink(&outside, path.join("plugin")).unwrap();
        symlink("../../elsewhere", path.join("src/above")).unwrap();
        write(path, "other/cases/a.py", "weak\n");
        symlink("other", path.join("unit")).unwrap();
        write(path, "test.py", "weak\n");
        symlink(".", path.join("lib")).unwrap();
        // Honest ones.
        symlink("lib.rs", path.join("src/main.rs")).unwrap();
        symlink("src", path.join("sources")).unwrap();
    });
    assert_eq!(restored, strings(&["lib", "plugin", "src/above", "unit"]));
    assert_eq!(left, strings(&["other/cases/a.py", "sources", "src/main.rs", "test.py"]));
}

/// A project with the submodule `vendor/lib`, which has two commits; the later one is returned.
fn with_submodule() -> (Project, String) {
    let project = Project::new();
    let library = project.beside("library");
    fs::create_dir(&library).unwrap();
    git(&library, ["init", "-q"]);
    write(&library, "test.py", "assert 1\n");
    commit_all(&library, "first");
    git(
        &project.root,
        [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "-q",
            "add",
            library.to_str().unwrap(),
            "vendor/lib",
        ],
    );
    commit_all(&project.root, "with a submodule");
    write(&library, "test.py", "weak\n");
    let later = commit_all(&library, "second").to_string();
    (project, later)
}

fn point_to(path: &Path, commit: &str) {
    git(path, ["update-index", "--cacheinfo", &format!("160000,{commit},vendor/lib")]);
    git(path, ["commit", "-q", "-m", "another commit of the submodule"]);
}

#[test]
fn a_protected_submodule_keeps_its_commit_and_its_address() {
    for pattern in ["vendor/**", "vendor/lib", "vendor/lib/test.py"] {
        let (project, later) = with_submodule();
        let (restored, left) = judged(&project, &[pattern], |path| {
            point_to(path, &later);
            write(path, ".gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../mine\n");
        });
        assert_eq!((restored, left), (strings(&[".gitmodules", "vendor/lib"]), strings(&[])), "{pattern}");
    }
    let (project, later) = with_submodule();
    let (restored, left) = judged(&project, &["tests/**", "**/test.py"], |path| point_to(path, &later));
    assert_eq!((restored, left), (strings(&[]), strings(&["vendor/lib"])));
}

#[test]
fn a_protected_submodule_does_not_become_files_or_a_symlink() {
    let (project, _) = with_submodule();
    let (restored, left) = judged(&project, &["vendor/**"], |path| {
        git(path, ["rm", "-q", "--cached", "vendor/lib"]);
        write(path, "vendor/lib/test.py", "weak\n");
    });
    assert_eq!((restored, left), (strings(&["vendor/lib", "vendor/lib/test.py"]), strings(&[])));
    let (project, _) = with_submodule();
    let (restored, left) = judged(&project, &["vendor/lib/test.py"], |path| {
        fs::remove_dir(path.join("vendor/lib")).unwrap();
        symlink("../src", path.join("vendor/lib")).unwrap();
    });
    assert_eq!((restored, left), (strings(&["vendor/lib"]), strings(&[])));
}
