//! `towline merge`: the verified commit gets into the user's branch, or nothing changes and the way out is printed.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::{Desk, Ran};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_for;

/// The agent writes `fix.txt`; a person may break the check later by a file `broken`.
const CHECK: &str = "test -e fix.txt && ! test -e broken";

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"))
}

/// Runs a goal to its end and gives its id.
fn run_a_goal(desk: &Desk, more: &[&str]) -> String {
    let mut args = vec!["run", "fix it", "--json"];
    args.extend(more);
    let ran = desk.towline(args);
    let id = ran.json()["id"].as_str().map(str::to_owned);
    id.unwrap_or_else(|| panic!("{ran:?}"))
}

fn proven(desk: &Desk) -> String {
    run_a_goal(desk, &["--check", CHECK])
}

fn merge(desk: &Desk, goal: &str, more: &[&str]) -> Ran {
    let mut args = vec!["merge", goal];
    args.extend(more);
    desk.towline(args)
}

fn head(desk: &Desk) -> String {
    desk.project.git(["rev-parse", "HEAD"])
}

/// The kinds of a goal's events from its end on.
fn kinds_after_the_end(desk: &Desk, goal: &str) -> Vec<String> {
    let events = desk.events(goal);
    let kinds = events.iter().map(|event| event["event"]["kind"].as_str().expect("a kind").to_owned());
    let kinds: Vec<String> = kinds.collect();
    let end = kinds.iter().rposition(|kind| kind == "phase_changed").expect("an end");
    kinds[end + 1..].to_vec()
}

#[test]
fn a_verified_commit_is_merged_from_anywhere_shown_everywhere_and_merged_once() {
    let desk = desk();
    let goal = proven(&desk);
    let candidate = desk.show(&goal)["candidate"].as_str().expect("a candidate").to_owned();
    let before = head(&desk);

    let dry = merge(&desk, &goal, &["--dry-run"]);
    assert_eq!((dry.code, head(&desk)), (Some(0), before.clone()), "{dry:?}");
    assert!(dry.stdout.contains("would merge") && dry.stdout.contains("fast-forward"), "{}", dry.stdout);

    let mut elsewhere = desk.command(["merge", &goal[28..], "--json"]);
    elsewhere.current_dir(desk.home.path());
    let merged = support::finish(elsewhere.spawn().expect("towline starts"));
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let expected = json!({
        "id": goal, "into": "main", "way": "fast_forward", "before": before, "commit": candidate,
        "candidate": candidate, "files": 1, "proven": true, "verdict": null, "dry_run": false,
    });
    assert_eq!(merged.json(), expected);
    assert_eq!((head(&desk), desk.project.read("fix.txt")), (candidate.clone(), "fixed\n".to_owned()));

    let report = desk.show(&goal);
    let merged = &report["merged"];
    assert_eq!((&merged["into"], &merged["commit"]), (&json!("main"), &json!(candidate)), "{report}");
    assert_eq!(report["phase"], "done");
    assert_eq!(kinds_after_the_end(&desk, &goal), ["published", "claimed", "merged"]);
    assert_eq!(desk.towline(["ls", "--json"]).json()[0]["merged"]["into"], "main");
    assert!(desk.towline(["ls"]).stdout.contains("done, merged"));
    assert!(desk.towline(["show", &goal]).stdout.contains("merged into main"));
    assert!(desk.towline(["logs", &goal]).stdout.contains("merged into main at"));

    let again = merge(&desk, &goal, &[]);
    assert_eq!((again.code, head(&desk)), (Some(0), candidate), "{again:?}");
    assert!(again.stdout.contains("already"), "{}", again.stdout);
    assert_eq!(
        kinds_after_the_end(&desk, &goal),
        ["published", "claimed", "merged"],
        "nothing new is recorded"
    );
}

