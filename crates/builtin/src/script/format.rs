//! The file format of a script. All of its errors are found here, before the first step runs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use towline_core::{MicroUsd, Reported, Tokens, Usage, parse_duration};

use super::files::InnerPath;
use super::{BadScript, ScriptError};

/// Turns to play, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    turns: Vec<ScriptTurn>,
}

/// The steps for one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptTurn {
    /// The text that a prompt must contain for this turn to be played.
    when: Option<String>,
    #[serde(default, rename = "step")]
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "StepTable")]
pub(super) enum Step {
    Message(String),
    Think(String),
    Write(Write),
    Replace(Replace),
    Run(String),
    Sleep(Duration),
    Usage(Usage),
    Fail(String),
    Exit(u8),
    Raw(String),
}

/// A file to write as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub(super) path: InnerPath,
    pub(super) text: String,
}

/// A text to replace by another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    pub(super) path: InnerPath,
    pub(super) from: String,
    pub(super) to: String,
}

impl Script {
    /// Reads a script from its file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ScriptError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|source| ScriptError::Bad { path: path.to_owned(), source })
    }

    /// Reads a script from its text.
    pub fn parse(text: &str) -> Result<Self, BadScript> {
        let file: ScriptFile = toml::from_str(text).map_err(|error| BadScript(error.to_string()))?;
        if file.turn.is_empty() {
            return Err(BadScript("it has no turn; write at least one `[[turn]]`".into()));
        }
        Ok(Self { turns: file.turn })
    }

    /// The turn for this prompt, with its index: the first one from `next` on that fits, or else the last one that
    /// fits at all.
    pub(super) fn turn_for(&self, prompt: &str, next: usize) -> Option<(usize, &ScriptTurn)> {
        let fits = |turn: &ScriptTurn| turn.when.as_ref().is_none_or(|text| prompt.contains(text.as_str()));
        let mut fitting = self.turns.iter().enumerate().filter(|(_, turn)| fits(turn));
        fitting.clone().find(|(place, _)| *place >= next).or_else(|| fitting.next_back())
    }
}

/// The file as a whole.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default)]
    turn: Vec<ScriptTurn>,
}

/// A step in the file: a table with exactly one key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTable {
    #[serde(rename = "say")]
    message: Option<String>,
    think: Option<String>,
    write: Option<Write>,
    replace: Option<Replace>,
    run: Option<String>,
    sleep: Option<Pause>,
    usage: Option<UsageTable>,
    fail: Option<String>,
    exit: Option<u8>,
    raw: Option<String>,
}

impl TryFrom<StepTable> for Step {
    type Error = String;

    fn try_from(table: StepTable) -> Result<Self, String> {
        let given = [
            table.message.map(|text| ("say", Self::Message(text))),
            table.think.map(|text| ("think", Self::Think(text))),
            table.write.map(|write| ("write", Self::Write(write))),
            table.replace.map(|replace| ("replace", Self::Replace(replace))),
            table.run.map(|command| ("run", Self::Run(command))),
            table.sleep.map(|pause| ("sleep", Self::Sleep(pause.0))),
            table.usage.map(|usage| ("usage", Self::Usage(usage.into()))),
            table.fail.map(|reason| ("fail", Self::Fail(reason))),
            table.exit.map(|code| ("exit", Self::Exit(code))),
            table.raw.map(|line| ("raw", Self::Raw(line))),
        ];
        let (names, mut steps): (Vec<_>, Vec<_>) = given.into_iter().flatten().unzip();
        match (steps.pop(), names.as_slice()) {
            (Some(step), [_]) => Ok(step),
            (None, _) => Err("a step without anything to do; give it one key, like `say`".into()),
            _ => Err(format!(
                "a step does one thing, this one has {}; make it several steps",
                names.join(" and ")
            )),
        }
    }
}

/// A duration in words, such as `250ms`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Pause(Duration);

impl TryFrom<String> for Pause {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_duration(&text).map(Self).map_err(|error| error.to_string())
    }
}

/// The usage that a step reports.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct UsageTable {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost_usd: Option<Dollars>,
}

impl From<UsageTable> for Usage {
    fn from(table: UsageTable) -> Self {
        Self {
            input: Tokens(table.input),
            output: Tokens(table.output),
            cache_read: Tokens(table.cache_read),
            cache_write: Tokens(table.cache_write),
            reported: Reported { cost: table.cost_usd.is_some(), ..Reported::default() },
            cost: table.cost_usd.map_or(MicroUsd(0), |cost| cost.0),
            ..Usage::default()
        }
    }
}

/// An amount in dollars.
#[derive(Deserialize)]
#[serde(try_from = "f64")]
struct Dollars(MicroUsd);

