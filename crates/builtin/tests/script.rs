//! The events of each step, and which turn a conversation plays.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use towline_builtin::script::{Played, ScriptArgs, ScriptError, main};
use towline_core::{
    AgentEvent, MicroUsd, Role, SessionId, SessionPlan, SessionStarted, Tokens, ToolKind, ToolStatus,
    ToolUse, TurnEnd, TurnStop, Usage,
};

/// A script in a folder, and another folder to work in.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new(script: &str) -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(stage.script(), script).unwrap();
        fs::create_dir(stage.cwd()).unwrap();
        stage
    }

    fn script(&self) -> PathBuf {
        self.folder.path().join("script.toml")
    }

    fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn play(&self, session: SessionPlan, stdin: &str) -> (Result<Played, ScriptError>, String) {
        let args = ScriptArgs { script: self.script(), session, state: self.folder.path().join("state") };
        let mut stdout = Vec::new();
        let played = main(&args, stdin.as_bytes(), &mut stdout, &self.cwd());
        (played, String::from_utf8(stdout).unwrap())
    }

    /// Plays a turn of the conversation `s` and returns the events after the start of the turn.
    fn turn(&self, session: fn(SessionId) -> SessionPlan, prompt: &str) -> (Played, Vec<AgentEvent>) {
        let session = session(SessionId::new("s"));
        let resumed = matches!(session, SessionPlan::Resume(_));
        let (played, stdout) = self.play(session, &json!({"prompt": prompt}).to_string());
        let mut events: Vec<AgentEvent> =
            stdout.lines().map(|line| serde_json::from_str(line).expect("every line is an event")).collect();
        let rest = events.split_off(2);
        assert_eq!(events, [started(resumed), AgentEvent::TurnStarted]);
        (played.unwrap(), rest)
    }

    /// The text at the end of the next turn.
    fn final_text(&self, session: fn(SessionId) -> SessionPlan, prompt: &str) -> String {
        match self.turn(session, prompt).1.pop() {
            Some(AgentEvent::TurnEnded(end)) => end.text,
            other => panic!("the turn ended with {other:?}"),
        }
    }
}

fn started(resumed: bool) -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: SessionId::new("s"),
        resumed,
        model: None,
        agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    })
}

fn ended(stop: TurnStop, text: &str, reported_cost: Option<MicroUsd>) -> AgentEvent {
    AgentEvent::TurnEnded(TurnEnd {
        stop,
        text: text.into(),
        structured: None,
        inner_turns: None,
        reported_cost,
    })
}

fn tool(id: &str, tool: ToolKind, name: &str, title: &str, status: ToolStatus) -> ToolUse {
    ToolUse {
        id: id.into(),
        tool,
        name: name.into(),
        title: title.into(),
        status,
        input: None,
        output: None,
        exit_code: None,
        paths: Vec::new(),
    }
}

fn read(cwd: &Path, path: &str) -> String {
    fs::read_to_string(cwd.join(path)).unwrap()
}

const COUNTING: &str = "
    [[turn]]
    step = [{ say = 'one' }]
    [[turn]]
    step = [{ say = 'two' }]
";

#[test]
fn messages_thoughts_and_usage_become_events() {
    let stage = Stage::new(
        "[[turn]]
         step = [
             { say = 'hello' }, { think = 'hm' }, { sleep = '1ms' },
             { usage = { input = 1, output = 2, cost_usd = 0.004 } }, { usage = { cost_usd = 0.001 } },
         ]",
    );
    let usage = |used| AgentEvent::Usage { model: None, used, context_used: None, context_size: None };
    let first = Usage { input: Tokens(1), output: Tokens(2), cost: MicroUsd(4_000), ..Usage::default() };
    let events = vec![
        AgentEvent::Message { role: Role::Assistant, text: "hello".into() },
        AgentEvent::Thought { text: "hm".into() },
        usage(first),
        usage(Usage { cost: MicroUsd(1_000), ..Usage::default() }),
        ended(TurnStop::Done, "hello", Some(MicroUsd(5_000))),
    ];
    assert_eq!(stage.turn(SessionPlan::Fresh, "go"), (Played::Done, events));
}

