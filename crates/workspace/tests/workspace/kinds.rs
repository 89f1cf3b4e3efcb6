//! Every kind of repository that git knows: a goal goes all the way from its clone to a merge.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use towline_workspace::{
    Commit, MergeRequest, MergeStyle, Protect, Scope, Verification, Workspace, WorkspacePlan, create,
    verification,
};

use crate::private_clone::collect_garbage;
use crate::support::{
    BRANCH, GOAL, Project, State, commit_all, git, git_data, git_fails, git_with_input, strings, write,
};

const NOTHING_LEFT_OUT: [&str; 4] = [".gitignore", "src/lib.rs", "tests/a.rs", "tests/b.rs"];

/// What an agent does, in commits and outside of them.
fn work(path: &Path) {
    write(path, "src/lib.rs", "pub fn one() -> u8 {\n    2\n}\n");
    commit_all(path, "work");
    write(path, "src/new.rs", "new\n");
    write(path, "debug.log", "ignored\n");
}

fn check_out(project: &Project, commit: &Commit) -> Verification {
    verification(&project.own(), &project.beside("verify"), commit, &[]).unwrap()
}

/// From the clone to the merge, with garbage collected wherever it could hurt. `left_out` are files that are in no checkout.
fn all_the_way(project: &Project, left_out: &[&str]) {
    let base = project.head();
    let git_dir =
        PathBuf::from(git(&project.root, ["rev-parse", "--path-format=absolute", "--git-common-dir"]));
    let before = (State::of(&project.root), git_data(&git_dir));
    let workspace = project.workspace();
    let path = workspace.path();
    assert_eq!(git(path, ["status", "--porcelain"]), "");
    assert_eq!(git(path, ["rev-parse", "HEAD"]), base.as_str());
    git(path, ["log", "--all"]);
    git(path, ["blame", "src/lib.rs"]);
    for name in NOTHING_LEFT_OUT {
        assert_eq!(path.join(name).exists(), !left_out.contains(&name), "{name}");
    }
    assert_eq!(
        workspace.candidate(1, &Protect::nothing()).unwrap().commit,
        base,
        "no work is the base itself"
    );
    work(path);
    let made = workspace.candidate(2, &Protect::nothing()).unwrap();
    assert_eq!((made.warnings, made.uncommitted), (Vec::new(), vec!["src/new.rs".to_owned()]));
    assert_eq!((State::of(&project.root), git_data(&git_dir)), before);
    collect_garbage(&project.root);
    assert_eq!(workspace.candidate(2, &Protect::nothing()).unwrap().commit, made.commit);
    checkout_is_whole(project, &workspace, &made.commit, left_out);
    merge(project, &base, &made.commit);
}

fn checkout_is_whole(project: &Project, workspace: &Workspace, commit: &Commit, left_out: &[&str]) {
    let checkout = check_out(project, commit);
    assert_eq!(checkout.differences(Scope::All, &Protect::nothing(), &Default::default()).unwrap(), []);
    let place = checkout.path();
    assert_eq!(fs::read_to_string(place.join("src/new.rs")).unwrap(), "new\n");
    assert_eq!(git(place, ["rev-parse", "HEAD"]), commit.as_str());
    assert_eq!(git(place, ["status", "--porcelain", "--ignored"]), "");
    git(place, ["describe", "--always", "--all"]);
    for name in NOTHING_LEFT_OUT {
        assert_eq!(place.join(name).exists(), !left_out.contains(&name), "{name}");
    }
    assert_eq!(workspace.diff_stat().unwrap(), project.own().diff_stat(workspace.base(), commit).unwrap());
    checkout.remove().unwrap();
}

