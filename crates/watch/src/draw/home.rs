//! The list of all goals: what needs a person on top.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line as ScreenLine, Span};
use towline_api::{AccountLine, QuestionLine};
use towline_terminal::{Letters, Tone, brief, columns, cut, short_id};

use super::text::{cell, line, styled};
use super::{chosen, put};
use crate::model::{HomeLine, Model, More, Row, left, with_line_ends};

/// From this width on, the reason is beside the goal and not below it.
const WIDE: usize = 110;
const ID: usize = 8;
const STATUS: usize = 16;
/// The most columns for the name of an agent and for a cost; they get as many as they need.
const AGENT: usize = 10;
const COST: usize = 9;

/// The widths of columns that depend on what is in them, and the signs in them.
#[derive(Clone, Copy)]
struct Widths {
    agent: usize,
    cost: usize,
    all: usize,
    letters: Letters,
}

impl Widths {
    fn of(model: &Model, all: usize, letters: Letters) -> Self {
        let widest = |text: fn(&Row) -> &str, most: usize| {
            model.rows.values().map(|row| columns(text(row))).max().unwrap_or(0).min(most)
        };
        let agent = if all < 72 { 0 } else { widest(|row| &row.agent, AGENT) };
        let cost = if all < 50 { 0 } else { widest(|row| &row.cost, COST) };
        Self { agent, cost, all, letters }
    }
}

/// Draws the list around the line that is chosen.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, letters: Letters, now: Timestamp) {
    let width = usize::from(area.width);
    let widths = Widths::of(model, width, letters);
    let lines = model.home(now);
    if lines.is_empty() {
        return put(buffer, area, &empty(model));
    }
    let height = usize::from(area.height);
    let mut rows: Vec<ScreenLine<'static>> = Vec::new();
    let mut seen = 0..0;
    for home in near(&lines, model.selected.as_deref(), height) {
        let is_chosen = home.key().is_some() && home.key() == model.selected;
        let start = rows.len();
        rows.extend(of_line(home, model, is_chosen, widths, now));
        if is_chosen {
            // The head of a group comes into sight with its first line.
            seen = start.saturating_sub(2)..rows.len();
        }
    }
    // About as much is shown before the chosen line as after it.
    let top = seen.start.saturating_sub(height / 2).max((seen.end + 1).saturating_sub(height));
    let top = top.min(rows.len().saturating_sub(height));
    let top = if seen.end <= height { 0 } else { top };
    put(buffer, area, rows.get(top..).unwrap_or_default());
}

/// The lines that can be on a screen of this height: each takes one row or more, and there can be thousands of them.
fn near<'a, 'b>(lines: &'b [HomeLine<'a>], selected: Option<&str>, height: usize) -> &'b [HomeLine<'a>] {
    let is_chosen = |line: &HomeLine<'_>| selected.is_some() && line.key().as_deref() == selected;
    let chosen = lines.iter().position(is_chosen).unwrap_or(0);
    // The one that is chosen may have the head of its group above it, and is followed by a row of its own.
    let reach = height + 2;
    &lines[chosen.saturating_sub(reach)..(chosen + reach).min(lines.len())]
}

fn empty(model: &Model) -> Vec<ScreenLine<'static>> {
    let text: &[&str] = if !model.filter.is_empty() {
        &["", "  Nothing is found. Esc clears the search."]
    } else if model.is_loaded {
        &[
            "",
            "  There are no goals yet.",
            "",
            "  towline add \"fix the failing test\" --check \"cargo test\"",
        ]
    } else {
        &[]
    };
    text.iter().map(|text| line(text, Some(Tone::Dim))).collect()
}

fn of_line(
    home: &HomeLine<'_>,
    model: &Model,
    is_chosen: bool,
    widths: Widths,
    now: Timestamp,
) -> Vec<ScreenLine<'static>> {
    match home {
        HomeLine::Head(title, count, more) => {
            let more = if *more == More::Unlisted { "+" } else { "" };
            let head = styled(&format!("{title} "), Some(Tone::Bold));
            let filter = Some(model.filter.as_str()).filter(|filter| !filter.is_empty());
            let found = filter.map(|filter| format!(" · search: {filter}")).unwrap_or_default();
            let count = styled(&format!("{count}{more}{found}"), Some(Tone::Dim));
            vec![ScreenLine::from(vec![head, count])]
        }
        HomeLine::Question(question, row) => question_lines(question, *row, is_chosen, widths, now),
        HomeLine::Goal(row) => goal_lines(row, model, is_chosen, widths, now),
        HomeLine::Account(account) => account_lines(account, is_chosen, widths),
    }
}

fn account_lines(account: &AccountLine, is_chosen: bool, widths: Widths) -> Vec<ScreenLine<'static>> {
    let (name, agent) = (brief(&account.name), brief(&account.agent));
    let line = Columns {
        id: "account".to_owned(),
        status: ("closed".to_owned(), Some(Tone::Bad)),
        title: &name,
        agent: &agent,
        cost: "",
        beside: "",
    };
    let what =
        format!("its credentials were refused; sign in to {agent}, then: towline accounts open {name}");
    vec![line.line(is_chosen, widths), below(&what, widths)]
}

/// A goal in columns; the title gets what is left.
struct Columns<'a> {
    id: String,
    status: (String, Option<Tone>),
    title: &'a str,
    agent: &'a str,
    cost: &'a str,
    /// Why, where there is room for it beside the title.
    beside: &'a str,
}

