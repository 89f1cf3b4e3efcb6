//! `towline rm`: a goal goes with everything that belongs to it, and its work is never lost.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;

use serde_json::json;
use support::terminal::Terminal;
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_for;

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"))
}

fn run_a_goal(desk: &Desk) -> String {
    let ran = desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

/// Everything in the repository and the state directory that carries the goal's id.
fn traces(desk: &Desk, goal: &str) -> Vec<String> {
    let refs = desk.project.git(["for-each-ref", "--format=%(refname)"]);
    let checkouts = desk.project.git(["worktree", "list", "--porcelain"]);
    let mut found: Vec<String> = refs.lines().chain(checkouts.lines()).map(str::to_owned).collect();
    for folder in ["attempts", "workspaces", "verify"] {
        let entries = std::fs::read_dir(desk.home.towline().join(folder)).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path().display().to_string()));
    }
    found.retain(|line| line.contains(goal) || line.contains(&goal[28..]));
    found
}

#[test]
fn a_merged_goal_goes_without_a_trace_and_others_stay() {
    let desk = desk();
    let (goal, other) = (run_a_goal(&desk), run_a_goal(&desk));
    assert_eq!(desk.towline(["merge", &goal]).code, Some(0));
    let head = desk.project.git(["rev-parse", "HEAD"]);
    let others = traces(&desk, &other);
    let removed = desk.towline(["rm", &goal[28..]]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stdout.contains("freed"), "{}", removed.stdout);
    assert_eq!(traces(&desk, &goal), Vec::<String>::new());
    assert_eq!(traces(&desk, &other), others);
    assert_eq!(desk.towline(["ls", "--json"]).json().as_array().map(Vec::len), Some(1));
    assert_eq!(
        (desk.project.git(["rev-parse", "HEAD"]), desk.project.git(["status", "--porcelain"])),
        (head, String::new())
    );
    assert_eq!(desk.towline(["rm", &goal]).code, Some(5), "it is gone");
}

