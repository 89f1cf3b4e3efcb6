//! What can happen to a goal: the entries of its log.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::{name_of, value_named};
use crate::{
    AgentEvent, AgentName, Answerer, AttemptNo, BudgetChange, Check, CheckProcess, CheckResult, Commit, End,
    Generation, GoalId, Inherited, MissingProgram, NoOpinion, Outcome, PauseReason, Phase, Purse, QuestionNo,
    Reply, Seq, SessionId, Timeout, Usage, Verdict, WorkspaceBinding,
};

/// An entry of a goal's log, or one that is on its way there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    pub goal: GoalId,
    /// Its place in the goal's log; 0 until the store has given it one.
    pub seq: Seq,
    /// When Towline recorded it.
    pub at: Timestamp,
    /// The attempt it belongs to.
    pub attempt: Option<AttemptNo>,
    /// Who did it.
    pub source: Source,
    /// The tool call of a subagent that it happened below.
    pub parent: Option<String>,
    /// The raw bytes it was read from.
    pub raw: Option<RawRef>,
    pub event: Event,
}

impl Envelope {
    /// Something that belongs to no attempt and has no place yet.
    pub const fn new(goal: GoalId, at: Timestamp, source: Source, event: Event) -> Self {
        Self { goal, seq: Seq(0), at, attempt: None, source, parent: None, raw: None, event }
    }

    /// The same with its place in the goal's log.
    #[must_use]
    pub fn placed(self, goal: GoalId, seq: Seq) -> Self {
        Self { goal, seq, ..self }
    }
}

/// Who did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Agent,
    Towline,
    /// A person, or a program in their place.
    Operator,
}

/// Where in an attempt's output an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRef {
    /// Offset in `stdout.log`.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Who speaks for which attempt under which lease: what makes stale news recognisable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The lease generation the sender worked under.
    pub generation: Generation,
    /// The attempt it speaks about, if any.
    pub attempt: Option<AttemptNo>,
}

/// News on its way into [`crate::step`].
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// Who speaks for which attempt.
    pub stamp: Stamp,
    /// Who did it.
    pub source: Source,
    /// The tool call of a subagent that it happened below.
    pub parent: Option<String>,
    /// The raw bytes it was read from.
    pub raw: Option<RawRef>,
    pub event: Event,
}

