//! Every class of end in one table: its name, its title, what follows by itself, and what a person can do.
//!
//! Screens, reports, prompts and docs/troubleshooting.md take their words from here and have none of their own. What
//! follows is decided in `step`; a test there holds the table to it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::End;
use crate::names::{name_of, value_named};

/// What Towline does by itself after an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The checks decide.
    Checks,
    /// The checks decide, and while they fail the goal goes on as long as its budget lasts.
    ChecksThenGoesOn,
    /// The checks decide, and when they fail a person has to.
    ChecksThenPerson,
    /// The answer is waited for.
    WaitsForAnswer,
    /// The time that was asked for goes by.
    Sleeps,
    /// The quota is waited for, unless another agent can go on.
    WaitsForQuota,
    /// The same session goes on after a pause.
    Retries,
    /// The same session goes on after a pause that costs nothing, for hours.
    WaitsForProvider,
    /// The same session goes on after a pause; the next time, a new one starts.
    RetriesThenBeginsAnew,
    /// The same session is spoken to again at once, and then as in [`Self::Retries`].
    RetriesAtOnce,
    /// The conversation is summarised and goes on.
    Compacts,
    /// A new conversation is begun.
    BeginsAnew,
    /// Another agent goes on; without one, a person is needed.
    HandsOver,
    /// A person is needed.
    NeedsPerson,
    /// The goal ends.
    EndsGoal,
    /// The goal waits until it is resumed.
    Pauses,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndClass {
    pub kind: EndKind,
    /// What people read.
    pub title: &'static str,
    /// What Towline does by itself.
    pub follows: Follows,
    /// What a person can do.
    pub hint: &'static str,
}

/// Makes [`EndKind`] and its table. A class is named like its variant of [`End`].
macro_rules! end_classes {
    ($($kind:ident, $title:literal, $follows:ident, $hint:literal;)+) => {
        /// A class of [`End`]: the same for all agents.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EndKind {
            $($kind,)+
        }

        /// In the order of [`EndKind`].
        static TABLE: &[EndClass] = &[
            $(EndClass { kind: EndKind::$kind, title: $title, follows: Follows::$follows, hint: $hint },)+
        ];

        impl End {
            /// The class of this end.
            pub const fn kind(&self) -> EndKind {
                match self {
                    $(Self::$kind { .. } => EndKind::$kind,)+
                }
            }
        }
    };
}

end_classes! {
    Completed, "completed", Checks,
        "no action needed; give the goal checks if it has none";
    Asked, "asked a question", WaitsForAnswer,
        "answer it: `towline answer ID`";
    Slept, "asked to sleep", Sleeps,
        "no action needed; `towline tell ID` wakes it up";
    RateLimited, "rate limited", WaitsForQuota,
        "no action needed; a second agent in `defaults.agents` goes on meanwhile";
    ServerError, "server error", WaitsForProvider,
        "look at the provider's status page and at the network of this machine";
    Auth, "no valid credentials", HandsOver,
        "sign in to the agent, or give it a key whose account can pay; `towline agents check NAME` shows how";
    ContextOverflow, "context full", Compacts,
        "choose a model with a larger context, or make the goal smaller";
    ResumeRefused, "session not resumed", BeginsAnew,
        "no action needed; if it happens often, see that nobody deletes the agent's own files";
    MaxTurns, "own limit of turns reached", ChecksThenGoesOn,
        "raise `max_turns` of the agent, or leave it out";
    MaxBudget, "own limit of cost reached", ChecksThenGoesOn,
        "raise that limit in the agent's own settings, or leave it out";
    Declined, "the model declined", NeedsPerson,
        "write the goal in other words, or name another model";
    PermissionDenied, "tool not permitted", ChecksThenPerson,
        "permit it in `allow` of the agent, take it out of `deny`, or set `permission = \"ask\"`";
    TimedOut, "timed out", RetriesAtOnce,
        "see what it waited for: `towline logs ID`; if it only works that long, raise the clock that ran out";
    Crashed, "crashed", Retries,
        "read what it printed: `towline logs ID --raw --attempt N`; `towline agents check NAME` shows its version and settings";
    Lost, "supervisor lost", Retries,
        "no action needed; the machine may have restarted, or run out of memory";
    SpawnFailed, "could not be started", HandsOver,
        "correct what the message names; `towline doctor` shows whether the agent is installed and may start";
    Cancelled, "cancelled", EndsGoal,
        "go on, if you want to: `towline retry ID`";
    OverBudget, "budget spent", EndsGoal,
        "resume it with more: `towline retry ID --budget AXIS=+N`";
    Interrupted, "interrupted", Pauses,
        "continue the session: `towline resume ID`";
    Refused, "request refused", RetriesThenBeginsAnew,
        "start a new session: `towline retry ID --fresh`; if that is refused as well, look at the agent's model and settings";
    OutputLimit, "printed more than a file may hold", HandsOver,
        "raise the limit with `ulimit -f unlimited`, then run `towline retry ID`";
}

