//! Text for the screen. Whatever it is made of, it gives no orders to the terminal.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as ScreenLine, Span};
use towline_terminal::{Tone, columns, cut, printable};

/// The colours of a tone: the same as in the rest of the terminal.
pub(super) fn style(tone: Option<Tone>) -> Style {
    match tone {
        None => Style::new(),
        Some(Tone::Bold) => Style::new().add_modifier(Modifier::BOLD),
        Some(Tone::Dim) => Style::new().add_modifier(Modifier::DIM),
        Some(Tone::Good) => Style::new().fg(Color::Green),
        Some(Tone::Bad) => Style::new().fg(Color::Red),
        Some(Tone::Warn) => Style::new().fg(Color::Yellow),
    }
}

/// Text that gives no orders to the terminal. The screen has no tabs: without spaces for them, the words around them were one.
pub(super) fn shown(text: &str) -> String {
    printable(text).replace('\t', "    ")
}

/// Text in its tone.
pub(super) fn styled(text: &str, tone: Option<Tone>) -> Span<'static> {
    Span::styled(shown(text), style(tone))
}

/// A line in one tone.
pub(super) fn line(text: &str, tone: Option<Tone>) -> ScreenLine<'static> {
    ScreenLine::from(styled(text, tone))
}

/// Text in exactly so many columns.
pub(super) fn cell(text: &str, width: usize) -> String {
    let text = cut(&shown(text), width);
    let gap = width.saturating_sub(columns(&text));
    format!("{text}{}", " ".repeat(gap))
}

/// A line that was painted for a terminal.
pub(super) fn of_painted(text: &str) -> ScreenLine<'static> {
    let mut spans = Vec::new();
    let mut style = Style::new();
    for (place, piece) in text.split("\u{1b}[").enumerate() {
        let rest = match piece.split_once('m') {
            Some((code, rest)) if place > 0 => {
                style = match code {
                    "1" => style.add_modifier(Modifier::BOLD),
                    "2" => style.add_modifier(Modifier::DIM),
                    "31" => style.fg(Color::Red),
                    "32" => style.fg(Color::Green),
                    "33" => style.fg(Color::Yellow),
                    _ => Style::new(),
                };
                rest
            }
            _ => piece,
        };
        if !rest.is_empty() {
            spans.push(Span::styled(shown(rest), style));
        }
    }
    ScreenLine::from(spans)
}

#[cfg(test)]
mod tests {
    use towline_terminal::Paint;

    use super::*;

    #[test]
    fn painted_text_keeps_its_colours_and_nothing_else() {
        let painted = format!("a {} b {}", Paint::Colour.warn("c\u{1b}[2J"), Paint::Colour.dim("d"));
        let line = of_painted(&painted);
        let spans: Vec<_> = line.spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        let plain = Style::new();
        let wanted = [
            ("a ", plain),
            ("c\u{fffd}[2J", plain.fg(Color::Yellow)),
            (" b ", plain),
            ("d", plain.add_modifier(Modifier::DIM)),
        ];
        assert_eq!(spans[..3], wanted[..3]);
        assert_eq!(spans[3].0, "d");
    }

    #[test]
    fn a_cell_has_its_width_whatever_is_in_it() {
        for text in ["", "a", "a\tb", "日本語", "a\u{202e}b", "long enough to be cut"] {
            assert_eq!(columns(&cell(text, 5)), 5, "{text:?}");
        }
    }
}
