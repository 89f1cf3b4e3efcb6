//! Prompts by their exact text: what is tested is what an agent reads.

use crate::fixtures::*;
use crate::{
    Checkout, Conversation, End, Event, Goal, GoalState, Prompt, Refusal, SessionId, SessionPlan, Verdict,
};

fn rendered(goal: &Goal, state: &GoalState, conversation: Conversation) -> String {
    Prompt::next(goal, state, conversation).render()
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
    let expected = "\
You are working unattended: nobody reads along, so decide what you can decide yourself and write in your last message \
what you assumed. What only a person can decide, ask by ending your turn with a message that is nothing but \
{\"towline\": \"ask\", \"question\": \"…\", \"options\": [\"…\"], \"default\": \"…\"} (options and default may be left \
out), or by writing the same object into the file that $TOWLINE_QUESTION_FILE names and ending your turn; you are \
called again with the answer. To wait for something slow, end with nothing but {\"towline\": \"sleep\", \
\"seconds\": 600, \"reason\": \"…\"}. Work only in the current directory. When \
you believe that the goal is reached, end your turn with a short summary. Then the checks are run on a clean checkout \
of everything you left that git does not ignore; if one fails, you will be given its output. Leave nothing running in \
the background.

# Goal

Make the tests pass.

# How it will be checked

- tests: `cargo test`
- lint: `cargo clippy -- -D warnings`";
    assert_eq!(rendered(&goal, &GoalState::new(&goal), Conversation::New), expected);
}

#[test]
fn without_a_briefing_the_first_prompt_begins_with_the_goal() {
    let expected = "\
# Goal

Make the tests pass.

# How it will be checked

- tests: `cargo test`";
    assert_eq!(rendered(&goal(), &GoalState::new(&goal()), Conversation::New), expected);
}

#[test]
fn a_goal_without_checks_is_described_as_it_is() {
    let goal = goal_without_checks();
    assert_eq!(rendered(&goal, &GoalState::new(&goal), Conversation::New), "# Goal\n\nMake the tests pass.");
}

#[test]
fn after_a_red_verdict_the_session_hears_what_failed_and_not_the_goal_again() {
    let checks =
        vec![check("tests", "cargo test"), check("lint", "cargo clippy"), check("docs", "mdbook test")];
    let goal = Goal { briefing: true, checks, ..goal() };
    let slow = crate::CheckResult {
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
fn a_check_that_did_not_exit_is_reported() {
    let result = crate::CheckResult { exit_code: None, ..red("tests", "killed") };
    let expected = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: it did not exit

```
killed
```";
    assert_eq!(prompt_after(goal(), verdict("t1", vec![result])), expected);
}

#[test]
fn a_check_that_is_no_command_is_described_with_the_evidence_there_is() {
    let untouched = crate::CheckKind::Untouched { paths: vec!["api/**".into()] };
    let kinds = [("api", untouched), ("commits", crate::CheckKind::Committed)];
    let checks = kinds.map(|(name, kind)| crate::Check { kind, ..check(name, "") }).to_vec();
    let failed = |name, problem: &str, evidence| crate::CheckResult {
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
fn evidence_with_fences_of_its_own_stays_inside_longer_ones() {
    let verdict = verdict("t1", vec![red("tests", "expected:\n````md\n```\nfn main() {}\n```\n````\n")]);
    let expected = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

`````
expected:
````md
```
fn main() {}
```
````
`````";
    assert_eq!(prompt_after(goal(), verdict), expected);
}

#[test]
fn restored_paths_are_named_after_the_failures() {
    let restored = vec!["tests/a.rs".to_owned(), "towline.toml".to_owned()];
    let verdict = Verdict { restored, ..verdict("t1", vec![red("tests", "1 failed")]) };
    let expected = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

```
1 failed
```

# Protected paths

These are protected and were put back as they were; changes to them do not count:
- tests/a.rs
- towline.toml";
    assert_eq!(prompt_after(goal(), verdict), expected);
}

#[test]
fn notes_on_a_verdict_follow_the_failures() {
    let notes = vec!["git ignores these files, so they are not part of the work: a.log".to_owned()];
    let verdict = Verdict { notes, ..verdict("t1", vec![red("tests", "")]) };
    let expected = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

# About the checks

- git ignores these files, so they are not part of the work: a.log";
    assert_eq!(prompt_after(goal(), verdict), expected);
}

#[test]
fn a_failed_confirmation_is_named_after_the_failures() {
    let verdict = Verdict { checkout: Checkout::WarmThenClean, ..verdict("t1", vec![red("tests", "")]) };
    let mut goal = goal();
    goal.workspace.warm = vec!["target".to_owned(), "web/node_modules".to_owned()];
    let expected = "\
# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

# Clean checkout

All checks passed in a checkout with build output of an earlier run (`target`, `web/node_modules`), and then failed in a clean \
one. Only the clean one counts: look for what the work needs and does not contain.";
    assert_eq!(prompt_after(goal, verdict), expected);
}

#[test]
fn a_cold_start_after_a_refused_resume_hears_everything() {
    let restored = vec!["tests/a.rs".to_owned()];
    let verdict = Verdict { restored, ..verdict("t1", vec![red("tests", "1 failed")]) };
    let mut story = after_verdict(goal(), verdict);
    story.receive(ended(End::ResumeRefused { why: Refusal::InUse }));
    let launch = story.go_on();
    assert_eq!(launch.session, SessionPlan::Fresh(fresh_session(3)));
    let expected = "\
# Goal

Make the tests pass.

# How it will be checked

- tests: `cargo test`

# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

```
1 failed
```

# Protected paths

These are protected and were put back as they were; changes to them do not count:
- tests/a.rs";
    assert_eq!(launch.prompt, expected);
}

#[test]
fn a_cold_start_after_an_interruption_hears_of_both_that_and_the_failures_before() {
    let mut story = after_verdict(goal(), verdict("t1", vec![red("tests", "1 failed")]));
    story.work_in("s1", true);
    story.receive(ended(crashed()));
    story.go_on();
    story.receive(ended(End::ResumeRefused { why: crate::Refusal::NotFound }));
    let expected = "\
# Goal

Make the tests pass.

# How it will be checked

- tests: `cargo test`

# Interrupted

The last turn did not come to its end (crashed). What you changed is still in the directory. Look at it, then go on.

# Checks that failed on your work

## tests

Command: `cargo test`
Result: exit code 101

```
1 failed
```";
    assert_eq!(story.go_on().prompt, expected);
}

#[test]
fn a_resumed_session_gets_the_same_failures_only_once() {
    let mut story = after_verdict(goal(), verdict("t1", vec![red("tests", "1 failed")]));
    story.work_in("s1", true);
    story.receive(ended(crashed()));
    let expected = "\
# Interrupted

The last turn did not come to its end (crashed). What you changed is still in the directory. Look at it, then go on.";
    assert_eq!(story.go_on().prompt, expected);
}

#[test]
fn a_session_that_accepted_no_prompt_gets_everything_when_it_is_resumed() {
    let mut story = Story::launched(goal());
    story.receive(session("s1", false));
    story.receive(ended(crashed()));
    let launch = story.go_on();
    assert_eq!(launch.session, SessionPlan::Resume(SessionId::new("s1")));
    assert_eq!(launch.prompt, rendered(&goal(), &GoalState::new(&goal()), Conversation::New));
}
