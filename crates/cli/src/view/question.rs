//! A question as people read it.

use towline_core::{About, Ask, Part, show_duration};

use crate::output::printable;

/// The question, its options by number, and what happens when nobody answers.
pub(crate) fn question_lines(ask: &Ask) -> Vec<String> {
    let mut lines = match &ask.about {
        About::Choice { parts } => parts.iter().flat_map(part_lines).collect(),
        About::Permission { call, title, rule } => vec![
            format!("  ? may it use {}: {}", printable(&call.tool), printable(title)),
            format!("      yes · no · always: add {:?} to `allow` of the agent", printable(rule)),
        ],
    };
    match (ask.patience, &ask.default) {
        (Some(patience), Some(default)) => lines.push(format!(
            "      unanswered for {}, it goes on with: {}",
            show_duration(patience),
            printable(default)
        )),
        (Some(patience), None) => {
            lines.push(format!("      waits for {} at most", show_duration(patience)));
        }
        _ => {}
    }
    lines
}

fn part_lines(part: &Part) -> Vec<String> {
    let many = if part.many { " (several, separated by commas)" } else { "" };
    let mut text = part.text.trim().lines();
    let mut lines = vec![format!("  ? {}{many}", printable(text.next().unwrap_or_default()))];
    lines.extend(text.map(|line| format!("    {}", printable(line))));
    for (number, option) in (1..).zip(&part.options) {
        let meaning = match option.description.trim() {
            "" => String::new(),
            description => format!(": {}", printable(description)),
        };
        lines.push(format!("      {number}  {}{meaning}", printable(&option.label)));
    }
    lines
}
