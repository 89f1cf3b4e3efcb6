//! A recording of a terminal as one SVG file that moves: its screens lie side by side, and a style sheet shows one after the other.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::support::terminal::Terminal;

/// The place of a cell on the picture.
const CELL_WIDTH: f64 = 8.4;
const CELL_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 12.0;
/// What is written within this time is seen at once.
const BLINK: Duration = Duration::from_millis(80);
/// How long the last screen stays before the recording starts again.
const REST: Duration = Duration::from_secs(8);

const STYLE: &str = "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d0d7de;white-space:pre}\
     .b{font-weight:bold;fill:#fff}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}";

/// What was seen, and when.
pub(crate) struct Film {
    screens: Vec<(Duration, Screen)>,
    size: (u16, u16),
}

/// The rows of a screen, each as pieces of one style.
type Screen = Vec<Vec<Piece>>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    column: u16,
    style: &'static str,
    text: String,
}

impl Film {
    /// What was seen in a terminal, with `change` applied to the text of each piece.
    pub(crate) fn of(terminal: &Terminal, change: impl Fn(&str) -> String) -> Self {
        let (bytes, times) = terminal.recorded();
        let size = terminal.size();
        let mut emulator = vt100::Parser::new(size.1, size.0, 0);
        let mut screens: Vec<(Duration, Screen)> = Vec::new();
        let mut begun = 0;
        for (place, (at, end)) in times.iter().enumerate() {
            emulator.process(&bytes[begun..*end]);
            begun = *end;
            if times.get(place + 1).is_some_and(|(next, _)| *next - *at < BLINK) {
                continue;
            }
            let screen = screen(emulator.screen(), &change);
            if screens.last().is_none_or(|(_, last)| *last != screen) {
                let since = if screens.is_empty() { Duration::ZERO } else { *at - times[0].0 };
                screens.push((since, screen));
            }
        }
        Self { screens, size }
    }

    /// The text of the last screen.
    pub(crate) fn last_screen(&self) -> String {
        let (_, screen) = self.screens.last().expect("something was shown");
        let rows = screen.iter().map(|row| {
            let mut line = String::new();
            for piece in row {
                let gap = usize::from(piece.column).saturating_sub(line.chars().count());
                line.push_str(&" ".repeat(gap));
                line.push_str(&piece.text);
            }
            line
        });
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// The whole file.
    pub(crate) fn drawn(&self) -> String {
        let (width, height) = (
            f64::from(self.size.0) * CELL_WIDTH + 2.0 * MARGIN,
            f64::from(self.size.1) * CELL_HEIGHT + 2.0 * MARGIN,
        );
        let length = self.screens.last().map_or(REST, |(at, _)| *at + REST);
        let mut steps = String::new();
        for (place, (at, _)) in self.screens.iter().enumerate() {
            let (percent, shift) = (100.0 * at.as_secs_f64() / length.as_secs_f64(), width * index(place));
            write!(steps, "{percent:.2}%{{transform:translateX(-{shift:.0}px)}}").expect("a string");
        }
        let last = width * index(self.screens.len() - 1);
        let (lines, screens) = self.lines_and_screens(width);
        let text = escaped(&self.last_screen());
        let seconds = length.as_secs_f64();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-label=\"Recording of towline demo\">\n<desc>{text}</desc>\n<style>{STYLE}\
             .film{{animation:play {seconds:.1}s steps(1,end) infinite}}@keyframes play{{{steps}100%{{transform:translateX(-{last:.0}px)}}}}\
             @media (prefers-reduced-motion){{.film{{animation:none;transform:translateX(-{last:.0}px)}}}}</style>\n\
             <defs>\n{lines}</defs>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n<g class=\"film\">\n{screens}</g>\n</svg>\n"
        )
    }

    /// Each different row once, and the screens that are made of them.
    fn lines_and_screens(&self, width: f64) -> (String, String) {
        let mut known: BTreeMap<&[Piece], usize> = BTreeMap::new();
        let (mut lines, mut screens) = (String::new(), String::new());
        for (place, (_, screen)) in self.screens.iter().enumerate() {
            let left = width * index(place) + MARGIN;
            writeln!(screens, "<g transform=\"translate({left:.0} {MARGIN})\">").expect("a string");
            for (row, pieces) in screen.iter().enumerate().filter(|(_, pieces)| !pieces.is_empty()) {
                let next = known.len();
                let line = *known.entry(pieces).or_insert_with(|| {
                    lines.push_str(&drawn_line(next, pieces));
                    next
                });
                let down = CELL_HEIGHT * index(row);
                writeln!(screens, "<use href=\"#l{line}\" y=\"{down:.0}\"/>").expect("a string");
            }
            screens.push_str("</g>\n");
        }
        (lines, screens)
    }
}

/// The text of a recording, for those who cannot see it.
pub(crate) fn description_of(file: &str) -> Option<String> {
    let (_, rest) = file.split_once("<desc>")?;
    let (text, _) = rest.split_once("</desc>")?;
    Some(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

fn drawn_line(number: usize, pieces: &[Piece]) -> String {
    let mut line = format!("<text id=\"l{number}\" y=\"14\">");
    for Piece { column, style, text } in pieces {
        let (left, long) = (f64::from(*column) * CELL_WIDTH, index(text.chars().count()) * CELL_WIDTH);
        let class = if style.is_empty() { String::new() } else { format!(" class=\"{style}\"") };
        write!(line, "<tspan x=\"{left:.1}\" textLength=\"{long:.1}\"{class}>{}</tspan>", escaped(text))
            .expect("a string");
    }
    line + "</text>\n"
}

fn screen(screen: &vt100::Screen, change: impl Fn(&str) -> String) -> Screen {
    let (rows, columns) = screen.size();
    let row = |row| {
        let mut pieces: Vec<Piece> = Vec::new();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column) else { continue };
            let text = if cell.has_contents() { cell.contents() } else { " " };
            let style = style_of(cell);
            match pieces.last_mut() {
                // A blank has no colour of its own.
                Some(piece) if piece.style == style || text == " " => piece.text.push_str(text),
                _ => pieces.push(Piece { column, style, text: text.to_owned() }),
            }
        }
        for piece in &mut pieces {
            piece.text = change(piece.text.trim_end());
        }
        pieces.retain(|piece| !piece.text.trim().is_empty());
        pieces
    };
    (0..rows).map(row).collect()
}

fn style_of(cell: &vt100::Cell) -> &'static str {
    match cell.fgcolor() {
        vt100::Color::Idx(1 | 9) => "r",
        vt100::Color::Idx(2 | 10) => "g",
        vt100::Color::Idx(3 | 11) => "y",
        _ if cell.bold() => "b",
        _ if cell.dim() => "d",
        _ => "",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a recording has few screens and rows")]
fn index(place: usize) -> f64 {
    place as f64
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
