//! Traps of single agents that take the real program and that no case is about.

use std::time::Duration;

use towline_testkit::model::{Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

use crate::stage::{PROMPT, Stage};
use crate::subjects::opencode;
use crate::support::{LIMIT, of_attempts};

/// Runs until the turn clock ends the only attempt, against a model whose every answer is this one.
fn assert_turn_clock_ends(answer: Reply) -> Stage {
    // Slowly, so that whoever asks again at once does not use up the machine.
    let answer = answer.slow(Duration::from_millis(50));
    let stage = Stage::with_model(opencode(), [Rule::always().reply(answer)]);
    let stage = stage.settings("turn_timeout = \"30s\"");
    let ran = stage.desk.towline(["run", PROMPT, "--check", "true", "--budget", "errors=1", "--json"]);
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["timed-out"], "{report}");
    assert_eq!(of_attempts(&report, "detail"), ["turn clock"], "{report}");
    assert!(stage.model.turns().len() > 1, "it did not ask again");
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
    stage
}

#[test]
fn opencode_that_goes_round_and_round_after_answers_that_end_early_is_ended_by_the_turn_clock() {
    let stage =
        assert_turn_clock_ends(Reply::text("This sentence will never come to its end.").ends_after(4));
    let answers = stage.model.turns().len();
    assert!(answers > 5, "it gave up after {answers} answers");
}

#[test]
fn opencode_that_is_interrupted_between_two_cut_answers_has_not_completed_its_turn() {
    assert_turn_clock_ends(Reply::text("This sentence will never come to its end.").cut_after(4));
}
