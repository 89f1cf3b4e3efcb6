//! `towline doctor`: what it finds, what counts as a problem, and that it leaves no trace and shows no secret.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, finish};
use towline_testkit::agents::AgentCli;
use towline_testkit::hostile::exits_at_once;
use towline_testkit::model::{ModelServer, Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

const SECRET: &str = "hush-0123456789";

/// The pinned version.
const CLAUDE: &str = "2.1.325";

/// A desk with the real Claude Code, signed in by a key. It is not asked anything here but its version.
fn desk_with_claude() -> Desk {
    let model = ModelServer::start([Rule::always().reply(Reply::text("Nobody should ask."))]);
    Desk::with_claude(&model)
}

/// A desk whose only agent plays this script.
fn desk_with_script(turn: &str) -> Desk {
    let desk = Desk::new();
    let script = desk.home.path().join("agent.toml");
    std::fs::write(&script, format!("[[turn]]\n{turn}")).expect("a script");
    desk.configure(&format!(
        "defaults.agents = [\"scripted\"]\n[agents.scripted]\nkind = \"script\"\ncommand = [{:?}, \"script\", {:?}]\n",
        env!("CARGO_BIN_EXE_towline"),
        script.display().to_string()
    ));
    desk
}

/// Its exit code and report. Every problem in it must have a fix.
fn doctor(desk: &Desk) -> (Option<i32>, Value) {
    let ran = desk.towline(["doctor", "--json"]);
    let report = ran.json();
    let findings = report["findings"].as_array().expect("findings");
    let without: Vec<&Value> = findings.iter().filter(|finding| !finding["fix"].is_string()).collect();
    assert_eq!(without, Vec::<&Value>::new());
    (ran.code, report)
}

/// What has to be fixed: section and what it is about.
fn problems(report: &Value) -> Vec<(&str, &str)> {
    findings(report, "problem")
}

fn findings<'a>(report: &'a Value, level: &str) -> Vec<(&'a str, &'a str)> {
    let text = |finding: &'a Value, field: &str| finding[field].as_str().expect("a text");
    let findings = report["findings"].as_array().expect("findings").iter();
    let of_level = findings.filter(|finding| finding["level"] == level);
    of_level.map(|finding| (text(finding, "section"), text(finding, "about"))).collect()
}

fn finding<'a>(report: &'a Value, section: &str, about: &str) -> &'a Value {
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["section"] == section && finding["about"] == about);
    found.unwrap_or_else(|| panic!("nothing about {about} in {report:#}"))
}

/// Every path below these.
fn everything_below(folders: &[&Path]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() && !path.is_symlink() {
            let entries = std::fs::read_dir(&path).expect("a folder");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        found.insert(path);
    }
    found
}

fn all_of(desk: &Desk) -> BTreeSet<PathBuf> {
    let person = desk.home.path();
    everything_below(&[person.parent().expect("a folder around the home"), desk.project.path()])
}

