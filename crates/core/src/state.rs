//! The state of a goal: the fold of its log.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    AbsentJudge, AgentName, AttemptId, AttemptNo, Axis, Baseline, Budget, Check, Commit, Confined, Decision,
    End, Exit, Generation, Goal, GoalId, Judging, MicroUsd, ModelChoice, OperatorMessage, Origin, Phase,
    Question, QuestionNo, ReplacedChecks, Sandbox, SessionId, Tokens, Usage, Verdict, Work,
};

/// The state of a goal. Stored with every step; always equal to replaying the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalState {
    /// The present phase.
    pub phase: Phase,
    /// The generation of the lease under which it was last moved.
    pub generation: Generation,
    /// The limits in force: the goal's, raised by retries.
    pub budget: Budget,
    /// When it first started, moved on by the time in which it waited for the operator; wall time counts
    /// from there.
    #[serde(rename = "taken_up_at")]
    pub first_started_at: Option<Timestamp>,
    /// Since when nothing happens any more unless the operator asks for it.
    pub settled_at: Option<Timestamp>,
    /// How often its workspace was to be made.
    pub preparations: u32,
    /// Its workspace, once made.
    pub workspace: Option<WorkspaceBinding>,
    /// The conversation that the next attempt continues.
    pub session: Option<SessionBinding>,
    /// Every attempt so far.
    pub attempts: Vec<Attempt>,
    /// The last commit that was checked.
    pub candidate: Option<Commit>,
    /// Bad endings in a row.
    pub errors_in_row: u32,
    /// Attempts in a row that died before they had a session.
    pub failed_starts_in_row: u32,
    /// Verdicts in a row that showed the same failure on the same files.
    pub same_failure_in_row: u32,
    /// Refused permissions in a row.
    pub denials_in_row: u32,
    /// Refused credentials in a row, within the living attempt.
    pub auth_failures_in_row: u32,
    /// Every question so far.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// All messages of the operator so far.
    #[serde(default)]
    pub messages: Vec<OperatorMessage>,
    /// How the conversation fills the model's context.
    #[serde(default)]
    pub context: ContextState,
    /// Agents that cannot go on for now, or until the operator has done something about it.
    #[serde(default)]
    pub unavailable: BTreeMap<AgentName, Unavailable>,
    /// The agent that a pool has given a slot to, until its attempt begins or the slot is free again.
    #[serde(default)]
    pub dispatched_agent: Option<AgentName>,
    /// Where the work was taken to last, as long as it is the goal's current work.
    #[serde(default)]
    pub merged: Option<Merge>,
    /// The branch in the user's repository that the work ended as.
    #[serde(default)]
    pub branch: Option<String>,
    /// The model that the operator chose after the goal was created.
    #[serde(default)]
    pub model: Option<String>,
    /// The models that the configuration of the present worker sets for the goal's agents.
    #[serde(default)]
    pub configured_models: BTreeMap<AgentName, String>,
    /// Its place in the queue: when it was first queued, or opened again after it had ended. Waiting for anything else in
    /// between does not change it. None of a goal that an earlier version queued.
    #[serde(default)]
    pub queued_at: Option<Timestamp>,
    /// Attempts in a row that never reached the model.
    #[serde(default)]
    pub outage: Outage,
    /// Limits in a row whose reset time was a guess.
    #[serde(default)]
    pub guessed_limits_in_row: u32,
    /// The result of the checks on the base.
    #[serde(default)]
    pub baseline: Baseline,
    /// How often they were to run on the base.
    #[serde(default)]
    pub baseline_rounds: u32,
    /// The checks in force, where the operator has replaced those that the goal was created with.
    #[serde(default)]
    pub replaced_checks: Option<ReplacedChecks>,
    /// What its prerequisites left to it.
    #[serde(default)]
    pub inherited: Option<Inherited>,
    /// The summary of the conversation that the operator wants before the next prompt.
    #[serde(default)]
    pub compaction: Option<CompactionRequest>,
    /// The goal that continues its conversation. This one cannot be opened again.
    #[serde(default)]
    pub continued_by: Option<GoalId>,
    /// When a person last opened the agent's own session in the workspace.
    #[serde(default)]
    pub entered_at: Option<Timestamp>,
    /// What confined the earlier goal, if this one continues in its workspace and home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_confined: Option<Confined>,
    /// Whether all files of a goal that works in place are as they were before it.
    #[serde(default)]
    pub restored: bool,
    /// The latest conversations with judges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<Judging>,
    /// What judges used before those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by_older_judges: Option<Usage>,
    /// The judge that keeps the work from its verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_judge: Option<AbsentJudge>,
}

