//! The screen as it follows from the model: a header, what is open, a panel for what is asked or typed, and a line of status. Nothing
//! here changes the model or knows a terminal.

mod goal;
mod home;
mod panel;
mod text;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as ScreenLine, Span};
use towline_terminal::{Group, Letters, Paint, Step, Tone, brief, clean, columns, cut};

use self::text::{line, style, styled};
use crate::keys::HELP;
use crate::model::{Connection, Mode, Model, Purpose, Row};

/// How the terminal can be drawn on.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub paint: Paint,
    pub letters: Letters,
}

/// Draws everything.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &mut Model, look: Look, now: Timestamp) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let width = usize::from(area.width);
    let panel = panel::panel(model, width, usize::from(area.height / 2), look.letters, now);
    let [header, body, below, status] = parts(area, panel.lines.len());
    model.rows_shown = match model.open {
        Some(_) => usize::from(body.height.saturating_sub(goal::HEAD)).max(1),
        None => usize::from(body.height).max(1),
    };
    put(buffer, header, &[header_line(model, width, now)]);
    match (&model.mode, model.open.is_some()) {
        (Mode::Help, _) => {
            let lines = help(body.width.into());
            model.panel_page = usize::from(body.height).saturating_sub(1).max(1);
            let top = model.panel_scroll.min(lines.len().saturating_sub(body.height.into()));
            put(buffer, body, &lines[top..]);
        }
        (_, true) => goal::draw(buffer, body, model, now),
        (_, false) => home::draw(buffer, body, model, look.letters, now),
    }
    put(buffer, below, &panel.lines);
    if matches!(model.mode, Mode::Typing(Purpose::Answer { .. }, _)) {
        let has_room = panel.lines.len() <= usize::from(below.height);
        model.see(panel.rows.filter(|_| has_room), width);
    }
    put(buffer, status, &[status_line(model, width, now)]);
    adapt(buffer, area, look);
    if let Some((column, row)) = panel.cursor.filter(|_| below.height > 0) {
        frame.set_cursor_position((
            (below.x + column).min(area.width.saturating_sub(1)),
            below.y + row.min(below.height - 1),
        ));
    }
}

/// The areas of the header, the body, the panel and the status. What is asked or typed goes before the list.
fn parts(area: Rect, panel: usize) -> [Rect; 4] {
    let panel = u16::try_from(panel).unwrap_or(u16::MAX).min(area.height.saturating_sub(3));
    let header = area.height.min(1);
    let status = area.height.saturating_sub(1).min(1);
    let body = area.height - header - status - panel.min(area.height - header - status);
    let mut y = area.y;
    [header, body, area.height - header - body - status, status].map(|height| {
        let part = Rect { x: area.x, y, width: area.width, height };
        y += height;
        part
    })
}

/// Writes lines from the top of an area on, as far as there is room.
fn put(buffer: &mut Buffer, area: Rect, lines: &[ScreenLine<'_>]) {
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        buffer.set_line(area.x, row, line, area.width);
    }
}

/// A line with a text at its left and one at its right, which is dropped first where there is little room.
fn both_ends(left: ScreenLine<'static>, right: ScreenLine<'static>, width: usize) -> ScreenLine<'static> {
    let gap = width.saturating_sub(left.width() + right.width());
    if gap < 2 {
        return left;
    }
    let mut spans = left.spans;
    spans.push(Span::raw(" ".repeat(gap)));
    spans.extend(right.spans);
    ScreenLine::from(spans)
}

/// What needs a person comes first: it is there in every view and on every screen.
fn header_line(model: &Model, width: usize, now: Timestamp) -> ScreenLine<'static> {
    let needs = match model.needs(now) {
        0 => styled("nothing needs you", Some(Tone::Dim)),
        1 => styled("1 needs you", Some(Tone::Warn)),
        needs => styled(&format!("{needs} need you"), Some(Tone::Warn)),
    };
    let mut spans = vec![styled("towline", Some(Tone::Bold)), Span::raw("  ")];
    spans.push(if model.is_loaded { needs } else { styled("reading the goals…", Some(Tone::Dim)) });
    let count = |phase: &str| model.rows.values().filter(|row| row.phase == phase).count();
    if width >= 60 && model.is_loaded {
        let running = model.rows.values().filter(|row| row.status().group == Group::Running).count();
        let counts = [("running", running), ("queued", count("queued")), ("limited", count("limited"))];
        for (word, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            spans.push(Span::raw(format!(" · {count} {word}")));
        }
    }
    let today = match model.today.as_str() {
        "" | "–" | "unknown" => String::new(),
        today => format!("{today} today"),
    };
    both_ends(ScreenLine::from(spans), ScreenLine::from(Span::raw(today)), width)
}

