//! A state as rows: an append writes what it changes, however long the history is, and what is loaded is what was written.

use std::time::Duration;

use rusqlite::Connection;
use towline_core::{
    AgentEvent, AgentName, Attempt, CheckResult, Closed, Commit, Decision, DeliveryState, End, Envelope,
    Event, Goal, GoalId, GoalState, MessageNo, OperatorMessage, Outcome, Question, QuestionNo, Seq, Tokens,
    Unavailable, Usage, Verdict, Work, WorkspaceBinding,
};

use super::{Scratch, number, texts};
use crate::conformance::samples::{append, at, attempt, claimed, goal, happened, launch, question, worker};
use crate::{Append, Lease, Store};

/// What an append may rewrite, in bytes.
const LIMIT: i64 = 4_096;

/// What happens in a goal: its name, and the change of the state.
type Step = (&'static str, fn(&mut GoalState));

/// Steps that bring nothing long.
const SHORT_STEPS: &[Step] = &[
    ("usage", |state| {
        let running = state.attempts.last_mut().expect("an attempt");
        running.usage += Usage { input: Tokens(1_200), ..Usage::default() };
        running.context = Some((Tokens(45_000), Some(Tokens(200_000))));
        running.read_to += 20_000;
    }),
    ("a decision", |state| {
        let running = state.attempts.last_mut().expect("an attempt");
        running.decisions.push(decision());
        state.denials_in_row += 1;
    }),
    ("a short message of the agent", |state| {
        "Next I look at the parser.".clone_into(&mut state.attempts.last_mut().expect("an attempt").text);
    }),
    ("a question", |state| state.questions.push(Question { n: QuestionNo(51), ..question() })),
    ("no answer", |state| {
        state.questions.last_mut().expect("a question").closed = Some(Closed::Withdrawn);
    }),
    ("the operator's message", |state| state.messages.push(message(51))),
    ("it is delivered", |state| {
        let first = state.attempts[0].n;
        state.messages.last_mut().expect("a message").delivery = DeliveryState::Delivered(first);
    }),
    ("the end of the attempt", |state| {
        let running = state.attempts.last_mut().expect("an attempt");
        running.ended_at = Some(at(3));
        running.end = Some(End::Crashed { message: "signal 11".to_owned() });
    }),
];

/// Steps that bring something long, which is written once.
const LONG_STEPS: &[Step] = &[
    ("a long message of the agent", |state| {
        state.attempts.last_mut().expect("an attempt").text = "x".repeat(9_000);
    }),
    ("a verdict", |state| state.attempts.last_mut().expect("an attempt").verdict = Some(verdict())),
    ("its work is checked", |state| {
        let ended = state.attempts.last_mut().expect("an attempt");
        ended.work = Work::Unchecked;
        ended.check_rounds += 1;
    }),
];

#[tokio::test]
async fn what_an_append_rewrites_does_not_grow_with_the_history_of_a_goal() {
    let scratch = Scratch::new();
    let (goal, lease, mut state) = goal_with_history(&scratch, 400).await;
    let store = scratch.store();
    let raw = scratch.raw();
    let mut last = Seq(2);
    // This program has not written the goal before, and compares all of it once.
    for (what, change) in [SHORT_STEPS, LONG_STEPS].concat() {
        change(&mut state);
        raw.execute_batch("DELETE FROM written").expect("nothing is counted yet");
        let step = Append { state: state.clone(), ..append(&goal, lease.generation, last, vec![tokens()]) };
        last = store.append(step).await.expect(what).last_seq;
        let rewritten = bytes(&raw, "change = 'UPDATE'");
        assert!(rewritten < LIMIT, "{what}: {rewritten} bytes are rewritten");
        if SHORT_STEPS.iter().any(|(short, _)| *short == what) {
            let written = bytes(&raw, "name <> 'events'");
            assert!(written < LIMIT, "{what}: {written} bytes are written");
        }
        assert!(bytes(&raw, "name = 'events'") > 0, "the triggers count");
    }
    assert_eq!(scratch.store().load(goal.id).await.expect("it is there").state, state);
}

#[tokio::test]
async fn a_prompt_is_not_written_again_when_its_attempt_has_begun() {
    let scratch = Scratch::new();
    let (goal, lease, state) = goal_with_history(&scratch, 1).await;
    let store = scratch.store();
    let step = |last, effects, settled| Append {
        state: state.clone(),
        effects,
        settled,
        ..append(&goal, lease.generation, Seq(last), vec![tokens()])
    };
    let effect = launch(goal.id, 2, &"x".repeat(50_000));
    let key = effect.key();
    store.append(step(2, vec![effect.clone()], vec![])).await.expect("it fits");
    let raw = scratch.raw();
    raw.execute_batch("DELETE FROM written").expect("nothing is counted yet");
    store.append(step(3, vec![], vec![key])).await.expect("it fits");
    let written = bytes(&raw, "name <> 'events'");
    assert!(written < LIMIT, "{written} bytes are written");
    // Its key means work that is done.
    store.append(step(4, vec![effect], vec![])).await.expect("it fits");
    assert_eq!(store.pending(goal.id).await.expect("an outbox"), vec![]);
}

/// Also when two programs write in turn, neither of which knows what the other wrote, and when lists become shorter.
#[tokio::test]
async fn what_is_loaded_is_what_was_written_last() {
    let scratch = Scratch::new();
    let stores = [scratch.store(), scratch.store()];
    let (goal, lease) = claimed(&stores[0], 1).await;
    let mut random = 7_u64;
    let mut state = GoalState::new(&goal);
    for round in 0..100 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let choice = usize::try_from(random >> 33).expect("it fits");
        change(&mut state, goal.id, choice);
        let writer = &stores[choice / 7 % 2];
        // Without an event, the log shows no change.
        let step = Append { state: state.clone(), ..append(&goal, lease.generation, Seq(1), vec![]) };
        writer.append(step).await.expect("it fits");
        for store in &stores {
            assert_eq!(store.load(goal.id).await.expect("it is there").state, state, "round {round}");
        }
    }
    stores[0].remove(&lease).await.expect("it is ours");
    for table in ["goals", "parts", "positions"] {
        assert_eq!(number(&scratch.raw(), &format!("SELECT COUNT(*) FROM {table}")), 0);
    }
}

