//! An attempt's output, from its first byte on, through the agent's protocol.
//!
//! This is the only way from raw bytes to events: for a new agent, an adopted one and a replay. Nothing is written here,
//! and nothing is waited for. Escape sequences for a terminal are removed from the texts of events, except from the input
//! of tools. The logs have all of it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use towline_agent::{Action, Frame, ProcessEnd, Protocol, Steer};
use towline_core::{About, AgentEvent, Ask, End, Exit, LaunchProblem, RawRef, Words, without_escapes};
use towline_process::{
    ExitRecord, Framed, LineFramer, LogReader, OutputTimes, SpawnError, SpawnErrorKind, StopCause, Stream,
};

/// How much of stderr is evidence.
const STDERR_TAIL: u64 = 4 * 1024;

/// Whether there was output to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// There was, and there may be more.
    More,
    /// All that is there was read.
    Drained,
}

/// What a piece of the output means, and its position.
pub(crate) type Understood = (RawRef, Vec<Action>);

/// A place in an attempt's output.
pub(crate) struct Reading {
    dir: PathBuf,
    protocol: Box<dyn Protocol>,
    reader: LogReader,
    framer: LineFramer,
    times: OutputTimes,
}

impl Reading {
    /// Of the attempt in `dir`, from its first byte on.
    pub(crate) fn new(dir: &Path, protocol: Box<dyn Protocol>) -> Self {
        let reader = LogReader::output(dir, Stream::Stdout, 0);
        let times = OutputTimes::new(dir, Stream::Stdout);
        Self { dir: dir.to_owned(), protocol, reader, framer: LineFramer::new(0), times }
    }

    /// What is to be done before there is any output.
    pub(crate) fn start(&mut self) -> Vec<Action> {
        plain(self.protocol.start())
    }

    /// Takes in the next chunk of the output, whose lines [`Self::next_line`] gives.
    pub(crate) fn take_in(&mut self) -> Output {
        // A log that cannot be read counts as one that ends here; the exit record has the rest.
        let chunk = self.reader.read().unwrap_or(&[]);
        self.framer.push(chunk);
        if chunk.is_empty() { Output::Drained } else { Output::More }
    }

    /// Output up to here was taken in.
    pub(crate) fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// When the output before `end` was there, as far as the index has it.
    pub(crate) fn time_of(&mut self, end: u64) -> Option<Timestamp> {
        let at_ms = self.times.at(end).ok().flatten()?;
        Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()
    }

    /// What the next whole line means, if there is one.
    pub(crate) fn next_line(&mut self) -> Option<Understood> {
        self.framer.pull().map(|framed| understand(&mut *self.protocol, framed))
    }

    /// What the rest behind the last whole line means, once there will be no more output.
    pub(crate) fn rest(&mut self) -> Option<Understood> {
        self.framer.finish().map(|framed| understand(&mut *self.protocol, framed))
    }

    /// How to pass on what the operator wants.
    pub(crate) fn steer(&mut self, steer: Steer) -> Vec<Action> {
        plain(self.protocol.on_steer(steer))
    }

    /// Whether the words of a refused permission reach the agent together with the refusal.
    pub(crate) fn refusal_words(&self) -> Words {
        self.protocol.refusal_words()
    }

    /// What the end of the process means: last events, the classified end, and the bare facts. Without a record nobody
    /// knows how it ended.
    pub(crate) fn end(&mut self, record: Option<&ExitRecord>) -> (Vec<Action>, End, Exit) {
        let (code, signal) = record.map_or((None, None), |record| (record.code, record.signal));
        let exit = ProcessEnd { code, signal, stderr_tail: stderr_tail(&self.dir) };
        let (last, mut end) = match record.and_then(launch_problem) {
            // There was no process, so there is nothing for its protocol to interpret.
            Some(problem) => (Vec::new(), End::SpawnFailed { problem }),
            None => self.protocol.on_exit(&exit),
        };
        end.for_each_text(&mut take_escapes);
        // A process whose end is unknown did not end by itself.
        let end = match (record, end) {
            (Some(ExitRecord { stopped: Some(StopCause::FileLimit), .. }), _) => End::OutputLimit,
            (None, End::Crashed { .. }) => End::Lost,
            (_, end) => end,
        };
        (plain(last), end, Exit { code: exit.code, signal: exit.signal, stderr_tail: exit.stderr_tail })
    }
}

fn understand(protocol: &mut dyn Protocol, framed: Framed<'_>) -> Understood {
    let (offset, length, frame) = match framed {
        Framed::Line(line) => (line.offset, line.length(), Frame::Line(line.bytes)),
        Framed::TooLong { offset, len } => (offset, len, Frame::TooLong { length: len }),
    };
    (RawRef { offset, length }, plain(protocol.on_frame(frame)))
}

/// The same without what steers a terminal.
fn plain(actions: Vec<Action>) -> Vec<Action> {
    let plain = |action| match action {
        Action::Emit { event, parent } => Action::Emit { event: without_escapes_in(event), parent },
        other => other,
    };
    actions.into_iter().map(plain).collect()
}

