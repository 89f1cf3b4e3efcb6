//! Notifications reach the user's webhook and command: signed, by channel, and again if nobody accepted them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request as HttpRequest, State as Shared};
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use ring::hmac;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use towline_app::{Context, Request, draft};
use towline_core::{
    About, Ask, AttemptNo, Axis, Choice, Closed, Envelope, EscalationReason, Event, FailureReason, Goal,
    GoalState, Part, Phase, Question, QuestionNo, Source, StopWhy, Stopping, hexadecimal,
};
use towline_engine::{Clock, SystemClock};
use towline_server::Courier;
use towline_store::{Append, Lease, MemoryStore, Store, WorkerName};
use towline_testkit::scratch;

use crate::server::trust;

const SECRET: &str = "between the two of us";

/// One call of the webhook.
#[derive(Debug, Clone)]
struct Call {
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Call {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// Answers with these, one after the other, and then with success.
#[derive(Default)]
struct Receiver {
    calls: Mutex<Vec<Call>>,
    answers: Mutex<Vec<StatusCode>>,
}

impl Receiver {
    fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("no panic").clone()
    }
}

async fn receive(Shared(receiver): Shared<Arc<Receiver>>, request: HttpRequest) -> StatusCode {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
    let text = |value: &axum::http::HeaderValue| value.to_str().expect("text").to_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    let call = Call {
        path: parts.uri.path().to_owned(),
        headers: headers.collect(),
        body: String::from_utf8(body.to_vec()).expect("text"),
    };
    receiver.calls.lock().expect("no panic").push(call);
    receiver.answers.lock().expect("no panic").pop().unwrap_or(StatusCode::NO_CONTENT)
}

/// A user with a webhook, and goals whose notifications wait.
struct Desk {
    receiver: Arc<Receiver>,
    store: MemoryStore,
    context: Context,
    home: scratch::Home,
    project: scratch::Project,
    _served: JoinSet<()>,
}

impl Desk {
    /// With this configuration, in which HOOK is the address of the webhook, and HEARD a file.
    async fn new(configuration: &str) -> Self {
        let (home, project) = (scratch::Home::new(), scratch::Project::new());
        project.write(
            "towline.toml",
            "[agents.own]\nkind = \"script\"\ncommand = [\"/bin/sh\"]\n[defaults]\nagents = [\"own\"]\n",
        );
        project.commit("the first one");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let hook = format!("http://{}", listener.local_addr().expect("an address"));
        let user = home.config().join("towline");
        std::fs::create_dir_all(&user).expect("a folder");
        let heard = heard(&home).display().to_string();
        let configuration = configuration.replace("HOOK/", &format!("{hook}/")).replace("HEARD", &heard);
        std::fs::write(user.join("config.toml"), configuration).expect("written");
        let receiver = Arc::new(Receiver::default());
        let routes = Router::new().fallback(receive).with_state(Arc::clone(&receiver));
        let mut served = JoinSet::new();
        served.spawn(async { axum::serve(listener, routes).await.expect("served") });
        let mut environment: BTreeMap<String, String> = home.env().into_iter().collect();
        environment.insert("HOOK_SECRET".to_owned(), SECRET.to_owned());
        let context = Context::new(environment, project.path().to_path_buf(), PathBuf::from("/bin/true"));
        trust(&context);
        Self { receiver, store: MemoryStore::default(), context, home, project, _served: served }
    }

    fn courier(&self, now: fn() -> Timestamp) -> Courier {
        Courier::new(self.context.clone(), Arc::new(self.store.clone()), now).expect("a courier")
    }

    /// Runs a courier until each notification that is due was tried.
    async fn deliver(&self, now: fn() -> Timestamp) {
        let (_changed, changes) = watch::channel(());
        let (stop, stopped) = oneshot::channel::<()>();
        let tried = async {
            while self.is_due(now()).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stop.send(()).expect("a courier");
        };
        tokio::join!(self.courier(now).run(changes, async { stopped.await.expect("an end") }), tried);
    }