fn assert_fine(ran: &Ran) {
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn where_everything_is_in_place_nothing_is_wrong() {
    let desk = desk_with_claude();
    let (code, report) = doctor(&desk);
    assert_eq!((code, &report["ok"], problems(&report)), (Some(0), &json!(true), vec![]), "{report:#}");
    let program = AgentCli::Claude.program().display().to_string();
    assert_eq!(
        report["agents"],
        json!([{
            "name": "claude",
            "kind": "claude",
            "in_use": true,
            "command": [program],
            "path": program,
            "version": CLAUDE,
            "tested": {"versions": "2.1.197 to 2.1.325", "covers": true},
            "signed_in": {"state": "yes", "by": "ANTHROPIC_API_KEY"},
            "permission": "bypass",
            "problem": null,
        }])
    );
    assert_eq!(findings(&report, "note"), [("agents", "permission")]);
    let root = desk.project.path().display().to_string();
    assert_eq!(
        (&report["git"]["repository"], &report["git"]["head"]),
        (&json!(root), &json!(desk.project.git(["rev-parse", "HEAD"]).trim()))
    );
    assert_eq!((&report["store"]["exists"], &report["store"]["goals"]), (&json!(false), &json!({})));

    let ran = desk.towline(["doctor"]);
    assert_fine(&ran);
    for line in ["  ✓ version      2.1.325, which Towline is tested with", "✓ nothing is wrong, 1 note"] {
        assert!(ran.stdout.lines().any(|printed| printed == line), "{}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    let wide = |line: &&str| line.chars().count() > 80 && line.trim().contains(' ');
    let too_wide: Vec<&str> =
        ran.stdout.lines().filter(wide).filter(|line| !line.contains(&program)).collect();
    assert_eq!(too_wide, [""; 0]);
}

#[test]
fn it_creates_nothing() {
    let desk = desk_with_claude();
    std::fs::remove_dir(desk.home.towline()).expect("no state yet");
    let before = all_of(&desk);
    assert_fine(&desk.towline(["doctor"]));
    assert_fine(&desk.towline(["doctor", "--json"]));
    assert_eq!(all_of(&desk), before);
}

#[test]
fn an_agent_that_is_not_installed_is_a_problem_with_the_way_to_install_it() {
    let mut desk = Desk::new();
    // Claude Code may well be installed on the machine that runs the tests.
    desk.configure("agents.claude.command = [\"no-such-claude\"]");
    desk.set("ANTHROPIC_API_KEY", SECRET);
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("agents", "program")]), "{report:#}");
    let fix = finding(&report, "agents", "program")["fix"].as_str().expect("a fix");
    assert!(
        fix.contains("npm install -g @anthropic-ai/claude-code") && fix.contains("[agents.claude]"),
        "{fix}"
    );
    assert_eq!(report["agents"][0]["path"], Value::Null);
    let text = desk.towline(["doctor"]);
    assert_eq!(text.code, Some(4));
    assert!(text.stdout.contains("✗ program      `no-such-claude` was not found"), "{}", text.stdout);
}

#[test]
fn an_agent_that_nothing_uses_by_itself_may_be_missing() {
    let desk = desk_with_script("step = [{ say = \"Hi.\" }]");
    desk.agent_settings("[agents.claude]\ncommand = [\"no-such-claude\"]");
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(0), vec![]), "{report:#}");
    assert_eq!(finding(&report, "agents", "program")["agent"], "claude");
    let names: Vec<&Value> =
        report["agents"].as_array().expect("agents").iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["scripted", "claude"]);
}

#[test]
fn an_agent_without_credentials_is_a_problem_with_the_way_to_sign_in() {
    let mut desk = desk_with_claude();
    desk.unset("ANTHROPIC_API_KEY");
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("agents", "signed in")]), "{report:#}");
    let found = finding(&report, "agents", "signed in");
    assert_eq!(found["what"], "not signed in, as far as can be seen");
    assert!(found["fix"].as_str().expect("a fix").contains("/login"), "{found}");

    let folder = desk.home.path().join(".claude");
    std::fs::create_dir_all(&folder).expect("a folder");
    let settings = folder.join("settings.json");
    std::fs::write(&settings, "{\"apiKeyHelper\": \"print-my-key\"}").expect("settings");
    let by = format!("apiKeyHelper in {}", settings.display());
    assert_eq!(doctor(&desk).1["agents"][0]["signed_in"], json!({"state": "yes", "by": by}));

    let credentials = folder.join(".credentials.json");
    std::fs::write(&credentials, SECRET).expect("credentials");
    let ran = desk.towline(["doctor", "--json"]);
    let by = credentials.display().to_string();
    assert_eq!(ran.json()["agents"][0]["signed_in"], json!({"state": "yes", "by": by}));
    assert!(!ran.stdout.contains(SECRET));
}

