//! Goals, states and news for the tests of this crate. Only compiled for them.
//!
//! States are not made by hand: a [`Story`] brings a goal there by the steps that bring it there in earnest.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::{
    About, AgentEvent, AgentName, Answerer, Ask, Attempt, AttemptId, AttemptNo, BaselineMode, Budget, Check,
    CheckKind, CheckResult, Commit, Decision, Effect, End, Event, Exit, Goal, GoalState, Incoming, Launch,
    MicroUsd, ModelChoice, Moved, NextSession, Origin, Outcome, PauseReason, Phase, QuestionNo, Reply,
    SessionId, SessionPlan, SessionStarted, Source, Stamp, StepOutcome, StopWhy, Stopping, Timeout, Tokens,
    ToolCall, ToolKind, ToolStatus, ToolUse, TurnEnd, TurnStop, Usage, Verdict, Words, Work,
    WorkspaceBinding, WorkspaceMode, WorkspaceSpec, step,
};

/// A moment, in seconds after the goal was created.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

/// The attempt with this number.
pub(crate) fn no(number: u32) -> AttemptNo {
    AttemptNo::new(number).expect("not zero")
}

pub(crate) fn goal() -> Goal {
    Goal {
        id: "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("a goal id"),
        title: "Fix the tests".into(),
        prompt: "Make the tests pass.".into(),
        checks: vec![check("tests", "cargo test")],
        budget: Budget::default(),
        agents: vec![AgentName::new("claude")],
        model: None,
        agent_settings: BTreeMap::new(),
        protect: vec!["tests/**".into()],
        unprotect: Vec::new(),
        workspace: WorkspaceSpec {
            repository: "/repository".into(),
            mode: WorkspaceMode::Clone,
            base: Commit::new("base"),
            setup: vec![],
            copy: vec![],
            generated: Vec::new(),
            pass_env: Vec::new(),
            warm: Vec::new(),
            confirm: crate::Confirm::Clean,
            git: None,
        },
        briefing: false,
        baseline: BaselineMode::Off,
        sessions: BTreeMap::new(),
        accounts: BTreeMap::new(),
        continues: None,
        scheduling: crate::Scheduling::default(),
        labels: vec![],
        metadata: BTreeMap::new(),
        origin: Origin { channel: "cli".into(), thread: None, by: None },
        created_at: at(0),
    }
}

pub(crate) fn goal_with(budget: Budget) -> Goal {
    Goal { budget, ..goal() }
}

/// The goal with this limit beside the default ones.
pub(crate) fn goal_limited(limit: &str) -> Goal {
    let mut goal = goal();
    goal.budget.apply(&limit.parse().expect(limit));
    goal
}

pub(crate) fn goal_without_checks() -> Goal {
    Goal { checks: vec![], ..goal() }
}

pub(crate) fn check(name: &str, run: &str) -> Check {
    let kind = CheckKind::Command { run: run.into(), stdout: None };
    Check::new(name, kind, Duration::from_secs(60))
}

pub(crate) fn green(name: &str) -> CheckResult {
    CheckResult {
        name: name.into(),
        met: true,
        exit_code: Some(0),
        problem: None,
        evidence: "ok".into(),
        took: Duration::from_secs(1),
        output: None,
        tests: None,
    }
}

pub(crate) fn red(name: &str, evidence: &str) -> CheckResult {
    CheckResult { met: false, exit_code: Some(101), evidence: evidence.into(), ..green(name) }
}

/// A verdict on the candidate `c-TREE`.
pub(crate) fn verdict(tree: &str, checks: Vec<CheckResult>) -> Verdict {
    Verdict {
        candidate: Commit::new(format!("c-{tree}")),
        head: None,
        tree: tree.into(),
        restored: vec![],
        checks,
        notes: vec![],
        checkout: crate::Checkout::Clean,
        sandbox: None,
    }
}

/// The goal's check fails on this tree.
pub(crate) fn red_verdict(tree: &str) -> Event {
    Event::VerdictReached { verdict: verdict(tree, vec![red("tests", "1 failed")]) }
}

/// The goal's check holds on this tree.
pub(crate) fn green_verdict(tree: &str) -> Event {
    Event::VerdictReached { verdict: verdict(tree, vec![green("tests")]) }
}

