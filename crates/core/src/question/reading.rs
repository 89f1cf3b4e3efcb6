//! Reading what people and agents write: answers, questions in files, and last messages that ask or sleep.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{About, Ask, Part, Reply};
use crate::duration::parse_duration;

/// The longest question, option or reason that is taken.
const LONGEST_TEXT: usize = 16 * 1024;
/// The longest an agent may sleep in one go.
const LONGEST_SLEEP: Duration = Duration::from_secs(7 * 24 * 3_600);

/// An answer that does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// The text is empty.
    #[error("the answer is empty; write something, or cancel the goal")]
    Empty,
    /// Neither yes nor no.
    #[error(
        "`{given}` is neither yes nor no; answer `yes`, `always`, or `no` with what the agent should do instead"
    )]
    NeitherYesNorNo {
        /// The text of the message.
        given: String,
    },
    /// What is asked was not shown in full.
    #[error("this is too long to be shown in full, and cannot be permitted for good; answer `yes` or `no`")]
    TooLongForAlways,
    /// A number that no option has.
    #[error("there is no option {given}; choose a number from 1 to {options}, or answer in words")]
    NoSuchOption {
        given: usize,
        /// How many options there are.
        options: usize,
    },
    /// Not one answer for each part.
    #[error(
        "{wanted} things are asked and {given} answered; give one answer per line, or separate them with `;`"
    )]
    WrongNumber {
        /// How many parts there are.
        wanted: usize,
        /// How many answers there were.
        given: usize,
    },
}

/// A question that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadQuestion {
    /// Not the JSON that is expected.
    #[error("not a question: {0}; write {{\"question\": \"…\", \"options\": [\"…\"], \"default\": \"…\"}}")]
    NotUnderstood(String),
    /// No words in it.
    #[error("the question is empty")]
    Empty,
}

/// What a last message means when it speaks to Towline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastWords {
    /// The agent asks.
    Ask(Ask),
    /// The agent wants to wait.
    Sleep { duration: Duration, reason: String },
}

#[derive(Deserialize)]
struct WrittenQuestion {
    question: String,
    #[serde(default)]
    options: Vec<String>,
    default: Option<String>,
    deadline: Option<Value>,
}

#[derive(Deserialize)]
struct WrittenSleep {
    seconds: f64,
    #[serde(default)]
    reason: String,
}

impl Ask {
    /// Reads a person's answer to this.
    pub fn read_answer(&self, text: &str) -> Result<Reply, BadAnswer> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadAnswer::Empty);
        }
        match &self.about {
            About::Permission { .. } => match permission(text) {
                Ok(Reply::Always) if self.always().is_none() => Err(BadAnswer::TooLongForAlways),
                reply => reply,
            },
            About::Choice { parts } => choice(parts, text),
        }
    }

    /// Reads a question as agents write it into their question file.
    pub fn read_written(text: &str) -> Result<Self, BadQuestion> {
        let value =
            serde_json::from_str(text).map_err(|error| BadQuestion::NotUnderstood(error.to_string()))?;
        Self::from_value(value)
    }

    /// Reads a question as agents give it to a tool.
    pub fn from_value(value: Value) -> Result<Self, BadQuestion> {
        let written = WrittenQuestion::deserialize(value)
            .map_err(|error| BadQuestion::NotUnderstood(error.to_string()))?;
        if written.question.trim().is_empty() {
            return Err(BadQuestion::Empty);
        }
        let options = written.options.into_iter().map(bounded).collect();
        let patience = written.deadline.as_ref().and_then(patience);
        let default = written.default.map(bounded).filter(|default| !default.trim().is_empty());
        Ok(Self { default, patience, ..Self::choice(bounded(written.question), options) })
    }
}

impl LastWords {
    /// The request to Towline in a last message; none when it is an ordinary message. The message is the JSON object and
    /// nothing else, but for a code fence around it.
    pub fn read(message: &str) -> Option<Result<Self, BadQuestion>> {
        let value: Value = serde_json::from_str(without_fence(message)).ok()?;
        match value.get("towline")?.as_str()? {
            "ask" => Some(Ask::from_value(value).map(Self::Ask)),
            "sleep" => Some(Self::sleep(value)),
            _ => None,
        }
    }

    /// Reads a request to wait as agents give it to a tool: `{"seconds": …, "reason": …}`.
    pub fn sleep(value: Value) -> Result<Self, BadQuestion> {
        let written = WrittenSleep::deserialize(value)
            .map_err(|error| BadQuestion::NotUnderstood(error.to_string()))?;
        let seconds = Duration::try_from_secs_f64(written.seconds);
        let duration = seconds.map_err(|error| BadQuestion::NotUnderstood(format!("`seconds`: {error}")))?;
        Ok(Self::Sleep { duration: duration.min(LONGEST_SLEEP), reason: bounded(written.reason) })
    }
}