    async fn is_due(&self, at: Timestamp) -> bool {
        !self.store.notices(at, 1).await.expect("read").is_empty()
    }

    /// Asserts that the next try is so many seconds after this time.
    async fn assert_next_try(&self, now: Timestamp, seconds: i64) {
        let after = |seconds| now.checked_add(SignedDuration::from_secs(seconds)).expect("in range");
        assert!(!self.is_due(after(seconds - 1)).await && self.is_due(after(seconds)).await, "{seconds}");
    }

    /// A goal that came over this channel and has been in these phases.
    async fn goal(&self, channel: &str, phases: &[Phase]) -> Goal {
        let (goal, lease) = self.claimed(channel).await;
        self.enter(&goal, &lease, &GoalState::new(&goal), phases).await;
        goal
    }

    /// A goal that came over this channel, and the lease on it.
    async fn claimed(&self, channel: &str) -> (Goal, Lease) {
        let request = Request { prompt: Some("Fix it".to_owned()), ..Request::default() };
        let now = SystemClock.now();
        let mut goal = draft(&self.context, &request, now).await.expect("a draft").goal;
        channel.clone_into(&mut goal.origin.channel);
        goal.metadata = [("thread".to_owned(), json!("1234.5"))].into_iter().collect();
        let created = Envelope::new(goal.id, now, Source::Operator, Event::Created);
        self.store.create(&goal, &GoalState::new(&goal), created).await.expect("stored");
        let until = now.checked_add(SignedDuration::from_secs(60)).expect("in range");
        let lease = self.store.claim(goal.id, &WorkerName("w".to_owned()), now, until, None).await;
        (goal, lease.expect("a lease"))
    }

