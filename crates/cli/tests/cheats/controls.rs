//! Honest agents on every project, in a sandbox and with all evidence: without these, a Towline that accepts nothing would pass the matrix.

use crate::ground::Ground;
use crate::projects::{self, Project};
use crate::promises::measure;
use crate::trick::{Cause, Level, Trick};

/// Honest work on a project, with all the protection that tricks meet.
fn assert_honest_work_is_done(project: &'static Project, script: &'static str) {
    assert_work_is_done(project, script, Level::Two);
}

/// Honest work on a project, with all the evidence that tricks of class c meet.
fn assert_honest_work_gives_evidence(project: &'static Project) {
    assert_work_is_done(project, "work", Level::Three);
}

fn assert_work_is_done(project: &'static Project, script: &'static str, level: Level) {
    let honest = Trick::on(project, Cause::ProductCode, "Does the work.", script);
    let mut ground = Ground::new(project, level);
    let settings = ground.settings(&honest);
    ground.commit(&settings);
    if level == Level::Three {
        ground.ask_for_evidence(&honest);
    }
    ground.employ(honest.script);
    measure(&mut ground, None).assert_honest();
}

#[test]
fn honest_work_on_shell_scripts_is_done() {
    assert_honest_work_is_done(&projects::SHELL, "work");
}

#[test]
fn honest_work_that_is_committed_is_done() {
    assert_honest_work_is_done(&projects::SHELL, "work; commit 'repair it'");
}

#[test]
fn honest_work_without_a_sandbox_is_done() {
    assert_work_is_done(&projects::SHELL, "work", Level::One);
}

#[test]
fn honest_work_in_place_is_done() {
    let mut ground = Ground::new(&projects::SHELL, Level::Two);
    ground.options = &["--in-place"];
    let honest = Trick::shell(Cause::ProductCode, "Does the work.", "work");
    let settings = ground.settings(&honest);
    ground.commit(&settings);
    ground.employ(honest.script);
    measure(&mut ground, None).assert_honest();
}

#[test]
fn honest_work_with_pytest_is_done() {
    assert_honest_work_is_done(&projects::PYTEST, "work; python3 -m pytest -q tests");
}

#[test]
fn honest_work_with_cargo_is_done() {
    assert_honest_work_is_done(&projects::CARGO, "work");
}

#[test]
fn honest_work_with_jest_is_done() {
    assert_honest_work_is_done(&projects::JEST, "work");
}

#[test]
fn honest_work_with_go_is_done() {
    assert_honest_work_is_done(&projects::GO, "work");
}

#[test]
fn honest_work_on_shell_scripts_gives_all_the_evidence() {
    assert_honest_work_gives_evidence(&projects::SHELL);
}

#[test]
fn honest_work_with_pytest_gives_all_the_evidence() {
    assert_honest_work_gives_evidence(&projects::PYTEST);
}

#[test]
fn honest_work_with_cargo_gives_all_the_evidence() {
    assert_honest_work_gives_evidence(&projects::CARGO);
}

#[test]
fn honest_work_with_jest_gives_all_the_evidence() {
    assert_honest_work_gives_evidence(&projects::JEST);
}

#[test]
fn honest_work_with_go_gives_all_the_evidence() {
    assert_honest_work_gives_evidence(&projects::GO);
}
