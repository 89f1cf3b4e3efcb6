//! Objects whose bytes do not belong to their ids, wherever an agent can put them: they are an error, or they are not in what
//! is judged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};
use towline_workspace::{FileAt, Protect, Workspace, WorkspaceError, verification};

use crate::hostile_git::promptly;
use crate::support::{Project, commit_all, git, git_bytes, strings, write};

fn protect() -> Protect {
    Protect::of(&strings(&["tests/**"]), &[]).unwrap()
}

/// Why there is no verdict.
#[derive(Debug)]
enum Refused {
    Error(WorkspaceError),
    /// Protected paths are not as in the base.
    Touched,
}

impl From<WorkspaceError> for Refused {
    fn from(error: WorkspaceError) -> Self {
        Self::Error(error)
    }
}

/// What the checks would see of the protected file and of the work. Protected paths are compared with the base as before a
/// verdict.
fn judged(project: &Project, workspace: &Workspace) -> Result<[String; 2], Refused> {
    let (workspace, plan, users) = (workspace.clone(), project.plan(), project.repository());
    let place = project.beside("verify");
    promptly("judging", move || {
        let own = users.own(&plan.own, workspace.base(), &plan.settings)?;
        let made = workspace.candidate(1, &protect())?;
        if !own.changes_under(&protect(), workspace.base(), &made.commit)?.is_empty() {
            return Err(Refused::Touched);
        }
        let checkout = verification(&own, &place, &made.commit, &[])?;
        let seen = ["tests/a.rs", "src/lib.rs"].map(|name| fs::read_to_string(place.join(name)).unwrap());
        checkout.remove()?;
        Ok(seen)
    })
}

/// The honest content, or an error that shows what is wrong.
fn assert_no_lie(project: &Project, workspace: &Workspace, what: &str) {
    match judged(project, workspace) {
        Ok(seen) => assert_eq!(seen, ["assert a\n", "work\n"], "{what}"),
        Err(Refused::Error(WorkspaceError::Damaged { .. } | WorkspaceError::Git { .. })) => {}
        Err(refused) => panic!("{what}: {refused:?}"),
    }
}

fn loose(objects: &Path, id: &str) -> PathBuf {
    objects.join(&id[..2]).join(&id[2..])
}

/// Gives an object the bytes of another one, as a file of its own.
fn forge(objects: &Path, from: &Path, id: &str, lie: &str) {
    let bytes = fs::read(loose(from, lie)).unwrap();
    let target = loose(objects, id);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    if target.exists() {
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::write(target, bytes).unwrap();
}

/// Puts an honest object somewhere.
fn plant(objects: &Path, from: &Path, id: &str) {
    forge(objects, from, id, id);
}

/// Gives an object the bytes of another one, in a pack with an index that gives the other one's place under the id.
fn forge_in_pack(objects: &Path, from: &Path, id: &str, lie: &str) {
    let pack = crate::support::git_with_input(
        from.parent().unwrap(),
        ["pack-objects", "--stdout"],
        format!("{lie}\n"),
    );
    let id = bytes_of(id);
    let mut index = b"\xfftOc\x00\x00\x00\x02".to_vec();
    for first in 0..=255_u8 {
        index.extend(u32::from(first >= id[0]).to_be_bytes());
    }
    index.extend(&id);
    index.extend([0; 4]);
    index.extend(12_u32.to_be_bytes());
    index.extend(&pack[pack.len() - 20..]);
    let sum = Sha1::digest(&index);
    index.extend(&sum[..]);
    let directory = objects.join("pack");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("pack-0000.pack"), pack).unwrap();
    fs::write(directory.join("pack-0000.idx"), index).unwrap();
}

