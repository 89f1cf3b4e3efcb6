//! A first look at whether the work of many goals is merged.

use towline_workspace::{Commit, GoalWork, Standing};

use crate::support::{Project, commit_all, git, write};

/// A commit on the base that only a ref of Towline's has.
fn work(project: &Project, name: &str, text: &str) -> Commit {
    let root = &project.root;
    git(root, ["checkout", "--quiet", "--detach", "refs/towline/test/base"]);
    write(root, name, text);
    commit_all(root, name);
    let commit = git(root, ["rev-parse", "HEAD"]).trim().to_owned();
    git(root, ["update-ref", &format!("refs/towline/{commit}/published"), &commit]);
    git(root, ["checkout", "--quiet", "main"]);
    Commit::new(commit)
}

#[test]
fn a_few_commands_distinguish_the_merged_goals() {
    let project = Project::new();
    let root = &project.root;
    git(root, ["update-ref", "refs/towline/test/base", "HEAD"]);
    let base = Commit::new(git(root, ["rev-parse", "HEAD"]).trim());
    let merged = work(&project, "merged.txt", "merged\n");
    let squashed = work(&project, "squashed.txt", "squashed\n");
    let unmerged = work(&project, "unmerged.txt", "unmerged\n");
    let edited = work(&project, "edited.txt", "one\n");
    let moved = work(&project, "moved.txt", "moved\n");
    git(root, ["merge", "--quiet", "--ff-only", merged.as_str()]);
    write(root, "squashed.txt", "squashed\n");
    write(root, "edited.txt", "one\ntwo\n");
    commit_all(root, "the same in other words");
    git(root, ["branch", "towline/moved", "main"]);

    let missing = Commit::new("1".repeat(40));
    let cases = [
        (&base, "towline/none", Standing::Merged),
        (&merged, "towline/none", Standing::Merged),
        (&squashed, "towline/none", Standing::Merged),
        (&unmerged, "towline/none", Standing::Unmerged),
        (&edited, "towline/none", Standing::Unclear),
        (&moved, "towline/moved", Standing::Unclear),
        (&missing, "towline/none", Standing::Unclear),
    ];
    let goals = cases.map(|(candidate, branch, _)| GoalWork {
        base: base.clone(),
        candidate: candidate.clone(),
        branch: branch.to_owned(),
    });
    let found = project.repository().standings(&goals).unwrap();
    assert_eq!(found, cases.map(|(_, _, standing)| standing));
    assert_eq!(project.repository().standings(&[]).unwrap(), []);
    let missing = [GoalWork { candidate: missing, ..goals[0].clone() }];
    assert_eq!(project.repository().standings(&missing).unwrap(), [Standing::Unclear]);
}
