//! The cases. Each is what a user may expect of any agent; where one cannot hold, the case says why.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{processes_with, wait_for, wait_until_process_tree_gone};

use crate::desk;
use crate::support::{Desk, LIMIT, Ran, finish, of_attempts};

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";

fn run(desk: &Desk) -> Ran {
    desk.towline(["run", PROMPT, "--check", CHECK, "--json"])
}

fn start(desk: &Desk) -> (std::process::Child, String) {
    let towline = desk.start(["run", PROMPT, "--check", CHECK, "--json"]);
    let goal = desk.only_goal();
    (towline, goal)
}

fn writes_the_motto(cli: AgentCli) -> Rule {
    Rule::always().reply(shell_call(cli, "echo towline > motto.txt")).then(Reply::text("Written."))
}

fn assert_done(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["phase"], "done", "{report}");
    assert_eq!(
        report["attempts"][0]["extras"]["unrecognised"],
        Value::Null,
        "frames that were not understood"
    );
    report
}

/// Whether conversations of this agent outlive its process.
fn resumes(cli: AgentCli) -> bool {
    // It keeps nothing of what is said over ACP, so each attempt is told everything.
    cli != AgentCli::Gemini
}

pub(crate) fn words_alone_are_checked(cli: AgentCli) {
    let model = ModelServer::start([Rule::always().reply(Reply::text("There is nothing to do."))]);
    let desk = desk(cli, &model);
    let ran = desk.towline(["run", "Look around", "--check", "true", "--json"]);
    let report = assert_done(&ran);
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(of_attempts(&report, "turns"), [1]);
    assert_eq!(report["attempts"][0]["text"], "There is nothing to do.");
    assert!(report["attempts"][0]["session"].is_string(), "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

pub(crate) fn a_tool_call_does_the_work(cli: AgentCli) {
    let model = ModelServer::start([writes_the_motto(cli)]);
    let desk = desk(cli, &model);
    let report = assert_done(&run(&desk));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    let events = desk.events(report["id"].as_str().expect("an id"));
    let tools: Vec<&Value> =
        events.iter().map(|event| &event["event"]["event"]).filter(|event| event["kind"] == "tool").collect();
    assert!(tools.iter().any(|tool| tool["tool"] == "execute" && tool["status"] == "ok"), "{tools:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

pub(crate) fn a_red_check_reaches_the_model_and_then_the_goal_is_done(cli: AgentCli) {
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("# Checks that failed"))
            .reply(shell_call(cli, "echo towline > motto.txt"))
            .then(Reply::text("Corrected.")),
        Rule::always().reply(shell_call(cli, "echo tugboat > motto.txt")).then(Reply::text("Written.")),
    ]);
    let desk = desk(cli, &model);
    let report = assert_done(&run(&desk));
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [json!(false), json!(resumes(cli))]);
    let same = report["attempts"][0]["session"] == report["attempts"][1]["session"];
    assert_eq!(same, resumes(cli), "{report}");
    let told = model
        .turns()
        .iter()
        .map(|turn| turn.prompt_text())
        .find(|text| text.contains("# Checks that failed"));
    let told = told.expect("the second prompt");
    for wanted in [CHECK, "looking for the motto\n", "exit code 1"] {
        assert!(told.contains(wanted), "no {wanted:?} in {told}");
    }
    assert_eq!(told.contains("# Goal"), !resumes(cli), "{told}");
}

