//! Random goals and random news, for the properties.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::judging::{judge_started, judge_unavailable, judge_used};
use crate::fixtures::*;
use crate::{
    AgentEvent, AgentName, Amount, Ask, Axis, BaselineMode, Budget, BudgetChange, CheckResult, End, Event,
    Goal, LaunchProblem, Limit, LimitStatus, MessageNo, MicroUsd, MissingProgram, NextSession, NoOpinion,
    Outcome, Phase, QuestionNo, RawRef, Refusal, Reply, Timeout, Tokens, ToolStatus, TurnEnd, TurnStop,
    Usage, Verdict, Words,
};

/// An event for the goal.
#[derive(Debug, Clone)]
pub(super) struct News {
    /// The first of these that is legal, or the last: so that goals come far, and meet the senseless, too.
    pub(super) candidates: Vec<Event>,
    /// The sender of the event.
    pub(super) sender: Sender,
    /// Where it was read.
    pub(super) raw: Option<RawRef>,
    /// Seconds since the news before; wall clocks can be set back.
    pub(super) wait: i64,
}

/// Whose news it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sender {
    /// The lease's holder, about the right attempt.
    Right,
    /// The lease's holder, about no attempt.
    Nobody,
    /// The lease's holder, about another attempt.
    OtherAttempt(u32),
    /// The holder of another lease.
    OtherLease(u64),
}

/// News of every kind.
pub(super) fn news() -> impl Strategy<Value = News> {
    let wait = prop_oneof![8 => 0_i64..400, 1 => 400_i64..100_000, 1 => -400_i64..0];
    let raw = option::of((any::<u64>(), 0_u64..1_000).prop_map(|(offset, length)| RawRef { offset, length }));
    (vec(event(), 1..8), sender(), raw, wait).prop_map(|(candidates, sender, raw, wait)| News {
        candidates,
        sender,
        raw,
        wait,
    })
}

fn sender() -> impl Strategy<Value = Sender> {
    prop_oneof![
        16 => Just(Sender::Right),
        1 => Just(Sender::Nobody),
        1 => (1_u32..4).prop_map(Sender::OtherAttempt),
        1 => (0_u64..6).prop_map(Sender::OtherLease),
    ]
}

/// Goals with and without checks, agents and each budget.
pub(super) fn any_goal() -> impl Strategy<Value = Goal> {
    let agents = prop::sample::select(vec![0_usize, 1, 1, 1, 1, 2, 2, 3]);
    let baseline = prop::sample::select(vec![BaselineMode::Auto, BaselineMode::Red, BaselineMode::Off]);
    (budget(), prop::bool::weighted(0.8), agents, baseline).prop_map(|(budget, checks, agents, baseline)| {
        let mut goal = Goal { baseline, ..goal_with(budget) };
        if !checks {
            goal.checks.clear();
        }
        goal.agents = ["claude", "codex", "gemini"].into_iter().take(agents).map(AgentName::new).collect();
        goal
    })
}

fn budget() -> impl Strategy<Value = Budget> {
    let small = || option::weighted(0.3, 0_u64..6);
    let tokens = option::weighted(0.3, 0_u64..2_000).prop_map(|tokens| tokens.map(Tokens));
    let usd = option::weighted(0.3, 0_u64..500_000).prop_map(|usd| usd.map(MicroUsd));
    let wall = option::weighted(0.3, 0_u64..10_000).prop_map(|wall| wall.map(Duration::from_secs));
    (small(), small(), wall, tokens, usd, small(), small()).prop_map(
        |(turns, attempts, wall, tokens, usd, errors, denials)| Budget {
            turns,
            attempts,
            wall,
            tokens,
            usd,
            errors,
            denials,
        },
    )
}

