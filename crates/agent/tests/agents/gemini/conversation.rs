//! The events of the CLI's frames.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{Action, AgentSettings, Kind, LaunchContext, Protocol, Steer, agent};
use towline_core::{AgentEvent, End, MessageNo, Reply, Role, ToolStatus, TurnStop};

use super::support::{PROMPT, events, exited, feed, fresh, in_turn, launch, protocol, resume, settings};

fn give(protocol: &mut dyn Protocol, frame: &Value) -> Vec<AgentEvent> {
    events(&feed(protocol, &frame.to_string()))
}

/// A piece of a message, this many milliseconds after the first.
fn piece(at: u32, content: &str) -> Value {
    let timestamp = format!("2026-01-01T00:00:{:02}.{:03}Z", at / 1_000, at % 1_000);
    json!({"type": "message", "timestamp": timestamp, "role": "assistant", "content": content, "delta": true})
}

/// The text reported live, and the final message.
fn write(pieces: &[(u32, &str)]) -> (String, String) {
    let mut protocol = in_turn();
    let mut live = String::new();
    for (at, content) in pieces {
        for event in give(&mut *protocol, &piece(*at, content)) {
            let AgentEvent::MessageDelta { text } = event else { panic!("{event:?}") };
            live.push_str(&text);
        }
    }
    let reported = give(&mut *protocol, &json!({"type": "result", "status": "success"}));
    let [AgentEvent::Message { role: Role::Assistant, text }, AgentEvent::TurnEnded(end)] = &reported[..]
    else {
        panic!("{reported:?}")
    };
    assert_eq!((&end.text, &end.stop), (text, &TurnStop::Done));
    (live, text.clone())
}

#[test]
fn the_prompt_is_written_once_and_the_input_closed() {
    let written = Action::Write(format!("{PROMPT}\n").into_bytes());
    assert_eq!(protocol(&settings(), &fresh()).start(), [written, Action::CloseStdin]);
    let appending = AgentSettings { system_append: Some("Be brief.".into()), ..settings() };
    let written = Action::Write(format!("Be brief.\n\n{PROMPT}\n").into_bytes());
    assert_eq!(protocol(&appending, &fresh()).start(), [written, Action::CloseStdin]);
}

#[test]
fn settings_without_effect_are_reported() {
    let (session, none) = (resume("s"), BTreeMap::new());
    let settings = AgentSettings { max_turns: Some(3), ..settings() };
    let context = LaunchContext { compact: Some("x"), ..launch(&session, &none) };
    let reported = events(&agent(Kind::Gemini).protocol(&settings, &context).start());
    let [AgentEvent::Notice { text }, AgentEvent::NotCompacted { .. }] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert!(text.contains("`max_turns`"), "{text}");
}

#[test]
fn it_accepts_no_input_after_its_prompt() {
    let steers = [
        Steer::Interrupt,
        Steer::Tell { message: MessageNo(1), text: "faster".into() },
        Steer::Answer { request: "q1".into(), reply: Reply::Allowed },
    ];
    for steer in steers {
        assert_eq!(in_turn().on_steer(steer), []);
    }
}

#[test]
fn a_conversation_is_resumed_only_if_the_requested_id_comes_back() {
    let resumed = |session, id: &str| {
        let mut protocol = protocol(&settings(), &session);
        let reported = give(&mut *protocol, &json!({"type": "init", "session_id": id}));
        let [AgentEvent::SessionStarted(started), AgentEvent::TurnStarted] = &reported[..] else {
            panic!("{reported:?}")
        };
        assert_eq!(started.native_id.as_str(), id);
        started.resumed
    };
    assert!(!resumed(fresh(), "ours"));
    assert!(resumed(resume("theirs"), "theirs"));
    assert!(!resumed(resume("theirs"), "another"));
}