/// An event without escape sequences. A piece of a message may hold half a sequence; no piece is stored.
///
/// The input of a tool stays as it is, because a sequence can hide a part of a command from the person who permits it.
pub(crate) fn without_escapes_in(mut event: AgentEvent) -> AgentEvent {
    match &mut event {
        AgentEvent::MessageDelta { .. }
        | AgentEvent::Decided(_)
        | AgentEvent::Asked(Ask { about: About::Permission { .. }, .. }) => {}
        AgentEvent::Tool(tool) => tool.output.iter_mut().for_each(take_escapes),
        other => other.for_each_text(&mut take_escapes),
    }
    event
}

fn take_escapes(text: &mut String) {
    if let Cow::Owned(plain) = without_escapes(text) {
        *text = plain;
    }
}

fn launch_problem(record: &ExitRecord) -> Option<LaunchProblem> {
    let SpawnError { kind, message } = record.spawn_error.clone()?;
    Some(match kind {
        SpawnErrorKind::ProgramNotFound => LaunchProblem::NotFound { program: message },
        SpawnErrorKind::NotExecutable => LaunchProblem::NotExecutable { program: message },
        SpawnErrorKind::DirectoryMissing => LaunchProblem::NoDirectory { path: message },
        SpawnErrorKind::Other => LaunchProblem::Other { message },
    })
}

fn stderr_tail(dir: &Path) -> String {
    let length = std::fs::symlink_metadata(dir.join("stderr.log")).map_or(0, |log| log.len());
    let mut reader = LogReader::output(dir, Stream::Stderr, length.saturating_sub(STDERR_TAIL));
    let tail = String::from_utf8_lossy(reader.read().unwrap_or(&[]));
    // Half a secret would not be recognised as one, so a word that is cut goes.
    let whole = match tail.find(char::is_whitespace) {
        Some(end) if length > STDERR_TAIL => &tail[end..],
        _ => &tail,
    };
    without_escapes(whole.trim()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use towline_core::{Role, ToolCall, ToolKind, ToolStatus, ToolUse};

    use super::*;

    /// Reports each line it gets, in colour.
    struct Colourful;

    impl Protocol for Colourful {
        fn start(&mut self) -> Vec<Action> {
            Vec::new()
        }

        fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
            let Frame::Line(line) = frame else { return Vec::new() };
            let text = String::from_utf8_lossy(line).into_owned();
            vec![Action::emit(AgentEvent::Message { role: Role::Assistant, text })]
        }

        fn on_steer(&mut self, _steer: Steer) -> Vec<Action> {
            Vec::new()
        }

        fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
            let message = format!("\u{1b}[1mended\u{1b}[0m: {}", exit.stderr_tail);
            (Vec::new(), End::Auth { message })
        }
    }

    #[test]
    fn texts_of_events_and_ends_have_no_escape_sequences() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        std::fs::write(dir.path().join("stdout.log"), "\u{1b}[32mdone\u{1b}[0m\n").expect("written");
        std::fs::write(dir.path().join("stderr.log"), "\u{1b}[31mno room\u{1b}[0m\n").expect("written");
        let mut reading = Reading::new(dir.path(), Box::new(Colourful));
        assert_eq!(reading.take_in(), Output::More);
        let (_, actions) = reading.next_line().expect("a line");
        let done = AgentEvent::Message { role: Role::Assistant, text: "done".into() };
        assert_eq!(actions, [Action::emit(done)]);
        let (_, end, exit) = reading.end(None);
        assert_eq!(end, End::Auth { message: "ended: no room".into() });
        assert_eq!(exit.stderr_tail, "no room");
    }

    #[test]
    fn a_program_that_could_not_be_started_has_not_crashed_whatever_its_protocol_makes_of_it() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let record = ExitRecord {
            spawn_error: Some(SpawnError { kind: SpawnErrorKind::ProgramNotFound, message: "cli".into() }),
            ..ExitRecord::default()
        };
        let (actions, end, _) = Reading::new(dir.path(), Box::new(Colourful)).end(Some(&record));
        assert_eq!(actions, []);
        assert_eq!(end, End::SpawnFailed { problem: LaunchProblem::NotFound { program: "cli".into() } });
    }

    /// Both commands delete files. As a terminal shows them, they only list some.
    #[test]
    fn no_part_of_a_command_that_a_person_may_permit_is_hidden() {
        for command in ["rm -r src #\rls\u{1b}[m", "ls; \u{1b}]0;rm -r src;\u{7}"] {
            let call = ToolCall { tool: "Bash".into(), input: String::new() };
            let about = About::Permission { call, title: command.into(), rule: command.into() };
            let asked = AgentEvent::Asked(Ask { about, ..Ask::choice(String::new(), Vec::new()) });
            assert_eq!(without_escapes_in(asked.clone()), asked);
            let tool = |output: &str| {
                AgentEvent::Tool(ToolUse {
                    id: "1".into(),
                    tool: ToolKind::Execute,
                    name: "Bash".into(),
                    title: command.into(),
                    status: ToolStatus::Ok,
                    input: Some(command.into()),
                    output: Some(output.into()),
                    exit_code: None,
                    paths: Vec::new(),
                })
            };
            assert_eq!(without_escapes_in(tool("\u{1b}[32mok\u{1b}[0m")), tool("ok"));
        }
    }
}
