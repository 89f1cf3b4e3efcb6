//! Writing for people and programs. A terminal or a pipe that went away is no reason to stop driving a goal, so
//! what cannot be written is let go.
//!
//! Agents, models and repositories write much of what is shown here. Every line leaves through [`clean`], so that none
//! of it can give orders to a terminal; [`printable`] and [`brief`] keep it on its line before it gets there. On the same
//! way secrets are hidden: those that this process [knows](secrets), and what looks like a token.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::sync::{Arc, LazyLock, OnceLock};

use rustix::termios::tcgetwinsize;
use serde::Serialize;
use towline_app::KnownSecrets;
use towline_core::misleads;
use towline_mask::Mask;
use towline_process::is_in_foreground;

use crate::view::{Letters, columns, cut, use_local_time, wrapped};

/// The least width that lines are fitted to. Some terminals report none.
const NARROWEST: usize = 20;

/// Our own colours: the only orders to a terminal that leave here.
pub(crate) const COLOURS: [&str; 6] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];

/// The person's home directory, where it is known, and the signs that their terminal can show.
static PERSON: OnceLock<(String, Letters)> = OnceLock::new();

/// Sets the home that is shown as `~`, and the characters that the terminal has.
pub(crate) fn know_person(home: &str, letters: Letters) {
    use_local_time();
    let _ = PERSON.set((home.trim_end_matches('/').to_owned(), letters));
}

/// A text for the terminal: with `~` for the home, and only characters that the terminal has.
pub(crate) fn homely(text: &str) -> String {
    let Some((home, letters)) = PERSON.get().filter(|_| is_terminal()) else { return text.to_owned() };
    let text = if home.is_empty() { text.to_owned() } else { text.replace(&format!("{home}/"), "~/") };
    letters.shown(&text)
}

/// What is hidden in everything that leaves here.
static SECRETS: LazyLock<KnownSecrets> = LazyLock::new(KnownSecrets::default);

/// The secrets of this process.
pub(crate) fn secrets() -> &'static KnownSecrets {
    &SECRETS
}

/// A mask for all known secrets.
pub(crate) fn mask() -> Arc<Mask> {
    SECRETS.mask()
}

/// Reports a panic as a bug in Towline, without secrets.
pub(crate) fn report_panic(panic: &PanicHookInfo<'_>) {
    eprint(format_args!("error: {panic}\n  hint: this is a bug in Towline; your goals are safe"));
}

