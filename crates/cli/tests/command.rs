//! Programs that are no more than programs, driven by the real one.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, finish, of_attempts};
use towline_testkit::agents::AgentCli;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";

/// Keeps each prompt, and writes the right word once it hears of a failed check.
const WORK: &str = r#"
case "$prompt" in
    *'Checks that failed'*) echo towline > motto.txt; echo 'Corrected.' ;;
    *) echo tugboat > motto.txt; printf '\033[1mWritten.\033[0m\n' ;;
esac
"#;

/// A desk whose only agent is a shell script. `$home` is a place to keep things, `$n` counts its runs.
fn desk(body: &str, settings: &str) -> Desk {
    let desk = Desk::new();
    let home = desk.home.path();
    let script = home.join("agent.sh");
    let counted = "n=$(($(cat \"$home/runs\" 2>/dev/null || echo 0) + 1)); echo $n > \"$home/runs\"";
    let text = format!("#!/bin/sh\nhome='{}'\n{counted}\n{body}", home.display());
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("an executable");
    let command = script.display().to_string();
    desk.configure(&format!(
        "defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"command\"\n{}\n",
        settings.replace("SCRIPT", &format!("{command:?}"))
    ));
    desk
}

fn run(desk: &Desk) -> (Ran, Value) {
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    let report = ran.json();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report["phase"], "done", "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
    (ran, report)
}

fn written(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.home.path().join(name)).expect("what the agent wrote")
}

fn directory(report: &Value, attempt: usize) -> PathBuf {
    Path::new(report["attempts"][attempt]["dir"].as_str().expect("a directory")).to_owned()
}

#[test]
fn what_a_program_does_not_report_is_unknown_and_not_zero() {
    let desk = desk(&format!("prompt=$(cat)\n{WORK}"), "command = [SCRIPT]");
    let (_, report) = run(&desk);
    let unknown = json!({
        "input": null, "output": null, "cache_read": null, "cache_write": null,
        "cost_usd": null, "estimated": false, "partial": false,
    });
    assert_eq!(
        (&report["usage"], of_attempts(&report, "usage")),
        (&unknown, vec![unknown.clone(), unknown.clone()])
    );
    let goal = report["id"].as_str().expect("an id");
    let shown = ["show", "ls", "logs"].map(|command| {
        let arguments = [command, goal];
        desk.towline(&arguments[..if command == "ls" { 1 } else { 2 }]).stdout
    });
    for (text, wanted) in shown.iter().zip(["usage unknown", "unknown", "usage unknown"]) {
        assert!(text.contains(wanted) && !text.contains("0 tokens") && !text.contains("$0"), "{text}");
    }
}

#[test]
fn a_red_check_reaches_the_program_on_its_standard_input_and_then_the_goal_is_done() {
    let body =
        format!("prompt=$(cat); printf '%s' \"$prompt\" > \"$home/prompt.$n\"\n{WORK}echo 'Cost: $0.25'");
    let desk = desk(&body, "command = [SCRIPT]\ncost_pattern = 'Cost: (.+)'");
    let (_, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "turns"), [1, 1]);
    assert_eq!(of_attempts(&report, "text"), ["Written.\nCost: $0.25", "Corrected.\nCost: $0.25"]);
    // Each attempt is a new conversation, so the prompt has the goal again, with the findings.
    assert_eq!(of_attempts(&report, "resumed"), [false, false]);
    let second = written(&desk, "prompt.2");
    for wanted in [PROMPT, "Checks that failed", "looking for the motto\n", "exit code 1"] {
        assert!(second.contains(wanted), "no {wanted:?} in {second}");
    }
    assert_eq!(report["usage"]["cost_usd"], json!(0.5));
    let candidate = report["candidate"].as_str().expect("a candidate");
    assert_eq!(desk.project.git(["show", &format!("{candidate}:motto.txt")]).trim(), "towline");
}

