//! Goals: all about one, and one line of a list.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use towline_core::{
    Attempt, Axis, GoalState, Judging, Merge, MicroUsd, Origin, Outcome, Spent, Tokens, Usage,
};

use crate::{BaselineCheckReport, HoldReport, QuestionReport, VerdictReport};

/// `show --json`, and what `run --json` prints at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GoalReport {
    /// The goal's id.
    pub id: String,
    /// The goal in a few words.
    pub title: String,
    /// What is to be done.
    pub prompt: String,
    /// The repository that it belongs to.
    pub repository: String,
    /// The phase that it is in.
    pub phase: String,
    /// Why it is in that phase.
    pub reason: Option<String>,
    /// When it leaves the phase by itself.
    pub until: Option<Timestamp>,
    /// The question that can be answered now.
    pub question: Option<QuestionReport>,
    /// The agent that works on it, worked on it last, or is to begin.
    pub agent: Option<String>,
    /// Where it came from.
    pub origin: OriginReport,
    /// Settings of the goal's file that only other programs read.
    pub metadata: BTreeMap<String, Value>,
    /// Labels of the goal's file.
    pub labels: Vec<String>,
    /// The directory that the agent works in.
    pub workspace: Option<String>,
    /// The branch that the goal has ended as.
    pub branch: Option<String>,
    /// The commit that the work started from.
    pub base: String,
    /// The commit with the newest work.
    pub candidate: Option<String>,
    /// Whether the candidate differs from the base; null without a candidate.
    pub changed: Option<bool>,
    /// What the checks found before any work; null when that is not known.
    pub baseline: Option<BaselineReport>,
    /// The branch that has the work now.
    pub merged: Option<MergedReport>,
    /// The hash of the goal's checks.
    pub checks_hash: String,
    /// When the operator replaced the checks that the goal was created with.
    pub checks_replaced_at: Option<Timestamp>,
    /// The earlier goal whose conversation it continues.
    pub continues: Option<String>,
    /// The goal that continues its conversation.
    pub continued_by: Option<String>,
    /// When a person last took over the agent's session.
    pub entered_at: Option<Timestamp>,
    /// Patterns of paths that the agent may not change.
    pub protect: Vec<String>,
    /// Patterns that are excepted from them.
    pub unprotect: Vec<String>,
    /// What protects the verdicts.
    pub trust: TrustReport,
    /// All attempts, the first one first.
    pub attempts: Vec<AttemptReport>,
    /// The latest 50 conversations with judges, the oldest one first.
    #[serde(default)]
    pub judges: Vec<JudgeReport>,
    /// What all attempts and judges have used together.
    pub usage: UsageReport,
    /// Each limited axis of the budget.
    pub budget: BTreeMap<String, BudgetLine>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its log grew last.
    pub updated_at: Timestamp,
    /// Why it does not start, while it waits in the queue.
    #[serde(default)]
    pub hold: Option<HoldReport>,
}

/// One entry of `ls --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GoalLine {
    /// The goal's id.
    pub id: String,
    /// The goal in a few words.
    pub title: String,
    /// What is to be done; null if it cannot be read.
    pub prompt: Option<String>,
    /// The repository that it belongs to; null if it cannot be read.
    pub repository: Option<String>,
    /// The phase that it is in; `unreadable` if its state cannot be read.
    pub phase: String,
    /// Why it is in that phase.
    pub reason: Option<String>,
    /// When it leaves the phase by itself.
    pub until: Option<Timestamp>,
    /// The agent that works on it, worked on it last, or is to begin.
    pub agent: Option<String>,
    /// The branch that has the work now.
    pub merged: Option<MergedReport>,
    /// How many attempts it has had.
    pub attempts: usize,
    /// What all attempts have used together.
    pub usage: UsageReport,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its log grew last.
    pub updated_at: Timestamp,
    /// Why it does not start, while it waits in the queue.
    #[serde(default)]
    pub hold: Option<HoldReport>,
    /// What protects its verdicts; null if it cannot be read.
    #[serde(default)]
    pub trust: Option<TrustReport>,
}

/// Where a goal came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OriginReport {
    /// The channel, such as `cli`.
    pub channel: String,
    /// The conversation within that channel.
    pub thread: Option<String>,
    /// The person who asked for it.
    pub by: Option<String>,
}

