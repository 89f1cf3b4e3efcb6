//! What does not hold for every agent, in one place for each: cases that it cannot have, and cases that hold for it in another
//! way, which they assert by its facts.
//!
//! A cell that cannot be has no test; the table in the documentation says why.

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
                "It tries again for minutes unless it is told to wait for longer: its quota ends with such an announcement.",
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
            a_red_check_reaches_the_model_and_then_the_goal_is_done:
                "Its conversations end with its process: the next attempt is a new one that is told the goal again.",
            a_killed_agent_is_followed_by_one_that_goes_on:
                "Its conversations end with its process: the next attempt is a new one that is told the goal again.",
            a_refused_session_is_followed_by_a_new_one_that_is_told_everything:
                "Its conversations end with its process: the next attempt is a new one that is told the goal again.",
            a_used_up_quota_parks_the_goal:
                "It tries again for minutes, but not for the quota of a day: that is the one that is used up.",
            a_spent_budget_stops_the_agent:
                "It tells what a turn used at its end: a spent budget stops it between two turns. Within one, the clocks do.",
        }
    }
    opencode {
        cannot {
            a_question_of_its_own_tool_reaches_a_person:
                "It offers its tool for questions to no client of the protocol.",
        }
        differs {
            a_spent_budget_stops_the_agent:
                "It tells what a turn cost at its end: a spent budget stops it between two turns. Within one, the clocks do.",
            what_was_used_is_what_the_model_reported:
                "It tells the tokens of a turn's last step alone: what it used is compared in dollars.",
            a_rule_permits_and_forbids:
                "It ends its turn at a call that is refused: the model finds the refusal in the conversation that goes on.",
        }
    }
}
