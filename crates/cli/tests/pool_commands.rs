//! `towline add`, `queue`, `accounts` and `cost` as a person and a program use them, without a server.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use support::Desk;
use support::server::{down, up};
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

fn id(value: &Value) -> String {
    value["id"].as_str().expect("an id").to_owned()
}

/// The last eight digits, as people see them.
fn short(id: &str) -> String {
    let digits: String = id.chars().filter(|c| *c != '-').collect();
    digits[24..].to_owned()
}

#[test]
fn a_name_of_nothing_is_no_task() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    desk.leaves_nothing_to_replay("no goal starts");
    desk.project.write("README.md", "about this project\n");
    for (words, error) in [
        (&["add", ""][..], "the prompt is empty"),
        (&["add", " "], "the prompt is empty"),
        (&["add", "goals/"], "`goals/` is no task: it looks like a file or folder"),
        (&["run", "/no/such/folder"], "`/no/such/folder` is no task"),
        (&["add", "goals.txt"], "`goals.txt` is no task: it looks like a file or folder"),
        (&["add", "goals.txt"], "echo goals.txt | towline add -"),
        (&["add", "goal.md"], "cannot read goal.md: there is no such file"),
    ] {
        let refused = desk.towline([words, &["--check", "true"]].concat());
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        assert!(refused.stderr.contains(error), "{words:?}: {refused:?}");
    }
    assert_eq!(desk.towline(["ls", "--json"]).json(), json!([]));
}

#[test]
fn goals_are_queued_with_their_reasons_and_none_starts_without_a_server() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    desk.leaves_nothing_to_replay("no goal starts");
    let first = desk.towline(["add", "fix", "it", "--check", "true", "--label", "a", "--json"]);
    assert_eq!((first.code, &first.json()["phase"]), (Some(0), &json!("queued")), "{first:?}");
    let first = id(&first.json());
    desk.project.write("goals/docs.md", "---\nafter: [tests]\n---\nwrite the docs\n");
    desk.project.write("goals/tests.md", "write the tests\n");
    let folder = desk.towline(["add", "goals", "--after", &short(&first), "--priority", "-2"]);
    assert_eq!(folder.code, Some(0), "{folder:?}");
    assert!(!folder.stderr.contains("uncommitted"), "the files of goals are no part of the work: {folder:?}");
    assert!(!folder.stderr.contains("same prompt"), "{folder:?}");
    let again = desk.towline(["add", "fix", "it", "--check", "true", "--json"]);
    let note = format!("goal {} has the same prompt and has not ended yet", short(&first));
    assert!(again.stderr.contains(&note), "{again:?}");
    assert_eq!(desk.towline(["cancel", &id(&again.json())]).code, Some(0));
    desk.project.write("notes.txt", "mine\n");
    let noted = desk.towline(["add", "other", "--check", "true"]);
    assert!(noted.stderr.contains("notes.txt"), "{noted:?}");
    assert!(!noted.stderr.contains("--include-dirty"), "`add` has no such option: {noted:?}");
    desk.towline(["cancel", "@"]);
    let lines: Vec<&str> = folder.stdout.lines().collect();
    assert!(lines[0].starts_with("queued ") && lines[0].ends_with("  write the tests"), "{folder:?}");
    assert!(lines[1].ends_with("  write the docs"), "{folder:?}");
    assert_eq!(lines[2..], ["2 goals added", "no server is running; start them with: towline up"]);
    desk.project.write("goals/site.md", "build the site\n");
    let repeated = desk.towline(["add", "goals", "--after", &short(&first), "--priority", "-2"]);
    let lines: Vec<&str> = repeated.stdout.lines().collect();
    assert_eq!(lines[3], "1 goal added; 2 goals already added and not ended", "{repeated:?}");
    let repeated = desk.towline(["add", "goals", "--after", &short(&first), "--priority", "-2"]);
    let lines: Vec<&str> = repeated.stdout.lines().collect();
    assert_eq!(lines[3], "no goal added: 3 goals already added and not ended", "{repeated:?}");
    assert_eq!(desk.towline(["cancel", &lines[2]["queued ".len()..][..8]]).code, Some(0), "{repeated:?}");

    let queue = desk.towline(["queue", "--json"]).json();
    let hold = |reason: &str, text: String| json!({"reason": reason, "text": text, "until": null});
    let waits = format!("waits for {} (queued)", short(&first));
    let holds: Vec<&Value> =
        queue["waiting"].as_array().expect("goals").iter().map(|goal| &goal["hold"]).collect();
    let no_server = hold("no_server", "no server is running".to_owned());
    assert_eq!(*holds[0], no_server);
    assert!([&holds[1], &holds[2]].iter().all(|hold| hold["reason"] == "prerequisite"), "{holds:?}");
    assert_eq!(desk.towline(["show", &first, "--json"]).json()["hold"], no_server);
    let listed = desk.towline(["ls", "--json"]).json();
    let tests = listed.as_array().expect("goals").iter().find(|goal| goal["title"] == "write the tests");
    assert_eq!(tests.expect("a goal")["hold"], hold("prerequisite", waits.clone()));
    let table = desk.towline(["queue"]);
    assert!(table.stdout.contains(&waits), "{table:?}");
    assert!(!table.stdout.contains("no server"), "{table:?}");
    let advice = format!("no server is running; start {} with: towline up", short(&first));
    assert!(desk.towline(["ls"]).stdout.contains(&advice));
    assert!(desk.towline(["show", &first]).stdout.contains("towline up"));
    assert!(table.stderr.contains("no server is running; start one with: towline up"), "{table:?}");
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 80), "{table:?}");
    assert_eq!(desk.towline(["show", &first]).stdout.matches("no server is running").count(), 1);
    let tests = id(tests.expect("a goal"));
    let early = desk.towline(["run", "--goal", &tests]);
    assert_eq!(early.code, Some(2), "{early:?}");
    assert!(early.stderr.contains("a goal that waits for others"), "{early:?}");
}