#[test]
fn a_merge_with_newer_work_is_checked_before_the_branch_moves() {
    let desk = desk();
    let goal = proven(&desk);
    desk.project.write("other.txt", "other\n");
    let moved = desk.project.commit("other work");

    let merged = merge(&desk, &goal, &[]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert!(merged.stdout.contains("has moved on since the goal began"), "{}", merged.stdout);
    assert!(merged.stdout.contains("✓ "), "{}", merged.stdout);
    let parents = desk.project.git(["log", "-1", "--format=%P"]);
    assert!(parents.starts_with(&moved), "{parents}");
    let message = desk.project.git(["log", "-1", "--format=%B"]);
    for wanted in ["fix it", &goal, "test -e fix.txt"] {
        assert!(message.contains(wanted), "no {wanted:?} in {message}");
    }
    assert_eq!(desk.project.git(["log", "-1", "--format=%an"]), "Test", "the user's commit");
    assert_eq!(desk.project.git(["status", "--porcelain"]), "");
    assert_eq!(kinds_after_the_end(&desk, &goal), ["published", "claimed", "verified", "merged"]);
}

#[test]
fn a_merge_on_which_the_checks_fail_is_refused_with_the_evidence_and_may_be_insisted_on() {
    let desk = desk();
    let goal = proven(&desk);
    desk.project.write("broken", "");
    let moved = desk.project.commit("breaks the check");

    let refused = merge(&desk, &goal, &[]);
    assert_eq!((refused.code, head(&desk)), (Some(3), moved.clone()), "{refused:?}");
    assert!(refused.stdout.contains("✗ "), "{}", refused.stdout);
    assert!(refused.stderr.contains("not merged"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--no-verify"), "{}", refused.stderr);
    assert_eq!(desk.show(&goal)["merged"], Value::Null);
    let checkouts = std::fs::read_dir(desk.home.towline().join("verify")).expect("the directory");
    assert_eq!(checkouts.count(), 0, "no checkout is left");

    let insisted = merge(&desk, &goal, &["--no-verify", "--json"]);
    assert_eq!(insisted.code, Some(0), "{insisted:?}");
    let report = insisted.json();
    assert_eq!((&report["way"], &report["proven"]), (&json!("merge_commit"), &json!(false)));
}

#[test]
fn a_conflict_leaves_everything_as_it_was_and_shows_how_to_continue() {
    let desk = desk();
    let goal = proven(&desk);
    desk.project.write("fix.txt", "another fix\n");
    let moved = desk.project.commit("the same file");
    let refused = merge(&desk, &goal, &[]);
    assert_eq!((refused.code, head(&desk)), (Some(4), moved), "{refused:?}");
    for wanted in ["fix.txt", "nothing was changed", "git -C ", " merge "] {
        assert!(refused.stderr.contains(wanted), "no {wanted:?} in {}", refused.stderr);
    }
    assert_eq!(desk.project.git(["status", "--porcelain"]), "");
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_written_over() {
    let desk = desk();
    let goal = proven(&desk);
    let before = head(&desk);
    desk.project.write("fix.txt", "mine\n");
    let refused = merge(&desk, &goal, &[]);
    assert_eq!((refused.code, head(&desk)), (Some(4), before.clone()), "{refused:?}");
    assert!(refused.stderr.contains("fix.txt"), "{}", refused.stderr);
    assert_eq!(desk.project.read("fix.txt"), "mine\n");
    std::fs::remove_file(desk.project.path().join("fix.txt")).expect("removed");

    desk.project.git(["switch", "--quiet", "--detach"]);
    let detached = merge(&desk, &goal, &[]);
    assert_eq!(detached.code, Some(4), "{detached:?}");
    assert!(detached.stderr.contains("git switch"), "{}", detached.stderr);

    let named = merge(&desk, &goal, &["--into", "main"]);
    assert_eq!((named.code, head(&desk)), (Some(0), before), "{named:?}");
    let candidate = desk.show(&goal)["candidate"].clone();
    assert_eq!(json!(desk.project.git(["rev-parse", "main"])), candidate);
    let own = desk.show(&goal)["branch"].as_str().expect("a branch").to_owned();
    assert_eq!(merge(&desk, &goal, &["--into", &own]).code, Some(2));
    assert_eq!(merge(&desk, &goal, &["--into", "nope"]).code, Some(2));
}

#[test]
fn unproven_work_is_merged_only_by_that_name_and_other_work_not_at_all() {
    let desk = desk();
    let unproven = run_a_goal(&desk, &[]);
    let before = head(&desk);
    let refused = merge(&desk, &unproven, &[]);
    assert_eq!((refused.code, head(&desk)), (Some(2), before.clone()), "{refused:?}");
    assert!(refused.stderr.contains("--unproven"), "{}", refused.stderr);

    let failed = run_a_goal(&desk, &["--check", "false", "--budget", "attempts=1"]);
    let refused = merge(&desk, &failed, &["--unproven"]);
    assert_eq!((refused.code, head(&desk)), (Some(2), before), "{refused:?}");
    assert!(refused.stderr.contains("towline retry"), "{}", refused.stderr);

    let merged = merge(&desk, &unproven, &["--unproven"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(desk.project.read("fix.txt"), "fixed\n");
}

#[test]
fn changes_that_the_goal_started_from_are_committed_first_and_then_merged_without_conflict() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo '2 fixed' > lines.txt"));
    desk.project.write("lines.txt", "1\n");
    desk.project.commit("a line");
    desk.project.write("lines.txt", "2\n");
    let goal = run_a_goal(&desk, &["--include-dirty", "--check", "grep fixed lines.txt"]);
    let refused = merge(&desk, &goal, &[]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("the goal started from"), "{}", refused.stderr);
    desk.project.commit("my changes");
    let merged = merge(&desk, &goal, &[]);
    assert_eq!(
        (merged.code, desk.project.read("lines.txt")),
        (Some(0), "2 fixed\n".to_owned()),
        "{merged:?}"
    );
    assert!(!merged.stdout.contains("has moved on"), "exactly what was proven: {}", merged.stdout);
}

#[test]
fn nothing_is_merged_under_the_hands_of_an_agent_at_work_in_the_checkout() {
    let desk = Desk::with_script(|dir| {
        hostile::doing(
            dir,
            "if [ -e wait ]; then touch started; until [ -e go ]; do sleep 0.05; done; fi; echo fixed > fix.txt",
        )
    });
    let goal = proven(&desk);
    let before = head(&desk);
    desk.project.write("wait", "");
    let working = desk.start(["run", "fix it here", "--in-place", "--check", CHECK, "--json"]);
    let started = desk.project.path().join("started");
    wait_for(support::LIMIT, "the agent to be at work", || started.exists());
    let refused = merge(&desk, &goal, &[]);
    desk.project.write("go", "");
    let worked = support::finish(working);
    assert_eq!((refused.code, head(&desk)), (Some(2), before), "{refused:?}");
    assert!(refused.stderr.contains("is at work in"), "{}", refused.stderr);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    std::fs::remove_file(desk.project.path().join("fix.txt")).expect("removed");
    assert_eq!(merge(&desk, &goal, &[]).code, Some(0), "nobody is there any more");
}

#[test]
fn a_merge_is_recorded_whatever_a_hook_does_after_it() {
    let desk = desk();
    let goal = proven(&desk);
    let hook = desk.project.path().join(".git/hooks/post-merge");
    desk.project
        .write(".git/hooks/post-merge", "#!/bin/sh\ngit commit --quiet --allow-empty -m hooked\nexit 1\n");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let merged = merge(&desk, &goal, &[]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(desk.project.git(["log", "-1", "--format=%s"]), "hooked");
    assert_eq!(kinds_after_the_end(&desk, &goal), ["published", "claimed", "merged"]);
    assert_eq!(desk.show(&goal)["merged"]["commit"], desk.show(&goal)["candidate"]);
}

#[test]
fn a_dry_run_asks_for_no_signature_and_makes_no_commit() {
    let desk = desk();
    let goal = proven(&desk);
    desk.project.write("other.txt", "other\n");
    desk.project.commit("other work");
    for (key, value) in [("commit.gpgSign", "true"), ("gpg.program", "/bin/false")] {
        desk.project.git(["config", key, value]);
    }
    let dry = merge(&desk, &goal, &["--dry-run", "--json"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let report = dry.json();
    assert_eq!((&report["way"], &report["commit"]), (&json!("merge_commit"), &Value::Null));
    let refused = merge(&desk, &goal, &[]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("git made no commit"), "{}", refused.stderr);
    assert!(
        !refused.stdout.contains("The checks run"),
        "no key, and the checks ran for nothing: {}",
        refused.stdout
    );
}

#[test]
fn a_repository_that_is_gone_or_bare_is_named() {
    let desk = desk();
    let goal = proven(&desk);
    let moved = desk.project.path().with_file_name("moved");
    std::fs::rename(desk.project.path(), &moved).expect("moved");
    let mut command = desk.command(["merge", &goal]);
    command.current_dir(desk.home.path());
    let refused = support::finish(command.spawn().expect("towline starts"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("was moved or deleted"), "{}", refused.stderr);
    std::fs::rename(&moved, desk.project.path()).expect("moved back");

    desk.project.git(["config", "core.bare", "true"]);
    let refused = merge(&desk, &goal, &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("has no working tree"), "{}", refused.stderr);
}

#[test]
fn the_proven_files_are_merged_as_another_commit_when_the_user_wants_one() {
    let desk = desk();
    let message = |revision: &str| desk.project.git(["log", "-1", "--format=%B", revision]);
    for (args, way, subject) in [
        (&["--message", "Repair it\n\nCloses #7"][..], "reworded", "Repair it"),
        (&["--no-ff"], "merge_commit", "Merge: fix it"),
        (&["--squash"], "squash", "fix it"),
    ] {
        let goal = run_a_goal(&desk, &["--check", &format!("{CHECK} && echo {way}")]);
        let candidate = desk.show(&goal)["candidate"].as_str().expect("a candidate").to_owned();
        let of_candidate = message(&candidate);
        assert!(of_candidate.starts_with("fix it\n"), "{of_candidate}");
        assert!(of_candidate.contains(&format!("Towline-Goal: {goal}\n")), "{of_candidate}");
        let merged = merge(&desk, &goal, &[args, &["--json"]].concat()).json();
        assert_eq!((&merged["way"], &merged["proven"]), (&json!(way), &json!(true)), "{merged}");
        let made = message("HEAD");
        assert!(made.starts_with(&format!("{subject}\n")), "{made}");
        assert!(made.contains(&format!("Towline-Candidate: {candidate}")), "{made}");
        assert_eq!(desk.project.git(["diff", "--name-only", &candidate, "HEAD"]), "");
        assert_eq!(merge(&desk, &goal, &["--json"]).json()["way"], "already_there");
        desk.project.git(["reset", "--quiet", "--hard", merged["before"].as_str().expect("a commit")]);
    }
}

#[test]
fn a_verified_commit_is_pushed_as_the_branch_of_its_goal() {
    let desk = desk();
    let goal = proven(&desk);
    let none = desk.towline(["push", &goal]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("git remote add origin"), "{}", none.stderr);
    let remote = desk.home.path().join("remote.git").display().to_string();
    desk.project.git(["init", "--quiet", "--bare", &remote]);
    desk.project.git(["remote", "add", "origin", &remote]);
    let report = desk.show(&goal);
    let branch = report["branch"].as_str().expect("a branch");
    let pushed = desk.towline(["push", &goal]);
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    assert!(pushed.stdout.contains(branch) && pushed.stdout.contains("✓ pushed"), "{}", pushed.stdout);
    let there = desk.project.git(["ls-remote", "origin", &format!("refs/heads/{branch}")]);
    assert!(there.starts_with(report["candidate"].as_str().expect("a candidate")), "{there}");
    let refused = desk.towline(["push", &goal, "nowhere"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
}

#[test]
fn a_merge_over_http_takes_the_work_of_its_plan_and_nothing_newer() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "date +%s%N > stamp.txt")).without_baseline();
    let server = support::server::up(&desk);
    let goal = support::server::add(&desk, "stamp it", &["--check", "test -e stamp.txt"]);
    desk.wait_for_phase(&goal, "done");
    let path = format!("/goals/{goal}/merge");
    let (status, plan) = support::server::post(&desk, &path, &json!({"dry_run": true}));
    assert_eq!(status, 200, "{plan}");
    let planned = plan["candidate"].as_str().expect("a commit");
    let head = desk.project.git(["rev-parse", "HEAD"]);
    let other = "0".repeat(planned.len());
    for dry_run in [true, false] {
        let body = json!({"candidate": other, "dry_run": dry_run});
        let (status, problem) = support::server::post(&desk, &path, &body);
        assert_eq!((status, &problem["status"]), (409, &json!(409)), "{problem}");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(planned) && detail.contains(&other), "{detail}");
    }
    assert_eq!(desk.project.git(["rev-parse", "HEAD"]), head);
    let (status, merged) = support::server::post(&desk, &path, &json!({"candidate": planned}));
    assert_eq!((status, &merged["candidate"]), (200, &plan["candidate"]), "{merged}");
    assert_ne!(desk.project.git(["rev-parse", "HEAD"]), head);
    support::server::down(&desk, server);
}