/// What the prerequisites of a goal leave to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// The prompt with what it quotes of them.
    pub prompt: Option<String>,
    /// The commit that the work starts from.
    pub base: Option<Commit>,
}

/// A summary of the conversation that the operator wants before the next prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionRequest {
    /// What it is to keep; none for what the agent's settings name.
    pub focus: Option<String>,
    /// The attempt that was started with it. It may end before the agent has its prompt.
    pub attempt: Option<AttemptNo>,
}

/// Attempts in a row that never reached the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    pub tries: u32,
    /// When the first of them failed.
    pub since: Option<Timestamp>,
}

/// Work that was taken into a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    pub into: String,
    /// The commit that the branch was at after that.
    pub commit: Commit,
    /// The commit of the goal's work that is in it.
    pub candidate: Commit,
    pub at: Timestamp,
}

/// Why an agent cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// How its last attempt ended.
    pub end: String,
    /// Until when; without a limit when nobody knows.
    pub until: Option<Timestamp>,
    /// Whether that time is a guess of ours.
    pub guessed: bool,
}

/// How the conversation fills the model's context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextState {
    /// Attempts in a row that ended because the conversation no longer fits.
    pub overflows_in_row: u32,
    /// Summaries in a row that did not come about.
    pub not_compacted_in_row: u32,
}

impl GoalState {
    /// The state of a goal that was just created.
    pub fn new(goal: &Goal) -> Self {
        Self {
            phase: Phase::Queued,
            budget: goal.budget.clone(),
            session: goal.continues.as_ref().map(|continued| continued.session.clone()),
            queued_at: Some(goal.created_at),
            baseline: Baseline::Pending,
            earlier_confined: goal.continues.as_ref().and_then(|continued| continued.confined),
            ..Self::default()
        }
    }

    /// The checks in force.
    pub fn checks<'a>(&'a self, goal: &'a Goal) -> &'a [Check] {
        self.replaced_checks.as_ref().map_or(&goal.checks, |replaced| &replaced.checks)
    }

    /// Whether the first attempt waits for the checks on the base.
    pub fn waits_for_baseline(&self) -> bool {
        self.phase == Phase::Preparing && self.baseline.is_running()
    }

    /// Whether this agent can go on now.
    pub fn is_available(&self, agent: &AgentName, now: Timestamp) -> bool {
        match self.unavailable.get(agent) {
            Some(unavailable) => unavailable.until.is_some_and(|until| until <= now),
            None => true,
        }
    }

    /// The agents of the goal in the order in which they are asked for the next attempt: the one that has the slot, the present one,
    /// and those of the goal's list.
    pub fn agents_in_order<'a>(&'a self, goal: &'a Goal) -> Vec<&'a AgentName> {
        let present = self.last_attempt().map(|attempt| &attempt.agent);
        let first = self.dispatched_agent.iter().chain(present).filter(|agent| goal.agents.contains(agent));
        let mut agents = Vec::new();
        for agent in first.chain(&goal.agents) {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        agents
    }

    /// The agent for the next attempt: the first one that can go on.
    pub fn next_agent<'a>(&'a self, goal: &'a Goal, now: Timestamp) -> Option<&'a AgentName> {
        self.agents_in_order(goal).into_iter().find(|agent| self.is_available(agent, now))
    }

    /// The first question that waits for its answer.
    pub fn open_question(&self) -> Option<&Question> {
        self.open_questions().next()
    }

    /// All questions that wait for their answers.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.is_open())
    }

    /// The question with this number.
    pub fn question(&self, n: QuestionNo) -> Option<&Question> {
        self.questions.iter().find(|question| question.n == n)
    }

    /// The newest attempt.
    pub fn last_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The attempt with this number.
    pub fn attempt(&self, number: AttemptNo) -> Option<&Attempt> {
        self.attempts.get(number.index())
    }

