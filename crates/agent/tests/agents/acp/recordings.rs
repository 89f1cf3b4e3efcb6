//! Every recording of a real agent, read to its end.

use serde_json::Value;
use towline_agent::{Action, Protocol};
use towline_core::{AgentEvent, End, MicroUsd};

use super::support::{RECORDED, events, exited, feed, used, written};

/// There are two differences: we send more about ourselves, and we offer no files.
#[test]
fn our_requests_are_those_of_the_recordings() {
    for recording in RECORDED.all() {
        let (actions, _) = recording.play();
        let interesting = |message: &Value| {
            let is_refused = message["error"]["code"] == -32_601;
            message["method"] != "initialize" && !is_refused
        };
        let ours: Vec<_> = written(&actions).into_iter().filter(interesting).collect();
        let files: Vec<Value> = recording
            .frames()
            .filter(|message| message["method"] == "fs/write_text_file")
            .map(|message| message["id"].clone())
            .collect();
        let is_file = |message: &Value| message.get("method").is_none() && files.contains(&message["id"]);
        let theirs: Vec<_> = (recording.input().into_iter())
            .filter(|message| interesting(message) && !is_file(message))
            .collect();
        // Its input was closed while it waited for an answer.
        if recording.name == "gemini_eof_in_turn" {
            continue;
        }
        if recording.name.contains("_load") {
            // An agent that can resume is not asked for a replay.
            assert_eq!(ours[0]["method"], "session/resume");
            continue;
        }
        assert_eq!(ours, theirs, "{}", recording.name);
    }
}

#[test]
fn the_input_is_closed_unless_the_conversation_was_cut() {
    for recording in RECORDED.all() {
        let cut = recording.name.ends_with("_eof_in_turn") || recording.name == "opencode_cut";
        assert_eq!(recording.play().0.contains(&Action::CloseStdin), !cut, "{}", recording.name);
    }
}

#[test]
fn the_sum_of_the_costs_is_the_increase_of_the_sessions_total() {
    let mut compared = 0;
    for recording in RECORDED.all() {
        let (actions, _) = recording.play();
        let counted = used(&actions);
        let totals: Vec<MicroUsd> = recording
            .frames()
            .filter_map(|message| message["params"]["update"]["cost"]["amount"].as_f64())
            .filter_map(MicroUsd::from_dollars)
            .collect();
        let resumed = ["_resume", "_load", "_compact"].iter().any(|end| recording.name.ends_with(end));
        let before = if resumed { totals.first().copied() } else { None }.unwrap_or_default();
        let after = totals.last().copied().unwrap_or_default();
        assert_eq!(counted.cost, after.saturating_sub(before), "{}", recording.name);
        compared += usize::from(after > MicroUsd(0));
    }
    assert!(compared > 10, "only {compared} recordings have a cost");
}

/// The recording of a loaded conversation, from an agent that can only load.
fn loaded() -> (Box<dyn Protocol>, Vec<Action>) {
    let recording = RECORDED.named("opencode_load");
    let mut protocol = recording.protocol();
    let mut actions = protocol.start();
    for line in recording.output() {
        actions.extend(feed(&mut *protocol, &line.replace(r#""resume":{}"#, r#""other":{}"#)));
    }
    (protocol, actions)
}

#[test]
fn a_replayed_past_is_not_reported() {
    let (mut protocol, actions) = loaded();
    let methods: Vec<_> = written(&actions).iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, ["initialize", "session/load", "session/prompt"]);
    let reported = events(&actions);
    assert!(!reported.iter().any(|event| matches!(event, AgentEvent::Tool(_))), "{reported:?}");
    let messages: Vec<_> = reported
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Message { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["second answer"]);
    let resumed =
        reported.iter().any(|event| matches!(event, AgentEvent::SessionStarted(started) if started.resumed));
    assert!(resumed, "{reported:?}");
    assert_eq!(protocol.on_exit(&exited(0)).1, End::Completed);
}
