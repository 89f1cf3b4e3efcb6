//! Prompts by their exact text: what is tested is what an agent reads.

use super::{BRIEFING, Conversation, next_prompt};
use crate::fixtures::*;
use crate::{
    Check, CheckKind, CheckResult, Checkout, End, Event, Goal, GoalState, Refusal, SessionId, SessionPlan,
    Verdict, Visibility,
};

/// The beginning of each prompt after the only check has failed.
const FAILED: &str = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101";

/// What the check printed, as it follows [`FAILED`].
const EVIDENCE: &str = "\n\n```\n1 failed\n```";

const GOAL: &str = "\
# Goal

Make the tests pass.

# How it will be checked

- tests: `cargo test`";

const INTERRUPTED: &str = "\
# Interrupted

The last turn did not come to its end (crashed). What you changed is still in the directory. Look at it, then go on.";

fn first_prompt(goal: &Goal) -> String {
    next_prompt(goal, &GoalState::new(goal), Conversation::New)
}

/// A goal whose only attempt worked and met this verdict.
fn after_verdict(goal: Goal, verdict: Verdict) -> Story {
    Story::working(goal).after(&[ended(End::Completed), Event::VerdictReached { verdict }])
}

/// The prompt of the attempt after this verdict, in the same session.
fn prompt_after(goal: Goal, verdict: Verdict) -> String {
    let mut story = Story::working(goal).after(&[ended(End::Completed)]);
    let launch = launch_of(story.receive(Event::VerdictReached { verdict }));
    assert_eq!(launch.session, SessionPlan::Resume(SessionId::new("s1")));
    launch.prompt
}

#[test]
fn the_first_prompt_is_briefing_goal_and_checks() {
    let checks = vec![check("tests", "cargo test"), check("lint", "cargo clippy -- -D warnings")];
    let goal = Goal { briefing: true, checks, ..goal() };
    let expected = format!("{BRIEFING}\n\n{GOAL}\n- lint: `cargo clippy -- -D warnings`");
    assert_eq!(first_prompt(&goal), expected);
}

#[test]
fn without_a_briefing_the_first_prompt_begins_with_the_goal_and_lists_the_checks_there_are() {
    assert_eq!(first_prompt(&goal()), GOAL);
    assert_eq!(first_prompt(&goal_without_checks()), "# Goal\n\nMake the tests pass.");
}

#[test]
fn after_a_red_verdict_the_session_hears_what_failed_and_not_the_goal_again() {
    let checks =
        vec![check("tests", "cargo test"), check("lint", "cargo clippy"), check("docs", "mdbook test")];
    let goal = Goal { briefing: true, checks, ..goal() };
    let slow = CheckResult {
        exit_code: None,
        problem: Some("it took longer than 60s".into()),
        ..red("docs", "building…\n\n")
    };
    let verdict = verdict("t1", vec![red("tests", "a failed\nb failed\n"), green("lint"), slow]);
    let expected = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

```
a failed
b failed
```

## docs

Command: `mdbook test`
Result: it took longer than 60s

```
building…
```";
    assert_eq!(prompt_after(goal, verdict), expected);
}

#[test]
fn a_check_that_is_no_command_is_described_with_the_evidence_there_is() {
    let untouched = CheckKind::Untouched { paths: vec!["api/**".into()] };
    let kinds = [("api", untouched), ("commits", CheckKind::Committed)];
    let checks = kinds.map(|(name, kind)| Check { kind, ..check(name, "") }).to_vec();
    let failed = |name, problem: &str, evidence| CheckResult {
        exit_code: None,
        problem: Some(problem.into()),
        ..red(name, evidence)
    };
    let results = vec![
        failed("api", "1 path is changed", "added: api/b\n"),
        failed("commits", "there is no new commit", ""),
    ];
    let expected = "\
# Checks that failed on your work

## api

Wanted: nothing is changed, added or deleted under `api/**`
Result: 1 path is changed

```
added: api/b
```

## commits

Wanted: all work is committed with git, in at least one new commit; nothing is left modified or untracked
Result: there is no new commit";
    assert_eq!(prompt_after(Goal { checks, ..goal() }, verdict("t1", results)), expected);
}

