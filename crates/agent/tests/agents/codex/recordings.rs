//! Every recording of the real app server, read to its end.

use std::collections::BTreeMap;

use serde_json::Value;
use towline_core::{Tokens, Usage};

use super::support::{RECORDED, events, used, written};
use crate::recording::{Recording, Steering};

/// Whoever takes over a conversation has the log of what the agent wrote, and must come to know the same from it.
#[test]
fn what_is_told_does_not_depend_on_what_the_operator_said() {
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
        assert_eq!(counted, used_by(&recording), "{}", recording.name);
    }
}

/// The sum of what single requests used: those after which a total has changed, without what it was at the beginning.
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

/// What we write is compared with what was written when the recordings were made: the same requests, in the same order
/// and shape, with other words.
#[test]
fn what_we_write_has_the_shape_that_the_app_server_was_recorded_with() {
    for recording in RECORDED.all().iter().filter(|recording| recording.name != "app_server") {
        let shapes = |lines: Vec<Value>| -> Vec<Value> {
            let mut lines = lines;
            // Said beside a refusal: only in the place of words, which the recorded refusals have none of.
            lines.retain(|line| line["id"] != "refused-0");
            lines.iter().map(shape).collect()
        };
        let ours = shapes(written(&recording.play().0));
        assert_eq!(ours, shapes(recording.input()), "{}", recording.name);
    }
}

fn shape(value: &Value) -> Value {
    /// What differs from setting to setting.
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
