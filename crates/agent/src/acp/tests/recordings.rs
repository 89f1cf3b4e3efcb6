//! Every recording of a real agent, read to its end.

use serde_json::Value;
use towline_core::{AgentEvent, End, MicroUsd, Usage};

use super::support::{Recording, events, feed, readable, written};
use crate::protocol::{Action, Protocol};

#[test]
fn each_recording_reads_as_in_its_snapshot() {
    for recording in Recording::all() {
        let (actions, end) = recording.play();
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(recording.full_name(), readable(&actions, &end));
        });
    }
}

#[test]
fn no_line_of_a_recording_is_unrecognised() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let unknown: Vec<_> = events(&actions)
            .into_iter()
            .filter(|event| matches!(event, AgentEvent::Unrecognised { .. }))
            .collect();
        assert_eq!(unknown, [], "{}", recording.full_name());
    }
}

/// Only two things differ: we say more about ourselves, and files are none of our business.
#[test]
fn what_we_write_is_what_the_agents_were_recorded_with() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let interesting = |message: &Value| {
            let is_refused = message["error"]["code"] == -32_601;
            message["method"] != "initialize" && !is_refused
        };
        let ours: Vec<_> = written(&actions).into_iter().filter(interesting).collect();
        let files: Vec<Value> = (recording.output().iter())
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON came out"))
            .filter(|message| message["method"] == "fs/write_text_file")
            .map(|message| message["id"].clone())
            .collect();
        let is_file = |message: &Value| message.get("method").is_none() && files.contains(&message["id"]);
        let theirs: Vec<_> = (recording.input().into_iter())
            .filter(|message| interesting(message) && !is_file(message))
            .collect();
        // Its input was closed while it waited for an answer.
        if recording.full_name() == "gemini_eof_in_turn" {
            continue;
        }
        if recording.name.starts_with("load") {
            // An agent that can resume is not asked to show everything again.
            assert_eq!(ours[0]["method"], "session/resume");
            continue;
        }
        assert_eq!(ours, theirs, "{}", recording.full_name());
    }
}

#[test]
fn the_input_is_closed_once_when_there_is_nothing_more_to_say() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let closings: Vec<_> = (0..actions.len()).filter(|at| actions[*at] == Action::CloseStdin).collect();
        let cut = matches!(recording.name.as_str(), "eof_in_turn") || recording.full_name() == "opencode_cut";
        assert_eq!(closings.len(), usize::from(!cut), "{}", recording.full_name());
        if let [closing] = closings[..] {
            let after = &actions[closing..];
            assert!(
                !after.iter().any(|action| matches!(action, Action::Write(_))),
                "{}",
                recording.full_name()
            );
        }
    }
}

#[test]
fn the_sum_of_the_costs_is_the_growth_of_the_sessions_total() {
    let mut compared = 0;
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let counted = events(&actions).into_iter().fold(Usage::default(), |sum, event| match event {
            AgentEvent::Usage { used, .. } => sum + used,
            _ => sum,
        });
        let totals: Vec<MicroUsd> = (recording.output().iter())
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON came out"))
            .filter_map(|message| message["params"]["update"]["cost"]["amount"].as_f64())
            .filter_map(MicroUsd::from_dollars)
            .collect();
        let resumed = matches!(recording.name.as_str(), "resume" | "load" | "compact");
        let before = if resumed { totals.first().copied() } else { None }.unwrap_or_default();
        let after = totals.last().copied().unwrap_or_default();
        assert_eq!(counted.cost, after.saturating_sub(before), "{}", recording.full_name());
        compared += usize::from(after > MicroUsd(0));
    }
    assert!(compared > 10, "only {compared} recordings have a cost");
}

/// The recording in which a conversation was loaded, from an agent that cannot do better than load.
fn loaded() -> (Box<dyn Protocol>, Vec<Action>) {
    let recording = Recording::all().into_iter().find(|recording| recording.full_name() == "opencode_load");
    let recording = recording.expect("the recording is there");
    let mut protocol = recording.protocol();
    let mut actions = protocol.start();
    for line in recording.output() {
        actions.extend(feed(&mut *protocol, &line.replace(r#""resume":{}"#, r#""other":{}"#)));
    }
    (protocol, actions)
}

#[test]
fn a_past_that_is_shown_again_is_no_news() {
    let (mut protocol, actions) = loaded();
    let methods: Vec<_> = written(&actions).iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, ["initialize", "session/load", "session/prompt"]);
    let told = events(&actions);
    assert!(!told.iter().any(|event| matches!(event, AgentEvent::Tool(_))), "{told:?}");
    let said: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Message { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["second answer"]);
    let resumed =
        told.iter().any(|event| matches!(event, AgentEvent::SessionStarted(started) if started.resumed));
    assert!(resumed, "{told:?}");
    assert_eq!(protocol.on_exit(&super::support::exited(0)).1, End::Completed);
}