/// Everything that can happen to a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The goal was created.
    Created,
    /// A worker holds the goal's lease from now on.
    Claimed {
        worker: String,
        /// The models that its configuration sets for the goal's agents.
        #[serde(default)]
        models: BTreeMap<AgentName, String>,
        /// Where the goal's workspace is for this worker, if that is another place than before: the state directory was moved or
        /// copied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// The prerequisites have come to their end, and what they left is part of the goal.
    PrerequisitesMet { inherited: Inherited },
    /// Another goal found out that an account cannot be used, so another agent starts.
    AccountUnavailable {
        account: String,
        /// Until when; none if its credentials are refused.
        until: Option<Timestamp>,
        /// Whether that time is a guess of ours.
        guessed: bool,
    },
    /// The pool has no room for this agent, or it has no credentials, so another one of the goal's starts.
    AgentUnavailable { agent: AgentName, why: String },
    /// The goal has a slot.
    Dispatched {
        /// The agent that it was given to; none outside of a pool, where the goal decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
    },
    /// Money that goals share is spent, so the agent is stopped and continues later.
    SharedBudgetSpent { purse: Purse },
    /// The workspace is ready.
    Prepared {
        /// Where it is and what it starts from.
        workspace: WorkspaceBinding,
        /// What the operator should know about it.
        warnings: Vec<String>,
    },
    /// The workspace could not be made.
    PrepareFailed {
        /// What went wrong and what to do.
        error: String,
    },
    /// The workspace could not be made, because the user's repository was moved or deleted.
    RepositoryGone {
        /// Where it was.
        path: String,
    },
    /// Nothing can be started for the goal, because the configuration of its project cannot be used.
    Unconfigured {
        /// What is wrong with it, and where.
        error: String,
    },
    /// The checks ran on the base, all of them to their end.
    BaselineReached {
        /// Which run of them.
        round: u32,
        /// One result per check. Results that were stored by an earlier goal are without what the checks printed.
        checks: Vec<CheckResult>,
        /// When an earlier goal found these results, so that nothing had to run.
        #[serde(default)]
        reused: Option<Timestamp>,
        /// A program that a failed check needs and that is not on PATH.
        #[serde(default)]
        missing: Option<MissingProgram>,
    },
    /// The checks did not finish on the base, so nothing is known about it.
    BaselineUnknown {
        /// Which run of them.
        round: u32,
        reason: String,
    },
    /// The agent's process runs.
    AttemptStarted {
        /// What confines it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<crate::Sandbox>,
    },
    /// The agent wrote or did something.
    Agent { event: AgentEvent },
    /// The attempt is over and its tree is verified gone.
    AttemptEnded {
        /// The classified end.
        end: End,
        /// How the process ended.
        exit: Exit,
        /// What it left in the workspace.
        #[serde(default)]
        work: Work,
        /// What is changed in the workspace, in short; only where another agent may have to know.
        #[serde(default)]
        changes: String,
    },
    /// Another agent continues the work.
    HandedOver {
        /// The one that cannot.
        from: AgentName,
        /// The one that does.
        to: AgentName,
        /// How the last attempt of the first one ended.
        why: String,
    },
    /// A timeout of the attempt or the goal was reached.
    #[serde(rename = "clock_ran_out")]
    TimeoutReached {
        #[serde(rename = "clock")]
        timeout: Timeout,
    },
    /// A check begins.
    CheckStarted {
        name: String,
        /// Where it can be found again; only of one that can be adopted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<CheckProcess>,
    },
    /// A check is over.
    CheckFinished {
        /// How it went.
        result: CheckResult,
    },
    /// An agent is asked to judge the work.
    JudgeStarted {
        /// Its number within the goal, from 1.
        n: u32,
        check: String,
        agent: AgentName,
        /// Whose quota it uses.
        account: String,
        model: Option<String>,
        /// The directory of its logs, below that of the attempt. Earlier versions recorded a name below the attempt's `checks`.
        directory: String,
        /// The tree that it judges. Earlier versions did not record it.
        #[serde(default)]
        tree: String,
    },
    /// A judge has used something.
    JudgeUsed {
        n: u32,
        model: Option<String>,
        /// All that it has used so far.
        used: Usage,
    },
    /// A judge's conversation is over, and nothing of it is left.
    JudgeEnded { n: u32, end: End },
    /// A judge gave no verdict, for a reason that has nothing to do with the work: so the work has none either.
    JudgeUnavailable { check: String, agent: AgentName, account: String, reason: NoOpinion },
    /// All checks ran.
    VerdictReached {
        /// What they found.
        verdict: Verdict,
    },
    /// The checks could not run, so nothing is known about the work.
    ChecksFailed {
        /// What went wrong and what to do.
        error: String,
    },
    /// Work that was under way was ended on request, and nothing of it is left.
    Stopped,
    /// A timer that the goal waited for.
    Woken,
    /// The operator wants the goal ended.
    CancelRequested,
    /// The goal is to be interrupted, so that it can be resumed later.
    PauseRequested {
        /// Who asked for it.
        reason: PauseReason,
    },
    /// The operator resumes a paused goal.
    ResumeRequested,
    /// A question was answered.
    Answered { question: QuestionNo, reply: Reply, by: Answerer },
    /// The operator sent a message to the agent.
    #[serde(rename = "told")]
    MessageSent { text: String },
    /// The operator wants the conversation summarised before the next prompt.
    CompactRequested {
        /// What the summary is to keep; none for what the agent's settings name.
        focus: Option<String>,
    },
    /// A person opened the agent's own session in the workspace.
    Entered { agent: AgentName, session: SessionId },
    /// The person left that session.
    Left {
        /// The exit code of the agent's program.
        code: Option<i32>,
    },
    /// The operator put files of a goal that works in place back as they were before it.
    Restored {
        /// The files that were there before, as a commit.
        replaced: Commit,
        /// Which ones; all of them where it names none.
        paths: Vec<String>,
    },
    /// Another goal continues the conversation of this one.
    Continued {
        by: GoalId,
        /// Where the workspace is since then; none where both work in the same directory.
        workspace: Option<String>,
        /// The goal that was to continue it before, and is gone.
        #[serde(default)]
        instead_of: Option<GoalId>,
    },
    /// The answer to a question has reached the living agent that asked.
    AnswerDelivered {
        question: QuestionNo,
        /// Whether the agent also has the words of a refusal.
        #[serde(default)]
        words: Words,
    },
    /// The operator opens an ended goal again.
    RetryRequested {
        /// Budgets to raise first.
        budget: Vec<BudgetChange>,
        /// The session of the next attempt.
        #[serde(default)]
        session: NextSession,
        /// The model to use from now on, when it changes.
        #[serde(default)]
        model: Option<String>,
    },
    /// The operator replaces the goal's checks.
    ChecksReplaced {
        /// Those in force from now on.
        checks: Vec<Check>,
    },
    /// The operator took the work into a branch.
    Merged {
        into: String,
        /// The commit that the branch is at since then.
        commit: Commit,
        /// The commit of the goal's work that is in it.
        candidate: Commit,
    },
    /// An ended goal's work got a branch in the user's repository.
    Published {
        branch: String,
        /// The commit that it is at.
        commit: Commit,
    },
    /// The operator had the checks run once more on the work of an ended goal.
    Verified {
        /// What they found this time.
        verdict: Verdict,
    },
    /// The goal moved on; follows from the event before it.
    PhaseChanged {
        /// The new phase.
        phase: Phase,
    },
    /// The system's clock was set, or the machine was suspended, while the goal was driven.
    ClockMoved {
        /// How far the clock has moved beyond the time that passed, in milliseconds; less than zero if it was set back.
        by_ms: i64,
    },
    /// Something the operator should know that changes nothing.
    Notice { text: String },
}

