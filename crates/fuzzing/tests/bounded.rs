//! A bounded, repeatable number of damaged inputs for every target.

use towline_fuzzing::{Cases, TARGETS, run, target};

const SEED: u64 = 20_261_115;

fn bounded(name: &str, cases: u64) {
    let target = target(name).unwrap_or_else(|| panic!("no target {name}"));
    assert_eq!(run(target, SEED, Cases::Count(cases)).cases, cases);
}

/// One test for each target, so that they run side by side.
macro_rules! tests {
    ($($test:ident: $name:literal, $cases:literal;)+) => {
        const TESTED: &[&str] = &[$($name),+];
        $(#[test] fn $test() { bounded($name, $cases); })+
    };
}

tests! {
    whatever_claude_writes_is_no_panic_and_no_false_success: "claude", 1_500;
    whatever_codex_writes_is_no_panic_and_no_false_success: "codex", 1_500;
    whatever_an_acp_agent_writes_is_no_panic_and_no_false_success: "acp", 1_500;
    whatever_gemini_writes_is_no_panic_and_no_false_success: "gemini", 1_500;
    whatever_a_program_writes_is_no_panic_and_no_false_success: "command", 500;
    whatever_a_script_writes_is_no_panic_and_no_false_success: "script", 1_500;
    any_stream_is_cut_into_the_same_lines: "framer", 1_500;
    the_files_of_a_run_may_hold_anything: "logs", 500;
    any_configuration_is_read_or_refused: "config", 200;
    the_file_of_a_goal_is_read_or_refused: "goals", 500;
    any_words_are_read_or_refused: "words", 3_000;
}

#[test]
fn every_target_is_tested_here() {
    let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(all, TESTED);
}

#[test]
fn the_same_seed_gives_the_same_cases() {
    let target = target("words").unwrap_or_else(|| panic!("no such target"));
    let once = (0..50).map(|case| towline_fuzzing::run_case(target, 7, case));
    let again = (0..50).map(|case| towline_fuzzing::run_case(target, 7, case));
    assert!(once.eq(again));
    let ran = [7, 8].map(|seed| run(target, seed, Cases::Count(50)).bytes);
    assert_ne!(ran[0], ran[1], "another seed gives other cases");
}