pub(crate) fn merged(into: &str) -> Event {
    Event::Merged { into: into.into(), commit: Commit::new("m"), candidate: Commit::new("c-t1") }
}

pub(crate) fn verified(tree: &str) -> Event {
    Event::Verified { verdict: verdict(tree, vec![green("tests")]) }
}

pub(crate) fn goal_with_baseline(baseline: BaselineMode) -> Goal {
    Goal { baseline, ..goal() }
}

pub(crate) fn baseline_reached(round: u32, checks: Vec<CheckResult>) -> Event {
    Event::BaselineReached { round, checks, reused: None, missing: None }
}

pub(crate) fn workspace() -> WorkspaceBinding {
    WorkspaceBinding {
        path: "/workspace".into(),
        branch: Some("towline/goal".into()),
        base: Commit::new("base"),
        setup_changes: BTreeMap::new(),
        base_tree: None,
    }
}

pub(crate) fn prepared() -> Event {
    Event::Prepared { workspace: workspace(), warnings: vec![] }
}

pub(crate) fn repository_gone() -> Event {
    Event::RepositoryGone { path: "/src/shop".into() }
}

pub(crate) fn unconfigured() -> Event {
    Event::Unconfigured { error: "towline.toml:3: unknown key `agnet`".into() }
}

pub(crate) fn prepare_failed() -> Event {
    Event::PrepareFailed { error: "npm ci failed; run it by hand".into() }
}

pub(crate) fn agent(event: AgentEvent) -> Event {
    Event::Agent { event }
}

/// A conversation by this id came up.
pub(crate) fn session(id: &str, resumed: bool) -> Event {
    agent(session_started(id, resumed))
}

pub(crate) fn session_started(id: &str, resumed: bool) -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: SessionId::new(id),
        resumed,
        model: Some("opus".into()),
        agent_version: None,
    })
}

pub(crate) fn tool(id: &str, status: ToolStatus) -> AgentEvent {
    AgentEvent::Tool(ToolUse {
        id: id.to_owned(),
        tool: ToolKind::Execute,
        name: "Bash".into(),
        title: "ls".into(),
        status,
        input: Some(serde_json::json!({ "command": ["ls", null, 1] })),
        output: None,
        exit_code: Some(-1),
        paths: vec!["a".into()],
    })
}

/// What the samples of usage add up: 10 tokens of each kind for each `times`, and a cent.
pub(crate) fn used(times: u64) -> Usage {
    let tokens = Tokens(10 * times);
    Usage {
        input: tokens,
        output: tokens,
        cache_read: tokens,
        cache_write: tokens,
        cost: MicroUsd(10_000 * times),
        ..Usage::default()
    }
}

pub(crate) fn usage(times: u64) -> Event {
    usage_of(used(times))
}

pub(crate) fn usage_of(used: Usage) -> Event {
    agent(AgentEvent::Usage { model: None, used, context_used: None, context_size: None })
}

/// The agent tries again after this status.
pub(crate) fn retrying(status: u16) -> Event {
    agent(AgentEvent::Retrying { status: Some(status), attempt: 1, delay_ms: 500, error: "refused".into() })
}

pub(crate) fn decided(outcome: Outcome) -> Event {
    agent(AgentEvent::Decided(decision(outcome)))
}

pub(crate) fn decision(outcome: Outcome) -> Decision {
    Decision { tool: "Bash".into(), outcome, by: "rule".into(), rule: None }
}

/// A question with two options, asked by a request that the agent waits for.
pub(crate) fn ask_waiting(request: &str) -> Ask {
    Ask { request: Some(request.to_owned()), ..ask() }
}

pub(crate) fn ask() -> Ask {
    Ask::choice("Which colour?".into(), vec!["red".into(), "blue".into()])
}

/// The same, to be answered within a minute.
pub(crate) fn urgent(ask: Ask) -> Ask {
    Ask { patience: Some(Duration::from_secs(60)), ..ask }
}

/// The same with a default that is taken after a minute.
pub(crate) fn with_default(ask: Ask) -> Ask {
    Ask { default: Some("red".into()), ..urgent(ask) }
}

pub(crate) fn asked(ask: Ask) -> Event {
    agent(AgentEvent::Asked(ask))
}

pub(crate) fn answered(question: u32, words: &str) -> Event {
    replied_to(question, chosen(words))
}

