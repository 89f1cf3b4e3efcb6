//! What follows each way in which an attempt can end by itself.

use std::time::Duration;

use super::each::some_of_each;
use crate::fixtures::*;
use crate::{
    End, EscalationReason, Event, Follows, Goal, LaunchProblem, Moved, Phase, Policy, Refusal, SessionPlan,
    Timeout,
};

/// After one bad ending before it: the phase that follows, whether the attempt counts, the bad endings in a row
/// then, and whether the session is preserved. First for an attempt that had a session, then for one that had none.
const TABLE: &str = "\
end               with a session           | without one
completed         checking  counts  0 kept | checking  counts  0
asked             queued    counts  0 kept | queued    counts  0
slept             sleeping  counts  0 kept | sleeping  counts  0
rate_limited      limited   free    1 kept | limited   free    1
server_error      sleeping  free    1 kept | sleeping  free    1
auth              escalated free    1 kept | escalated free    1
context_overflow  sleeping  counts  2 kept | sleeping  counts  2
resume_refused    sleeping  free    2 lost | sleeping  free    2
max_turns         checking  counts  2 kept | checking  counts  2
max_budget        checking  counts  2 kept | checking  counts  2
declined          escalated counts  1 kept | escalated counts  1
permission_denied checking  counts  1 kept | checking  counts  1
timed_out         sleeping  counts  2 kept | sleeping  free    2
crashed           sleeping  counts  2 kept | sleeping  free    2
lost              sleeping  free    2 kept | sleeping  free    2
spawn_failed      escalated free    1 kept | escalated free    1
cancelled         sleeping  counts  2 kept | sleeping  counts  2
over_budget       sleeping  counts  2 kept | sleeping  counts  2
interrupted       paused    free    1 kept | paused    free    1
refused           sleeping  counts  2 kept | sleeping  counts  2
output_limit      escalated counts  1 kept | escalated counts  1
";

some_of_each! { ends: End, by End of |end| end => {
    End::Completed => End::Completed;
    End::Asked => End::Asked;
    End::Slept { .. } => End::Slept { duration: Duration::from_secs(60), reason: "CI".into() };
    End::RateLimited { .. } => End::RateLimited { until: None };
    End::ServerError { .. } => End::ServerError { status: Some(529), message: "overloaded".into() };
    End::Auth { .. } => End::Auth { message: "not logged in".into() };
    End::ContextOverflow => End::ContextOverflow;
    End::ResumeRefused { .. } => End::ResumeRefused { why: Refusal::NotFound };
    End::MaxTurns => End::MaxTurns;
    End::MaxBudget => End::MaxBudget;
    End::Declined { .. } => End::Declined { message: "I will not".into() };
    End::PermissionDenied { .. } => End::PermissionDenied { tool: "Bash".into(), rule: "Bash(rm *)".into() };
    End::TimedOut { .. } => End::TimedOut { timeout: Timeout::Startup };
    End::Crashed { .. } => crashed();
    End::Lost => End::Lost;
    End::SpawnFailed { .. } => End::SpawnFailed { problem: LaunchProblem::NotFound { program: "claude".into() } };
    End::Cancelled => End::Cancelled;
    End::OverBudget => End::OverBudget;
    End::Interrupted => End::Interrupted;
    End::Refused { .. } => refused();
    End::OutputLimit => End::OutputLimit;
}}

fn after(mut story: Story, end: End) -> String {
    story.state.errors_in_row = 1;
    story.receive(ended(end.clone()));
    assert_eq!(story.last().end, Some(end), "the end is recorded as it was found");
    let counts = if story.last().counts { "counts" } else { "free" };
    format!("{:<9} {counts:<7} {}", story.state.phase.name(), story.state.errors_in_row)
}

