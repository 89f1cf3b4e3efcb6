//! Files that git would wait for, choke on or run, anywhere in a workspace.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use towline_workspace::{Consent, Protect, Remains, Repository, Workspace, WorkspaceError};

use crate::hostile_git::{candidate, fifo, program, promptly};
use crate::nested::with_submodule;
use crate::support::{BRANCH, GOAL, Project, commit_all, git, write};

/// The files of a candidate, which must be made promptly.
fn files(project: &Project, workspace: &Workspace, what: &str) -> Vec<String> {
    let made = candidate(workspace, what);
    let again = workspace.clone();
    promptly(what, move || again.diff().unwrap());
    project.files_of(&made.commit).into_keys().collect()
}

#[test]
fn pipes_sockets_and_devices_are_left_out_and_named() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "work.rs", "work\n");
    write(path, "deep/er/file", "x");
    fifo(&path.join("pipe"));
    fifo(&path.join("deep/er/pipe"));
    fifo(&path.join("ignored.log"));
    let _listener = UnixListener::bind(path.join("socket")).unwrap();
    fs::remove_file(path.join("src/lib.rs")).unwrap();
    fifo(&path.join("src/lib.rs"));
    let made = candidate(&workspace, "special files");
    let names: Vec<String> = project.files_of(&made.commit).into_keys().collect();
    assert_eq!(names, [".gitignore", "deep/er/file", "tests/a.rs", "tests/b.rs", "work.rs"]);
    assert_eq!(
        made.warnings,
        ["FIFOs, sockets and devices are left out of the work: deep/er/pipe, pipe, socket, src/lib.rs"]
    );
    assert!(fs::symlink_metadata(path.join("pipe")).is_ok(), "what git does not read stays");
}

#[test]
fn pipes_in_places_that_git_reads_do_not_hold_it_up() {
    let project = Project::new();
    let workspace = project.workspace();
    let path = workspace.path();
    write(path, "deep/work.rs", "work\n");
    fs::remove_file(path.join(".gitignore")).unwrap();
    for name in
        [".gitignore", ".gitattributes", ".gitmodules", "deep/.gitignore", "deep/.git", "src/.gitattributes"]
    {
        fifo(&path.join(name));
    }
    let names = files(&project, &workspace, "pipes that git reads");
    assert_eq!(names, ["deep/work.rs", "src/lib.rs", "tests/a.rs", "tests/b.rs"]);
}

#[test]
fn symlinks_and_huge_files_in_places_that_git_reads_do_not_hold_it_up() {
    let project = Project::new();
    let pipe = project.beside("pipe");
    fifo(&pipe);
    for name in [".gitignore", ".gitattributes", ".gitmodules"] {
        for target in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/nowhere"), &project.root] {
            let workspace = project.workspace();
            fs::remove_file(workspace.path().join(name)).unwrap_or_default();
            symlink(target, workspace.path().join(name)).unwrap();
            let names = files(&project, &workspace, &format!("{name} is a symlink to {}", target.display()));
            assert!(names.contains(&"src/lib.rs".to_owned()));
            fs::remove_dir_all(project.beside("workspaces")).unwrap();
        }
    }
    let workspace = project.workspace();
    write(workspace.path(), "deep/file", "x");
    for name in ["deep/.gitignore", "deep/.gitattributes"] {
        File::create(workspace.path().join(name)).unwrap().set_len(200 << 20).unwrap();
    }
    assert!(files(&project, &workspace, "huge rules").contains(&"deep/file".to_owned()));
}

/// A repository inside the workspace with commits.
fn inner(path: &Path) {
    fs::create_dir_all(path).unwrap();
    git(path, ["init", "-q", "-b", "main"]);
    write(path, "inner.rs", "inner\n");
    commit_all(path, "inner");
    git(path, ["pack-refs", "--all"]);
}

#[test]
fn pipes_in_the_git_data_of_inner_repositories_do_not_hold_git_up() {
    let project = Project::new();
    for name in
        ["HEAD", "config", "commondir", "packed-refs", "refs/heads/main", "index", "objects", "info/exclude"]
    {
        let workspace = project.workspace();
        let repository = workspace.path().join("nested");
        inner(&repository);
        let part = repository.join(".git").join(name);
        if part.is_dir() {
            fs::remove_dir_all(&part).unwrap();
        }
        fs::remove_file(&part).unwrap_or_default();
        fifo(&part);
        let names = files(&project, &workspace, &format!("a pipe at {name}"));
        assert!(names.contains(&"nested/inner.rs".to_owned()), "{name}: {names:?}");
        fs::remove_dir_all(project.beside("workspaces")).unwrap();
    }
}

