//! The file into which an agent may write a question: looked at whenever an attempt ends, however it ended.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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
pub(crate) fn read(dir: &Path) -> Option<AgentEvent> {
    let text = match File::open(path(dir)) {
        Ok(file) => read_bounded(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => Err(error),
    };
    let event = match text.map(|text| Ask::read_written(&text)) {
        Ok(Ok(ask)) => AgentEvent::Asked(ask),
        Ok(Err(bad)) => {
            AgentEvent::Notice { text: format!("the agent's question file cannot be read: {bad}") }
        }
        Err(error) => {
            AgentEvent::Notice { text: format!("the agent's question file cannot be read: {error}") }
        }
    };
    Some(event)
}

fn read_bounded(file: File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_a_broken_one_is_said_and_none_is_none() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(read(dir.path()), None);
        std::fs::write(path(dir.path()), r#"{"question": "Which?", "options": ["a"]}"#).expect("written");
        let ask = Ask::choice("Which?".into(), vec!["a".into()]);
        assert_eq!(read(dir.path()), Some(AgentEvent::Asked(ask)));
        std::fs::write(path(dir.path()), "Which?").expect("written");
        assert!(matches!(read(dir.path()), Some(AgentEvent::Notice { .. })));
    }
}
