//! Git repositories inside a workspace: nothing in them vanishes without a word.

use std::fs;
use std::path::Path;

use towline_workspace::{Candidate, Protect, Workspace};

use crate::support::{Project, State, commit_all, expected, git, strings, write};

/// The hint about `git submodule update --init`.
const INITIALISED: &str = "the agent changed in its clone, without effect elsewhere: its git configuration";

fn candidate(workspace: &Workspace) -> Candidate {
    let before = State::of(workspace.path());
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(State::of(workspace.path()), before);
    made
}

/// What the candidate added to the base, with the contents.
fn added(project: &Project, made: &Candidate) -> Vec<(String, String)> {
    let base = project.files_of(&project.head());
    project.files_of(&made.commit).into_iter().filter(|(path, _)| !base.contains_key(path)).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    expected(list).into_iter().collect()
}

fn plain_files(name: &str) -> String {
    format!(
        "{name} is a git repository of its own; its files are taken along as plain files, its history is not"
    )
}

fn init(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    git(directory, ["init", "-q"]);
    write(directory, ".gitignore", "private\n");
    write(directory, "main.rs", "main\n");
    write(directory, "private", "ignored by the inner rules\n");
    write(directory, "x.log", "ignored by the outer rules\n");
}

#[test]
fn a_repository_without_commits_is_taken_in_as_files() {
    let project = Project::new();
    let workspace = project.workspace();
    init(&workspace.path().join("apps/web"));
    write(workspace.path(), "apps/readme", "beside\n");
    let made = candidate(&workspace);
    assert_eq!(
        added(&project, &made),
        pairs(&[
            ("apps/readme", "100644 beside\n"),
            ("apps/web/.gitignore", "100644 private\n"),
            ("apps/web/main.rs", "100644 main\n"),
        ])
    );
    assert_eq!(made.warnings, [plain_files("apps/web")]);
}

#[test]
fn a_repository_with_commits_and_repositories_inside_it_is_taken_in_as_files() {
    let project = Project::new();
    let workspace = project.workspace();
    let outer = workspace.path().join("with space");
    init(&outer);
    write(&outer, "private", "tracked although ignored\n");
    git(&outer, ["add", "-f", "private"]);
    commit_all(&outer, "inner");
    write(&outer, "uncommitted", "yes\n");
    init(&outer.join("deeper"));
    let made = candidate(&workspace);
    assert_eq!(
        added(&project, &made),
        pairs(&[
            ("with space/.gitignore", "100644 private\n"),
            ("with space/deeper/.gitignore", "100644 private\n"),
            ("with space/deeper/main.rs", "100644 main\n"),
            ("with space/main.rs", "100644 main\n"),
            ("with space/private", "100644 tracked although ignored\n"),
            ("with space/uncommitted", "100644 yes\n"),
            ("with space/x.log", "100644 ignored by the outer rules\n"),
        ])
    );
    assert_eq!(made.warnings, [plain_files("with space")]);
}

#[test]
fn a_repository_that_the_agent_committed_as_a_bare_gitlink_is_taken_in_as_files() {
    let project = Project::new();
    let workspace = project.workspace();
    let inner = workspace.path().join("vendored");
    init(&inner);
    commit_all(&inner, "inner");
    commit_all(workspace.path(), "with a gitlink to a commit that nobody else has");
    let made = candidate(&workspace);
    assert_eq!(
        added(&project, &made),
        pairs(&[
            ("vendored/.gitignore", "100644 private\n"),
            ("vendored/main.rs", "100644 main\n"),
            ("vendored/x.log", "100644 ignored by the outer rules\n"),
        ])
    );
    assert_eq!(made.warnings, [plain_files("vendored")]);
}

#[test]
fn another_worktree_of_the_same_repository_is_left_out() {
    let project = Project::new();
    let workspace = project.workspace();
    git(workspace.path(), ["worktree", "add", "-q", "-b", "side", "trees/side"]);
    write(workspace.path(), "work.rs", "x");
    let made = candidate(&workspace);
    assert_eq!(added(&project, &made), pairs(&[("work.rs", "100644 x")]));
    assert_eq!(
        made.warnings,
        strings(&[
            "trees/side is another worktree of this repository; its files are not taken along",
            "the agent changed in its clone, without effect elsewhere: refs (refs/heads/side)",
        ])
    );
}

#[test]
fn an_ignored_repository_is_ignored() {
    let project = Project::new();
    let workspace = project.workspace();
    init(&workspace.path().join("target/clone"));
    let made = candidate(&workspace);
    assert_eq!((made.commit, made.warnings), (project.head(), strings(&[])));
}

/// A workspace with an initialised submodule `lib` that the base has.
pub(crate) fn with_submodule(project: &Project) -> Workspace {
    let library = project.beside("library");
    init(&library);
    commit_all(&library, "library");
    git(&project.root, ["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"]);
    commit_all(&project.root, "with a submodule");
    let workspace = project.workspace();
    git(workspace.path(), ["submodule", "--quiet", "update", "--init"]);
    workspace
}

#[test]
fn submodules_stay_commits_and_new_commits_in_them_are_recorded() {
    let project = Project::new();
    let workspace = with_submodule(&project);
    assert_eq!(candidate(&workspace).commit, project.head());
    let inner = workspace.path().join("lib");
    write(&inner, "main.rs", "changed\n");
    let commit = commit_all(&inner, "changed");
    let made = candidate(&workspace);
    assert_eq!(project.files_of(&made.commit)["lib"], format!("160000 {commit}"));
    assert_eq!(made.warnings, strings(&[INITIALISED]));
}

#[test]
fn a_submodule_that_the_agent_adds_is_one_committed_or_not() {
    for is_committed in [true, false] {
        let project = Project::new();
        let library = project.beside("library");
        init(&library);
        let commit = commit_all(&library, "library");
        let workspace = project.workspace();
        git(workspace.path(), ["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"]);
        if is_committed {
            commit_all(workspace.path(), "with a submodule");
        }
        let made = candidate(&workspace);
        let files = project.files_of(&made.commit);
        assert_eq!(files["lib"], format!("160000 {commit}"));
        assert!(files[".gitmodules"].contains("path = lib"));
    }
}

#[test]
fn uncommitted_changes_in_a_submodule_are_named() {
    let project = Project::new();
    let workspace = with_submodule(&project);
    write(&workspace.path().join("lib"), "main.rs", "changed\n");
    let made = candidate(&workspace);
    assert_eq!(made.commit, project.head());
    let dirty = "submodule lib has uncommitted changes; they are not taken along";
    assert_eq!(made.warnings, strings(&[dirty, INITIALISED]));
    assert_eq!(made.uncommitted, strings(&["lib"]));
}

#[test]
fn a_repository_in_the_place_of_a_file_is_taken_in_as_files() {
    let project = Project::new();
    let workspace = project.workspace();
    let inner = workspace.path().join("src/lib.rs");
    fs::remove_file(&inner).unwrap();
    write(&inner, "work.txt", "first\n");
    git(&inner, ["init", "-q"]);
    commit_all(&inner, "inner");
    write(&inner, "work.txt", "second\n");
    let made = candidate(&workspace);
    assert_eq!(added(&project, &made), pairs(&[("src/lib.rs/work.txt", "100644 second\n")]));
    assert_eq!(made.warnings, [plain_files("src/lib.rs")]);
}
