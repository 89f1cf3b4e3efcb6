//! The block in every phase, at the sizes that matter.

use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use towline_core::{
    AgentName, Ask, Attempt, AttemptNo, Axis, Budget, Check, CheckKind, EscalationReason, FailureReason,
    MicroUsd, NoOpinion, PlanEntry, Question, QuestionNo, Sandbox, SessionId, SessionStarted, Source,
    StopWhy, Stopping, Timeout, Tokens, ToolKind, ToolStatus, ToolUse, Usage, Verdict,
};
use towline_terminal::{Letters, Paint, columns};

use super::*;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

fn no(number: u32) -> AttemptNo {
    AttemptNo::new(number).expect("not zero")
}

fn check(name: &str, run: &str) -> Check {
    let kind = CheckKind::Command { run: run.into(), stdout: None };
    Check::new(name, kind, Duration::from_secs(60))
}

fn goal() -> Goal {
    let budget = Budget {
        usd: Some(MicroUsd(5_000_000)),
        wall: Some(Duration::from_secs(4 * 3_600)),
        ..Budget::default()
    };
    stored(json!({
        "id": "01932f6e-7c00-7abc-8def-0123456789ab", "title": "Make the greeting polite",
        "prompt": "Make the greeting polite.", "budget": budget, "agents": ["claude"], "model": null,
        "checks": [check("tests", "cargo test --workspace"), check("lint", "cargo clippy")], "protect": [],
        "workspace": {"repository": "/repository", "base": "base", "setup": [], "copy": []},
        "briefing": true, "baseline": "off", "labels": [], "metadata": {},
        "origin": {"channel": "cli", "thread": null, "by": null}, "created_at": at(0),
    }))
}

/// A value as it is stored.
pub(crate) fn stored<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a stored value")
}

fn verdict(met: [bool; 2]) -> Verdict {
    let result = |(name, met): (&str, bool)| {
        json!({
            "name": name, "met": met, "exit_code": i32::from(!met), "evidence": "",
            "took": Duration::from_secs(3),
        })
    };
    let checks: Vec<Value> = ["tests", "lint"].into_iter().zip(met).map(result).collect();
    stored(json!({"candidate": "c", "tree": "t", "restored": [], "checks": checks}))
}

/// A goal in its third attempt: twice its tests failed, the lint once.
pub(crate) fn record() -> GoalRecord {
    let goal = goal();
    let mut state = GoalState::new(&goal);
    state.first_started_at = Some(at(0));
    for (n, met) in [(1, Some([false, false])), (2, Some([false, true])), (3, None)] {
        let mut attempt = Attempt::begun(goal.id, no(n), AgentName::new("claude"), None, at(i64::from(n)));
        attempt.verdict = met.map(verdict);
        attempt.usage = Usage { input: Tokens(12_000), cost: MicroUsd(400_000), ..Usage::default() };
        attempt.turns = 1;
        state.attempts.push(attempt);
    }
    state.phase = Phase::Running { attempt: no(3) };
    GoalRecord { goal, state, last_seq: Seq(10), lease: None, updated_at: at(60) }
}

/// A board, and the events that it is given.
struct Scene {
    board: Board,
    seq: u64,
}

impl Scene {
    fn new() -> Self {
        Self::of(record())
    }

    fn of(record: GoalRecord) -> Self {
        Self { seq: record.last_seq.0, board: Board::of(&record) }
    }

    fn event(mut self, second: i64, event: Event) -> Self {
        self.seq += 1;
        self.board.follow(&Envelope {
            goal: self.board.goal.id,
            seq: Seq(self.seq),
            at: at(second),
            attempt: None,
            source: Source::Agent,
            parent: None,
            raw: None,
            event,
        });
        self
    }

    fn agent(self, second: i64, event: AgentEvent) -> Self {
        self.event(second, Event::Agent { event })
    }

    fn tool(self, second: i64, id: &str, kind: ToolKind, title: &str, status: ToolStatus) -> Self {
        self.agent(
            second,
            AgentEvent::Tool(ToolUse { id: id.into(), title: title.into(), ..tool(kind, status) }),
        )
    }

    fn phase(self, second: i64, phase: Phase) -> Self {
        self.event(second, Event::PhaseChanged { phase })
    }