#[test]
fn a_message_that_begins_again_is_neither_stored_nor_shown_twice() {
    let whole = "This is the whole of it.";
    for pieces in [
        // As recorded: the same pieces again.
        &[(0, "This is"), (1, " the wh"), (1_060, "This is"), (1_061, " the wh"), (1_062, "ole of it.")][..],
        // In other pieces.
        &[(0, "This is the wh"), (1_060, "Thi"), (1_061, "s is the whole o"), (1_062, "f it.")],
        // Broken off twice.
        &[(0, "This"), (1_060, "This is the"), (3_100, "This is the who"), (3_101, "le of it.")],
        // It paused before it broke off, and does so again.
        &[(0, "This is"), (2_000, " the"), (4_000, "This is"), (6_000, " the whole of it.")],
        // In one piece.
        &[(0, "This is the whole of it.")],
    ] {
        let (live, text) = write(pieces);
        assert_eq!(text, whole, "{pieces:?}");
        if pieces.len() != 4 {
            assert_eq!(live, whole, "{pieces:?}");
        }
    }
}

#[test]
fn an_answer_in_other_words_replaces_the_one_that_broke_off() {
    let (_, text) =
        write(&[(0, "I will look at the tests, an"), (1_060, "I will look at the "), (1_061, "code.")]);
    assert_eq!(text, "I will look at the code.");
}

#[test]
fn a_message_with_repetitions_or_pauses_stays_whole() {
    for (pieces, wanted) in [
        // At once: nothing was requested again.
        (&[(0, "ho "), (1, "ho "), (2, "ho")][..], "ho ho ho"),
        (&[(0, "First, "), (5_000, "second, "), (10_000, "third.")], "First, second, third."),
        (&[(0, "The first line.\n"), (5_000, "The second line.\n")], "The first line.\nThe second line.\n"),
    ] {
        assert_eq!(write(pieces), (wanted.to_owned(), wanted.to_owned()));
    }
}

#[test]
fn a_call_of_an_answer_that_broke_off_does_not_stay_running() {
    let mut protocol = in_turn();
    let mut reported = Vec::new();
    for frame in [
        json!({"type": "tool_use", "tool_name": "glob", "tool_id": "lost", "parameters": {}}),
        json!({"type": "tool_use", "tool_name": "glob", "tool_id": "made", "parameters": {}}),
        json!({"type": "tool_result", "tool_id": "made", "status": "success", "output": "x"}),
        piece(0, "done"),
    ] {
        reported.extend(give(&mut *protocol, &frame));
    }
    let calls: Vec<_> = reported
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Tool(tool) => Some((tool.id.as_str(), tool.status)),
            _ => None,
        })
        .collect();
    use ToolStatus::{Cancelled, Ok, Running};
    assert_eq!(calls, [("lost", Running), ("made", Running), ("made", Ok), ("lost", Cancelled)]);
}

#[test]
fn a_long_output_keeps_its_end() {
    let mut protocol = in_turn();
    give(&mut *protocol, &json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t"}));
    let output = format!("{}the end", "x".repeat(3_000_000));
    let reported = give(
        &mut *protocol,
        &json!({"type": "tool_result", "tool_id": "t", "status": "success", "output": output}),
    );
    let [AgentEvent::Tool(tool)] = &reported[..] else { panic!("{} events", reported.len()) };
    let output = tool.output.as_deref().unwrap_or_default();
    assert!(output.len() <= 4 * 1024 && output.ends_with("the end"), "{}", output.len());
}

#[test]
fn its_own_limit_of_turns_is_no_success_despite_the_result() {
    let mut protocol = in_turn();
    let words = "Maximum session turns exceeded";
    let reported = give(&mut *protocol, &json!({"type": "error", "severity": "error", "message": words}));
    assert_eq!(reported, [AgentEvent::Notice { text: words.into() }]);
    give(&mut *protocol, &json!({"type": "result", "status": "success"}));
    assert_eq!(protocol.on_exit(&exited(0)).1, End::MaxTurns);
}