#[test]
fn a_conversation_is_continued_and_the_prompt_read_from_a_file_of_the_owner_alone() {
    let body = format!(
        "prompt=$(cat \"$1\"); shift; echo \"$@\" > \"$home/arguments.$n\"\necho 'session: s-7'\n\
         cat > \"$home/stdin.$n\"\n{WORK}"
    );
    let settings = "command = [SCRIPT, \"{prompt_file}\"]\nprompt = \"file\"\n\
                    resume = [\"--resume\", \"{session}\"]\nsession_pattern = \"^session: (.+)$\"";
    let desk = desk(&body, settings);
    let (_, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "session"), ["s-7", "s-7"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    assert_eq!([written(&desk, "arguments.1"), written(&desk, "arguments.2")], ["\n", "--resume s-7\n"]);
    assert_eq!(written(&desk, "stdin.1"), "");
    let file = directory(&report, 1).join("prompt.txt");
    let mode = std::fs::metadata(&file).expect("the prompt's file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = std::fs::read_to_string(file).expect("the prompt");
    assert!(second.contains("Checks that failed") && !second.contains(PROMPT), "{second}");
}

#[test]
fn a_program_that_lost_its_session_gets_a_new_one_that_gets_everything() {
    let body = format!(
        "if [ \"$1\" = --resume ]; then echo 'no such session' >&2; exit 1; fi\necho \"session: s-$n\"\n\
         prompt=$(cat); printf '%s' \"$prompt\" > \"$home/prompt.$n\"\n{WORK}"
    );
    for resume in [
        "resume = [\"--resume\"]",
        "resume = [\"--resume\", \"{session}\"]\nsession_pattern = \"^session: (.+)$\"",
    ] {
        let desk = desk(&body, &format!("command = [SCRIPT]\n{resume}"));
        let (_, report) = run(&desk);
        assert_eq!(of_attempts(&report, "end"), ["completed", "crashed", "crashed", "completed"], "{report}");
        let last = written(&desk, "prompt.4");
        assert!(last.contains(PROMPT) && last.contains("# Checks that failed"), "{last}");
        let events = desk.events(report["id"].as_str().expect("an id"));
        let notice = "it was resumed twice in a row, and the agent crashed each time";
        assert!(events.iter().any(|event| event["event"]["text"].to_string().contains(notice)), "{events:?}");
    }
}

/// The first run ends so, after it has left half of the work; the next one does it.
fn assert_crash_is_survived(ending: &str, wanted: &str) {
    let body = format!(
        "cat > /dev/null\nif [ $n = 1 ]; then echo begun; echo 'the sky fell' >&2; {ending}; fi\n\
         echo towline > motto.txt"
    );
    let desk = desk(&body, "command = [SCRIPT]");
    let (_, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    assert_eq!(report["attempts"][0]["detail"], wanted);
}

#[test]
fn an_exit_with_an_error_is_a_crash_with_its_code_and_its_last_words() {
    assert_crash_is_survived("exit 1", "exit code 1: the sky fell");
}

#[test]
fn a_program_that_is_killed_has_not_completed() {
    assert_crash_is_survived("kill -9 $$", "ended by signal 9: the sky fell");
}

#[test]
fn a_prompt_in_the_arguments_works_and_is_warned_of() {
    let body = format!("prompt=$2\n{WORK}");
    let desk = desk(&body, "command = [SCRIPT, \"-m\", \"{prompt}\"]\nprompt = \"argument\"");
    let (ran, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert!(ran.stderr.contains("`agents.mine.prompt` shows the prompt to everybody"), "{}", ran.stderr);
}

/// Refuses to work unless all is as in a terminal of this size.
const IN_TERMINAL: &str = "for fd in 0 1 2; do test -t $fd || exit 9; done; stty size > \"$home/size\"\n";

#[test]
fn a_program_in_a_terminal_gets_its_whole_prompt_and_reaches_the_goal() {
    let body = format!("{IN_TERMINAL}prompt=$(cat); printf '%s' \"$prompt\" > \"$home/prompt.$n\"\n{WORK}");
    let desk = desk(&body, "command = [SCRIPT]\nterminal = true\nrows = 50");
    let (_, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "text"), ["Written.", "Corrected."]);
    assert_eq!(written(&desk, "size"), "50 120\n");
    for attempt in [0, 1] {
        let prompt =
            std::fs::read_to_string(directory(&report, attempt).join("stdin.log")).expect("a prompt");
        assert_eq!(written(&desk, &format!("prompt.{}", attempt + 1)), prompt.trim_end());
    }
}

#[test]
fn a_program_in_a_terminal_that_fails_has_the_reason_in_its_last_line() {
    let body =
        "if [ $n = 1 ]; then echo begun; echo 'the sky fell' >&2; exit 1; fi\necho towline > motto.txt";
    let desk = desk(body, "command = [SCRIPT]\nterminal = true");
    let (_, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    assert_eq!(report["attempts"][0]["detail"], "exit code 1: the sky fell");
}

#[test]
fn a_program_in_a_terminal_is_adopted_after_towline_was_killed() {
    let body = format!(
        "{IN_TERMINAL}cat > /dev/null; echo begun; touch \"$home/begun\"\n\
         while ! test -e \"$home/go\"; do sleep 0.05; done; echo towline > motto.txt; echo Written."
    );
    let desk = desk(&body, "command = [SCRIPT]\nterminal = true");
    let mut towline = desk.start(["run", PROMPT, "--check", CHECK, "--json"]);
    wait_for(LIMIT, "the program to begin", || desk.home.path().join("begun").exists());
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    let goal = desk.only_goal();
    let towline = desk.start(["run", "--goal", &goal, "--json"]);
    std::fs::write(desk.home.path().join("go"), "").expect("a sign");
    let report = finish(towline).json();
    assert_eq!(report["phase"], "done", "{report}");
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(of_attempts(&report, "text"), ["begun\nWritten."]);
    assert_eq!(written(&desk, "runs"), "1\n");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn claude_code_as_a_plain_program_in_a_terminal_reaches_the_goal() {
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command, "description": "do it"}));
    let corrects = Matcher::any_text_contains("# Checks that failed");
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result().and(corrects.clone())).reply(Reply::text("Corrected.")),
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("The motto is written.")),
        Rule::when(corrects).reply(bash("echo towline > motto.txt")),
        Rule::always().reply(bash("echo tugboat > motto.txt")),
    ]);
    let desk = Desk::with_agents(&[AgentCli::Claude], &model);
    let claude = AgentCli::Claude.program().display().to_string();
    let names: Vec<String> = desk.variables().iter().map(|(name, _)| name.clone()).collect();
    desk.configure(&format!(
        "defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"command\"\nterminal = true\npass_env = {names:?}\n\
         prompt = \"argument\"\n\
         command = [{claude:?}, \"-p\", \"{{prompt}}\", \"--permission-mode\", \"bypassPermissions\"]\n"
    ));
    let (_, report) = run(&desk);
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "exit_code"), [0, 0]);
    assert_eq!(of_attempts(&report, "text"), ["The motto is written.", "Corrected."]);
    let candidate = report["candidate"].as_str().expect("a candidate");
    assert_eq!(desk.project.git(["show", &format!("{candidate}:motto.txt")]).trim(), "towline");
}
