//! Goals as files, from the file to what the agent is started with and what is shown.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::{Desk, of_attempts};
use towline_testkit::hostile;

/// Needs two attempts, and breaks what is protected in both.
const AGENT: &str = r"
echo broken > tests/a
if [ -e half ]; then echo fixed > bug; fi
touch half
";

const GOAL: &str = r#"---
title: Mend it
model: opus
permission: ask
allow: [Edit]
deny: [WebFetch]
system_append: Be brief.
dirs: [../docs]
max_turns: 9
mcp: {docs: {command: [docs-mcp]}}
args: [--fast]
briefing: false
red_first: true
labels: [login, urgent]
metadata: {ticket: 7}
origin: {channel: chat, thread: t-1, by: ada}
template: true
context: {who: Ada}
checks:
  - name: mended
    run: grep -q fixed bug && test "$(cat tests/a)" = whole && test -e .env && test -e set-up
budget: {attempts: 3}
protect: {paths: ["tests/**"]}
workspace:
  base: HEAD~1
  setup: ["touch set-up"]
  copy: [.env]
priority: 1
---
# Help {{ who }}

Mend the bug.
"#;

/// A project with a bug, whose configuration differs in every setting.
fn desk() -> (Desk, std::path::PathBuf) {
    let mut script = None;
    let desk = Desk::with_script(|dir| script.insert(hostile::doing(dir, AGENT)).clone());
    desk.project.write("bug", "broken\n");
    desk.project.write("tests/a", "whole\n");
    desk.project.write(".gitignore", ".env\nset-up\n");
    desk.project.write(
        "towline.toml",
        "[[checks]]\nname = \"configured\"\nrun = \"false\"\n[budget]\nattempts = 1\nturns = 30\n\
         [workspace]\nsetup = [\"false\"]\n[agents.claude]\nmodel = \"sonnet\"\nmax_turns = 1\n",
    );
    desk.project.commit("a bug");
    desk.project.write("later", "not in the base\n");
    desk.project.commit("later");
    desk.project.write(".env", "secret\n");
    desk.project.write("goals/mend.md", GOAL);
    (desk, script.expect("a script"))
}

/// The arguments of an attempt's agent, those that are always the same aside.
fn arguments(desk: &Desk, report: &Value, attempt: usize) -> Vec<String> {
    let dir = report["attempts"][attempt]["dir"].as_str().expect("a directory");
    let launch = std::fs::read_to_string(std::path::Path::new(dir).join("launch.json")).expect("a launch");
    let launch: Value = serde_json::from_str(&launch).expect("JSON");
    let argv: Vec<String> = serde_json::from_value(launch["argv"].clone()).expect("arguments");
    let towline = env!("CARGO_BIN_EXE_towline");
    let own = argv.iter().skip_while(|word| !["--model", "--permission-mode"].contains(&word.as_str()));
    let own = own.map(|word| word.replace(towline, "towline").replace(&desk.home.marker(), "HOME/"));
    own.collect()
}

