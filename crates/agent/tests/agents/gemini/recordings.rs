//! Every recording of the real CLI, read to its end.

use towline_core::Tokens;

use super::support::{RECORDED, results, used};

#[test]
fn the_sum_of_usage_is_what_the_cli_reports_with_the_reasoning() {
    for recording in RECORDED.all() {
        let (actions, _) = recording.play();
        let counted = used(&actions);
        let count = |field: &str| {
            let results = results(&recording);
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