#[test]
fn every_end_of_an_attempt_is_decided() {
    let mut found = "end               with a session           | without one\n".to_owned();
    for end in ends() {
        let mut with = Story::working(goal());
        let session = after(with.clone(), end.clone());
        with.receive(ended(end.clone()));
        let session_after = if with.state.session.is_some() { "kept" } else { "lost" };
        let without = after(Story::launched(goal()), end.clone());
        found += &format!("{:<17} {session} {session_after} | {without}\n", end.name());
    }
    assert_eq!(found, TABLE, "\nfound:\n{found}\nexpected:\n{TABLE}");
}

/// Of an agent that is alone. Whoever ends a goal by an order or a budget does so while it is being stopped.
#[test]
fn what_the_table_of_ends_lists_is_what_follows() {
    for end in ends() {
        let mut story = Story::working(goal());
        story.receive(ended(end.clone()));
        let phase = story.state.phase.name();
        let wanted = match end.kind().class().follows {
            Follows::Checks | Follows::ChecksThenGoesOn | Follows::ChecksThenPerson => "checking",
            Follows::WaitsForAnswer => "queued",
            Follows::RetriesAtOnce => "running",
            Follows::WaitsForQuota => "limited",
            Follows::Sleeps
            | Follows::Retries
            | Follows::WaitsForProvider
            | Follows::RetriesThenBeginsAnew
            | Follows::Compacts
            | Follows::BeginsAnew => "sleeping",
            Follows::HandsOver | Follows::NeedsPerson => "escalated",
            Follows::Pauses => "paused",
            Follows::EndsGoal => continue,
        };
        assert_eq!(phase, wanted, "{}", end.name());
        let begins_anew = end.kind().class().follows == Follows::BeginsAnew;
        assert_eq!(story.state.session.is_none(), begins_anew, "{}", end.name());
    }
}

#[test]
fn an_end_hands_over_where_the_table_of_ends_lists_it() {
    for end in ends().into_iter().filter(|end| end.kind().class().follows != Follows::EndsGoal) {
        let mut story = Story::of_two_agents();
        story.receive(ended(end.clone()));
        let hands_over = !story.state.unavailable.is_empty();
        let listed = matches!(end.kind().class().follows, Follows::HandsOver | Follows::WaitsForQuota);
        assert_eq!(hands_over, listed, "{}", end.name());
    }
}

#[test]
fn a_limit_with_a_known_reset_waits_for_it_and_costs_no_attempt() {
    let mut story = Story::working(goal());
    let moved = story.receive(ended(End::RateLimited { until: Some(at(3_600)) }));
    assert_eq!(moved, moved_to(Phase::Limited { until: at(3_600), guessed: false }, &["launch/1"]));
    assert_eq!(story.last().limit_until, Some(at(3_600)));
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (0, 0));
}

#[test]
fn the_time_of_a_limit_without_a_believable_reset_is_a_guess() {
    for until in [None, Some(at(-1)), Some(at(86_400 * 365 * 56))] {
        let mut story = Story::working(goal());
        let moved = story.receive(ended(End::RateLimited { until }));
        assert_eq!(moved, moved_to(Phase::Limited { until: at(60), guessed: true }, &["launch/1"]));
        assert_eq!((story.last().limit_until, story.state.attempts_spent()), (Some(at(60)), 0));
    }
}

#[test]
fn after_a_limit_the_session_goes_on() {
    let mut story = Story::limited();
    let launch = story.go_on();
    assert_eq!(story.now, at(3_600));
    assert_eq!(launch.session, resumed());
    assert!(launch.prompt.starts_with("# Interrupted"), "{}", launch.prompt);
}

#[test]
fn three_attempts_in_a_row_that_die_before_a_session_escalate_and_none_counts() {
    let mut story = Story::launched(goal());
    for pause in [2, 4] {
        let until = story.now + Duration::from_secs(pause);
        let n = story.last().n;
        let reason = "the agent ended badly: crashed".to_owned();
        let expected = moved_to(Phase::Sleeping { until, reason }, &[&format!("launch/{n}")]);
        assert_eq!(story.receive(ended(crashed())), expected);
        story.go_on();
    }
    let reason = EscalationReason::NeverStarted { message: "exit code 1".into() };
    assert_eq!(story.receive(ended(crashed())), moved_to(Phase::Escalated { reason }, &["launch/3"]));
    assert_eq!((story.state.attempts.len(), story.state.attempts_spent()), (3, 0));
}