/// Any event. What carries a goal on is more frequent than what ends it.
fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(dispatched()),
        4 => Just(prepared()),
        3 => (1_u32..4, vec(check_result(), 0..3), prop::bool::weighted(0.1)).prop_map(baseline_reached),
        1 => (1_u32..4, text()).prop_map(|(round, reason)| Event::BaselineUnknown { round, reason }),
        1 => Just(prepare_failed()),
        1 => Just(repository_gone()),
        1 => Just(unconfigured()),
        1 => Just(Event::AttemptStarted { sandbox: None }),
        12 => agent_event().prop_map(agent),
        3 => end().prop_map(ended),
        2 => end().prop_map(ended_with_work),
        1 => timeout().prop_map(timed_out),
        1 => text().prop_map(|name| Event::CheckStarted { name, process: None }),
        1 => check_result().prop_map(|result| Event::CheckFinished { result }),
        1 => (1_u32..4).prop_map(judge_started),
        1 => (1_u32..4, 0_u64..4).prop_map(|(n, used)| judge_used(n, used)),
        1 => (1_u32..4, end()).prop_map(|(n, end)| Event::JudgeEnded { n, end }),
        2 => no_opinion().prop_map(judge_unavailable),
        4 => any_verdict().prop_map(|verdict| Event::VerdictReached { verdict }),
        1 => text().prop_map(|error| Event::ChecksFailed { error }),
        2 => Just(Event::Stopped),
        6 => Just(Event::Woken),
        1 => Just(Event::CancelRequested),
        1 => Just(pause()),
        2 => Just(Event::ResumeRequested),
        4 => (1_u32..6, reply()).prop_map(|(question, reply)| replied_to(question, reply)),
        1 => (1_u32..6).prop_map(|question| Event::AnswerDelivered { question: QuestionNo(question), words: Words::Dropped }),
        2 => text().prop_map(|text| Event::MessageSent { text }),
        1 => option::of(text()).prop_map(|focus| Event::CompactRequested { focus }),
        1 => Just(entered()),
        3 => vec(budget_change(), 0..3).prop_map(|budget| Event::RetryRequested { budget, session: NextSession::Fresh, model: None }),
        1 => Just(Event::ChecksReplaced { checks: vec![check("lint", "make lint")] }),
        1 => text().prop_map(|into| merged(&into)),
        1 => any_verdict().prop_map(|verdict| Event::Verified { verdict }),
        1 => Just(Event::Created),
        1 => text().prop_map(|worker| Event::Claimed { worker, models: BTreeMap::new(), workspace: None }),
        1 => Just(now_in(Phase::Done)),
        1 => text().prop_map(|text| Event::Notice { text }),
    ]
}

fn baseline_reached((round, checks, is_missing): (u32, Vec<CheckResult>, bool)) -> Event {
    let missing = is_missing.then(|| MissingProgram { check: "tests".into(), program: "carog".into() });
    Event::BaselineReached { round, checks, reused: None, missing }
}

fn agent_event() -> impl Strategy<Value = AgentEvent> {
    prop_oneof![
        4 => (0_u32..4, any::<bool>()).prop_map(|(id, resumed)| session_started(&format!("s{id}"), resumed)),
        4 => Just(AgentEvent::TurnStarted),
        4 => any_usage().prop_map(|used| AgentEvent::Usage {
            model: None,
            used,
            context_used: Some(used.input),
            context_size: Some(Tokens(200)),
        }),
        1 => limit().prop_map(AgentEvent::RateLimit),
        1 => prop::sample::select(vec![None, Some(401), Some(529)]).prop_map(|status| AgentEvent::Retrying {
            status,
            attempt: 1,
            delay_ms: u64::MAX,
            error: String::new(),
        }),
        3 => any_ask().prop_map(AgentEvent::Asked),
        1 => text().prop_map(|request| AgentEvent::Withdrawn { request }),
        1 => (1_u32..4).prop_map(|message| AgentEvent::Heard { message: MessageNo(message) }),
        1 => option::of(0_u64..300).prop_map(|after| AgentEvent::Compacted { before: None, after: after.map(Tokens) }),
        1 => text().prop_map(|reason| AgentEvent::NotCompacted { reason }),
        1 => outcome().prop_map(|outcome| AgentEvent::Decided(decision(outcome))),
        1 => turn_end().prop_map(AgentEvent::TurnEnded),
        1 => text().prop_map(|id| tool(&id, ToolStatus::Running)),
        1 => text().prop_map(|raw| AgentEvent::Unrecognised { what: "frame".into(), raw, count: 3 }),
    ]
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let about = prop_oneof![Just(ask().about), Just(permission().about),];
    let default = prop::sample::select(vec![None, Some("red".to_owned()), Some("no".to_owned())]);
    let patience = option::of((0_u64..500).prop_map(Duration::from_secs));
    (option::of(text()), about, default, patience).prop_map(|(request, about, default, patience)| Ask {
        request,
        about,
        default,
        patience,
    })
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        2 => text().prop_map(|answer| Reply::Chosen { answers: vec![answer] }),
        1 => Just(Reply::Allowed),
        1 => text().prop_map(|message| Reply::Denied { message }),
    ]
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let tokens = || prop_oneof![20 => 0_u64..200, 1 => Just(u64::MAX)].prop_map(Tokens);
    (tokens(), tokens(), tokens(), tokens(), 0_u64..50_000).prop_map(
        |(input, output, cache_read, cache_write, cost)| Usage {
            input,
            output,
            cache_read,
            cache_write,
            cost: MicroUsd(cost),
            ..Usage::default()
        },
    )
}

