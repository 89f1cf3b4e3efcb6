//! Commands of a script. They are children of the scripted agent, so they end with its process tree.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};

/// How much of a command's output is returned: its end.
const OUTPUT_BYTES: u64 = 16 * 1024;

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandEnd {
    /// The exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    /// The end of both output streams, in the order of printing.
    pub(super) output: String,
}

/// Runs `sh -c` in `directory` and waits for it, but not for its background processes.
#[expect(
    clippy::disallowed_methods,
    reason = "the commands of a script are the scripted agent's own children"
)]
pub(super) fn run(command: &str, directory: &Path) -> io::Result<CommandEnd> {
    // A file, not a pipe: a background process that holds it open delays nothing.
    let mut printed = tempfile::tempfile()?;
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed.try_clone()?)
        .status()?;
    let length = printed.seek(SeekFrom::End(0))?;
    let mut output = Vec::new();
    printed.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES)))?;
    printed.take(OUTPUT_BYTES).read_to_end(&mut output)?;
    Ok(CommandEnd { code: status.code(), output: String::from_utf8_lossy(&output).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(code: Option<i32>, output: &str) -> CommandEnd {
        CommandEnd { code, output: output.to_owned() }
    }

    #[test]
    fn both_streams_are_returned_in_order_with_the_exit_code() {
        let folder = tempfile::tempdir().unwrap();
        let got = run("echo one; echo two >&2; echo three; exit 4", folder.path()).unwrap();
        assert_eq!(got, end(Some(4), "one\ntwo\nthree\n"));
        assert_eq!(run("kill -9 $$", folder.path()).unwrap(), end(None, ""));
    }

    #[test]
    fn a_long_output_is_cut_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let got = run("head -c 100000 /dev/zero | tr '\\0' x; echo end", folder.path()).unwrap();
        assert_eq!(got, end(Some(0), &format!("{}end\n", "x".repeat(16 * 1024 - 4))));
    }

    #[test]
    fn background_processes_are_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        // The background process runs until the file exists, so waiting for it would never end.
        let waits = "n=0; until test -e go || test $n -gt 600; do n=$((n+1)); sleep 0.1; done";
        let got = run(&format!("({waits}) & echo started"), folder.path()).unwrap();
        assert_eq!(got, end(Some(0), "started\n"));
        std::fs::write(folder.path().join("go"), "").unwrap();
    }
}
