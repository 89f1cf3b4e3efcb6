//! The panel above the status: a question, what is typed, or what is to be confirmed.

use jiff::Timestamp;
use ratatui::text::{Line as ScreenLine, Span};
use towline_api::{MergeReport, QuestionReport};
use towline_core::misleads;
use towline_terminal::{Letters, Tone, columns, counted, cut, short_id, wrapped};

use super::text::{line, shown, style, styled};
use crate::model::{Line, Mode, Model, Proof, Purpose, Rows, left, raising_command, with_line_ends};

/// What the panel shows, and where the cursor is in it.
#[derive(Default)]
pub(super) struct Panel {
    pub(super) lines: Vec<ScreenLine<'static>>,
    /// Column and row.
    pub(super) cursor: Option<(u16, u16)>,
    /// What is shown of the request that is open for an answer.
    pub(super) rows: Option<Rows>,
}

/// The panel in at most so many rows.
pub(super) fn panel(
    model: &mut Model,
    width: usize,
    height: usize,
    letters: Letters,
    now: Timestamp,
) -> Panel {
    let height = height.max(2);
    match &model.mode {
        Mode::Browse | Mode::Help => open_question(model, width, height, letters, now),
        Mode::Typing(Purpose::Search, line) => typing("search> ", line, Vec::new(), width),
        Mode::Typing(Purpose::Tell { goal }, line) => {
            let to = format!("Message to goal {} {:?}", short_id(goal), title(model, goal));
            typing("message> ", line, vec![rule(width), head(&cut(&to, width))], width)
        }
        Mode::Typing(Purpose::Retry { goal }, line) => {
            typing("budget> ", line, retry_lines(model, goal, width), width)
        }
        Mode::Refused { text } => {
            let rows = wrapped(&shown(text), width).into_iter().map(|row| line(&row, Some(Tone::Warn)));
            let lines = std::iter::once(rule(width)).chain(rows).chain([head("Press Esc to go on.")]);
            Panel { lines: lines.collect(), cursor: None, rows: None }
        }
        Mode::Typing(Purpose::Answer { goal, question, part }, line) => {
            let (prompt, lines) = match model.asked(goal, *question) {
                Some(asked) => {
                    let about = format!("{} {}", short_id(goal), shown(&asked.title));
                    (
                        prompt(&asked.question, *part),
                        question_lines(&asked.question, *part, &about, width, letters, now),
                    )
                }
                None => ("answer> ".to_owned(), vec![head("this question is not open any more")]),
            };
            let (shown, rows) = window(lines, model.panel_scroll, height.saturating_sub(2), width);
            let panel = typing(&prompt, line, [vec![rule(width)], shown].concat(), width);
            model.panel_scroll = rows.top;
            Panel { rows: Some(rows), ..panel }
        }
        Mode::Confirm { text, .. } => {
            let rows = wrapped(&shown(text), width).into_iter().map(|row| line(&row, Some(Tone::Warn)));
            let lines =
                std::iter::once(rule(width)).chain(rows).chain([head("Press y to do it, n to go back.")]);
            Panel { lines: lines.collect(), cursor: None, rows: None }
        }
        Mode::Merge { goal, proof, plan } => {
            let title = title(model, goal);
            Panel {
                lines: merge_lines(goal, &title, *proof, plan.as_deref(), width),
                cursor: None,
                rows: None,
            }
        }
    }
}

/// What a retry needs, and the command that does the same.
fn retry_lines(model: &Model, goal: &str, width: usize) -> Vec<ScreenLine<'static>> {
    let about = format!("Retry goal {} {:?}", short_id(goal), title(model, goal));
    let mut lines = vec![rule(width), head(&cut(&about, width))];
    if let Some(axis) = model.spent_axis(goal) {
        let text =
            format!("  Its budget `{axis}` is spent. Raise it, or run: {}", raising_command(goal, axis));
        lines.extend(wrapped(&text, width).iter().map(|row| line(row, None)));
    }
    lines
}

fn title(model: &Model, goal: &str) -> String {
    model.rows.get(goal).map(|row| shown(&row.title)).unwrap_or_default()
}