#[test]
fn an_agent_that_reports_no_version_is_a_problem_and_an_unknown_version_a_note() {
    let mut desk = Desk::new();
    desk.set("ANTHROPIC_API_KEY", SECRET);
    let script = |text: &str| {
        let path = desk.home.path().join("claude");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("executable");
        desk.configure(&format!("agents.claude.command = [{:?}]", path.display().to_string()));
        doctor(&desk)
    };
    let (code, report) = script("echo \"$ANTHROPIC_API_KEY\" >&2; exit 3");
    assert_eq!((code, problems(&report)), (Some(4), vec![("agents", "version")]), "{report:#}");
    assert!(!report.to_string().contains(SECRET), "{report:#}");

    for (printed, version, covers) in [
        ("9.0.1 (Claude Code)", json!("9.0.1"), json!(false)),
        ("2.0.0 (Claude Code)", json!("2.0.0"), json!(false)),
        ("something else", Value::Null, Value::Null),
    ] {
        let (code, report) = script(&format!("echo '{printed}'"));
        assert_eq!((code, problems(&report)), (Some(0), vec![]), "{report:#}");
        finding(&report, "agents", "version");
        let agent = &report["agents"][0];
        assert_eq!((&agent["version"], &agent["tested"]["covers"]), (&version, &covers));
    }
}

#[test]
fn a_broken_configuration_is_reported_with_its_fix_and_hides_nothing_else() {
    let desk = desk_with_claude();
    desk.project.write("towline.toml", "[agents.claude]\nmodle = \"opus\"\n");
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("configuration", "error")]), "{report:#}");
    let error = &report["configuration"]["errors"][0];
    assert_eq!(error["what"], "unknown key `agents.claude.modle`");
    assert_eq!(error["fix"], "did you mean `agents.claude.model`?");
    assert_eq!(report["agents"][0]["version"], CLAUDE, "{report:#}");
    assert!(report["git"]["head"].is_string());

    desk.project.write("towline.toml", "this is not TOML");
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("configuration", "error")]), "{report:#}");
    assert_eq!(report["agents"][0]["version"], CLAUDE, "{report:#}");

    desk.project.write("towline.toml", b"model = \"\xff\"");
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("configuration", "repository")]), "{report:#}");
}

#[test]
fn every_layer_is_named_with_what_it_sets() {
    let mut desk = desk_with_claude();
    desk.project
        .write("towline.toml", "budget.turns = 7\n[[checks]]\nname = \"tests\"\nrun = \"make test\"\n");
    desk.set("TOWLINE_SET_agents__claude__model", "opus");
    let (_, report) = doctor(&desk);
    let configuration = &report["configuration"];
    let layers: Vec<_> = configuration["layers"]
        .as_array()
        .expect("layers")
        .iter()
        .map(|layer| (layer["layer"].clone(), layer["state"].clone()))
        .collect();
    let expected =
        ["defaults", "user", "repository", "environment"].map(|layer| (json!(layer), json!("read")));
    assert_eq!(layers, expected);
    let file = desk.project.path().join("towline.toml").display().to_string();
    let setting = |key: &str, value: &str, layer: &str| {
        let path = (layer == "repository").then_some(&file);
        json!({"key": key, "value": value, "layer": layer, "path": path})
    };
    let settings = configuration["settings"].as_array().expect("settings");
    for expected in [
        setting("budget.attempts", "10", "defaults"),
        setting("budget.turns", "7", "repository"),
        setting("checks", "[\"tests\"]", "repository"),
        setting("agents.claude.model", "\"opus\"", "environment"),
    ] {
        assert!(settings.contains(&expected), "no {expected} in {configuration:#}");
    }
    let text = desk.towline(["doctor"]).stdout;
    assert!(text.lines().any(|line| line.trim() == "budget.turns = 7"), "{text}");
}

#[test]
fn outside_of_a_repository_that_is_reported_and_the_rest_is_checked() {
    let desk = desk_with_claude();
    let outside = desk.home.path();
    let in_outside = |args: &[&str]| {
        let mut command = desk.command(args);
        Ran::from(command.current_dir(&outside).output().expect("towline runs"))
    };
    let ran = in_outside(&["doctor", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, problems(&report)), (Some(4), vec![("git", "repository")]), "{report:#}");
    let fix = finding(&report, "git", "repository")["fix"].as_str().expect("a fix");
    assert!(fix.contains("git init"), "{fix}");
    assert_eq!(report["agents"][0]["version"], CLAUDE);

    // A repository in which nothing was ever committed is no better.
    desk.project.git(["init", "--quiet", &outside.display().to_string()]);
    let report = in_outside(&["doctor", "--json"]).json();
    assert_eq!(problems(&report), [("git", "repository")]);
    assert_eq!(
        (&report["git"]["repository"], &report["git"]["head"]),
        (&json!(outside.display().to_string()), &Value::Null)
    );
}

