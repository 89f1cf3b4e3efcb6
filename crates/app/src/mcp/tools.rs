//! The tools: their descriptions, arguments and results.

use serde_json::{Value, json};
use towline_core::{Ask, LastWords};
use towline_engine::AgentWord;

/// The longest summary or word of progress that is passed on.
const LONGEST: usize = 16 * 1024;

/// One of Towline's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Ask,
    Sleep,
    Progress,
    Submit,
}

impl Tool {
    pub(super) const ALL: [Self; 4] = [Self::Ask, Self::Sleep, Self::Progress, Self::Submit];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Sleep => "sleep",
            Self::Progress => "progress",
            Self::Submit => "submit",
        }
    }

    /// What the tool is for.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Ask => {
                "Ask the operator something that only a person can decide. Returns at once: end your turn after it, and \
                 you will be called again with the answer."
            }
            Self::Sleep => {
                "Wait for something slow, such as a build elsewhere, without using up a turn. Returns at once: end your \
                 turn after it, and you will be called again when the time is over."
            }
            Self::Progress => "Report your progress to the operator. Changes nothing else.",
            Self::Submit => {
                "Report that you believe the goal is reached. The checks decide whether it is: end your turn after it."
            }
        }
    }

    /// What follows, for the agent.
    pub(super) const fn done(self) -> &'static str {
        match self {
            Self::Ask => {
                "The question is noted. End your turn now; you will be called again with the answer."
            }
            Self::Sleep => "Noted. End your turn now; you will be called again when the time is over.",
            Self::Progress => "Noted.",
            Self::Submit => "Noted. End your turn now; the checks will be run on what you left.",
        }
    }

    pub(super) fn describe(self) -> Value {
        json!({"name": self.name(), "description": self.purpose(), "inputSchema": self.schema()})
    }

    fn schema(self) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        let (properties, required) = match self {
            Self::Ask => (
                json!({
                    "question": text("the question"),
                    "options": {"type": "array", "items": {"type": "string"}, "description": "suggested answers"},
                    "default": text("the answer to use if there is none before the deadline"),
                    "deadline": text("how long the answer may take, such as 30m or 4h"),
                }),
                vec!["question"],
            ),
            Self::Sleep => (
                json!({
                    "seconds": {"type": "number", "minimum": 0, "description": "how long to wait"},
                    "reason": text("what you wait for"),
                }),
                vec!["seconds", "reason"],
            ),
            Self::Progress => (
                json!({
                    "text": text("what is done and what is next, in a line"),
                    "percent": {"type": "integer", "minimum": 0, "maximum": 100},
                }),
                vec!["text"],
            ),
            Self::Submit => (json!({"summary": text("what you did, in a few lines")}), vec!["summary"]),
        };
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// The report that a call makes, or what is wrong with the call.
    pub(super) fn word(self, arguments: Value) -> Result<AgentWord, String> {
        let text = |name: &str| match arguments[name].as_str().map(str::trim) {
            None | Some("") => Err(format!("`{name}` must be a text that is not empty")),
            Some(text) if text.len() > LONGEST => Err(format!("`{name}` is longer than {LONGEST} bytes")),
            Some(text) => Ok(text.to_owned()),
        };
        match self {
            Self::Ask => {
                let ask = Ask::from_value(arguments).map_err(|bad| bad.to_string())?;
                Ok(AgentWord::Ask { ask })
            }
            Self::Sleep => match LastWords::sleep(arguments) {
                Ok(LastWords::Sleep { duration, reason }) => Ok(AgentWord::Sleep { duration, reason }),
                Ok(LastWords::Ask(_)) => Err("`seconds` must be a number".to_owned()),
                Err(bad) => Err(bad.to_string()),
            },
            Self::Progress => {
                let percent = arguments["percent"].as_u64().map(|percent| percent.min(100) as u8);
                Ok(AgentWord::Progress { text: text("text")?, percent })
            }
            Self::Submit => Ok(AgentWord::Submit { summary: text("summary")? }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_become_words() {
        let cases = [
            (
                Tool::Ask,
                json!({"question": "Which?", "options": ["a"]}),
                AgentWord::Ask { ask: Ask::choice("Which?".into(), vec!["a".into()]) },
            ),
            (
                Tool::Sleep,
                json!({"seconds": 90, "reason": "CI"}),
                AgentWord::Sleep { duration: Duration::from_secs(90), reason: "CI".into() },
            ),
            (
                Tool::Progress,
                json!({"text": " half ", "percent": 500}),
                AgentWord::Progress { text: "half".into(), percent: Some(100) },
            ),
            (Tool::Submit, json!({"summary": "all"}), AgentWord::Submit { summary: "all".into() }),
        ];
        for (tool, arguments, wanted) in cases {
            assert_eq!(tool.word(arguments), Ok(wanted));
        }
    }

    #[test]
    fn the_answer_to_a_wrong_call_has_the_reason() {
        for (tool, arguments) in [
            (Tool::Ask, json!({})),
            (Tool::Ask, json!({"question": ""})),
            (Tool::Sleep, json!({"reason": "CI"})),
            (Tool::Sleep, json!({"seconds": -1, "reason": "CI"})),
            (Tool::Progress, json!({"text": 1})),
            (Tool::Submit, Value::Null),
        ] {
            assert!(tool.word(arguments.clone()).is_err(), "{tool:?} {arguments}");
        }
    }

    #[test]
    fn every_tool_is_found_by_its_name_and_describes_what_it_takes() {
        for tool in Tool::ALL {
            assert_eq!(Tool::named(tool.name()), Some(tool));
            let described = tool.describe();
            let required = described["inputSchema"]["required"].as_array().expect("a list").clone();
            for name in required {
                let name = name.as_str().expect("a name");
                assert!(described["inputSchema"]["properties"][name].is_object(), "{tool:?} {name}");
            }
        }
        assert_eq!(Tool::named("rm"), None);
    }
}
