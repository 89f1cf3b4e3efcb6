//! The file into which an agent may write a question: looked at whenever an attempt ends, however it ended.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use towline_core::{AgentEvent, Ask};

/// The variable that tells the agent where the file is.
pub(crate) const QUESTION_VARIABLE: &str = "TOWLINE_QUESTION_FILE";
/// The longest question.
const LONGEST: u64 = 64 * 1024;

/// Where an attempt's question is.
pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("question.json")
}

/// The question that an attempt left, or why what it left is none; nothing when it left nothing. The file stays.
pub(crate) async fn read(dir: PathBuf) -> Option<AgentEvent> {
    let read = tokio::task::spawn_blocking(move || read_now(&dir)).await;
    read.unwrap_or_else(|panic| Some(unreadable(&panic)))
}

/// The same, for whoever may wait for the disk.
pub(crate) fn read_now(dir: &Path) -> Option<AgentEvent> {
    match open(&path(dir)).and_then(read_bounded) {
        Ok(text) => match Ask::read_written(&text) {
            Ok(ask) => Some(AgentEvent::Asked(ask)),
            Err(bad) => Some(unreadable(&bad)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(unreadable(&error)),
    }
}

fn unreadable(why: &dyn std::fmt::Display) -> AgentEvent {
    AgentEvent::Notice { text: format!("the agent's question file cannot be read: {why}") }
}

/// Opens a plain file and nothing else: what an agent put there instead, a pipe or a link, must not hold us or lead us
/// elsewhere.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}

fn read_bounded(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_question_is_read_a_broken_one_is_said_and_none_is_none() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(read_now(dir.path()), None);
        std::fs::write(path(dir.path()), r#"{"question": "Which?", "options": ["a"]}"#).expect("written");
        let ask = Ask::choice("Which?".into(), vec!["a".into()]);
        assert_eq!(read_now(dir.path()), Some(AgentEvent::Asked(ask)));
        std::fs::write(path(dir.path()), "Which?").expect("written");
        assert!(matches!(read_now(dir.path()), Some(AgentEvent::Notice { .. })));
    }

    #[test]
    fn what_is_no_plain_file_holds_nobody_up() {
        let make: [fn(&Path); 3] = [
            |path| std::fs::create_dir(path).expect("a directory"),
            |path| std::os::unix::fs::symlink("/dev/zero", path).expect("a link"),
            |path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"),
        ];
        for make in make {
            let dir = tempfile::tempdir().expect("a scratch directory");
            make(&path(dir.path()));
            assert!(matches!(read_now(dir.path()), Some(AgentEvent::Notice { .. })));
        }
    }
}