/// The question of the goal that is open.
fn open_question(model: &Model, width: usize, height: usize, letters: Letters, now: Timestamp) -> Panel {
    let Some(open) = model.open.as_ref().filter(|_| !matches!(model.mode, Mode::Help)) else {
        return Panel::default();
    };
    let Some(asked) = model.first_question(Some(&open.id)) else {
        return why_it_stopped(model, &open.id, width, height);
    };
    let about = "press a to answer";
    let lines = question_lines(&asked.question, 0, about, width, letters, now);
    let (shown, _) = window(lines, 0, height.saturating_sub(1), width);
    Panel { lines: [vec![rule(width)], shown].concat(), cursor: None, rows: None }
}

/// All of the reason why a goal does not go on alone: its line above has only the beginning.
fn why_it_stopped(model: &Model, goal: &str, width: usize, height: usize) -> Panel {
    let row = model.rows.get(goal).filter(|row| matches!(row.phase.as_str(), "escalated" | "failed"));
    let Some(row) = row.filter(|row| row.reason.is_some()) else { return Panel::default() };
    let reason = row.whole_reason(None);
    let status = row.status();
    let rows = reason.lines().flat_map(|text| wrapped(&format!("  {}", shown(text)), width));
    let heading = line(&format!("{}:", status.label), status.tone);
    let lines = std::iter::once(heading).chain(rows.map(|row| line(&row, None))).collect::<Vec<_>>();
    let (shown, _) = window(lines, 0, height.saturating_sub(1).min(8), width);
    Panel { lines: [vec![rule(width)], shown].concat(), cursor: None, rows: None }
}

fn rule(width: usize) -> ScreenLine<'static> {
    line(&"─".repeat(width), Some(Tone::Dim))
}

fn head(text: &str) -> ScreenLine<'static> {
    line(text, Some(Tone::Bold))
}

fn prompt(question: &QuestionReport, part: usize) -> String {
    match question.parts.len() {
        0 if question.always.is_some() => "yes, no or always> ".to_owned(),
        0 => "yes or no> ".to_owned(),
        1 => "answer> ".to_owned(),
        parts => format!("answer {} of {parts}> ", part + 1),
    }
}

/// All of a question: whoever permits a command sees every line of it.
fn question_lines(
    question: &QuestionReport,
    part: usize,
    about: &str,
    width: usize,
    letters: Letters,
    now: Timestamp,
) -> Vec<ScreenLine<'static>> {
    let what = if question.kind == "permission" { "Permission" } else { "Question" };
    let left = question.deadline.map(|deadline| format!(", {} left", left(deadline, now)));
    let heading = format!("{what} {}{} · {about}", question.id, left.unwrap_or_default());
    let mut lines = vec![line(&cut(&heading, width), Some(Tone::Warn))];
    let asked = question.parts.get(part);
    let text = asked.map_or(question.question.as_str(), |part| part.question.as_str());
    lines.extend(folded(text, width));
    for (number, option) in (1..).zip(asked.into_iter().flat_map(|part| &part.options)) {
        let meaning = match option.description.trim() {
            "" => String::new(),
            meaning => format!(": {}", shown(meaning)),
        };
        let text = format!("    {number}  {}{meaning}", shown(&option.label));
        lines.extend(wrapped(&text, width).iter().map(|row| line(row, None)));
    }
    if asked.is_some_and(|part| part.many) {
        lines.push(line("    several, separated by commas", Some(Tone::Dim)));
    }
    if let Some(rule) = &question.always {
        let rule = format!("{:?}", shown(&with_line_ends(rule))).replace('⏎', letters.line_end());
        let text = format!("    always: allow {rule} for this goal");
        lines.extend(wrapped(&text, width).iter().map(|row| line(row, Some(Tone::Dim))));
    }
    if let Some(default) = &question.default {
        let text = format!("    without an answer, it continues with: {}", shown(default));
        lines.extend(wrapped(&text, width).iter().map(|row| line(row, Some(Tone::Dim))));
    }
    lines
}