#[tokio::test]
async fn a_write_that_was_undone_is_not_taken_for_what_is_stored() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, lease) = claimed(&store, 1).await;
    let with = |attempts| GoalState { attempts, ..GoalState::new(&goal) };
    let running = |n| attempt(goal.id, n, 1, None);
    let step = |state| Append { state, ..append(&goal, lease.generation, Seq(1), vec![]) };
    store.append(step(with(vec![running(1)]))).await.expect("it fits");
    store.append(step(with(vec![running(1), running(2)]))).await.expect_err("two attempts run");
    let next = with(vec![attempt(goal.id, 1, 1, Some(2)), running(2)]);
    store.append(step(next.clone())).await.expect("it fits");
    assert_eq!(scratch.store().load(goal.id).await.expect("it is there").state, next);
}

#[tokio::test]
async fn an_earlier_version_that_has_the_database_open_can_write_no_goal() {
    let scratch = Scratch::new();
    let store = scratch.store();
    claimed(&store, 1).await;
    let raw = scratch.raw();
    for statement in [
        "INSERT INTO goals (id, title, created_at, updated_at, phase, wake_at, last_seq, generation, goal, state)
         SELECT 'new', title, created_at, updated_at, phase, wake_at, last_seq, generation, goal, '{}' FROM goals",
        "UPDATE goals SET updated_at = 'now', phase = 'done', wake_at = NULL, last_seq = 2, state = '{}'",
        "UPDATE goals SET generation = 2",
    ] {
        let refused = raw.execute(statement, []).expect_err("it is refused").to_string();
        assert!(refused.contains("a newer version of Towline has changed this database"), "{refused}");
    }
}

/// A goal with a long prompt, this many attempts and long messages, and triggers that count what is written from now on.
async fn goal_with_history(scratch: &Scratch, attempts: u32) -> (Goal, Lease, GoalState) {
    let store = scratch.store();
    let goal = Goal { prompt: "line\n".repeat(40_000), ..goal(1) };
    let mut state = GoalState::new(&goal);
    store.create(&goal, &state, happened(Event::Created, 0)).await.expect("it is new");
    let worker = worker("one");
    let lease = store.claim(goal.id, &worker, at(0), at(60), None).await.expect("nobody holds it");
    state.attempts = (1..=attempts).map(|n| long_attempt(goal.id, n)).collect();
    state.attempts.last_mut().expect("an attempt").ended_at = None;
    state.questions = (1..=50).map(|n| Question { n: QuestionNo(n), ..question() }).collect();
    state.messages = (1..=50).map(message).collect();
    state.workspace = Some(WorkspaceBinding {
        path: "/somewhere/workspaces/goal".to_owned(),
        branch: Some("towline/goal".to_owned()),
        base: Commit::new("b".repeat(40)),
        setup_changes: (0..200).map(|n| (format!("generated/{n}"), Some("i".repeat(40)))).collect(),
        base_tree: Some("t".to_owned()),
    });
    let step = Append { state: state.clone(), ..append(&goal, lease.generation, Seq(1), vec![tokens()]) };
    store.append(step).await.expect("it fits");
    count_bytes(&scratch.raw());
    (goal, lease, state)
}

