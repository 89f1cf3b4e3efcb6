//! Filters that an agent could change are refused before there is a goal.

use towline_workspace::{Protect, WorkspaceError};

use crate::support::{Project, commit_all, git, write};

fn refused(project: &Project) -> Option<String> {
    let (repository, base) = (project.repository(), project.head());
    let settings = repository.git_settings(&base).unwrap();
    match repository.refuse_filters_inside(&base, &settings) {
        Ok(()) => None,
        Err(error @ WorkspaceError::FilterInside { .. }) => Some(error.to_string()),
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn a_filter_that_runs_a_script_of_the_repository_is_refused_if_attributes_name_it() {
    let project = Project::new();
    git(&project.root, ["config", "filter.strip.smudge", "sh tools/strip.sh %f"]);
    assert_eq!(refused(&project), None);
    write(&project.root, "docs/.gitattributes", "*.md text\n*.txt filter=strip\n");
    commit_all(&project.root, "attributes");
    let error = refused(&project).unwrap();
    for part in ["`filter.strip.smudge = sh tools/strip.sh %f`", "`tools/strip.sh`", "absolute path"] {
        assert!(error.contains(part), "{error}");
    }
    git(&project.root, ["config", "filter.strip.smudge", "strip-text %f"]);
    assert_eq!(refused(&project), None);
}

#[test]
fn attributes_outside_the_tree_and_files_without_a_folder_count_as_well() {
    let project = Project::new();
    git(&project.root, ["config", "filter.strip.clean", "python3 strip.py"]);
    write(&project.root.join(".git/info"), "attributes", "*.txt filter=strip\n");
    assert_eq!(refused(&project), None);
    write(&project.root, "strip.py", "print()\n");
    commit_all(&project.root, "a script");
    assert!(refused(&project).unwrap().contains("`strip.py`"));
}

#[test]
fn a_filter_in_python_takes_no_modules_from_the_agents_files() {
    let project = Project::new();
    git(&project.root, ["config", "filter.strip.clean", "cat > /dev/null; printf %s \"$PYTHONSAFEPATH\""]);
    write(&project.root, ".gitattributes", "*.txt filter=strip\n");
    commit_all(&project.root, "attributes");
    let workspace = project.workspace();
    write(workspace.path(), "new.txt", "work\n");
    let made = workspace.candidate(1, &Protect::nothing()).unwrap();
    assert_eq!(project.files_of(&made.commit)["new.txt"], "100644 1");
}
