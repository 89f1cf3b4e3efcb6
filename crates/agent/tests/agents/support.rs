//! Plain settings and launches, and helpers that read actions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use towline_agent::{
    Action, AgentSettings, ApiSettings, CliSettings, Frame, Kind, LaunchContext, Permission, ProcessEnd,
    Protocol,
};
use towline_core::{AgentEvent, AttemptId, End, SessionId, SessionLimits, SessionPlan, Timeouts, Usage};

/// A plain agent.
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
        timeouts: Timeouts { startup: minute, idle: minute, turn: minute },
        stop_grace: minute,
        cli: CliSettings::default(),
        api: ApiSettings::default(),
        mcp_file: None,
        prices: BTreeMap::new(),
    }
}

pub(crate) fn resume(id: &str) -> SessionPlan {
    SessionPlan::Resume(SessionId::new(id))
}

pub(crate) fn attempt() -> AttemptId {
    serde_json::from_str(r#""0198c0de-0000-7000-8000-000000000001""#).expect("an id")
}

/// A plain launch.
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

/// The lines written to the agent, as JSON.
pub(crate) fn written(actions: &[Action]) -> Vec<Value> {
    let write = |action: &Action| match action {
        Action::Write(bytes) => Some(serde_json::from_slice(bytes).expect("we write JSON")),
        _ => None,
    };
    actions.iter().filter_map(write).collect()
}

/// A whole conversation: all actions and the end.
pub(crate) fn play(protocol: &mut dyn Protocol, lines: &[&str], exit: &ProcessEnd) -> (Vec<Action>, End) {
    let mut actions = protocol.start();
    for line in lines {
        actions.extend(feed(protocol, line));
    }
    let (last, end) = protocol.on_exit(exit);
    actions.extend(last);
    (actions, end)
}

/// Actions in a readable form, one per line.
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

/// The total usage.
pub(crate) fn used(actions: &[Action]) -> Usage {
    events(actions).into_iter().fold(Usage::default(), |sum, event| match event {
        AgentEvent::Usage { used, .. } => sum + used,
        _ => sum,
    })
}

/// Each line is reported under this name, with the part that is not understood.
pub(crate) fn assert_not_understood(
    in_turn: fn() -> Box<dyn Protocol>,
    cases: impl IntoIterator<Item = (String, &'static str)>,
) {
    for (line, wanted) in cases {
        let actions = feed(&mut *in_turn(), &line);
        let [AgentEvent::Unrecognised { what, raw, count: 1 }] = &events(&actions)[..] else {
            panic!("{line}: {actions:?}")
        };
        assert_eq!(what, wanted, "{line}");
        assert!(!raw.is_empty() && raw.chars().count() <= 500 && line.contains(raw), "{line}: {raw}");
    }
}