impl Columns<'_> {
    fn line(&self, is_chosen: bool, widths: Widths) -> ScreenLine<'static> {
        let mark = if is_chosen { ">" } else { " " };
        let Widths { agent, cost, all: width, letters } = widths;
        let column = |width: usize| if width == 0 { 0 } else { width + 2 };
        let status = STATUS.min(width.saturating_sub(ID + 12).max(8));
        let fixed = 2 + ID + 2 + status + 1;
        let room = width.saturating_sub(fixed + column(agent) + column(cost));
        let beside = if width >= WIDE && !self.beside.is_empty() { room / 2 } else { 0 };
        let mut spans = vec![
            Span::raw(format!("{mark} ")),
            styled(&cell(&self.id, ID), Some(Tone::Dim)),
            Span::raw("  "),
            styled(&cell(&self.status.0, status), self.status.1),
            Span::raw(" "),
            Span::raw(cell(&brief(self.title), room - beside)),
        ];
        if beside > 0 {
            let text = self.beside.replace('⏎', letters.line_end());
            spans.push(styled(&format!("  {}", cell(&text, beside - 2)), Some(Tone::Dim)));
        }
        if agent > 0 {
            spans.push(Span::raw(format!("  {}", cell(self.agent, agent))));
        }
        if cost > 0 {
            spans.push(Span::raw(format!("  {:>cost$}", cut(self.cost, cost))));
        }
        let line = ScreenLine::from(spans);
        if is_chosen { chosen(line, width) } else { line }
    }
}

fn goal_lines(
    row: &Row,
    model: &Model,
    is_chosen: bool,
    widths: Widths,
    now: Timestamp,
) -> Vec<ScreenLine<'static>> {
    let why = match row.why(model.holds.get(&row.id)) {
        why if why.is_empty() => model.doing.get(&row.id).cloned().unwrap_or_default(),
        why => why,
    };
    let line = Columns {
        id: short_id(&row.id),
        status: (row.label(now), row.status().tone),
        title: &row.title,
        agent: &row.agent,
        cost: &row.cost,
        beside: &why,
    };
    let mut lines = vec![line.line(is_chosen, widths)];
    if widths.all < WIDE && !why.is_empty() {
        lines.push(below(&why, widths));
    }
    lines
}

/// What belongs to the line above.
fn below(text: &str, widths: Widths) -> ScreenLine<'static> {
    let Widths { all: width, letters, .. } = widths;
    let text = text.replace('⏎', letters.line_end());
    let indent = 2 + ID + 2;
    let indent = if width < 60 { 4 } else { indent };
    line(&format!("{}{}", " ".repeat(indent), cut(&text, width.saturating_sub(indent))), Some(Tone::Dim))
}

fn question_lines(
    asked: &QuestionLine,
    row: Option<&Row>,
    is_chosen: bool,
    widths: Widths,
    now: Timestamp,
) -> Vec<ScreenLine<'static>> {
    let question = &asked.question;
    let label = if question.kind == "permission" { "asks permission" } else { "needs an answer" };
    let line = Columns {
        id: short_id(&asked.goal),
        status: (label.to_owned(), Some(Tone::Warn)),
        title: &asked.title,
        agent: row.map(|row| row.agent.as_str()).unwrap_or_default(),
        cost: row.map(|row| row.cost.as_str()).unwrap_or_default(),
        beside: "",
    };
    let answers: Vec<String> = (1..)
        .zip(&question.options)
        .map(|(number, option)| match question.kind.as_str() {
            "permission" => option.clone(),
            _ => format!("{number} {option}"),
        })
        .collect();
    let left = question.deadline.map(|deadline| format!(" · {} left", left(deadline, now)));
    let answers = if answers.is_empty() { String::new() } else { format!("  [{}]", answers.join(" · ")) };
    // A line end in a command separates two of them.
    let asks = match question.kind.as_str() {
        "permission" => brief(&with_line_ends(&question.question)),
        _ => brief(&question.question),
    };
    let text = format!("? {asks}{answers}{}", left.unwrap_or_default());
    vec![line.line(is_chosen, widths), below(&brief(&text), widths)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::tests::{at, choice, id, line, model};

    #[test]
    fn lines_far_from_the_chosen_one_are_not_made_and_the_screen_is_the_same() {
        let goals = (1..=60).map(|number| {
            line(number, ["done", "failed", "running"][number as usize % 3], "x", &json!({"reason": "r"}))
        });
        let mut model = model(&goals.collect::<Vec<_>>(), vec![choice(60), choice(59)]);
        let area = Rect::new(0, 0, 80, 9);
        let widths = Widths::of(&model, 80, Letters::Unicode);
        for number in 1..=60 {
            model.selected = Some(id(number));
            let lines = model.home(at(0));
            assert!(near(&lines, model.selected.as_deref(), 9).len() <= 22);
            let mut shown = Buffer::empty(area);
            draw(&mut shown, area, &model, Letters::Unicode, at(0));
            // All rows, of which the screen is a part that begins here.
            let rows: Vec<_> = lines
                .iter()
                .flat_map(|home| {
                    of_line(home, &model, home.key() == model.selected && home.key().is_some(), widths, at(0))
                })
                .collect();
            let all = |top: usize| {
                let mut all = Buffer::empty(area);
                put(&mut all, area, &rows[top..]);
                all
            };
            let (mut start, mut end) = (0, 0);
            let mut before = 0;
            for home in &lines {
                let rows = of_line(home, &model, false, widths, at(0)).len();
                if home.key() == model.selected {
                    (start, end) = (before, before + rows);
                }
                before += rows;
            }
            let top = start.saturating_sub(2).saturating_sub(4).max((end + 1).saturating_sub(9));
            let top = if end <= 9 { 0 } else { top.min(rows.len() - 9) };
            assert_eq!(shown, all(top), "{number}");
        }
    }
}
