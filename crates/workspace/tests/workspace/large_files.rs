//! Files of git-lfs: what is in a checkout, and that the user's store is neither shared nor filled with anything wrong.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use towline_workspace::{Commit, Consent, Protect, Verification, Workspace, WorkspaceError, verification};

use crate::support::{GOAL, Project, commit_all, files_below, git, names_below, write};

const CONTENT: &str = "a large file\n";

/// A project with a large file, `data/old.bin`.
fn project() -> Project {
    let project = Project::new();
    for (key, value) in [
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.lfs.required", "true"),
    ] {
        git(&project.root, ["config", key, value]);
    }
    write(&project.root, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    project
}

fn with_file(project: &Project) {
    write(&project.root, "data/old.bin", CONTENT);
    commit_all(&project.root, "a large file");
}

fn users_store(project: &Project) -> PathBuf {
    project.root.join(".git/lfs")
}

fn own_store(project: &Project) -> PathBuf {
    project.plan().own.join("lfs")
}

/// The names and contents of the objects in a store, in order.
fn objects(store: &Path) -> Vec<(String, String)> {
    let objects = store.join("objects");
    let names = if objects.is_dir() { names_below(&objects) } else { Vec::new() };
    let object = |name: String| {
        let content = fs::read_to_string(objects.join(&name)).unwrap();
        (name.rsplit('/').next().unwrap().to_owned(), content)
    };
    names.into_iter().map(object).collect()
}

fn pointer_to(id: &str, size: usize) -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize {size}\n")
}

fn put(store: &Path, id: &str, content: &str) {
    write(store, Path::new("objects").join(&id[..2]).join(&id[2..4]).join(id), content);
}

fn check_out(project: &Project, commit: &Commit) -> Result<Verification, WorkspaceError> {
    verification(&project.own(), &project.beside("verify/one"), commit, &[])
}

fn candidate(workspace: &Workspace) -> Commit {
    workspace.candidate(1, &Protect::nothing()).unwrap().commit
}

fn read(directory: &Path, path: &str) -> String {
    fs::read_to_string(directory.join(path)).unwrap()
}

#[test]
fn an_lfsconfig_of_the_work_leaves_no_pointer_in_the_checkout() {
    let project = project();
    with_file(&project);
    let workspace = project.workspace();
    write(workspace.path(), ".lfsconfig", "[lfs]\n\tfetchexclude = *\n\tfetchinclude = nothing\n");
    let checkout = check_out(&project, &candidate(&workspace)).unwrap();
    assert_eq!(read(checkout.path(), "data/old.bin"), CONTENT);
}

#[test]
fn pointers_stay_where_the_users_settings_or_the_base_want_them() {
    type Want = fn(&Path);
    let wants: [Want; 5] = [
        |root| drop(git(root, ["config", "lfs.fetchexclude", "other, data"])),
        |root| drop(git(root, ["config", "lfs.fetchinclude", "images/**"])),
        |root| write(root, ".lfsconfig", "[lfs]\n\tfetchexclude = *.bin\n"),
        |root| {
            git(root, ["config", "filter.lfs.process", "git-lfs filter-process --skip"]);
            git(root, ["config", "filter.lfs.smudge", "git-lfs smudge --skip -- %f"]);
        },
        |root| {
            git(root, ["config", "--unset", "filter.lfs.process"]);
            git(root, ["config", "filter.lfs.smudge", "cat"]);
        },
    ];
    for want in wants {
        let project = project();
        want(&project.root);
        with_file(&project);
        let workspace = project.workspace();
        assert!(read(workspace.path(), "data/old.bin").starts_with("version"));
        write(workspace.path(), "new.txt", "work\n");
        let checkout = check_out(&project, &candidate(&workspace)).unwrap();
        assert!(read(checkout.path(), "data/old.bin").starts_with("version"));
    }
}