    fn shown(&self, canvas: &Canvas) -> String {
        let lines: Vec<_> = self.board.lines(canvas);
        assert!(lines.iter().all(|line| columns(line) <= canvas.width), "{lines:?}");
        assert!(lines.len() <= (canvas.height / 3).max(1), "{lines:?}");
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A call of a tool that has printed nothing.
pub(crate) fn tool(kind: ToolKind, status: ToolStatus) -> ToolUse {
    stored(json!({"id": "a", "tool": kind, "name": "Tool", "title": "it", "status": status, "paths": []}))
}

const SMALL: Canvas = canvas(80, 24);

const fn canvas(width: usize, height: usize) -> Canvas {
    // A minute and a quarter after the phase began.
    Canvas { width, height, now: Timestamp::constant(1_800_000_135, 0), paint: Paint::Plain }
}

fn running() -> Scene {
    let session = SessionStarted {
        native_id: SessionId::new("s"),
        resumed: true,
        model: Some("sonnet-4.5".into()),
        agent_version: None,
    };
    Scene::new().agent(61, AgentEvent::SessionStarted(session)).agent(62, AgentEvent::TurnStarted).tool(
        120,
        "a",
        ToolKind::Execute,
        "cargo test --workspace -- greeting",
        ToolStatus::Running,
    )
}

fn checking() -> Scene {
    running()
        .phase(100, Phase::Checking { attempt: no(3) })
        .event(101, Event::CheckStarted { name: "tests".into(), process: None })
        .event(110, Event::CheckFinished { result: verdict([true, true]).checks[0].clone() })
        .event(110, Event::CheckStarted { name: "lint".into(), process: None })
}

/// A goal that has spent more than it may.
fn over_budget() -> GoalRecord {
    let mut record = record();
    record.state.budget.usd = Some(MicroUsd(1_000_000));
    record
}

/// Every phase, with what makes it worth a look.
fn scenes() -> Vec<(&'static str, Scene)> {
    let mut fresh = record();
    fresh.state.attempts.clear();
    fresh.state.phase = Phase::Queued;
    let again = || GoalRecord { goal: fresh.goal.clone(), state: fresh.state.clone(), ..record() };
    let blocked = Phase::Blocked { question: QuestionNo(1), attempt: None, until: Some(at(700)) };
    let stopping = |why| Phase::Stopping(Stopping { attempt: Some(no(3)), why });
    let plan = |texts: [(&str, bool); 3]| AgentEvent::Plan {
        entries: texts.map(|(text, done)| PlanEntry { text: text.into(), done }).to_vec(),
    };
    vec![
        ("queued", Scene::of(again())),
        ("preparing", Scene::of(again()).phase(100, Phase::Preparing)),
        (
            "preparing, checks before any work",
            Scene::of(again()).phase(100, Phase::Preparing).event(
                105,
                stored(json!({"kind": "prepared", "workspace": {"path": "/w", "base": "b"}, "warnings": []})),
            ),
        ),
        ("running, a tool", running()),
        (
            "running, several tools",
            running().tool(130, "b", ToolKind::Edit, "src/greeting.rs", ToolStatus::Running),
        ),
        (
            "running, the tool is over",
            running().tool(131, "a", ToolKind::Execute, "cargo test", ToolStatus::Failed),
        ),
        (
            "running, by its plan",
            Scene::new().agent(125, plan([("read", true), ("write the code", false), ("test", false)])),
        ),
        ("checking", checking()),
        ("sleeping", running().phase(120, Phase::Sleeping { until: at(400), reason: "CI runs".into() })),
        ("limited", running().phase(120, Phase::Limited { until: at(7_400), guessed: false })),
        ("limited, a guess", running().phase(120, Phase::Limited { until: at(100), guessed: true })),
        ("limited, a judge", waiting_for_judge()),
        ("blocked", Scene::of(asked()).phase(120, blocked)),
        ("stopping, cancelled", running().phase(120, stopping(StopWhy::Cancel))),
        ("stopping, budget", running().phase(120, stopping(StopWhy::Budget { axis: Axis::Usd }))),
        ("stopping, timeout", running().phase(120, stopping(StopWhy::Timeout { timeout: Timeout::Idle }))),
        ("escalated", running().phase(120, Phase::Escalated { reason: EscalationReason::NoAgent })),
        (
            "failed",
            Scene::of(over_budget())
                .phase(120, Phase::Failed { reason: FailureReason::Budget { axis: Axis::Usd } }),
        ),
        ("done", running().phase(120, Phase::Done)),
        ("unproven", running().phase(120, Phase::Unproven)),
        ("cancelled", running().phase(120, Phase::Cancelled)),
    ]
}

/// A question is open.
fn asked() -> GoalRecord {
    let mut asked = record();
    let ask = Ask::choice("Which colour?".into(), vec!["red".into(), "blue".into()]);
    asked.state.questions.push(Question {
        n: QuestionNo(1),
        attempt: no(3),
        ask: Ask { default: Some("blue".into()), ..ask },
        asked_at: at(100),
        deadline: Some(at(700)),
        closed: None,
    });
    asked
}

fn waiting_for_judge() -> Scene {
    let unavailable = Event::JudgeUnavailable {
        check: "review".into(),
        agent: AgentName::new("critic"),
        account: "critic".into(),
        reason: NoOpinion::Limited { until: Some(at(7_400)), guessed: false },
    };
    checking().event(115, unavailable).phase(115, Phase::Limited { until: at(7_400), guessed: false })
}

fn all_on(canvas: &Canvas) -> String {
    scenes().iter().map(|(name, scene)| format!("# {name}\n{}\n", scene.shown(canvas))).collect()
}

#[test]
fn every_phase_on_an_ordinary_screen() {
    insta::assert_snapshot!(all_on(&SMALL));
}

#[test]
fn every_phase_on_a_narrow_screen() {
    insta::assert_snapshot!(all_on(&canvas(38, 24)));
}

#[test]
fn every_phase_without_fine_signs() {
    insta::assert_snapshot!(Letters::Ascii.shown(&all_on(&SMALL)));
}

#[test]
fn a_large_screen_has_room_for_more() {
    insta::assert_snapshot!(checking().shown(&canvas(120, 40)));
}

#[test]
fn what_matters_least_goes_first_when_there_are_few_rows() {
    let rows =
        [8, 9, 12, 15, 24].map(|height| format!("# {height} rows\n{}", running().shown(&canvas(60, height))));
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn the_budget_that_is_nearest_to_its_end_comes_first() {
    let mut record = record();
    record.state.budget =
        Budget { turns: Some(40), tokens: Some(Tokens(40_000)), attempts: Some(3), ..record.state.budget };
    record.state.errors_in_row = 1;
    insta::assert_snapshot!(Scene::of(record).shown(&canvas(160, 24)));
}

#[test]
fn many_checks_and_wide_titles_stay_within_the_screen() {
    let mut record = record();
    record.goal.title = "修复问候语 🎉 ".repeat(12);
    record.goal.checks = (1..=12).map(|n| check(&format!("a check with a long name {n}"), "true")).collect();
    insta::assert_snapshot!(Scene::of(record).shown(&SMALL));
}

#[test]
fn words_of_an_agent_give_no_orders() {
    let scene = Scene::new().tool(120, "a", ToolKind::Execute, "x\u{1b}[2J\ty\nz", ToolStatus::Running);
    assert!(scene.shown(&SMALL).contains("$ x\u{fffd}[2J y · 15s"), "{}", scene.shown(&SMALL));
}

#[test]
fn what_is_stored_is_not_counted_twice() {
    let usage = |input| AgentEvent::Usage {
        model: None,
        used: Usage { input: Tokens(input), ..Usage::default() },
        context_used: None,
        context_size: None,
    };
    // The store has seen the first of the two already.
    let mut scene = Scene::new();
    let mut ahead = record();
    ahead.last_seq = Seq(11);
    ahead.state.attempts[2].usage.input = Tokens(13_000);
    scene.board.correct(&ahead);
    let scene = scene.agent(100, usage(1_000)).agent(101, usage(500));
    assert_eq!(scene.board.state.usage().input, Tokens(12_000 + 12_000 + 13_500));
}

#[test]
fn a_goal_that_was_resumed_counts_all_of_its_attempts() {
    // The view has recalled the newest events before it knows the goal that they led to.
    let mut scene = Scene::new().agent(100, AgentEvent::TurnStarted);
    let mut now = record();
    now.last_seq = scene.board.counted;
    now.state.attempts[0].counts = false;
    scene.board.correct(&now);
    assert_eq!(scene.board.state.last_attempt(), now.state.last_attempt());
    let attempts = spent_of_limits(&now, at(100)).into_iter().find(|limit| limit.starts_with("attempts"));
    assert_eq!(attempts.as_deref(), Some("attempts 2 of 10, 1 not counted"));
}

#[test]
fn a_confirmation_takes_the_place_of_the_first_result() {
    let finished = |met| Event::CheckFinished { result: verdict([met, true]).checks[0].clone() };
    let begun = || running().phase(100, Phase::Checking { attempt: no(3) });
    let confirmed = begun().event(110, finished(true)).event(120, finished(false));
    assert_eq!(confirmed.shown(&SMALL), begun().event(110, finished(false)).shown(&SMALL));
}

#[test]
fn within_a_second_nothing_changes_on_the_screen() {
    let scene = running();
    let later = Canvas { now: SMALL.now + Duration::from_millis(999), ..SMALL };
    assert_eq!(scene.board.lines(&SMALL), scene.board.lines(&later));
}

#[test]
fn the_cost_grows_during_the_turn_as_an_estimate_until_the_agent_reports_it() {
    let used = |second: i64, used: Usage, scene: Scene| {
        scene.agent(second, AgentEvent::Usage { model: None, used, context_used: None, context_size: None })
    };
    let shown = |scene: &Scene| scene.shown(&canvas(120, 40));
    let estimate = |micro| Usage { estimate: MicroUsd(micro), ..Usage::default() };
    let scene = used(63, estimate(100_000), running());
    assert!(shown(&scene).contains("~$1.30"), "{}", shown(&scene));
    let scene = used(64, estimate(20_000), scene);
    assert!(shown(&scene).contains("~$1.32"), "{}", shown(&scene));
    let scene = used(65, Usage { cost: MicroUsd(110_000), ..Usage::default() }, scene);
    assert!(shown(&scene).contains(" $1.31") && !shown(&scene).contains("~$"), "{}", shown(&scene));
}

#[test]
fn the_end_of_a_message_is_seen_while_it_is_written() {
    let mut scene = Scene::new();
    scene.board.writing = format!("First I read it.\n{}\nThen I change it.", "long ".repeat(40));
    let shown = scene.shown(&canvas(100, 40));
    assert!(shown.contains("\nwriting") && shown.contains("\n  Then I change it.\n"), "{shown}");
    assert!(!shown.contains("First I read it."), "{shown}");
    let text = "Then I change it.".to_owned();
    let whole = scene.agent(70, AgentEvent::Message { role: towline_core::Role::Assistant, text });
    assert!(!whole.shown(&canvas(100, 40)).contains("Then"), "{}", whole.shown(&canvas(100, 40)));
}

#[test]
fn the_last_line_of_a_running_check_is_seen_and_goes_first_where_there_is_no_room() {
    let started = Event::CheckStarted { name: "tests".into(), process: None };
    let mut scene = running().phase(100, Phase::Checking { attempt: no(3) }).event(110, started);
    scene.board.show_check_line(Some("test greeting ... \u{1b}[2Jok".into()));
    assert!(scene.shown(&SMALL).contains("\n  test greeting ... \u{fffd}[2Jok\n"), "{}", scene.shown(&SMALL));
    let little = scene.shown(&canvas(80, 9));
    assert!(!little.contains("greeting ..."), "{little}");
}

#[test]
fn the_title_has_the_level_of_trust_once_an_agent_has_started() {
    let canvas = Canvas { width: 80, height: 24, now: at(100), paint: Paint::Plain };
    let title = |scene: &Scene| scene.shown(&canvas).lines().next().expect("a title").to_owned();
    assert!(title(&running()).contains(" ── 456789ab ──"), "{}", title(&running()));
    let scene = running().event(60, Event::AttemptStarted { sandbox: None });
    assert!(title(&scene).contains(" ── level 1 · 456789ab ──"), "{}", title(&scene));
    // The verdicts of the earlier attempts of this goal had no sandbox; without them, it is the agent's that counts.
    let mut record = record();
    record.state.attempts.drain(..2);
    let scene = Scene::of(record).event(60, Event::AttemptStarted { sandbox: Some(Sandbox::Bubblewrap) });
    assert!(title(&scene).contains(" ── level 2 (bubblewrap) · 456789ab ──"), "{}", title(&scene));
}
