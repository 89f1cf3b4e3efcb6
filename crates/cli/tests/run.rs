//! The program from the outside, with scripts in the place of an agent.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io::BufRead as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{processes_with, wait_for, wait_for_some, wait_until_process_tree_gone};

/// How a goal ended: its phase, its reason, and the ends of its attempts.
fn ending(report: &Value) -> (String, Option<String>, Vec<String>) {
    let ends = report["attempts"].as_array().expect("attempts").iter();
    (
        report["phase"].as_str().expect("a phase").to_owned(),
        report["reason"].as_str().map(str::to_owned),
        ends.map(|attempt| attempt["end"].as_str().unwrap_or("none").to_owned()).collect(),
    )
}

#[test]
fn the_demo_needs_no_agent_and_proves_the_fix() {
    let mut desk = Desk::new().in_sandbox();
    // Nothing but what a minimal machine has: no agent could be found by accident.
    desk.set("PATH", "/usr/bin:/bin");
    let ran = desk.towline(["demo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = desk.show(&desk.only_goal());
    let took =
        |field: &str| report[field].as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time");
    let took = took("updated_at").duration_since(took("created_at"));
    assert!(took < jiff::SignedDuration::from_secs(10), "{took}");
    // It is not on the PATH here, so the hint has the command that installs it.
    let install = "cargo install --path crates/cli";
    for wanted in
        ["attempt 1", "✗ tests", "attempt 2", "✓ tests", "✓ done", "The proof", install, "towline run"]
    {
        assert!(ran.stdout.contains(wanted), "no {wanted:?} in {}", ran.stdout);
    }
    assert_eq!(ending(&report), ("done".into(), None, vec!["completed".into(), "completed".into()]));
    let cost = desk.towline(["cost", "--json"]).json();
    assert_eq!(cost["total"]["cost_usd"], 0.0, "nobody paid for it: {cost}");
    let signed = ran.stdout.lines().find(|line| line.contains(" proof ")).expect("how to show it to others");
    let signed = desk.towline(["proof", signed.rsplit(' ').next().expect("an id")]);
    assert_eq!(signed.code, Some(0), "{signed:?}");
    // The way that it shows to see it for oneself.
    let merge = ran.stdout.lines().find(|line| line.contains(" merge ")).expect("how to take the change");
    let merged = desk.towline(["merge", merge.rsplit(' ').next().expect("an id")]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn the_log_of_the_engine_has_each_decision_with_its_goal_and_lease() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "touch done")).in_sandbox();
    let log = desk.home.towline().parent().expect("a directory").join("engine.log");
    desk.set("TOWLINE_LOG", &log.display().to_string());
    let ran = desk.towline(["run", "make it", "--check", "test -e done"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = std::fs::read_to_string(log).expect("the log");
    for wanted in ["moved: dispatched: queued to preparing", "effect: launch/1", "executor ends: check"] {
        assert!(log.contains(wanted), "no {wanted:?} in {log}");
    }
    assert!(log.lines().all(|line| line.contains(" goal=")), "{log}");
}

#[test]
fn a_check_that_never_turns_green_spends_the_attempts_and_keeps_the_work() {
    // Each attempt changes something, so that it is the budget that ends it and not the lack of progress.
    let desk = Desk::with_script(|dir| hostile::doing(dir, "date +%s%N >> work.txt")).in_sandbox();
    let args = ["run", "never enough", "--check", "false", "--budget", "attempts=2"];
    let ran = desk.towline(args);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains("failed: budget of 2 attempts spent"), "{}", ran.stdout);
    let goal = desk.only_goal();
    let report = desk.show(&goal);
    let expected =
        ("failed".into(), Some("budget: attempts".into()), vec!["completed".into(), "completed".into()]);
    assert_eq!(ending(&report), expected);
    let workspace = Path::new(report["workspace"].as_str().expect("a workspace"));
    assert_eq!(std::fs::read_to_string(workspace.join("work.txt")).expect("the work").lines().count(), 2);
    let way_on = format!("towline retry {} --budget attempts=+5", &goal[28..]);
    assert!(ran.stdout.contains(&way_on), "no {way_on:?} in {}", ran.stdout);

    // Without more budget it is refused; with more it continues in the same session.
    let refused = desk.towline(["retry", &goal]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--budget attempts=+5"), "{}", refused.stderr);
    let again = desk.towline(["retry", &goal, "--budget", "attempts=+1", "--json"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(again.json()["attempts"].as_array().map(Vec::len), Some(3));
}

#[test]
fn the_same_failure_on_the_same_files_escalates_before_the_budget_is_spent() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    let ran = desk.towline(["run", "turn in circles", "--check", "false", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["phase"], "escalated");
    assert_eq!(report["attempts"].as_array().map(Vec::len), Some(3));
    assert!(report["reason"].as_str().expect("a reason").starts_with("no progress"), "{report}");
    let goal = report["id"].as_str().expect("an id");
    let shown = desk.towline(["show", goal]).stdout;
    let steps = ["tell", "retry"].map(|step| format!("towline {step} {}", &goal[28..]));
    assert!(steps.iter().all(|step| shown.contains(step)), "{steps:?} are not in {shown}");
    assert_eq!(desk.towline(["tell", goal, "look at the check"]).code, Some(0));
    let retried = desk.towline(["retry", goal, "--json"]).json();
    assert_eq!(retried["attempts"].as_array().map(Vec::len), Some(6), "{retried}");
}

#[test]
fn a_check_whose_command_does_not_exist_is_reported_as_such() {
    let desk = Desk::with_script(hostile::well_behaved).without_baseline().in_sandbox();
    let check = "no-such-linter --strict";
    let ran = desk.towline(["run", "lint it", "--check", check, "--budget", "attempts=1"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stdout.contains("✗ no-such-linter exit code 127 (a command was not found)"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_diff_of_a_goal_that_changed_nothing_is_a_note() {
    let desk = Desk::with_script(hostile::exits_at_once).in_sandbox();
    desk.towline(["run", "do nothing", "--check", "false", "--budget", "errors=1"]);
    let goal = desk.only_goal();
    let diff = desk.towline(["diff", &goal]);
    let note = format!("goal {} has changed nothing\n", &goal[28..]);
    assert_eq!((diff.code, diff.stdout, diff.stderr), (Some(0), String::new(), note));
}

#[test]
fn a_configuration_that_is_in_no_commit_is_spoken_of_only_while_it_is_there() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    let run = || desk.towline(["run", "leave a file", "--check", "true"]).stderr;
    desk.project.write("towline.toml", "[budget]\nattempts = 3\n");
    let note = "note: towline.toml is not committed";
    assert!(run().contains(note));
    desk.project.commit("how it is checked");
    std::fs::remove_file(desk.project.path().join("towline.toml")).expect("removed");
    let printed = run();
    let named = "note: uncommitted changes are not part of the work: towline.toml";
    assert!(!printed.contains(note) && printed.contains(named), "{printed}");
}

#[test]
fn empty_folders_of_submodules_are_spoken_of_unless_the_setup_fills_them() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    desk.project.write(".gitmodules", "");
    desk.project.commit("a submodule");
    let run = || desk.towline(["run", "leave a file", "--check", "true"]).stderr;
    let note = "note: submodules are not checked out";
    assert!(run().contains(note));
    let setup = "[workspace]\nsetup = [\"git submodule update --init --recursive\"]\n";
    desk.project.write("towline.toml", setup);
    let printed = run();
    assert!(!printed.contains(note), "{printed}");
}

#[test]
fn a_part_of_an_id_that_several_goals_share_is_refused_with_ids_that_none_shares() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    for title in ["one", "two"] {
        desk.towline(["run", title, "--check", "true"]);
    }
    let goals = desk.towline(["ls", "--json"]).json();
    let ids: Vec<&str> = (0..2).map(|goal| goals[goal]["id"].as_str().expect("an id")).collect();
    let refused = desk.towline(["show", &ids[0][..1]]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for id in ids {
        assert!(refused.stderr.contains(&format!("\n  {}  ", &id[28..])), "{}", refused.stderr);
        assert_eq!(desk.show(&id[28..])["id"], id);
    }
}

#[test]
fn a_goal_without_checks_is_unproven_and_never_done() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    let ran = desk.towline(["run", "trust me", "--json"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert_eq!(ending(&ran.json()), ("unproven".into(), None, vec!["completed".into()]));
}

#[test]
fn an_end_that_is_not_understood_is_never_a_success() {
    let scripts: [fn(&Path) -> std::path::PathBuf; 4] = [
        hostile::prints_garbage,
        hostile::exits_at_once,
        hostile::dies_in_half_a_line,
        hostile::claims_success_with_error,
    ];
    for script in scripts {
        let desk = Desk::with_script(script).in_sandbox();
        // The check would pass: only the attempt's end keeps the goal from being done.
        let ran = desk.towline(["run", "whatever", "--check", "true", "--budget", "errors=1", "--json"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let (phase, reason, ends) = ending(&ran.json());
        assert_eq!((phase.as_str(), reason.as_deref()), ("failed", Some("budget: errors")), "{ends:?}");
        assert_ne!(ends, ["completed"]);
    }
}

#[test]
fn an_agent_that_keeps_dying_before_its_session_escalates() {
    let desk = Desk::with_script(hostile::exits_at_once).in_sandbox();
    let ran = desk.towline(["run", "whatever", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let (phase, reason, ends) = ending(&ran.json());
    assert_eq!((phase.as_str(), ends.len()), ("escalated", 3));
    assert!(reason.as_deref().unwrap_or_default().contains("cannot start: no such thing"), "{reason:?}");
}

#[test]
fn what_an_agent_leaves_running_does_not_hold_up_the_goal_and_is_gone() {
    let desk = Desk::with_script(hostile::keeps_stdout_open).in_sandbox();
    let ran = desk.towline(["run", "leave something running", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
}

#[test]
fn a_flood_of_unknown_output_is_survived_and_counted() {
    let desk = Desk::with_script(hostile::floods).in_sandbox();
    let ran = desk.towline(["run", "drown me", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{:?}", ran.stderr);
    assert_eq!(ran.json()["attempts"][0]["extras"]["unrecognised"], 100_001);
}

#[test]
fn the_second_ctrl_c_ends_at_once_what_ignores_every_signal() {
    let desk = Desk::with_script(hostile::ignores_signals).in_sandbox();
    // A grace that nobody would wait for: only insisting ends it in time.
    let script = desk.home.path().join("ignores-signals").display().to_string();
    desk.configure(&format!("[agents.claude]\ncommand = [{script:?}]\nstop_grace = \"10m\"\n"));
    let towline = desk.start(["run", "never stop", "--check", "true", "--events"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the tree to be complete", || {
        processes_with(&marker).iter().filter(|process| process.command.starts_with("sleep")).count() >= 2
    });
    let goal = desk.only_goal();
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    wait_for(LIMIT, "the goal to be stopping", || desk.show(&goal)["phase"] == "stopping");
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C again");
    let insisted = Instant::now();
    assert_eq!(finish(towline).code, Some(130));
    wait_until_process_tree_gone(&marker, Duration::from_secs(1));
    assert!(insisted.elapsed() < Duration::from_secs(10), "{:?}", insisted.elapsed());
}

#[test]
fn cancelling_during_a_check_ends_the_check() {
    let desk = Desk::with_script(hostile::well_behaved).without_baseline().in_sandbox();
    let towline = desk.start(["run", "check for ever", "--check", "setsid sleep 654 & wait", "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the check to run", || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("sleep 654"))
    });
    let goal = desk.only_goal();
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    let ran = finish(towline);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(ending(&ran.json()), ("cancelled".into(), None, vec!["completed".into()]));
    wait_until_process_tree_gone(&marker, Duration::from_secs(1));
}

#[test]
fn an_agent_that_rewrites_a_protected_test_is_warned_and_not_believed() {
    // Outside of a sandbox, because the script writes down what it is sent.
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo 'exit 0' > tests.sh; date +%N > work.txt"));
    let mut configuration =
        std::fs::read_to_string(desk.home.config().join("towline/config.toml")).expect("read");
    configuration.push_str("[protect]\npaths = [\"tests.sh\"]\n");
    desk.configure(&configuration);
    desk.project.write("tests.sh", "exit 1\n");
    desk.project.commit("a test that fails");
    let ran =
        desk.towline(["run", "make it pass", "--check", "sh tests.sh", "--budget", "attempts=2", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["attempts"][0]["verdict"]["restored"], json!(["tests.sh"]));
    let prompts = hostile::received(&desk.home.path().join("doing"));
    assert!(prompts[1].contains("Protected paths") && prompts[1].contains("tests.sh"), "{}", prompts[1]);
    let candidate = report["candidate"].as_str().expect("a candidate");
    assert_eq!(desk.project.git(["show", &format!("{candidate}:tests.sh")]), "exit 1");
}

#[test]
fn a_goals_log_diff_and_list_show_what_happened() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    let ran = desk.towline(["run", "leave a file", "--check", "test -f done.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let goal = report["id"].as_str().expect("an id").to_owned();

    let list = desk.towline(["ls", "--json"]).json();
    let line = json!([{
        "id": goal, "title": "leave a file", "prompt": "leave a file", "repository": report["repository"],
        "phase": "done", "reason": null, "until": null, "hold": null, "agent": "claude",
        "merged": null, "attempts": 1, "usage": report["usage"], "created_at": report["created_at"],
        "updated_at": report["updated_at"], "trust": report["trust"],
    }]);
    assert_eq!(list, line);
    let diff = desk.towline(["diff", &goal]).stdout;
    assert!(diff.contains("+++ b/done.txt") && diff.contains("+done"), "{diff}");
    // Any prefix names it, and so does the short form.
    assert_eq!(desk.show(&goal[..13])["id"], goal.as_str());
    assert_eq!(desk.show(&goal[28..])["id"], goal.as_str());
    let raw = desk.towline(["logs", &goal, "--raw"]).stdout;
    let stored = Path::new(report["attempts"][0]["dir"].as_str().expect("a directory")).join("stdout.log");
    assert_eq!(raw, std::fs::read_to_string(stored).expect("the log"));
    let story = desk.towline(["logs", &goal, "-f"]).stdout;
    assert!(story.contains("attempt 1") && story.contains("✓ test"), "{story}");
    let kinds: Vec<Value> = desk.events(&goal).iter().map(|event| event["event"]["kind"].clone()).collect();
    assert_eq!(kinds.first(), Some(&json!("created")));
    assert_eq!(kinds[kinds.len() - 2..], ["phase_changed", "published"]);
}

#[test]
fn a_second_terminal_follows_a_run_live_to_its_end() {
    let desk =
        Desk::with_script(|dir| hostile::doing(dir, "while ! test -e go; do sleep 0.05; done")).in_sandbox();
    let towline = desk.start(["run", "wait for it", "--check", "true", "--events"]);
    let goal = desk.only_goal();
    let follower = desk.start(["logs", &goal, "-f", "--json"]);
    wait_for(LIMIT, "the attempt to run", || desk.show(&goal)["phase"] == "running");
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(Path::new(&workspace).join("go"), "").expect("the signal to go on");
    let (ran, followed) = (finish(towline), finish(follower));
    assert_eq!((ran.code, followed.code), (Some(0), Some(0)));
    assert_eq!(followed.stdout, ran.stdout);
    // The request for a goal that another process drives is refused.
    let unknown = desk.towline(["cancel", &goal]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("is done"), "{}", unknown.stderr);
}

#[test]
fn a_goal_that_another_process_drives_is_not_driven_twice() {
    let desk =
        Desk::with_script(|dir| hostile::doing(dir, "while ! test -e go; do sleep 0.05; done")).in_sandbox();
    let towline = desk.start(["run", "wait for it", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    wait_for(LIMIT, "the attempt to run", || desk.show(&goal)["phase"] == "running");
    let refused = desk.towline(["run", "--goal", &goal, "--check", "false"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is running: its checks cannot be replaced now"), "{}", refused.stderr);
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    assert_eq!(finish(towline).code, Some(130));
    assert_eq!(desk.show(&goal)["attempts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_endless_flood_can_be_stopped() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "exec yes '{\"type\":\"flood\"}'")).in_sandbox();
    let towline = desk.start(["run", "drown me for ever", "--check", "true", "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the flood", || {
        processes_with(&marker).iter().any(|found| found.command.starts_with("yes"))
    });
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    wait_for(LIMIT, "the flood to end", || {
        !processes_with(&marker).iter().any(|found| found.command.starts_with("yes"))
    });
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C again");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    wait_until_process_tree_gone(&marker, Duration::from_secs(1));
}

/// A goal in the middle of an attempt whose towline was killed.
fn abandoned(desk: &Desk) -> String {
    let mut towline = desk.start(["run", "wait for it", "--check", "true", "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the agent to be at work", || {
        processes_with(&marker).iter().any(|found| found.command.starts_with("sleep 0.05"))
    });
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    desk.only_goal()
}

fn waiting(dir: &Path) -> std::path::PathBuf {
    hostile::doing(dir, "setsid sleep 987 & while ! test -e go; do sleep 0.05; done")
}

#[test]
fn cancelling_a_goal_whose_towline_was_killed_ends_its_agent_even_without_a_configuration() {
    for configuration in [None, Some("nonsense = true\n")] {
        let desk = Desk::with_script(waiting).in_sandbox();
        let goal = abandoned(&desk);
        let shown = desk.towline(["show", &goal]).stdout;
        assert!(shown.contains(&format!("towline run --goal {}", &goal[28..])), "{shown}");
        if let Some(configuration) = configuration {
            desk.configure(configuration);
        }
        let cancelled = desk.towline(["cancel", &goal]);
        assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
        assert_eq!(desk.show(&goal)["phase"], "cancelled");
        wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
    }
}

#[test]
fn a_tree_that_lost_its_supervisor_is_gone_before_the_next_attempt_starts() {
    let desk = Desk::with_script(waiting).in_sandbox();
    let towline = desk.start(["run", "wait for it", "--check", "true", "--json"]);
    let marker = desk.home.marker();
    let supervisor = wait_for_some(LIMIT, "the tree to be complete", || {
        processes_with(&marker).iter().find(|process| process.command.starts_with("sleep 987"))?;
        let dir = desk.home.towline().join(format!("attempts/{}/1", desk.only_goal()));
        towline_process::supervisor_process(&dir).expect("its identity")
    });
    let supervisor = i32::try_from(supervisor.pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(supervisor, Signal::KILL).expect("the supervisor is killed");
    let goal = desk.only_goal();
    wait_for(LIMIT, "the goal to sleep", || desk.show(&goal)["phase"] == "sleeping");
    assert!(!processes_with(&marker).iter().any(|process| process.command.starts_with("sleep 987")));
    assert_eq!(desk.show(&goal)["attempts"][0]["end"], "lost");
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    assert_eq!(finish(towline).code, Some(130));
}

#[test]
fn raw_logs_are_followed_to_the_end_of_the_goal() {
    let desk =
        Desk::with_script(|dir| hostile::doing(dir, "while ! test -e go; do sleep 0.05; done")).in_sandbox();
    let towline = desk.start(["run", "wait for it", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    wait_for(LIMIT, "the attempt to run", || desk.show(&goal)["phase"] == "running");
    let follower = desk.start(["logs", &goal, "--raw", "-f"]);
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(Path::new(&workspace).join("go"), "").expect("the signal to go on");
    assert_eq!(finish(towline).code, Some(0));
    let stored =
        Path::new(desk.show(&goal)["attempts"][0]["dir"].as_str().expect("a directory")).join("stdout.log");
    assert_eq!(finish(follower).stdout, std::fs::read_to_string(stored).expect("the log"));
}

#[test]
fn standard_error_is_followed_while_the_agent_runs() {
    let commands = "echo heard >&2; while ! test -e go; do sleep 0.05; done; printf end >&2";
    let desk = Desk::with_script(|dir| hostile::doing(dir, commands)).in_sandbox();
    let towline = desk.start(["run", "wait for it", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    wait_for(LIMIT, "the attempt to run", || desk.show(&goal)["phase"] == "running");
    let mut follower = desk.start(["logs", &goal, "--raw", "--stderr", "-f"]);
    let mut printed = std::io::BufReader::new(follower.stdout.take().expect("its output"));
    let mut line = String::new();
    printed.read_line(&mut line).expect("a line while the agent waits");
    assert_eq!(line, "heard\n");

    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(Path::new(&workspace).join("go"), "").expect("the signal to go on");
    assert_eq!(finish(towline).code, Some(0));
    printed.read_line(&mut line).expect("the rest");
    assert_eq!(line, "heard\nend");
    assert_eq!(finish(follower).code, Some(0));
    assert_eq!(desk.towline(["logs", &goal, "--raw", "--stderr"]).stdout, line);
    let refused = desk.towline(["logs", &goal, "--stderr"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--raw"), "{refused:?}");
}

#[test]
fn the_log_and_the_report_agree_on_how_a_cancelled_attempt_ended() {
    let desk = Desk::with_script(waiting).in_sandbox();
    let towline = desk.start(["run", "wait for it", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    wait_for(LIMIT, "the attempt to run", || desk.show(&goal)["phase"] == "running");
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    finish(towline);
    let ends: Vec<Value> =
        desk.events(&goal).into_iter().map(|event| event["event"]["end"]["end"].clone()).collect();
    assert!(ends.contains(&json!("cancelled")), "{ends:?}");
    assert_eq!(desk.show(&goal)["attempts"][0]["end"], "cancelled");
    // A goal that has ended is reported as such.
    let again = desk.towline(["cancel", &goal]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("is already cancelled"), "{}", again.stderr);
}

#[test]
fn checks_that_pass_before_any_work_are_caught_before_an_agent_starts() {
    let desk = Desk::with_script(hostile::well_behaved).in_sandbox();
    let ran = desk.towline(["run", "prove nothing", "--check", "true", "--red-first", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let reason = "the checks pass before any work, so they prove nothing";
    assert_eq!(ending(&ran.json()), ("failed".into(), Some(reason.into()), vec![]));
    assert_eq!(hostile::received(&desk.home.path().join("well-behaved")), Vec::<String>::new());
    // One that is red before and green after is what it is for.
    let ran = desk.towline(["run", "prove it", "--check", "test -f done.txt", "--red-first", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn work_that_survived_a_crash_is_checked_and_counts() {
    let desk =
        Desk::with_script(|dir| hostile::doing(dir, "echo done > done.txt; kill -KILL $$")).in_sandbox();
    let ran = desk.towline(["run", "die after the work", "--check", "test -f done.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ending(&ran.json()), ("done".into(), None, vec!["crashed".into()]));
}