pub(crate) fn chosen(words: &str) -> Reply {
    Reply::Chosen { answers: vec![words.to_owned()] }
}

/// A person's reply to this question.
pub(crate) fn replied_to(question: u32, reply: Reply) -> Event {
    Event::Answered { question: QuestionNo(question), reply, by: Answerer::Person }
}

pub(crate) fn message_sent(text: &str) -> Event {
    Event::MessageSent { text: text.to_owned() }
}

pub(crate) fn compact_requested(focus: &str) -> Event {
    Event::CompactRequested { focus: Some(focus.to_owned()) }
}

pub(crate) fn continued() -> Event {
    let by = "01932f6e-7c00-7abc-8def-0123456789ac".parse().expect("a goal id");
    Event::Continued { by, workspace: Some("/left".into()), instead_of: None }
}

pub(crate) fn entered() -> Event {
    Event::Entered { agent: AgentName::new("claude"), session: SessionId::new("s1") }
}

/// The agent's turn came to its end with this message.
pub(crate) fn turn_ended(text: &str) -> Event {
    agent(AgentEvent::TurnEnded(turn_end(TurnStop::Done, text)))
}

pub(crate) fn turn_end(stop: TurnStop, text: &str) -> TurnEnd {
    TurnEnd { stop, text: text.to_owned(), structured: None, inner_turns: None, reported_cost: None }
}

pub(crate) fn ended(end: End) -> Event {
    Event::AttemptEnded { end, exit: exit(), work: Work::Nothing, changes: String::new() }
}

/// The attempt ended so, and left work that no verdict speaks about.
pub(crate) fn ended_with_work(end: End) -> Event {
    Event::AttemptEnded { end, exit: exit(), work: Work::Unchecked, changes: String::new() }
}

pub(crate) fn exit() -> Exit {
    Exit { code: Some(1), signal: None, stderr_tail: "bye".into() }
}

pub(crate) fn crashed() -> End {
    End::Crashed { message: "exit code 1".into() }
}

/// The provider refused the conversation.
pub(crate) fn refused() -> End {
    End::Refused { status: Some(400), message: "messages.3: no such tool call".into() }
}

pub(crate) fn timed_out(timeout: Timeout) -> Event {
    Event::TimeoutReached { timeout }
}

pub(crate) fn pause() -> Event {
    Event::PauseRequested { reason: PauseReason::Operator }
}

/// The operator opens the goal again and raises these budgets.
pub(crate) fn retry(changes: &[&str]) -> Event {
    let budget = changes.iter().map(|change| change.parse().expect(change)).collect();
    Event::RetryRequested { budget, session: NextSession::Resumed, model: None }
}

/// The operator opens the goal again with a new session.
pub(crate) fn retry_fresh() -> Event {
    Event::RetryRequested { budget: vec![], session: NextSession::Fresh, model: None }
}

/// A worker whose configuration sets this model for the agent `claude` takes the goal.
pub(crate) fn claimed(model: Option<&str>) -> Event {
    let models = model.map(|model| (AgentName::new("claude"), model.to_owned()));
    Event::Claimed { worker: "w".into(), models: models.into_iter().collect(), workspace: None }
}

/// The first session continues.
pub(crate) fn resumed() -> SessionPlan {
    SessionPlan::Resume(SessionId::new("s1"))
}

/// Permission to use a tool, asked for by a request that the agent waits for.
pub(crate) fn permission() -> Ask {
    let call = ToolCall { tool: "Bash".into(), input: "beef".into() };
    let about = About::Permission { call, title: "rm -r out".into(), rule: "Bash(rm -r out)".into() };
    Ask { request: Some("r1".into()), about, default: None, patience: None }
}

/// The reply to the first question has reached the agent.
pub(crate) fn delivered(words: Words) -> Event {
    Event::AnswerDelivered { question: QuestionNo(1), words }
}