/// The rows of a text, with a count in place of many blank ones: they would push what follows out of sight.
fn folded(text: &str, width: usize) -> Vec<ScreenLine<'static>> {
    const MOST_BLANK: usize = 3;
    let of_line = |text: &str| match is_blank(text) {
        true => vec![String::new()],
        false => wrapped(&format!("  {}", shown(text)), width),
    };
    let rows: Vec<String> = text.lines().flat_map(of_line).collect();
    let runs = rows.chunk_by(|row, next| is_blank(row) == is_blank(next));
    let folded = runs.flat_map(|run| {
        if is_blank(&run[0]) && run.len() > MOST_BLANK {
            let count = format!("    … {} …", counted(run.len(), "blank line"));
            return vec![line(&cut(&count, width), Some(Tone::Warn))];
        }
        run.iter().map(|row| line(row, None)).collect()
    });
    folded.collect()
}

/// Whether nothing of it can be seen. Control characters can be: each is shown as a sign.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || (misleads(c) && !c.is_control()))
}

/// The part of a long question that fits, and which one it is.
fn window(
    lines: Vec<ScreenLine<'static>>,
    scroll: usize,
    height: usize,
    width: usize,
) -> (Vec<ScreenLine<'static>>, Rows) {
    let all = lines.len();
    if all <= height {
        return (lines, Rows { top: 0, shown: all, all });
    }
    let room = height.saturating_sub(1).max(1);
    let top = scroll.min(lines.len() - room);
    let below = lines.len() - room - top;
    let mut shown: Vec<_> = lines.into_iter().skip(top).take(room).collect();
    let more = match below {
        0 => "    PageUp shows the beginning".to_owned(),
        below => format!("    {} below: PageDown while you answer", counted(below, "more line")),
    };
    shown.push(line(&cut(&more, width), Some(Tone::Warn)));
    (shown, Rows { top, shown: room, all })
}

/// The line that is typed, below other lines. Its end is shown where it is too long.
fn typing(prompt: &str, typed: &Line, mut lines: Vec<ScreenLine<'static>>, width: usize) -> Panel {
    let (before, after) = typed.around_cursor();
    let [before, after] = [before, after].map(|text| shown(&text.replace('\n', "\\n")));
    let before = end_of(&before, width.saturating_sub(columns(prompt) + 1));
    let column = columns(prompt) + columns(before);
    let row = lines.len();
    lines.push(ScreenLine::from(vec![
        styled(prompt, Some(Tone::Bold)),
        Span::styled(format!("{before}{after}"), style(None)),
    ]));
    let place = |place: usize| u16::try_from(place).unwrap_or(u16::MAX);
    Panel { lines, cursor: Some((place(column), place(row))), rows: None }
}

/// The end of a text that fits into so many columns. It is looked for from the end: a text can be long.
fn end_of(text: &str, room: usize) -> &str {
    let mut used = 0;
    let fits = |(_, c): &(usize, char)| {
        used += columns(c.encode_utf8(&mut [0; 4]));
        used <= room
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(start, _)| start);
    &text[start..]
}

fn merge_lines(
    goal: &str,
    title: &str,
    proof: Proof,
    plan: Option<&MergeReport>,
    width: usize,
) -> Vec<ScreenLine<'static>> {
    let mut lines = vec![rule(width), head(&cut(&format!("Merge goal {} {title:?}", short_id(goal)), width))];
    let Some(plan) = plan else {
        lines.push(line("  planning the merge…", Some(Tone::Dim)));
        return lines;
    };
    let way = plan.way.replace('_', " ");
    let files = counted(plan.files, "file");
    lines.push(line(&cut(&format!("  into {}: {files}, {way}", shown(&plan.into)), width), None));
    lines.push(match (proof, plan.proven) {
        (Proof::Unproven, _) => line("  No check has proven this work.", Some(Tone::Warn)),
        (_, true) => line("  Checks have passed on exactly these files.", Some(Tone::Good)),
        (_, false) => line("  The checks run on the merge first.", Some(Tone::Warn)),
    });
    lines.push(head("Press y to merge, n to go back."));
    lines
}