#[test]
fn what_explains_a_verdict_follows_the_failures() {
    let verdict = |evidence| verdict("t1", vec![red("tests", evidence)]);
    let unended = CheckResult { exit_code: None, ..red("tests", "killed") };
    let restored = vec!["tests/a.rs".to_owned(), "towline.toml".to_owned()];
    let notes = vec!["git ignores these files, so they are not part of the work: a.log".to_owned()];
    for (verdict, expected) in [
        // A fence is longer than any in the evidence.
        (
            verdict("expected:\n````md\n```\nfn main() {}\n```\n````\n"),
            format!("{FAILED}\n\n`````\nexpected:\n````md\n```\nfn main() {{}}\n```\n````\n`````"),
        ),
        (
            Verdict { checks: vec![unended], ..verdict("") },
            format!("{}\n\n```\nkilled\n```", FAILED.replace("exit code 101", "it did not exit")),
        ),
        (
            Verdict { restored, ..verdict("1 failed") },
            format!(
                "{FAILED}{EVIDENCE}\n\n# Protected paths\n\nThese are protected and were put back as they were; changes \
                 to them do not count:\n- tests/a.rs\n- towline.toml"
            ),
        ),
        (
            Verdict { notes, ..verdict("") },
            format!(
                "{FAILED}\n\n# About the checks\n\n- git ignores these files, so they are not part of the work: a.log"
            ),
        ),
        (
            Verdict { checkout: Checkout::WarmThenClean, ..verdict("") },
            format!(
                "{FAILED}\n\n# Clean checkout\n\nAll checks passed in a checkout with build output of an earlier run \
                 (`target`, `web/node_modules`), and then failed in a clean one. Only the clean one counts: look for what \
                 the work needs and does not contain."
            ),
        ),
    ] {
        let mut goal = goal();
        goal.workspace.warm = vec!["target".to_owned(), "web/node_modules".to_owned()];
        assert_eq!(prompt_after(goal, verdict), expected);
    }
}

#[test]
fn a_cold_start_after_a_refused_resume_hears_everything() {
    let restored = vec!["tests/a.rs".to_owned()];
    let verdict = Verdict { restored, ..verdict("t1", vec![red("tests", "1 failed")]) };
    let mut story = after_verdict(goal(), verdict);
    story.receive(ended(End::ResumeRefused { why: Refusal::InUse }));
    let launch = story.go_on();
    assert_eq!(launch.session, SessionPlan::Fresh(fresh_session(3)));
    let restored = "# Protected paths\n\nThese are protected and were put back as they were; changes to them do not \
                    count:\n- tests/a.rs";
    assert_eq!(launch.prompt, format!("{GOAL}\n\n{FAILED}{EVIDENCE}\n\n{restored}"));
}

#[test]
fn a_resumed_session_gets_the_same_failures_only_once_and_a_cold_start_after_an_interruption_again() {
    let mut story = after_verdict(goal(), verdict("t1", vec![red("tests", "1 failed")]));
    story.work_in("s1", true);
    story.receive(ended(crashed()));
    assert_eq!(story.go_on().prompt, INTERRUPTED);
    story.receive(ended(End::ResumeRefused { why: Refusal::NotFound }));
    assert_eq!(story.go_on().prompt, format!("{GOAL}\n\n{INTERRUPTED}\n\n{FAILED}{EVIDENCE}"));
}

#[test]
fn a_session_that_accepted_no_prompt_gets_everything_when_it_is_resumed() {
    let mut story = Story::launched(goal());
    story.receive(session("s1", false));
    story.receive(ended(crashed()));
    let launch = story.go_on();
    assert_eq!(launch.session, SessionPlan::Resume(SessionId::new("s1")));
    assert_eq!(launch.prompt, first_prompt(&goal()));
}

#[test]
fn the_briefing_shows_requests_that_are_understood() {
    let examples: Vec<&str> =
        BRIEFING.match_indices("{\"towline\"").map(|(from, _)| &BRIEFING[from..]).collect();
    let read = |text: &str| {
        let end = text.find('}').expect("an object");
        crate::LastWords::read(&text[..=end]).expect("a request").expect("it is understood")
    };
    assert!(matches!(read(examples[0]), crate::LastWords::Ask(ask) if ask.default.as_deref() == Some("…")));
    assert!(matches!(read(examples[1]), crate::LastWords::Sleep { .. }));
    assert_eq!(examples.len(), 2);
}

#[test]
fn nothing_of_a_hidden_check_but_its_name_is_in_a_prompt() {
    for hidden in [Visibility::Hidden, Visibility::BestEffort] {
        let secret = Check {
            hidden,
            files: vec!["~/secret-files".into()],
            ..check("acceptance", "secret-command --all")
        };
        let goal = Goal { checks: vec![check("tests", "cargo test"), secret], ..goal() };
        assert_eq!(first_prompt(&goal), format!("{GOAL}\n- acceptance: hidden"));

        let failed = CheckResult {
            problem: Some("secret problem".into()),
            exit_code: Some(77),
            ..red("acceptance", "secret output")
        };
        let integrity = CheckResult {
            exit_code: None,
            problem: Some("files that are judged were changed by the check `acceptance`".into()),
            ..red("integrity", "changed: secret path")
        };
        let notes = vec!["a secret note about `acceptance`".to_owned(), "an open note".to_owned()];
        let verdict = Verdict { notes, ..verdict("t1", vec![red("tests", "1 failed"), failed, integrity]) };
        let expected = format!(
            "{FAILED}{EVIDENCE}\n\n## acceptance\n\nThis check is hidden. Result: it failed\n\n## integrity\n\nResult: \
             files that are judged were changed by the check `acceptance`\n\n# About the checks\n\n- an open note"
        );
        assert_eq!(prompt_after(goal.clone(), verdict.clone()), expected);
        let mut story = after_verdict(goal, verdict);
        story.receive(ended(End::ResumeRefused { why: Refusal::NotFound }));
        let cold = story.go_on().prompt;
        assert!(cold.contains("acceptance: hidden") && !cold.contains("secret"), "{cold}");
    }
}