fn permission(text: &str) -> Result<Reply, BadAnswer> {
    let (first, rest) =
        text.split_once(|c: char| c.is_whitespace() || ",:;.".contains(c)).unwrap_or((text, ""));
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ",:;.".contains(c));
    match first.to_ascii_lowercase().as_str() {
        "yes" | "y" | "allow" | "ok" | "1" if rest.is_empty() => Ok(Reply::Allowed),
        "always" | "a" if rest.is_empty() => Ok(Reply::Always),
        "no" | "n" | "deny" | "2" => Ok(Reply::Denied { message: rest.to_owned() }),
        _ => Err(BadAnswer::NeitherYesNorNo { given: text.to_owned() }),
    }
}

fn choice(parts: &[Part], text: &str) -> Result<Reply, BadAnswer> {
    if let [only] = parts {
        return Ok(Reply::Chosen { answers: vec![only.read(text)?] });
    }
    let separator = if text.contains('\n') { '\n' } else { ';' };
    let given: Vec<&str> = text.split(separator).map(str::trim).filter(|answer| !answer.is_empty()).collect();
    if given.len() != parts.len() {
        return Err(BadAnswer::WrongNumber { wanted: parts.len(), given: given.len() });
    }
    let answers: Result<_, _> = parts.iter().zip(given).map(|(part, answer)| part.read(answer)).collect();
    Ok(Reply::Chosen { answers: answers? })
}

impl Part {
    /// A number selects the option in that place, a label in any case itself; other words are an answer of
    /// the person's own. Where several may be chosen, commas separate them.
    fn read(&self, text: &str) -> Result<String, BadAnswer> {
        let given: Vec<&str> = if self.many { text.split(',').map(str::trim).collect() } else { vec![text] };
        let chosen: Option<Vec<&str>> = given.iter().map(|one| self.option(one)).collect();
        if let Some(chosen) = chosen {
            return Ok(chosen.join(", "));
        }
        let options = self.options.len();
        let unknown = given.iter().filter(|one| self.option(one).is_none());
        match unknown.filter_map(|one| one.parse().ok()).next() {
            Some(given) if options > 0 => Err(BadAnswer::NoSuchOption { given, options }),
            _ => Ok(text.to_owned()),
        }
    }

    fn option(&self, text: &str) -> Option<&str> {
        let by_number =
            text.parse::<usize>().ok().and_then(|number| self.options.get(number.checked_sub(1)?));
        let by_label = || self.options.iter().find(|option| option.label.eq_ignore_ascii_case(text));
        by_number.or_else(by_label).map(|option| option.label.as_str())
    }
}

/// Seconds as a number, or a duration as people write it.
fn patience(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(seconds) => Duration::try_from_secs_f64(seconds.as_f64()?).ok(),
        Value::String(text) => parse_duration(text).ok(),
        _ => None,
    }
}

fn without_fence(message: &str) -> &str {
    let message = message.trim();
    let fenced = message.strip_prefix("```").and_then(|open| open.strip_suffix("```"));
    fenced.and_then(|inside| inside.split_once('\n')).map_or(message, |(_language, inside)| inside.trim())
}