/// A lost connection, or how the last request went, or the keys that matter here.
fn status_line(model: &Model, width: usize, now: Timestamp) -> ScreenLine<'static> {
    let notice = model.notice.as_ref();
    match (&model.connection, notice) {
        (Connection::Lost(why), None) => line(&cut(&format!("reconnecting: {why}"), width), Some(Tone::Bad)),
        (Connection::Lost(_), Some((_, text))) => {
            line(&cut(&format!("reconnecting · {text}"), width), Some(Tone::Bad))
        }
        (_, Some((tone, text))) => {
            let shown = ScreenLine::from(styled(&cut(text, width), Some(*tone)));
            let room = width.saturating_sub(shown.width() + 3);
            both_ends(shown, keys_line(model, room, now), width)
        }
        (_, None) if model.problem.is_some() && matches!(model.mode, Mode::Browse) => {
            let problem = model.problem.as_deref().unwrap_or_default();
            line(&cut(&format!("configuration: {}", brief(problem)), width), Some(Tone::Bad))
        }
        (_, None) => keys_line(model, width, now),
    }
}

fn keys_line(model: &Model, width: usize, now: Timestamp) -> ScreenLine<'static> {
    let is_open = model.open.is_some();
    let keys: Vec<&str> = match &model.mode {
        Mode::Help => vec!["arrows scroll, other keys close this"],
        Mode::Typing(Purpose::Search, _) if is_open => vec!["Enter find upwards", "Esc back"],
        Mode::Typing(Purpose::Search, _) => vec!["Enter keep", "Esc clear"],
        Mode::Typing(..) => vec!["Enter send", "Esc later", "Ctrl-J new line"],
        Mode::Confirm { .. } => vec!["y yes", "n no"],
        Mode::Merge { plan: Some(_), .. } => vec!["y merge", "n back"],
        Mode::Merge { .. } | Mode::Refused { .. } => vec!["Esc back"],
        Mode::Browse => browsing(model, now),
    };
    let mut shown = String::new();
    for key in keys {
        let longer = if shown.is_empty() { key.to_owned() } else { format!("{shown} · {key}") };
        if columns(&longer) > width {
            break;
        }
        shown = longer;
    }
    line(&shown, Some(Tone::Dim))
}

/// The keys that do something here, those that matter most first.
fn browsing(model: &Model, now: Timestamp) -> Vec<&'static str> {
    let mut keys = if model.open.is_some() { vec!["Esc back"] } else { vec!["Enter open"] };
    let goal = model.goal_at_hand(now);
    let of_goal = goal.filter(|_| model.open.is_some());
    if model.first_question(of_goal).is_some() {
        keys.push("a answer");
    }
    let row = goal.and_then(|goal| model.rows.get(goal));
    let steps = [
        (Step::Resume, "r resume"),
        (Step::Retry, "R retry"),
        (Step::Merge, "m merge"),
        (Step::Tell, "t tell"),
        (Step::Pause, "p pause"),
        (Step::Cancel, "c cancel"),
    ];
    for (step, key) in steps {
        let fits = |row: &Row| step.fits(&row.phase) && !(step == Step::Merge && row.is_merged);
        if row.is_some_and(fits) {
            keys.push(key);
        }
    }
    keys.push("/ search");
    keys.push("? keys");
    if model.open.is_none() {
        keys.push("q leave");
    }
    keys
}

fn help(width: usize) -> Vec<ScreenLine<'static>> {
    let rows = HELP.iter().map(|(keys, does)| {
        let [keys, gap] = [format!("  {keys:<16}"), cut(does, width.saturating_sub(18))];
        ScreenLine::from(vec![styled(&keys, Some(Tone::Bold)), Span::raw(gap)])
    });
    std::iter::once(ScreenLine::default()).chain(rows).collect()
}

/// Leaves only colours and signs that the terminal can show, and nothing that misleads.
fn adapt(buffer: &mut Buffer, area: Rect, look: Look) {
    for position in area.positions() {
        let Some(cell) = buffer.cell_mut(position) else { continue };
        if look.paint == Paint::Plain {
            let chosen = cell.modifier & Modifier::REVERSED;
            cell.set_style(Style::reset());
            cell.modifier = chosen;
        }
        let mut shown = look.letters.shown(&clean(cell.symbol()));
        if shown.is_empty() {
            shown.push('?');
        }
        if shown != cell.symbol() {
            cell.set_symbol(&shown);
        }
    }
}

/// A row in the colours of the one that is chosen.
fn chosen(line: ScreenLine<'static>, width: usize) -> ScreenLine<'static> {
    let gap = width.saturating_sub(line.width());
    let mut spans = line.spans;
    spans.push(Span::raw(" ".repeat(gap)));
    ScreenLine::from(spans).patch_style(style(None).add_modifier(Modifier::REVERSED))
}

#[cfg(test)]
mod tests;