    /// What confined all that touched the goal so far, agents and checks, and those of the goal that it continues: the weakest of it. A session that a person entered is
    /// confined as the attempts before it are, but only by bubblewrap.
    pub fn confined_by(&self) -> Option<Sandbox> {
        let agents = self.attempts.iter().filter(|attempt| attempt.started).map(|attempt| attempt.sandbox);
        // The checks run the agent's code, those of a red verdict too.
        let checks = self.verdicts().map(|verdict| verdict.sandbox);
        let own = agents.chain(checks).min()?;
        // An agent of the earlier goal may have prepared what this one finds.
        let earlier = self.earlier_confined.map(|earlier| earlier.by);
        let weakest = earlier.into_iter().chain([own]).min().flatten();
        weakest.filter(|sandbox| self.entered_at.is_none() || *sandbox == Sandbox::Bubblewrap)
    }

    /// The newest verdict.
    pub fn last_verdict(&self) -> Option<&Verdict> {
        self.verdicts().next()
    }

    /// All verdicts, the newest first.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.attempts.iter().rev().filter_map(|attempt| attempt.verdict.as_ref())
    }

    /// Whether the last candidate has other files than the base; none when there is no candidate.
    pub fn changed(&self) -> Option<bool> {
        let workspace = self.workspace.as_ref()?;
        let candidate = self.candidate.as_ref()?;
        let tree = self.last_verdict().map(|verdict| &verdict.tree);
        let is_base =
            *candidate == workspace.base || (tree.is_some() && tree == workspace.base_tree.as_ref());
        Some(!is_base)
    }

    /// What a session used in the attempts before this one, as the agent may report it again. It does not know of a turn that
    /// was killed.
    pub fn used_in_session(&self, goal: &Goal, session: &SessionId, before: Option<AttemptNo>) -> Usage {
        let earlier = self.attempts.iter().filter(|attempt| Some(attempt.n) != before);
        let of_session = earlier.filter(|attempt| attempt.session.as_ref() == Some(session));
        let continued = goal.continues.as_ref().filter(|continued| continued.session.native_id == *session);
        let inherited = continued.map_or_else(Usage::default, |continued| continued.used);
        of_session.fold(inherited, |sum, attempt| match attempt.usage {
            used if used.spent().estimated => sum + Usage { cost: used.cost, ..Usage::default() },
            used => sum + used,
        })
    }

    /// What all attempts and all judges used.
    pub fn usage(&self) -> Usage {
        let attempts = self.attempts.iter().filter(|attempt| attempt.may_have_used());
        let judges = self.judges.iter().filter(|judge| judge.may_have_used());
        let used = attempts.map(|attempt| attempt.usage).chain(judges.map(|judge| judge.usage));
        let used = used.chain(self.used_by_older_judges);
        used.reduce(Usage::and).unwrap_or_else(Usage::nothing)
    }

    /// What is left of the goal's own limit in dollars.
    pub fn usd_left(&self) -> Option<MicroUsd> {
        let usage = self.usage();
        let used = MicroUsd(usage.cost.0.saturating_add(usage.estimate.0));
        self.budget.usd.map(|limit| limit.saturating_sub(used))
    }

    /// Attempts that count against the budget.
    pub fn attempts_spent(&self) -> u64 {
        self.attempts.iter().filter(|attempt| attempt.counts).count() as u64
    }

    /// Turns that count against the budget. A turn of an attempt that costs nothing and that the model never answered
    /// does not.
    pub fn turns(&self) -> u64 {
        let spent = self.attempts.iter().filter(|attempt| attempt.counts || attempt.was_answered());
        spent.map(|attempt| u64::from(attempt.turns)).sum()
    }

    /// The model that an attempt of this agent is to use.
    pub fn model_for(&self, goal: &Goal, agent: &AgentName) -> ModelChoice {
        let named = self.model.as_ref().or(goal.model.as_ref());
        let named = named.or_else(|| self.configured_models.get(agent));
        named.map_or(ModelChoice::AgentDefault, |model| ModelChoice::Named(model.clone()))
    }

    /// When the goal's wall time is up.
    pub fn wall_ends(&self) -> Option<Timestamp> {
        Some(crate::deadlines::later(self.first_started_at?, self.budget.wall?))
    }

    /// When the goal goes on by itself: a little after the time that is shown, so that goals which wait for the same
    /// thing do not all come back at once.
    pub fn wakes_at(&self, goal: GoalId) -> Option<Timestamp> {
        if let (Phase::Preparing, Baseline::Running { until, .. }) = (&self.phase, &self.baseline) {
            return *until;
        }
        let until = self.phase.until()?;
        let ended = self.last_attempt().and_then(|attempt| attempt.ended_at);
        let since = ended.max(self.absent_judge.as_ref().map(|absent| absent.at));
        match (&self.phase, since) {
            (Phase::Sleeping { .. } | Phase::Limited { .. }, Some(since)) => {
                let seed = goal.seed(u32::try_from(self.attempts.len()).unwrap_or(u32::MAX));
                Some(crate::Policy::wakes_at(since, until, seed))
            }
            _ => Some(until),
        }
    }

    /// What is used of an axis, in the unit of its limit: the wall time in whole seconds, the cost in millionths of a dollar.
    pub fn used(&self, axis: Axis, now: Timestamp) -> u64 {
        match axis {
            Axis::Turns => self.turns(),
            Axis::Attempts => self.attempts_spent(),
            Axis::Wall => {
                let worked = self.first_started_at.map(|begun| now.duration_since(begun).as_secs());
                worked.map_or(0, |seconds| u64::try_from(seconds).unwrap_or(0))
            }
            Axis::Tokens => self.usage().tokens().0,
            Axis::Usd => self.usage().spent().amount.0,
            Axis::Errors => u64::from(self.errors_in_row),
            Axis::Denials => u64::from(self.denials_in_row),
        }
    }

    /// The first axis on which nothing is left for another attempt.
    pub fn spent_axis(&self, now: Timestamp) -> Option<Axis> {
        let first =
            [Axis::Attempts, Axis::Turns, Axis::Wall].into_iter().find(|axis| self.is_spent(*axis, now));
        first.or_else(|| self.over_budget(now))
    }

    /// The first axis that is spent although an attempt is still alive.
    pub fn over_budget(&self, now: Timestamp) -> Option<Axis> {
        let axes = [Axis::Tokens, Axis::Usd, Axis::Errors, Axis::Denials];
        axes.into_iter().find(|axis| self.is_spent(*axis, now))
    }

    fn is_spent(&self, axis: Axis, now: Timestamp) -> bool {
        match axis {
            // To the moment, also where the limit is no whole number of seconds.
            Axis::Wall => self.wall_ends().is_some_and(|ends| now >= ends),
            axis => self.budget.limit(axis).is_some_and(|limit| self.used(axis, now) >= limit),
        }
    }
}

