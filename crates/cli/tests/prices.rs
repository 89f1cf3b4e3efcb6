//! Money inside a turn: the real Claude Code against a scripted model, with prices of the table.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish};
use towline_testkit::agents::AgentCli;
use towline_testkit::hostile;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, ToolCall, Usage};
use towline_testkit::scratch::{processes_with, wait_for};

/// A message of 1.25 cents on the model that Claude Code is set to use.
const MESSAGE: Usage = Usage { input: 1_000, output: 300, cache_read: 0, cache_creation: 0 };
const MESSAGE_COST: f64 = 0.0125;

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"})).usage(MESSAGE)
}

fn desk(model: &ModelServer, name: &str) -> Desk {
    let desk = Desk::with_claude(model);
    desk.agent_settings(&format!("model = \"{name}\""));
    desk
}

fn notices(desk: &Desk, goal: &str) -> Vec<String> {
    let events = desk.events(goal).into_iter().filter(|event| event["event"]["event"]["kind"] == "notice");
    events.map(|event| event["event"]["event"]["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_limit_in_dollars_ends_a_turn_after_the_message_that_crosses_it() {
    let calls = (0..8).fold(Rule::always(), |rule, _| rule.then(bash("sleep 1")));
    let model = ModelServer::start([calls.then(Reply::text("Done.").usage(MESSAGE))]);
    let desk = desk(&model, "claude-opus-4-8");
    let ran = desk.towline(["run", "take your time", "--check", "false", "--budget", "usd=0.05", "--json"]);
    let report = ran.json();
    assert_eq!(report["phase"], "failed", "{ran:?}");
    assert_eq!(report["attempts"].as_array().map(Vec::len), Some(1), "{report}");
    // An estimate, or its own figure if it could still report that.
    let spent = report["usage"]["cost_usd"].as_f64().expect("a cost");
    assert!((0.05..0.05 + MESSAGE_COST + 1e-9).contains(&spent), "{spent}");
    assert!(model.turns().len() <= 5, "{} requests", model.turns().len());
    assert_eq!(notices(&desk, report["id"].as_str().expect("an id")), [""; 0]);
}

#[test]
fn a_limit_in_dollars_holds_while_a_subagent_works() {
    let of_subagent = || Matcher::new(|request| !request.tool_names().iter().any(|name| name == "Agent"));
    // Almost all of the cost is what the subagent writes.
    let words = "word ".repeat(600);
    let cheap = Usage { input: 10, output: 1_000, cache_read: 0, cache_creation: 0 };
    let writing = |text: &str| bash("sleep 1").with_text(text).usage(cheap);
    let steps = (0..8).fold(Rule::when(of_subagent()), |rule, _| rule.then(writing(&words)));
    let call = json!({"description": "a part", "prompt": "do a part", "subagent_type": "general-purpose"});
    let main = Rule::always().reply(Reply::tool("Agent", call).usage(MESSAGE));
    let model = ModelServer::start([
        steps.then(Reply::text("Done.").usage(MESSAGE)),
        main.then(Reply::text("Done.").usage(MESSAGE)),
    ]);
    let desk = desk(&model, "claude-opus-4-8");
    let ran = desk.towline(["run", "have it done", "--check", "false", "--budget", "usd=0.05", "--json"]);
    let report = ran.json();
    let reason = report["reason"].to_string();
    assert_eq!(report["phase"], "failed", "{ran:?}");
    assert!(reason.contains("usd"), "{reason}");
    assert!((4..=6).contains(&model.turns().len()), "{} requests: {report}", model.turns().len());
}

const SUBAGENTS: usize = 4;
/// Both versions, with subagents that the turn waits for and subagents in the background. That is what the newest starts
/// by default.
const SIDE_BY_SIDE: [(AgentCli, Option<bool>); 5] = [
    (AgentCli::Claude, None),
    (AgentCli::Claude, Some(true)),
    (AgentCli::Claude, Some(false)),
    (AgentCli::OlderClaude, Some(true)),
    (AgentCli::OlderClaude, Some(false)),
];

/// A model that has its task done by four subagents. Each writes so many messages, which cost what they are long, and a last
/// one.
fn divided(in_background: Option<bool>, messages: usize) -> ModelServer {
    let cheap = Usage { input: 10, output: 10, cache_read: 0, cache_creation: 0 };
    let of_subagent =
        Matcher::any_text_contains("do part").and(Matcher::any_text_contains("have it done").negated());
    let is_last = Matcher::new(move |request| request.all_text().matches("STEP").count() >= messages);
    let text = "word ".repeat(180);
    let call = |part: usize| {
        let mut input = json!({"description": "a part", "prompt": format!("do part {part}"), "subagent_type": "general-purpose"});
        if let Some(in_background) = in_background {
            input["run_in_background"] = in_background.into();
        }
        ToolCall::new("Agent", input)
    };
    // An interrupt cuts messages off that are slow.
    let pace = Duration::from_millis(if in_background == Some(false) { 50 } else { 0 });
    let step = bash("sleep 0.1; echo step | tr a-z A-Z").with_text(&text).slow(pace);
    let parts = Reply::tools((1..=SUBAGENTS).map(call)).usage(cheap);
    ModelServer::start([
        Rule::when(of_subagent.clone().and(is_last)).reply(Reply::text(&text).usage(MESSAGE)),
        Rule::when(of_subagent).reply(step),
        Rule::always().reply(parts).then(Reply::text("Done.").usage(cheap)),
    ])
}

fn run_divided(cli: AgentCli, model: &ModelServer, budget: &str) -> Value {
    let desk = Desk::with_agents(&[cli], model);
    let program = cli.program().display().to_string();
    desk.configure(&format!("[agents.claude]\ncommand = [{program:?}]\nmodel = \"claude-opus-4-8\"\n"));
    desk.towline(["run", "have it done", "--check", "false", "--budget", budget, "--json"]).json()
}

#[test]
fn a_limit_in_dollars_holds_while_subagents_work_side_by_side() {
    // The third message of each subagent crosses the limit. Those in the background write it after the turn.
    for (cli, in_background) in SIDE_BY_SIDE {
        let model = divided(in_background, 20);
        let report = run_divided(cli, &model, "usd=0.15");
        let case = format!("{cli:?}, {in_background:?}, {} requests: {report}", model.turns().len());
        assert_eq!(
            (&report["phase"], &report["reason"]),
            (&json!("failed"), &json!("budget: usd")),
            "{case}"
        );
        // The message that crosses the limit, and at most one of each subagent beside it.
        let spent = report["usage"]["cost_usd"].as_f64().expect("a cost");
        assert!((0.15..0.15 + MESSAGE_COST * (SUBAGENTS + 1) as f64).contains(&spent), "{case}");
    }
}

#[test]
fn what_subagents_use_is_counted_once() {
    for (cli, in_background) in SIDE_BY_SIDE {
        let model = divided(in_background, 2);
        let report = run_divided(cli, &model, "attempts=1");
        let (reported, used) = (model.reported_usage(), &report["usage"]);
        let counted = (used["input"].as_u64(), used["output"].as_u64(), &used["estimated"]);
        let wanted = (Some(reported.input), Some(reported.output), &json!(false));
        assert_eq!(counted, wanted, "{cli:?}, {in_background:?}: {report}");
        assert!(reported.input > 3_000 * SUBAGENTS as u64, "{reported:?}");
    }
}

#[test]
fn an_agent_that_keeps_working_after_its_turn_is_killed_when_its_money_is_spent() {
    // Other signals do not end it, and would let it write its second message.
    let body = r#"
trap '' INT TERM
in_background() {
  printf '{"type":"assistant","message":{"id":"%s","model":"scripted","content":[],"usage":{"input_tokens":100000,"output_tokens":0}},"parent_tool_use_id":"toolu_1"}\n' "$1"
}
await_prompt
init
assistant Working.
result false null Done.
in_background first
sleep 4
in_background second
linger
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "agent", body));
    desk.agent_settings("[prices.scripted]\ninput = 1\noutput = 0");
    let report = desk.towline(["run", "do it", "--check", "false", "--budget", "usd=0.05", "--json"]).json();
    assert_eq!((&report["phase"], &report["reason"]), (&json!("failed"), &json!("budget: usd")), "{report}");
    assert_eq!(report["usage"]["cost_usd"], json!(0.101), "{report}");
}

