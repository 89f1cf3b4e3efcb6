//! The same goals with every agent: each case runs for each of the real CLIs against the scripted model.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

#[path = "../support/mod.rs"]
mod support;

mod cases;

use towline_testkit::agents::AgentCli;
use towline_testkit::model::ModelServer;

use crate::support::Desk;

/// A desk with one agent, which talks to the scripted model.
pub(crate) fn desk(cli: AgentCli, model: &ModelServer) -> Desk {
    let desk = Desk::with_agents(&[cli], model);
    desk.configure(&format!("[defaults]\nagents = [{:?}]\n\n{}", cli.name(), settings(cli)));
    desk
}

/// The agent's table in the configuration; further settings may follow it.
pub(crate) fn settings(cli: AgentCli) -> String {
    let program = cli.program().display().to_string();
    let (kind, command) = match cli {
        AgentCli::Claude => ("claude", vec![program]),
        AgentCli::Codex => ("codex", vec![program]),
        AgentCli::Gemini => ("acp", vec![program, "--acp".to_owned()]),
        AgentCli::Opencode => ("acp", vec![program, "acp".to_owned()]),
    };
    format!("[agents.{}]\nkind = {kind:?}\ncommand = {command:?}\n", cli.name())
}

/// Makes one test per agent of each case.
macro_rules! for_each_agent {
    ($($case:ident),+ $(,)?) => {
        mod claude { $(#[test] fn $case() { crate::cases::$case(towline_testkit::agents::AgentCli::Claude); })+ }
        mod codex { $(#[test] fn $case() { crate::cases::$case(towline_testkit::agents::AgentCli::Codex); })+ }
        mod gemini { $(#[test] fn $case() { crate::cases::$case(towline_testkit::agents::AgentCli::Gemini); })+ }
        mod opencode { $(#[test] fn $case() { crate::cases::$case(towline_testkit::agents::AgentCli::Opencode); })+ }
    };
}

for_each_agent! {
    words_alone_are_checked,
    a_tool_call_does_the_work,
    a_red_check_reaches_the_model_and_then_the_goal_is_done,
    refused_credentials_need_a_person,
    a_used_up_quota_parks_the_goal,
    silence_runs_into_the_idle_clock_and_the_goal_goes_on,
    three_megabytes_of_tool_output_are_no_trouble,
    ctrl_c_in_the_middle_of_a_tool_leaves_nothing,
    a_killed_agent_is_followed_by_one_that_goes_on,
    an_adopted_agent_is_not_disturbed,
    a_spent_budget_stops_the_agent,
    what_was_used_is_what_the_model_reported,
    a_question_by_a_tool_of_towlines_blocks_the_goal_until_it_is_answered,
}