#[test]
fn every_setting_of_a_file_has_its_effect() {
    let (desk, script) = desk();
    let ran = desk.towline(["run", "--file", "goals/mend.md", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("is not used by this version"), "{}", ran.stderr);
    let report = ran.json();

    let about = ["title", "labels", "metadata", "origin", "base"].map(|key| report[key].clone());
    let base = desk.project.git(["rev-parse", "HEAD~1"]);
    let origin = json!({"channel": "chat", "thread": "t-1", "by": "ada"});
    assert_eq!(
        about,
        [json!("Mend it"), json!(["login", "urgent"]), json!({"ticket": 7}), origin, json!(base)]
    );
    assert_eq!(report["budget"]["attempts"]["limit"], 3, "{}", report["budget"]);
    assert_eq!(report["budget"]["turns"]["limit"], 30, "{}", report["budget"]);

    let verdicts = of_attempts(&report, "verdict");
    let met: Vec<Value> = verdicts.iter().map(|verdict| verdict["checks"].clone()).collect();
    let named = |met: &Value| json!([met[0]["name"], met[0]["met"]]);
    assert_eq!(
        met.iter().map(named).collect::<Vec<_>>(),
        [json!(["mended", false]), json!(["mended", true])]
    );
    assert_eq!(verdicts[1]["restored"], json!(["tests/a"]));

    let servers = r#"{"docs":{"args":[],"command":"docs-mcp","type":"stdio"},"towline":{"alwaysLoad":true,"args":["mcp"],"command":"towline","type":"stdio"}}"#;
    let servers = format!("--mcp-config={{\"mcpServers\":{servers}}}");
    let wanted = [
        "--model",
        "opus",
        "--permission-mode",
        "default",
        "--allowedTools=Edit",
        "--allowedTools=mcp__towline",
        "--disallowedTools=WebFetch",
        "--disallowedTools=EnterWorktree",
        "--disallowedTools=ExitWorktree",
        "--disallowedTools=CronCreate",
        "--disallowedTools=ScheduleWakeup",
        "--add-dir=../docs",
        &servers,
        "--append-system-prompt=Be brief.",
        "--max-turns",
        "9",
        "--fast",
    ];
    for attempt in [0, 1] {
        assert_eq!(arguments(&desk, &report, attempt), wanted);
    }

    let first: Value = serde_json::from_str(&hostile::received(&script)[0]).expect("a message");
    let prompt = first["message"]["content"].to_string();
    assert!(prompt.contains("# Help Ada\\n\\nMend the bug."), "{prompt}");
    assert!(!prompt.contains("unattended"), "a briefing: {prompt}");

    let shown = desk.towline(["show", report["id"].as_str().expect("an id")]).stdout;
    for line in
        ["Mend it", "labels     login, urgent", "origin     chat · t-1 · ada", "metadata   ticket = 7"]
    {
        assert!(shown.contains(line), "no {line:?} in {shown}");
    }
}

#[test]
fn flags_win_over_the_file() {
    let (desk, _) = desk();
    let ran = desk.towline([
        "run",
        "--file",
        "goals/mend.md",
        "--check",
        "test -e half",
        "--model",
        "haiku",
        "--budget",
        "attempts=7",
        "--base",
        "HEAD",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["base"], json!(desk.project.git(["rev-parse", "HEAD"])));
    assert_eq!(report["budget"]["attempts"]["limit"], 7);
    assert_eq!(report["attempts"][0]["verdict"]["checks"][0]["name"], "test -e half");
    assert_eq!(arguments(&desk, &report, 0)[..2], ["--model", "haiku"]);
}

#[test]
fn what_a_goal_sets_for_its_agents_holds_after_a_retry_whatever_the_configuration_is_by_then() {
    let (desk, _) = desk();
    let ran = desk.towline(["run", "--file", "goals/mend.md", "--budget", "attempts=1", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let id = ran.json()["id"].as_str().expect("an id").to_owned();
    std::fs::remove_file(desk.project.path().join("goals/mend.md")).expect("removed");
    desk.agent_settings("permission = \"deny\"\nmax_turns = 2\n");
    let again = desk.towline(["retry", &id, "--budget", "attempts=+2", "--json"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let report = again.json();
    let (before, after) = (arguments(&desk, &report, 0), arguments(&desk, &report, 1));
    assert_eq!(before, after);
    assert!(after.contains(&"9".to_owned()), "{after:?}");
}

#[test]
fn a_file_can_demand_that_its_checks_fail_first() {
    let desk = Desk::with_script(hostile::well_behaved);
    desk.project.write("goal.toml", "prompt = \"x\"\nred_first = true\n[[checks]]\nrun = \"true\"\n");
    let ran = desk.towline(["run", "--file", "goal.toml", "--json"]);
    assert_eq!((ran.code, ran.json()["attempts"].clone()), (Some(3), json!([])), "{ran:?}");
}

#[test]
fn the_agents_of_a_file_are_used_in_its_order() {
    let desk = Desk::with_script(hostile::well_behaved);
    desk.project.write("goal.toml", "prompt = \"x\"\nagents = [\"nobody\"]\n");
    let refused = desk.towline(["run", "--file", "goal.toml"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("unknown agent `nobody`"), "{}", refused.stderr);
    let script = hostile::doing(&desk.home.path(), "echo other > done.txt");
    desk.agent_settings(&format!(
        "[agents.other]\nkind = \"claude\"\ncommand = [{:?}]",
        script.display().to_string()
    ));
    let text =
        "prompt = \"x\"\nagents = [\"other\", \"claude\"]\n[[checks]]\nrun = \"grep -q other done.txt\"\n";
    desk.project.write("goal.toml", text);
    let ran = desk.towline(["run", "--file", "goal.toml", "--json"]);
    assert_eq!((ran.code, &ran.json()["agent"]), (Some(0), &json!("other")), "{ran:?}");
}