fn long_attempt(goal: GoalId, n: u32) -> Attempt {
    Attempt {
        text: "The parser is right now. ".repeat(60),
        decisions: vec![decision(); 8],
        verdict: Some(verdict()),
        changes: "src/parser.rs +12 -3\n".repeat(20),
        ..attempt(goal, n, 1, Some(2))
    }
}

fn decision() -> Decision {
    let (tool, by) = ("Bash".to_owned(), "rule".to_owned());
    Decision { tool, outcome: Outcome::Deny, by, rule: Some("Bash(rm *)".to_owned()) }
}

fn verdict() -> Verdict {
    let check = |name: &str| CheckResult {
        name: name.to_owned(),
        met: false,
        exit_code: Some(101),
        problem: None,
        evidence: "panicked at src/parser.rs\n".repeat(160),
        took: Duration::from_secs(3),
        output: None,
        tests: None,
    };
    Verdict {
        candidate: Commit::new("c".repeat(40)),
        head: None,
        tree: "t".repeat(40),
        restored: (0..30).map(|n| format!("tests/{n}.rs")).collect(),
        checks: ["tests", "lints", "build"].map(check).to_vec(),
        notes: vec!["setup changed Cargo.lock".to_owned()],
        checkout: towline_core::Checkout::Warm,
        sandbox: Some(towline_core::Sandbox::Landlock),
    }
}

fn message(n: u32) -> OperatorMessage {
    let text = "Leave the lexer alone. ".repeat(10);
    OperatorMessage { n: MessageNo(n), text, at: at(1), delivery: DeliveryState::Waiting }
}

fn tokens() -> Envelope {
    let used = Usage { input: Tokens(1_200), ..Usage::default() };
    let event = AgentEvent::Usage { model: None, used, context_used: None, context_size: None };
    happened(Event::Agent { event }, 2)
}

/// One of many changes, among them those after which something is long that was short before.
fn change(state: &mut GoalState, goal: GoalId, choice: usize) {
    let size = choice / 11 % 5 * 150;
    match choice % 11 {
        0 | 1 => {
            let n = u32::try_from(state.attempts.len()).expect("few") + 1;
            state.attempts.push(long_attempt(goal, n));
        }
        2 => drop(state.attempts.pop()),
        3 => state.messages.push(message(1)),
        4 => state.messages.truncate(1),
        5 => state.questions.push(question()),
        6 => state.branch = Some("b".repeat(size)),
        7 => {
            let agent = AgentName::new("a/b~c");
            let unavailable = Unavailable { end: "e".repeat(size), until: None, guessed: true };
            state.unavailable.insert(agent, unavailable);
        }
        8 => state.errors_in_row += 1,
        _ => {
            let count = state.attempts.len().max(1);
            if let Some(attempt) = state.attempts.get_mut(choice / 13 % count) {
                attempt.text = "t".repeat(size);
                attempt.decisions.truncate(choice / 17 % 9);
                attempt.verdict = (choice.is_multiple_of(2)).then(verdict);
            }
        }
    }
}

/// Counts the bytes of each row that is written from now on, in every table.
fn count_bytes(raw: &Connection) {
    let tables = texts(
        raw,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'refinery%' AND name NOT LIKE 'sqlite%'",
    );
    let mut sql = "CREATE TABLE written (name TEXT, change TEXT, bytes INTEGER);".to_owned();
    for table in tables {
        let columns = texts(raw, &format!("SELECT name FROM pragma_table_info('{table}')"));
        let sizes: Vec<String> =
            columns.iter().map(|column| format!("COALESCE(length(NEW.\"{column}\"), 0)")).collect();
        for change in ["INSERT", "UPDATE"] {
            sql += &format!(
                "CREATE TRIGGER count_{table}_{change} AFTER {change} ON {table} BEGIN
                     INSERT INTO written VALUES ('{table}', '{change}', {});
                 END;",
                sizes.join(" + ")
            );
        }
    }
    raw.execute_batch(&sql).expect("triggers");
}

fn bytes(raw: &Connection, which: &str) -> i64 {
    number(raw, &format!("SELECT COALESCE(SUM(bytes), 0) FROM written WHERE {which}"))
}
