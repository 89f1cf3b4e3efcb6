//! Starting programs: the one place of xtask that does.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A program to be run in `directory`.
#[expect(clippy::disallowed_methods, reason = "running tools is what xtask is for")]
pub(crate) fn program(name: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(directory);
    command
}

/// The cargo that runs xtask.
pub(crate) fn cargo(directory: &Path) -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), directory)
}

/// Whether the program can be started at all; it is asked for its version.
pub(crate) fn is_there(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs to the end, with the program's output on our own.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    let shown = shown(command);
    command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{shown}`"))
}

/// Runs to the end and returns what it printed on stdout; its failure is an error.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({}); what it printed is above", output.status);
    }
    Ok(output.stdout)
}

/// The same for a program that may not answer at all: it is ended when the time is over. It prints little.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> Result<Vec<u8>> {
    let shown = shown(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait().with_context(|| format!("cannot wait for `{shown}`"))? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                // It may have ended by now.
                let _ = child.kill();
                child.wait().with_context(|| format!("cannot end `{shown}`"))?;
                bail!("`{shown}` gave no answer within {} s", limit.as_secs_f64());
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if !status.success() {
        bail!("`{shown}` failed ({status}); what it printed is above");
    }
    let mut printed = Vec::new();
    let mut output = child.stdout.take().context("its output is not there")?;
    output.read_to_end(&mut printed).with_context(|| format!("cannot read what `{shown}` printed"))?;
    Ok(printed)
}

/// The command as a person would type it, with the environment that was set for it.
pub(crate) fn shown(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())))
    });
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    set.chain(words.map(|word| quoted(&word.to_string_lossy()))).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for the shell when it needs it.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,@+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_typed_again() {
        let mut command = program("/some/where/cargo", Path::new("."));
        command.env("RUSTDOCFLAGS", "-D warnings").args(["test", "it's", "-p", "towline-core"]);
        assert_eq!(shown(&command), r"RUSTDOCFLAGS='-D warnings' cargo test 'it'\''s' -p towline-core");
    }

    #[test]
    fn a_program_that_does_not_answer_is_ended_when_its_time_is_over() {
        let begun = Instant::now();
        let mut silent = program("sleep", Path::new("."));
        let error = output_within(silent.arg("60"), Duration::from_millis(200)).expect_err("no answer");
        assert_eq!(error.to_string(), "`sleep 60` gave no answer within 0.2 s");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_there() {
        assert!(!is_there(&mut program("no-such-program-anywhere", Path::new("."))));
    }
}