impl EndKind {
    /// All classes with their words.
    pub fn all() -> &'static [EndClass] {
        TABLE
    }

    /// The words of this one.
    pub const fn class(self) -> &'static EndClass {
        &TABLE[self as usize]
    }

    /// The name in JSON and in the store. Programs and stored goals rely on it.
    pub fn name(self) -> &'static str {
        name_of(&self)
    }

    /// The class that is stored by this name; none for one of a later version. Earlier versions wrote `rate-limited`.
    pub fn named(name: &str) -> Option<Self> {
        value_named(&name.replace('-', "_"))
    }
}

/// The title, for people.
impl fmt::Display for EndKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class().title)
    }
}

impl Follows {
    /// What Towline does, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Checks => "runs the checks",
            Self::ChecksThenGoesOn => {
                "runs the checks; while they fail, goes on as long as the goal's budget lasts"
            }
            Self::ChecksThenPerson => "runs the checks; when they fail, needs a person",
            Self::WaitsForAnswer => "waits for the answer, then goes on in the same session",
            Self::Sleeps => "waits as long as it was asked to, then goes on in the same session",
            Self::WaitsForQuota => {
                "hands over to the next agent; without one, waits until the announced time, or for a guess of it"
            }
            Self::Retries => {
                "tries again in the same session after a pause that grows; after several in a row, hands over to \
                 the next agent"
            }
            Self::WaitsForProvider => {
                "tries again in the same session after a pause that grows to five minutes, for twelve hours; this costs \
                 neither an attempt nor an error unless the model had answered; after several tries in a row, hands \
                 over to the next agent"
            }
            Self::RetriesThenBeginsAnew => {
                "tries again in the same session after a pause; after the second refusal in a row, starts a new session \
                 with the whole history in its prompt"
            }
            Self::RetriesAtOnce => {
                "resumes the same session at once; after that, pauses as after a crash, or as after a server error when \
                 the model never answered"
            }
            Self::Compacts => {
                "summarises the conversation and tries again; if that does not help, begins a new session"
            }
            Self::BeginsAnew => "begins a new session, with the whole history in its prompt",
            Self::HandsOver => "hands over to the next agent; without one, needs a person",
            Self::NeedsPerson => "needs a person",
            Self::EndsGoal => "ends the goal and keeps the work",
            Self::Pauses => "pauses the goal",
        }
    }
}

impl End {
    /// The name in JSON and in the store.
    pub fn name(&self) -> &'static str {
        name_of(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/troubleshooting.md");
    const BEGIN: &str = "<!-- the table of ends: begin -->\n";
    const END: &str = "<!-- the table of ends: end -->";

    #[test]
    fn each_class_has_its_own_row() {
        for (place, class) in TABLE.iter().enumerate() {
            assert_eq!((class.kind as usize, class.kind.class()), (place, class));
            let name = class.kind.name();
            assert_eq!(EndKind::named(name), Some(class.kind));
            assert_eq!(
                EndKind::named(&name.replace('_', "-")),
                Some(class.kind),
                "as earlier versions wrote it"
            );
            assert!(!class.title.is_empty() && !class.hint.is_empty(), "{class:?}");
        }
        let titles: BTreeSet<&str> = TABLE.iter().map(|class| class.title).collect();
        assert_eq!(titles.len(), TABLE.len(), "two classes have the same title");
        assert_eq!(EndKind::named("an end of a later version"), None);
    }

    /// Stored goals and programs know them.
    #[test]
    fn no_name_has_changed() {
        let names = TABLE.iter().map(|class| class.kind.name()).collect::<Vec<_>>().join(" ");
        let stored = "completed asked slept rate_limited server_error auth context_overflow resume_refused \
                      max_turns max_budget declined permission_denied timed_out crashed lost spawn_failed \
                      cancelled over_budget interrupted refused output_limit";
        assert_eq!(names, stored);
        assert_eq!(crate::names::names::<End>(Some("end")).join(" "), stored);
    }

    #[test]
    fn the_table_in_the_documentation_is_this_one() {
        let mut table = "| end | in words | what Towline does by itself | what you can do |\n".to_owned();
        table += "| --- | --- | --- | --- |\n";
        for EndClass { kind, title, follows, hint } in EndKind::all() {
            let name = kind.name();
            table += &format!("| `{name}` | {title} | {} | {hint} |\n", follows.words());
        }
        let documented = DOCUMENT.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
        let documented = documented.map(|(table, _)| table.trim_end()).unwrap_or_default();
        assert!(
            documented == table.trim_end(),
            "docs/troubleshooting.md must have this between its two marks:\n\n{BEGIN}{table}{END}\n"
        );
    }
}
