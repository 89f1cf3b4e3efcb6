//! An agent that writes anything it likes into the git data of its clone: its files are judged as they are, nothing of the
//! user's changes, no program of its runs, and nothing hangs.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use towline_workspace::{Candidate, Commit, Protect, Workspace, verification};

use crate::support::{BRANCH, Project, State, commit_all, git, git_data, strings, write};

/// More than anything here takes on a busy machine, and less than a hang.
const PROMPTLY: Duration = Duration::from_secs(20);

/// Does something that must not hang.
pub(crate) fn promptly<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(PROMPTLY).unwrap_or_else(|_| panic!("{what} did not come to its end"))
}

pub(crate) fn candidate(workspace: &Workspace, what: &str) -> Candidate {
    let workspace = workspace.clone();
    promptly(what, move || {
        let protect = Protect::of(&strings(&["tests/**"]), &[]).unwrap();
        workspace.candidate(1, &protect).unwrap()
    })
}

pub(crate) fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// A program of the agent's, and the file that shows that it ran.
pub(crate) fn program(project: &Project) -> (String, PathBuf) {
    let (program, ran) = (project.beside("program"), project.beside("program-ran"));
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\necho weakened\n", ran.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), ran)
}

/// The work of these agents, apart from what they do to git.
fn work(path: &Path) {
    write(path, "src/lib.rs", "work\n");
    write(path, "tests/a.rs", "weakened\n");
    write(path, "new.rs", "new\n");
}

/// The candidate has the work as it is in the files, and the tests as in the base.
fn assert_honest(project: &Project, made: &Candidate, what: &str) {
    let files = project.files_of(&made.commit);
    let contents = ["src/lib.rs", "new.rs", "tests/a.rs", "tests/b.rs"].map(|name| files[name].as_str());
    assert_eq!(
        contents,
        ["100644 work\n", "100644 new\n", "100644 assert a\n", "100644 assert b\n"],
        "{what}"
    );
    let checkout = verification(&project.own(), &project.beside("verify"), &made.commit, &[]).unwrap();
    for (name, content) in [("src/lib.rs", "work\n"), ("tests/a.rs", "assert a\n")] {
        assert_eq!(fs::read_to_string(checkout.path().join(name)).unwrap(), content, "{what}: {name}");
    }
    checkout.remove().unwrap();
}

#[test]
fn settings_filters_attributes_and_ignore_rules_of_the_clone_have_no_effect() {
    let project = Project::new();
    let (program, ran) = program(&project);
    let workspace = project.workspace();
    let path = workspace.path();
    work(path);
    for (key, value) in [
        ("filter.evil.clean", program.as_str()),
        ("filter.evil.smudge", &program),
        ("filter.evil.process", &program),
        ("core.fsmonitor", &program),
        ("core.sshCommand", &program),
        ("core.autocrlf", "true"),
        ("core.fileMode", "false"),
        ("core.worktree", "/"),
        ("core.excludesFile", ".gitattributes"),
        ("core.sparseCheckout", "true"),
        ("diff.external", &program),
        ("include.path", "/dev/zero"),
    ] {
        // Not by git: it would choke on what is there already.
        let mut config = fs::read_to_string(path.join(".git/config")).unwrap();
        let (section, key) = key.rsplit_once('.').unwrap();
        let section = section.replacen('.', " \"", 1);
        let section = if section.contains('"') { section + "\"" } else { section };
        config.push_str(&format!("[{section}]\n\t{key} = {value}\n"));
        fs::write(path.join(".git/config"), config).unwrap();
    }
    write(path, ".git/info/attributes", "* filter=evil eol=crlf ident\n");
    write(path, ".git/info/exclude", "*\n");
    write(path, ".git/info/sparse-checkout", "/nothing\n");
    let made = candidate(&workspace, "settings");
    assert_honest(&project, &made, "settings");
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}

#[test]
fn attributes_in_the_tree_convert_nothing_and_are_put_back() {
    let project = Project::new();
    let (program, ran) = program(&project);
    git(&project.root, ["config", "filter.users.clean", &program]);
    git(&project.root, ["config", "filter.users.smudge", &program]);
    for rule in [
        "* filter=users",
        "* working-tree-encoding=UTF-16",
        "* text eol=crlf",
        "* ident",
        "* -diff -text",
        "tests/* export-ignore export-subst merge=ours",
    ] {
        fs::remove_dir_all(project.beside("workspaces")).unwrap_or_default();
        let workspace = project.workspace();
        work(workspace.path());
        for directory in ["", "tests/", "src/"] {
            write(workspace.path(), format!("{directory}.gitattributes"), &format!("{rule}\n"));
        }
        let made = candidate(&workspace, rule);
        assert_honest(&project, &made, rule);
        assert!(
            !project.files_of(&made.commit).keys().any(|name| name.ends_with(".gitattributes")),
            "{rule}"
        );
        assert!(!ran.exists(), "{rule}: {}", fs::read_to_string(&ran).unwrap());
    }
}

