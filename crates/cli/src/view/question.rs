//! A question as people read it.

use towline_core::{About, Ask, GoalId, Part, QuestionNo, show_duration};

use crate::output::brief;

/// How many options and how many lines of a question are shown. All of them are in `towline questions --json`.
const MOST: usize = 20;

/// The question, its options by number, and what happens without an answer. Its own number is shown where it is not
/// the only one.
pub(crate) fn question_lines(ask: &Ask, number: Option<QuestionNo>) -> Vec<String> {
    let sign = number.map_or_else(|| "?".to_owned(), |number| format!("? {number}"));
    let mut lines = match &ask.about {
        About::Choice { parts } => parts.iter().flat_map(|part| part_lines(part, &sign)).collect(),
        About::Permission { call, title, rule } => {
            let mut lines = cut_lines(title, &format!("  {sign} may it use {}: ", brief(&call.tool)));
            lines.push(format!("      yes · no · always: allow {:?} for this goal", brief(rule)));
            lines
        }
    };
    match (ask.patience, &ask.default) {
        (Some(patience), Some(default)) => lines.push(format!(
            "      without an answer within {}, it continues with: {}",
            show_duration(patience),
            brief(default)
        )),
        (Some(patience), None) => {
            lines.push(format!("      waits for {} at most", show_duration(patience)));
        }
        (None, Some(default)) => lines.push(format!("      default: {}", brief(default))),
        (None, None) => {}
    }
    lines
}

/// The command that answers a question, by its number where several are open.
pub(crate) fn how_to_answer(goal: GoalId, number: Option<QuestionNo>) -> String {
    let number = number.map(|number| format!(" --question {number}")).unwrap_or_default();
    format!("towline answer {}{number} …", goal.short())
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
        let call = towline_core::ToolCall { tool: "Bash".into(), input: "00".into() };
        let about = About::Permission { call, title: "make\nrm -rf out".into(), rule: "Bash(make *)".into() };
        let lines = question_lines(&Ask { request: None, about, default: None, patience: None }, None);
        assert_eq!(lines[..2], ["  ? may it use Bash: make", "    rm -rf out"]);
    }

    #[test]
    fn a_question_without_measure_does_not_fill_the_screen() {
        let options = (1..=10_000).map(|number| format!("option {number}")).collect();
        let ask = Ask::choice("line\n".repeat(1_000) + &"x".repeat(500), options);
        let lines = question_lines(&ask, Some(QuestionNo(2)));
        assert_eq!(lines[0], "  ? 2 line");
        assert_eq!(lines[20], "    … and 981 more lines");
        assert_eq!(lines[40], "      20  option 20");
        assert_eq!(lines[41..], ["      … and 9980 more"]);
    }
}