impl TryFrom<f64> for Dollars {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        MicroUsd::from_dollars(dollars)
            .map(Self)
            .ok_or_else(|| format!("{dollars} is not an amount in dollars"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> InnerPath {
        InnerPath::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn every_kind_of_step_is_read() {
        let script = Script::parse(
            r#"
            [[turn]]
            when = "hello"
            [[turn.step]]
            say = "a"
            [[turn.step]]
            think = "b"
            [[turn.step]]
            write = { path = "c/d", text = "e" }
            [[turn.step]]
            replace = { path = "f", from = "g", to = "h" }
            [[turn.step]]
            run = "true"
            [[turn.step]]
            sleep = "250ms"
            [[turn.step]]
            usage = { input = 1, output = 2, cache_read = 3, cache_write = 4, cost_usd = 0.004 }
            [[turn.step]]
            usage = { output = 5, cost_usd = 1 }
            [[turn.step]]
            fail = "i"
            [[turn.step]]
            exit = 3
            [[turn.step]]
            raw = "j"
            [[turn]]
            "#,
        );
        let counted = Usage {
            input: Tokens(1),
            output: Tokens(2),
            cache_read: Tokens(3),
            cache_write: Tokens(4),
            cost: MicroUsd(4_000),
            ..Usage::default()
        };
        let steps = vec![
            Step::Message("a".into()),
            Step::Think("b".into()),
            Step::Write(Write { path: path("c/d"), text: "e".into() }),
            Step::Replace(Replace { path: path("f"), from: "g".into(), to: "h".into() }),
            Step::Run("true".into()),
            Step::Sleep(Duration::from_millis(250)),
            Step::Usage(counted),
            Step::Usage(Usage { output: Tokens(5), cost: MicroUsd(1_000_000), ..Usage::default() }),
            Step::Fail("i".into()),
            Step::Exit(3),
            Step::Raw("j".into()),
        ];
        let turns = vec![
            ScriptTurn { when: Some("hello".into()), steps },
            ScriptTurn { when: None, steps: Vec::new() },
        ];
        assert_eq!(script, Ok(Script { turns }));
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, parts) in [
            ("[[turn]]\nstep = [{ shout = 'a' }]", ["line 2", "unknown field `shout`"]),
            ("[[turn]]\nwhile = 'a'", ["line 2", "unknown field `while`"]),
            ("name = 'a'", ["line 1", "unknown field `name`"]),
            ("[[turn]]\nstep = [{ write = { path = 'a', txt = 'b' } }]", ["line 2", "unknown field `txt`"]),
            ("[[turn]]\nstep = [{ usage = { tokens = 1 } }]", ["line 2", "unknown field `tokens`"]),
            (
                "[[turn]]\nstep = [{ usage = { cost_usd = -1.0 } }]",
                ["line 2", "-1 is not an amount in dollars"],
            ),
            ("[[turn]]\nstep = [{ sleep = '250' }]", ["line 2", "`250` is not a duration"]),
            ("[[turn]]\nstep = [{ exit = 256 }]", ["line 2", "256"]),
            ("[[turn]]\nstep = [{ say = 'a', run = 'b' }]", ["line 2", "this one has say and run"]),
            ("[[turn]]\nstep = [{}]", ["line 2", "without anything to do"]),
            (
                "[[turn]]\nstep = [{ write = { path = '../a', text = '' } }]",
                ["line 2", "`../a` leads outside"],
            ),
            (
                "[[turn]]\nstep = [{ replace = { path = '/a', from = '', to = '' } }]",
                ["line 2", "`/a` leads outside"],
            ),
            ("", ["no turn", "[[turn]]"]),
            ("[[turn", ["line 1", "^"]),
        ] {
            let BadScript(message) = Script::parse(text).expect_err(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{text:?} gave:\n{message}");
        }
    }

    #[test]
    fn a_turn_is_chosen_by_its_index_and_the_text_of_the_prompt() {
        let text = "[[turn]]\n[[turn]]\nwhen = 'red'\n[[turn]]\nwhen = 'blue'\n";
        let script = Script::parse(text).unwrap();
        let place = |prompt, next| script.turn_for(prompt, next).map(|(place, _)| place);
        assert_eq!(place("go", 0), Some(0));
        assert_eq!(place("a red one", 1), Some(1));
        assert_eq!(place("a blue one", 1), Some(2), "turns that do not fit are passed over");
        assert_eq!(place("a red one", 3), Some(1), "the last one that fits repeats");
        assert_eq!(place("go", 3), Some(0));
        let picky = Script::parse("[[turn]]\nwhen = 'red'").unwrap();
        assert_eq!(picky.turn_for("go", 0), None);
    }
}
