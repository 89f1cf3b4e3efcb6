//! Goals as JSON: the shapes that programs rely on. They are apart from the domain's types on purpose.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use towline_core::{
    About, Attempt, Axis, Baseline, BaselineCheck, Checkout, Goal, GoalState, Merge, Origin, Outcome, Part,
    Phase, Question, Spent, Usage, Verdict,
};
use towline_engine::Home;
use towline_store::{GoalRecord, GoalSummary, Listed, UnreadableGoal};

/// Without a sandbox, verdicts are protected from what an agent does to files, git's data and Towline's files.
pub(crate) const TRUST_LEVEL: u8 = 1;

/// Instead of a phase, for a goal that cannot be read.
pub(crate) const UNREADABLE: &str = "unreadable";

/// `show --json`, and what `run --json` prints at the end.
#[derive(Serialize)]
pub(crate) struct GoalReport {
    id: String,
    title: String,
    prompt: String,
    repository: String,
    phase: &'static str,
    reason: Option<String>,
    until: Option<Timestamp>,
    question: Option<QuestionReport>,
    agent: Option<String>,
    origin: OriginReport,
    metadata: BTreeMap<String, Value>,
    labels: Vec<String>,
    workspace: Option<String>,
    branch: Option<String>,
    base: String,
    candidate: Option<String>,
    /// Whether the candidate differs from the base; none without a candidate.
    changed: Option<bool>,
    /// What the checks said before any work; none when that is not known.
    baseline: Option<BaselineReport>,
    merged: Option<MergedReport>,
    checks_hash: String,
    /// When the operator replaced the checks that the goal was created with.
    checks_replaced_at: Option<Timestamp>,
    protect: Vec<String>,
    unprotect: Vec<String>,
    trust: TrustReport,
    attempts: Vec<AttemptReport>,
    usage: UsageReport,
    budget: Map<String, Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// One line of `ls --json`.
#[derive(Serialize)]
pub(crate) struct GoalLine {
    id: String,
    title: String,
    prompt: Option<String>,
    repository: Option<String>,
    phase: &'static str,
    reason: Option<String>,
    until: Option<Timestamp>,
    agent: Option<String>,
    merged: Option<MergedReport>,
    attempts: usize,
    usage: UsageReport,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// One line of `questions --json`.
#[derive(Serialize)]
pub(crate) struct QuestionLine {
    goal: String,
    title: String,
    #[serde(flatten)]
    question: QuestionReport,
}

/// Something only a person can answer.
#[derive(Serialize)]
struct QuestionReport {
    id: u32,
    attempt: u32,
    kind: &'static str,
    question: String,
    options: Vec<String>,
    default: Option<String>,
    asked_at: Timestamp,
    deadline: Option<Timestamp>,
    parts: Vec<PartReport>,
}

/// One of several things that are asked together.
#[derive(Serialize)]
struct PartReport {
    question: String,
    options: Vec<OptionReport>,
    many: bool,
}

#[derive(Serialize)]
struct OptionReport {
    label: String,
    description: String,
}

#[derive(Serialize)]
pub(crate) struct OriginReport {
    channel: String,
    thread: Option<String>,
    by: Option<String>,
}

impl OriginReport {
    pub(crate) fn of(origin: &Origin) -> Self {
        let Origin { channel, thread, by } = origin.clone();
        Self { channel, thread, by }
    }
}

/// What protects the verdicts of a goal.
#[derive(Serialize)]
struct TrustReport {
    /// The level: 1 without a sandbox.
    level: u8,
    sandbox: Option<String>,
    /// Whether the agent has the user's own `.git`.
    in_place: bool,
    /// The checkout that proved the work of a goal that is done: `clean` or `warm`.
    confirmed: Option<&'static str>,
}

/// A checkout with build output of an earlier verdict.
pub(crate) const WARM: &str = "warm";

/// The kind of checkout that proved the work of a goal that is done.
pub(crate) fn confirmed_by(state: &GoalState) -> Option<&'static str> {
    let verdict = state.last_verdict().filter(|_| state.phase == Phase::Done)?;
    Some(if verdict.checkout == Checkout::Warm { WARM } else { "clean" })
}

/// What the checks said about the base.
#[derive(Serialize)]
struct BaselineReport {
    met: bool,
    checks: Vec<BaselineCheckReport>,
}

#[derive(Serialize)]
struct BaselineCheckReport {
    name: String,
    met: bool,
    exit_code: Option<i32>,
}

/// Where the work was taken to.
#[derive(Serialize)]
struct MergedReport {
    into: String,
    commit: String,
    candidate: String,
    at: Timestamp,
}

#[derive(Serialize)]
struct AttemptReport {
    n: u32,
    id: String,
    agent: String,
    model: Option<String>,
    session: Option<String>,
    resumed: bool,
    dir: String,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    turns: u32,
    end: Option<&'static str>,
    detail: Option<String>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    limit_until: Option<Timestamp>,
    text: String,
    usage: UsageReport,
    decisions: Vec<DecisionReport>,
    verdict: Option<VerdictReport>,
    extras: Map<String, Value>,
}

#[derive(Serialize)]
struct UsageReport {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost_usd: f64,
    /// Whether a part of the cost is an estimate: the agent has not reported it.
    estimated: bool,
}

#[derive(Serialize)]
struct DecisionReport {
    tool: String,
    outcome: &'static str,
    by: String,
}

/// What the checks found.
#[derive(Serialize)]
pub(crate) struct VerdictReport {
    met: bool,
    candidate: String,
    restored: Vec<String>,
    notes: Vec<String>,
    checkout: Checkout,
    checks: Vec<CheckReport>,
}

#[derive(Serialize)]
struct CheckReport {
    name: String,
    met: bool,
    exit_code: Option<i32>,
    problem: Option<String>,
    evidence: String,
    seconds: f64,
}

impl GoalReport {
    /// Everything about a goal.
    pub(crate) fn of(record: &GoalRecord, home: &Home, now: Timestamp) -> Self {
        let GoalRecord { goal, state, .. } = record;
        let workspace = state.workspace.as_ref();
        Self {
            id: goal.id.to_string(),
            title: goal.title.clone(),
            prompt: goal.prompt.clone(),
            repository: goal.workspace.repository.clone(),
            phase: state.phase.name(),
            reason: state.phase.reason(),
            until: state.phase.until(),
            question: state.open_question().filter(|_| state.phase.takes_answers()).map(QuestionReport::of),
            agent: GoalSummary::of(record).agent.map(|agent| agent.to_string()),
            origin: OriginReport::of(&goal.origin),
            metadata: goal.metadata.clone(),
            labels: goal.labels.clone(),
            workspace: workspace.map(|workspace| workspace.path.clone()),
            branch: state.branch.clone(),
            base: goal.workspace.base.to_string(),
            candidate: state.candidate.as_ref().map(ToString::to_string),
            changed: state.changed(),
            baseline: BaselineReport::of(&state.baseline),
            merged: state.merged.as_ref().map(MergedReport::of),
            checks_hash: goal.checks_hash(),
            checks_replaced_at: state.replaced_checks.as_ref().map(|replaced| replaced.since),
            protect: goal.protect.clone(),
            unprotect: goal.unprotect.clone(),
            trust: TrustReport {
                level: TRUST_LEVEL,
                sandbox: None,
                in_place: goal.workspace.mode.is_in_place(),
                confirmed: confirmed_by(state),
            },
            attempts: state
                .attempts
                .iter()
                .map(|attempt| {
                    let dir = home.attempt(goal.id, attempt.n).display().to_string();
                    AttemptReport::of(attempt, dir)
                })
                .collect(),
            usage: state.usage().into(),
            budget: budget(state, now),
            created_at: goal.created_at,
            updated_at: record.updated_at,
        }
    }
}

impl BaselineReport {
    fn of(baseline: &Baseline) -> Option<Self> {
        let Baseline::Known { checks } = baseline else { return None };
        let reports = checks.iter().map(|check| BaselineCheckReport {
            name: check.name.clone(),
            met: check.met,
            exit_code: check.exit_code,
        });
        Some(Self { met: BaselineCheck::all_met(checks), checks: reports.collect() })
    }
}

impl MergedReport {
    fn of(merge: &Merge) -> Self {
        let Merge { into, commit, candidate, at } = merge;
        Self { into: into.clone(), commit: commit.to_string(), candidate: candidate.to_string(), at: *at }
    }
}

impl QuestionLine {
    /// A question and the goal it belongs to.
    pub(crate) fn of(goal: &Goal, question: &Question) -> Self {
        Self { goal: goal.id.to_string(), title: goal.title.clone(), question: QuestionReport::of(question) }
    }
}

impl QuestionReport {
    fn of(question: &Question) -> Self {
        let (kind, parts): (_, &[Part]) = match &question.ask.about {
            About::Choice { parts } => ("choice", parts),
            About::Permission { .. } => ("permission", &[]),
        };
        let options = match parts {
            [only] => only.options.iter().map(|option| option.label.clone()).collect(),
            [] => ["yes", "no", "always"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        Self {
            id: question.n.0,
            attempt: question.attempt.get(),
            kind,
            question: question.ask.title(),
            options,
            default: question.ask.default.clone(),
            asked_at: question.asked_at,
            deadline: question.deadline,
            parts: parts.iter().map(PartReport::of).collect(),
        }
    }
}

impl PartReport {
    fn of(part: &Part) -> Self {
        let options = part.options.iter().map(|option| OptionReport {
            label: option.label.clone(),
            description: option.description.clone(),
        });
        Self { question: part.text.clone(), options: options.collect(), many: part.many }
    }
}

impl GoalLine {
    /// A goal in short, with its prompt where that can be read.
    pub(crate) fn of(listed: &Listed, prompt: Option<String>) -> Self {
        match listed {
            Listed::Goal(goal) => Self::of_summary(goal, prompt),
            Listed::Unreadable(goal) => Self::of_unreadable(goal),
        }
    }

    fn of_summary(goal: &GoalSummary, prompt: Option<String>) -> Self {
        Self {
            id: goal.id.to_string(),
            title: goal.title.clone(),
            prompt,
            repository: Some(goal.repository.clone()),
            phase: goal.phase.name(),
            reason: goal.phase.reason(),
            until: goal.phase.until(),
            agent: goal.agent.as_ref().map(ToString::to_string),
            merged: goal.merged.as_ref().map(MergedReport::of),
            attempts: goal.attempts,
            usage: goal.usage.into(),
            created_at: goal.created_at,
            updated_at: goal.updated_at,
        }
    }

    fn of_unreadable(goal: &UnreadableGoal) -> Self {
        Self {
            id: goal.id.to_string(),
            title: String::new(),
            prompt: None,
            repository: None,
            phase: UNREADABLE,
            reason: Some(goal.why.clone()),
            until: None,
            agent: None,
            merged: None,
            attempts: 0,
            usage: Usage::default().into(),
            created_at: goal.created_at,
            updated_at: goal.created_at,
        }
    }
}

impl AttemptReport {
    fn of(attempt: &Attempt, dir: String) -> Self {
        let exit = attempt.exit.as_ref();
        let decisions = attempt.decisions.iter().map(|decision| DecisionReport {
            tool: decision.tool.clone(),
            outcome: match decision.outcome {
                Outcome::Allow => "allow",
                Outcome::Deny => "deny",
            },
            by: decision.by.clone(),
        });
        Self {
            n: attempt.n.get(),
            id: attempt.id.to_string(),
            agent: attempt.agent.to_string(),
            model: attempt.model.clone(),
            session: attempt.session.as_ref().map(ToString::to_string),
            resumed: attempt.resumed,
            dir,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            turns: attempt.turns,
            end: attempt.end.as_ref().map(towline_core::End::name),
            detail: attempt.end.as_ref().and_then(towline_core::End::detail),
            exit_code: exit.and_then(|exit| exit.code),
            signal: exit.and_then(|exit| exit.signal),
            limit_until: attempt.limit_until,
            text: attempt.text.clone(),
            usage: attempt.usage.into(),
            decisions: decisions.collect(),
            verdict: attempt.verdict.as_ref().map(VerdictReport::of),
            extras: extras(attempt),
        }
    }
}

/// What is there only now and then.
fn extras(attempt: &Attempt) -> Map<String, Value> {
    let mut extras = Map::new();
    if attempt.unrecognised > 0 {
        extras.insert("unrecognised".to_owned(), json!(attempt.unrecognised));
    }
    if let Some((used, size)) = attempt.context {
        extras.insert("context".to_owned(), json!({"used": used.0, "size": size.map(|size| size.0)}));
    }
    extras
}

impl VerdictReport {
    /// As a verdict has it.
    pub(crate) fn of(verdict: &Verdict) -> Self {
        let checks = verdict.checks.iter().map(|check| CheckReport {
            name: check.name.clone(),
            met: check.met,
            exit_code: check.exit_code,
            problem: check.problem.clone(),
            evidence: check.evidence.clone(),
            seconds: check.took.as_secs_f64(),
        });
        Self {
            met: verdict.met(),
            candidate: verdict.candidate.to_string(),
            restored: verdict.restored.clone(),
            notes: verdict.notes.clone(),
            checkout: verdict.checkout,
            checks: checks.collect(),
        }
    }
}

impl From<Usage> for UsageReport {
    fn from(usage: Usage) -> Self {
        let Spent { amount, estimated } = usage.spent();
        Self {
            input: usage.input.0,
            output: usage.output.0,
            cache_read: usage.cache_read.0,
            cache_write: usage.cache_write.0,
            cost_usd: amount.dollars(),
            estimated,
        }
    }
}

/// Each limited axis with its limit and what is left of it.
fn budget(state: &GoalState, now: Timestamp) -> Map<String, Value> {
    let (limits, usage) = (&state.budget, state.usage());
    let count =
        |limit: Option<u64>, used: u64| limit.map(|limit| (json!(limit), json!(limit.saturating_sub(used))));
    let now = state.settled_at.unwrap_or(now);
    let wall = limits.wall.map(|wall| {
        let left = state
            .wall_ends()
            .map_or(wall.as_secs(), |ends| u64::try_from(ends.duration_since(now).as_secs()).unwrap_or(0));
        (json!(wall.as_secs()), json!(left))
    });
    let spent = usage.spent().amount;
    let usd = limits.usd.map(|usd| (json!(usd.dollars()), json!(usd.saturating_sub(spent).dollars())));
    let axes = [
        (Axis::Turns, count(limits.turns, state.turns())),
        (Axis::Attempts, count(limits.attempts, state.attempts_spent())),
        (Axis::Wall, wall),
        (Axis::Tokens, count(limits.tokens.map(|tokens| tokens.0), usage.tokens().0)),
        (Axis::Usd, usd),
        (Axis::Errors, count(limits.errors, u64::from(state.errors_in_row))),
        (Axis::Denials, count(limits.denials, u64::from(state.denials_in_row))),
    ];
    let limited = axes.into_iter().filter_map(|(axis, both)| {
        let (limit, left) = both?;
        Some((axis.name().to_owned(), json!({"limit": limit, "left": left})))
    });
    limited.collect()
}