#[test]
fn file_changes_are_reported_before_and_after() {
    let stage = Stage::new(
        "[[turn]]
         step = [
             { write = { path = 'deep/a.txt', text = 'one' } },
             { replace = { path = 'deep/a.txt', from = 'one', to = 'two' } },
             { replace = { path = 'deep/a.txt', from = 'nine', to = 'ten' } },
         ]",
    );
    let (played, events) = stage.turn(SessionPlan::Fresh, "go");
    assert_eq!(read(&stage.cwd(), "deep/a.txt"), "two");

    let paths = || vec!["deep/a.txt".to_owned()];
    let input = json!({"path": "deep/a.txt", "text": "one"});
    let write = ToolUse {
        input: Some(input),
        paths: paths(),
        ..tool("call-1-1", ToolKind::Edit, "write", "Write deep/a.txt", ToolStatus::Running)
    };
    let replace = |id, from, to| ToolUse {
        input: Some(json!({"path": "deep/a.txt", "from": from, "to": to})),
        paths: paths(),
        ..tool(id, ToolKind::Edit, "replace", "Edit deep/a.txt", ToolStatus::Running)
    };
    let done = |call: &ToolUse| AgentEvent::Tool(ToolUse { status: ToolStatus::Ok, ..call.clone() });
    let (found, missing) = (replace("call-1-2", "one", "two"), replace("call-1-3", "nine", "ten"));
    let refused = ToolUse {
        status: ToolStatus::Failed,
        output: Some("the text to replace is not in deep/a.txt: nine".into()),
        ..missing.clone()
    };
    let expected = vec![
        AgentEvent::Tool(write.clone()),
        done(&write),
        AgentEvent::Tool(found.clone()),
        done(&found),
        AgentEvent::Tool(missing),
        AgentEvent::Tool(refused),
        ended(TurnStop::Done, "", None),
    ];
    assert_eq!((played, events), (Played::Done, expected));
}

#[test]
fn a_command_runs_in_the_working_directory_and_its_output_and_exit_code_are_reported() {
    let stage = Stage::new("[[turn]]\nstep = [{ run = 'pwd; echo made > here; exit 7' }]");
    let (played, events) = stage.turn(SessionPlan::Fresh, "go");
    assert_eq!(read(&stage.cwd(), "here"), "made\n");
    let command = "pwd; echo made > here; exit 7";
    let call = ToolUse {
        input: Some(json!({ "command": command })),
        ..tool("call-1-1", ToolKind::Execute, "run", command, ToolStatus::Running)
    };
    let result = ToolUse {
        status: ToolStatus::Failed,
        output: Some(format!("{}\n", stage.cwd().canonicalize().unwrap().display())),
        exit_code: Some(7),
        ..call.clone()
    };
    let expected = vec![AgentEvent::Tool(call), AgentEvent::Tool(result), ended(TurnStop::Done, "", None)];
    assert_eq!((played, events), (Played::Done, expected));
}

#[test]
fn a_failing_turn_ends_as_failed_and_the_rest_is_not_played() {
    let stage = Stage::new("[[turn]]\nstep = [{ fail = 'out of ideas' }, { say = 'never' }]");
    let failed = TurnStop::Failed { status: None, reason: "out of ideas".into() };
    let (played, events) = stage.turn(SessionPlan::Fresh, "go");
    assert_eq!((played, played.exit_code(), events), (Played::Failed, 1, vec![ended(failed, "", None)]));
}

#[test]
fn an_exit_in_mid_turn_ends_without_the_end_of_the_turn() {
    let stage = Stage::new("[[turn]]\nstep = [{ exit = 9 }, { say = 'never' }]");
    let (played, events) = stage.turn(SessionPlan::Fresh, "go");
    assert_eq!((played, played.exit_code(), events), (Played::Exited(9), 9, vec![]));
}

#[test]
fn a_raw_line_is_printed_as_it_is() {
    let stage = Stage::new("[[turn]]\nstep = [{ raw = '{\"kind\": broken' }]");
    let (played, stdout) = stage.play(SessionPlan::Fresh(SessionId::new("s")), "{\"prompt\": \"go\"}\n");
    assert_eq!(played.unwrap(), Played::Done);
    assert_eq!(stdout.lines().nth(2), Some("{\"kind\": broken"));
    assert_eq!(stdout.lines().count(), 4, "{stdout}");
}