#[test]
fn a_session_ends_the_row_of_failed_starts() {
    let mut story = Story::launched(goal());
    for _ in 1..Policy::FAILED_STARTS {
        story.receive(ended(crashed()));
        story.go_on();
    }
    story.work_in("s1", false);
    assert_eq!(story.state.failed_starts_in_row, 0);
    story.receive(ended(crashed()));
    assert_eq!((story.state.phase.name(), story.state.attempts_spent()), ("sleeping", 1));
}

#[test]
fn a_start_that_failed_is_tried_again_with_the_same_prompt_in_another_session() {
    let mut first = Story::preparing(goal());
    let launched = launch_of(first.receive(prepared()));
    first.receive(ended(crashed()));
    let again = first.go_on();
    assert_eq!(again.prompt, launched.prompt);
    assert_eq!(again.session, SessionPlan::Fresh(fresh_session(2)));
    assert_ne!(again.session, launched.session);
}

#[test]
fn failures_that_the_agent_missed_in_a_crash_are_in_the_next_prompt() {
    let mut story = Story::checking();
    let before = launch_of(story.receive(red_verdict("t1")));
    story.receive(ended(crashed()));
    let again = story.go_on();
    assert_eq!((again.session, again.prompt), (before.session, before.prompt));
}

#[test]
fn a_crash_at_work_counts_and_the_session_goes_on_after_a_pause() {
    let mut story = Story::working(goal());
    let moved = story.receive(ended(crashed()));
    let reason = "the agent ended badly: crashed".to_owned();
    assert_eq!(moved, moved_to(Phase::Sleeping { until: at(2), reason }, &["launch/1"]));
    assert_eq!(story.state.attempts_spent(), 1);
    let launch = story.go_on();
    assert_eq!(launch.session, resumed());
    let prompt = "# Interrupted\n\nThe last turn did not come to its end (crashed). What you changed is still in the \
                  directory. Look at it, then go on.";
    assert_eq!(launch.prompt, prompt);
}

#[test]
fn an_agents_own_cap_on_a_goal_without_checks_goes_on_at_once() {
    let mut story = Story::working(goal_without_checks());
    let moved = story.receive(ended(End::MaxTurns));
    assert_eq!(moved.events, [now_in(Phase::Running { attempt: no(2) })]);
    assert_eq!(moved.settled, keys(&["launch/1"]));
    let launch = launch_of(moved);
    assert_eq!(launch.session, resumed());
    assert_prompt(&launch.prompt, &["did not come to its end (own limit of turns reached)"], &[]);
}

