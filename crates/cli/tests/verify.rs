//! `towline verify`: the checks run again on the same commit, and the recorded verdict is held against them.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"))
}

/// A goal with a check that also depends on the file `switch` in the home.
fn goal_with_switch(desk: &Desk) -> String {
    let switch = desk.home.path().join("switch");
    let check = format!("test -e fix.txt && ! test -e {}", switch.display());
    let ran = desk.towline(["run", "fix it", "--check", &check, "--budget", "attempts=1", "--json"]);
    ran.json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_verdict_that_holds_is_confirmed_and_one_that_does_not_is_reported() {
    let desk = desk();
    let goal = goal_with_switch(&desk);
    let before = desk.show(&goal);

    let held = desk.towline(["verify", &goal[28..]]);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.stdout.contains("the checks passed then and pass now"), "{}", held.stdout);

    std::fs::write(desk.home.path().join("switch"), "").expect("written");
    let broken = desk.towline(["verify", &goal]);
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert!(broken.stdout.contains("the checks passed then, and now these fail: "), "{}", broken.stdout);
    let broken = desk.towline(["verify", &goal, "--json"]);
    assert_eq!(broken.code, Some(3), "{broken:?}");
    let report = broken.json();
    let found = json!([report["met"], report["agrees"], report["recorded"]["met"], report["now"]["met"]]);
    assert_eq!(found, json!([false, false, true, false]), "{report}");
    assert_eq!(report["candidate"], before["candidate"]);

    let after = desk.show(&goal);
    assert_eq!((&after["phase"], &after["attempts"]), (&before["phase"], &before["attempts"]));
    let kinds: Vec<_> = desk.events(&goal).iter().map(|event| event["event"]["kind"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "verified").count(), 3, "{kinds:?}");
    assert!(desk.towline(["logs", &goal]).stdout.contains("checks run again on"));
    let checkouts = std::fs::read_dir(desk.home.towline().join("verify")).expect("the directory");
    assert_eq!(checkouts.count(), 0, "no checkout is left");
}

#[test]
fn work_that_failed_and_holds_now_needs_a_person() {
    let desk = desk();
    let switch = desk.home.path().join("switch");
    std::fs::write(&switch, "").expect("written");
    let goal = goal_with_switch(&desk);
    assert_eq!(desk.show(&goal)["phase"], "failed");
    assert_eq!(desk.towline(["verify", &goal]).code, Some(3));
    std::fs::remove_file(switch).expect("removed");
    let met = desk.towline(["verify", &goal]);
    assert_eq!(met.code, Some(4), "{met:?}");
    assert!(met.stdout.contains("and pass now") && met.stdout.contains("towline retry"), "{}", met.stdout);
}

#[test]
fn the_agents_own_commits_are_judged_as_they_were() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    desk.project.write("towline.toml", "[[checks]]\nname = \"work\"\ncommitted = true\n");
    desk.project.commit("a check");
    let ran = desk.towline(["run", "fix it", "--budget", "attempts=1", "--json"]);
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(ran.json()["phase"], "failed", "nothing is committed");
    let report = desk.towline(["verify", &goal, "--json"]).json();
    assert_eq!((&report["met"], &report["agrees"]), (&json!(false), &json!(true)), "{report}");
}

#[test]
fn ctrl_c_ends_the_checks_with_all_they_started() {
    let desk = desk();
    let flag = desk.home.path().join("slow");
    let check =
        format!("test -e {} || exit 0; : > {}.runs; sleep 600 & wait", flag.display(), flag.display());
    let ran = desk.towline(["run", "fix it", "--check", &check, "--json"]);
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    std::fs::write(&flag, "").expect("written");
    let towline = desk.start(["verify", &goal]);
    wait_for(LIMIT, "the check to run", || desk.home.path().join("slow.runs").exists());
    for command in ["rm", "merge"] {
        let refused = desk.towline([command, &goal]);
        assert_eq!(refused.code, Some(2), "the goal is held: {refused:?}");
    }
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    let ended = finish(towline);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
    assert!(!desk.events(&goal).iter().any(|event| event["event"]["kind"] == "verified"));
    std::fs::remove_file(&flag).expect("removed");
    assert_eq!(desk.towline(["verify", &goal]).code, Some(0), "the goal was given back");
}

#[test]
fn a_goal_with_nothing_to_verify_is_refused() {
    let desk = desk();
    let ran = desk.towline(["run", "trust me", "--json"]);
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let refused = desk.towline(["verify", &goal]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no checks"), "{}", refused.stderr);
    assert_eq!(desk.towline(["verify", "ffffffff"]).code, Some(5));
}
