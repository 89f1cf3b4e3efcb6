//! The scripts, one function each.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::frames::PRELUDE;
use crate::scratch::clean_command;

/// Prints bytes that are neither JSON nor UTF-8, then exits 0 without a result.
pub fn prints_garbage(dir: &Path) -> PathBuf {
    let body = r#"
await_prompt
printf 'Segmentation fault (core dumped)\n'
printf '\377\376\200 not text \303\050\n'
printf '{"type":"assistant","message":{"con\n'
printf '[1,2,3]\nnull\n\n'
exit 0
"#;
    with_body(dir, "prints-garbage", body)
}

/// Exits 1 at once, with a line on stderr.
pub fn exits_at_once(dir: &Path) -> PathBuf {
    with_body(dir, "exits-at-once", "\necho 'cannot start: no such thing' >&2\nexit 1\n")
}

/// Begins a turn and never ends it; ignores INT, TERM and HUP, and so do its grandchildren, which are in sessions
/// of their own. Only KILL to each of them helps.
pub fn ignores_signals(dir: &Path) -> PathBuf {
    let body = r#"
trap '' INT TERM HUP
await_prompt
init
# Signals that are ignored stay so in children.
setsid sh -c 'n=0; while [ $n -lt 600 ]; do sleep 1; n=$((n + 1)); done' >/dev/null 2>&1 </dev/null &
setsid sh -c 'setsid sleep 600 & n=0; while [ $n -lt 600 ]; do sleep 1; n=$((n + 1)); done' &
assistant 'Working, and not to be stopped.'
linger
"#;
    with_body(dir, "ignores-signals", body)
}

/// Prints 100,000 frames that nobody knows, a line of 8 MB, and 4 MB to stderr, and then a good result, which must
/// not be lost.
pub fn floods(dir: &Path) -> PathBuf {
    let body = r#"
await_prompt
init
head -c 4000000 /dev/zero | tr '\0' 'e' >&2 &
yes '{"type":"flood","text":"a frame that nobody knows"}' | head -n 100000
printf '{"type":"flood","text":"'
head -c 8000000 /dev/zero | tr '\0' 'x'
printf '"}\n'
wait
assistant 'The flood is over.'
result false null 'The flood is over.'
while IFS= read -r line; do :; done
"#;
    with_body(dir, "floods", body)
}

/// Ends well, but a grandchild in its own session keeps stdout and stderr open.
pub fn keeps_stdout_open(dir: &Path) -> PathBuf {
    let body = r#"
await_prompt
init
setsid sleep 600 </dev/null &
assistant 'Done, but something still runs.'
result false null 'Done, but something still runs.'
exit 0
"#;
    with_body(dir, "keeps-stdout-open", body)
}

/// Is killed in the middle of a line.
pub fn dies_in_half_a_line(dir: &Path) -> PathBuf {
    let body = r#"
await_prompt
init
printf '{"type":"assistant","message":{"id":"msg_1","type":"mess'
kill -KILL $$
"#;
    with_body(dir, "dies-in-half-a-line", body)
}

/// Ends with a result whose subtype is success and which is an error all the same (HTTP status 500), exit 1.
pub fn claims_success_with_error(dir: &Path) -> PathBuf {
    let body = r#"
await_prompt
init
assistant 'API Error: 500 scripted'
result true 500 'API Error: 500 scripted'
while IFS= read -r line; do :; done
exit 1
"#;
    with_body(dir, "claims-success-with-error", body)
}

/// Writes `done.txt` into its directory and ends its turns well.
pub fn well_behaved(dir: &Path) -> PathBuf {
    doing_as(dir, "well-behaved", "echo done > done.txt")
}

/// Runs shell commands for every prompt, in its directory, and ends its turns well. The commands see the number of
/// the turn, counted per process from 1, as `$turn`, and the prompt's line as `$line`.
pub fn doing(dir: &Path, commands: &str) -> PathBuf {
    doing_as(dir, "doing", commands)
}

/// The user messages, one JSON line each, that the scripts of [`well_behaved`] and [`doing`] at this path were sent
/// so far, by all their processes.
pub fn received(script: &Path) -> Vec<String> {
    let text = fs::read_to_string(received_log(script)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn doing_as(dir: &Path, name: &str, commands: &str) -> PathBuf {
    let log = received_log(&dir.join(name));
    let log = log.to_string_lossy().replace('\'', r"'\''");
    let body = format!(
        r#"
turn=0
while IFS= read -r line; do
  case "$line" in
    *'"control_request"'*) answer_control "$line" ;;
    *'"role":"user"'* | *'"role": "user"'*)
      turn=$((turn + 1))
      printf '%s\n' "$line" >> '{log}'
      init
      {{
{commands}
      }} >/dev/null </dev/null
      assistant "Turn $turn is done."
      result false null "Turn $turn is done."
      ;;
  esac
done
"#
    );
    with_body(dir, name, &body)
}

fn received_log(script: &Path) -> PathBuf {
    script.with_extension("received")
}

/// A script with a body of its own. It has the functions of all scripts here: `await_prompt` reads up to the first
/// user message, `init`, `assistant TEXT` and `result IS_ERROR STATUS TEXT` print frames, with the counts in `$usage`,
/// `answer_control LINE` replies to a control request, and `linger` waits for ten minutes.
pub fn with_body(dir: &Path, name: &str, body: &str) -> PathBuf {
    let path = dir.join(name);
    // Written by a child process: a file that this process has open for writing could leak into the child of
    // another thread, and starting the script would then fail with "text file busy".
    let mut writer = clean_command("sh")
        .args(["-c", r#"cat > "$1" && chmod 755 "$1""#, "sh"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start sh: {error}"));
    if let Some(mut stdin) = writer.stdin.take() {
        // A failure shows in the writer's status.
        let _ = stdin.write_all(PRELUDE.as_bytes()).and_then(|()| stdin.write_all(body.as_bytes()));
    }
    let status = writer.wait().unwrap_or_else(|error| panic!("cannot wait for sh: {error}"));
    assert!(status.success(), "cannot write the agent script {} ({status})", path.display());
    path
}
