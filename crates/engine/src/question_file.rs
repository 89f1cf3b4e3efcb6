//! The file into which an agent may write a question: looked at whenever an attempt ends, however it ended.

use std::io;
use std::path::{Path, PathBuf};

use towline_core::{AgentEvent, Ask};

use crate::reading::without_escapes_in;

/// The variable with the path of the file.
pub(crate) const QUESTION_VARIABLE: &str = "TOWLINE_QUESTION_FILE";
const FILE: &str = "question.json";

/// The longest question.
const LONGEST: u64 = 64 * 1024;

/// The only directory of an attempt that its agent may write to.
pub(crate) fn place(dir: &Path) -> PathBuf {
    dir.join("asks")
}

/// Makes the directory that [`place`] names.
pub(crate) fn make_place(dir: &Path) -> io::Result<()> {
    towline_files::create_dir_below(dir, Path::new("asks"))
}

/// Where an attempt's question is.
pub(crate) fn path(dir: &Path) -> PathBuf {
    place(dir).join(FILE)
}

/// The question that an attempt left, or why what it left is none; nothing when it left nothing. The file stays.
pub(crate) async fn read(dir: PathBuf) -> Option<AgentEvent> {
    let read = tokio::task::spawn_blocking(move || read_now(&dir)).await;
    read.unwrap_or_else(|panic| Some(unreadable(&panic)))
}

/// The same, for callers that may wait for the disk.
pub(crate) fn read_now(dir: &Path) -> Option<AgentEvent> {
    let read = |path: &Path| towline_files::read_if_present(path, LONGEST);
    // Earlier versions had it in the directory itself.
    let found = match read(&path(dir)) {
        Ok(None) => read(&dir.join(FILE)),
        found => found,
    };
    match found {
        Ok(Some(text)) => match Ask::read_written(&String::from_utf8_lossy(&text)) {
            Ok(ask) => Some(without_escapes_in(AgentEvent::Asked(ask))),
            Err(bad) => Some(unreadable(&bad)),
        },
        Ok(None) => None,
        Err(error) => Some(unreadable(&error)),
    }
}

fn unreadable(why: &dyn std::fmt::Display) -> AgentEvent {
    AgentEvent::Notice { text: format!("the agent's question file cannot be read: {why}") }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_question_is_read_a_broken_one_is_reported_and_none_is_none() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(read_now(dir.path()), None);
        make_place(dir.path()).expect("a place for questions");
        assert_eq!(read_now(dir.path()), None);
        for question in ["Which?", r"\u001b[1mWhich?\u001b[0m"] {
            let written = format!(r#"{{"question": "{question}", "options": ["a"]}}"#);
            std::fs::write(path(dir.path()), written).expect("written");
            let ask = Ask::choice("Which?".into(), vec!["a".into()]);
            assert_eq!(read_now(dir.path()), Some(AgentEvent::Asked(ask)), "{question}");
        }
        std::fs::write(path(dir.path()), "Which?").expect("written");
        assert!(matches!(read_now(dir.path()), Some(AgentEvent::Notice { .. })));
    }

    #[test]
    fn a_question_that_an_earlier_version_was_left_is_read() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        std::fs::write(dir.path().join(FILE), r#"{"question": "Which?"}"#).expect("written");
        assert!(matches!(read_now(dir.path()), Some(AgentEvent::Asked(_))));
    }

    #[test]
    fn what_is_no_plain_file_holds_nobody_up() {
        let make: [fn(&Path); 3] = [
            |path| std::fs::create_dir(path).expect("a directory"),
            |path| std::os::unix::fs::symlink("/dev/zero", path).expect("a symlink"),
            |path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"),
        ];
        for make in make {
            let dir = tempfile::tempdir().expect("a scratch directory");
            make_place(dir.path()).expect("a place for questions");
            make(&path(dir.path()));
            assert!(matches!(read_now(dir.path()), Some(AgentEvent::Notice { .. })));
        }
    }
}
