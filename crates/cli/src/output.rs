//! Writing for people and programs. A terminal or a pipe that went away is no reason to stop driving a goal. A disk that is
//! full is none either, but in the end it is an error.
//!
//! Agents, models and repositories write much of what is shown here. Every line leaves through [`clean`], so that none
//! of it can give orders to a terminal and no known secret is in it; [`printable`] and [`brief`] keep it on its line before
//! it gets there.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use towline_app::Context;
use towline_core::harmless;
use towline_engine::is_panic_contained;
use towline_process::is_in_foreground;
use towline_terminal::{Letters, Medium, Paint, clean, mask, secrets, use_time_zone, wrapped};
pub(crate) use towline_terminal::{brief, printable, short_id};

/// The least width that lines are fitted to. Some terminals report none.
const NARROWEST: usize = 20;

/// The person's home directory, where it is known, and the signs that their terminal can show.
static PERSON: OnceLock<(String, Letters)> = OnceLock::new();

/// Sets the home that is shown as `~`, and the characters that the terminal has.
pub(crate) fn know_person(home: &str, letters: Letters) {
    use_time_zone(TimeZone::system);
    let _ = PERSON.set((home.trim_end_matches('/').to_owned(), letters));
}

/// A text for the terminal: with `~` for the home, and only characters that the terminal has.
pub(crate) fn homely(text: &str) -> String {
    let Some((home, letters)) = PERSON.get().filter(|_| is_terminal()) else { return text.to_owned() };
    let text = if home.is_empty() { text.to_owned() } else { text.replace(&format!("{home}/"), "~/") };
    letters.shown(&text)
}

/// Reports a panic as a bug in Towline, without secrets. It ends the process, unless it concerns one request or one goal alone.
pub(crate) fn report_panic(panic: &PanicHookInfo<'_>) {
    eprint(format_args!("error: {panic}\n  hint: this is a bug in Towline; your goals are safe"));
    if !is_panic_contained() {
        std::process::abort();
    }
}

/// Lines without any secret and any order to the terminal, colours included.
fn without_orders(text: &str) -> String {
    mask().text(text).split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// Prints a message for a person to standard error, on a terminal in lines that fit it.
pub(crate) fn eprint(text: fmt::Arguments<'_>) {
    let text = without_orders(&text.to_string());
    let text = match width_of(io::stderr()) {
        Some(width) => text.split('\n').flat_map(|line| wrapped(line, width)).collect::<Vec<_>>().join("\n"),
        None => text,
    };
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Asks a person on the terminal whether to go on. Without a terminal, the answer is no.
pub(crate) fn agrees(question: fmt::Arguments<'_>) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let asked = write!(io::stderr().lock(), "{} [y/N] ", without_orders(&question.to_string()));
    let mut answer = String::new();
    asked.is_ok() && io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
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

/// The first error of writing to standard output that did not end the program at once.
static NOT_WRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Prints a line of a run to standard output. The run continues even if nobody reads it.
pub(crate) fn print(text: impl fmt::Display) {
    note_failure(writeln!(io::stdout().lock(), "{}", clean(&text.to_string())));
}

fn note_failure(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = NOT_WRITTEN.set(error);
    }
}

/// The exit code of a program that would succeed: a result that could not be written is a failure.
pub(crate) fn exit_code(code: ExitCode) -> ExitCode {
    match NOT_WRITTEN.get().filter(|_| code == ExitCode::SUCCESS) {
        Some(error) => {
            report_not_written(error);
            ExitCode::FAILURE
        }
        None => code,
    }
}

fn report_not_written(error: &io::Error) {
    eprint(format_args!("error: cannot write to standard output: {error}"));
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

/// Prints a line to standard output, and exits if that is not possible: the command has nothing else to do.
pub(crate) fn print_or_exit(text: impl fmt::Display) {
    leave_with_the_reader(writeln!(io::stdout().lock(), "{}", clean(&text.to_string())));
}

/// Like [`print_or_exit`], for lines that are fitted first.
pub(crate) fn print_fitted(lines: &[String]) {
    lines.iter().flat_map(|line| fitted(line)).for_each(print_or_exit);
}

/// Like [`print_or_exit`], for raw bytes.
pub(crate) fn print_bytes_or_exit(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    leave_with_the_reader(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

fn leave_with_the_reader(written: io::Result<()>) {
    let Err(error) = written else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    report_not_written(&error);
    std::process::exit(1);
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
    note_failure(writeln!(io::stdout().lock(), "{}", json(layout, value)));
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
    secrets().json(&text.unwrap_or_default())
}

/// Rows of cells as [a table](towline_terminal::table) that fits the terminal.
pub(crate) fn table(rows: &[Vec<String>], may_go: &[&str]) -> Vec<String> {
    towline_terminal::table(rows, may_go, terminal_width())
}

/// The colours for standard output.
pub(crate) fn paint(context: &Context) -> Paint {
    let medium = if is_terminal() { Medium::Terminal } else { Medium::File };
    Paint::wanted(medium, |name| context.variable(name))
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

    #[test]
    fn a_message_gives_no_orders_to_the_terminal() {
        let hostile = "a\u{1b}[2Jb\rc\u{7}\td\u{9b}e\u{202e}f\u{2066}g\nh\u{200b}\u{e0041}i👩\u{200d}🚀";
        let shown = "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\td\u{fffd}e\u{fffd}f\u{fffd}g";
        assert_eq!(without_orders(hostile), format!("{shown}\nh\u{fffd}\u{fffd}i👩\u{200d}🚀"));
        assert_eq!(
            without_orders("there is no goal `\u{1b}[31mx`\n  hint"),
            "there is no goal `\u{fffd}[31mx`\n  hint"
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
    fn progress_is_one_line_that_changes_now_and_then_and_goes_at_the_end() {
        let written: String = (0..=25).filter_map(|done| progress_text("goals", done, 25)).collect();
        let lines =
            ["looked at 0 of 25 goals", "looked at 10 of 25 goals", "looked at 20 of 25 goals", "\u{1b}[K"];
        assert_eq!(written, lines.map(|line| format!("\r{line}")).concat());
    }

    #[test]
    fn secrets_do_not_leave_in_text_nor_in_json_nor_when_we_fail() {
        let mut known = Secrets::default();
        known.add("MY_TOKEN", "quoted\"value9");
        secrets().add(&known);
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
}