    /// Has the goal enter these phases; it is in this state then.
    async fn enter(&self, goal: &Goal, lease: &Lease, state: &GoalState, phases: &[Phase]) {
        let now = SystemClock.now();
        let record = self.store.load(goal.id).await.expect("a goal");
        let entered = |phase: &Phase| {
            Envelope::new(goal.id, now, Source::Operator, Event::PhaseChanged { phase: phase.clone() })
        };
        let append = Append {
            goal: goal.id,
            generation: lease.generation,
            expected: record.last_seq,
            events: phases.iter().map(entered).collect(),
            state: state.clone(),
            effects: Vec::new(),
            settled: Vec::new(),
            notifies: true,
            at: now,
        };
        self.store.append(append).await.expect("appended");
    }
}

fn assert_signed(call: &Call) {
    let signed = format!("{}.{}", call.headers["towline-timestamp"], call.body);
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let expected = format!("sha256={}", hexadecimal(hmac::sign(&key, signed.as_bytes()).as_ref()));
    assert_eq!(call.headers["towline-signature"], expected);
}

#[tokio::test]
async fn each_kind_reaches_the_webhook_of_its_channel_signed_with_origin_and_metadata() {
    let desk = Desk::new(
        "[notify]\nwebhook = \"HOOK/all\"\nsecret_env = \"HOOK_SECRET\"\n[notify.channels.slack]\nwebhook = \"HOOK/slack\"\n",
    )
    .await;
    let until = SystemClock.now();
    let phases = [
        Phase::Escalated { reason: EscalationReason::NoAgent },
        Phase::Limited { until, guessed: false },
        Phase::Stopping(Stopping { attempt: Some(AttemptNo::FIRST), why: StopWhy::SharedBudget }),
        Phase::Queued,
        Phase::Unproven,
        Phase::Done,
    ];
    let slack = desk.goal("slack", &phases).await;
    let other =
        desk.goal("cli", &[Phase::Failed { reason: FailureReason::Budget { axis: Axis::Usd } }]).await;
    desk.deliver(|| SystemClock.now()).await;
    assert!(!desk.is_due(Timestamp::MAX).await, "each is delivered once");
    let calls = desk.receiver.calls();
    calls.iter().for_each(assert_signed);
    let mut kinds: Vec<_> =
        calls.iter().map(|call| (call.path.clone(), call.headers["towline-event"].clone())).collect();
    kinds.sort();
    let expected = [
        ("/all", "failed"),
        ("/slack", "budget"),
        ("/slack", "done"),
        ("/slack", "limited"),
        ("/slack", "needs_you"),
        ("/slack", "unproven"),
    ];
    assert_eq!(kinds, expected.map(|(path, kind)| (path.to_owned(), kind.to_owned())));
    let deliveries: std::collections::BTreeSet<_> =
        calls.iter().map(|call| call.headers["towline-delivery"].clone()).collect();
    assert_eq!(deliveries.len(), calls.len(), "each has a number of its own");
    for call in &calls {
        let (body, goal) = (call.json(), if call.path == "/all" { &other } else { &slack });
        assert_eq!(body["kind"], call.headers["towline-event"]);
        assert_eq!(body["goal"], goal.id.to_string());
        assert_eq!(body["origin"]["channel"], goal.origin.channel);
        assert_eq!(body["metadata"]["thread"], "1234.5");
        assert_eq!(body["repository"], desk.project.path().display().to_string());
    }
}

/// Moved by the test below, which alone reads it.
static SECONDS: AtomicI64 = AtomicI64::new(4_000_000_000);

fn set_clock() -> Timestamp {
    Timestamp::from_second(SECONDS.load(Ordering::SeqCst)).expect("a time")
}

#[tokio::test]
async fn a_webhook_that_failed_is_tried_again_also_by_the_next_server_and_the_command_ran_once() {
    let desk = Desk::new("[notify]\nwebhook = \"HOOK/\"\ncommand = \"cat >> 'HEARD'\"\n").await;
    *desk.receiver.answers.lock().expect("no panic") =
        vec![StatusCode::INTERNAL_SERVER_ERROR, StatusCode::TEMPORARY_REDIRECT];
    desk.goal("cli", &[Phase::Done]).await;
    for pause in [5, 10] {
        // Each time another courier, as after a restart of the server.
        desk.deliver(set_clock).await;
        desk.assert_next_try(set_clock(), pause).await;
        SECONDS.fetch_add(pause, Ordering::SeqCst);
    }
    desk.deliver(set_clock).await;
    assert!(!desk.is_due(Timestamp::MAX).await, "it is settled");
    let calls = desk.receiver.calls();
    assert_eq!(calls.len(), 3);
    assert!(
        calls.iter().all(|call| call.headers["towline-delivery"] == calls[0].headers["towline-delivery"])
    );
    assert!(!calls[0].headers.contains_key("towline-signature"), "no secret is set");
    let heard = std::fs::read_to_string(heard(&desk.home)).expect("the command ran");
    assert_eq!(heard.matches("\"kind\"").count(), 1, "{heard}");
}

/// The state of a goal that asks for a colour until this time.
fn asking(goal: &Goal, until: Timestamp) -> (GoalState, Phase) {
    let choice = |label: &str| Choice { label: label.to_owned(), description: String::new() };
    let part =
        Part { text: "Which colour?".to_owned(), options: vec![choice("red"), choice("blue")], many: false };
    let ask =
        Ask { request: None, about: About::Choice { parts: vec![part] }, default: None, patience: None };
    let question = Question {
        n: QuestionNo(1),
        attempt: AttemptNo::FIRST,
        ask,
        asked_at: until,
        deadline: Some(until),
        closed: None,
    };
    let phase = Phase::Blocked { question: question.n, attempt: None, until: Some(until) };
    (GoalState { phase: phase.clone(), questions: vec![question], ..GoalState::new(goal) }, phase)
}

#[tokio::test]
async fn an_open_question_is_sent_with_its_options_and_deadline_and_an_answered_one_is_not_sent_again() {
    let desk = Desk::new("[notify]\nwebhook = \"HOOK/\"\n").await;
    *desk.receiver.answers.lock().expect("no panic") = vec![StatusCode::INTERNAL_SERVER_ERROR];
    let (goal, lease) = desk.claimed("cli").await;
    let until = "2126-11-18T14:05:00Z".parse().expect("a time");
    let (mut state, phase) = asking(&goal, until);
    desk.enter(&goal, &lease, &state, std::slice::from_ref(&phase)).await;
    desk.deliver(question_clock).await;
    assert!(desk.is_due(Timestamp::MAX).await, "it is tried again");
    let calls = desk.receiver.calls();
    let body = calls[0].json();
    let text = body["text"].as_str().expect("a text");
    let head = format!("Fix it ({}) needs an answer by 2126-11-18 ", goal.id.short());
    assert!(text.starts_with(&head) && text.ends_with(": Which colour? (red, blue)"), "{text}");
    assert_eq!(body["question"], "Which colour?");

    // The answer comes before the next try: that it is needed is not true any more.
    state.questions[0].closed = Some(Closed::Withdrawn);
    state.phase = Phase::Done;
    desk.enter(&goal, &lease, &state, &[Phase::Done]).await;
    QUESTION_SECONDS.fetch_add(100, Ordering::SeqCst);
    desk.deliver(question_clock).await;
    let kinds: Vec<_> =
        desk.receiver.calls().iter().map(|call| call.headers["towline-event"].clone()).collect();
    assert_eq!(kinds, ["needs_you", "done"]);
    assert!(!desk.is_due(Timestamp::MAX).await, "nothing is left");
}

#[tokio::test]
async fn a_question_is_announced_once_also_when_its_agent_ends_while_it_is_open() {
    let desk = Desk::new("[notify]\nwebhook = \"HOOK/\"\n").await;
    let (goal, lease) = desk.claimed("cli").await;
    let (mut state, gone) = asking(&goal, "2126-11-18T14:05:00Z".parse().expect("a time"));
    let alive = Phase::Blocked { question: QuestionNo(1), attempt: Some(AttemptNo::FIRST), until: None };
    desk.enter(&goal, &lease, &state, &[alive, gone]).await;
    desk.deliver(|| SystemClock.now()).await;
    assert_eq!(desk.receiver.calls().len(), 1);

    let second = Question { n: QuestionNo(2), ..state.questions[0].clone() };
    state.questions[0].closed = Some(Closed::Withdrawn);
    state.questions.push(second);
    let phase = Phase::Blocked { question: QuestionNo(2), attempt: None, until: None };
    desk.enter(&goal, &lease, &state, &[phase]).await;
    desk.deliver(|| SystemClock.now()).await;
    assert_eq!(desk.receiver.calls().len(), 2, "another question is another notification");
}

#[tokio::test]
async fn a_command_that_hangs_holds_up_no_notification_of_another_goal() {
    let desk = Desk::new(
        "[notify]\nwebhook = \"HOOK/\"\n[notify.channels.slow]\ncommand = \"touch 'HEARD.begun'; until [ -e 'HEARD' ]; do sleep 0.05; done\"\n",
    )
    .await;
    let file = heard(&desk.home);
    let slow = desk.goal("slow", &[Phase::Unproven, Phase::Done]).await;
    let (changed, changes) = watch::channel(());
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(desk.courier(|| SystemClock.now()).run(changes, async { stopped.await.expect("an end") }));
    until(|| file.with_extension("begun").exists()).await;
    let fast = desk.goal("cli", &[Phase::Done]).await;
    changed.send(()).expect("a courier");
    until(|| !desk.receiver.calls().is_empty()).await;
    std::fs::write(&file, "").expect("written");
    until(|| desk.receiver.calls().len() == 3).await;
    let calls = desk.receiver.calls();
    let goals: Vec<_> = calls.iter().map(|call| call.json()["goal"].clone()).collect();
    assert_eq!(goals, [&fast, &slow, &slow].map(|goal| json!(goal.id.to_string())));
    let kinds: Vec<_> = calls.iter().map(|call| call.headers["towline-event"].as_str()).collect();
    assert_eq!(kinds, ["done", "unproven", "done"], "those of one goal keep their order");
    stop.send(()).expect("a courier");
    tasks.join_all().await;
}

#[tokio::test]
async fn a_courier_that_ends_waits_for_the_command_that_runs_and_starts_no_other() {
    let command = "touch 'HEARD.begun'; until [ -e 'HEARD' ]; do sleep 0.05; done; echo run >> 'HEARD.runs'";
    let desk = Desk::new(&format!("[notify]\ncommand = \"{command}\"\n")).await;
    let file = heard(&desk.home);
    desk.goal("cli", &[Phase::Unproven, Phase::Done]).await;
    let (_changed, changes) = watch::channel(());
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(desk.courier(|| SystemClock.now()).run(changes, async { stopped.await.expect("an end") }));
    until(|| file.with_extension("begun").exists()).await;
    stop.send(()).expect("a courier");
    std::fs::write(&file, "").expect("written");
    tasks.join_all().await;
    assert_eq!(std::fs::read_to_string(file.with_extension("runs")).expect("it ran"), "run\n");
    assert_eq!(desk.store.notices(Timestamp::MAX, 9).await.expect("read").len(), 1, "the second one");
}

#[tokio::test]
async fn a_command_runs_once_also_when_the_store_cannot_record_it_for_a_while() {
    let desk = Desk::new("[notify]\ncommand = \"echo run >> 'HEARD'\"\n").await;
    let file = heard(&desk.home);
    desk.goal("cli", &[Phase::Done]).await;
    desk.store.refuse_outcomes(true);
    let healed = async {
        until(|| file.exists()).await;
        // The record fails meanwhile, and is tried again after seconds.
        tokio::time::sleep(Duration::from_secs(1)).await;
        desk.store.refuse_outcomes(false);
    };
    tokio::join!(desk.deliver(|| SystemClock.now()), healed);
    assert_eq!(std::fs::read_to_string(&file).expect("it ran"), "run\n");
    assert!(!desk.is_due(Timestamp::MAX).await, "it is settled");
}

#[tokio::test]
async fn a_secret_that_is_added_later_signs_without_a_restart() {
    let mut desk = Desk::new("[notify]\nwebhook = \"HOOK/\"\nsecret_env = \"LATER_SECRET\"\n").await;
    desk.context = desk.context.for_server().expect("a context");
    desk.goal("cli", &[Phase::Done]).await;
    let file = desk.context.environment_file().expect("a place");
    towline_files::replace(&file, format!("LATER_SECRET={SECRET}\n").as_bytes()).expect("written");
    desk.deliver(|| SystemClock.now()).await;
    let calls = desk.receiver.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_signed(&calls[0]);
}

/// Waits until this is so, for less time than a command may take.
async fn until(is_so: impl Fn() -> bool) {
    let waits = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.expect("in time");
}

/// Moved by a test above, which alone reads it.
static QUESTION_SECONDS: AtomicI64 = AtomicI64::new(4_000_000_000);

fn question_clock() -> Timestamp {
    Timestamp::from_second(QUESTION_SECONDS.load(Ordering::SeqCst)).expect("a time")
}

#[tokio::test]
async fn a_webhook_is_not_called_without_the_signature_that_its_receiver_expects() {
    let desk = Desk::new("[notify]\nwebhook = \"HOOK/\"\nsecret_env = \"NOT_SET\"\n").await;
    desk.goal("cli", &[Phase::Done]).await;
    desk.deliver(|| SystemClock.now()).await;
    assert!(desk.is_due(Timestamp::MAX).await, "it is tried again");
    assert!(desk.receiver.calls().is_empty());
}

fn heard(home: &scratch::Home) -> PathBuf {
    home.path().join("heard")
}