fn limit() -> impl Strategy<Value = Limit> {
    let status =
        prop::sample::select(vec![LimitStatus::Allowed, LimitStatus::Warning, LimitStatus::Rejected]);
    (status, option::of(moment()), option::of(0_u8..100)).prop_map(|(status, resets_at, percent)| Limit {
        scope: None,
        status,
        utilization: percent.map(|percent| f64::from(percent) / 100.0),
        resets_at,
    })
}

fn turn_end() -> impl Strategy<Value = TurnEnd> {
    let stop = prop_oneof![
        Just(TurnStop::Done),
        Just(TurnStop::Interrupted),
        option::of(prop::sample::select(vec![401_u16, 500]))
            .prop_map(|status| TurnStop::Failed { status, reason: "error".into() }),
    ];
    let asks = r#"{"towline": "ask", "question": "Which?", "default": "a", "deadline": 60}"#.to_owned();
    let sleeps = r#"{"towline": "sleep", "seconds": 90, "reason": "CI"}"#.to_owned();
    let words = prop_oneof![4 => text(), 1 => Just(asks), 1 => Just(sleeps)];
    (stop, words).prop_map(|(stop, text)| TurnEnd {
        stop,
        text,
        structured: None,
        inner_turns: Some(1),
        reported_cost: Some(MicroUsd(1)),
    })
}

fn no_opinion() -> impl Strategy<Value = NoOpinion> {
    prop_oneof![
        (option::of(moment()), any::<bool>())
            .prop_map(|(until, guessed)| NoOpinion::Limited { until, guessed }),
        text().prop_map(|message| NoOpinion::Unreachable { message }),
        prop::sample::select(vec![Axis::Usd, Axis::Tokens]).prop_map(|axis| NoOpinion::Budget { axis }),
        text().prop_map(|message| NoOpinion::Unusable { message }),
    ]
}

/// Any end of an attempt.
pub(super) fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        6 => Just(End::Completed),
        1 => Just(End::Lost),
        1 => option::of(moment()).prop_map(|until| End::RateLimited { until }),
        1 => text().prop_map(|message| End::ServerError { status: Some(529), message }),
        1 => text().prop_map(|message| End::Auth { message }),
        1 => Just(End::ContextOverflow),
        1 => Just(End::ResumeRefused { why: Refusal::NotFound }),
        1 => Just(End::MaxTurns),
        1 => Just(End::MaxBudget),
        1 => text().prop_map(|message| End::Declined { message }),
        1 => timeout().prop_map(|timeout| End::TimedOut { timeout }),
        2 => text().prop_map(|message| End::Crashed { message }),
        1 => text().prop_map(|message| End::SpawnFailed { problem: LaunchProblem::Other { message } }),
        1 => Just(End::Cancelled),
        1 => Just(End::OverBudget),
        1 => Just(End::Interrupted),
        1 => Just(End::OutputLimit),
        1 => text().prop_map(|message| End::Refused { status: Some(400), message }),
    ]
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    let restored = prop::sample::select(vec![vec![], vec!["tests/a.rs".to_owned()]]);
    (0_u8..3, vec(check_result(), 0..3), restored)
        .prop_map(|(tree, checks, restored)| Verdict { restored, ..verdict(&format!("t{tree}"), checks) })
}

fn check_result() -> impl Strategy<Value = CheckResult> {
    (prop::bool::weighted(0.3), text()).prop_map(|(met, evidence)| match met {
        true => green("tests"),
        false => red("tests", &evidence),
    })
}

fn budget_change() -> impl Strategy<Value = BudgetChange> {
    let amount =
        prop_oneof![(0_u64..2_000_000).prop_map(Amount::Set), (0_u64..2_000_000).prop_map(Amount::Add)];
    (prop::sample::select(Axis::ALL.to_vec()), amount)
        .prop_map(|(axis, amount)| BudgetChange { axis, amount })
}

fn timeout() -> impl Strategy<Value = Timeout> {
    prop::sample::select(vec![Timeout::Startup, Timeout::Idle, Timeout::Turn, Timeout::Wall, Timeout::Answer])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![Outcome::Allow, Outcome::Deny, Outcome::Deny])
}

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        (-1_000_i64..200_000, 0_i32..1_000_000_000)
            .prop_map(|(second, nanos)| { Timestamp::new(at(second).as_second(), nanos).expect("in range") }),
        Just(Timestamp::MAX),
        Just(Timestamp::MIN),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "boom", "```\n“quoted”\u{0}\\", "\u{1f600}"]).prop_map(str::to_owned)
}