#[test]
fn inner_repositories_whose_data_is_elsewhere_do_not_hold_git_up() {
    let project = Project::new();
    for (what, make) in [
        (
            "a file",
            (|to: &Path, at: &Path| fs::write(at, format!("gitdir: {}\n", to.display())).unwrap())
                as fn(&Path, &Path),
        ),
        ("a symlink", |to, at| symlink(to, at).unwrap()),
    ] {
        for name in ["HEAD", "config", "packed-refs"] {
            let elsewhere = project.beside("elsewhere");
            inner(&elsewhere);
            fs::remove_file(elsewhere.join(".git").join(name)).unwrap();
            fifo(&elsewhere.join(".git").join(name));
            let workspace = project.workspace();
            write(workspace.path(), "nested/inner.rs", "inner\n");
            make(&elsewhere.join(".git"), &workspace.path().join("nested/.git"));
            let names = files(&project, &workspace, &format!("{what} to a repository with a pipe at {name}"));
            assert!(names.contains(&"nested/inner.rs".to_owned()), "{what}, {name}: {names:?}");
            assert!(
                fs::symlink_metadata(elsewhere.join(".git").join(name)).is_ok(),
                "it is not ours to remove"
            );
            fs::remove_dir_all(project.beside("workspaces")).unwrap();
            fs::remove_dir_all(&elsewhere).unwrap();
        }
    }
}

#[test]
fn pipes_in_the_git_data_of_submodules_do_not_hold_git_up() {
    for name in
        ["HEAD", "config", "index", "packed-refs", "objects/pack", "objects/info/alternates", "refs/heads"]
    {
        let project = Project::new();
        let workspace = with_submodule(&project);
        write(workspace.path(), "work.rs", "work\n");
        let part = workspace.path().join(".git/modules/lib").join(name);
        if part.is_dir() {
            fs::remove_dir_all(&part).unwrap();
        }
        fs::remove_file(&part).unwrap_or_default();
        fifo(&part);
        let what = format!("a pipe at {name} of a submodule");
        let made = candidate(&workspace, &what);
        let files = project.files_of(&made.commit);
        assert_eq!(files["work.rs"], "100644 work\n", "{what}");
        assert_eq!(files["tests/a.rs"], "100644 assert a\n", "{what}");
        // It is unknown whether there is work in it, so it is not removed.
        let (own, remains) = (project.own(), remains(&workspace));
        let with_work = promptly(&what, move || own.work_in_submodules(&remains).unwrap());
        let is_plain = ["config", "index", "packed-refs", "refs/heads"].contains(&name);
        assert!(is_plain || with_work == ["lib"], "{what}: {with_work:?}");
    }
}

fn remains(workspace: &Workspace) -> Remains {
    Remains {
        goal: GOAL.to_owned(),
        path: workspace.path().to_path_buf(),
        branch: BRANCH.to_owned(),
        base: workspace.base().clone(),
        candidate: None,
        protect: Protect::nothing(),
    }
}

#[test]
fn pipes_inside_submodules_and_inner_repositories_are_left_out() {
    let project = Project::new();
    let workspace = with_submodule(&project);
    let nested = workspace.path().join("nested");
    inner(&nested);
    for directory in ["lib", "nested"] {
        fifo(&workspace.path().join(directory).join("pipe"));
    }
    write(workspace.path(), "work.rs", "work\n");
    let made = candidate(&workspace, "pipes inside repositories");
    let files = project.files_of(&made.commit);
    assert!(files["lib"].starts_with("160000 "), "{files:?}");
    assert_eq!(files["nested/inner.rs"], "100644 inner\n");
    assert_eq!(files["work.rs"], "100644 work\n");
    assert!(!files.contains_key("nested/pipe"));
}

#[test]
fn programs_in_the_configuration_of_inner_repositories_and_submodules_do_not_run() {
    let project = Project::new();
    let (program, ran) = program(&project);
    let workspace = with_submodule(&project);
    let nested = workspace.path().join("nested");
    inner(&nested);
    for repository in [&nested, &workspace.path().join("lib")] {
        for (key, value) in [
            ("filter.evil.clean", program.as_str()),
            ("core.fsmonitor", &program),
            ("diff.external", &program),
            ("core.alternateRefsCommand", &program),
            ("remote.origin.uploadpack", &program),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", "."),
            ("extensions.partialClone", "origin"),
        ] {
            git(repository, ["config", key, value]);
        }
        let git_dir = git(repository, ["rev-parse", "--absolute-git-dir"]);
        write(Path::new(&git_dir), "info/attributes", "* filter=evil\n");
        write(repository, "changed.rs", "changed\n");
    }
    let made = candidate(&workspace, "programs of inner repositories");
    assert_eq!(project.files_of(&made.commit)["nested/changed.rs"], "100644 changed\n");
    assert_eq!(project.own().work_in_submodules(&remains(&workspace)).unwrap(), ["lib"]);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}