pub(crate) fn refused_credentials_need_a_person(cli: AgentCli) {
    let model = ModelServer::start([Rule::always().reply(Reply::unauthorized()).also_side_requests()]);
    let desk = desk(cli, &model);
    let ran = run(&desk);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    assert_eq!(
        (&report["phase"], &report["attempts"][0]["end"]),
        (&json!("escalated"), &json!("auth")),
        "{report}"
    );
    assert!(report["reason"].as_str().expect("a reason").contains(cli.name()), "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

pub(crate) fn a_used_up_quota_parks_the_goal(cli: AgentCli) {
    let limit = match cli {
        // It tries again for minutes unless it is told to wait for longer than that.
        AgentCli::Claude => Reply::rate_limited().header("retry-after", 3_600),
        // So does it, but for the quota of a day.
        AgentCli::Gemini => Reply::rate_limited().code("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        AgentCli::Codex => Reply::rate_limited(),
        AgentCli::Opencode => Reply::rate_limited().header("retry-after", 1),
    };
    let model = ModelServer::start([Rule::always().reply(limit).also_side_requests()]);
    let desk = desk(cli, &model);
    let (towline, goal) = start(&desk);
    let limited = desk.wait_for_phase(&goal, "limited");
    assert_eq!(of_attempts(&limited, "end"), ["rate-limited"]);
    assert_eq!(limited["budget"]["attempts"]["left"], 10);
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    assert_eq!(finish(towline).code, Some(130));
}

pub(crate) fn silence_runs_into_the_idle_clock_and_the_goal_goes_on(cli: AgentCli) {
    let knows = Matcher::any_text_contains("# Interrupted");
    let model = ModelServer::start([
        Rule::when(knows).reply(shell_call(cli, "echo towline > motto.txt")).then(Reply::text("Written.")),
        Rule::always().reply(Reply::silence()),
    ]);
    let desk = desk(cli, &model);
    // It is slow to begin, and says nothing meanwhile.
    let idle = if cli == AgentCli::Opencode { "15s" } else { "3s" };
    desk.agent_settings(&format!("idle_timeout = {idle:?}"));
    let report = assert_done(&run(&desk));
    let ends = of_attempts(&report, "end");
    assert_eq!((&ends[0], ends.last()), (&json!("timed-out"), Some(&json!("completed"))), "{report}");
    assert_eq!(report["attempts"][0]["detail"], "idle clock");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

pub(crate) fn three_megabytes_of_tool_output_are_no_trouble(cli: AgentCli) {
    let noise = "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo towline > motto.txt";
    let model =
        ModelServer::start([Rule::always().reply(shell_call(cli, noise)).then(Reply::text("Written."))]);
    let desk = desk(cli, &model);
    let report = assert_done(&run(&desk));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
}

/// A goal whose agent is in the middle of a tool that sleeps.
fn sleeping(cli: AgentCli, desk: &Desk) -> (std::process::Child, String) {
    let (towline, goal) = start(desk);
    let marker = desk.home.marker();
    wait_for(LIMIT, &format!("{}'s tool to sleep", cli.name()), || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("sleep 321"))
    });
    (towline, goal)
}

pub(crate) fn ctrl_c_in_the_middle_of_a_tool_leaves_nothing(cli: AgentCli) {
    let model = ModelServer::start([Rule::always().reply(shell_call(cli, "sleep 321"))]);
    let desk = desk(cli, &model);
    let (towline, goal) = sleeping(cli, &desk);
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(2));
    let report = desk.show(&goal);
    assert_eq!((&report["phase"], &report["attempts"][0]["end"]), (&json!("cancelled"), &json!("cancelled")));
}

/// Sleeps in its first tool until it is told of the interruption.
fn model_that_sleeps_first(cli: AgentCli) -> ModelServer {
    ModelServer::start([
        Rule::when(Matcher::any_text_contains("# Interrupted"))
            .reply(shell_call(cli, "echo towline > motto.txt"))
            .then(Reply::text("Written.")),
        Rule::always().reply(shell_call(cli, "sleep 321")),
    ])
}

pub(crate) fn a_killed_agent_is_followed_by_one_that_goes_on(cli: AgentCli) {
    let model = model_that_sleeps_first(cli);
    let desk = desk(cli, &model);
    let (towline, _) = sleeping(cli, &desk);
    let program = cli.program().display().to_string();
    for process in processes_with(&desk.home.marker()) {
        if process.command.contains(&program) && !process.command.contains(" shim ") {
            let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).expect("a pid");
            // It may have ended with another one.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let report = assert_done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [json!(false), json!(resumes(cli))]);
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

pub(crate) fn an_adopted_agent_is_not_disturbed(cli: AgentCli) {
    let model = ModelServer::start([Rule::always()
        .reply(shell_call(cli, "while [ ! -e go ]; do sleep 0.1; done; echo towline > motto.txt"))
        .then(Reply::text("Written."))]);
    let desk = desk(cli, &model);
    let (mut towline, goal) = start(&desk);
    wait_for(LIMIT, "the tool to run", || {
        processes_with(&desk.home.marker()).iter().any(|process| process.command.starts_with("sleep 0.1"))
    });
    towline.kill().expect("killed");
    towline.wait().expect("gone");
    let towline = desk.start(["run", "--goal", &goal, "--json"]);
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(std::path::Path::new(&workspace).join("go"), "").expect("a file");
    let report = assert_done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(model.turns().len(), 2, "the model was asked twice");
}

pub(crate) fn a_spent_budget_stops_the_agent(cli: AgentCli) {
    // It tells what a turn has cost at the turn's end, so it is stopped there; the others in the middle of an endless one.
    let (reply, axis, limit) = match cli {
        AgentCli::Opencode => (Reply::text("Enough for today."), "usd", "usd=0.0001"),
        _ => (shell_call(cli, "true"), "tokens", "tokens=1"),
    };
    let model = ModelServer::start([Rule::always().reply(reply)]);
    let desk = desk(cli, &model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--budget", limit, "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["reason"], format!("budget: {axis}"));
    assert_eq!(report["attempts"].as_array().map(Vec::len), Some(1), "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

pub(crate) fn what_was_used_is_what_the_model_reported(cli: AgentCli) {
    let model = ModelServer::start([writes_the_motto(cli)]);
    let desk = desk(cli, &model);
    let report = assert_done(&run(&desk));
    let reported = model.reported_usage();
    let used = &report["usage"];
    if cli == AgentCli::Opencode {
        // It tells the tokens of the last step alone, but what all of them cost, at the prices it was set up with.
        let step = f64::from(100 + 5 + 200) / 1e6;
        let cost = step * model.turns().len() as f64;
        assert!((used["cost_usd"].as_f64().expect("a cost") - cost).abs() < 1e-9, "{used} {cost}");
        return;
    }
    let sum = |names: [&str; 2]| names.iter().map(|name| used[*name].as_u64().expect("a count")).sum::<u64>();
    assert_eq!(used["output"], reported.output, "{used} {reported:?}");
    // Agents draw the line between fresh and cached input in different places.
    assert_eq!(sum(["input", "cache_read"]), reported.input + reported.cache_read, "{used} {reported:?}");
}

pub(crate) fn a_question_by_a_tool_of_towlines_blocks_the_goal_until_it_is_answered(cli: AgentCli) {
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("Which word?\n  towline"))
            .reply(shell_call(cli, "echo towline > motto.txt"))
            .then(Reply::text("Written.")),
        Rule::always().reply(ask_call(cli)).then(Reply::text("I have asked.")),
    ]);
    let desk = desk(cli, &model);
    let (towline, goal) = start(&desk);
    let asked = desk.wait_for(&goal, "the question", |report| !report["question"].is_null());
    assert_eq!(asked["question"]["question"], "Which word?", "{asked}");
    desk.wait_for(&goal, "the attempt to end", |report| !report["attempts"][0]["end"].is_null());
    let answered = desk.towline(["answer", &goal, "towline"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let report = assert_done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["asked", "completed"]);
}

/// A call of Towline's own `ask`, by the name under which this agent offers it.
fn ask_call(cli: AgentCli) -> Reply {
    let name = match cli {
        AgentCli::Claude | AgentCli::Codex => "mcp__towline__ask",
        AgentCli::Gemini => "mcp_towline_ask",
        AgentCli::Opencode => "towline_ask",
    };
    Reply::tool(name, json!({"question": "Which word?", "options": ["towline", "tugboat"]}))
}