pub(crate) fn notices(moved: &Moved) -> Vec<&str> {
    let notices = moved.events.iter().filter_map(|event| match event {
        Event::Notice { text } => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

/// The prompt has these texts, and none of the others.
#[track_caller]
pub(crate) fn assert_prompt(prompt: &str, wanted: &[&str], others: &[&str]) {
    assert!(wanted.iter().all(|text| prompt.contains(text)), "not all of {wanted:?} in {prompt}");
    assert!(!others.iter().any(|text| prompt.contains(text)), "one of {others:?} in {prompt}");
}

/// The event that follows a change of the phase.
pub(crate) fn now_in(phase: Phase) -> Event {
    Event::PhaseChanged { phase }
}

/// The order to check the first attempt's work.
pub(crate) fn run_checks(round: u32) -> Effect {
    Effect::RunChecks { attempt: no(1), round }
}

/// What follows from an event, when that is a change of the phase and nothing to be done.
pub(crate) fn moved_to(phase: Phase, settled: &[&str]) -> Moved {
    Moved { events: vec![now_in(phase)], settled: keys(settled), ..Moved::default() }
}

/// The first attempt's agent or checks are being ended.
pub(crate) fn stopping(why: StopWhy) -> Phase {
    Phase::Stopping(Stopping { attempt: Some(no(1)), why })
}

/// What follows when this work is to be ended.
pub(crate) fn stop(phase: Phase, work: &str) -> Moved {
    Moved { effects: vec![Effect::Stop { work: work.into() }], ..moved_to(phase, &[]) }
}

/// What follows from the end of an agent that we ended: the phase, and the end that is recorded by our reason.
pub(crate) fn moved_after_stop(phase: Phase, attempt: u32, end: End) -> Moved {
    let launch = format!("launch/{attempt}");
    let moved = moved_to(phase, &[&format!("stop/{launch}"), &launch]);
    Moved { recorded_as: Some(Box::new(ended(end))), ..moved }
}

pub(crate) fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

pub(crate) fn fresh_attempt(number: u32, started_at: Timestamp) -> Attempt {
    let attempt = Attempt::begun(goal().id, no(number), AgentName::new("claude"), None, started_at);
    Attempt { asked_model: ModelChoice::AgentDefault, ..attempt }
}

/// The id of the session that an attempt of the goal starts when it resumes none.
pub(crate) fn fresh_session(number: u32) -> SessionId {
    AttemptId::of(goal().id, no(number)).fresh_session()
}

/// The goal has a slot, and decides which agent starts.
pub(crate) fn dispatched() -> Event {
    Event::Dispatched { agent: None }
}

/// A goal on its way, one event after the other.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) goal: Goal,
    pub(crate) state: GoalState,
    pub(crate) now: Timestamp,
}

impl Story {
    /// A goal that was just created.
    pub(crate) fn of(goal: Goal) -> Self {
        Self { state: GoalState::new(&goal), goal, now: at(0) }
    }

    /// A goal whose workspace is being made.
    pub(crate) fn preparing(goal: Goal) -> Self {
        Self::of(goal).after(&[dispatched()])
    }

    /// A goal whose first attempt was just launched.
    pub(crate) fn launched(goal: Goal) -> Self {
        Self::preparing(goal).after(&[prepared()])
    }

    /// A goal whose first attempt works in the session `s1`.
    pub(crate) fn working(goal: Goal) -> Self {
        let mut story = Self::launched(goal);
        story.work_in("s1", false);
        story
    }

    /// A goal whose first attempt's work is being checked.
    pub(crate) fn checking() -> Self {
        Self::working(goal()).after(&[ended(End::Completed)])
    }

    /// A goal whose first attempt crashed at work, and that waits before the next one.
    pub(crate) fn sleeping() -> Self {
        Self::working(goal()).after(&[ended(crashed())])
    }

    /// A goal that waits for a quota.
    pub(crate) fn limited() -> Self {
        Self::working(goal()).after(&[ended(End::RateLimited { until: Some(at(3_600)) })])
    }

    /// A goal whose living agent waits for an answer.
    pub(crate) fn waiting_alive() -> Self {
        Self::working(goal()).after(&[asked(ask_waiting("r1"))])
    }

    /// A goal that waits for an answer and has nothing running.
    pub(crate) fn blocked() -> Self {
        Self::working(goal()).after(&[asked(ask()), ended(End::Completed)])
    }

    /// The goal with two agents, whose first works in the session `s1`.
    pub(crate) fn of_two_agents() -> Self {
        let agents = vec![AgentName::new("claude"), AgentName::new("codex")];
        Self::working(Goal { agents, ..goal() })
    }

    /// A goal that needs a person.
    pub(crate) fn escalated() -> Self {
        Self::working(goal()).after(&[ended(End::Declined { message: "I will not".into() })])
    }

    /// The story after these events, all of which must be legal.
    pub(crate) fn after(mut self, events: &[Event]) -> Self {
        for event in events {
            self.receive(event.clone());
        }
        self
    }

    /// The living attempt's agent starts or resumes this session and accepts its prompt.
    pub(crate) fn work_in(&mut self, id: &str, resumed: bool) {
        self.receive(Event::AttemptStarted { sandbox: None });
        self.receive(session(id, resumed));
        self.receive(agent(AgentEvent::TurnStarted));
    }

    /// The attempt ends so, and when the goal goes on, the next one works in the same session.
    pub(crate) fn go_on_after(&mut self, end: End) {
        self.receive(ended(end));
        self.go_on();
        self.work_in("s1", true);
    }

    /// The attempt ends its turn, and its work fails the checks. Gives back the launch that follows.
    pub(crate) fn fail_checks(&mut self, tree: &str) -> Launch {
        self.receive(ended(End::Completed));
        launch_of(self.receive(red_verdict(tree)))
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now = crate::deadlines::later(self.now, Duration::from_secs(seconds));
    }

    /// Sleeps or waits for the quota as long as it takes, and gets a slot. Gives back the launch that follows.
    pub(crate) fn go_on(&mut self) -> Launch {
        if let Some(until) = self.state.phase.until() {
            self.now = until;
            self.receive(Event::Woken);
        }
        launch_of(self.receive(dispatched()))
    }

    /// Something legal happens; gives back what follows from it.
    pub(crate) fn receive(&mut self, event: Event) -> Moved {
        let name = event.name();
        match self.offer(event) {
            StepOutcome::Moved(moved) => moved,
            other => panic!("`{name}` while {}: {other:?}", self.state.phase.name()),
        }
    }

    /// Something happens, stamped as the engine stamps it.
    pub(crate) fn offer(&mut self, event: Event) -> StepOutcome {
        self.send(&incoming(self.stamp(&event), event))
    }

    /// The stamp that the engine's news carries here.
    pub(crate) fn stamp(&self, event: &Event) -> Stamp {
        Stamp { generation: self.state.generation, attempt: self.speaks_about(event) }
    }

    /// News comes in as it is.
    pub(crate) fn send(&mut self, incoming: &Incoming) -> StepOutcome {
        let stepped = step(&self.goal, self.state.clone(), incoming, self.now);
        self.state = stepped.state;
        stepped.outcome
    }

    pub(crate) fn last(&self) -> &Attempt {
        self.state.last_attempt().expect("an attempt")
    }

    fn speaks_about(&self, event: &Event) -> Option<AttemptNo> {
        let of_setup = matches!(self.state.phase, Phase::Preparing)
            || matches!(&self.state.phase, Phase::Stopping(stopping) if stopping.attempt.is_none());
        match event {
            Event::Stopped | Event::CheckStarted { .. } | Event::CheckFinished { .. } if of_setup => None,
            Event::AttemptStarted { sandbox: None }
            | Event::Agent { .. }
            | Event::AttemptEnded { .. }
            | Event::TimeoutReached { .. }
            | Event::AnswerDelivered { .. }
            | Event::CheckStarted { .. }
            | Event::CheckFinished { .. }
            | Event::JudgeStarted { .. }
            | Event::JudgeUnavailable { .. }
            | Event::VerdictReached { .. }
            | Event::ChecksFailed { .. }
            | Event::Stopped => Some(self.state.last_attempt().map_or(AttemptNo::FIRST, |attempt| attempt.n)),
            _ => None,
        }
    }
}

pub(crate) fn incoming(stamp: Stamp, event: Event) -> Incoming {
    // Who did it decides nothing.
    Incoming { stamp, source: Source::Towline, parent: None, raw: None, event }
}

pub(crate) fn launch_of(moved: Moved) -> Launch {
    let launches = moved.effects.into_iter().filter_map(|effect| match effect {
        Effect::Launch(launch) => Some(launch),
        _ => None,
    });
    let mut launches: Vec<Launch> = launches.collect();
    assert_eq!(launches.len(), 1, "{launches:?}");
    launches.remove(0)
}