/// Puts something that is no usual file at a path.
fn put(kind: &str, path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path).unwrap();
    } else if fs::symlink_metadata(path).is_ok() {
        fs::remove_file(path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match kind {
        "a FIFO" => fifo(path),
        "a socket" => drop(UnixListener::bind(path).unwrap()),
        "a symlink to zeros without end" => symlink("/dev/zero", path).unwrap(),
        "a symlink to nothing" => symlink("/nowhere", path).unwrap(),
        "a symlink to the user's files" => {
            symlink(path.parent().unwrap().join("../../../repo"), path).unwrap()
        }
        "a directory" => write(path, "below/file", "x"),
        "a huge file" => File::create(path).unwrap().set_len(1 << 40).unwrap(),
        "nonsense" => fs::write(path, [0xff; 4096]).unwrap(),
        _ => fs::write(path, "").unwrap(),
    }
}

const KINDS: [&str; 9] = [
    "a FIFO",
    "a socket",
    "a symlink to zeros without end",
    "a symlink to nothing",
    "a symlink to the user's files",
    "a directory",
    "a huge file",
    "nonsense",
    "an empty file",
];

/// An agent that has put something else in the place of a part of its clone's git data.
fn replaced(part: &str) {
    let project = Project::new();
    let before = (State::of(&project.root), git_data(&project.root.join(".git")));
    for kind in KINDS {
        let workspace = project.workspace();
        write(workspace.path(), "committed.rs", "committed\n");
        commit_all(workspace.path(), "work");
        work(workspace.path());
        put(kind, &workspace.path().join(part));
        let what = format!("{kind} at {part}");
        let made = candidate(&workspace, &what);
        assert_honest(&project, &made, &what);
        assert_eq!(project.files_of(&made.commit)["committed.rs"], "100644 committed\n", "{what}");
        let again = workspace.clone();
        promptly(&what, move || (again.diff().unwrap(), again.repair_clone().unwrap()));
        assert_eq!((State::of(&project.root), git_data(&project.root.join(".git"))), before, "{what}");
        fs::remove_dir_all(project.beside("workspaces")).unwrap();
    }
}

#[test]
fn anything_at_the_place_of_head() {
    replaced(".git/HEAD");
}

#[test]
fn anything_at_the_place_of_the_branch() {
    replaced(&format!(".git/refs/heads/{BRANCH}"));
}

#[test]
fn anything_at_the_place_of_refs() {
    replaced(".git/refs");
    replaced(".git/packed-refs");
}

#[test]
fn anything_at_the_place_of_the_index() {
    replaced(".git/index");
}

#[test]
fn anything_at_the_place_of_the_configuration() {
    replaced(".git/config");
    replaced(".git/commondir");
    replaced(".git/shallow");
}

#[test]
fn anything_at_the_place_of_the_objects() {
    replaced(".git/objects");
    replaced(".git/objects/info/alternates");
    replaced(".git/objects/pack");
}

#[test]
fn anything_at_the_place_of_the_whole_git_directory() {
    replaced(".git");
}

#[test]
fn a_head_that_is_no_work_on_the_base_leaves_the_files_on_the_base() {
    let project = Project::new();
    git(&project.root, ["switch", "-q", "-c", "side"]);
    write(&project.root, "tests/a.rs", "weakened by the user, elsewhere\n");
    let foreign = commit_all(&project.root, "elsewhere");
    git(&project.root, ["tag", "-a", "annotated", "-m", "x"]);
    git(&project.root, ["switch", "-q", "main"]);
    commit_all_empty(&project.root);
    git(&project.root, ["switch", "-q", "--orphan", "unrelated"]);
    let unrelated = commit_all_empty(&project.root);
    git(&project.root, ["switch", "-q", "main"]);
    let id = |name: &str| git(&project.root, ["rev-parse", name]);
    let heads = [
        ("a commit beside the base", foreign.to_string()),
        ("an unrelated commit", unrelated.to_string()),
        ("a tree", id("main^{tree}")),
        ("a blob", id("main:src/lib.rs")),
        ("a tag", id("annotated")),
        ("a commit that is nowhere", "1".repeat(40)),
        ("an id of another length", "1".repeat(64)),
    ];
    for (what, head) in heads {
        fs::remove_dir_all(project.beside("workspaces")).unwrap_or_default();
        let workspace = project.workspace();
        work(workspace.path());
        fs::write(workspace.path().join(".git/HEAD"), format!("{head}\n")).unwrap();
        let made = candidate(&workspace, what);
        assert_honest(&project, &made, what);
        assert_eq!(made.head, project.head(), "{what}");
        assert!(made.warnings[0].ends_with("its files are put on the base"), "{what}: {:?}", made.warnings);
        let parents = project.git_of_goal(["log", "-1", "--format=%P", made.commit.as_str()]);
        assert_eq!(String::from_utf8(parents).unwrap().trim_end(), project.head().as_str(), "{what}");
    }
}

fn commit_all_empty(root: &Path) -> Commit {
    git(root, ["commit", "-q", "--allow-empty", "-m", "nothing in it"]);
    Commit::new(git(root, ["rev-parse", "HEAD"]))
}

#[test]
fn an_orphan_history_becomes_one_commit_on_the_base() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    git(path, ["checkout", "-q", "--orphan", "fresh"]);
    work(path);
    commit_all(path, "all anew");
    let made = candidate(&workspace, "an orphan");
    assert_honest(&project, &made, "an orphan");
    assert_eq!(project.parent_of(&made.commit), project.head());
    assert_eq!(
        made.warnings[0],
        "the agent's commits are not on top of the base; its files are put on the base"
    );
}