#[test]
fn a_resumed_conversation_continues_and_the_last_turn_repeats() {
    let stage = Stage::new(COUNTING);
    assert_eq!(stage.final_text(SessionPlan::Fresh, "go"), "one");
    for _ in 0..3 {
        assert_eq!(stage.final_text(SessionPlan::Resume, "go on"), "two");
    }
    assert_eq!(stage.final_text(SessionPlan::Fresh, "again"), "one");
}

#[test]
fn a_turn_that_failed_counts_as_played() {
    let stage = Stage::new("[[turn]]\nstep = [{ exit = 1 }]\n[[turn]]\nstep = [{ say = 'two' }]");
    assert_eq!(stage.turn(SessionPlan::Fresh, "go").0, Played::Exited(1));
    assert_eq!(stage.final_text(SessionPlan::Resume, "go on"), "two");
}

#[test]
fn a_turn_is_played_only_for_prompts_that_contain_its_text() {
    let stage = Stage::new(
        "[[turn]]\nwhen = 'red'\nstep = [{ say = 'painted red' }]
         [[turn]]\nstep = [{ say = 'painted' }]",
    );
    assert_eq!(stage.final_text(SessionPlan::Fresh, "paint it red"), "painted red");
    assert_eq!(stage.final_text(SessionPlan::Fresh, "paint it"), "painted");
}

#[test]
fn a_prompt_that_no_turn_fits_fails_the_turn() {
    let stage = Stage::new("[[turn]]\nwhen = 'red'");
    let failed = TurnStop::Failed { status: None, reason: "no turn of the script fits this prompt".into() };
    let played = stage.turn(SessionPlan::Fresh, "paint it blue");
    assert_eq!(played, (Played::Failed, vec![ended(failed, "", None)]));
}

#[test]
fn an_unknown_conversation_is_not_resumed_and_nothing_is_printed() {
    let stage = Stage::new(COUNTING);
    let (played, stdout) =
        stage.play(SessionPlan::Resume(SessionId::new("unknown")), "{\"prompt\": \"go\"}\n");
    let message = played.unwrap_err().to_string();
    assert!(message.starts_with("no conversation found"), "{message}");
    assert_eq!(stdout, "");
}

#[test]
fn without_a_prompt_nothing_is_played() {
    let stage = Stage::new(COUNTING);
    for stdin in ["", "go\n", "{}\n"] {
        let (played, stdout) = stage.play(SessionPlan::Fresh(SessionId::new("s")), stdin);
        let message = played.unwrap_err().to_string();
        assert!(message.contains("{\"prompt\": \"…\"}"), "{message}");
        assert_eq!(stdout, "");
    }
    let (resumed, _) = stage.play(SessionPlan::Resume(SessionId::new("s")), "{\"prompt\": \"go\"}\n");
    assert!(matches!(resumed, Err(ScriptError::NoConversation { .. })), "{resumed:?}");
}

#[test]
fn a_script_that_is_missing_or_wrong_is_named() {
    let stage = Stage::new("[[turn]]\nstep = [{ shout = 'a' }]");
    let session = || SessionPlan::Fresh(SessionId::new("s"));
    let wrong = stage.play(session(), "{\"prompt\": \"go\"}\n").0.unwrap_err().to_string();
    assert!(wrong.contains("script.toml") && wrong.contains("`shout`"), "{wrong}");
    fs::remove_file(stage.script()).unwrap();
    let missing = stage.play(session(), "{\"prompt\": \"go\"}\n").0.unwrap_err().to_string();
    assert!(missing.contains("cannot read the script") && missing.contains("script.toml"), "{missing}");
}

#[test]
fn progress_is_stored_where_git_ignores_it() {
    let stage = Stage::new(COUNTING);
    stage.final_text(SessionPlan::Fresh, "go");
    let folder = stage.folder.path().join("state");
    assert_eq!(read(&folder, ".gitignore"), "*\n");
    assert!(folder.join("s.json").is_file());
}
