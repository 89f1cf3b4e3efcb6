//! Every recording of the real app server, read to its end.

use std::collections::BTreeMap;

use serde_json::Value;
use towline_core::{Reported, Tokens, Usage};

use super::support::{RECORDED, events, used, written};
use crate::recording::{Recording, Steering};

/// A process that adopts a conversation has only the log of the agent's output, and must derive the same events from
/// it.
#[test]
fn events_do_not_depend_on_the_operators_messages() {
    for recording in RECORDED.all() {
        let (with, end) = recording.play();
        let (without, same_end) = recording.play_as(recording.protocol(), Steering::Missing);
        assert_eq!((events(&with), end), (events(&without), same_end), "{}", recording.name);
    }
}

#[test]
fn the_sum_of_usage_is_what_the_conversations_used_since_the_process_began() {
    for recording in RECORDED.all() {
        let (actions, _) = recording.play();
        let counted = used(&actions);
        let reported = counted.reported;
        assert_eq!(counted, Usage { reported, ..used_by(&recording) }, "{}", recording.name);
    }
}

/// The sum over single requests: those after which a total has changed, without the total at the beginning.
fn used_by(recording: &Recording) -> Usage {
    // A forked conversation starts without an earlier total.
    let copies = recording.sent("fork").is_some();
    let resumes = recording.sent("thread").is_some_and(|line| line["method"] == "thread/resume");
    let mut totals: BTreeMap<String, Value> = BTreeMap::new();
    let mut sum = Usage::default();
    for frame in recording.frames() {
        if frame["method"] != "thread/tokenUsage/updated" {
            continue;
        }
        sum.reported = Reported { tokens: true, cache: true, cost: false };
        let usage = &frame["params"]["tokenUsage"];
        let thread = frame["params"]["threadId"].as_str().expect("a conversation").to_owned();
        let before = totals.insert(thread, usage["total"].clone());
        let is_repeated = before.is_none() && resumes && !copies;
        if !is_repeated && before.as_ref() != Some(&usage["total"]) {
            let count = |field: &str| usage["last"][field].as_u64().expect("a count");
            sum += Usage {
                input: Tokens(count("inputTokens") - count("cachedInputTokens")),
                output: Tokens(count("outputTokens")),
                cache_read: Tokens(count("cachedInputTokens")),
                ..Usage::default()
            };
        }
    }
    sum
}

/// What we write is compared with what was written in the recordings: the same requests, in the same order and shape,
/// with other texts.
#[test]
fn our_requests_have_the_shape_of_the_recordings() {
    for recording in RECORDED.all().iter().filter(|recording| recording.name != "app_server") {
        let shapes = |lines: Vec<Value>| -> Vec<Value> {
            let mut lines = lines;
            // Sent beside a refusal with a message; the recorded refusals have none.
            lines.retain(|line| line["id"] != "refused-0");
            lines.iter().map(shape).collect()
        };
        let ours = shapes(written(&recording.play().0));
        assert_eq!(ours, shapes(recording.input()), "{}", recording.name);
    }
}

fn shape(value: &Value) -> Value {
    /// Parameters that depend on the settings.
    const SETTINGS: [&str; 3] = ["config", "model", "developerInstructions"];
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| !SETTINGS.contains(&name.as_str()));
            fields.map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => "text".into(),
        other => other.clone(),
    }
}
