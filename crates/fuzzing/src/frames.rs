//! What must hold of a conversation whatever the agent writes: no panic, no success without the frame that reports it, and
//! no more output than the input accounts for.
//!
//! The first two bytes of the input decide how the conversation is set up and how it ends; the rest is the agent's output.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use serde_json::value::RawValue;
use towline_agent::{
    Action, AgentSettings, CliSettings, Frame, Kind, LaunchContext, Permission, ProcessEnd, Protocol, Steer,
    agent,
};
use towline_core::{AgentEvent, AttemptId, AttemptNo, End, GoalId, MessageNo, Reply, SessionId, SessionPlan};

/// How many bytes in front of the agent's output set the conversation up.
pub(crate) const HEADER: usize = 2;
/// Longer lines are reported by their length only, as the framer does with much longer ones.
const LINE_CAP: usize = 256 * 1024;
/// What a protocol may emit beyond what its input accounts for.
const FIXED_BYTES: usize = 64 * 1024;
const FIXED_ACTIONS: usize = 64;
/// How many bytes may come out for each that goes in: a message is reported in pieces, as a whole, and at the end of its
/// turn, each time with its characters escaped.
const BYTES_PER_BYTE: usize = 48;
const ACTIONS_PER_LINE: usize = 8;
/// Events that a single long line may hold many of.
const BYTES_PER_ACTION: usize = 8;

/// A conversation with an agent of this kind, set up in the plainest way and not yet started.
pub fn conversation(kind: Kind) -> Box<dyn Protocol> {
    Scene::of(&[]).protocol(kind)
}

/// Reads the input as a conversation with an agent of this kind. Returns how it ends.
pub(crate) fn check(kind: Kind, data: &[u8]) -> End {
    let (header, output) = data.split_at(data.len().min(HEADER));
    let scene = Scene::of(header);
    let lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
    let exit = scene.exit();
    let mut emitted = Emitted::default();
    let mut protocol = scene.protocol(kind);
    emitted.add(&protocol.start());
    for (place, line) in lines.iter().enumerate() {
        let frame = match line.len() {
            length if length > LINE_CAP => Frame::TooLong { length: length as u64 },
            _ => Frame::Line(line),
        };
        let actions = protocol.on_frame(frame);
        emitted.add(&actions);
        for steer in scene.steers(place, &actions) {
            emitted.add(&protocol.on_steer(steer));
        }
    }
    let (last, end) = protocol.on_exit(&exit);
    emitted.add(&last);
    emitted.assert_bounded(output.len(), lines.len(), &end);
    assert_no_false_success(kind, &lines, &exit, &end);
    end
}

/// How a conversation is set up, and how it ends.
struct Scene {
    bits: u8,
    steer_at: usize,
}

impl Scene {
    fn of(header: &[u8]) -> Self {
        let byte = |place: usize| header.get(place).copied().unwrap_or_default();
        Self { bits: byte(0), steer_at: usize::from(byte(1)) }
    }

    fn session(&self) -> SessionPlan {
        let id = SessionId::new("22222222-2222-4222-8222-222222222222");
        if self.bits & 1 == 0 { SessionPlan::Fresh(id) } else { SessionPlan::Resume(id) }
    }

    fn permission(&self) -> Permission {
        match (self.bits >> 2) & 3 {
            0 | 1 => Permission::Bypass,
            2 => Permission::Ask,
            _ => Permission::Deny,
        }
    }

    fn protocol(&self, kind: Kind) -> Box<dyn Protocol> {
        let (session, none) = (self.session(), BTreeMap::new());
        let context = LaunchContext {
            session: &session,
            directory: "/workspace",
            attempt: AttemptId::of(goal(), AttemptNo::FIRST),
            compact: (self.bits & 2 != 0).then_some("keep the goal in mind"),
            prompt: "make the tests pass",
            prompt_file: "/attempt/prompt",
            permitted: &[],
            model: None,
            provider: None,
            environment: &none,
            towline: &none,
        };
        agent(kind).protocol(&settings(kind, self.permission()), &context)
    }

    fn exit(&self) -> ProcessEnd {
        match (self.bits >> 4) & 3 {
            0 | 1 => ProcessEnd { code: Some(0), ..ProcessEnd::default() },
            2 => ProcessEnd { code: Some(1), stderr_tail: "Error: no".to_owned(), ..ProcessEnd::default() },
            _ => ProcessEnd { signal: Some(9), ..ProcessEnd::default() },
        }
    }

    /// What the operator does after the line at this place.
    fn steers(&self, place: usize, actions: &[Action]) -> Vec<Steer> {
        let mut steers = Vec::new();
        if self.bits & 0x40 != 0 {
            steers.extend(
                actions
                    .iter()
                    .filter_map(|action| match action {
                        Action::Emit { event: AgentEvent::Asked(ask), .. } => ask.request.clone(),
                        _ => None,
                    })
                    .map(|request| Steer::Answer { request, reply: Reply::Allowed }),
            );
        }
        if place + 1 == self.steer_at {
            steers.push(match self.bits & 0x80 {
                0 => Steer::Tell { message: MessageNo(1), text: "use blue".to_owned() },
                _ => Steer::Interrupt,
            });
        }
        steers
    }
}

fn goal() -> GoalId {
    "0198c0de-0000-7000-8000-000000000001".parse().unwrap_or_else(|error| panic!("an id: {error}"))
}

