//! What the tests of all agents share: plain settings and launches, feeding a protocol, and damaging what it is fed.
//! Only compiled for them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use towline_core::{AgentEvent, AttemptId, ClockLimits, End, SessionId, SessionLimits, SessionPlan};

use crate::api_settings::ApiSettings;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol};
use crate::settings::{AgentSettings, CliSettings, Kind, Permission};

/// An agent with nothing special about it.
pub(crate) fn plain_settings(kind: Kind, command: &[&str]) -> AgentSettings {
    let minute = Duration::from_secs(60);
    AgentSettings {
        kind,
        command: command.iter().map(|&word| word.to_owned()).collect(),
        model: None,
        permission: Permission::Bypass,
        allow: vec![],
        deny: vec![],
        system_append: None,
        dirs: vec![],
        max_turns: None,
        mcp: BTreeMap::new(),
        args: vec![],
        env: BTreeMap::new(),
        pass_env: vec![],
        account: None,
        sessions: SessionLimits::default(),
        clocks: ClockLimits { startup: minute, idle: minute, turn: minute },
        stop_grace: minute,
        cli: CliSettings::default(),
        api: ApiSettings::default(),
        prices: BTreeMap::new(),
    }
}

pub(crate) fn resume(id: &str) -> SessionPlan {
    SessionPlan::Resume(SessionId::new(id))
}

pub(crate) fn attempt() -> AttemptId {
    serde_json::from_str(r#""0198c0de-0000-7000-8000-000000000001""#).expect("an id")
}

/// A launch with nothing special about it.
pub(crate) fn plain_launch<'a>(
    session: &'a SessionPlan,
    prompt: &'a str,
    none: &'a BTreeMap<String, String>,
) -> LaunchContext<'a> {
    LaunchContext {
        directory: "/workspace",
        session,
        attempt: attempt(),
        compact: None,
        prompt,
        prompt_file: "/attempt/prompt",
        permitted: &[],
        model: None,
        provider: Some("https://api.example"),
        environment: none,
        towline: none,
    }
}

pub(crate) fn feed(protocol: &mut dyn Protocol, line: &str) -> Vec<Action> {
    protocol.on_frame(Frame::Line(line.as_bytes()))
}

pub(crate) fn exited(code: i32) -> ProcessEnd {
    ProcessEnd { code: Some(code), ..ProcessEnd::default() }
}

pub(crate) fn events(actions: &[Action]) -> Vec<AgentEvent> {
    let event = |action: &Action| match action {
        Action::Emit { event, .. } => Some(event.clone()),
        _ => None,
    };
    actions.iter().filter_map(event).collect()
}

/// What is written to the agent, as JSON.
pub(crate) fn written(actions: &[Action]) -> Vec<Value> {
    let write = |action: &Action| match action {
        Action::Write(bytes) => Some(serde_json::from_slice(bytes).expect("we write JSON")),
        _ => None,
    };
    actions.iter().filter_map(write).collect()
}

/// The whole conversation: all that the protocol wants done, and the end.
pub(crate) fn play(protocol: &mut dyn Protocol, lines: &[&str], exit: &ProcessEnd) -> (Vec<Action>, End) {
    let mut actions = protocol.start();
    for line in lines {
        actions.extend(feed(protocol, line));
    }
    let (last, end) = protocol.on_exit(exit);
    actions.extend(last);
    (actions, end)
}

/// Actions as a person reads them, one per line.
pub(crate) fn readable(actions: &[Action], end: &End) -> String {
    let show = |action: &Action| match action {
        Action::Emit { event, parent: None } => format!("     {}", json(event)),
        Action::Emit { event, parent: Some(parent) } => format!("     {} below {parent}", json(event)),
        Action::Write(bytes) => format!("<-   {}", String::from_utf8_lossy(bytes).trim_end()),
        Action::CloseStdin => "<-   (closed)".to_owned(),
    };
    let mut lines: Vec<_> = actions.iter().map(show).collect();
    lines.push(format!("end  {}", json(end)));
    lines.join("\n")
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("serialises")
}

/// A conversation with a real agent, to be damaged.
pub(crate) trait Damageable {
    /// Its name, for whoever reads a failure.
    fn title(&self) -> String;
    /// What the agent wrote.
    fn written_lines(&self) -> Vec<&str>;
    /// How its process ended.
    fn process_end(&self) -> &ProcessEnd;
    /// A protocol for it, not yet started.
    fn new_protocol(&self) -> Box<dyn Protocol>;
    /// Whether a line is the end of a turn without error.
    fn is_clean_end(line: &str) -> bool;
    /// How many of those a success needs: a summary is a turn, too, but answers no prompt.
    fn clean_ends_wanted(&self) -> usize;
}

/// Cut after every so many bytes, it is no success without the end of its turn.
pub(crate) fn assert_cut_is_no_success<R: Damageable>(recordings: &[R], step: usize) {
    for recording in recordings {
        let whole = recording.written_lines().join("\n");
        for (case, at) in (0..whole.len()).step_by(step).enumerate() {
            let lines: Vec<_> = whole[..whole.floor_char_boundary(at)].split('\n').collect();
            assert_no_false_success(recording, &lines, case);
        }
    }
}

/// In any order, its lines make no panic and no success without the end of its turn.
pub(crate) fn assert_order_does_no_harm<R: Damageable>(recordings: &[R], rounds: usize) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for recording in recordings {
        let mut lines = recording.written_lines();
        for round in 0..rounds {
            for at in (1..lines.len()).rev() {
                lines.swap(at, numbers.below(at + 1));
            }
            assert_no_false_success(recording, &lines, round);
        }
    }
}

/// With some of its bytes replaced, it makes no panic.
pub(crate) fn assert_scribbles_do_no_harm<R: Damageable>(recordings: &[R], rounds: usize) {
    let mut numbers = Numbers(42);
    for recording in recordings {
        for _ in 0..rounds {
            let mut protocol = recording.new_protocol();
            protocol.start();
            for line in recording.written_lines() {
                let mut bytes = line.as_bytes().to_vec();
                for _ in 0..=numbers.below(4) {
                    let at = numbers.below(bytes.len());
                    bytes[at] = numbers.next().to_le_bytes()[0];
                }
                protocol.on_frame(Frame::Line(&bytes));
            }
            protocol.on_exit(recording.process_end());
        }
    }
}

/// Bytes without any sense, in the middle of a turn, are a crash.
pub(crate) fn assert_random_bytes_are_a_crash(in_turn: impl Fn() -> Box<dyn Protocol>) {
    let mut numbers = Numbers(7);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..numbers.below(300)).map(|_| numbers.next().to_le_bytes()[0]).collect();
        let mut protocol = in_turn();
        protocol.on_frame(Frame::Line(&bytes));
        let (_, end) = protocol.on_exit(&exited(0));
        assert!(matches!(end, End::Crashed { .. }), "{end:?}");
    }
}

/// Each case with one of the exits in turn: all of them with all exits take too long.
fn assert_no_false_success<R: Damageable>(recording: &R, lines: &[&str], case: usize) {
    let killed = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let exit = &[exited(0), exited(1), killed][case % 3];
    let (_, end) = play(&mut *recording.new_protocol(), lines, exit);
    if end == End::Completed {
        let ends = lines.iter().filter(|line| R::is_clean_end(line)).count();
        assert!(ends >= recording.clean_ends_wanted(), "{}: case {case}", recording.title());
    }
}

/// A small generator of numbers, the same in each run so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("small")
    }
}
