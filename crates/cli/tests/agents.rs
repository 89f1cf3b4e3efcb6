//! `towline agents`: the list in order of preference, what one agent can do, and that nothing but a version is asked.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use support::Desk;

/// A program that prints its version, and writes down its arguments.
fn program(desk: &Desk, name: &str, version: &str) -> String {
    let path = desk.home.path().join(name);
    let text = format!("#!/bin/sh\necho \"$*\" >> {}.started\necho '{version}'\n", path.display());
    std::fs::write(&path, text).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("executable");
    path.display().to_string()
}

/// A desk with four agents: two in use, one that nothing uses, one that is not installed.
fn desk() -> Desk {
    let mut desk = Desk::new();
    let claude = program(&desk, "claude", "2.1.197 (Claude Code)");
    let codex = program(&desk, "codex", "codex-cli 0.999.0");
    let gemini = program(&desk, "gemini", "0.61.0");
    desk.configure(&format!(
        "[defaults]\nagents = [\"codex\", \"claude\"]\n\
         [agents.claude]\nkind = \"claude\"\ncommand = [{claude:?}]\nmodel = \"opus\"\naccount = \"mine\"\n\
         [agents.codex]\nkind = \"codex\"\ncommand = [{codex:?}]\npermission = \"ask\"\n\
         [agents.gemini]\nkind = \"acp\"\ncommand = [{gemini:?}, \"--acp\"]\n\
         [agents.other]\nkind = \"acp\"\ncommand = [\"no-such-agent\"]\n"
    ));
    desk.set("ANTHROPIC_API_KEY", "hush-0123456789");
    desk
}

/// What a program was started with, each time.
fn started(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.home.path().join(format!("{name}.started"))).unwrap_or_default()
}

