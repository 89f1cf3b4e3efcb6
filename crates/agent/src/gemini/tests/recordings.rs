//! Every recording of the real CLI, read to its end.

use towline_core::{AgentEvent, Tokens, Usage};

use super::support::{Recording, events, readable};

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
        let is_unknown = |event: &AgentEvent| matches!(event, AgentEvent::Unrecognised { .. });
        assert!(!events(&actions).iter().any(is_unknown), "{}", recording.name);
    }
}

#[test]
fn the_sum_of_usage_is_what_the_cli_reports_with_the_reasoning() {
    for recording in Recording::all() {
        let (actions, _) = recording.play();
        let counted = events(&actions).into_iter().fold(Usage::default(), |sum, event| match event {
            AgentEvent::Usage { used, .. } => sum + used,
            _ => sum,
        });
        let count = |field: &str| {
            let results = recording.results();
            Tokens(results.last().map_or(0, |result| result["stats"][field].as_u64().expect("a count")))
        };
        let all = Tokens(counted.input.0 + counted.cache_read.0 + counted.output.0);
        assert_eq!(all, count("total_tokens"), "{}", recording.name);
        assert_eq!(
            (counted.input, counted.cache_read),
            (count("input"), count("cached")),
            "{}",
            recording.name
        );
    }
}
