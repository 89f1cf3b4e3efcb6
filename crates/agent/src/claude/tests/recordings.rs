//! Every recording of the real CLI, read to its end.

use serde_json::Value;
use towline_core::{AgentEvent, MicroUsd, Tokens, Usage};

use super::support::{Recording, events, readable};
use crate::protocol::Action;

#[test]
fn each_recording_reads_as_in_its_snapshot() {
    for recording in Recording::all() {
        let (actions, end) = recording.play();
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(recording.name.clone(), readable(&actions, &end));
        });
    }
}

#[test]
fn no_frame_of_a_recording_is_unrecognised() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let unknown: Vec<_> = events(&actions)
            .into_iter()
            .filter(|event| matches!(event, AgentEvent::Unrecognised { .. }))
            .collect();
        assert_eq!(unknown, [], "{}", recording.name);
    }
}

#[test]
fn the_sum_of_usage_is_what_the_cli_reports() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let counted = events(&actions).into_iter().fold(Usage::default(), |sum, event| match event {
            AgentEvent::Usage { used, .. } => sum + used,
            _ => sum,
        });
        // A recording without a result used nothing: its requests all failed.
        let reported = recording.results().last().map(reported_usage).unwrap_or_default();
        assert_eq!(counted, reported, "{}", recording.name);
    }
}

fn reported_usage(result: &Value) -> Usage {
    let models: Vec<_> = result["modelUsage"].as_object().expect("usage by model").values().collect();
    let sum = |field: &str| Tokens(models.iter().map(|model| model[field].as_u64().expect("a count")).sum());
    Usage {
        input: sum("inputTokens"),
        output: sum("outputTokens"),
        cache_read: sum("cacheReadInputTokens"),
        cache_write: sum("cacheCreationInputTokens"),
        cost: MicroUsd::from_dollars(result["total_cost_usd"].as_f64().expect("a cost")).expect("an amount"),
    }
}

#[test]
fn the_input_is_closed_once_after_a_result_and_nothing_is_written_later() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let closings: Vec<_> = (0..actions.len()).filter(|at| actions[*at] == Action::CloseStdin).collect();
        assert_eq!(closings.len(), recording.results().len().min(1), "{}", recording.name);
        if let [closing] = closings[..] {
            let after = &actions[closing..];
            assert!(!after.iter().any(|action| matches!(action, Action::Write(_))), "{}", recording.name);
        }
    }
}

/// What we write is compared with what was written when the recordings were made: the same requests, in the
/// same order and shape, by other names and with other prompts.
#[test]
fn what_we_write_first_has_the_shape_the_cli_was_recorded_with() {
    let mut compared = 0;
    for recording in Recording::all().iter().filter(|recording| !recording.input().is_empty()) {
        let ours: Vec<Value> = super::support::written(&recording.protocol().start());
        let theirs: Vec<Value> = recording.input().into_iter().take(2).collect();
        assert_eq!(ours[0]["request"], theirs[0]["request"], "{}", recording.name);
        assert_eq!(shape(&without_id(&ours[1])), shape(&without_id(&theirs[1])), "{}", recording.name);
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} two-way recordings were found");
}

/// The CLI gives ids to messages without one.
fn without_id(message: &Value) -> Value {
    let mut message = message.clone();
    message.as_object_mut().expect("an object").remove("uuid");
    message
}

#[test]
fn answers_and_the_operators_words_are_written_as_the_cli_was_recorded_with() {
    let mut compared = 0;
    for recording in Recording::all() {
        let talks = ["ask_user_question", "ask_two_questions", "tell_mid_turn", "tell_late"];
        if talks.contains(&recording.name.as_str()) {
            let ours = super::support::written(&recording.play().0);
            assert_eq!(ours[2..], recording.input()[2..], "{}", recording.name);
            compared += 1;
        }
    }
    assert_eq!(compared, 4);
}

fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => "text".into(),
        other => other.clone(),
    }
}