impl Event {
    /// The name in JSON, in the store and in the documentation.
    pub fn name(&self) -> &'static str {
        name_of(self)
    }

    /// What a person calls it who asks for it: the command of an operator's request.
    pub fn request(&self) -> &'static str {
        match self {
            Self::CancelRequested => "cancel",
            Self::PauseRequested { .. } => "pause",
            Self::ResumeRequested => "resume",
            Self::Answered { .. } => "answer",
            Self::MessageSent { .. } => "tell",
            Self::CompactRequested { .. } => "compact",
            Self::Entered { .. } => "enter",
            Self::Continued { .. } => "continue",
            Self::RetryRequested { .. } => "retry",
            Self::Merged { .. } => "merge",
            Self::Verified { .. } => "verify",
            other => other.name(),
        }
    }
}

impl Source {
    /// The name in JSON and in the store.
    pub fn name(self) -> &'static str {
        name_of(&self)
    }

    /// The one that has this name.
    pub fn named(name: &str) -> Option<Self> {
        value_named(name)
    }
}

/// The session of the next attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextSession {
    /// The last one is resumed where that is possible.
    #[default]
    Resumed,
    /// A new one starts with the full prompt.
    Fresh,
}

/// Whether the words of an answer reached the agent with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Words {
    /// The agent has them, or there were none.
    #[default]
    #[serde(rename = "said")]
    Sent,
    /// The protocol has no place for them.
    #[serde(rename = "unsaid")]
    Dropped,
}

/// What an attempt left in the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Nothing that was not checked before, as far as is known.
    #[default]
    Nothing,
    /// Something that no verdict speaks about yet.
    Unchecked,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code, when it exited.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of what it printed to stderr.
    pub stderr_tail: String,
}

/// An answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The tool that asked.
    pub tool: String,
    /// Allowed or not.
    pub outcome: Outcome,
    /// Who decided: `rule`, a person, a timeout.
    pub by: String,
    /// The rule that decided, or what would allow it.
    pub rule: Option<String>,
}