/// Prints a message for a person to standard error, on a terminal in lines that fit it.
pub(crate) fn eprint(text: fmt::Arguments<'_>) {
    let text = clean(&text.to_string());
    let text = match width_of(io::stderr()) {
        Some(width) => text.split('\n').flat_map(|line| wrapped(line, width)).collect::<Vec<_>>().join("\n"),
        None => text,
    };
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Shows progress on standard error if that is a terminal, and removes it at the end.
pub(crate) fn progress(what: &'static str) -> impl Fn(usize, usize) + Send + 'static {
    let is_watched = io::stderr().is_terminal();
    move |done, all| {
        if let Some(text) = progress_text(what, done, all).filter(|_| is_watched) {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        }
    }
}

/// What is written when so many of all were looked at; nothing for most of them.
fn progress_text(what: &str, done: usize, all: usize) -> Option<String> {
    const EVERY: usize = 10;
    if done == all {
        return Some("\r\u{1b}[K".to_owned());
    }
    done.is_multiple_of(EVERY).then(|| format!("\rlooked at {done} of {all} {what}"))
}

/// Prints a line of a run to standard output. The run continues even if nobody reads it.
pub(crate) fn print(text: impl fmt::Display) {
    let _ = writeln!(io::stdout().lock(), "{}", clean(&text.to_string()));
}

/// A line as it is printed: on a terminal with short paths, and wrapped between words; elsewhere as one line, for
/// programs.
pub(crate) fn fitted(text: &str) -> Vec<String> {
    let text = &*mask().text(text);
    match terminal_width() {
        Some(width) => wrapped(&homely(text), width),
        None => vec![text.to_owned()],
    }
}

/// Prints a line to standard output, and exits if nobody reads it: the command has nothing else to do.
pub(crate) fn print_or_exit(text: impl fmt::Display) {
    leave_with_the_reader(writeln!(io::stdout().lock(), "{}", clean(&text.to_string())));
}

/// Like [`print_or_exit`], for raw bytes.
pub(crate) fn print_bytes_or_exit(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    leave_with_the_reader(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

fn leave_with_the_reader(written: io::Result<()>) {
    if written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// How JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All of it on one line.
    Line,
    /// On as many lines as people like to read.
    Pretty,
}

/// Prints the JSON of a run to standard output. The run continues even if nobody reads it.
pub(crate) fn print_json(layout: Layout, value: &impl Serialize) {
    let _ = writeln!(io::stdout().lock(), "{}", json(layout, value));
}

/// Like [`print_or_exit`], for JSON.
pub(crate) fn print_json_or_exit(layout: Layout, value: &impl Serialize) {
    leave_with_the_reader(writeln!(io::stdout().lock(), "{}", json(layout, value)));
}

/// A value as JSON without any secret, and without any order to a terminal.
pub(crate) fn json(layout: Layout, value: &impl Serialize) -> String {
    let text = match layout {
        Layout::Line => serde_json::to_string(value),
        Layout::Pretty => serde_json::to_string_pretty(value),
    };
    SECRETS.json(&text.unwrap_or_default())
}

/// Text that is not ours, fit for a line on a terminal.
pub(crate) fn printable(text: &str) -> String {
    SECRETS.printable(text)
}

/// Like [`printable`], and no longer than what people read.
pub(crate) fn brief(text: &str) -> String {
    SECRETS.brief(text)
}

/// Lines without any secret, and without any order to the terminal but our colours.
pub(crate) fn clean(text: &str) -> String {
    let text = &*mask().text(text);
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = COLOURS.into_iter().find(|colour| rest.starts_with(colour));
        match colour {
            Some(colour) => cleaned.push_str(colour),
            None if misleads(c) && c != '\n' => cleaned.push('\u{fffd}'),
            None => cleaned.push(c),
        }
        rest = &rest[colour.map_or(c.len_utf8(), str::len)..];
    }
    cleaned
}

/// A size as people read it.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1_000.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1_000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// How many columns of the last cell stay before other columns are left out.
const LAST: usize = 16;

/// Rows of cells, the first of them the names of the columns, which are aligned. On a terminal that is too narrow, the last
/// cell is cut. If that is not enough, those columns that may go are left out, the first of them first, and the last line
/// names them.
pub(crate) fn table(rows: &[Vec<String>], may_go: &[&str]) -> Vec<String> {
    let mask = mask();
    let hidden = |row: &Vec<String>| row.iter().map(|cell| mask.text(cell).into_owned()).collect();
    shaped(&rows.iter().map(hidden).collect::<Vec<_>>(), may_go, terminal_width())
}

fn shaped(rows: &[Vec<String>], may_go: &[&str], room: Option<usize>) -> Vec<String> {
    let Some(heads) = rows.first() else { return Vec::new() };
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max();
    let widths: Vec<usize> = (0..heads.len()).map(|column| widest(column).unwrap_or(0)).collect();
    let mut shown: Vec<usize> = (0..heads.len()).collect();
    let mut gone = Vec::new();
    let room = room.unwrap_or(usize::MAX);
    for name in may_go {
        let last = shown.last().copied().filter(|last| !may_go.contains(&heads[*last].as_str()));
        let room_for = |column: usize| if Some(column) == last { LAST } else { usize::MAX };
        let needed: usize = shown.iter().map(|column| widths[*column].min(room_for(*column)) + 2).sum();
        if needed <= room.saturating_add(2) {
            break;
        }
        shown.retain(|column| heads[*column] != *name);
        gone.push(*name);
    }
    let line = |row: &Vec<String>| {
        let cells = shown.iter().map(|column| {
            let cell = row.get(*column).map_or("", String::as_str);
            let is_last = shown.last() == Some(column);
            let gap = if is_last { 0 } else { widths[*column].saturating_sub(columns(cell)) };
            format!("{cell}{}", " ".repeat(gap))
        });
        cut(&cells.collect::<Vec<_>>().join("  "), room)
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if !gone.is_empty() {
        lines.extend(wrapped(&format!("(in a wider terminal also: {})", gone.join(", ")), room));
    }
    lines
}

/// How many columns the terminal has, if there is one.
pub(crate) fn terminal_width() -> Option<usize> {
    width_of(io::stdout())
}

fn width_of(stream: impl IsTerminal + AsFd) -> Option<usize> {
    let size = stream.is_terminal().then(|| tcgetwinsize(stream).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|width| *width >= NARROWEST)
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether this process is in the foreground of the terminal.
pub(crate) fn is_in_front() -> bool {
    // A terminal that has no such groups cannot be taken away.
    is_in_foreground(io::stdout()).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use towline_mask::Secrets;

    use super::*;
    use crate::view::Paint;

    #[test]
    fn characters_that_give_orders_do_not_reach_the_terminal() {
        let hostile = "a\u{1b}[2Jb\rc\u{7}\td\u{9b}e\u{202e}f\u{2066}g\nh\u{200b}\u{e0041}i\u{200d}";
        let shown = "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\td\u{fffd}e\u{fffd}f\u{fffd}g";
        let unseen = "h\u{fffd}\u{fffd}i\u{200d}";
        assert_eq!(printable(hostile), format!("{shown} {unseen}"));
        assert_eq!(clean(hostile), format!("{shown}\n{unseen}"));
    }

    #[test]
    fn colours_of_ours_leave_and_those_of_others_do_not_get_into_painted_text() {
        let paint = Paint::Colour;
        for colour in [Paint::good, Paint::bad, Paint::warn, Paint::dim, Paint::bold] {
            let painted = colour(paint, "text");
            assert_eq!((clean(&painted), painted.len() > "text".len()), (painted, true));
        }
        assert_eq!(
            clean(&paint.bold("\u{1b}[32mdone\u{1b}[5m")),
            "\u{1b}[1m\u{fffd}[32mdone\u{fffd}[5m\u{1b}[0m"
        );
    }

    #[test]
    fn json_keeps_its_value_and_has_no_effect_on_a_terminal() {
        let hostile = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{200b}\u{e0041}\n";
        let line = json(Layout::Line, &hostile);
        assert_eq!(clean(&line), line);
        assert_eq!(serde_json::from_str::<String>(&line).ok().as_deref(), Some(hostile));
    }

    #[test]
    fn a_table_cuts_its_last_cell_before_it_gives_up_what_may_go() {
        let rows = [["ID", "KIND", "WHERE"], ["1", "日本", "here and there and everywhere"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let shaped = |room| shaped(&rows, &["KIND"], room);
        assert_eq!(shaped(None), ["ID  KIND  WHERE", "1   日本  here and there and everywhere"]);
        assert_eq!(shaped(Some(39)), shaped(None));
        assert_eq!(shaped(Some(26))[1], "1   日本  here and there …");
        let gone = ["(in a wider terminal", "  also: KIND)"];
        assert_eq!(shaped(Some(25)), ["ID  WHERE", "1   here and there and e…", gone[0], gone[1]]);
        assert_eq!(shaped(Some(16))[..2], ["ID  WHERE", "1   here and th…"]);
    }

    #[test]
    fn progress_is_one_line_that_changes_now_and_then_and_goes_at_the_end() {
        let written: String = (0..=25).filter_map(|done| progress_text("goals", done, 25)).collect();
        let lines =
            ["looked at 0 of 25 goals", "looked at 10 of 25 goals", "looked at 20 of 25 goals", "\u{1b}[K"];
        assert_eq!(written, lines.map(|line| format!("\r{line}")).concat());
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        let shown = [0, 999, 1_000, 1_500_000, 999_999, 2_000_000_000].map(bytes);
        assert_eq!(shown, ["0 bytes", "999 bytes", "1.0 KB", "1.5 MB", "1.0 MB", "2.0 GB"]);
    }

    #[test]
    fn secrets_do_not_leave_in_text_nor_in_json_nor_when_we_fail() {
        let mut secrets = Secrets::default();
        secrets.add("MY_TOKEN", "quoted\"value9");
        super::secrets().add(&secrets);
        assert_eq!(clean("a quoted\"value9 b"), "a [masked MY_TOKEN] b");
        assert_eq!(json(Layout::Line, &"quoted\"value9"), "\"[masked MY_TOKEN]\"");
        assert_eq!(clean("ghp_abcdefghijklmnop1234"), "[masked token]");
    }

    /// Runs this very test once more in a process of its own, which panics there.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the message of a panic is only seen from outside")]
    fn a_panic_shows_no_secret() {
        const NAME: &str = "TOWLINE_TEST_PANIC_TOKEN";
        const SECRET: &str = "planted-in-a-panic-77f1";
        if let Ok(secret) = std::env::var(NAME) {
            crate::context::know_own_secrets();
            std::panic::set_hook(Box::new(report_panic));
            panic!("it fails with {secret} and ghp_abcdefghijklmnop1234");
        }
        let mut again = std::process::Command::new(std::env::current_exe().expect("this program"));
        again.args(["--exact", "output::tests::a_panic_shows_no_secret", "--nocapture"]).env(NAME, SECRET);
        let ran = again.output().expect("it runs");
        let [out, err] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(!ran.status.success(), "{out}{err}");
        assert!(err.contains("it fails with [masked TOWLINE_TEST_PANIC_TOKEN] and [masked token]"), "{err}");
        assert!(!format!("{out}{err}").contains(SECRET), "{out}{err}");
    }

    #[test]
    fn a_table_has_no_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("MY_TOKEN", "first-half-second-half9");
        super::secrets().add(&secrets);
        let rows = [vec!["A".to_owned()], vec!["first-half-second-half9".to_owned()]];
        assert_eq!(table(&rows, &[]), ["A", "[masked MY_TOKEN]"]);
    }
}