fn bytes_of(id: &str) -> Vec<u8> {
    (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect()
}

/// A weaker base that the agent has made elsewhere: pairs of objects, what each is and what it is to pass for.
struct Lies {
    made_in: PathBuf,
    blob: [String; 2],
    directory: [String; 2],
    tree: [String; 2],
    commit: [String; 2],
}

fn lies(project: &Project) -> Lies {
    let elsewhere = project.beside("elsewhere");
    git(&project.root, ["clone", "-q", "--no-local", ".", elsewhere.to_str().unwrap()]);
    write(&elsewhere, "tests/a.rs", "weakened\n");
    commit_all(&elsewhere, "weakened");
    let pair = |part: &str| {
        [&project.root, &elsewhere].map(|place| git(place, ["rev-parse", &format!("HEAD{part}")]))
    };
    Lies {
        made_in: elsewhere.join(".git/objects"),
        blob: pair(":tests/a.rs"),
        directory: pair(":tests"),
        tree: pair("^{tree}"),
        commit: pair("^{commit}"),
    }
}

type Forge = fn(&Path, &Path, &str, &str);

/// Each kind of object of the base is forged, as a file and in a pack.
fn base_forged_in(objects: fn(&Project) -> PathBuf) {
    for (way, forge) in [("loose", forge as Forge), ("packed", forge_in_pack)] {
        for kind in ["blob", "directory", "tree", "commit"] {
            let project = Project::new();
            if way == "packed" {
                git(&project.root, ["repack", "-q", "-a", "-d"]);
            }
            let lies = lies(&project);
            let workspace = project.workspace();
            write(workspace.path(), "src/lib.rs", "work\n");
            write(workspace.path(), "tests/a.rs", "weakened\n");
            let [id, lie] = match kind {
                "blob" => &lies.blob,
                "directory" => &lies.directory,
                "tree" => &lies.tree,
                _ => &lies.commit,
            };
            let place = objects(&project);
            forge(&place, &lies.made_in, id, lie);
            // What the lie leads to is there.
            for pair in [&lies.blob, &lies.directory, &lies.tree] {
                plant(&place, &lies.made_in, &pair[1]);
            }
            assert_no_lie(&project, &workspace, &format!("{way} {kind}"));
        }
    }
}

#[test]
fn a_base_that_is_forged_in_the_clone_is_not_believed() {
    base_forged_in(|project| project.plan().path.join(".git/objects"));
}

#[test]
fn a_base_that_is_forged_in_the_users_repository_is_not_believed() {
    base_forged_in(|project| project.root.join(".git/objects"));
}

#[test]
fn a_base_that_is_forged_in_our_own_repository_is_not_believed() {
    base_forged_in(|project| project.plan().own.join("objects"));
}

#[test]
fn a_base_that_is_forged_where_the_users_repository_borrows_from_is_not_believed() {
    base_forged_in(|project| {
        let evil = project.beside("evil/objects");
        fs::create_dir_all(evil.join("pack")).unwrap();
        write(&project.root.join(".git/objects"), "info/alternates", &format!("{}\n", evil.display()));
        evil
    });
}

#[test]
fn commits_of_the_agent_whose_objects_are_forged_are_not_taken() {
    for (way, forge) in [("loose", forge as Forge), ("packed", forge_in_pack)] {
        for kind in ["blob", "directory", "tree", "commit"] {
            let project = Project::new();
            let workspace = project.workspace();
            let path = workspace.path();
            write(path, "src/lib.rs", "work\n");
            write(path, "other/file", "good\n");
            commit_all(path, "good");
            let part = |kind: &str| match kind {
                "blob" => ":other/file",
                "directory" => ":other",
                "tree" => "^{tree}",
                _ => "",
            };
            let id = |commit: &str| git(path, ["rev-parse", &format!("{commit}{}", part(kind))]);
            write(path, "other/file", "evil\n");
            commit_all(path, "evil");
            let (good, evil) = (id("HEAD~1"), id("HEAD"));
            git(path, ["reset", "-q", "--hard", "HEAD~1"]);
            let objects = path.join(".git/objects");
            if way == "packed" {
                fs::remove_file(loose(&objects, &good)).unwrap();
            }
            forge(&objects, &objects, &good, &evil);
            match judged(&project, &workspace) {
                Ok(seen) => assert_eq!(seen, ["assert a\n", "work\n"], "{way} {kind}"),
                Err(error) => panic!("{way} {kind}: {error:?}"),
            }
            let made = workspace.candidate(1, &protect()).unwrap();
            assert_eq!(project.files_of(&made.commit)["other/file"], "100644 good\n", "{way} {kind}");
            project.git_of_goal(["fsck", "--full", "--strict", made.commit.as_str()]);
        }
    }
}

#[test]
fn a_file_of_the_base_is_not_read_from_a_forged_object() {
    let project = Project::new();
    let workspace = project.workspace();
    let own = project.own();
    write(workspace.path(), "evil", "evil\n");
    let lie = git(workspace.path(), ["hash-object", "-w", "evil"]);
    let good = git(&project.root, ["rev-parse", "HEAD:src/lib.rs"]);
    let read = || own.file_at(workspace.base(), "src/lib.rs", 1_000);
    assert!(matches!(read(), Ok(FileAt::Regular(_))));
    forge(&project.plan().own.join("objects"), &workspace.path().join(".git/objects"), &good, &lie);
    assert!(matches!(read(), Err(WorkspaceError::Damaged { object, .. }) if object == good));
}

#[test]
fn a_blob_of_the_work_that_was_planted_beforehand_is_an_error() {
    for in_own in [false, true] {
        let project = Project::new();
        let workspace = project.workspace();
        write(workspace.path(), "src/lib.rs", "work\n");
        let good = git(workspace.path(), ["hash-object", "-w", "src/lib.rs"]);
        write(workspace.path(), "evil", "evil\n");
        let evil = git(workspace.path(), ["hash-object", "-w", "evil"]);
        fs::remove_file(workspace.path().join("evil")).unwrap();
        let made_in = workspace.path().join(".git/objects");
        let target =
            if in_own { project.plan().own.join("objects") } else { project.root.join(".git/objects") };
        forge(&target, &made_in, &good, &evil);
        match judged(&project, &workspace) {
            Err(Refused::Error(WorkspaceError::Damaged { object, .. })) => {
                assert!(object.contains("src/lib.rs"), "{object}");
            }
            other => panic!("{other:?}"),
        }
        // It can be repaired as the error describes.
        fs::remove_file(loose(&target, &good)).unwrap();
        assert_eq!(judged(&project, &workspace).unwrap(), ["assert a\n", "work\n"]);
    }
}

#[test]
fn a_commit_graph_with_another_tree_is_not_believed() {
    for in_own in [false, true] {
        let project = Project::new();
        let lies = lies(&project);
        let workspace = project.workspace();
        write(workspace.path(), "src/lib.rs", "work\n");
        write(workspace.path(), "tests/a.rs", "weakened\n");
        let users = project.root.join(".git/objects");
        for pair in [&lies.blob, &lies.directory, &lies.tree] {
            plant(&users, &lies.made_in, &pair[1]);
        }
        git(&project.root, ["commit-graph", "write", "--reachable"]);
        let graph = users.join("info/commit-graph");
        let mut bytes = fs::read(&graph).unwrap();
        let (from, to) = (bytes_of(&lies.tree[0]), bytes_of(&lies.tree[1]));
        let at = bytes.windows(20).position(|part| part == from).unwrap();
        bytes[at..at + 20].copy_from_slice(&to);
        fs::set_permissions(&graph, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&graph, &bytes).unwrap();
        if in_own {
            fs::rename(&graph, project.plan().own.join("objects/info/commit-graph")).unwrap();
        }
        assert_eq!(judged(&project, &workspace).unwrap(), ["assert a\n", "work\n"]);
    }
}

#[test]
fn an_index_of_ours_that_names_another_tree_is_refused() {
    let project = Project::new();
    let lies = lies(&project);
    let workspace = project.workspace();
    write(workspace.path(), "src/lib.rs", "work\n");
    let own = project.plan().own;
    for pair in [&lies.blob, &lies.directory] {
        plant(&own.join("objects"), &lies.made_in, &pair[1]);
    }
    // Of files that are as old as the index, git looks at the content.
    project.wait_for_a_second_after(&workspace.path().join("tests/b.rs"));
    // Git keeps the ids of whole directories in its index, and takes them for true.
    let mut index = fs::read(own.join("index")).unwrap();
    let (from, to) = (bytes_of(&lies.directory[0]), bytes_of(&lies.directory[1]));
    let at = index.windows(20).position(|part| part == from).unwrap();
    index[at..at + 20].copy_from_slice(&to);
    let end = index.len() - 20;
    index[end..].fill(0);
    fs::write(own.join("index"), index).unwrap();
    let seen = judged(&project, &workspace);
    assert!(matches!(seen, Err(Refused::Touched)), "{seen:?}");
}

#[test]
fn a_clone_that_borrows_from_elsewhere_gives_no_commits() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "src/lib.rs", "work\n");
    let work = commit_all(path, "work");
    let alternates = path.join(".git/objects/info/alternates");
    let lent = fs::read_to_string(&alternates).unwrap();
    let evil = project.beside("evil");
    fs::create_dir_all(evil.join("pack")).unwrap();
    for text in [format!("{lent}{}\n", evil.display()), format!("{}\n", evil.display()), String::new()] {
        fs::write(&alternates, &text).unwrap();
        let made = workspace.candidate(1, &protect()).unwrap();
        assert_eq!(made.head, project.head(), "{text}");
        assert_eq!(judged(&project, &workspace).unwrap(), ["assert a\n", "work\n"], "{text}");
    }
    fs::write(&alternates, &lent).unwrap();
    assert_eq!(workspace.candidate(1, &protect()).unwrap().commit, work);
}