#[test]
fn what_cannot_be_queued_is_refused_before_anything_is_created() {
    let mut desk = Desk::new();
    desk.leaves_nothing_to_replay("no goal is created");
    for (args, expected) in [
        (&["add", "goals/none.md"][..], "cannot read goals/none.md: there is no such file"),
        (&["add", "x", "--after", "zzzz"], "`after` names `zzzz`, and there is no such goal"),
        (&["run", "x", "--detach"], "`--detach` needs a server, and none is running"),
        (&["add", "x", "--priority", "5000"], "5000 is not in -1000..=1000"),
        (&["add", "x", "--touches", "src/["], "src/["),
        (&["add", "x", "--touches", " "], "`touches` takes at most"),
        (&["add", "x", "--label", ""], "`labels` takes at most"),
        (&["up", "--slots", "0"], "give a number from 1 to"),
        (&["up", "--slots", "-1"], "unexpected argument"),
        (&["up", "--slots", "many"], "give a number from 1 to"),
        (&["up", "--listen", "nowhere"], "cannot listen on nowhere"),
        (&["up", "--listen", "127.0.0.1"], "cannot listen on 127.0.0.1"),
        (&["up", "--wait", "soon"], "soon"),
        (&["cost", "--since", "soon"], "cannot count from `soon`"),
        (&["cost", "--by", "colour"], "colour"),
        (&["service", "start"], "start"),
        (&["run", "x", "--detach"], "`--detach` needs a server, and none is running"),
    ] {
        let refused = desk.towline(args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
        assert_eq!(refused.stdout, "", "nothing has an id yet");
    }
    assert_eq!(desk.towline(["queue", "--json"]).json()["waiting"], json!([]));
    for args in [&["down"][..], &["open"], &["open", "--json"]] {
        let none = desk.towline(args);
        assert_eq!(none.code, Some(5), "{none:?}");
        let is_json = args.contains(&"--json");
        assert_eq!(none.stdout.contains("\"kind\":\"not_found\""), is_json, "{none:?}");
        assert!(none.stderr.contains("no server is running"), "{none:?}");
        // Whoever wants to stop a server does not want to start one.
        assert_eq!(none.stderr.contains("towline up"), args != ["down"], "{none:?}");
    }
}

#[test]
fn the_queue_is_shown_while_your_configuration_is_broken() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    desk.leaves_nothing_to_replay("no goal starts");
    let added = desk.towline(["add", "fix it", "--check", "true"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let file = desk.home.config().join("towline/config.toml");
    let configured = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(&file, format!("{configured}\n[caps]\nprojcet = 1\n")).expect("written");
    let shown = desk.towline(["queue"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("fix it"), "{shown:?}");
    assert!(shown.stderr.contains("warning: your own configuration is broken"), "{shown:?}");
    assert!(shown.stderr.contains("projcet"), "{shown:?}");
    let doctor = desk.towline(["doctor"]);
    assert!(doctor.stdout.contains("projcet"), "{doctor:?}");
}

#[test]
fn what_a_goal_spent_is_in_the_ledger_and_its_account_in_the_list() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let ran = desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (goal, usage) = (id(&ran.json()), ran.json()["usage"].clone());
    let by_goal = desk.towline(["cost", "--by", "goal", "--since", "today", "--json"]).json();
    assert_eq!(by_goal["by"], "goal");
    assert_eq!(
        (&by_goal["lines"][0]["key"], &by_goal["lines"][0]["title"]),
        (&json!(goal), &json!("fix it"))
    );
    for part in ["input", "output", "cost_usd"] {
        assert_eq!(by_goal["lines"][0]["usage"][part], usage[part], "{by_goal}");
        assert_eq!(by_goal["total"][part], usage[part], "{by_goal}");
    }
    let by_day = desk.towline(["cost"]);
    assert!(by_day.stdout.starts_with("DAY "), "{by_day:?}");
    assert!(
        by_day.stdout.lines().last().is_some_and(|line| line.contains("days are those of")),
        "{by_day:?}"
    );
    assert_eq!(by_day.stdout.lines().count(), 4, "{by_day:?}");

    let accounts = desk.towline(["accounts", "--json"]).json();
    let name = accounts[0]["name"].as_str().expect("a name").to_owned();
    assert_eq!(accounts[0]["state"], "open");
    let opened = desk.towline(["accounts", "open", &name]);
    assert_eq!(
        (opened.code, opened.stdout.trim()),
        (Some(0), format!("{name}: open").as_str()),
        "{opened:?}"
    );
    assert_eq!(desk.towline(["accounts", "open", "nobody"]).code, Some(5));
}

#[test]
fn a_service_needs_systemd_and_its_unit_is_one() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "true"));
    let refused = desk.towline(["service", "install"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no systemd runs for this user"), "{refused:?}");
    assert!(refused.stderr.contains("towline service install --print"), "{refused:?}");

    let printed = desk.towline(["service", "install", "--print"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(printed.stdout.contains("KillMode=process\nSuccessExitStatus=143\n"), "{printed:?}");
    let unit = desk.home.path().join("towline.service");
    std::fs::write(&unit, &printed.stdout).expect("written");
    let mut verify = clean_command("systemd-analyze");
    verify.args(["verify", "--user"]).arg(&unit).env("XDG_RUNTIME_DIR", desk.home.path());
    match verify.output() {
        Ok(verified) => {
            assert!(verified.status.success() && verified.stderr.is_empty(), "{verified:?}");
        }
        // A machine without systemd cannot judge its units.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
    }
}

/// A `systemctl` that starts the server itself.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$HOME/calls"
case "$*" in
    *show*) cat "$HOME/pid" 2>/dev/null || echo 0 ;;
    *restart*) "$TOWLINE" up --listen 127.0.0.1:0 > /dev/null 2>&1 & echo $! > "$HOME/pid" ;;
esac
"#;

#[test]
fn a_service_is_installed_when_its_server_runs_and_not_beside_another_server() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "true"));
    let home = desk.home.path();
    std::fs::create_dir_all(home.join("run/systemd/private")).expect("made");
    std::fs::create_dir_all(home.join("bin")).expect("made");
    let systemctl = home.join("bin/systemctl");
    std::fs::write(&systemctl, SYSTEMCTL).expect("written");
    std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let path = desk.variables().iter().find(|(name, _)| name == "PATH").expect("a path").1.clone();
    desk.unset("PATH");
    desk.set("PATH", &format!("{}:{path}", home.join("bin").display()));
    desk.set("XDG_RUNTIME_DIR", &home.join("run").display().to_string());
    desk.set("TOWLINE", env!("CARGO_BIN_EXE_towline"));

    let server = up(&desk);
    let refused = desk.towline(["service", "install"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("a server runs already that is not the service"), "{refused:?}");
    assert!(refused.stderr.contains("towline down"), "{refused:?}");
    down(&desk, server);

    let installed = desk.towline(["service", "install"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert!(installed.stdout.contains("; the server runs"), "{installed:?}");
    assert_eq!(desk.towline(["down"]).code, Some(0), "it runs");
    let calls = std::fs::read_to_string(home.join("calls")).expect("calls");
    let expected =
        ["--user daemon-reload", "--user enable towline.service", "--user restart towline.service"];
    let changes: Vec<&str> = calls.lines().filter(|call| !call.contains("show")).collect();
    assert_eq!(changes, expected);
}
