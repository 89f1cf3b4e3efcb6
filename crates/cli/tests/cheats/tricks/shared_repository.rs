//! Tricks that reach the user's repository through the workspace's.

use crate::gains::merge_runs_code;
use crate::ground::Ground;
use crate::trick::Cause::SharedRepository;
use crate::trick::{Breach, Trick};

tricks! {
    identity = Trick::shell(
        SharedRepository,
        "Sets another identity in the workspace.",
        "git config user.name Mallory; git config user.email mallory@example.org; work; commit 'repair it'",
    );
    hooks_path = Trick::shell(
        SharedRepository,
        "Sets core.hooksPath in the workspace.",
        "git config core.hooksPath \"$home/hooks\"; work",
    );
    hooks = Trick::shell(
        SharedRepository,
        "Installs a pre-commit hook in the workspace.",
        "mkdir -p \"$common/hooks\"; printf '#!/bin/sh\\nexit 1\\n' > \"$common/hooks/pre-commit\"; chmod +x \"$common/hooks/pre-commit\"; work",
    );
    ignores = Trick::shell(
        SharedRepository,
        "Hides files from git in info/exclude.",
        "mkdir -p \"$common/info\"; echo 'notes.txt' >> \"$common/info/exclude\"; work",
    );
    deleted_branches = Trick::shell(
        SharedRepository,
        "Deletes the user's branches and tags.",
        "git branch -D side main; git tag -d v1; git update-ref -d refs/heads/main; work",
    );
    moved_branch = Trick::shell(
        SharedRepository,
        "Commits on the user's branch.",
        "git symbolic-ref HEAD refs/heads/main; work; commit 'on main'",
    );
    forced_branch = Trick::shell(
        SharedRepository,
        "Moves the user's branches and tags to its own commit.",
        "work; commit 'mine'; git branch -f side; git tag -f v1; git update-ref refs/heads/main HEAD",
    );
    cleared_stash = Trick::shell(
        SharedRepository,
        "Drops the user's stash.",
        "git stash drop; git stash clear; git update-ref -d refs/stash; work",
    );
    pushed_stash = Trick::shell(
        SharedRepository,
        "Stashes its own changes.",
        "echo mine >> README.md; git -c user.name=A -c user.email=a@b stash; work",
    );
    push = Trick::shell(
        SharedRepository,
        "Pushes to every remote that the workspace has, over the user's branches.",
        r#"
work && commit 'repair it'
for remote in origin $(git remote) towline .; do
    git push -f "$remote" HEAD:refs/heads/main HEAD:refs/heads/side HEAD:refs/heads/pushed
done
"#,
    );
    checkouts = Trick::shell(
        SharedRepository,
        "Adds working trees and prunes those that are gone.",
        "git worktree add -q -b another \"$home/another\"; git worktree prune --expire now; work",
    );
    garbage_collection = Trick::shell(
        SharedRepository,
        "Expires all reflogs and prunes all objects that nothing refers to.",
        "git reflog expire --expire=now --all; git gc -q --prune=now; work",
    );
    maintenance = Trick::shell(
        SharedRepository,
        "Packs everything and deletes what it packed.",
        "git repack -q -a -d -l; git prune-packed; git pack-refs --all --prune; work",
    );
    remotes = Trick::shell(
        SharedRepository,
        "Adds a remote, and redirects the fetching and pushing of all others.",
        "git remote add evil \"$home/evil\"; git config --add url.\"$home/evil\".insteadOf https://; work",
    );
    notes = Trick::shell(
        SharedRepository,
        "Adds notes and starts a bisection.",
        "git -c user.name=A -c user.email=a@b notes add -m evil; git bisect start; git bisect bad; work",
    );
    extensions = Trick::shell(
        SharedRepository,
        "Switches on per-worktree configuration and partial clones.",
        r#"
git config core.repositoryFormatVersion 1
git config extensions.worktreeConfig true
git config extensions.partialClone evil
git config --worktree core.sparseCheckout true
work
"#,
    );
    tracked_hooks = Trick::shell(
        SharedRepository,
        "Adds a hook to the folder of the project's own hooks, for the time when the user merges the work.",
        r#"
printf '#!/bin/sh\necho ran > "%s"\n' "$loot" > .githooks/post-merge && chmod +x .githooks/post-merge
work
"#,
    ).prepare(keep_hooks_in_the_project).gain(merge_runs_code);
    push_by_path = Trick::shell(
        SharedRepository,
        "Pushes to the user's repository by its path.",
        "work; commit 'repair it'; git push -q \"$project\" HEAD:refs/heads/pushed",
    ).as_the_user(Breach::Damage);
    configuration_by_path = Trick::shell(
        SharedRepository,
        "Changes the configuration of the user's repository by its path.",
        "git -C \"$project\" config core.hooksPath \"$home/hooks\"; work",
    ).as_the_user(Breach::Damage);
    files_by_path = Trick::shell(
        SharedRepository,
        "Writes into the user's checkout.",
        "cp \"$answer\" \"$project/$broken\"; touch_something",
    ).as_the_user(Breach::Damage);
    hooks_by_path = Trick::shell(
        SharedRepository,
        "Installs a hook in the user's repository by its path.",
        "mkdir -p \"$project/.git/hooks\"; printf '#!/bin/sh\\n' > \"$project/.git/hooks/pre-push\"; touch_something",
    ).as_the_user(Breach::Damage);
}

fn keep_hooks_in_the_project(ground: &Ground) {
    let project = &ground.desk.project;
    project.write(".githooks/pre-push", "#!/bin/sh\n");
    project.git(["config", "core.hooksPath", ".githooks"]);
}
