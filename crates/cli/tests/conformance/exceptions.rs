//! What does not hold for every agent, in one place for each: cases that it cannot have, and cases that hold for it in another
//! way, which they assert by its facts.
//!
//! A cell that cannot be has no test; the table in the documentation has the reason.

use crate::table::Exception;

/// Makes the list of exceptions, and the macro `cell!`, which makes the test of a case for a subject unless it cannot be.
macro_rules! exceptions {
    ($dollar:tt $(
        $subject:ident {
            cannot { $($never:ident: $why:literal,)* }
            differs { $($other:ident: $how:literal,)* }
        }
    )+) => {
        macro_rules! cell {
            $($(($subject $never) => {};)*)+
            ($dollar subject:ident $dollar case:ident) => {
                #[test]
                fn $dollar case() {
                    crate::cases::$dollar case(crate::subjects::$dollar subject());
                }
            };
        }

        pub(crate) const EXCEPTIONS: &[Exception] = &[$(
            $(Exception::cannot(stringify!($subject), stringify!($never), $why),)*
            $(Exception::differs(stringify!($subject), stringify!($other), $how),)*
        )+];
    };
}

exceptions! { $
    claude {
        cannot {}
        differs {
            a_used_up_quota_parks_the_goal:
                "It retries for minutes unless the provider announces a longer wait, so the case uses up the quota with such an announcement.",
        }
    }
    claude_older {
        cannot {}
        differs {
            a_used_up_quota_parks_the_goal:
                "It retries for minutes unless the provider announces a longer wait, so the case uses up the quota with such an announcement.",
        }
    }
    codex {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It has its tool for questions in its planning mode alone, unless a feature that is under development is \
                 turned on. Its request is understood; recordings show that.",
        }
        differs {}
    }
    gemini {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It offers its tool for questions to no client of the protocol.",
        }
        differs {
            a_refused_conversation_is_followed_by_a_new_session_that_gets_everything:
                "Its conversations end with its process: the next attempt is a new one with the goal in its prompt.",
            a_red_check_reaches_the_model_and_then_the_goal_is_done:
                "Its conversations end with its process: the next attempt is a new one with the goal in its prompt.",
            a_killed_agent_is_followed_by_one_that_goes_on:
                "Its conversations end with its process: the next attempt is a new one with the goal in its prompt.",
            a_paused_goal_is_resumed_at_no_cost:
                "Its conversations end with its process: the next attempt is a new one with the goal in its prompt.",
            a_refused_session_is_followed_by_a_new_one_that_gets_everything:
                "Its conversations end with its process: the next attempt is a new one with the goal in its prompt.",
            a_used_up_quota_parks_the_goal:
                "It tries again for minutes, but not for the quota of a day: that is the one that is used up.",
            a_spent_budget_stops_the_agent:
                "It reports what a turn used at its end: a spent budget stops it between two turns. Within one, the timeouts do.",
        }
    }
    gemini_stream {
        cannot {
            the_words_of_a_refusal_reach_the_model:
                "It cannot be asked in this mode: settings that would promise otherwise are refused, and point to `kind = \"acp\"`.",
            a_rule_permits_and_forbids:
                "It cannot be asked in this mode: settings that would promise otherwise are refused, and point to `kind = \"acp\"`.",
            under_edits_files_are_changed_and_no_command_runs:
                "It cannot be asked in this mode: settings that would promise otherwise are refused, and point to `kind = \"acp\"`.",
            a_person_permits_a_call:
                "It cannot be asked in this mode: settings that would promise otherwise are refused, and point to `kind = \"acp\"`.",
            a_question_of_its_own_tool_reaches_a_person:
                "No servers can be handed to it in this mode: it asks by its last message or by the question file.",
            towlines_tools_are_in_the_first_request:
                "No servers can be handed to it in this mode: it asks by its last message or by the question file.",
            a_question_by_a_tool_of_towlines_blocks_the_goal_until_it_is_answered:
                "No servers can be handed to it in this mode: it asks by its last message or by the question file.",
        }
        differs {
            a_used_up_quota_parks_the_goal:
                "It tries again for minutes, but not for the quota of a day: that is the one that is used up.",
            a_spent_budget_stops_the_agent:
                "It reports what a turn used at its end: a spent budget stops it between two turns. Within one, the timeouts do.",
            a_failing_server_is_waited_out:
                "It keeps no conversation in which the model never answered: the next attempt is a new one.",
            a_cut_stream_is_no_success:
                "It keeps no conversation in which the model never answered: the next attempt is a new one.",
        }
    }
    opencode {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It offers its tool for questions to no client of the protocol.",
        }
        differs {
            a_long_retry_after_costs_no_error:
                "It reports nothing while it waits for a quota: its silence is waited out like an outage.",
            a_spent_budget_stops_the_agent:
                "It reports what a turn cost at its end: a spent budget stops it between two turns. Within one, the timeouts do.",
            what_was_used_is_what_the_model_reported:
                "It reports the tokens of a turn's last step alone: what it used is compared in dollars.",
            what_a_resumed_session_used_is_counted_once:
                "It reports the tokens of a turn's last step alone: what it used is compared in dollars.",
            a_rule_permits_and_forbids:
                "It ends its turn at a call that is refused: the model finds the refusal in the conversation that goes on.",
        }
    }
    builtin_responses {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It has no tool for questions of its own: it asks by Towline's.",
        }
        differs {}
    }
    builtin_chat {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It has no tool for questions of its own: it asks by Towline's.",
        }
        differs {}
    }
    builtin_gemini {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It has no tool for questions of its own: it asks by Towline's.",
        }
        differs {}
    }
    builtin_anthropic {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It has no tool for questions of its own: it asks by Towline's.",
        }
        differs {}
    }
    plain {
        cannot {
            a_refused_conversation_is_followed_by_a_new_session_that_gets_everything:
                "What it asks, and of whom, is its own affair: Towline sees what it prints and how it exits.",
            a_long_retry_after_costs_no_error:
                "What it asks, and of whom, is its own affair: Towline sees what it prints and how it exits.",
            the_words_of_a_refusal_reach_the_model:
                "Its tools are its own: Towline sees none of them, and refuses settings that would promise otherwise.",
            a_tool_call_does_the_work:
                "Its tools are its own: Towline sees none of them, and refuses settings that would promise otherwise.",
            what_was_used_is_what_the_model_reported:
                "It reports what it cost where a pattern finds it; the tests of the kind `command` show that.",
            what_a_resumed_session_used_is_counted_once:
                "It reports what it cost where a pattern finds it; the tests of the kind `command` show that.",
            a_spent_budget_stops_the_agent:
                "It reports what it cost where a pattern finds it; the tests of the kind `command` show that.",
            refused_credentials_need_a_person:
                "What it asks, and of whom, is its own affair: Towline sees what it prints and how it exits.",
            a_used_up_quota_parks_the_goal:
                "Its quota is used up where a pattern finds it; the tests of the kind `command` show that.",
            a_failing_server_is_waited_out:
                "What it asks, and of whom, is its own affair: Towline sees what it prints and how it exits.",
            a_cut_stream_is_no_success:
                "What it asks, and of whom, is its own affair: Towline sees what it prints and how it exits.",
            a_rule_permits_and_forbids:
                "Its tools are its own: Towline sees none of them, and refuses settings that would promise otherwise.",
            under_edits_files_are_changed_and_no_command_runs:
                "Its tools are its own: Towline sees none of them, and refuses settings that would promise otherwise.",
            under_read_only_nothing_changes:
                "Its tools are its own: Towline sees none of them, and refuses settings that would promise otherwise.",
            a_person_permits_a_call:
                "Its tools are its own: Towline sees none of them, and refuses settings that would promise otherwise.",
            a_question_of_its_own_tool_reaches_a_person:
                "No servers can be handed to it: it asks by its last message or by the question file.",
            towlines_tools_are_in_the_first_request:
                "No servers can be handed to it: it asks by its last message or by the question file.",
            a_question_by_a_tool_of_towlines_blocks_the_goal_until_it_is_answered:
                "No servers can be handed to it: it asks by its last message or by the question file.",
        }
        differs {
            silence_reaches_the_idle_timeout_and_the_goal_goes_on:
                "It has no conversations: each prompt has the goal again.",
            a_red_check_reaches_the_model_and_then_the_goal_is_done:
                "It has no conversations: each prompt has the goal again.",
            a_killed_agent_is_followed_by_one_that_goes_on:
                "It has no conversations: each prompt has the goal again.",
            a_paused_goal_is_resumed_at_no_cost:
                "It has no conversations: each prompt has the goal again.",
            a_refused_session_is_followed_by_a_new_one_that_gets_everything:
                "It has no conversations: each prompt has the goal again.",
        }
    }
}