#[test]
fn what_only_a_person_can_put_right_is_reported_in_its_own_words_before_and_between_attempts() {
    let gone = || EscalationReason::RepositoryGone { path: "/src/shop".into() };
    let no_repository = LaunchProblem::NoRepository { path: "/src/shop".into() };
    let error = || "towline.toml:3: unknown key `agnet`".to_owned();
    let broken = || EscalationReason::Configuration { error: error() };
    let unusable = LaunchProblem::Configuration { message: error() };
    let not_found = LaunchProblem::NotFound { program: "claude".into() };
    let problem = "`claude` was not found; install it, or set `command` of the agent".to_owned();
    let never_started = EscalationReason::SpawnFailed { problem };
    let spawn_failed = |problem| ended(End::SpawnFailed { problem });
    let message = || "words of the agent".to_owned();
    let refused = EscalationReason::Auth { agent: "claude".into(), message: message() };
    let declined = EscalationReason::Declined { message: message() };
    let not_checked = EscalationReason::ChecksFailed { error: "no space".into() };
    let without_agent = Story::preparing(Goal { agents: vec![], ..goal() });
    let working = || Story::working(goal());
    // No other agent could work, either.
    let of_two = || Story::launched(Story::of_two_agents().goal);
    for (mut story, event, reason, settled, spent) in [
        (Story::preparing(goal()), repository_gone(), gone(), "prepare/1", 0),
        (of_two(), spawn_failed(no_repository), gone(), "launch/1", 0),
        (Story::preparing(goal()), unconfigured(), broken(), "prepare/1", 0),
        (of_two(), spawn_failed(unusable), broken(), "launch/1", 0),
        (without_agent, prepared(), EscalationReason::NoAgent, "prepare/1", 0),
        (Story::launched(goal()), spawn_failed(not_found), never_started, "launch/1", 0),
        (working(), ended(End::Auth { message: message() }), refused, "launch/1", 0),
        (working(), ended(End::Declined { message: message() }), declined, "launch/1", 1),
        (Story::checking(), Event::ChecksFailed { error: "no space".into() }, not_checked, "checks/1", 1),
    ] {
        assert_eq!(story.receive(event), moved_to(Phase::Escalated { reason }, &[settled]));
        assert_eq!(story.state.attempts_spent(), spent);
    }
}

#[test]
fn the_pause_grows_with_each_bad_ending_and_a_good_one_ends_the_row() {
    let mut story = Story::working(goal());
    for pause in [2, 4, 8] {
        let before = story.now;
        story.receive(ended(End::ServerError { status: Some(500), message: String::new() }));
        assert_eq!(story.state.phase.until(), Some(before + Duration::from_secs(pause)));
        story.go_on();
        story.work_in("s1", true);
    }
    story.receive(ended(End::Completed));
    assert_eq!(story.state.errors_in_row, 0);
}

#[test]
fn goals_that_wait_for_the_same_reset_come_back_after_it_and_each_at_its_own_time() {
    let limited = Story::limited().state;
    let until = limited.phase.until().expect("a reset");
    let goals = ["01932f6e-7c00-7abc-8def-0123456789ab", "01932f6e-7c00-7abc-8def-0123456789ac"];
    let [one, other] = goals.map(|id| limited.wakes_at(id.parse().expect("a goal id")).expect("a time"));
    assert!(one > until && other > until && one != other, "{until} {one} {other}");
    assert!(one.max(other) <= until + Duration::from_secs(30), "{until} {one} {other}");
    // What a person was promised holds to the second.
    let urgent = crate::Ask { patience: Some(Duration::from_secs(60)), ..ask() };
    let blocked = Story::working(goal()).after(&[asked(urgent), ended(End::Completed)]).state;
    assert_eq!(blocked.wakes_at(goal().id), Some(at(60)));
}

#[test]
fn time_in_the_queue_costs_no_attempt_and_makes_no_pause_longer() {
    let after_waiting_for_a_slot = |seconds: u64| {
        let mut story = Story::sleeping();
        story.now = story.state.phase.until().expect("a pause");
        story.receive(Event::Woken);
        assert_eq!(story.state.phase, Phase::Queued);
        story.wait(seconds);
        story.receive(dispatched());
        story.work_in("s1", true);
        story.receive(ended(crashed()));
        let pause = story.state.phase.until().expect("a pause").duration_since(story.now);
        (pause, story.state.attempts_spent(), story.state.errors_in_row, story.state.failed_starts_in_row)
    };
    assert_eq!(after_waiting_for_a_slot(3_600), after_waiting_for_a_slot(0));
    assert_eq!(after_waiting_for_a_slot(0).1, 2);
}

