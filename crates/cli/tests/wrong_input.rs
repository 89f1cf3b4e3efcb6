//! Wrong input gets one clear error with the fix and exit code 2, and creates nothing.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use support::Desk;
use towline_testkit::hostile;

/// Runs towline and checks that it refused, created nothing, and printed all of `wanted`.
fn refused(desk: &Desk, args: &[&str], wanted: &[&str]) {
    let ran = desk.towline(args);
    assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
    for text in wanted {
        assert!(ran.stderr.contains(text), "{args:?}: no {text:?} in {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.stderr);
    assert_eq!(desk.state(), Vec::<String>::new(), "something was created");
    assert_eq!(desk.project.git(["branch", "--list", "towline/*"]), "");
}

#[test]
fn an_empty_prompt_is_refused() {
    let desk = Desk::with_script(hostile::well_behaved);
    refused(&desk, &["run", "  ", "--check", "true"], &["the prompt is empty", "towline run"]);
    // Standard input is empty, too.
    refused(&desk, &["run", "-", "--check", "true"], &["the prompt is empty"]);
    refused(&desk, &["run"], &["required"]);
}

#[test]
fn an_unknown_agent_is_refused_with_the_known_ones() {
    let desk = Desk::with_script(hostile::well_behaved);
    refused(&desk, &["run", "x", "--agent", "cluade"], &["unknown agent `cluade`", "did you mean `claude`?"]);
}

#[test]
fn a_budget_that_cannot_be_read_is_refused_with_how_to_write_one() {
    let desk = Desk::with_script(hostile::well_behaved);
    refused(&desk, &["run", "x", "--budget", "wall=soon"], &["soon", "wall=4h"]);
    refused(&desk, &["run", "x", "--budget", "money=5"], &["money", "use one of"]);
}

#[test]
fn a_default_agent_that_is_not_installed_is_skipped_with_a_note() {
    let desk = Desk::with_script(hostile::well_behaved);
    let agents = "[agents.missing]\nkind = \"claude\"\ncommand = [\"no-such-agent\"]\n";
    desk.agent_settings(&format!("{agents}[defaults]\nagents = [\"missing\", \"claude\"]"));
    refused(&desk, &["run", "x", "--agent", "missing"], &["`no-such-agent` was not found"]);
    let ran = desk.towline(["run", "x", "--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("agent `missing` is not installed, so it is skipped"), "{}", ran.stderr);
}

#[test]
fn a_command_that_no_help_lists_is_not_suggested() {
    let desk = Desk::new();
    refused(&desk, &["nope"], &["unrecognized subcommand 'nope'"]);
    let ran = desk.towline(["nope"]);
    assert!(!ran.stderr.contains("complete'"), "{}", ran.stderr);
    refused(&desk, &["attahc", "x"], &["attach"]);
    refused(&desk, &["ls", "-n", "0"], &["it must be at least 1"]);
}

#[test]
fn each_problem_of_the_configuration_is_an_error_of_its_own() {
    let desk = Desk::new();
    desk.configure("[defaults]\nagentz = 1\n[notfy]\nx = 1\n");
    let ran = desk.towline(["run", "x", "--check", "true"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 2, "{}", ran.stderr);
}

#[test]
fn words_of_other_programs_name_the_command_that_is_meant() {
    let desk = Desk::new();
    for (word, commands) in [("stop", ["cancel", "pause"]), ("status", ["ls", "show"])] {
        let ran = desk.towline([word, "1a2b"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(commands.iter().all(|command| ran.stderr.contains(command)), "{}", ran.stderr);
    }
}

#[test]
fn a_goal_that_is_not_there_is_not_found() {
    let desk = Desk::new();
    for command in ["show", "logs", "diff", "cancel", "retry"] {
        let ran = desk.towline([command, "abcdef"]);
        assert_eq!(ran.code, Some(5), "{command}: {ran:?}");
        assert!(ran.stderr.contains("there is no goal `abcdef`"), "{}", ran.stderr);
    }
    assert_eq!(desk.state(), Vec::<String>::new());
}
