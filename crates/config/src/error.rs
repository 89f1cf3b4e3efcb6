//! What can be wrong with a configuration, in words that help.

use std::fmt;

use crate::layer::Place;

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// All that is wrong with the layers, one problem per line.
    #[error("{}", lines(.0))]
    Problems(Vec<Problem>),
    /// A name that no agent has.
    #[error("unknown agent `{name}`; known agents: {}{}", .known.join(", "), did_you_mean(.nearest.as_deref()))]
    UnknownAgent {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
        /// What was probably meant.
        nearest: Option<String>,
    },
}

/// One thing that is wrong: what, where, and how to put it right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} in {place}; {fix}")]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// Where it was set.
    pub place: Place,
    /// What to do about it.
    pub fix: String,
}

/// Something that will not have the effect that its author may expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about.
    pub key: String,
    /// Where it was set.
    pub place: Place,
    /// What will not happen.
    pub kind: WarningKind,
}

/// The kinds of warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningKind {
    /// The key is known, but has no effect yet.
    Unused,
    /// The prompt will be in the arguments of a process.
    VisiblePrompt,
    /// The prompt is no template that it could fill in.
    NoTemplate,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, place, kind } = self;
        match kind {
            WarningKind::Unused => write!(f, "`{key}` is not used by this version; set in {place}"),
            WarningKind::VisiblePrompt => write!(
                f,
                "`{key}` shows the prompt to everybody on this machine who lists processes; \
                 \"stdin\" and \"file\" do not; set in {place}"
            ),
            WarningKind::NoTemplate => {
                write!(f, "`{key}` has no effect without `template = true`; set in {place}")
            }
        }
    }
}

/// The end of a message that offers another name.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
