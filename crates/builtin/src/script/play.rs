//! Plays one turn, which is the whole life of a process of the scripted agent.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use serde::Deserialize;
use serde_json::{Value, json};
use towline_core::{
    AgentEvent, MicroUsd, Role, SessionPlan, SessionStarted, ToolKind, ToolStatus, ToolUse, TurnEnd, TurnStop,
};

use super::format::{ScriptTurn, Step};
use super::session::{Memory, Progress};
use super::{Script, ScriptError, command};

/// The parameters of the scripted agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptArgs {
    pub script: PathBuf,
    /// The conversation to start or to resume.
    pub session: SessionPlan,
    /// The folder that stores the progress of conversations.
    pub state: PathBuf,
}

/// How the turn ended, and so the exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Played {
    /// All steps were played.
    Done,
    /// A `fail` step ended the turn.
    Failed,
    /// An `exit` step ended the process with this code in mid-turn.
    Exited(u8),
}

impl Played {
    /// The exit code of the process.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Exited(code) => code,
        }
    }
}

/// Reads the prompt, plays the next turn of the conversation in `cwd`, and prints each event as it happens. On an
/// error the caller prints it to standard error and exits with 1.
pub fn main(
    args: &ScriptArgs,
    stdin: impl Read,
    stdout: impl Write,
    cwd: &Path,
) -> Result<Played, ScriptError> {
    let script = Script::load(&args.script)?;
    let (SessionPlan::Fresh(session) | SessionPlan::Resume(session)) = &args.session;
    let memory = Memory::new(&args.state, session)?;
    let before = progress_of(&args.session, &memory)?;
    let prompt = read_prompt(stdin)?;

    let turn = script.turn_for(&prompt, before.next);
    let after = Progress {
        played: before.played.saturating_add(1),
        next: turn.map_or(before.next, |(place, _)| before.next.max(place + 1)),
    };
    // Stored before the first event: a reader that knows the conversation can resume it, whatever happens next.
    memory.keep(after)?;

    let mut stage = Stage { stdout, cwd, turn: after.played, last_message: String::new(), cost: None };
    stage.emit(&AgentEvent::SessionStarted(SessionStarted {
        native_id: session.clone(),
        resumed: matches!(args.session, SessionPlan::Resume(_)),
        model: None,
        agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    }))?;
    stage.emit(&AgentEvent::TurnStarted)?;
    match turn {
        Some((_, turn)) => stage.play(turn),
        None => stage.fail("no turn of the script fits this prompt"),
    }
}

fn progress_of(session: &SessionPlan, memory: &Memory) -> Result<Progress, ScriptError> {
    match session {
        SessionPlan::Fresh(_) => Ok(Progress::default()),
        SessionPlan::Resume(id) => {
            memory.recall()?.ok_or_else(|| ScriptError::NoConversation { session: id.to_string() })
        }
    }
}

fn read_prompt(stdin: impl Read) -> Result<String, ScriptError> {
    #[derive(Deserialize)]
    struct Input {
        prompt: String,
    }
    let no_prompt = |reason: String| ScriptError::NoPrompt { reason };
    let mut line = String::new();
    BufReader::new(stdin).read_line(&mut line).map_err(|error| no_prompt(error.to_string()))?;
    serde_json::from_str(&line).map(|input: Input| input.prompt).map_err(|error| no_prompt(error.to_string()))
}

/// A turn being played.
struct Stage<'a, W> {
    stdout: W,
    cwd: &'a Path,
    /// The number of this turn in the conversation.
    turn: u32,
    last_message: String,
    cost: Option<MicroUsd>,
}

/// The result of a tool call.
struct StepOutcome {
    status: ToolStatus,
    output: Option<String>,
    exit_code: Option<i32>,
}

