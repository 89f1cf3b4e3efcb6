//! The pinned agents in their simplest mode, one prompt and one answer, against the scripted model.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use towline_testkit::agents::{AgentCli, shell_call, write_call};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, Usage, WireFormat};
use towline_testkit::scratch::{Home, Project, clean_command, wait_for_some, wait_until_process_tree_gone};

/// Far more than they need, for a machine under load.
const LIMIT: Duration = Duration::from_secs(120);

/// What an agent printed, line by line, and how it ended.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    frames: Vec<Value>,
    errors: String,
}

/// Runs the agent to its end, with its output in files: one of them cuts what it writes to a pipe.
fn run(agent: AgentCli, home: &Home, project: &Project, server: &ModelServer, prompt: &str) -> Ran {
    let [input, output, errors] = ["in", "out", "err"].map(|name| home.path().join(name));
    fs::write(&input, prompt).expect("written");
    let mut child = one_shot(agent, project.path())
        .env_clear()
        .envs(agent.prepare(&home.path(), &server.url()))
        .current_dir(project.path())
        .stdin(File::open(&input).expect("opened"))
        .stdout(File::create(&output).expect("created"))
        .stderr(File::create(&errors).expect("created"))
        .spawn()
        .expect("the agent starts");
    let what = format!("{} to end", agent.name());
    let ended = wait_for_some(LIMIT, &what, || child.try_wait().expect("waited"));
    wait_until_process_tree_gone(&home.marker(), LIMIT);
    let printed = fs::read_to_string(&output).expect("read");
    Ran {
        code: ended.code(),
        frames: printed.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect(),
        errors: fs::read_to_string(&errors).expect("read"),
    }
}

/// The prompt comes on stdin.
fn one_shot(agent: AgentCli, project: &Path) -> Command {
    let mut command = clean_command(agent.program());
    match agent {
        AgentCli::Claude | AgentCli::OlderClaude => command
            .args(["-p", "--output-format", "stream-json", "--verbose"])
            .args(["--permission-mode", "bypassPermissions"]),
        AgentCli::Codex => command
            .args(["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-C"])
            .arg(project)
            .arg("-"),
        AgentCli::Gemini => command.args(["-o", "stream-json", "--approval-mode", "yolo"]),
        AgentCli::Opencode => command.args(["run", "--format", "json", "--auto", "--dir"]).arg(project),
    };
    command.stdin(Stdio::null());
    command
}

/// The agent's last message, from its own output.
fn last_text(agent: AgentCli, frames: &[Value]) -> String {
    let mut texts = frames.iter().filter_map(|frame| match agent {
        AgentCli::Claude | AgentCli::OlderClaude => frame["result"].as_str(),
        AgentCli::Codex => frame["item"]["text"].as_str(),
        AgentCli::Gemini => frame["content"].as_str().filter(|_| frame["role"] == "assistant"),
        AgentCli::Opencode => frame["part"]["text"].as_str(),
    });
    match agent {
        AgentCli::Gemini => texts.collect(),
        _ => texts.next_back().unwrap_or_default().to_owned(),
    }
}

/// The usage of the whole run, as the agent's own output reports it.
fn reported_usage_of(agent: AgentCli, frames: &[Value]) -> Usage {
    let usages = frames.iter().filter_map(|frame| {
        let count = |path: &str| frame.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        match agent {
            AgentCli::Claude | AgentCli::OlderClaude => frame.pointer("/usage").map(Usage::from_json),
            AgentCli::Codex => frame.pointer("/usage/input_tokens").map(|_| {
                let (cache_read, cache_creation) =
                    (count("/usage/cached_input_tokens"), count("/usage/cache_write_input_tokens"));
                Usage {
                    input: count("/usage/input_tokens") - cache_read - cache_creation,
                    output: count("/usage/output_tokens"),
                    cache_read,
                    cache_creation,
                }
            }),
            AgentCli::Gemini => frame.pointer("/stats").map(|_| Usage {
                input: count("/stats/input"),
                output: count("/stats/output_tokens"),
                cache_read: count("/stats/cached"),
                cache_creation: 0,
            }),
            AgentCli::Opencode => frame.pointer("/part/tokens").map(|_| Usage {
                input: count("/part/tokens/input"),
                output: count("/part/tokens/output"),
                cache_read: count("/part/tokens/cache/read"),
                cache_creation: count("/part/tokens/cache/write"),
            }),
        }
    });
    usages.sum()
}

fn format_of(agent: AgentCli) -> WireFormat {
    match agent {
        AgentCli::Claude | AgentCli::OlderClaude => WireFormat::Anthropic,
        AgentCli::Codex => WireFormat::OpenAiResponses,
        AgentCli::Gemini => WireFormat::Gemini,
        AgentCli::Opencode => WireFormat::OpenAiChat,
    }
}