/// What protects the verdicts of a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustReport {
    /// The level: 2 if all agents and checks so far ran in a sandbox of bubblewrap, and otherwise 1.
    pub level: u8,
    /// The weakest that confined an agent or a check so far: `bubblewrap` or `landlock`; null if anything ran without a sandbox, or
    /// nothing ran yet.
    pub sandbox: Option<String>,
    /// Whether the agent has the user's own `.git`.
    pub in_place: bool,
    /// The checkout that proved the work of a goal that is done: `clean` or `warm`.
    pub confirmed: Option<String>,
}

/// What the checks found on the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineReport {
    /// Whether all of them passed.
    pub met: bool,
    /// One result for each check.
    pub checks: Vec<BaselineCheckReport>,
}

/// A merge of a goal's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedReport {
    pub into: String,
    /// Its commit after the merge.
    pub commit: String,
    /// The commit that was merged.
    pub candidate: String,
    /// When it was merged.
    pub at: Timestamp,
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttemptReport {
    /// Its number, counted from 1.
    pub n: u32,
    pub id: String,
    /// The agent's name in the configuration.
    pub agent: String,
    /// The model that the agent reported.
    pub model: Option<String>,
    /// The agent's own name of the conversation.
    pub session: Option<String>,
    /// Whether it continued an earlier conversation.
    pub resumed: bool,
    /// The directory of its raw logs.
    pub dir: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How many turns it had.
    pub turns: u32,
    /// The class of its end.
    pub end: Option<String>,
    /// What the agent or the system reported about the end.
    pub detail: Option<String>,
    /// The agent's exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended the agent.
    pub signal: Option<i32>,
    /// Until when the provider's quota is used up.
    pub limit_until: Option<Timestamp>,
    /// The agent's last message.
    pub text: String,
    /// What it has used.
    pub usage: UsageReport,
    /// What was decided about its requests for permission.
    pub decisions: Vec<DecisionReport>,
    /// What the checks found afterwards.
    pub verdict: Option<VerdictReport>,
    /// Facts that few attempts have.
    pub extras: AttemptExtras,
}

/// One conversation with a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeReport {
    /// Its number, counted from 1.
    pub n: u32,
    /// The number of the attempt whose work it judges.
    pub attempt: u32,
    /// The name of its check.
    pub check: String,
    /// The agent's name in the configuration.
    pub agent: String,
    /// The account whose quota it uses.
    pub account: String,
    /// The model that the agent reported.
    pub model: Option<String>,
    /// The directory of its raw logs.
    pub dir: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The class of its end. Whether it accepts the work is in the attempt's verdict.
    pub end: Option<String>,
    /// What the agent or the system reported about the end.
    pub detail: Option<String>,
    /// What it has used.
    pub usage: UsageReport,
}

/// Facts that few attempts have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttemptExtras {
    /// How many frames of the agent's output were not understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecognised: Option<u64>,
    /// How full the model's context window is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextReport>,
}

/// How full a context window is, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContextReport {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that fit into it.
    pub size: Option<u64>,
}

/// Tokens and money. What no agent reported is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// Tokens sent, without those that came from a cache.
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// Tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write: Option<u64>,
    /// The cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Whether a part of the cost is an estimate: the agent has not reported it.
    pub estimated: bool,
    /// Whether some attempts reported their tokens or their cost and others did not, so that more was used than these sums.
    #[serde(default)]
    pub partial: bool,
}

/// What was decided about a tool that an agent wanted to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecisionReport {
    pub tool: String,
    /// `allow` or `deny`.
    pub outcome: String,
    /// The rule or the person that decided.
    pub by: String,
}

/// One axis of a budget. `wall` is in seconds, `usd` in US dollars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BudgetLine {
    /// What may be used.
    pub limit: Number,
    /// What is left of it.
    pub left: Number,
}