/// The settings of an agent that nobody has changed.
static UNCHANGED: LazyLock<AgentSettings> = LazyLock::new(|| {
    let claude = towline_config::inspect(&[]).config.agents.remove("claude");
    claude.unwrap_or_else(|| panic!("there is always a `claude`"))
});

fn settings(kind: Kind, permission: Permission) -> AgentSettings {
    AgentSettings {
        kind,
        command: vec!["agent".to_owned()],
        permission,
        allow: vec!["Read".to_owned(), "Bash(git *)".to_owned()],
        deny: vec!["Bash(rm *)".to_owned()],
        cli: CliSettings {
            resume: vec!["--resume".to_owned(), "{session}".to_owned()],
            session_pattern: Some("^session: (.+)$".to_owned()),
            cost_pattern: Some(r"cost: (\$?[0-9.,]+)".to_owned()),
            limit_pattern: Some("(?i)quota exceeded".to_owned()),
            ..CliSettings::default()
        },
        ..UNCHANGED.clone()
    }
}

/// How much a protocol wanted done.
#[derive(Default)]
struct Emitted {
    actions: usize,
    bytes: usize,
}

impl Emitted {
    fn add(&mut self, actions: &[Action]) {
        self.actions += actions.len();
        for action in actions {
            self.bytes += match action {
                Action::Emit { event, parent } => size(event) + parent.as_ref().map_or(0, String::len),
                Action::Write(bytes) => bytes.len(),
                Action::CloseStdin => 0,
            };
        }
    }

    fn assert_bounded(&self, input: usize, lines: usize, end: &End) {
        let bytes = self.bytes + size(end);
        assert!(
            bytes <= FIXED_BYTES + BYTES_PER_BYTE * input,
            "{bytes} bytes came out of {input} bytes in {lines} lines"
        );
        let actions = self.actions;
        assert!(
            actions <= FIXED_ACTIONS + ACTIONS_PER_LINE * lines + input / BYTES_PER_ACTION,
            "{actions} actions came out of {input} bytes in {lines} lines"
        );
    }
}

fn size(value: &impl serde::Serialize) -> usize {
    let stored = serde_json::to_vec(value);
    stored.unwrap_or_else(|error| panic!("an event cannot be stored: {error}")).len()
}

fn assert_no_false_success(kind: Kind, lines: &[&[u8]], exit: &ProcessEnd, end: &End) {
    if *end != End::Completed {
        return;
    }
    let is_proven = match kind {
        // Text of any kind: only the exit code decides.
        Kind::Command => exit.code == Some(0) && exit.signal.is_none(),
        kind => lines.iter().any(|line| is_clean_end(kind, &String::from_utf8_lossy(line.trim_ascii()))),
    };
    assert!(is_proven, "a success although no frame reports one");
}

/// Whether a line is the end of a turn without an error. As loose as any reader may be.
fn is_clean_end(kind: Kind, line: &str) -> bool {
    let is = |path: &[&str], value: &str| field(line, path).is_some_and(|field| field == value);
    match kind {
        Kind::Claude => {
            is(&["type"], "result")
                && is(&["subtype"], "success")
                && field(line, &["is_error"]) == Some(false.into())
        }
        Kind::Codex => is(&["method"], "turn/completed") && is(&["params", "turn", "status"], "completed"),
        Kind::Acp | Kind::Builtin => is(&["result", "stopReason"], "end_turn"),
        Kind::Gemini => is(&["type"], "result") && is(&["status"], "success"),
        Kind::Script => is(&["kind"], "turn_ended"),
        Kind::Command => false,
    }
}

/// A field of a frame. What is beside the path may be anything that looks like JSON, also a number that no type holds: readers skip it.
fn field(frame: &str, path: &[&str]) -> Option<Value> {
    let Some((name, rest)) = path.split_first() else { return serde_json::from_str(frame).ok() };
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(frame).ok()?;
    field(fields.get(*name)?.get(), rest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::seeds;

    /// Otherwise nothing that is damaged could be taken for a success, and all this would prove nothing.
    #[test]
    fn undamaged_seeds_are_understood() {
        for kind in Kind::ALL {
            let seeds = seeds::of(kind);
            let (completed, classes) = match seeds.len() {
                // What others wrote is seldom what the built-in agent would write.
                _ if kind == Kind::Builtin => (1, 3),
                0..10 => (1, 1),
                10..40 => (8, 5),
                _ => (15, 5),
            };
            let plain = |mut seed: Vec<u8>| {
                seed[..HEADER].fill(0);
                check(kind, &seed)
            };
            let ends: Vec<End> = seeds.into_iter().map(plain).collect();
            let found = ends.iter().filter(|end| **end == End::Completed).count();
            assert!(found >= completed, "{kind:?}: {found}");
            let kinds: BTreeSet<&str> = ends.iter().map(End::name).collect();
            assert!(kinds.len() >= classes, "{kind:?}: {kinds:?}");
        }
    }

    #[test]
    #[should_panic(expected = "a success although no frame reports one")]
    fn a_false_success_is_noticed() {
        let exit = ProcessEnd::default();
        assert_no_false_success(Kind::Claude, &[b"{\"type\":\"result\"}"], &exit, &End::Completed);
    }

    #[test]
    #[should_panic(expected = "bytes came out of 10 bytes")]
    fn output_without_measure_is_noticed() {
        let emitted = Emitted { actions: 1, bytes: 100_000 };
        emitted.assert_bounded(10, 1, &End::Completed);
    }
}
