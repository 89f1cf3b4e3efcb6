//! Every recording of the real CLI, read to its end.

use std::collections::BTreeMap;
use std::ops::Add;

use serde_json::Value;
use towline_agent::{Action, Pricing, Protocol, UnknownPrice, priced};
use towline_core::{AgentEvent, MicroUsd, PriceList, Tokens, Usage};

use super::support::{RECORDED, events, results, used, written};
use crate::recording::{Recording, Steering};

/// Two subagents: each has finished a message, and one has written the text of its next.
const INTERRUPTED: &str = "subagents_interrupted";

/// An interrupt inside the second message, in a new and an old version. The old one has also sent a request of its own,
/// which it does not show.
const CUT_OFF: [&str; 2] = ["message_cut_off", "message_cut_off_older"];

#[test]
fn the_sum_of_usage_is_what_the_cli_reports() {
    for recording in RECORDED.all() {
        let (actions, _) = recording.play();
        let counted = used(&actions);
        // A recording without a result, or with an empty one, used nothing: its requests all failed.
        let reported = all_results(&results(&recording)).filter(|used| !used.is_empty());
        let mut reported = reported.unwrap_or_default();
        if recording.name == INTERRUPTED {
            reported.input = reported.input + Tokens(1_000);
        }
        if CUT_OFF.contains(&recording.name.as_str()) {
            reported.input = Tokens(100_000);
            reported.output = reported.output.max(Tokens(101));
        }
        // Only the messages have the lifetime of the cache, and output that is estimated.
        let counted = Usage { cache_write_1h: Tokens(0), written: Tokens(0), ..counted };
        assert_eq!(counted, reported, "{}", recording.name);
    }
}

/// The usage of a process in all its results.
fn all_results(results: &[Value]) -> Option<Usage> {
    let growth = |result: &&Value| result["model_usage_since_last_result"].is_object();
    let increases = results.iter().filter(growth).map(reported_usage);
    increases.reduce(Add::add).or_else(|| results.last().map(reported_usage))
}

/// The usage of a process in its result: the totals, or the increase if that is there.
fn reported_usage(result: &Value) -> Usage {
    let growth = result["model_usage_since_last_result"].as_object();
    let models = growth.or(result["modelUsage"].as_object()).expect("usage by model");
    let cost = |model: &Value| model["costUSD"].as_f64().expect("a cost");
    let cost = if growth.is_some() {
        models.values().map(cost).sum()
    } else {
        result["total_cost_usd"].as_f64().expect("a cost")
    };
    let models: Vec<_> = models.values().collect();
    let sum = |field: &str| Tokens(models.iter().map(|model| model[field].as_u64().expect("a count")).sum());
    Usage {
        input: sum("inputTokens"),
        output: sum("outputTokens"),
        cache_read: sum("cacheReadInputTokens"),
        cache_write: sum("cacheCreationInputTokens"),
        cost: MicroUsd::from_dollars(cost).expect("an amount"),
        ..Usage::nothing()
    }
}

#[test]
fn the_input_is_closed_exactly_if_there_is_a_result() {
    for recording in RECORDED.all() {
        let closes = recording.play().0.contains(&Action::CloseStdin);
        assert_eq!(closes, !results(&recording).is_empty(), "{}", recording.name);
    }
}

/// What we write is compared with what was written in the recordings: the same requests, in the same order and shape,
/// with other names and prompts.
#[test]
fn our_first_requests_have_the_shape_of_the_recordings() {
    let mut compared = 0;
    for recording in RECORDED.all().iter().filter(|recording| !recording.input().is_empty()) {
        let ours: Vec<Value> = written(&recording.protocol().start());
        let mut theirs: Vec<Value> = recording.input().into_iter().take(2).collect();
        // The recordings were made without the text of subagents.
        theirs[0]["request"]["forwardSubagentText"] = true.into();
        assert_eq!(ours[0]["request"], theirs[0]["request"], "{}", recording.name);
        assert_eq!(shape(&without_id(&ours[1])), shape(&without_id(&theirs[1])), "{}", recording.name);
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} two-way recordings were found");
}

/// The CLI gives an id to messages without one.
fn without_id(message: &Value) -> Value {
    let mut message = message.clone();
    message.as_object_mut().expect("an object").remove("uuid");
    message
}