#[test]
fn an_overflowing_conversation_is_summarised_twice_and_then_left_for_one_that_hears_everything() {
    let mut story = Story::checking();
    let first = launch_of(story.receive(red_verdict("t1")));
    assert_eq!(first.compact, None);
    story.work_in("s1", true);
    for _ in 0..Policy::COMPACTIONS_AFTER_OVERFLOW {
        story.receive(ended(End::ContextOverflow));
        let again = story.go_on();
        story.work_in("s1", true);
        assert_eq!(again.compact.as_deref(), Some(Policy::COMPACTION_FOCUS));
        assert_eq!((again.session, again.prompt), (first.session.clone(), first.prompt.clone()));
    }
    story.receive(ended(End::ContextOverflow));
    let fresh = story.go_on();
    assert_eq!((fresh.session, fresh.compact), (SessionPlan::Fresh(fresh_session(5)), None));
    assert_prompt(&fresh.prompt, &["# Goal", "# Checks that failed"], &[]);
}

#[test]
fn work_that_survived_a_bad_end_is_checked_before_anything_else_follows() {
    let mut story = Story::working(goal());
    let checking =
        Moved { effects: vec![run_checks(1)], ..moved_to(Phase::Checking { attempt: no(1) }, &["launch/1"]) };
    assert_eq!(story.receive(ended_with_work(crashed())), checking);
    assert_eq!(story.state.errors_in_row, 0);

    // Proven, it is done, whatever the agent died of.
    assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1"]));

    // Not proven, the end has its usual consequence, and the agent hears of both.
    let reason = "the agent ended badly: crashed".to_owned();
    let until = story.now + Duration::from_secs(2);
    assert_eq!(story.receive(red_verdict("t1")), moved_to(Phase::Sleeping { until, reason }, &["checks/1"]));
    let launch = story.go_on();
    assert_prompt(&launch.prompt, &["# Interrupted", "# Checks that failed"], &[]);
    assert_eq!(launch.session, resumed());
}

#[test]
fn every_end_has_the_same_consequence_once_the_work_it_left_is_found_wanting() {
    // Two ends are Towline's own: their work is checked when the goal goes on.
    let is_own = |end: &End| matches!(end, End::OverBudget | End::Interrupted);
    let announced = End::RateLimited { until: Some(at(3_600)) };
    for end in ends().into_iter().chain([announced]).filter(|end| end.is_bad() && !is_own(end)) {
        for before in [Story::working(goal()), Story::launched(goal())] {
            let mut story = before.clone();
            story.receive(ended_with_work(end.clone()));
            assert_eq!(story.state.phase, Phase::Checking { attempt: no(1) }, "{end:?}");
            story.receive(red_verdict("t1"));
            // An agent that left work had begun, with a session or without one.
            let had_begun = matches!(end, End::Crashed { .. } | End::TimedOut { .. });
            let session = before.state.session.clone();
            let alike = if had_begun { Story::working(goal()) } else { before };
            let plain = alike.after(&[ended(end.clone())]).state;
            let found = &story.state;
            assert_eq!(found.phase, plain.phase, "{end:?}");
            assert_eq!(&found.session, if had_begun { &session } else { &plain.session }, "{end:?}");
            assert_eq!(found.errors_in_row, plain.errors_in_row, "{end:?}");
            assert_eq!(found.failed_starts_in_row, plain.failed_starts_in_row, "{end:?}");
            assert_eq!(found.attempts_spent(), plain.attempts_spent(), "{end:?}");
        }
    }
}

#[test]
fn an_agent_that_ended_its_turn_is_treated_alike_whatever_it_left() {
    for end in ends().into_iter().filter(|end| !end.is_bad()) {
        let mut before = Story::working(goal());
        before.state.errors_in_row = 1;
        let plain = before.clone().after(&[ended(end.clone())]).state;
        let mut found = before.after(&[ended_with_work(end)]).state;
        found.attempts[0].work = plain.attempts[0].work;
        assert_eq!(found, plain);
    }
}

#[test]
fn work_that_a_cut_off_agent_left_on_a_goal_without_checks_proves_nothing() {
    let mut story = Story::working(goal_without_checks());
    story.receive(ended_with_work(crashed()));
    assert_eq!(story.state.phase.name(), "sleeping");
}