#[test]
fn a_turn_that_is_killed_is_charged_by_its_estimate_and_the_cost_is_seen_while_it_runs() {
    let model = ModelServer::start([Rule::always().reply(bash("tail -f /dev/null"))]);
    let desk = desk(&model, "claude-opus-4-8");
    let towline = desk.start(["run", "take a nap", "--check", "true", "--budget", "attempts=1", "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the tool to run", || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("tail -f"))
    });
    let goal = desk.only_goal();
    let estimated = |report: &Value| report["usage"]["estimated"] == true;
    let running = desk.wait_for(&goal, "an estimate", estimated);
    assert_eq!((&running["phase"], &running["usage"]["cost_usd"]), (&json!("running"), &json!(MESSAGE_COST)));
    let listed = desk.towline(["ls"]);
    assert!(listed.stdout.contains("~$0.013"), "{}", listed.stdout);

    let is_claude = |command: &str| command.contains("--input-format") && !command.contains("shim");
    let claude = processes_with(&marker).into_iter().find(|process| is_claude(&process.command));
    let claude = i32::try_from(claude.expect("Claude Code runs").pid).expect("a pid");
    kill_process(Pid::from_raw(claude).expect("a pid"), Signal::KILL).expect("killed");
    let report = finish(towline).json();
    assert_eq!(report["attempts"][0]["usage"]["cost_usd"], json!(MESSAGE_COST), "{report}");
    assert!(estimated(&report), "{}", report["usage"]);
    let shown = desk.towline(["show", &goal]);
    assert!(shown.stdout.contains("~$0.013"), "{}", shown.stdout);
}

