//! `run`: a shell command with bounded output and time, and no process left afterwards.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::output::HeadAndTail;
use super::{Outcome, OutputSink, Reach, ToolKind};
use crate::child::Group;

/// The most output that is returned.
const OUTPUT_BYTES: usize = 30 * 1024;
/// The most that is read at once.
const AT_ONCE: usize = 16 * 1024;
/// The default timeout in seconds.
const USUAL_SECONDS: u64 = 600;
/// The longest timeout in seconds.
const MOST_SECONDS: u64 = 3_600;
/// How long output may still arrive after the end, for example from helpers that are about to exit.
const AFTERWARDS: Duration = Duration::from_millis(300);
/// Hidden from all commands, because it authenticates the agent to Towline.
const ALWAYS_HIDDEN: &str = "TOWLINE_TOKEN";

pub(super) const TOOL: Tool = Tool {
    name: "run",
    about: "Runs a command with `sh -c` in the workspace and answers with its output on both streams and \
            its exit code. Output above 30 KB is cut to its beginning and end. The command gets no input and no \
            terminal. Every call starts in the workspace: `cd` and variables do not last. Background processes end \
            with the command.",
    fields: &[
        Field::required("command", Form::Text, "The command, for `sh -c`."),
        Field::optional("timeout", Form::Number, "The timeout in seconds: 600 by default, at most 3600."),
    ],
    kind: ToolKind::Execute,
    reach: Reach::Acts,
    work: Work::Command,
};

/// Runs the command. Dropping the future ends it with all its descendants.
pub(super) async fn run(
    root: &Path,
    hidden: &[String],
    arguments: &Arguments,
    progress: OutputSink<'_>,
) -> Outcome {
    let seconds = arguments.number("timeout").unwrap_or(USUAL_SECONDS);
    if seconds > MOST_SECONDS {
        return Outcome::failed(format!(
            "run: `timeout` is {seconds}, and must be at most {MOST_SECONDS} seconds"
        ));
    }
    let (mut group, pipe) = match start(root, hidden, arguments.required("command")) {
        Ok(started) => started,
        Err(error) => return Outcome::failed(format!("run: the command cannot be started: {error}")),
    };
    let mut output = Output { pipe, ends: HeadAndTail::new(OUTPUT_BYTES), progress };
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let end = tokio::select! {
        status = output.follow_until(group.wait()) => End::Exited(status.ok()),
        () = sleep_until(deadline) => End::TimedOut(seconds),
    };
    output.finish(&mut group, end).await
}

/// How a command ended.
enum End {
    Exited(Option<ExitStatus>),
    TimedOut(u64),
}

fn start(root: &Path, hidden: &[String], line: &str) -> io::Result<(Group, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let reader = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    // Our copies of the writing end are dropped with the command; otherwise the output would never end.
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(root);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    command.env_remove(ALWAYS_HIDDEN);
    for name in hidden {
        command.env_remove(name);
    }
    Ok((Group::start(&mut command)?, reader))
}

/// The output of a command, which goes to the result and to followers.
struct Output<'a> {
    pipe: Receiver,
    ends: HeadAndTail,
    progress: OutputSink<'a>,
}

/// Whether more output can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Open,
    Ended,
}

impl Output<'_> {
    /// Reads output until `end` is ready.
    async fn follow_until<T>(&mut self, end: impl Future<Output = T>) -> T {
        tokio::pin!(end);
        let mut stream = Stream::Open;
        let mut buffer = vec![0; AT_ONCE];
        loop {
            tokio::select! {
                ended = &mut end => return ended,
                read = self.pipe.read(&mut buffer), if stream == Stream::Open => {
                    stream = self.take(&buffer, read);
                }
            }
        }
    }

    /// Reads the remaining output, ends leftover processes, and returns the outcome.
    async fn finish(mut self, group: &mut Group, end: End) -> Outcome {
        let (mut stream, mut left_behind) = (Stream::Open, false);
        if let End::Exited(_) = end {
            stream = self.drain().await;
            left_behind = group.is_alive();
        }
        group.end().await;
        if stream == Stream::Open {
            self.drain().await;
        }
        outcome(self.ends.finish(), &end, left_behind)
    }

    async fn drain(&mut self) -> Stream {
        let deadline = Instant::now() + AFTERWARDS;
        let mut buffer = vec![0; AT_ONCE];
        while let Ok(read) = timeout_at(deadline, self.pipe.read(&mut buffer)).await {
            if self.take(&buffer, read) == Stream::Ended {
                return Stream::Ended;
            }
        }
        Stream::Open
    }

    fn take(&mut self, buffer: &[u8], read: io::Result<usize>) -> Stream {
        match read {
            Ok(0) | Err(_) => Stream::Ended,
            Ok(length) => {
                self.ends.push(&buffer[..length]);
                (self.progress)(&buffer[..length]);
                Stream::Open
            }
        }
    }
}