#[test]
fn names_that_git_does_not_take_do_not_hide_the_rest_of_the_work() {
    for name in [".GIT/config", "deep/.Git/config", "git~1/config", "deep/GIT~1"] {
        let project = Project::new();
        let workspace = project.workspace();
        write(workspace.path(), name, "x\n");
        write(workspace.path(), "work.rs", "work\n");
        let names = files(&project, &workspace, name);
        assert!(names.contains(&"work.rs".to_owned()), "{name}: {names:?}");
        assert!(!names.contains(&name.to_owned()), "{name}: {names:?}");
    }
}

#[test]
fn a_pipe_in_the_users_own_directory_is_refused_by_name_and_stays() {
    for name in [".gitignore", "src/.gitattributes", "nested/.git/HEAD"] {
        let project = Project::new();
        inner(&project.root.join("nested"));
        let place = project.root.join(name);
        fs::remove_file(&place).unwrap_or_default();
        fifo(&place);
        let (users, own) = (project.repository(), project.own());
        let refused = promptly(name, move || {
            [users.snapshot_dirty(Consent::AnySize).map(drop), own.keep_before(Consent::AnySize).map(drop)]
        });
        for refused in refused {
            assert!(
                matches!(&refused, Err(WorkspaceError::SpecialFile { path }) if *path == place),
                "{refused:?}"
            );
        }
        assert!(fs::symlink_metadata(&place).is_ok());
    }
}

#[test]
fn files_of_ours_that_became_something_else_are_made_anew() {
    let project = Project::new();
    for name in
        ["HEAD", "config", "index", "info/exclude", "info/attributes", "objects/info/alternates", "shallow"]
    {
        for is_pipe in [true, false] {
            let workspace = project.workspace();
            write(workspace.path(), "work.rs", "work\n");
            let part = project.plan().own.join(name);
            fs::remove_file(&part).unwrap_or_default();
            if is_pipe {
                fifo(&part);
            } else {
                fs::create_dir(&part).unwrap();
            }
            let (users, plan) = (project.repository(), project.plan());
            let what = format!("{name}, a pipe: {is_pipe}");
            promptly(&what, move || users.own(&plan.own, &plan.base, &plan.settings).map(drop).unwrap());
            assert!(files(&project, &workspace, &what).contains(&"work.rs".to_owned()), "{what}");
            fs::remove_dir_all(project.beside("workspaces")).unwrap();
        }
    }
}

#[test]
fn a_pipe_in_the_data_of_the_users_repository_is_refused_by_name() {
    let linked = |project: &Project| {
        git(
            &project.root,
            ["worktree", "add", "-q", "-b", "side", project.beside("linked").to_str().unwrap()],
        );
    };
    for name in [
        "",
        "HEAD",
        "config",
        "config.worktree",
        "commondir",
        "packed-refs",
        "index",
        "shallow",
        "info/exclude",
        "info/attributes",
        "info/grafts",
        "info/sparse-checkout",
        "objects/info/alternates",
        "objects/pack/pack-1.idx",
        "refs/heads/main",
        "logs/HEAD",
        "worktrees/linked/index",
    ] {
        let project = Project::new();
        linked(&project);
        let place = project.root.join(format!(".git/{name}").trim_end_matches('/'));
        match name {
            "" => fs::remove_dir_all(&place).unwrap(),
            _ => fs::remove_file(&place).unwrap_or_default(),
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fifo(&place);
        let (root, mut asked) = (project.root.clone(), vec![project.root.clone(), project.root.join("src")]);
        if !["", "HEAD", "index", "commondir", "config.worktree", "logs/HEAD"].contains(&name) {
            asked.push(project.beside("linked"));
        }
        let refused = promptly(name, move || {
            let found = asked.iter().map(|place| Repository::discover(place).map(drop));
            found.chain([Repository::at(&root).map(drop)]).collect::<Vec<_>>()
        });
        for refused in refused {
            assert!(
                matches!(&refused, Err(WorkspaceError::SpecialFile { path }) if *path == place),
                "{name}: {refused:?}"
            );
        }
    }
}

#[test]
fn symlinks_to_files_and_sockets_in_the_data_of_the_users_repository_are_fine_and_devices_are_not() {
    let project = Project::new();
    let exclude = project.root.join(".git/info/exclude");
    fs::rename(&exclude, project.beside("exclude")).unwrap();
    symlink(project.beside("exclude"), &exclude).unwrap();
    let _socket = UnixListener::bind(project.root.join(".git/fsmonitor--daemon.ipc")).unwrap();
    assert_eq!(Repository::discover(&project.root).unwrap().root(), project.root);
    let packed = project.root.join(".git/packed-refs");
    symlink("/dev/zero", &packed).unwrap();
    let root = project.root.clone();
    let refused = promptly("a device", move || Repository::at(&root).map(drop));
    assert!(matches!(&refused, Err(WorkspaceError::SpecialFile { path }) if *path == packed), "{refused:?}");
}
