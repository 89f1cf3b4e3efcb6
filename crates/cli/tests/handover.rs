//! One agent cannot go on and the next one does, with the real Claude Code and the real Codex against one scripted
//! model.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::{Desk, LIMIT, of_attempts};
use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, WireFormat};
use towline_testkit::scratch::wait_until_process_tree_gone;

const PROMPT: &str = "Write the words towline and tugboat into the file motto.txt";
const CHECK: &str = "grep -x towline motto.txt && grep -x tugboat motto.txt";

fn speaks(format: WireFormat) -> Matcher {
    Matcher::new(move |request| request.format == Some(format))
}

fn desk_with_both(model: &ModelServer) -> Desk {
    let desk = Desk::with_agents(&[AgentCli::Claude, AgentCli::Codex], model);
    let agent = |cli: AgentCli| {
        format!(
            "[agents.{0}]\nkind = \"{0}\"\ncommand = [{1:?}]\n",
            cli.name(),
            cli.program().display().to_string()
        )
    };
    let agents = [AgentCli::Claude, AgentCli::Codex].map(agent).join("\n");
    desk.configure(&format!("[defaults]\nagents = [\"claude\", \"codex\"]\n\n{agents}"));
    desk
}

#[test]
fn a_limited_claude_hands_over_to_codex_which_finishes_in_the_same_workspace() {
    let limited = Reply::rate_limited().header("retry-after", 3_600);
    let model = ModelServer::start([
        Rule::when(speaks(WireFormat::Anthropic).and(Matcher::after_tool_result())).reply(limited),
        Rule::when(speaks(WireFormat::Anthropic))
            .reply(shell_call(AgentCli::Claude, "echo towline > motto.txt")),
        Rule::always()
            .reply(shell_call(AgentCli::Codex, "echo tugboat >> motto.txt"))
            .then(Reply::text("Both are written.")),
    ]);
    let desk = desk_with_both(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "agent"), ["claude", "codex"]);
    assert_eq!(of_attempts(&report, "end"), ["rate_limited", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, false]);

    let events = desk.events(report["id"].as_str().expect("an id"));
    let handover = events.iter().find(|event| event["event"]["kind"] == "handed_over").expect("an event");
    let wanted = json!({"kind": "handed_over", "from": "claude", "to": "codex", "why": "rate_limited"});
    assert_eq!(handover["event"], wanted);
    let prompt = model
        .turns()
        .iter()
        .find(|turn| turn.format == Some(WireFormat::OpenAiResponses))
        .map(|turn| turn.prompt_text());
    let prompt = prompt.expect("the prompt of the second agent");
    for wanted in [PROMPT, "# What was done before", "motto.txt +1 -0", "# Checks that failed"] {
        assert!(prompt.contains(wanted), "no {wanted:?} in {prompt}");
    }
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn an_agent_that_is_not_signed_in_hands_over_and_a_person_is_needed_only_when_none_is_left() {
    let refused = || Reply::unauthorized();
    let model = ModelServer::start([
        Rule::when(speaks(WireFormat::Anthropic)).reply(refused()).also_side_requests(),
        Rule::always()
            .reply(shell_call(AgentCli::Codex, "printf 'towline\\ntugboat\\n' > motto.txt"))
            .then(Reply::text("Written.")),
    ]);
    let desk = desk_with_both(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(of_attempts(&ran.json(), "end"), ["auth", "completed"]);

    let model = ModelServer::start([Rule::always().reply(refused()).also_side_requests()]);
    let desk = desk_with_both(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report: Value = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["auth", "auth"]);
    assert!(report["reason"].as_str().expect("a reason").contains("codex"), "{report}");
}
