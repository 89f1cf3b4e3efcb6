//! Traps of single agents that take the real program and that no case is about.

use std::time::Duration;

use towline_testkit::model::{Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

use crate::stage::{PROMPT, Stage};
use crate::subjects::opencode;
use crate::support::{LIMIT, of_attempts};

#[test]
fn opencode_that_goes_round_and_round_after_cut_streams_is_ended_by_the_turn_clock() {
    // Slowly, so that it does not use up the machine.
    let cut = Reply::text("This sentence will never come to its end.").cut_after(4);
    let cut = cut.slow(Duration::from_millis(50));
    let stage = Stage::with_model(opencode(), [Rule::always().reply(cut)]).settings("turn_timeout = \"30s\"");
    let ran = stage.desk.towline(["run", PROMPT, "--check", "true", "--budget", "errors=1", "--json"]);
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["timed-out"], "{report}");
    assert_eq!(of_attempts(&report, "detail"), ["turn clock"], "{report}");
    assert!(stage.model.turns().len() > 5, "it gave up after {} answers", stage.model.turns().len());
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
}