/// Where a goal's work happens. The path changes only when another goal continues this one: agents find their sessions by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceBinding {
    pub path: String,
    /// The branch that the agent begins on, in its own clone; none when it works in place.
    pub branch: Option<String>,
    /// The commit it started from.
    pub base: Commit,
    /// What setup changes before any work: tracked files and files in protected places, with the id of what they hold then
    /// (none for those that it deletes), and directories that it makes, with a slash at their end.
    #[serde(default)]
    pub setup_changes: BTreeMap<String, Option<String>>,
    /// The tree of that commit. Earlier versions did not record it.
    #[serde(default)]
    pub base_tree: Option<String>,
}

/// A conversation that can be continued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionBinding {
    /// The agent that holds it.
    pub agent: AgentName,
    /// Its id there.
    pub native_id: SessionId,
    /// The model it was held with.
    pub model: Option<String>,
    /// The directory it belongs to.
    pub directory: String,
    /// When it began.
    pub since: Timestamp,
    /// The model that was asked for. The agent may report another name for it.
    #[serde(default)]
    pub asked_model: ModelChoice,
    /// Where the goal came from. Unknown for sessions of earlier versions.
    #[serde(default)]
    pub origin: Option<Origin>,
}

/// One process tree of one agent, from its start to its classified end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number within the goal.
    pub n: AttemptNo,
    pub id: AttemptId,
    pub agent: AgentName,
    /// The model, once the agent has named it.
    pub model: Option<String>,
    /// The model that was asked for.
    #[serde(default)]
    pub asked_model: ModelChoice,
    /// The conversation, once the agent has named it.
    pub session: Option<SessionId>,
    /// Whether that conversation continues an earlier one.
    pub resumed: bool,
    /// When it was decided to start it.
    pub started_at: Timestamp,
    /// Whether it is recorded that its agent runs, and with that what follows from its start alone.
    #[serde(default)]
    pub started: bool,
    /// What confines its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// When its tree was verified gone.
    pub ended_at: Option<Timestamp>,
    /// Prompts it took.
    pub turns: u32,
    /// Whether the model answered: it used tokens, thought, or called a tool. Text alone may come from the agent.
    #[serde(default)]
    pub answered: bool,
    /// Whether the last thing the agent reported is that it waits for a quota by itself.
    #[serde(default)]
    pub waits_for_quota: bool,
    /// How it ended.
    pub end: Option<End>,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// What it left in the workspace.
    #[serde(default)]
    pub work: Work,
    /// Until when the provider limits us, by the attempt's end.
    pub limit_until: Option<Timestamp>,
    /// The agent's last message.
    pub text: String,
    /// What it used.
    pub usage: Usage,
    /// Tokens in the model's context after the last message, and how many fit.
    pub context: Option<(Tokens, Option<Tokens>)>,
    /// How long it wants to wait once its turn has ended, and what for.
    #[serde(default)]
    pub sleep: Option<(Duration, String)>,
    /// Permission requests and their answers.
    pub decisions: Vec<Decision>,
    /// Questions that the agent withdrew and has not worked on without since: it may have been cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<QuestionNo>,
    /// Why its last message to Towline could not be read.
    #[serde(default)]
    pub misunderstood: Option<String>,
    /// What Towline found when it checked the work.
    pub verdict: Option<Verdict>,
    /// How often its work was to be checked. Earlier versions did not count, and checked at most once.
    #[serde(default = "crate::effect::first_round")]
    pub check_rounds: u32,
    /// The budget that was spent before its work had a verdict: a red one ends the goal.
    #[serde(default)]
    pub over_budget: Option<Axis>,
    /// Whether a pause prevented a verdict on its work.
    #[serde(default)]
    pub check_on_resume: bool,
    /// What was changed in the workspace when it ended, in short; only where another agent may have to know.
    #[serde(default)]
    pub changes: String,
    /// Frames that were not understood.
    pub unrecognised: u64,
    /// Whether it counts against the budget of attempts.
    pub counts: bool,
    /// How much of its output has been turned into events: where reading goes on after a restart.
    pub read_to: u64,
}