/// What the command in `notify.command` reads on standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Notification {
    /// `needs_you`, `limited`, `budget`, `done`, `unproven` or `failed`.
    pub kind: String,
    /// All of it in one line.
    pub text: String,
    /// The goal's id.
    pub goal: String,
    /// The goal's title.
    pub title: String,
    /// The repository that the goal belongs to.
    pub repository: String,
    /// The phase that the goal has entered.
    pub phase: String,
    /// Why it is in that phase.
    pub reason: Option<String>,
    /// When the goal continues by itself.
    pub until: Option<String>,
    /// The question that needs an answer.
    pub question: Option<String>,
    /// Where the goal came from.
    pub origin: OriginReport,
    /// Settings of the goal's file that only other programs read.
    pub metadata: BTreeMap<String, Value>,
}

impl From<&Origin> for OriginReport {
    fn from(origin: &Origin) -> Self {
        let Origin { channel, thread, by } = origin.clone();
        Self { channel, thread, by }
    }
}

impl From<&Merge> for MergedReport {
    fn from(merge: &Merge) -> Self {
        let Merge { into, commit, candidate, at } = merge;
        Self { into: into.clone(), commit: commit.to_string(), candidate: candidate.to_string(), at: *at }
    }
}

impl AttemptReport {
    /// The report on an attempt whose raw logs are in `dir`.
    pub fn of(attempt: &Attempt, dir: String) -> Self {
        let exit = attempt.exit.as_ref();
        let decisions = attempt.decisions.iter().map(|decision| DecisionReport {
            tool: decision.tool.clone(),
            outcome: match decision.outcome {
                Outcome::Allow => "allow".to_owned(),
                Outcome::Deny => "deny".to_owned(),
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
            end: attempt.end.as_ref().map(|end| end.name().to_owned()),
            detail: attempt.end.as_ref().and_then(towline_core::End::detail),
            exit_code: exit.and_then(|exit| exit.code),
            signal: exit.and_then(|exit| exit.signal),
            limit_until: attempt.limit_until,
            text: attempt.text.clone(),
            usage: attempt.usage.into(),
            decisions: decisions.collect(),
            verdict: attempt.verdict.as_ref().map(VerdictReport::from),
            extras: AttemptExtras {
                unrecognised: Some(attempt.unrecognised).filter(|count| *count > 0),
                context: attempt
                    .context
                    .map(|(used, size)| ContextReport { used: used.0, size: size.map(|size| size.0) }),
            },
        }
    }
}

impl JudgeReport {
    /// The report on a judge whose raw logs are in `dir`.
    pub fn of(judge: &Judging, dir: String) -> Self {
        Self {
            n: judge.n,
            attempt: judge.attempt.get(),
            check: judge.check.clone(),
            agent: judge.agent.to_string(),
            account: judge.account.clone(),
            model: judge.model.clone(),
            dir,
            started_at: judge.started_at,
            ended_at: judge.ended_at,
            end: judge.end.as_ref().map(|end| end.name().to_owned()),
            detail: judge.end.as_ref().and_then(towline_core::End::detail),
            usage: judge.usage.into(),
        }
    }
}

impl From<Usage> for UsageReport {
    fn from(usage: Usage) -> Self {
        let Spent { amount, estimated, partial } = usage.spent();
        let tokens = |amount: Tokens| usage.knows_tokens().then_some(amount.0);
        let cache = |amount: Tokens| usage.knows_cache().then_some(amount.0);
        Self {
            input: tokens(usage.input),
            output: tokens(usage.output),
            cache_read: cache(usage.cache_read),
            cache_write: cache(usage.cache_write),
            cost_usd: usage.knows_cost().then(|| amount.dollars()),
            estimated,
            partial,
        }
    }
}

/// Each limited axis with its limit and what is left of it.
pub fn budget(state: &GoalState, now: Timestamp) -> BTreeMap<String, BudgetLine> {
    let now = state.settled_at.unwrap_or(now);
    let line = |axis: Axis| {
        let limit = state.budget.limit(axis)?;
        let left = match (axis, state.wall_ends()) {
            // Seconds that have begun are not left.
            (Axis::Wall, Some(ends)) => u64::try_from(ends.duration_since(now).as_secs()).unwrap_or(0),
            _ => limit.saturating_sub(state.used(axis, now)),
        };
        let number = |amount: u64| match axis {
            Axis::Usd => Number::from_f64(MicroUsd(amount).dollars()),
            _ => Some(amount.into()),
        };
        Some((axis.name().to_owned(), BudgetLine { limit: number(limit)?, left: number(left)? }))
    };
    Axis::ALL.into_iter().filter_map(line).collect()
}