impl<W: Write> Stage<'_, W> {
    fn play(&mut self, turn: &ScriptTurn) -> Result<Played, ScriptError> {
        for (place, step) in turn.steps.iter().enumerate() {
            let id = format!("call-{}-{}", self.turn, place + 1);
            match step {
                Step::Message(text) => {
                    self.last_message.clone_from(text);
                    self.emit(&AgentEvent::Message { role: Role::Assistant, text: text.clone() })?;
                }
                Step::Think(text) => self.emit(&AgentEvent::Thought { text: text.clone() })?,
                Step::Write(write) => {
                    let path = write.path.as_str();
                    let input = json!({"path": path, "text": write.text});
                    let call = edit(id, "write", format!("Write {path}"), input, path);
                    self.call(call, |cwd| write.path.write(cwd, &write.text).into())?;
                }
                Step::Replace(change) => {
                    let path = change.path.as_str();
                    let input = json!({"path": path, "from": change.from, "to": change.to});
                    let call = edit(id, "replace", format!("Edit {path}"), input, path);
                    self.call(call, |cwd| change.path.replace(cwd, &change.from, &change.to).into())?;
                }
                Step::Run(command) => self.run(id, command)?,
                Step::Sleep(pause) => thread::sleep(*pause),
                Step::Usage(used) => {
                    self.cost = Some(self.cost.unwrap_or_default() + used.cost);
                    let (used, model) = (*used, None);
                    self.emit(&AgentEvent::Usage { model, used, context_used: None, context_size: None })?;
                }
                Step::Raw(line) => self.print(line.as_bytes())?,
                Step::Fail(reason) => return self.fail(reason),
                Step::Exit(code) => return Ok(Played::Exited(*code)),
            }
        }
        self.end_turn(TurnStop::Done)?;
        Ok(Played::Done)
    }

    fn run(&mut self, id: String, command: &str) -> Result<(), ScriptError> {
        let input = json!({ "command": command });
        let call = begun(id, ToolKind::Execute, "run", command.to_owned(), input);
        self.call(call, |cwd| match command::run(command, cwd) {
            Ok(end) => StepOutcome {
                status: if end.code == Some(0) { ToolStatus::Ok } else { ToolStatus::Failed },
                output: Some(end.output),
                exit_code: end.code,
            },
            Err(error) => Err(error).into(),
        })
    }

    /// Announces a call, makes it, and reports the result.
    fn call(
        &mut self,
        mut tool: ToolUse,
        make: impl FnOnce(&Path) -> StepOutcome,
    ) -> Result<(), ScriptError> {
        self.emit(&AgentEvent::Tool(tool.clone()))?;
        StepOutcome { status: tool.status, output: tool.output, exit_code: tool.exit_code } = make(self.cwd);
        self.emit(&AgentEvent::Tool(tool))
    }

    fn fail(&mut self, reason: &str) -> Result<Played, ScriptError> {
        self.end_turn(TurnStop::Failed { status: None, reason: reason.to_owned() })?;
        Ok(Played::Failed)
    }

    fn end_turn(&mut self, stop: TurnStop) -> Result<(), ScriptError> {
        self.emit(&AgentEvent::TurnEnded(TurnEnd {
            stop,
            text: self.last_message.clone(),
            structured: None,
            inner_turns: None,
            reported_cost: self.cost,
        }))
    }

    fn emit(&mut self, event: &AgentEvent) -> Result<(), ScriptError> {
        let line = serde_json::to_vec(event).map_err(|error| ScriptError::Output(error.into()))?;
        self.print(&line)
    }

    /// Flushed line by line, so that followers see each event when it happens.
    fn print(&mut self, line: &[u8]) -> Result<(), ScriptError> {
        let written = self.stdout.write_all(&[line, b"\n"].concat()).and_then(|()| self.stdout.flush());
        written.map_err(ScriptError::Output)
    }
}

fn edit(id: String, name: &str, title: String, input: Value, path: &str) -> ToolUse {
    ToolUse { paths: vec![path.to_owned()], ..begun(id, ToolKind::Edit, name, title, input) }
}

fn begun(id: String, tool: ToolKind, name: &str, title: String, input: Value) -> ToolUse {
    ToolUse {
        id,
        tool,
        name: name.to_owned(),
        title,
        status: ToolStatus::Running,
        input: Some(input),
        output: None,
        exit_code: None,
        paths: Vec::new(),
    }
}

impl From<io::Result<()>> for StepOutcome {
    fn from(result: io::Result<()>) -> Self {
        let status = if result.is_ok() { ToolStatus::Ok } else { ToolStatus::Failed };
        Self { status, output: result.err().map(|error| error.to_string()), exit_code: None }
    }
}
