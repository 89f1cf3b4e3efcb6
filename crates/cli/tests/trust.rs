//! A repository's file that gives agents more counts when a person has accepted it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::server::{add, down, up};
use support::terminal::Terminal;
use support::{Desk, finish};
use towline_testkit::hostile;

const WIDENING: &str = "[agents.claude]\npermission = \"bypass\"\n";
const REFUSAL: &str =
    "this repository's towline.toml sets `agents.claude.permission`, which needs your trust";
const QUESTION: &str = "Accept these settings?";
const RUN: [&str; 4] = ["run", "work", "--check", "true"];

/// A desk whose repository has settings that nobody has accepted, and an agent that ends a turn with this.
fn desk(script: &str) -> Desk {
    let desk = Desk::with_script(|dir| hostile::doing(dir, script));
    desk.project.write("towline.toml", WIDENING);
    desk.project.commit("settings");
    desk
}

fn goals(desk: &Desk) -> usize {
    desk.towline(["ls", "--json"]).json().as_array().expect("goals").len()
}

/// Types an answer when the question is there; gives the exit code.
fn answer(desk: &Desk, typed: &str) -> Option<i32> {
    let mut terminal = Terminal::new();
    let run = terminal.start(&desk.command(RUN));
    let screen = terminal.wait_to_see(QUESTION).join("\n");
    assert!(screen.contains("agents.claude.permission = \"bypass\""), "{screen}");
    assert!(screen.contains("towline.toml widens what agents may do"), "{screen}");
    terminal.type_in(typed);
    finish(run).code
}

#[test]
fn a_person_is_asked_once_and_a_no_creates_nothing() {
    let desk = desk("echo work > work.txt");
    assert_eq!(answer(&desk, "no"), Some(2));
    assert_eq!(answer(&desk, ""), Some(2), "no answer is no");
    assert_eq!(goals(&desk), 0);
    assert_eq!(answer(&desk, "yes"), Some(0));
    assert_eq!(goals(&desk), 1);

    let mut terminal = Terminal::new();
    let again = terminal.start(&desk.command(RUN));
    assert_eq!(finish(again).code, Some(0));
    terminal.wait_for_the_end();
    assert!(!terminal.shown().contains(QUESTION), "{}", terminal.shown());
    assert_eq!(goals(&desk), 2);
}

#[test]
fn without_a_terminal_it_is_refused_until_trust_accepts_it() {
    let desk = desk("echo work > work.txt");
    let file = desk.project.path().join("towline.toml").display().to_string();
    let add = ["add", "work", "--check", "true"];
    for command in [&RUN[..], &add, &["agents"], &["agents", "check", "claude"]] {
        let refused = desk.towline(command);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let expected = format!("error: {REFUSAL}\n  hint: read {file}, then run `towline trust` there\n");
        assert_eq!(refused.stderr, expected);
    }
    let refused = desk.towline([&RUN[..], &["--json"]].concat());
    assert_eq!((refused.code, &refused.json()["error"]["message"]), (Some(2), &json!(REFUSAL)));
    let nobody = desk.towline(["trust"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(nobody.stderr.contains("`towline trust --yes`"), "{nobody:?}");
    assert_eq!(goals(&desk), 0);

    let doctor = desk.towline(["doctor", "--json"]).json();
    assert_eq!(doctor["configuration"]["untrusted"][0]["key"], "agents.claude.permission");
    let findings = doctor["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|finding| finding["about"] == "trust").expect("a finding");
    assert_eq!((&finding["level"], &finding["what"]), (&json!("problem"), &json!(REFUSAL)));

    let accepted = desk.towline(["trust", "--yes"]);
    let expected = format!("trusted: {file}\n  agents.claude.permission = \"bypass\"\n");
    assert_eq!((accepted.code, accepted.stdout), (Some(0), expected));
    assert_eq!(desk.towline(RUN).code, Some(0));
}

#[test]
fn what_was_accepted_is_listed_and_revoked() {
    let desk = desk("true");
    let nothing =
        json!({"file": null, "state": "not_needed", "settings": [], "gone": [], "accepted_at": null});
    let elsewhere =
        desk.command(["trust", "--json"]).current_dir(desk.home.path()).output().expect("it runs");
    assert_eq!(serde_json::from_slice::<Value>(&elsewhere.stdout).ok(), Some(nothing));
    let trusted = desk.towline(["trust", "--yes", "--json"]).json();
    let setting = json!({"key": "agents.claude.permission", "value": "bypass", "state": "accepted"});
    assert_eq!((&trusted["state"], &trusted["settings"]), (&json!("trusted"), &json!([setting])));
    assert_eq!(desk.towline(["trust", "--json"]).json(), trusted, "it is not asked for again");

    let list = || desk.towline(["trust", "--list", "--json"]).json();
    let directory = desk.project.path().display().to_string();
    assert_eq!((&list()[0]["directory"], &list()[0]["state"]), (&json!(directory), &json!("current")));
    assert!(desk.towline(["trust", "--list"]).stdout.contains("the same"));
    desk.project.write("towline.toml", format!("{WIDENING}args = [\"-v\"]\n"));
    assert_eq!(list()[0]["state"], "changed");
    let changed = desk.towline(["trust"]);
    assert_eq!(changed.code, Some(2), "{changed:?}");

    let revoked = desk.towline(["trust", "--revoke", "--json"]).json();
    assert_eq!(revoked, json!({"directory": directory}));
    assert_eq!(list(), json!([]));
    assert_eq!(desk.towline(["trust", "--revoke"]).stdout, "nothing was accepted here\n");
}

#[test]
fn a_queued_goal_waits_visibly_while_the_file_needs_trust_and_starts_when_it_is_accepted() {
    let desk = desk("echo work > work.txt");
    assert_eq!(desk.towline(["trust", "--yes"]).code, Some(0));
    let goal = add(&desk, "work", &["--check", "test -f work.txt"]);
    desk.project.write("towline.toml", "[agents.claude]\npermission = \"edits\"\n");
    let server = up(&desk);
    let queue = desk.towline(["queue", "--json"]).json();
    let hold = queue["waiting"][0]["hold"]["text"].as_str().expect("a reason");
    assert!(hold.contains(REFUSAL) && hold.contains("`towline trust`"), "{hold}");
    assert_eq!(desk.show(&goal)["phase"], "queued");
    assert_eq!(desk.towline(["trust", "--yes"]).code, Some(0));
    desk.wait_for_phase(&goal, "done");
    down(&desk, server);
}

#[test]
fn a_running_goal_whose_file_comes_to_need_trust_stops_and_continues_when_it_is_accepted() {
    let desk = desk("echo work > work.txt; . \"$HOME/widen.sh\"");
    let file = desk.project.path().join("towline.toml");
    let widen = format!("printf 'args = []\\n' >> '{}'\n", file.display());
    std::fs::write(desk.home.path().join("widen.sh"), widen).expect("a script");
    assert_eq!(desk.towline(["trust", "--yes"]).code, Some(0));
    let server = up(&desk);
    let goal = add(&desk, "work", &["--check", "test -f work.txt"]);
    let held = desk.wait_for_phase(&goal, "escalated");
    let reason = held["reason"].as_str().expect("a reason");
    assert!(reason.contains("`agents.claude.args`") && reason.contains("need your trust"), "{reason}");
    let accepted = desk.towline(["trust", "--yes"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert!(accepted.stdout.ends_with(" continues\n"), "{accepted:?}");
    desk.wait_for_phase(&goal, "done");
    down(&desk, server);
}