#[test]
fn unmerged_work_is_refused_and_preserved_by_force() {
    let desk = desk();
    let goal = run_a_goal(&desk);
    let report = desk.show(&goal);
    let candidate = report["candidate"].as_str().expect("a candidate").to_owned();
    let before = traces(&desk, &goal);
    let refused = desk.towline(["rm", &goal]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    for wanted in [&candidate[..12], "towline merge", "--force"] {
        assert!(refused.stderr.contains(wanted), "no {wanted:?} in {}", refused.stderr);
    }
    assert_eq!(desk.show(&goal), report);
    let refs: Vec<String> = traces(&desk, &goal);
    assert!(before.iter().all(|trace| refs.contains(trace)), "{before:?} {refs:?}");

    let forced = desk.towline(["rm", "--force", "--json", &goal]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    let preserved = format!("refs/towline/removed/{goal}/candidate");
    assert_eq!(forced.json()[0]["kept"], json!([{"reference": preserved, "commit": candidate}]));
    assert_eq!(traces(&desk, &goal), std::slice::from_ref(&preserved));
    assert_eq!(desk.project.git(["rev-parse", &preserved]), candidate);
    assert_eq!(desk.project.git(["show", &format!("{preserved}:fix.txt")]), "fixed");
}

#[test]
fn files_that_somebody_left_in_the_workspace_are_work() {
    let desk = desk();
    let goal = run_a_goal(&desk);
    assert_eq!(desk.towline(["merge", &goal]).code, Some(0));
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(Path::new(&workspace).join("notes.txt"), "by hand\n").expect("written");
    let refused = desk.towline(["rm", &goal]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("files in its workspace"), "{}", refused.stderr);
    let forced = desk.towline(["rm", "-f", &goal]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    let preserved = format!("refs/towline/removed/{goal}/work:notes.txt");
    assert_eq!(desk.project.git(["show", &preserved]), "by hand");
    assert!(!Path::new(&workspace).exists());
}

#[test]
fn several_are_removed_at_once_and_a_typing_error_removes_none() {
    let desk = desk();
    let (one, two) = (run_a_goal(&desk), run_a_goal(&desk));
    assert_eq!(desk.towline(["rm", "-f", &one, "ffffffff"]).code, Some(5));
    assert_eq!(desk.towline(["ls", "--json"]).json().as_array().map(Vec::len), Some(2));
    let merged = desk.towline(["merge", &one]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let workspace = desk.show(&two)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(Path::new(&workspace).join("notes.txt"), "by hand\n").expect("written");
    let removed = desk.towline(["rm", &one, &two, &one, "--json"]);
    assert_eq!(removed.code, Some(4), "one of them is not merged: {removed:?}");
    let report = removed.json();
    let outcomes = json!([report[0]["removed"], report[1]["removed"], report[2]["removed"]]);
    assert_eq!(outcomes, json!([true, false, null]), "{report}");
}

#[test]
fn a_goal_that_somebody_drives_is_refused() {
    let desk = Desk::with_script(|dir| {
        hostile::with_body(dir, "lingers", "await_prompt\ninit\n: > \"$HOME/working\"\nlinger\n")
    });
    let towline = desk.start(["run", "never stop", "--check", "true", "--json"]);
    wait_for(LIMIT, "the agent to work", || desk.home.path().join("working").exists());
    let goal = desk.only_goal();
    let refused = desk.towline(["rm", "--force", &goal]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("towline cancel"), "{}", refused.stderr);
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    finish(towline);
    let removed = desk.towline(["rm", &goal]);
    assert_eq!(removed.code, Some(0), "nothing was done yet: {removed:?}");
    assert_eq!(traces(&desk, &goal), Vec::<String>::new());
}

#[test]
fn a_goal_that_has_not_ended_is_removed_after_a_question_or_by_force() {
    let desk = desk();
    let waiting = || {
        let added = desk.towline(["add", "fix it", "--check", "true", "--json"]);
        let goal = added.json()["id"].as_str().expect("an id").to_owned();
        assert_eq!(desk.towline(["pause", &goal]).code, Some(0));
        goal
    };
    let goal = waiting();
    let refused = desk.towline(["rm", &goal]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    for wanted in ["it is paused and has not ended", "towline rm --force"] {
        assert!(refused.stderr.contains(wanted), "no {wanted:?} in {}", refused.stderr);
    }
    for (answer, code) in [("n", 4), ("", 4), ("y", 0)] {
        let mut terminal = Terminal::new();
        let towline = terminal.start(&desk.command(["rm", &goal]));
        terminal.wait_for("is paused and has not ended; remove it? [y/N]", 1);
        terminal.type_in(answer);
        assert_eq!(finish(towline).code, Some(code), "{answer:?}: {}", terminal.shown());
        assert_eq!(desk.towline(["show", &goal]).code, Some(if code == 0 { 5 } else { 0 }));
    }
    let goal = waiting();
    assert_eq!(desk.towline(["rm", "--force", &goal]).code, Some(0));
}

#[test]
fn a_removal_that_was_cut_off_is_finished_by_the_next() {
    let desk = desk();
    let goal = run_a_goal(&desk);
    let candidate = desk.show(&goal)["candidate"].as_str().expect("a candidate").to_owned();
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    // As a removal leaves it that was killed after its first steps.
    desk.project.git(["update-ref", &format!("refs/towline/removed/{goal}/candidate"), &candidate]);
    std::fs::remove_dir_all(&workspace).expect("removed");
    desk.project.git(["update-ref", "-d", &format!("refs/towline/{goal}/published")]);
    let removed = desk.towline(["rm", &goal]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(traces(&desk, &goal), [format!("refs/towline/removed/{goal}/candidate")]);
}

#[test]
fn without_its_repository_a_goal_goes_only_by_force_and_its_files_stay() {
    let desk = desk();
    let goal = run_a_goal(&desk);
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    let moved = desk.project.path().with_file_name("moved");
    std::fs::rename(desk.project.path(), &moved).expect("moved");
    let rm = |args: &[&str]| {
        let mut command = desk.command(args);
        finish(command.current_dir(desk.home.path()).spawn().expect("towline starts"))
    };
    let refused = rm(&["rm", &goal]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let forced = rm(&["rm", "--force", &goal]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(forced.stdout.contains(&workspace), "{}", forced.stdout);
    assert!(Path::new(&workspace).join("fix.txt").exists());
    std::fs::rename(&moved, desk.project.path()).expect("moved back");
}

#[test]
fn work_inside_a_submodule_keeps_the_workspace_even_by_force() {
    let desk = desk();
    let url = desk.project.path().display().to_string();
    let by_path = ["-c", "protocol.file.allow=always"];
    desk.project.git([&by_path[..], &["submodule", "--quiet", "add", &url, "lib"]].concat());
    desk.project.commit("with a submodule");
    let goal = run_a_goal(&desk);
    assert_eq!(desk.towline(["merge", &goal]).code, Some(0));
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    desk.project
        .git([&["-C", &workspace][..], &by_path, &["submodule", "--quiet", "update", "--init"]].concat());
    let notes = Path::new(&workspace).join("lib/notes.txt");
    std::fs::write(&notes, "by hand\n").expect("written");
    let cleared = desk.towline(["gc"]);
    assert!(cleared.stdout.contains("work in its submodules is nowhere else: lib"), "{}", cleared.stdout);
    let refused = desk.towline(["rm", &goal]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("submodules of its workspace"), "{}", refused.stderr);
    let forced = desk.towline(["rm", "--force", &goal]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    for text in ["work in its submodules is nowhere else: lib", &workspace] {
        assert!(forced.stdout.contains(text), "no {text:?} in {}", forced.stdout);
    }
    assert_eq!(std::fs::read_to_string(&notes).expect("still there"), "by hand\n");
}

#[test]
fn a_symlink_to_the_users_checkout_in_the_place_of_the_workspace_costs_nobody_anything() {
    let desk = desk();
    let goal = run_a_goal(&desk);
    assert_eq!(desk.towline(["merge", &goal]).code, Some(0));
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::remove_dir_all(&workspace).expect("removed");
    std::os::unix::fs::symlink(desk.project.path(), &workspace).expect("a symlink");
    for args in [&["gc"][..], &["rm", &goal], &["rm", "--force", &goal]] {
        let ran = desk.towline(args);
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(printed.contains("there is a symlink or a file in its place"), "{args:?}: {ran:?}");
        assert_eq!(desk.project.read("fix.txt"), "fixed\n");
    }
    std::fs::remove_file(&workspace).expect("removed");
    assert_eq!(desk.towline(["rm", &goal]).code, Some(0));
}

#[test]
fn another_repository_in_the_place_of_the_goals_own_is_no_evidence_about_its_work() {
    for mode in ["--check=test -e fix.txt", "--in-place"] {
        let desk = desk();
        let ran = desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json", mode]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let (goal, candidate) = (ran.json()["id"].clone(), ran.json()["candidate"].clone());
        let goal = goal.as_str().expect("an id");
        let moved = desk.project.path().with_file_name("moved");
        std::fs::rename(desk.project.path(), &moved).expect("moved");
        std::fs::create_dir(desk.project.path()).expect("a folder");
        desk.project.git(["init", "-q", "-b", "main"]);
        desk.project.git(["config", "user.name", "Somebody"]);
        desk.project.git(["config", "user.email", "somebody@example.com"]);
        desk.project.write("other", "project\n");
        desk.project.commit("another repository");
        let refused = desk.towline(["rm", goal]);
        assert_eq!(refused.code, Some(4), "{mode}: {refused:?}");
        assert!(refused.stderr.contains("another one"), "{mode}: {}", refused.stderr);
        assert!(desk.towline(["show", goal]).code == Some(0), "it is still there");
        let forced = desk.towline(["rm", "--force", goal]);
        assert_eq!(forced.code, Some(0), "{mode}: {forced:?}");
        std::fs::remove_dir_all(desk.project.path()).expect("removed");
        std::fs::rename(&moved, desk.project.path()).expect("moved back");
        let candidate = candidate.as_str().expect("a candidate");
        assert!(desk.project.git(["for-each-ref", "--contains", candidate]).contains(goal), "{mode}");
    }
}

#[test]
fn a_goal_that_worked_in_place_has_nothing_to_merge_and_leaves_the_files_alone() {
    let desk = desk();
    desk.project.write("README.md", "changed before the goal\n");
    let args = ["run", "fix it", "--in-place", "--check", "test -e fix.txt", "--json"];
    let ran = desk.towline(args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let refused = desk.towline(["merge", &goal]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("worked in place"), "{}", refused.stderr);
    assert_eq!(desk.towline(["verify", &goal]).code, Some(0));
    desk.project.write("README.md", "changed since\n");
    let removed = desk.towline(["rm", &goal]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(desk.project.read("fix.txt"), "fixed\n");
    let preserved = ["before", "candidate"].map(|name| format!("refs/towline/removed/{goal}/{name}"));
    assert_eq!(traces(&desk, &goal), preserved);
    let before = &preserved[0];
    assert_eq!(desk.project.git(["show", &format!("{before}:README.md")]), "changed before the goal");
}

#[test]
fn what_was_put_back_in_place_and_what_was_proven_outlive_the_goal() {
    let desk = desk();
    let ran = desk.towline(["run", "fix it", "--in-place", "--check", "test -e fix.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    desk.project.write("notes.txt", "first\n");
    assert_eq!(desk.towline(["restore", &goal]).code, Some(0));
    desk.project.write("notes.txt", "second\n");
    assert_eq!(desk.towline(["restore", &goal]).code, Some(0));
    assert!(!desk.project.path().join("notes.txt").exists());
    let removed = desk.towline(["rm", &goal]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let prefix = format!("refs/towline/removed/{goal}");
    let preserved = ["candidate", "replaced/1", "replaced/2"].map(|name| format!("{prefix}/{name}"));
    assert_eq!(traces(&desk, &goal), preserved);
    for reference in &preserved {
        assert!(removed.stdout.contains(reference), "no {reference} in {}", removed.stdout);
    }
    let show = |what: &str| desk.project.git(["show", &format!("{prefix}/{what}")]);
    let found = [show("candidate:fix.txt"), show("replaced/1:notes.txt"), show("replaced/2:notes.txt")];
    assert_eq!(found, ["fixed", "first", "second"]);
}

#[test]
fn what_a_folder_without_git_was_like_before_stays_in_its_history() {
    let desk = desk();
    let folder = desk.home.path().join("work");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("mine.txt"), "mine\n").expect("written");
    let towline = |args: &[&str]| {
        let mut command = desk.command(args);
        finish(command.current_dir(&folder).spawn().expect("towline starts"))
    };
    let ran = towline(&["run", "fix it", "--in-place", "--check", "test -e fix.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(towline(&["verify", &goal]).code, Some(0));
    let removed = towline(&["rm", &goal]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let history = desk.home.towline().join(format!("workspaces/{goal}.git"));
    assert!(removed.stdout.contains(&format!("{goal}.git")), "{}", removed.stdout);
    assert!(history.join("HEAD").exists() && folder.join("fix.txt").exists());
    assert_eq!(towline(&["show", &goal]).code, Some(5));
    let listed = towline(&["gc"]);
    let command = format!("rm -r '{}'", history.canonicalize().expect("a path").display());
    assert!(listed.stdout.contains(&command), "no {command:?} in {}", listed.stdout);
    assert!(history.join("HEAD").exists());
}

/// An agent can leave what git cannot hold: a path longer than the system takes, or submodules that git takes for an attack.
#[test]
fn force_removes_a_goal_whose_work_git_cannot_hold_and_leaves_its_files() {
    let deep =
        "name=$(printf 'd%.0s' $(seq 100)); for _ in $(seq 60); do mkdir $name && cd $name || exit; done";
    let modules =
        "printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = x\\n\\tupdate = !touch x\\n' > .gitmodules";
    for script in [deep, modules] {
        let desk = Desk::with_script(|dir| hostile::doing(dir, &format!("echo > work.txt; {script}")));
        let ran = desk.towline(["run", "leave it", "--check", "true", "--budget", "attempts=1", "--json"]);
        let id = ran.json()["id"].as_str().expect("an id").to_owned();
        let workspace = desk.home.towline().join("workspaces").join(&id);
        let refused = desk.towline(["rm", &id]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let removed = desk.towline(["rm", "--force", &id]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        assert!(removed.stdout.contains("its work is under no ref: "), "{removed:?}");
        assert!(removed.stdout.contains("left in place, because it may have unmerged work: "), "{removed:?}");
        assert_eq!(desk.towline(["ls", "--all", "--json"]).json(), serde_json::json!([]));
        assert!(workspace.join("work.txt").exists(), "{}", workspace.display());
    }
}