#[test]
fn answers_and_messages_are_written_as_in_the_recordings() {
    let mut compared = 0;
    for recording in RECORDED.all() {
        let talks = ["ask_user_question", "ask_two_questions", "tell_mid_turn", "tell_late"];
        if talks.contains(&recording.name.as_str()) {
            let ours = written(&recording.play().0);
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

fn usages(recording: &Recording, protocol: Box<dyn Protocol>) -> Vec<Usage> {
    let (actions, _) = recording.play_as(protocol, Steering::AsRecorded);
    let used = events(&actions).into_iter().filter_map(|event| match event {
        AgentEvent::Usage { used, .. } => Some(used),
        _ => None,
    });
    used.collect()
}

/// A conversation that resumes a session which used one message before.
fn resumed(recording: &Recording) -> Box<dyn Protocol> {
    let mut protocol = recording.protocol();
    protocol.used_before(Usage {
        input: Tokens(211),
        output: Tokens(20),
        cache_read: Tokens(50),
        cache_write: Tokens(1_000),
        cost: MicroUsd(7_454),
        ..Usage::default()
    });
    protocol
}

#[test]
fn the_earlier_usage_of_a_session_is_not_counted_again() {
    for (name, messages) in [("resume_growth_reported", 2), ("resume_session_totals", 1)] {
        let recording = RECORDED.named(name);
        let counted = usages(&recording, resumed(&recording))
            .into_iter()
            .fold(Usage::default(), |sum, used| sum + used);
        let wanted = Usage {
            input: Tokens(211 * messages),
            output: Tokens(20 * messages),
            cache_read: Tokens(50 * messages),
            cache_write: Tokens(1_000 * messages),
            cache_write_1h: Tokens(400 * messages),
            cost: MicroUsd(7_454 * messages),
            ..Usage::nothing()
        };
        assert_eq!(counted, wanted, "{name}");
    }
}

fn with_prices(protocol: Box<dyn Protocol>) -> Box<dyn Protocol> {
    let list = PriceList::with(&BTreeMap::new());
    priced(protocol, Pricing { list, unknown: UnknownPrice::Report }, None)
}

/// The estimate before the CLI's own figure came, and that figure.
fn estimated_and_reported(recording: &Recording) -> (u64, u64) {
    let is_resumed = recording.name.starts_with("resume_");
    let protocol = if is_resumed { resumed(recording) } else { recording.protocol() };
    let mut sum = Usage::default();
    let mut reached = 0;
    for used in usages(recording, with_prices(protocol)) {
        sum.record(used);
        reached = reached.max(sum.estimate.0);
    }
    assert!(!sum.spent().estimated, "the figure of the CLI replaces the estimate: {sum:?}");
    (reached, sum.cost.0)
}

#[test]
fn the_estimate_of_a_turn_is_what_the_cli_reports_at_its_end() {
    for name in ["resume_growth_reported", "resume_session_totals", "interrupted"] {
        let (estimated, reported) = estimated_and_reported(&RECORDED.named(name));
        // A fraction of a millionth counts as a whole one.
        assert!((reported..reported + 10).contains(&estimated), "{name}: {estimated} for {reported}");
    }
}

#[test]
fn a_turn_that_was_cut_off_is_charged_by_its_estimate() {
    let mut recording = RECORDED.named("resume_growth_reported");
    recording.lines.retain(|line| !line.contains(r#""type":"result""#));
    let mut sum = Usage::default();
    usages(&recording, with_prices(resumed(&recording))).into_iter().for_each(|used| sum.record(used));
    assert_eq!((sum.cost, sum.spent().estimated), (MicroUsd(0), true));
    assert!((14_908..14_918).contains(&sum.estimate.0), "{sum:?}");
}

/// What a recording used.
fn total(recording: &Recording) -> Usage {
    let mut sum = Usage::default();
    let used = usages(recording, with_prices(recording.protocol()));
    used.into_iter().for_each(|used| sum.record(used));
    sum
}

/// What a recording costs: the figure of the CLI, and the estimate beside it.
fn charged(recording: &Recording) -> (u64, u64) {
    let sum = total(recording);
    (sum.cost.0, sum.estimate.0)
}

#[test]
fn a_message_that_an_interrupt_cut_off_is_charged_beside_what_the_cli_reports() {
    // 1,000 tokens of input, and 300 bytes of text with the first token of output.
    let recording = RECORDED.named(INTERRUPTED);
    assert_eq!(charged(&recording), (25_300, 5_000 + 101 * 25));
    assert_eq!(total(&recording).written, Tokens(100));
}

#[test]
fn the_second_message_of_a_turn_is_charged_when_it_is_cut_off() {
    // 50,000 tokens of input, the first token of output, and a byte of text.
    let estimate = 150_000 + 2 * 15;
    assert_eq!(
        CUT_OFF.map(|name| charged(&RECORDED.named(name))),
        [(151_500, estimate), (151_725, estimate)]
    );
}

#[test]
fn subagents_in_the_background_are_charged_as_they_write_and_once() {
    let mut recording = RECORDED.named("subagents_in_background");
    assert_eq!((charged(&recording), total(&recording).written), ((75_300, 0), Tokens(0)));
    let results = recording.lines.iter().enumerate().filter(|(_, line)| line.contains(r#""type":"result""#));
    let results: Vec<usize> = results.map(|(at, _)| at).collect();
    recording.lines.truncate(results[1]);
    let (cost, estimate) = charged(&recording);
    assert_eq!(cost, 12_800);
    // Four messages, of which two call a tool.
    let texts = 4 * (5_000 + 101 * 25);
    assert!((texts + 500..texts + 2_000).contains(&estimate), "{estimate}");
    let written = total(&recording).written.0;
    assert!((420..480).contains(&written), "their output counts as tokens: {written}");
}
