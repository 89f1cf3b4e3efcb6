//! What the keys mean, where nothing is typed. The help is made from this table.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Down,
    Up,
    PageDown,
    PageUp,
    Top,
    Bottom,
    Open,
    Back,
    Search,
    SearchOn,
    Answer,
    Tell,
    Pause,
    Resume,
    Cancel,
    Retry,
    Merge,
    Help,
    Redraw,
    Suspend,
    Leave,
}

/// Each key with what it does, as the help shows it.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("j k, arrows", "choose the next or previous goal; scroll the log"),
    ("PageUp PageDown", "a screen up or down"),
    ("g G", "the first and the last line"),
    ("Enter", "open the goal"),
    ("Esc q", "back; q on the board leaves"),
    ("/  n", "search; in a log n finds the next match upwards"),
    ("a", "answer the first question"),
    ("t", "write to the agent of this goal"),
    ("p r", "pause, resume"),
    ("c", "cancel, after confirmation"),
    ("R", "retry a goal that has ended or waits"),
    ("m", "merge, after showing what it changes"),
    ("Ctrl-L", "draw the screen again"),
    ("Ctrl-Z Ctrl-C", "suspend, leave; the goals keep running"),
    ("?", "these keys"),
];

/// What this key asks for; none if it means nothing.
pub(crate) fn action(key: KeyEvent) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return Some(match key.code {
            KeyCode::Char('c') => Action::Leave,
            KeyCode::Char('z') => Action::Suspend,
            KeyCode::Char('l') => Action::Redraw,
            KeyCode::Char('d' | 'f') => Action::PageDown,
            KeyCode::Char('u' | 'b') => Action::PageUp,
            KeyCode::Char('n' | 'j') => Action::Down,
            KeyCode::Char('p') => Action::Up,
            _ => return None,
        });
    }
    Some(match key.code {
        KeyCode::Char('j') | KeyCode::Down => Action::Down,
        KeyCode::Char('k') | KeyCode::Up => Action::Up,
        KeyCode::PageDown | KeyCode::Char(' ') => Action::PageDown,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::Char('g') | KeyCode::Home => Action::Top,
        KeyCode::Char('G') | KeyCode::End => Action::Bottom,
        KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => Action::Open,
        KeyCode::Esc | KeyCode::Char('q' | 'h' | 'b') | KeyCode::Left => Action::Back,
        KeyCode::Char('/') => Action::Search,
        KeyCode::Char('n') => Action::SearchOn,
        KeyCode::Char('a') => Action::Answer,
        KeyCode::Char('t') => Action::Tell,
        KeyCode::Char('p') => Action::Pause,
        KeyCode::Char('r') => Action::Resume,
        KeyCode::Char('c') => Action::Cancel,
        KeyCode::Char('R') => Action::Retry,
        KeyCode::Char('m') => Action::Merge,
        KeyCode::Char('?') | KeyCode::F(1) => Action::Help,
        _ => return None,
    })
}