fn bounded(text: String) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;

    fn ask(parts: Vec<Part>) -> Ask {
        Ask { request: None, about: About::Choice { parts }, default: None, patience: None }
    }

    fn part(options: &[&str], many: bool) -> Part {
        let option = |label: &&str| Choice { label: (*label).to_owned(), description: String::new() };
        Part { text: "Which?".to_owned(), options: options.iter().map(option).collect(), many }
    }

    fn chosen(answers: &[&str]) -> Result<Reply, BadAnswer> {
        Ok(Reply::Chosen { answers: answers.iter().map(|&answer| answer.to_owned()).collect() })
    }

    #[test]
    fn the_question_in_the_documentation_is_understood_in_a_message_and_in_the_file() {
        let document = include_str!("../../../../docs/agents.md");
        let written =
            document.lines().find(|line| line.starts_with("{\"towline\": \"ask\"")).expect("an example");
        let ask = Ask::read_written(written).expect("a question");
        assert_eq!((ask.default.as_deref(), ask.patience), (Some("red"), Some(Duration::from_secs(600))));
        assert_eq!(LastWords::read(written), Some(Ok(LastWords::Ask(ask))));
    }

    #[test]
    fn an_option_is_chosen_by_number_or_label_and_other_words_are_taken_as_they_are() {
        let one = ask(vec![part(&["Red", "Blue"], false)]);
        for (given, wanted) in
            [("2", "Blue"), ("blue", "Blue"), ("3 of them", "3 of them"), ("green", "green")]
        {
            assert_eq!(one.read_answer(given), chosen(&[wanted]), "{given}");
        }
        let many = ask(vec![part(&["Red", "Blue"], true)]);
        assert_eq!(many.read_answer("2, red"), chosen(&["Blue, Red"]));
        assert_eq!(many.read_answer("red, and green"), chosen(&["red, and green"]));
        assert_eq!(one.read_answer("  "), Err(BadAnswer::Empty));
        assert_eq!(ask(vec![part(&[], false)]).read_answer("3"), chosen(&["3"]));
        assert_eq!(ask(vec![part(&["4", "8"], false)]).read_answer("8"), chosen(&["8"]));
    }

    #[test]
    fn an_option_number_that_does_not_exist_is_refused() {
        for many in [false, true] {
            let ask = ask(vec![part(&["Red", "Blue"], many)]);
            for given in [0, 3] {
                let refused = Err(BadAnswer::NoSuchOption { given, options: 2 });
                assert_eq!(ask.read_answer(&given.to_string()), refused, "{many}");
            }
        }
        let many = ask(vec![part(&["Red", "Blue"], true)]);
        assert_eq!(many.read_answer("1, 7"), Err(BadAnswer::NoSuchOption { given: 7, options: 2 }));
    }

    #[test]
    fn several_parts_want_several_answers() {
        let two = ask(vec![part(&["Red", "Blue"], false), part(&[], false)]);
        assert_eq!(two.read_answer("1; as soon as you can"), chosen(&["Red", "as soon as you can"]));
        assert_eq!(two.read_answer("1\na; b"), chosen(&["Red", "a; b"]));
        assert_eq!(two.read_answer("1"), Err(BadAnswer::WrongNumber { wanted: 2, given: 1 }));
    }

    #[test]
    fn a_permission_is_given_by_yes_alone() {
        let ask = crate::fixtures::permission();
        for yes in ["yes", "Y", "allow", "1"] {
            assert_eq!(ask.read_answer(yes), Ok(Reply::Allowed), "{yes}");
        }
        assert_eq!(ask.read_answer("Always"), Ok(Reply::Always));
        let mut endless = ask.clone();
        if let About::Permission { title, .. } = &mut endless.about {
            *title = "x".repeat(About::SHOWN + 1);
        }
        assert_eq!(endless.read_answer("always"), Err(BadAnswer::TooLongForAlways));
        assert_eq!(endless.read_answer("yes"), Ok(Reply::Allowed));
        let denied = |message: &str| Ok(Reply::Denied { message: message.to_owned() });
        assert_eq!(ask.read_answer("no"), denied(""));
        assert_eq!(ask.read_answer("No, use git clean"), denied("use git clean"));
        for unclear in ["yes, but only once", "always, I think", "perhaps", "nothing"] {
            let given = unclear.to_owned();
            assert_eq!(ask.read_answer(unclear), Err(BadAnswer::NeitherYesNorNo { given }));
        }
    }

    #[test]
    fn a_written_question_is_read_with_options_default_and_deadline() {
        let written = r#"{"question": "Which?", "options": ["a", "b"], "default": "a", "deadline": "2h"}"#;
        let wanted = Ask {
            default: Some("a".into()),
            patience: Some(Duration::from_secs(7_200)),
            ..Ask::choice("Which?".into(), vec!["a".into(), "b".into()])
        };
        assert_eq!(Ask::read_written(written), Ok(wanted));
        assert_eq!(Ask::read_written(r#"{"question": " "}"#), Err(BadQuestion::Empty));
        for broken in ["", "Which?", "[]", r#"{"question": 1}"#] {
            assert!(matches!(Ask::read_written(broken), Err(BadQuestion::NotUnderstood(_))), "{broken}");
        }
    }

    #[test]
    fn only_a_message_that_is_nothing_else_speaks_to_towline() {
        let asks = r#"{"towline": "ask", "question": "Which?"}"#;
        let ask = Some(Ok(LastWords::Ask(Ask::choice("Which?".into(), vec![]))));
        assert_eq!(LastWords::read(asks), ask);
        assert_eq!(LastWords::read(&format!("```json\n{asks}\n```\n")), ask);
        let sleeps = r#"{"towline": "sleep", "seconds": 1.5, "reason": "CI runs"}"#;
        let sleep = LastWords::Sleep { duration: Duration::from_millis(1_500), reason: "CI runs".into() };
        assert_eq!(LastWords::read(sleeps), Some(Ok(sleep)));
        for ordinary in ["", "Done.", "{}", r#"{"towline": "fly"}"#, &format!("I ask: {asks}")] {
            assert_eq!(LastWords::read(ordinary), None, "{ordinary}");
        }
        for broken in [r#"{"towline": "ask"}"#, r#"{"towline": "sleep", "seconds": -1}"#] {
            assert!(matches!(LastWords::read(broken), Some(Err(_))), "{broken}");
        }
    }

    #[test]
    fn nobody_sleeps_for_more_than_a_week() {
        let sleeps = r#"{"towline": "sleep", "seconds": 1e9}"#;
        let sleep = LastWords::Sleep { duration: LONGEST_SLEEP, reason: String::new() };
        assert_eq!(LastWords::read(sleeps), Some(Ok(sleep)));
    }
}
