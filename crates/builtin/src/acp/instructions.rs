//! The system prompt: who the model is, where it works, and how.

use std::io::Read;
use std::path::Path;

use jiff::Timestamp;

/// The project's notes for agents. The first file that exists is used.
const NOTES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// The most of such a file that is read.
const NOTES_BYTES: usize = 32 * 1024;

const RULES: &str = "\
You are Towline's built-in agent: you do software work in a directory, with the tools that you are given.

- Look before you change something: read the files concerned and how the code around them is written.
- Keep changes small and to the point. Leave alone what you were not asked to change.
- Prove your work: run the project's tests, or the command that shows it, and read what they print.
- A failed tool call reports the reason. Fix the reason instead of repeating the call.
- Nobody is watching. Do not ask what you can decide; decide, and report your decision.
- Never claim what you have not seen. When you could not do something, report that and the reason.
- When the task is done, end your turn with a few sentences about what you did. Then stop.";

/// The system prompt for work in `directory`.
pub(super) fn instructions(directory: &Path, further: &[std::path::PathBuf], now: Timestamp) -> String {
    let mut text = format!(
        "{RULES}\n\nDirectory: {}\nDate: {}\nPlatform: {} ({})",
        directory.display(),
        now.strftime("%Y-%m-%d"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    for directory in further {
        text.push_str(&format!("\nYou may also read: {}", directory.display()));
    }
    if let Some((name, notes)) = notes(directory) {
        text.push_str(&format!("\n\nThe project's own notes for agents ({name}):\n\n{notes}"));
    }
    text
}

fn notes(directory: &Path) -> Option<(&'static str, String)> {
    NOTES.into_iter().find_map(|name| {
        let file = towline_files::open_following(&directory.join(name)).ok()?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(NOTES_BYTES).unwrap_or(u64::MAX);
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        let cut = bytes.len() > NOTES_BYTES;
        bytes.truncate(NOTES_BYTES);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if cut {
            text.push_str("\n[cut off: read the file for the rest]");
        }
        (!text.trim().is_empty()).then_some((name, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_notes_file_is_added_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let prompt = || instructions(folder.path(), &[], Timestamp::UNIX_EPOCH);
        let bare = prompt();
        assert!(
            bare.contains(&format!("Directory: {}\nDate: 1970-01-01", folder.path().display())),
            "{bare}"
        );
        assert!(!bare.contains("notes for agents"), "{bare}");
        std::fs::write(folder.path().join("GEMINI.md"), "gemini's").unwrap();
        assert!(prompt().ends_with("(GEMINI.md):\n\ngemini's"));
        std::fs::write(folder.path().join("AGENTS.md"), "x".repeat(NOTES_BYTES + 1)).unwrap();
        let long = prompt();
        assert!(long.contains(&"x".repeat(NOTES_BYTES)) && !long.contains(&"x".repeat(NOTES_BYTES + 1)));
        assert!(long.ends_with("cut off: read the file for the rest]"));
    }
}
