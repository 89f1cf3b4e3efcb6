//! The evidence of a failure: the end of what a command printed, the beginning of a file, a list of paths; always
//! bounded, and as text that is safe to show anywhere.

use std::io;
use std::path::Path;

use towline_core::plain_line;
use towline_process::Stream;

/// The most evidence that is recorded for one check.
pub const EVIDENCE_BYTES: usize = 4 * 1024;

/// How much raw output is looked at: colours and progress bars take room that the text then does not fill.
const RAW_BYTES: usize = 4 * EVIDENCE_BYTES;

/// The last output of a run, both streams in the order they were written.
pub(crate) fn of_run(run_dir: &Path) -> io::Result<String> {
    let raw = towline_process::merged_tail(run_dir, RAW_BYTES)?;
    Ok(last_lines(&plain(&String::from_utf8_lossy(&raw)), EVIDENCE_BYTES).to_owned())
}

/// The last output of a run on its standard error.
pub(crate) fn of_stderr(run_dir: &Path) -> io::Result<String> {
    let raw = match towline_files::read_end(&run_dir.join(Stream::Stderr.file_name()), RAW_BYTES as u64) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        raw => raw?,
    };
    Ok(last_lines(&plain(&String::from_utf8_lossy(&raw)), EVIDENCE_BYTES).to_owned())
}

/// The beginning of a text.
pub(crate) fn beginning(text: &[u8]) -> String {
    let raw = &text[..text.len().min(RAW_BYTES)];
    first_lines(&plain(&String::from_utf8_lossy(raw)), EVIDENCE_BYTES).to_owned()
}

/// One line for each item, as many as there is room for; the last line counts the others.
pub(crate) fn listed(items: impl IntoIterator<Item = String>) -> String {
    const ROOM_FOR_COUNT: usize = 40;
    let mut list = String::new();
    let mut left_out = 0_usize;
    for item in items {
        let line = plain(&item).replace('\n', "\\n");
        if left_out > 0 || list.len() + line.len() + 1 > EVIDENCE_BYTES - ROOM_FOR_COUNT {
            left_out += 1;
            continue;
        }
        list.push_str(&line);
        list.push('\n');
    }
    if left_out > 0 {
        list.push_str(&format!("… and {left_out} more\n"));
    }
    list
}

/// The text without what a terminal would act upon. Lines end with `\n` alone; a bare carriage return, with which progress
/// bars begin again, ends a line too.
fn plain(text: &str) -> String {
    let lines = text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    lines.map(plain_line).collect::<Vec<_>>().join("\n")
}

/// The end of the text, at most `max` bytes of it: from the start of a line if one starts in the first half of
/// them, else from the start of a word or of a character.
fn last_lines(text: &str, max: usize) -> &str {
    let Some(over) = text.len().checked_sub(max).filter(|over| *over > 0) else { return text };
    let cut = text.ceil_char_boundary(over);
    let (before, tail) = text.split_at(cut);
    if before.ends_with('\n') {
        return tail;
    }
    let half = tail.floor_char_boundary(max / 2);
    match tail[..half].find('\n') {
        Some(newline) => &tail[newline + 1..],
        // Half a secret would not be recognised as one.
        None if !before.ends_with(' ') => &tail[tail[..half].find(' ').unwrap_or(0)..],
        None => tail,
    }
}

