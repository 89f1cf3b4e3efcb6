//! A question as people read it.

use std::time::Duration;

use jiff::Timestamp;
use towline_core::{About, Ask, GoalId, GoalState, Part, Question, QuestionNo, show_duration};

use crate::text::{brief, mask, printable};

/// How many options and how many lines of a question are shown. All of them are in `towline questions --json`.
const MOST: usize = 20;

/// The question, its options by number, and what happens without an answer. Its own number is shown where it is not
/// the only one; `left` is the time until its default holds, if that time is running.
pub fn question_lines(ask: &Ask, number: Option<QuestionNo>, left: Option<Duration>) -> Vec<String> {
    let sign = number.map_or_else(|| "?".to_owned(), |number| format!("? {number}"));
    let mut lines = match &ask.about {
        About::Choice { parts } => parts.iter().flat_map(|part| part_lines(part, &sign)).collect(),
        About::Permission { call, title, .. } => {
            let heading = format!("  {sign} may it use {}: ", brief(&call.tool));
            permission_lines(title, &heading, ask.always())
        }
    };
    match (left, &ask.default) {
        (Some(left), Some(default)) => lines.push(format!(
            "      without an answer within {}, it continues with: {}",
            show_duration(left),
            brief(default)
        )),
        (Some(left), None) => lines.push(format!("      waits for {} at most", show_duration(left))),
        (None, Some(default)) => lines.push(format!("      default: {}", brief(default))),
        (None, None) => {}
    }
    lines
}

/// The time until the question's default holds. None for a goal that is settled, since it waits for nothing.
pub fn time_left(state: &GoalState, question: &Question, now: Timestamp) -> Option<Duration> {
    let deadline = question.deadline.filter(|_| !state.phase.is_settled())?;
    Some(Duration::try_from(deadline.duration_since(now)).unwrap_or_default())
}

/// The command that answers a question, by its number where several are open.
pub fn how_to_answer(goal: GoalId, number: Option<QuestionNo>) -> String {
    let number = number.map(|number| format!(" --question {number}")).unwrap_or_default();
    format!("towline answer {}{number} …", goal.short())
}

/// All lines of what a person is to permit, and the answers. If it is extremely long, the rest is elsewhere.
fn permission_lines(wanted: &str, heading: &str, always: Option<&str>) -> Vec<String> {
    let wanted = mask().text(wanted.trim()).into_owned();
    let end = wanted.char_indices().nth(About::SHOWN).map_or(wanted.len(), |(end, _)| end);
    let (shown, hidden) = wanted.split_at(end);
    let mut text = shown.split('\n');
    let mut lines = vec![format!("{heading}{}", printable(text.next().unwrap_or_default()))];
    lines.extend(text.map(|line| format!("    {}", printable(line))));
    if !hidden.is_empty() {
        let count = hidden.chars().count();
        lines.push(format!("    … {count} more characters are not shown; read them before you answer:"));
        lines.push("      towline questions --json, later towline logs --json".to_owned());
    }
    lines.push(match always.filter(|_| hidden.is_empty()) {
        Some(rule) if rule.contains(wanted.as_str()) && wanted.contains('\n') => {
            "      yes · no · always: allow exactly this for this goal".to_owned()
        }
        Some(rule) => format!("      yes · no · always: allow {:?} for this goal", printable(rule)),
        None => "      yes · no".to_owned(),
    });
    lines
}

/// The lines of a text behind a heading, as many as are shown.
fn cut_lines(text: &str, heading: &str) -> Vec<String> {
    let text: Vec<&str> = text.trim().lines().collect();
    let first = text.first().copied().unwrap_or_default();
    let mut lines = vec![format!("{heading}{}", brief(first))];
    lines.extend(text.iter().take(MOST).skip(1).map(|line| format!("    {}", brief(line))));
    if text.len() > MOST {
        lines.push(format!("    … and {} more lines", text.len() - MOST));
    }
    lines
}

fn part_lines(part: &Part, sign: &str) -> Vec<String> {
    let many = if part.many { "(several, separated by commas) " } else { "" };
    let mut lines = cut_lines(&part.text, &format!("  {sign} {many}"));
    for (number, option) in (1..).zip(part.options.iter().take(MOST)) {
        let meaning = match option.description.trim() {
            "" => String::new(),
            description => format!(": {}", brief(description)),
        };
        lines.push(format!("      {number}  {}{meaning}", brief(&option.label)));
    }
    if part.options.len() > MOST {
        lines.push(format!("      … and {} more", part.options.len() - MOST));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_permits_a_command_sees_all_of_its_lines() {
        let shown = |title: &str| {
            let call = towline_core::ToolCall { tool: "Bash".into(), input: "00".into() };
            let about = About::Permission { call, title: title.into(), rule: format!("Bash({title})") };
            question_lines(&Ask { request: None, about, default: None, patience: None }, None, None)
        };
        let all = "      yes · no · always: allow exactly this for this goal";
        assert_eq!(shown("make\n\u{1b}[8mrm x"), ["  ? may it use Bash: make", "    \u{fffd}[8mrm x", all]);
        let long = format!("echo {} && rm x", "a".repeat(1_000));
        assert_eq!(shown(&long)[0], format!("  ? may it use Bash: {long}"));
        let many = format!("cat <<E\n{}E\nrm x", "line\n".repeat(100));
        assert_eq!(shown(&many)[102..], ["    rm x", all]);
        let endless = shown(&format!("{}\nrm x", "a".repeat(About::SHOWN)));
        assert!(endless[1].starts_with("    … 5 more characters are not shown"), "{endless:?}");
        assert_eq!(endless.last().map(String::as_str), Some("      yes · no"));
    }

    #[test]
    fn a_question_without_measure_does_not_fill_the_screen() {
        let options = (1..=10_000).map(|number| format!("option {number}")).collect();
        let ask = Ask::choice("line\n".repeat(1_000) + &"x".repeat(500), options);
        let lines = question_lines(&ask, Some(QuestionNo(2)), None);
        assert_eq!(lines[0], "  ? 2 line");
        assert_eq!(lines[20], "    … and 981 more lines");
        assert_eq!(lines[40], "      20  option 20");
        assert_eq!(lines[41..], ["      … and 9980 more"]);
    }
}