#[test]
fn the_list_is_in_order_of_preference_and_shows_the_state_of_each() {
    let desk = desk();
    let ran = desk.towline(["agents", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let list = ran.json();
    let list = list.as_array().expect("a list");
    assert_eq!([&list[0]["name"], &list[1]["name"]], ["codex", "claude"]);
    let named = |name: &str| list.iter().find(|agent| agent["name"] == name).expect("the agent");
    let path = |name: &str| desk.home.path().join(name).display().to_string();
    assert_eq!(
        *named("claude"),
        json!({
            "name": "claude",
            "kind": "claude",
            "in_use": true,
            "command": [path("claude")],
            "path": path("claude"),
            "version": "2.1.197",
            "tested": {"versions": "2.1.197 to 2.1.325", "covers": true},
            "signed_in": {"state": "yes", "by": "ANTHROPIC_API_KEY"},
            "permission": "bypass",
            "model": "opus",
            "account": "mine",
            "frames_not_understood": 0,
            "problem": null,
        })
    );
    let codex = named("codex");
    assert_eq!(
        (&codex["version"], &codex["tested"]["covers"], &codex["signed_in"], &codex["permission"]),
        (&json!("0.999.0"), &json!(false), &json!({"state": "not_seen"}), &json!("ask"))
    );
    assert_eq!((&named("gemini")["in_use"], &named("gemini")["version"]), (&json!(false), &json!("0.61.0")));
    assert_eq!((&named("other")["path"], &named("other")["version"]), (&Value::Null, &Value::Null));
    for name in ["claude", "codex", "gemini"] {
        assert_eq!(started(&desk, name), "--version\n", "{name}");
    }
    assert!(!format!("{ran:?}").contains("hush"), "{ran:?}");
}

#[test]
fn the_list_counts_what_was_not_understood_of_each() {
    let desk = Desk::new();
    let script = desk.home.path().join("agent.toml");
    std::fs::write(&script, "[[turn]]\nstep = [{ raw = \"what is this\" }, { say = \"Hi.\" }]")
        .expect("a script");
    desk.configure(&format!(
        "defaults.agents = [\"odd\"]\n[agents.odd]\nkind = \"script\"\ncommand = [{:?}, \"script\", {:?}]\n",
        env!("CARGO_BIN_EXE_towline"),
        script.display().to_string()
    ));
    let ran = desk.towline(["run", "greet", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let list = desk.towline(["agents", "--json"]).json();
    assert_eq!((&list[0]["name"], &list[0]["frames_not_understood"]), (&json!("odd"), &json!(1)));
    let table = desk.towline(["agents"]).stdout;
    let row: Vec<&str> = table.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!((row[1], row[row.len() - 2]), ("odd", "1"), "{table}");
}

#[test]
fn people_read_the_list_as_a_table() {
    let desk = desk();
    let ran = desk.towline(["agents"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
        .collect();
    let home = desk.home.path().display().to_string();
    let program = |name: &str| format!("{home}/{name}");
    assert_eq!(
        rows[0],
        [
            "#",
            "NAME",
            "KIND",
            "VERSION",
            "TESTED",
            "SIGNED IN",
            "PERMISSION",
            "MODEL",
            "ACCOUNT",
            "UNKNOWN FRAMES",
            "PROGRAM"
        ]
    );
    let codex = program("codex");
    assert_eq!(
        rows[1],
        ["1", "codex", "codex", "0.999.0", "0.166.0", "not seen", "ask", "–", "–", "0", &codex]
    );
    let claude = program("claude");
    assert_eq!(
        rows[2],
        [
            "2",
            "claude",
            "claude",
            "2.1.197",
            "2.1.197 to 2.1.325",
            "yes",
            "bypass",
            "opus",
            "mine",
            "0",
            &claude
        ]
    );
    let other = rows.iter().find(|row| row.get(1) == Some(&"other")).expect("the missing one");
    assert_eq!(
        (other[0], other[3], other.last()),
        ("–", "not found", Some(&"`no-such-agent` was not found"))
    );
}

#[test]
fn one_agent_is_shown_with_its_abilities_and_problems() {
    let desk = desk();
    let ran = desk.towline(["agents", "check", "codex", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    let extents: Vec<(&String, &Value)> = report["abilities"]
        .as_object()
        .expect("abilities")
        .iter()
        .map(|(name, ability)| (name, &ability["extent"]))
        .collect();
    let wanted = ["compaction", "cost", "mcp", "permissions", "questions", "resume", "steering", "tokens"]
        .map(|name| (name.to_owned(), json!(if name == "cost" { "partly" } else { "yes" })));
    let mut extents: Vec<(String, Value)> =
        extents.into_iter().map(|(name, extent)| (name.clone(), extent.clone())).collect();
    extents.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(extents, wanted);
    assert_eq!((&report["ok"], &report["name"]), (&json!(false), &json!("codex")));
    let about: Vec<&Value> =
        report["findings"].as_array().expect("findings").iter().map(|found| &found["about"]).collect();
    assert_eq!(about, ["version", "signed in"]);
    assert_eq!(started(&desk, "codex"), "--version\n");
}

#[test]
fn people_read_what_an_agent_can_do_as_rows_that_fit() {
    let desk = desk();
    let ran = desk.towline(["agents", "check", "gemini"]);
    // Nothing uses it by itself, but somebody asked: what is missing is a problem.
    assert_eq!(ran.code, Some(4), "{ran:?}");
    for line in [
        "what gemini can do",
        "  · resume       no: each attempt is a new conversation, which gets the whole",
        "  ✓ mcp          yes: with the session",
        "  ✗ signed in    not signed in, as far as can be seen",
        "✗ 1 problem to fix, 1 note",
    ] {
        assert!(ran.stdout.lines().any(|printed| printed == line), "no {line:?} in {}", ran.stdout);
    }
    let claude = desk.towline(["agents", "check", "claude"]);
    assert_eq!(claude.code, Some(0), "{claude:?}");
    assert!(claude.stdout.ends_with("✓ nothing is wrong, 1 note\n"), "{}", claude.stdout);
}

#[test]
fn an_agent_that_nobody_configured_is_not_found_and_those_that_there_are_are_named() {
    let desk = desk();
    let ran = desk.towline(["agents", "check", "nobody"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{ran:?}");
    assert!(ran.stderr.contains("there is no agent `nobody` in the configuration"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: there are: codex, claude, gemini, "), "{}", ran.stderr);
}

#[test]
fn a_configuration_that_is_wrong_is_wrong_usage() {
    let desk = desk();
    desk.project.write("towline.toml", "[agents.claude]\nmodle = \"opus\"\n");
    let ran = desk.towline(["agents"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("agents.claude.modle"), "{}", ran.stderr);
}