#[test]
fn grafts_and_replaced_objects_make_no_commit_one_on_the_base() {
    let project = Project::new();
    for place in ["the clone", "the user's repository", "Towline's repository"] {
        let workspace = project.workspace();
        let path = workspace.path();
        git(path, ["checkout", "-q", "--orphan", "fresh"]);
        work(path);
        let orphan = commit_all(path, "all anew");
        let git_dir = match place {
            "the clone" => path.join(".git"),
            "the user's repository" => project.root.join(".git"),
            _ => project.plan().own,
        };
        write(&git_dir, "info/grafts", &format!("{orphan} {}\n", project.head()));
        write(&git_dir, format!("refs/replace/{}", project.head()), &format!("{orphan}\n"));
        let made = candidate(&workspace, place);
        assert_honest(&project, &made, place);
        assert_eq!(project.parent_of(&made.commit), project.head(), "{place}");
        fs::remove_file(git_dir.join("info/grafts")).unwrap_or_default();
        fs::remove_dir_all(git_dir.join("refs/replace")).unwrap_or_default();
        fs::remove_dir_all(project.beside("workspaces")).unwrap();
    }
}

/// An index with one more entry, whose name is then made to be something that git itself would never write.
fn plant_name(path: &Path, name: &str) {
    let placeholder = "x".repeat(name.len());
    let blob = git(path, ["hash-object", "-w", "src/lib.rs"]);
    git(path, ["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{placeholder}")]);
    let mut index = fs::read(path.join(".git/index")).unwrap();
    let at = index.windows(name.len()).position(|bytes| bytes == placeholder.as_bytes()).unwrap();
    index[at..at + name.len()].copy_from_slice(name.as_bytes());
    // No checksum at all is one that git accepts.
    let end = index.len() - 20;
    index[end..].fill(0);
    fs::write(path.join(".git/index"), index).unwrap();
}

#[test]
fn names_in_a_forged_index_lead_nowhere() {
    let project = Project::new();
    write(&project.beside("workspaces"), "outside", "outside\n");
    for name in ["../outside", "/etc/passwd", ".git/config", "src/../new.rs", "link/lib.rs", "src//lib.rs"] {
        let workspace = project.workspace();
        work(workspace.path());
        symlink("src", workspace.path().join("link")).unwrap();
        plant_name(workspace.path(), name);
        let made = candidate(&workspace, name);
        assert_honest(&project, &made, name);
        let files: Vec<String> = project.files_of(&made.commit).into_keys().collect();
        assert_eq!(
            files,
            [".gitignore", "link", "new.rs", "src/lib.rs", "tests/a.rs", "tests/b.rs"],
            "{name}"
        );
        fs::remove_dir_all(workspace.path()).unwrap();
        fs::remove_dir_all(project.plan().own).unwrap();
    }
}

#[test]
fn an_index_that_claims_other_content_is_not_believed() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    // All entries are those of a weaker commit, and the index claims that the files are like that.
    work(path);
    commit_all(path, "weaker");
    git(path, ["update-index", "--assume-unchanged", "tests/a.rs", "src/lib.rs"]);
    write(path, "src/lib.rs", "work, changed\n");
    git(path, ["reset", "-q", "--soft", project.head().as_str()]);
    let made = candidate(&workspace, "an index");
    assert_eq!(made.restored, ["tests/a.rs"]);
    let files = project.files_of(&made.commit);
    assert_eq!([&files["src/lib.rs"], &files["tests/a.rs"]], ["100644 work, changed\n", "100644 assert a\n"]);
}
