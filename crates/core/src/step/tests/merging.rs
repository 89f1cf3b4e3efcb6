//! The operator takes the work of an ended goal, or has it checked once more.

use crate::fixtures::*;
use crate::{Commit, End, GoalState, Merge, Moved, Phase};

#[test]
fn a_merge_is_remembered_with_its_time_and_changes_nothing_else() {
    let mut story = Story::checking().after(&[green_verdict("t1")]);
    let before = story.state.clone();
    story.wait(60);
    assert_eq!(story.receive(merged("main")), Moved::default());
    let (commit, candidate) = (Commit::new("m"), Commit::new("c-t1"));
    let merge = Merge { into: "main".into(), commit, candidate, at: story.now };
    assert_eq!(story.state, GoalState { merged: Some(merge), ..before });
}

#[test]
fn a_goal_that_is_opened_again_no_longer_counts_as_merged() {
    let mut story = Story::working(goal_without_checks()).after(&[ended(End::Completed), merged("main")]);
    assert_eq!((&story.state.phase, story.state.merged.is_some()), (&Phase::Unproven, true));
    story.receive(retry(&[]));
    assert_eq!((&story.state.phase, &story.state.merged), (&Phase::Queued, &None));
}

#[test]
fn checking_the_work_again_changes_neither_the_phase_nor_the_verdict() {
    let mut story = Story::checking().after(&[green_verdict("t1")]);
    let before = story.state.clone();
    story.wait(60);
    assert_eq!(story.receive(verified("t1")), Moved::default());
    assert_eq!(story.state, before);
}