/// The beginning of the text, at most `max` bytes of it: up to the end of a line if one ends in the second half of
/// them, else up to the end of a character.
fn first_lines(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let head = &text[..text.floor_char_boundary(max)];
    match head.rfind('\n') {
        Some(newline) if newline >= max / 2 => &head[..=newline],
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_cut_at_the_end_of_a_line() {
        assert_eq!(first_lines("one\ntwo\n", 8), "one\ntwo\n");
        assert_eq!(first_lines("one\ntwo\n", 7), "one\n");
        assert_eq!(first_lines("a\nlong line", 8), "a\nlong l");
        assert_eq!(first_lines("ééé", 3), "é");
        assert_eq!(beginning(&[b'x'; 100_000]), "x".repeat(EVIDENCE_BYTES));
        assert_eq!(beginning(b"\x1b[31mred\x1b[0m \xff\r\n"), "red \u{fffd}\n");
    }

    #[test]
    fn a_list_names_what_there_is_room_for_and_counts_the_rest() {
        assert_eq!(listed(["a".into(), "b\nc\u{1b}[1m".into()]), "a\nb\\nc\n");
        assert_eq!(listed([]), "");
        let list = listed((0..10_000).map(|number| format!("path/{number:05}")));
        assert!(list.len() <= EVIDENCE_BYTES, "{}", list.len());
        let named = list.lines().count() - 1;
        assert!(named > 300, "{named}");
        assert!(list.ends_with(&format!("path/{:05}\n… and {} more\n", named - 1, 10_000 - named)), "{list}");
        assert_eq!(listed(["x".repeat(EVIDENCE_BYTES)]), "… and 1 more\n");
    }

    #[test]
    fn standard_error_alone_is_reported_by_its_end() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(of_stderr(run.path()).unwrap(), "");
        std::fs::write(run.path().join("stdout.log"), "not this\n").unwrap();
        let lines: String = (0..10_000).map(|number| format!("line {number:05}\n")).collect();
        std::fs::write(run.path().join("stderr.log"), &lines).unwrap();
        let evidence = of_stderr(run.path()).unwrap();
        assert_eq!(evidence, lines[lines.len() - evidence.len()..]);
        assert_eq!(evidence.len(), EVIDENCE_BYTES / 11 * 11);
    }

    #[test]
    fn a_fifo_in_the_place_of_a_log_is_an_error_at_once() {
        let run = tempfile::tempdir().unwrap();
        let log = run.path().join("stderr.log");
        rustix::fs::mknodat(rustix::fs::CWD, &log, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        of_stderr(run.path()).unwrap_err();
    }

    #[test]
    fn what_a_terminal_would_act_upon_is_taken_out() {
        for (raw, expected) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[38;2;1;2;3mred\u{1b}[K", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://example.invalid\u{1b}\\shown\u{1b}]8;;\u{1b}\\", "shown"),
            ("\u{1b}]0;no end\nnext", "\nnext"),
            ("\u{1b}(Btext\u{1b}7\u{1b}=", "text"),
            ("\u{1b}Psecret\u{1b}\\text", "text"),
            ("\u{9b}1mtext", "text"),
            ("a\0b\u{8}c\u{7f}d\u{85}", "abcd"),
            ("10%\r20%\r\nlast\r\n", "10%\n20%\nlast\n"),
            ("tab\there, ünï ✓\n", "tab\there, ünï ✓\n"),
            ("ends in \u{1b}", "ends in "),
            ("ends in \u{1b}[3", "ends in "),
        ] {
            assert_eq!(plain(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn the_end_is_prevented_from_the_start_of_a_line() {
        assert_eq!(last_lines("one\ntwo\n", 8), "one\ntwo\n");
        assert_eq!(last_lines("one\ntwo\n", 7), "two\n");
        assert_eq!(last_lines("one\ntwo\n", 4), "two\n");
        assert_eq!(last_lines("one\nlong line", 10), "long line");
        assert_eq!(last_lines("one long line", 4), "line");
        assert_eq!(last_lines("ééé", 3), "é");
        assert_eq!(last_lines("", 4), "");
    }

    #[test]
    fn colours_take_no_room_and_the_limit_holds_for_broken_text() {
        let run = tempfile::tempdir().unwrap();
        let log = run.path().join("stdout.log");
        let line = "\u{1b}[32mok\u{1b}[0m a test with a name\n";
        std::fs::write(&log, line.repeat(1000)).unwrap();
        let evidence = of_run(run.path()).unwrap();
        let shown = "ok a test with a name\n";
        assert_eq!(evidence, shown.repeat(EVIDENCE_BYTES / shown.len()));

        std::fs::write(&log, vec![0xff; 100_000]).unwrap();
        let evidence = of_run(run.path()).unwrap();
        assert_eq!(evidence, "\u{fffd}".repeat(EVIDENCE_BYTES / 3));
    }
}
