//! A bounded, repeatable number of damaged inputs for every target.

use std::thread;

use towline_agent::Kind;
use towline_fuzzing::{Cases, run, target, targets};

const SEED: u64 = 20_261_115;

fn bounded(name: &str, cases: u64) {
    let target = target(name).unwrap_or_else(|| panic!("no target {name}"));
    assert_eq!(run(&target, SEED, Cases::Count(cases)).cases, cases);
}

/// Side by side, because each takes its time.
#[test]
fn whatever_an_agent_writes_is_no_panic_and_no_false_success() {
    thread::scope(|scope| {
        for kind in Kind::ALL {
            let cases = if kind == Kind::Command { 500 } else { 1_500 };
            scope.spawn(move || bounded(kind.name(), cases));
        }
    });
}

/// One test for each target that is no agent, so that they run side by side.
macro_rules! tests {
    ($($test:ident: $name:literal, $cases:literal;)+) => {
        const TESTED: &[&str] = &[$($name),+];
        $(#[test] fn $test() { bounded($name, $cases); })+
    };
}

tests! {
    any_stream_is_cut_into_the_same_lines: "framer", 1_500;
    the_files_of_a_run_may_hold_anything: "logs", 500;
    any_configuration_is_read_or_refused: "config", 200;
    the_file_of_a_goal_is_read_or_refused: "goals", 500;
    any_words_are_read_or_refused: "words", 3_000;
}

#[test]
fn every_target_is_tested_here() {
    let tested: Vec<&str> = Kind::NAMES.iter().chain(TESTED).copied().collect();
    assert_eq!(targets().iter().map(|target| target.name).collect::<Vec<_>>(), tested);
}

#[test]
fn the_same_seed_gives_the_same_cases() {
    let target = target("words").unwrap_or_else(|| panic!("no such target"));
    let once = (0..50).map(|case| towline_fuzzing::input(&target, 7, case));
    let again = (0..50).map(|case| towline_fuzzing::input(&target, 7, case));
    assert!(once.eq(again));
    let ran = [7, 8].map(|seed| run(&target, seed, Cases::Count(50)).bytes);
    assert_ne!(ran[0], ran[1], "another seed gives other cases");
}