#[test]
fn frames_that_were_not_understood_are_counted_by_agent_and_kind() {
    let desk = desk_with_script(
        "step = [{ raw = \"what is this\" }, { raw = \"{\\\"kind\\\": \\\"novelty\\\"}\" }, { say = \"Hi.\" }]",
    );
    let ran = desk.towline(["run", "greet", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let before = all_of(&desk);
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(0), vec![]), "{report:#}");
    assert_eq!(all_of(&desk), before, "it left something behind");
    let listed = desk.towline(["ls"]).stdout;
    let short = listed.lines().nth(1).and_then(|line| line.split(' ').next()).expect("a goal");
    assert_eq!(
        report["frames_not_understood"],
        json!([{"agent": "scripted", "total": 2, "kinds": {"not an event": 2}, "goal": short, "attempt": 1}])
    );
    let found = finding(&report, "agents", "frames");
    assert_eq!((&found["agent"], &found["level"]), (&json!("scripted"), &json!("note")));
    assert!(
        found["fix"].as_str().expect("a fix").contains(&format!("towline logs {short} --raw")),
        "{found}"
    );
    assert_eq!(report["store"]["goals"], json!({"done": 1}));
    let text = desk.towline(["doctor"]).stdout;
    assert!(text.contains("! frames       2 frames were not understood: not an event (2)"), "{text}");
    // What an agent reported still counts when it is not configured any more.
    desk.configure("agents.claude.command = [\"no-such-claude\"]");
    let (_, report) = doctor(&desk);
    assert_eq!(finding(&report, "agents", "frames")["agent"], "scripted");
}

#[test]
fn an_open_question_and_a_goal_that_no_engine_runs_are_named_with_their_commands() {
    let ask = json!({"towline": "ask", "question": "Which colour?", "options": ["Red", "Blue"]}).to_string();
    let desk = desk_with_script(&format!("step = [{{ say = {ask:?} }}]"));
    let mut towline = desk.start(["run", "paint the door", "--check", "false", "--json"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    let (code, report) = doctor(&desk);
    assert_eq!((code, findings(&report, "note")), (Some(0), vec![("store", "question")]), "{report:#}");
    let question = &report["store"]["questions"][0];
    assert_eq!((&question["question"], &question["text"]), (&json!(1), &json!("Which colour?")));
    let short = question["goal"].as_str().expect("an id");
    assert_eq!(finding(&report, "store", "question")["fix"], json!(format!("towline answer {short} …")));

    towline.kill().expect("killed");
    finish(towline);
    let (code, report) = doctor(&desk);
    let notes = vec![("store", "left"), ("store", "question")];
    assert_eq!((code, findings(&report, "note")), (Some(0), notes), "{report:#}");
    assert_eq!(
        report["store"]["left"],
        json!([{"goal": short, "title": "paint the door", "phase": "blocked"}])
    );
    assert_eq!(finding(&report, "store", "left")["fix"], json!(format!("towline run --goal {short}")));
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn a_store_that_cannot_be_read_is_a_problem_and_stays_as_it_is() {
    let mut desk = desk_with_claude();
    desk.leaves_nothing_to_replay("its database is none");
    let database = desk.home.towline().join("towline.db");
    std::fs::write(&database, "no database at all, though long enough to be looked at. ".repeat(20))
        .expect("a file");
    let before = std::fs::read(&database).expect("a file");
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("store", "state")]), "{report:#}");
    assert_eq!(std::fs::read(&database).expect("a file"), before);
    assert_eq!(report["agents"][0]["version"], CLAUDE);
}