/// A text is answered; then, in another run, a shell command and an edit are made and reported back. Returns what the
/// agent printed in that run.
fn holds_for(agent: AgentCli) -> Vec<Value> {
    let (home, project) = (Home::new(), Project::new());
    let first = Usage { input: 120, output: 31, cache_read: 7, cache_creation: 0 };
    let second = Usage { input: 240, output: 17, cache_read: 11, cache_creation: 0 };
    let third = Usage { input: 360, output: 5, cache_read: 13, cache_creation: 0 };
    let written = project.path().join("written.txt");
    let server = ModelServer::start([
        Rule::when(Matcher::prompt_contains("make the files"))
            .reply(
                shell_call(agent, "echo made-by-tool | tee out.txt").with_text("Making them.").usage(first),
            )
            .then(write_call(agent, &written, "by the editor\n").usage(second))
            .then(Reply::text("The files are made.").usage(third)),
        Rule::when(Matcher::prompt_contains("greet me")).reply(Reply::text("Hello to you.").usage(first)),
    ]);

    let hello = run(agent, &home, &project, &server, "Please greet me");
    assert_eq!(hello.code, Some(0), "{}{hello:#?}", hello.errors);
    assert_eq!(last_text(agent, &hello.frames), "Hello to you.", "{hello:#?}");
    assert_eq!(reported_usage_of(agent, &hello.frames), first, "{hello:#?}");

    let made = run(agent, &home, &project, &server, "Please make the files");
    assert_eq!(made.code, Some(0), "{}{made:#?}", made.errors);
    assert!(last_text(agent, &made.frames).ends_with("The files are made."), "{made:#?}");
    assert_eq!(project.read("out.txt"), "made-by-tool\n");
    assert_eq!(project.read("written.txt"), "by the editor\n");
    assert_eq!(reported_usage_of(agent, &made.frames), first + second + third, "{made:#?}");

    let turns = server.turns();
    let formats: Vec<_> = turns.iter().map(|turn| turn.format).collect();
    assert_eq!(formats, [Some(format_of(agent)); 4], "{turns:#?}");
    let results: Vec<_> = turns.iter().map(|turn| turn.tool_results().len()).collect();
    assert_eq!(results, [0, 0, 1, 1], "{turns:#?}");
    assert!(turns[0].prompt_text().contains("Please greet me"), "{}", turns[0].prompt_text());
    let output = turns[2].tool_results().remove(0);
    assert!(output.text.contains("made-by-tool") && !output.is_error, "{output:?}");
    assert!(turns[3].all_text().contains("Please make the files"), "{}", turns[3].all_text());
    made.frames
}

#[test]
fn claude_answers_and_uses_its_tools() {
    holds_for(AgentCli::Claude);
}

#[test]
fn an_older_claude_answers_and_uses_its_tools() {
    holds_for(AgentCli::OlderClaude);
}

#[test]
fn codex_answers_and_uses_its_tools() {
    let frames = holds_for(AgentCli::Codex);
    let kinds: Vec<_> = frames
        .iter()
        .filter(|frame| frame["type"] == "item.completed")
        .filter_map(|frame| frame["item"]["type"].as_str())
        .filter(|kind| *kind != "error")
        .collect();
    assert_eq!(kinds, ["agent_message", "command_execution", "file_change", "agent_message"], "{frames:#?}");
}

#[test]
fn gemini_answers_and_uses_its_tools() {
    holds_for(AgentCli::Gemini);
}

#[test]
fn opencode_answers_and_uses_its_tools() {
    holds_for(AgentCli::Opencode);
}

/// An agent that gets `reply` gives up at once with a message that contains `expected`.
fn gives_up(agent: AgentCli, reply: Reply, expected: &str) {
    let (home, project) = (Home::new(), Project::new());
    let server = ModelServer::start(Rule::always().reply(reply));
    let ran = run(agent, &home, &project, &server, "Please greet me");
    assert!(ran.code.is_some_and(|code| code != 0), "{ran:#?}");
    let last = ran.frames.last().expect("a line").to_string();
    assert!(last.contains(expected), "{ran:#?}");
    assert_eq!(server.turns().len(), 1, "{ran:#?}");
}

#[test]
fn failures_are_understood_by_the_agents_they_are_worded_for() {
    let too_long = Reply::failed_stream("context_length_exceeded", "scripted: too long");
    gives_up(AgentCli::Codex, too_long, "ran out of room");
    gives_up(AgentCli::Codex, Reply::rate_limited().code("usage_limit_reached"), "hit your usage limit");
    let daily = Reply::rate_limited().code("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    gives_up(AgentCli::Gemini, daily, "exhausted your daily quota");
    gives_up(AgentCli::Opencode, Reply::unauthorized(), "scripted: invalid API key");
}
