//! The goal that is open: what it does, how its checks stand, what it costs, and its log.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line as ScreenLine, Span};
use towline_api::{BudgetLine, GoalReport, TrustReport};
use towline_core::show_duration;
use towline_terminal::{Tone, brief, columns, cut, short_id, wrapped};

use super::text::{line, of_painted, shown, styled};
use super::{both_ends, put};
use crate::model::{CheckState, GoalView, Model, dollars};

/// The rows above the log.
pub(super) const HEAD: u16 = 3;
/// The most rows of the message that an agent is writing.
const WRITING: usize = 4;

/// Draws the goal that is open.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, model: &mut Model, now: Timestamp) {
    let width = usize::from(area.width);
    let lines = [title(model, width, now), facts(model, width), rule(model, width)];
    put(buffer, area, &lines);
    let log = Rect { y: area.y + HEAD.min(area.height), height: area.height.saturating_sub(HEAD), ..area };
    let Some(open) = &mut model.open else { return };
    draw_log(buffer, log, open);
}

fn draw_log(buffer: &mut Buffer, area: Rect, open: &mut GoalView) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let Some(log) = &mut open.transcript else {
        return put(buffer, area, &[line("  reading the log…", Some(Tone::Dim))]);
    };
    log.set_width(width);
    let writing = if log.follows() { writing(&open.writing, width, height) } else { Vec::new() };
    let room = height - writing.len();
    let lines: Vec<ScreenLine<'static>> = log.shown(room).into_iter().map(of_painted).collect();
    // What is being written follows what was written.
    let lines: Vec<_> = lines.into_iter().chain(writing).collect();
    put(buffer, area, &lines);
}

/// The end of the message that the agent is writing.
fn writing(text: &str, width: usize, height: usize) -> Vec<ScreenLine<'static>> {
    const MOST: usize = 4_000;
    let start = text.char_indices().rev().nth(MOST).map_or(0, |(start, _)| start);
    let all = text[start..].lines().filter(|line| !line.trim().is_empty());
    let rows: Vec<String> = all.flat_map(|text| wrapped(&format!("  {}", shown(text)), width)).collect();
    let from = rows.len().saturating_sub(WRITING.min(height / 3));
    rows[from..].iter().map(|row| line(row, Some(Tone::Dim))).collect()
}

fn title(model: &Model, width: usize, now: Timestamp) -> ScreenLine<'static> {
    let Some(open) = &model.open else { return ScreenLine::default() };
    let row = model.rows.get(&open.id);
    let status = row.map(|row| row.label(now)).unwrap_or_default();
    let tone = row.and_then(|row| row.status().tone);
    let why = row.map(|row| row.why(model.holds.get(&row.id))).unwrap_or_default();
    let why = if why.is_empty() { why } else { format!(": {why}") };
    let id = short_id(&open.id);
    let title = row.map(|row| brief(&row.title)).unwrap_or_default();
    let room = width.saturating_sub(id.len() + 2);
    let status = cut(&format!("{status}{why}"), (room / 2).max(20).min(room));
    let title = cut(&title, room.saturating_sub(columns(&status) + 2));
    let left = ScreenLine::from(vec![
        styled(&id, Some(Tone::Dim)),
        Span::raw("  "),
        styled(&title, Some(Tone::Bold)),
    ]);
    both_ends(left, ScreenLine::from(styled(&status, tone)), width)
}

fn facts(model: &Model, width: usize) -> ScreenLine<'static> {
    let Some(open) = &model.open else { return ScreenLine::default() };
    let Some(report) = &open.report else { return ScreenLine::default() };
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (name, state) in &open.checks {
        let (sign, tone) = match state {
            CheckState::Running => ("…", None),
            CheckState::Passed => ("✓", Some(Tone::Good)),
            CheckState::Failed => ("✗", Some(Tone::Bad)),
        };
        spans.push(styled(&format!("{sign} {}  ", brief(name)), tone));
    }
    let checks = ScreenLine::from(spans);
    let room = width.saturating_sub(checks.width() + 2);
    let mut parts: Vec<String> = Vec::new();
    for part in spending(report) {
        let before: usize = parts.iter().map(|part| columns(part) + 3).sum();
        if before + columns(&part) > room {
            break;
        }
        parts.push(part);
    }
    let spending = ScreenLine::from(styled(&parts.join(" · "), None));
    if checks.width() == 0 { spending } else { both_ends(checks, spending, width) }
}

/// What it has used, the most important first.
fn spending(report: &GoalReport) -> Vec<String> {
    let limit = |axis: &str| report.budget.get(axis);
    let of = |axis: &str| limit(axis).map(|line| format!(" of {}", line.limit)).unwrap_or_default();
    let cost = match (dollars(&report.usage), limit("usd").and_then(|line| line.limit.as_f64())) {
        (cost, _) if cost == "unknown" => "cost unknown".to_owned(),
        (cost, Some(limit)) => format!("{cost} of ${limit:.2}"),
        (cost, None) => cost,
    };
    let cost = cost.replacen('–', "$0.00", 1);
    let time = |line: &BudgetLine| {
        let seconds = line.left.as_u64().unwrap_or(0);
        format!("{} left", show_duration(std::time::Duration::from_secs(seconds)))
    };
    let agent = report.agent.as_deref().map(brief);
    let model = report.attempts.iter().rev().find_map(|attempt| attempt.model.as_deref()).map(brief);
    let attempts = match report.attempts.len() {
        0 => None,
        attempts => Some(format!("attempt {attempts}{}", of("attempts"))),
    };
    let level = Some(level(&report.trust)).filter(|_| !report.attempts.is_empty());
    [Some(cost), attempts, level, agent, model, limit("wall").map(time)].into_iter().flatten().collect()
}

/// What its verdicts are worth.
fn level(trust: &TrustReport) -> String {
    let sandbox = trust.sandbox.as_deref().map(|sandbox| format!(" ({})", brief(sandbox)));
    format!("level {}{}", trust.level, sandbox.unwrap_or_default())
}

/// The line above the log, with the place in it.
fn rule(model: &Model, width: usize) -> ScreenLine<'static> {
    let log = model.open.as_ref().and_then(|open| open.transcript.as_ref());
    let height = model.rows_shown;
    let place = match log {
        Some(log) if !log.follows() => match log.below(height) {
            0 => " more below · G end ".to_owned(),
            below => format!(" {below} lines below · G end "),
        },
        Some(log) if log.begins_earlier() => " g earlier ".to_owned(),
        _ => String::new(),
    };
    let rule = "─".repeat(width.saturating_sub(columns(&place) + 2));
    line(&format!("{rule}{place}──"), Some(Tone::Dim))
}
