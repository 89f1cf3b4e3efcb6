//! The checks on the base: what they report before any work, what they cost, and that nothing of them is left.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::model::{ModelServer, Reply, Rule};
use towline_testkit::scratch::{processes_with, wait_for, wait_until_process_tree_gone};

const PASSED: &str = "checks passed before any work";

fn id_of(report: &Value) -> &str {
    report["id"].as_str().expect("an id")
}

fn events_of(desk: &Desk, goal: &str, kind: &str) -> Vec<Value> {
    let events = desk.events(goal).into_iter().map(|entry| entry["event"].clone());
    events.filter(|event| event["kind"] == kind).collect()
}

fn assert_no_checkout(desk: &Desk) {
    let left: Vec<_> = fs::read_dir(desk.home.towline().join("verify")).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn claude_code_that_changes_nothing_on_a_green_base_is_done_and_reported_as_unchanged() {
    let model = ModelServer::start([Rule::always().reply(Reply::text("There is nothing to do."))]);
    let desk = Desk::with_claude(&model);
    let ran = desk.towline(["run", "make it green", "--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(PASSED), "{}", ran.stdout);
    assert!(ran.stdout.contains("done, and nothing was changed"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("towline merge"), "there is nothing to take: {}", ran.stdout);

    let ran = desk.towline(["run", "make it green", "--check", "true", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert_eq!(report["changed"], json!(false));
    let checks = json!([{"name": "true", "met": true, "exit_code": 0}]);
    assert_eq!(report["baseline"], json!({"met": true, "checks": checks}));
    let shown = desk.towline(["show", id_of(&report)]).stdout;
    assert!(shown.contains("nothing was changed") && shown.contains(PASSED), "{shown}");
}

#[test]
fn a_check_whose_program_is_not_on_path_ends_the_goal_before_claude_code_asks_the_model() {
    let model = ModelServer::start([Rule::always().reply(Reply::text("Done."))]);
    let desk = Desk::with_claude(&model);
    let ran = desk.towline(["run", "test it", "--check", "carog test", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(3), &json!("failed")), "{ran:?}");
    assert_eq!(report["reason"], "the check `carog test` runs `carog`, which is not on PATH");
    assert_eq!((&report["attempts"], &report["usage"]["cost_usd"]), (&json!([]), &json!(0.0)));
    assert_eq!(model.turns().len(), 0, "no request reached the model");
    let shown = desk.towline(["show", id_of(&report)]).stdout;
    assert!(shown.contains("install `carog`") && shown.contains("--check"), "{shown}");

    // Another check lets the same goal continue.
    let ran = desk.towline(["retry", id_of(&report), "--check", "true", "--json"]);
    let retried = ran.json();
    assert_eq!((ran.code, &retried["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert!(retried["checks_replaced_at"].is_string(), "{retried}");
    assert_ne!(retried["checks_hash"], report["checks_hash"]);
    let replaced = events_of(&desk, id_of(&report), "checks_replaced");
    assert_eq!(replaced[0]["checks"][0]["kind"]["run"], "true");
    assert!(desk.towline(["show", id_of(&report)]).stdout.contains("checks replaced at"));
}

#[test]
fn a_path_in_the_repository_may_be_what_the_agent_is_asked_to_write() {
    let work = "mkdir -p scripts; printf '#!/bin/sh\\nexit 0\\n' > scripts/test.sh; chmod +x scripts/test.sh";
    let desk = Desk::with_script(|dir| hostile::doing(dir, work));
    let ran = desk.towline(["run", "write the test", "--check", "./scripts/test.sh", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert_eq!((&report["changed"], &report["baseline"]["met"]), (&json!(true), &json!(false)));
    assert_eq!(report["baseline"]["checks"][0]["exit_code"], 127);
}

#[test]
fn the_next_goal_on_the_same_base_reuses_what_is_known_about_it() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo done > done.txt"));
    let runs = desk.home.path().join("runs");
    let check = format!("echo x >> {}; test -f done.txt", runs.display());
    let count = || fs::read_to_string(&runs).map_or(0, |text| text.lines().count());
    let run = |check: &str| {
        let ran = desk.towline(["run", "do it", "--check", check, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let report = ran.json();
        assert_eq!(report["baseline"]["met"], false, "{report}");
        events_of(&desk, id_of(&report), "baseline_reached")[0]["reused"].clone()
    };
    assert_eq!((run(&check), count()), (Value::Null, 2), "on the base and on the work");
    assert!(run(&check).is_string());
    assert_eq!(count(), 3, "on the work alone");
    desk.project.write("more.txt", "");
    desk.project.commit("another base");
    assert_eq!((run(&check), count()), (Value::Null, 5));
    // An agent may have disturbed what was found beside it: where the base must be red, the checks run.
    let red = desk.towline(["run", "do it", "--check", &check, "--red-first", "--json"]);
    assert_eq!((red.code, count()), (Some(0), 7), "{red:?}");
}

#[test]
fn checks_on_the_base_that_take_long_run_beside_the_agent_and_are_gone_before_the_verdict() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo done > done.txt"));
    let begun = Instant::now();
    let check = "test -f done.txt || { trap '' INT TERM; sleep 600; }";
    let ran = desk.towline(["run", "do it", "--check", check, "--budget", "wall=9s", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert!(begun.elapsed() >= Duration::from_secs(10), "the agent waited for them");
    assert_eq!((&report["baseline"], &report["changed"]), (&Value::Null, &json!(true)));
    let why = &events_of(&desk, id_of(&report), "baseline_unknown")[0]["reason"];
    assert_eq!(why, "the work was ready to be checked first");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
    assert_no_checkout(&desk);
}

/// A goal whose check sleeps on the base, where it must fail before the agent starts.
fn sleeping_on_the_base(desk: &Desk) -> (std::process::Child, String) {
    let towline = desk.start(["run", "wait for it", "--check", "sleep 321", "--red-first", "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the check to sleep", || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("sleep 321"))
    });
    (towline, desk.only_goal())
}

#[test]
fn a_goal_that_is_cancelled_or_paused_leaves_nothing_running_on_its_base() {
    for (command, phase) in [("cancel", "cancelled"), ("pause", "paused")] {
        let desk = Desk::with_script(hostile::well_behaved);
        let (towline, goal) = sleeping_on_the_base(&desk);
        assert_eq!(desk.towline([command, &goal]).code, Some(0));
        finish(towline);
        assert_eq!(desk.show(&goal)["phase"], phase);
        wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
        assert_no_checkout(&desk);
        assert_eq!(hostile::received(&desk.home.path().join("well-behaved")), Vec::<String>::new());
    }
}

#[test]
fn what_a_killed_engine_left_on_the_base_is_ended_by_whoever_drives_the_goal_next() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (mut towline, goal) = sleeping_on_the_base(&desk);
    let pid = Pid::from_raw(i32::try_from(towline.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
    towline.wait().expect("it ended");
    let is_left =
        || processes_with(&desk.home.marker()).iter().any(|process| process.command.starts_with("sleep"));
    assert!(is_left(), "its supervisor outlives the engine");
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    wait_for(LIMIT, "the check to end", || !is_left());
    assert_no_checkout(&desk);
    assert!(Path::new(&desk.home.towline()).is_dir());
}

#[test]
fn other_checks_judge_the_work_of_an_ended_goal_before_an_agent_goes_on() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo done > done.txt"));
    let ran = desk.towline(["run", "do it", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(6), &json!("unproven")), "{ran:?}");
    let prompts = || hostile::received(&desk.home.path().join("doing")).len();
    let asked = prompts();
    let ran = desk.towline(["run", "--goal", id_of(&report), "--check", "test -f done.txt", "--json"]);
    let checked = ran.json();
    assert_eq!((ran.code, &checked["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert_eq!(
        (prompts(), checked["attempts"].as_array().map(Vec::len)),
        (asked, Some(1)),
        "no agent was asked"
    );
    assert_eq!(checked["changed"], json!(true));
}