#[test]
fn a_model_without_a_price_is_reported_at_the_start_and_a_price_can_be_set() {
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Done.").usage(MESSAGE)),
        Rule::always().reply(bash("echo hello > hello.txt")),
    ]);
    let desk = desk(&model, "mine-1");
    let run = ["run", "write hello", "--check", "test -f hello.txt", "--budget", "usd=5", "--json"];
    let report = desk.towline(run).json();
    let goal = report["id"].as_str().expect("an id");
    let unknown = "no price is known for the model `mine-1`";
    assert!(notices(&desk, goal).iter().any(|text| text.starts_with(unknown)), "{:?}", notices(&desk, goal));

    desk.agent_settings("[prices.mine-1]\ninput = 5\noutput = 25");
    let report = desk.towline(run).json();
    let goal = report["id"].as_str().expect("an id");
    assert!(!notices(&desk, goal).iter().any(|text| text.starts_with(unknown)), "{:?}", notices(&desk, goal));
    let estimates = desk
        .events(goal)
        .iter()
        .filter_map(|event| event["event"]["event"]["used"]["estimate"].as_u64())
        .sum::<u64>();
    assert!((25_000..25_010).contains(&estimates), "{estimates}");
}

#[test]
fn five_attempts_in_one_session_cost_what_the_model_reported() {
    // Other files each time: the same ones with the same failure would need a person.
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Tried.").usage(MESSAGE)),
        Rule::always().reply(bash("date +%s%N > tried.txt")),
    ]);
    let desk = desk(&model, "claude-opus-4-8");
    let report =
        desk.towline(["run", "try it", "--check", "false", "--budget", "attempts=5", "--json"]).json();
    let attempts = report["attempts"].as_array().expect("attempts");
    let resumed: Vec<&Value> = attempts.iter().map(|attempt| &attempt["resumed"]).collect();
    assert_eq!(resumed, [false, true, true, true, true], "{report}");
    let (reported, used) = (model.reported_usage(), &report["usage"]);
    let counted = (used["input"].as_u64(), used["output"].as_u64());
    assert_eq!(counted, (Some(reported.input), Some(reported.output)), "{used}");
    let (cost, wanted) =
        (used["cost_usd"].as_f64().expect("a cost"), MESSAGE_COST * model.turns().len() as f64);
    assert!((cost - wanted).abs() < 1e-6, "{used} instead of {wanted}");
}
