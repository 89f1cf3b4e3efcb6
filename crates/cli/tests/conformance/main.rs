//! The same goals with every agent: each case runs for each of the real CLIs against the scripted model.
//!
//! `cases` has what must hold, `subject` what a case may ask of an agent, `subjects` the agents, `exceptions` what does not
//! hold for all of them, and `table` the table of the documentation.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

#[path = "../support/mod.rs"]
mod support;

#[macro_use]
mod exceptions;

mod cases;
mod stage;
mod subject;
mod table;
mod traps;

/// The agents of the suite. What one of them cannot do, and what holds for it in another way, is in `exceptions`.
mod subjects {
    mod builtin;
    mod cli;
    mod plain;

    pub(crate) use builtin::{builtin_anthropic, builtin_chat, builtin_gemini, builtin_responses};
    pub(crate) use cli::{claude, claude_older, codex, gemini, gemini_stream, opencode};
    pub(crate) use plain::plain;
}

/// Makes the tests of all cases for all subjects, and the lists for the table.
macro_rules! every_case_for_every_subject {
    (subjects: [$($subject:ident),+ $(,)?] cases: $cases:tt) => {
        $(every_case_for! { $subject $cases })+

        /// The subjects, by the names of their modules.
        pub(crate) const SUBJECTS: &[(&str, fn() -> &'static dyn subject::Subject)] =
            &[$((stringify!($subject), subjects::$subject)),+];

        names_of! { $cases }
    };
}

macro_rules! every_case_for {
    ($subject:ident [$($case:ident),+ $(,)?]) => {
        mod $subject {
            $(cell! { $subject $case })+
        }
    };
}

macro_rules! names_of {
    ([$($case:ident),+ $(,)?]) => {
        pub(crate) const CASES: &[&str] = &[$(stringify!($case)),+];
    };
}

every_case_for_every_subject! {
    subjects: [
        claude,
        claude_older,
        codex,
        gemini,
        gemini_stream,
        opencode,
        builtin_responses,
        builtin_chat,
        builtin_gemini,
        builtin_anthropic,
        plain,
    ]
    cases: [
        words_alone_are_checked,
        a_tool_call_does_the_work,
        a_red_check_reaches_the_model_and_then_the_goal_is_done,
        three_megabytes_of_tool_output_are_no_trouble,
        what_was_used_is_what_the_model_reported,
        what_a_resumed_session_used_is_counted_once,
        a_spent_budget_stops_the_agent,
        refused_credentials_need_a_person,
        a_used_up_quota_parks_the_goal,
        a_failing_server_is_waited_out,
        a_cut_stream_is_no_success,
        silence_reaches_the_idle_timeout_and_the_goal_goes_on,
        a_refused_session_is_followed_by_a_new_one_that_gets_everything,
        a_refused_conversation_is_followed_by_a_new_session_that_gets_everything,
        a_long_retry_after_costs_no_error,
        a_killed_agent_is_followed_by_one_that_goes_on,
        an_adopted_agent_is_not_disturbed,
        ctrl_c_in_the_middle_of_a_tool_leaves_nothing,
        a_paused_goal_is_resumed_at_no_cost,
        a_rule_permits_and_forbids,
        under_edits_files_are_changed_and_no_command_runs,
        under_read_only_nothing_changes,
        a_person_permits_a_call,
        the_words_of_a_refusal_reach_the_model,
        a_question_of_its_own_tool_reaches_a_person,
        towlines_tools_are_in_the_first_request,
        a_question_by_a_tool_of_towlines_blocks_the_goal_until_it_is_answered,
    ]
}