#[test]
fn a_pointer_to_a_file_that_is_nowhere_is_named() {
    // With the second one git succeeds, and the pointer is in the place of the file.
    for smudge in ["git-lfs smudge -- %f", "cat # in place of git-lfs"] {
        let project = project();
        git(&project.root, ["config", "--unset", "filter.lfs.process"]);
        git(&project.root, ["config", "filter.lfs.smudge", smudge]);
        commit_all(&project.root, "attributes");
        let workspace = project.workspace();
        let id = "07".repeat(32);
        write(workspace.path(), "data/new.bin", &pointer_to(&id, 12));
        match check_out(&project, &candidate(&workspace)).unwrap_err() {
            WorkspaceError::LargeFileMissing { path, id: named, size } => {
                assert_eq!((path.as_str(), named, size), ("data/new.bin", id, 12));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_text_that_looks_like_a_pointer_is_a_file_like_any_other() {
    let project = project();
    with_file(&project);
    let workspace = project.workspace();
    let text = pointer_to(&"07".repeat(32), 12);
    write(workspace.path(), "fixtures/pointer.txt", &text);
    let checkout = check_out(&project, &candidate(&workspace)).unwrap();
    assert_eq!(read(checkout.path(), "fixtures/pointer.txt"), text);
}

#[test]
fn no_store_shares_a_file_with_the_users() {
    let project = project();
    with_file(&project);
    let workspace = project.workspace();
    // Git-lfs looks for what a store lacks where the objects are borrowed.
    fs::remove_file(workspace.path().join("data/old.bin")).unwrap();
    git(workspace.path(), ["checkout", "data/old.bin"]);
    let id_on_disk = |store: &Path| {
        let (name, content) = objects(store).pop().unwrap();
        assert_eq!(content, CONTENT);
        let path = store.join("objects").join(&name[..2]).join(&name[2..4]).join(&name);
        fs::metadata(path).unwrap().ino()
    };
    let stores = [users_store(&project), own_store(&project), workspace.path().join(".git/lfs")];
    let mut ids: Vec<u64> = stores.iter().map(|store| id_on_disk(store)).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    let checkout = check_out(&project, &candidate(&workspace)).unwrap();
    for directory in [workspace.path(), checkout.path()] {
        let about = git(directory, ["lfs", "env"]);
        assert!(about.contains("LocalReferenceDirs=\n"), "{about}");
    }
}

#[test]
fn publishing_copies_what_the_work_names_and_nothing_else() {
    let project = project();
    with_file(&project);
    let workspace = project.workspace();
    write(workspace.path(), "new.bin", "new data\n");
    let forged = "09f9".repeat(16);
    write(workspace.path(), "forged.bin", &pointer_to(&forged, 8));
    let commit = candidate(&workspace);
    let store = own_store(&project);
    put(&store, &forged, "poison!\n");
    put(&store, &"0badc0de".repeat(8), "poison!\n");
    let before = objects(&users_store(&project));
    let own = project.own();
    own.publish(&commit, "refs/towline/test").unwrap();
    let mut after = objects(&users_store(&project));
    after.retain(|object| !before.contains(object));
    let contents: Vec<&str> = after.iter().map(|(_, content)| content.as_str()).collect();
    assert_eq!(contents, ["new data\n"]);
    // As a crash in the middle of a copy would leave it.
    put(&users_store(&project), &after[0].0, "new d");
    own.publish(&commit, "refs/towline/test").unwrap();
    assert!(objects(&users_store(&project)).contains(&after[0]));
    assert!(names_below(&users_store(&project)).iter().all(|name| !name.contains("towline")));
}

#[test]
fn a_store_elsewhere_is_read_and_filled_but_never_lent() {
    for is_absolute in [true, false] {
        let project = project();
        let store = if is_absolute { project.beside("store") } else { project.root.join(".git/store") };
        let setting = if is_absolute { store.to_str().unwrap() } else { "store" };
        git(&project.root, ["config", "lfs.storage", setting]);
        with_file(&project);
        assert_eq!(objects(&store).len(), 1);
        let workspace = project.workspace();
        assert_eq!(read(workspace.path(), "data/old.bin"), CONTENT);
        for git_dir in [workspace.path().join(".git"), project.plan().own] {
            assert!(!fs::read_to_string(git_dir.join("config")).unwrap().contains("storage"));
        }
        git(workspace.path(), ["lfs", "prune", "--force"]);
        write(workspace.path(), "new.bin", "new data\n");
        let commit = candidate(&workspace);
        assert_eq!(read(check_out(&project, &commit).unwrap().path(), "data/old.bin"), CONTENT);
        project.own().publish(&commit, "refs/towline/test").unwrap();
        let contents: Vec<String> = objects(&store).into_iter().map(|(_, content)| content).collect();
        assert_eq!(contents.len(), 2, "{contents:?}");
        assert!(
            !users_store(&project).join("objects").exists() || objects(&users_store(&project)).is_empty()
        );
    }
}

#[test]
fn work_in_place_is_restored_when_the_users_store_is_gone() {
    let project = project();
    with_file(&project);
    let own = project.own();
    let before = own.keep_before(Consent::WithinBounds).unwrap();
    let workspace = Workspace::in_place(&own, GOAL, &before.base).unwrap();
    let files = files_below(&project.root);
    write(&project.root, "data/old.bin", "changed\n");
    fs::remove_dir_all(users_store(&project)).unwrap();
    workspace.restore(&[]).unwrap();
    assert_eq!(files_below(&project.root), files);
}

#[test]
fn hooks_that_the_users_repository_has_as_well_are_not_reported() {
    let project = project();
    with_file(&project);
    let workspace = project.workspace();
    for hooks in [project.root.join(".git/hooks"), workspace.path().join(".git/hooks")] {
        write(&hooks, "pre-push", "#!/bin/sh\ngit lfs pre-push \"$@\"\n");
        write(&hooks, "post-merge", &format!("#!/bin/sh\necho {}\n", hooks.display()));
    }
    write(&workspace.path().join(".git/hooks"), "post-commit", "#!/bin/sh\n");
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    let expected =
        "the agent changed in its clone, without effect elsewhere: hooks (post-commit, post-merge)";
    assert_eq!(made.warnings, [expected]);
}
