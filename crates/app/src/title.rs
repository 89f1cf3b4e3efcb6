//! The title of a goal: the beginning of its prompt, unless its file names one.

use towline_core::Scheduling;
use towline_mask::Mask;

/// How long a title may be.
const TITLE: usize = 60;

/// The title that the goal's file names, or one that is made of its prompt; without secrets.
pub(crate) fn of(named: Option<&str>, prompt: &str, scheduling: &Scheduling, mask: &Mask) -> String {
    match named {
        Some(title) => mask.text(title).into_owned(),
        None if scheduling.template.is_some() => of_template(&mask.text(prompt)),
        None => of_prompt(&mask.text(prompt)),
    }
}

fn of_prompt(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

/// The title of a goal whose prompt is filled in later: what is not known yet is `…`.
fn of_template(template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        text.push('…');
        rest = after.split_once("}}").map_or("", |(_, rest)| rest);
    }
    of_prompt(&(text + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_leaves_open_is_not_part_of_the_title() {
        let template = "Write docs about {{ prerequisites[0].summary }}, soon\nmore";
        assert_eq!(of_template(template), "Write docs about …, soon");
        assert_eq!(of_template("# {{ open"), "…");
        assert_eq!(of_template("plain"), "plain");
    }
}