fn merge(project: &Project, base: &Commit, candidate: &Commit) {
    assert!(project.own().publish_branch(GOAL, BRANCH, candidate).unwrap());
    collect_garbage(&project.root);
    let users = project.repository();
    let request =
        MergeRequest { candidate, base, into: None, message: "merge", style: MergeStyle::FastForward };
    users.plan_merge(&request).unwrap().carry_out().unwrap();
    assert_eq!(project.head(), *candidate);
    assert_eq!(git(&project.root, ["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(project.root.join("src/new.rs")).unwrap(), "new\n");
    git(&project.root, ["fsck", "--no-progress"]);
}

#[test]
fn a_plain_repository() {
    all_the_way(&Project::new(), &[]);
}

#[test]
fn a_repository_whose_objects_are_all_packed() {
    let project = Project::new();
    git(&project.root, ["gc", "-q"]);
    git(&project.root, ["commit-graph", "write", "--reachable"]);
    git(&project.root, ["multi-pack-index", "write", "--bitmap"]);
    all_the_way(&project, &[]);
}

#[test]
fn a_linked_worktree() {
    let project = Project::new();
    let linked = project.beside("linked");
    git(&project.root, ["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    all_the_way(&project.with_root(linked), &[]);
}

#[test]
fn a_linked_worktree_of_a_bare_repository() {
    let project = Project::new();
    let [bare, linked] = ["bare.git", "linked"].map(|name| project.beside(name));
    git(&project.root, ["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    git(&bare, ["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    all_the_way(&project.with_root(linked), &[]);
}

/// A clone of a project with two commits, made with these options.
pub(crate) fn clone(options: &[&str]) -> Project {
    let project = Project::new();
    write(&project.root, "old.rs", "old\n");
    commit_all(&project.root, "with an old file");
    write(&project.root, "later.rs", "later\n");
    fs::remove_file(project.root.join("old.rs")).unwrap();
    commit_all(&project.root, "later");
    for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
        git(&project.root, ["config", key, "true"]);
    }
    let source = format!("file://{}", project.root.display());
    let clone = project.beside("clone");
    let target = clone.to_str().unwrap();
    git(&project.root, ["clone", "-q"].iter().chain(options).copied().chain([source.as_str(), target]));
    git(&clone, ["config", "core.excludesFile", "/dev/null"]);
    project.with_root(clone)
}

#[test]
fn a_shallow_clone() {
    let project = clone(&["--depth=1"]);
    assert_eq!(git(&project.root, ["log", "--format=%s"]), "later");
    all_the_way(&project, &[]);
    assert_eq!(git(&project.root, ["rev-parse", "--is-shallow-repository"]), "true");
}

#[test]
fn a_partial_clone_without_blobs() {
    let project = clone(&["--filter=blob:none"]);
    all_the_way(&project, &[]);
}

#[test]
fn a_partial_clone_without_trees() {
    let project = clone(&["--filter=tree:0"]);
    all_the_way(&project, &[]);
}

#[test]
fn a_base_whose_files_a_partial_clone_does_not_have_yet() {
    for filter in ["--filter=blob:none", "--filter=tree:0"] {
        let project = clone(&[filter]);
        let base = Commit::new(git(&project.root, ["rev-parse", "HEAD~1"]));
        let missing = || {
            let objects = ["rev-list", "--objects", "--no-walk", "--missing=print", base.as_str()];
            git(&project.root, objects).lines().filter(|line| line.starts_with('?')).count()
        };
        assert!(missing() > 0);
        let plan = WorkspacePlan { base: base.clone(), ..project.plan() };
        let [source, away] = ["repo", "away"].map(|name| project.beside(name));
        fs::rename(&source, &away).unwrap();
        let refused = create(&project.repository(), &plan).unwrap_err();
        assert!(refused.to_string().contains("`git fetch` failed"), "{refused}");
        assert!(!plan.path.exists());
        fs::rename(&away, &source).unwrap();
        let workspace = create(&project.repository(), &plan).unwrap();
        assert_eq!(missing(), 0);
        assert_eq!(fs::read_to_string(workspace.path().join("old.rs")).unwrap(), "old\n");
        work(workspace.path());
        let made = workspace.candidate(1, &Protect::nothing()).unwrap();
        let own = project.repository().own(&plan.own, &base, &plan.settings).unwrap();
        let checkout = verification(&own, &project.beside("verify"), &made.commit, &[]).unwrap();
        assert_eq!(checkout.differences(Scope::All, &Protect::nothing(), &Default::default()).unwrap(), []);
        assert!(own.publish_branch(GOAL, BRANCH, &made.commit).unwrap());
        collect_garbage(&project.root);
        git(&project.root, ["switch", "-q", BRANCH]);
        assert_eq!(fs::read_to_string(project.root.join("old.rs")).unwrap(), "old\n");
    }
}

#[test]
fn a_clone_that_borrows_its_objects() {
    let project = clone(&["--shared"]);
    let source = project.beside("repo");
    let plain = project.beside("shared");
    git(&source, ["clone", "-q", "--shared", source.to_str().unwrap(), plain.to_str().unwrap()]);
    git(&plain, ["config", "core.excludesFile", "/dev/null"]);
    all_the_way(&project.with_root(plain), &[]);
}

#[test]
fn a_sparse_checkout_by_directories() {
    let project = Project::new();
    git(&project.root, ["sparse-checkout", "set", "--cone", "src"]);
    all_the_way(&project, &["tests/a.rs", "tests/b.rs"]);
    assert_eq!(
        git(&project.root, ["ls-tree", "-r", "--name-only", "HEAD", "tests"]),
        "tests/a.rs\ntests/b.rs"
    );
}

#[test]
fn a_sparse_checkout_by_patterns() {
    let project = Project::new();
    git(&project.root, ["sparse-checkout", "set", "--no-cone", "/*", "!/tests/b.rs"]);
    all_the_way(&project, &["tests/b.rs"]);
    assert_eq!(
        git(&project.root, ["ls-tree", "-r", "--name-only", "HEAD", "tests"]),
        "tests/a.rs\ntests/b.rs"
    );
}

#[test]
fn a_sparse_index() {
    let project = Project::new();
    git(&project.root, ["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    all_the_way(&project, &["tests/a.rs", "tests/b.rs"]);
}

/// A project made by `git init` with these options, at this place.
fn initialised(options: &[&str], name: &str) -> Project {
    let project = Project::new();
    let root = project.beside(name);
    fs::create_dir(&root).unwrap();
    git(&root, ["init", "-q", "-b", "main"].iter().chain(options));
    git(&root, ["config", "core.excludesFile", "/dev/null"]);
    for file in NOTHING_LEFT_OUT {
        write(&root, file, &fs::read_to_string(project.root.join(file)).unwrap());
    }
    commit_all(&root, "start");
    project.with_root(root)
}

#[test]
fn a_repository_with_sha256() {
    let project = initialised(&["--object-format=sha256"], "sha256");
    assert_eq!(project.head().as_str().len(), 64);
    all_the_way(&project, &[]);
}

#[test]
fn a_repository_with_reftable() {
    let project = initialised(&["--ref-format=reftable"], "reftable");
    assert_eq!(git(&project.root, ["rev-parse", "--show-ref-format"]), "reftable");
    let workspace = project.workspace();
    assert_eq!(git(workspace.path(), ["rev-parse", "--show-ref-format"]), "files");
    fs::remove_dir_all(project.beside("workspaces")).unwrap();
    all_the_way(&project, &[]);
}

#[test]
fn a_path_with_spaces_quotes_colons_and_a_line_end() {
    for name in
        ["with space", "\"quoted\" and 'quoted'", "a:b", "new\nline", "back\\slash", "# comment", "ünï"]
    {
        let project = initialised(&[], "inner");
        let root = project.beside(name);
        fs::rename(&project.root, &root).unwrap();
        all_the_way(&project.with_root(root), &[]);
    }
}

#[test]
fn a_repository_behind_a_symlink() {
    let project = Project::new();
    let symlink_path = project.beside("link");
    symlink(&project.root, &symlink_path).unwrap();
    all_the_way(&project.with_root(symlink_path), &[]);
}

#[test]
fn a_user_whose_lines_end_with_a_carriage_return() {
    let project = Project::new();
    git(&project.root, ["config", "core.autocrlf", "true"]);
    git(&project.root, ["rm", "-q", "--cached", "-r", "."]);
    git(&project.root, ["reset", "-q", "--hard"]);
    let lib = || fs::read_to_string(project.root.join("src/lib.rs")).unwrap();
    assert!(lib().contains("\r\n"));
    let base = project.head();
    let workspace = project.workspace();
    let path = workspace.path();
    assert_eq!(git(path, ["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(path.join("src/lib.rs")).unwrap(), lib());
    assert_eq!(workspace.candidate(1, &Protect::nothing()).unwrap().commit, base);
    write(path, "src/lib.rs", "pub fn two() {}\r\n");
    write(path, "new.rs", "new\r\n");
    let made = workspace.candidate(2, &Protect::nothing()).unwrap();
    let files = project.files_of(&made.commit);
    assert_eq!([&files["src/lib.rs"], &files["new.rs"]], ["100644 pub fn two() {}\n", "100644 new\n"]);
    let checkout = check_out(&project, &made.commit);
    assert_eq!(checkout.differences(Scope::All, &Protect::nothing(), &Default::default()).unwrap(), []);
    assert_eq!(fs::read_to_string(checkout.path().join("new.rs")).unwrap(), "new\r\n");
    assert_eq!(git(checkout.path(), ["status", "--porcelain"]), "");
    assert!(project.own().publish_branch(GOAL, BRANCH, &made.commit).unwrap());
    git(&project.root, ["merge", "-q", BRANCH]);
    assert_eq!(lib(), "pub fn two() {}\r\n");
}

#[test]
fn a_user_whose_file_system_has_no_modes() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    git(&project.root, ["config", "core.fileMode", "false"]);
    git(&project.root, ["update-index", "--chmod=+x", "tests/a.rs"]);
    git(&project.root, ["commit", "-q", "-m", "executable"]);
    let workspace = project.workspace();
    for entry in ["src/lib.rs", "tests/a.rs"] {
        fs::set_permissions(workspace.path().join(entry), fs::Permissions::from_mode(0o666)).unwrap();
    }
    assert_eq!(git(workspace.path(), ["status", "--porcelain"]), "");
    assert_eq!(workspace.candidate(1, &Protect::nothing()).unwrap().commit, project.head());
    fs::remove_dir_all(project.beside("workspaces")).unwrap();
    all_the_way(&project, &[]);
    assert!(git(&project.root, ["ls-tree", "HEAD", "tests/a.rs"]).starts_with("100755"));
}

#[test]
fn submodules_are_filled_from_what_the_user_has() {
    let project = Project::new();
    let library = Project::new();
    git(&project.root, ["submodule", "--quiet", "add", library.root.to_str().unwrap(), "lib"]);
    let base = commit_all(&project.root, "with a submodule");
    let workspace = project.workspace();
    let path = workspace.path();
    assert_eq!(git(path, ["status", "--porcelain"]), "");
    git(path, ["submodule", "--quiet", "update", "--init"]);
    assert!(path.join("lib/src/lib.rs").exists());
    assert_eq!(workspace.candidate(1, &Protect::nothing()).unwrap().commit, base);
    work(path);
    let made = workspace.candidate(2, &Protect::nothing()).unwrap();
    assert_eq!(project.files_of(&made.commit)["lib"], format!("160000 {}", library.head()));
    let checkout = check_out(&project, &made.commit);
    assert!(checkout.path().join("lib").is_dir());
    assert_eq!(checkout.differences(Scope::All, &Protect::nothing(), &Default::default()).unwrap(), []);
    git(checkout.path(), ["submodule", "--quiet", "update", "--init"]);
    assert!(checkout.path().join("lib/src/lib.rs").exists());
    let protect = Protect::new(&strings(&["lib/tests/**"])).unwrap();
    let differing = |protect: &Protect| -> Vec<String> {
        let found = checkout.differences(Scope::All, protect, &Default::default()).unwrap();
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(differing(&protect), [] as [&str; 0]);
    write(checkout.path(), "lib/tests/new.rs", "added\n");
    write(checkout.path(), "lib/src/lib.rs", "changed\n");
    assert_eq!(differing(&Protect::nothing()), ["changed: lib/src/lib.rs"]);
    assert_eq!(differing(&protect), ["changed: lib/src/lib.rs", "added: lib/tests/new.rs"]);
    let protected = checkout.differences(Scope::Protected, &protect, &Default::default()).unwrap();
    assert_eq!(protected.len(), 1);
    fs::remove_file(checkout.path().join("lib/.git")).unwrap();
    assert_eq!(differing(&protect), ["changed: lib"], "it is unknown what its files should be");
    merge(&project, &base, &made.commit);
    git_fails(path, ["push", "-q"]);
}

#[test]
fn trees_with_modes_as_old_gits_wrote_them() {
    let project = Project::new();
    let entry = |mode: &str, name: &str| {
        let id = git(&project.root, ["rev-parse", &format!("HEAD:{name}")]);
        let id: Vec<u8> =
            (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect();
        [format!("{mode} {name}\0").as_bytes(), &id].concat()
    };
    let tree = [entry("0100644", ".gitignore"), entry("040000", "src"), entry("040000", "tests")].concat();
    let write = ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"];
    let tree = String::from_utf8(git_with_input(&project.root, write, tree)).unwrap();
    let commit = git(&project.root, ["commit-tree", "-p", "HEAD", "-m", "old", tree.trim_end()]);
    git(&project.root, ["reset", "-q", "--hard", &commit]);
    let checkout = check_out(&project, &project.head());
    assert_eq!(checkout.differences(Scope::All, &Protect::nothing(), &Default::default()).unwrap(), []);
    assert!(checkout.path().join("tests/a.rs").exists());
}
