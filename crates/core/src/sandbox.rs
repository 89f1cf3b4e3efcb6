//! What a goal's programs are confined by: what the user asks for, and what they got.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether agents and checks run in a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Where the machine has one.
    Auto,
    /// Nothing starts without one.
    Required,
    #[default]
    Off,
}

impl SandboxMode {
    /// As the configuration names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::Off => "off",
        }
    }
}

/// Whether a program reaches the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Open,
    /// Nothing but a loopback interface of its own.
    Closed,
}

/// The section `[sandbox]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    pub mode: SandboxMode,
    /// The network of agents.
    pub network: Network,
    pub setup_network: Network,
    pub checks_network: Network,
    /// Further paths that programs can read.
    pub read: Vec<PathBuf>,
    /// Further paths that programs can change.
    pub write: Vec<PathBuf>,
    /// Paths that no program can see.
    pub hide: Vec<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            mode: SandboxMode::default(),
            network: Network::Open,
            setup_network: Network::Open,
            checks_network: Network::Closed,
            read: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
        }
    }
}

/// What confines a program, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Rules of the kernel about files. They do not hide processes and sockets.
    Landlock,
    /// Namespaces, made by bubblewrap.
    Bubblewrap,
}

impl Sandbox {
    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
        }
    }

    /// Whether processes of its own are above the program. Otherwise it becomes the program.
    pub const fn stays_above(self) -> bool {
        matches!(self, Self::Bubblewrap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, fresh_attempt, goal, green, no, red, verdict};
    use crate::{
        AgentName, Attempt, Confined, Continuation, GoalState, ModelChoice, SessionBinding, SessionId, Usage,
        Verdict,
    };

    #[test]
    fn a_goal_is_confined_by_the_weakest_that_touched_it() {
        use Sandbox::{Bubblewrap, Landlock};
        let mut state = GoalState::new(&goal());
        assert_eq!(state.confined_by(), None, "nothing ran yet");
        for (number, sandbox) in [(1, Some(Bubblewrap)), (2, Some(Bubblewrap))] {
            state.attempts.push(fresh_attempt(number, at(0)));
            let attempt = &mut state.attempts[no(number).index()];
            (attempt.started, attempt.sandbox) = (true, sandbox);
        }
        let of_check = |check, sandbox| Verdict { sandbox, ..verdict("a", vec![check]) };
        state.attempts[0].verdict = Some(of_check(red("tests", "1 failed"), Some(Bubblewrap)));
        state.attempts[1].verdict = Some(of_check(green("tests"), Some(Bubblewrap)));
        assert_eq!(state.confined_by(), Some(Bubblewrap));
        // The checks of a red verdict ran the agent's code as well.
        state.attempts[0].verdict = Some(of_check(red("tests", "1 failed"), Some(Landlock)));
        assert_eq!(state.confined_by(), Some(Landlock));
        state.attempts[0].verdict = Some(of_check(red("tests", "1 failed"), None));
        assert_eq!(state.confined_by(), None);
        state.attempts[0].verdict = None;
        state.attempts[1].sandbox = None;
        assert_eq!(state.confined_by(), None);
        // An agent that could not be started touched nothing.
        state.attempts[1].started = false;
        assert_eq!(state.confined_by(), Some(Bubblewrap));
        state.entered_at = Some(at(0));
        assert_eq!(state.confined_by(), Some(Bubblewrap));
        state.attempts[0].sandbox = Some(Landlock);
        assert_eq!(state.confined_by(), None, "a person's session has no Landlock");
    }

    #[test]
    fn a_goal_that_continues_another_is_confined_by_no_more_than_that_one_was() {
        use Sandbox::{Bubblewrap, Landlock};
        let earlier = |confined| {
            let mut goal = goal();
            goal.continues = Some(Continuation {
                goal: goal.id,
                place: goal.id,
                session: SessionBinding {
                    agent: AgentName::new("claude"),
                    native_id: SessionId::new("s"),
                    model: None,
                    directory: "/project".to_owned(),
                    since: at(0),
                    asked_model: ModelChoice::Unknown,
                    origin: None,
                },
                used: Usage::default(),
                confined,
            });
            let mut state = GoalState::new(&goal);
            assert_eq!(state.confined_by(), None, "nothing ran yet");
            let attempt = Attempt { started: true, sandbox: Some(Bubblewrap), ..fresh_attempt(1, at(0)) };
            state.attempts.push(attempt);
            state.confined_by()
        };
        let by = |by| Some(Confined { by });
        let found = [None, by(None), by(Some(Landlock)), by(Some(Bubblewrap))].map(earlier);
        assert_eq!(found, [Some(Bubblewrap), None, Some(Landlock), Some(Bubblewrap)]);
    }
}