#[test]
fn without_a_home_there_is_no_place_for_state_and_the_rest_is_reported() {
    let mut desk = desk_with_claude();
    for variable in ["HOME", "TOWLINE_HOME", "XDG_STATE_HOME"] {
        desk.unset(variable);
    }
    let (code, report) = doctor(&desk);
    assert_eq!((code, problems(&report)), (Some(4), vec![("store", "state")]), "{report:#}");
    assert_eq!(report["store"]["path"], Value::Null);
}

#[test]
fn no_secret_is_printed() {
    let mut desk = desk_with_claude();
    desk.unset("ANTHROPIC_API_KEY");
    desk.set("CLAUDE_CODE_OAUTH_TOKEN", SECRET);
    desk.set("MY_TOKEN", SECRET);
    desk.set("TOWLINE_SET_agents__claude__env__OTHER", SECRET);
    desk.agent_settings(&format!(
        "env = {{ ANTHROPIC_AUTH_TOKEN = \"{SECRET}\" }}\npass_env = [\"MY_TOKEN\"]\n\
         mcp = {{ docs = {{ command = [\"docs\", \"--key={SECRET}\"] }} }}\n\
         [notify]\nwebhook = \"https://example.org/{SECRET}\""
    ));
    for args in [&["doctor"][..], &["doctor", "--json"]] {
        let ran = desk.towline(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
        for name in ["agents.claude.env.ANTHROPIC_AUTH_TOKEN", "agents.claude.env.OTHER", "notify.webhook"] {
            assert!(ran.stdout.contains(name), "no {name} in {}", ran.stdout);
        }
    }
    // What is wrong with a secret does not make it less of one.
    desk.project.write("towline.toml", format!("[agents.claude.env]\nTOKEN = [\"{SECRET}\"]\n"));
    let ran = desk.towline(["doctor"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
}

#[test]
fn root_which_claude_code_refuses_is_a_problem_with_a_fix() {
    let mut desk = desk_with_claude();
    let (code, _) = doctor(&desk);
    assert_eq!(code, Some(0));
    desk.set("IS_SANDBOX", "0");
    let (code, report) = doctor(&desk);
    if rustix::process::getuid().is_root() {
        assert_eq!((code, problems(&report)), (Some(4), vec![("agents", "permission")]), "{report:#}");
        let fix = finding(&report, "agents", "permission")["fix"].as_str().expect("a fix");
        assert!(fix.contains("permission = \"ask\""), "{fix}");
    } else {
        assert_eq!(code, Some(0), "{report:#}");
    }
}

#[test]
fn a_program_that_fails_at_once_is_still_asked_for_its_version_only() {
    let mut desk = Desk::with_script(exits_at_once);
    desk.set("ANTHROPIC_API_KEY", SECRET);
    let (code, report) = doctor(&desk);
    assert_eq!((code, &report["agents"][0]["version"]), (Some(0), &json!("2.1.197")), "{report:#}");
}

#[test]
fn what_stops_the_server_is_a_problem_before_it_is_started() {
    use std::os::unix::fs::PermissionsExt;
    let mut desk = Desk::new();
    desk.leaves_nothing_to_replay("no goal starts");
    desk.configure("[notify]\nwebhook = \"http://127.0.0.1:9/\"\nsecret_env = \"HOOK_SECRET\"\n");
    let (_, report) = doctor(&desk);
    let webhooks = finding(&report, "configuration", "webhooks");
    assert_eq!(
        (&webhooks["level"], &webhooks["what"]),
        (&json!("problem"), &json!("cannot be signed: HOOK_SECRET is not set"))
    );
    let up = desk.towline(["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(up.code, Some(2), "{up:?}");
    assert!(up.stderr.contains("webhooks cannot be signed: HOOK_SECRET is not set"), "{up:?}");

    let file = desk.home.config().join("towline/env");
    std::fs::write(&file, "HOOK_SECRET=hush\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let (_, report) = doctor(&desk);
    let found = finding(&report, "configuration", "env file");
    assert_eq!(found["fix"], json!(format!("run: chmod 600 {}", file.display())), "{report:#}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let (_, report) = doctor(&desk);
    assert!(problems(&report).iter().all(|(section, _)| *section != "configuration"), "{report:#}");
}