/// A tree object with these raw entries.
fn raw_tree(path: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut tree = Vec::new();
    for (mode, name, id) in entries {
        tree.extend(format!("{mode} {name}\0").into_bytes());
        tree.extend(bytes_of(id));
    }
    let arguments = ["hash-object", "-t", "tree", "-w", "--literally", "--stdin"];
    String::from_utf8(crate::support::git_with_input(path, arguments, tree)).unwrap().trim_end().to_owned()
}

#[test]
fn trees_with_names_that_no_tree_may_have_are_not_taken() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "src/lib.rs", "work\n");
    let blob = git(path, ["hash-object", "-w", "src/lib.rs"]);
    let inner = raw_tree(path, &[("100644", "config", &blob)]);
    type Entries<'a> = Vec<(&'a str, &'a str, &'a str)>;
    let trees: [(&str, Entries<'_>); 7] = [
        (".git", vec![("40000", ".git", &inner)]),
        (".GIT", vec![("40000", ".GIT", &inner)]),
        ("..", vec![("40000", "..", &inner)]),
        ("a name with a slash", vec![("100644", "../../../../outside", &blob)]),
        ("twice the same", vec![("100644", "a", &blob), ("100644", "a", &blob)]),
        ("no name", vec![("100644", "", &blob)]),
        ("submodule addresses as a symlink", vec![("120000", ".gitmodules", &blob)]),
    ];
    for (what, entries) in trees {
        let tree = raw_tree(path, &entries);
        let text = format!(
            "tree {tree}\nparent {}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nevil\n",
            project.head()
        );
        let arguments = ["hash-object", "-t", "commit", "-w", "--literally", "--stdin"];
        let commit = crate::support::git_with_input(path, arguments, text);
        fs::write(path.join(".git/HEAD"), commit).unwrap();
        let made = workspace.candidate(1, &protect()).unwrap();
        assert_eq!(made.head, project.head(), "{what}");
        assert!(
            made.warnings[0].starts_with("the agent's commits cannot be used"),
            "{what}: {:?}",
            made.warnings
        );
        assert_eq!(judged(&project, &workspace).unwrap(), ["assert a\n", "work\n"], "{what}");
    }
    assert!(!project.beside("outside").exists());
}

#[test]
fn a_base_that_was_damaged_before_the_goal_is_named() {
    let project = Project::new();
    let blob = git(&project.root, ["rev-parse", "HEAD:tests/a.rs"]);
    write(&project.beside("elsewhere"), "evil", "evil\n");
    let evil = git(&project.root, ["hash-object", "-w", "../elsewhere/evil"]);
    let objects = project.root.join(".git/objects");
    forge(&objects, &objects, &blob, &evil);
    assert_eq!(git_bytes(&project.root, ["cat-file", "blob", &blob]), b"evil\n");
    let workspace = project.workspace();
    match judged(&project, &workspace) {
        Err(Refused::Error(WorkspaceError::Damaged { object, .. })) => {
            assert!(object.contains("tests/a.rs"), "{object}");
        }
        other => panic!("{other:?}"),
    }
}