fn outcome(mut output: String, end: &End, left_behind: bool) -> Outcome {
    if output.is_empty() {
        output.push_str("(no output)");
    }
    if !output.ends_with('\n') {
        output.push('\n');
    }
    if left_behind {
        output.push_str("[its background processes were ended]\n");
    }
    let (words, worked) = match end {
        End::Exited(status) => match status.map_or((None, None), |status| (status.code(), status.signal())) {
            (Some(code), _) => (format!("[exit code {code}]"), code == 0),
            (None, Some(signal)) => (format!("[ended by signal {signal}]"), false),
            (None, None) => ("[ended in an unknown way]".to_owned(), false),
        },
        End::TimedOut(seconds) => {
            (format!("[ended after its timeout of {seconds} s; set a longer one, or do less]"), false)
        }
    };
    output.push_str(&words);
    if worked { Outcome::ok(output) } else { Outcome::failed(output) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::Status;
    use super::*;
    use crate::test_waits::{contained, ended, reaped};

    async fn run_in(root: &Path, input: serde_json::Value) -> Outcome {
        run(root, &[], &TOOL.parse(&input).unwrap(), &mut |_| {}).await
    }

    async fn run_line(line: &str) -> Outcome {
        run_in(tempfile::tempdir().unwrap().path(), json!({ "command": line })).await
    }

    /// A command whose grandchild ignores every signal that can be ignored, and does not exit.
    const STUBBORN: &str = "sh -c 'trap \"\" TERM INT HUP; echo $$ > inner; while :; do sleep 1; done' & \
                            trap '' TERM; echo $$ > outer; wait; wait";

    #[tokio::test]
    async fn both_streams_come_in_order_with_the_exit_code() {
        let got = run_line("echo one; echo two >&2; echo three; exit 4").await;
        assert_eq!(got, Outcome::failed("one\ntwo\nthree\n[exit code 4]"));
        assert_eq!(run_line("printf x").await, Outcome::ok("x\n[exit code 0]"));
        assert_eq!(run_line("kill -9 $$").await, Outcome::failed("(no output)\n[ended by signal 9]"));
        assert_eq!(run_line("cat; tty").await, Outcome::failed("not a tty\n[exit code 1]"));
    }

    #[tokio::test]
    async fn a_command_that_cannot_run_is_reported() {
        let words = run_line("a\0b").await;
        assert_eq!(words.status, Status::Failed);
        assert!(words.output.starts_with("run: the command cannot be started: "), "{}", words.output);
        let got = run_in(Path::new("/"), json!({"command": "true", "timeout": 3_601})).await;
        assert_eq!(got, Outcome::failed("run: `timeout` is 3601, and must be at most 3600 seconds"));
    }

    #[tokio::test]
    async fn hidden_variables_are_not_seen() {
        let root = tempfile::tempdir().unwrap();
        let arguments =
            TOOL.parse(&json!({"command": "echo \"${CARGO_PKG_NAME-hidden} ${CARGO_PKG_VERSION-hidden}\""}));
        let hidden = ["CARGO_PKG_NAME".to_owned()];
        let got = run(root.path(), &hidden, &arguments.unwrap(), &mut |_| {}).await;
        assert_eq!(got, Outcome::ok(format!("hidden {}\n[exit code 0]", env!("CARGO_PKG_VERSION"))));
    }

    #[tokio::test]
    async fn a_timeout_ends_all_processes() {
        let root = tempfile::tempdir().unwrap();
        let got =
            run_in(root.path(), json!({"command": format!("echo begun; {STUBBORN}"), "timeout": 2})).await;
        let words = "begun\n[ended after its timeout of 2 s; set a longer one, or do less]";
        assert_eq!(got, Outcome::failed(words));
        ended(&root.path().join("outer")).await;
        ended(&root.path().join("inner")).await;
    }

    #[tokio::test]
    async fn dropping_the_future_ends_and_reaps_all_processes() {
        let root = tempfile::tempdir().unwrap();
        let (outer, inner) = (root.path().join("outer"), root.path().join("inner"));
        tokio::select! {
            got = run_in(root.path(), json!({"command": STUBBORN})) => panic!("it ended: {got:?}"),
            () = async { contained(&outer, "\n").await; contained(&inner, "\n").await } => {}
        }
        // Our own child is dead and reaped.
        reaped(&outer).await;
        ended(&inner).await;
    }

    #[tokio::test]
    async fn background_processes_delay_nothing_and_are_ended() {
        let root = tempfile::tempdir().unwrap();
        let begun = Instant::now();
        let line =
            "sh -c 'echo $$ > inner; exec sleep 600' & while ! test -s inner; do sleep 0.01; done; echo done";
        let got = run_in(root.path(), json!({ "command": line })).await;
        assert_eq!(got, Outcome::ok("done\n[its background processes were ended]\n[exit code 0]"));
        assert!(begun.elapsed() < Duration::from_secs(60));
        ended(&root.path().join("inner")).await;
    }

    #[tokio::test]
    async fn a_hundred_megabytes_are_cut_to_both_ends() {
        let arguments = TOOL.parse(&json!({
            "command": "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last",
        }));
        let got = run(Path::new("/"), &[], &arguments.unwrap(), &mut |_| {}).await;
        let half = OUTPUT_BYTES / 2;
        let left_out = 100_000_000 + 12 - OUTPUT_BYTES;
        let expected = format!(
            "first\n{}\n[… {left_out} bytes left out …]\n{}\nlast\n[exit code 0]",
            "x".repeat(half - 6),
            "x".repeat(half - 6)
        );
        assert!(got == Outcome::ok(expected), "{} bytes", got.output.len());
    }

    #[tokio::test]
    async fn followers_get_output_while_the_command_runs() {
        let root = tempfile::tempdir().unwrap();
        let arguments = TOOL.parse(&json!({
            "command": "printf 'half of \\303'; while ! test -e go; do sleep 0.01; done; printf '\\244\\n'; echo end",
        }));
        let mut heard = Vec::new();
        let go = root.path().join("go");
        let got = run(root.path(), &[], &arguments.unwrap(), &mut |piece| {
            heard.extend_from_slice(piece);
            // The command continues only once its output was followed.
            fs::write(&go, "").unwrap();
        })
        .await;
        assert_eq!(got, Outcome::ok("half of ä\nend\n[exit code 0]"));
        assert_eq!(heard, "half of ä\nend\n".as_bytes());
    }
}