impl Attempt {
    /// An attempt that begins now.
    pub fn begun(
        goal: GoalId,
        n: AttemptNo,
        agent: AgentName,
        model: Option<String>,
        started_at: Timestamp,
    ) -> Self {
        Self {
            n,
            id: AttemptId::of(goal, n),
            agent,
            model,
            asked_model: ModelChoice::default(),
            session: None,
            resumed: false,
            started_at,
            started: false,
            sandbox: None,
            ended_at: None,
            turns: 0,
            answered: false,
            waits_for_quota: false,
            end: None,
            exit: None,
            work: Work::Nothing,
            limit_until: None,
            text: String::new(),
            usage: Usage::default(),
            context: None,
            sleep: None,
            decisions: Vec::new(),
            withdrawn: Vec::new(),
            misunderstood: None,
            verdict: None,
            check_rounds: 0,
            over_budget: None,
            check_on_resume: false,
            changes: String::new(),
            unrecognised: 0,
            counts: true,
            read_to: 0,
        }
    }

    /// Whether the model was asked, so that what is not reported is unknown rather than nothing.
    pub fn may_have_used(&self) -> bool {
        let ends_asked = matches!(self.end, Some(End::Interrupted | End::Asked | End::Slept { .. }));
        let is_asked = self.counts || ends_asked;
        self.turns > 0 && is_asked || self.was_answered()
    }

    /// Whether the model answered. Earlier versions recorded only what was used.
    pub fn was_answered(&self) -> bool {
        self.answered || !self.usage.is_empty()
    }
}
