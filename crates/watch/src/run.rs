//! The loop: waits for a key, a reply, an event or a time, passes it to the model, and draws what follows.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures::StreamExt;
use jiff::Timestamp;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use towline_api::{NewAnswer, NewMerge, NewMessage, NewRetry};

use crate::client::{Client, Discover, Failure, PATIENCE, PATIENCE_WITH_CHECKS};
use crate::draw::{Look, draw};
use crate::feed::follow;
use crate::model::{Act, Input, List, Model, Part, Proof, Reply, Request};
use crate::screen::Screen;

/// How many goals are read at once.
const GOALS: usize = 100;
/// How many inputs wait for the model. Whoever sends more waits.
const INPUTS: usize = 256;
/// How many inputs are taken before the screen is drawn.
const BURST: usize = 512;
/// The shortest time between two screens.
const STEADY: Duration = Duration::from_millis(33);

const ACTIVE: &str = "queued,preparing,running,stopping,checking,sleeping,limited,paused,blocked,escalated";
const FAILED: &str = "failed";
const ENDED: &str = "done,unproven,cancelled";

/// What the dashboard gets from the program around it.
pub struct Dashboard {
    /// Finds the server, again and again: it may be started again elsewhere.
    pub discover: Discover,
    /// The id of the goal that is opened first.
    pub goal: Option<String>,
    pub look: Look,
    pub now: fn() -> Timestamp,
    /// Suspends this process until the shell continues it.
    pub suspend: fn(),
    /// Makes the keys of requests unlike those of every other dashboard.
    pub nonce: String,
}

/// Why the dashboard has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The person left it, or the terminal went away.
    Person,
    /// SIGTERM ended it.
    Terminated,
}

/// Runs the dashboard until the person leaves it.
pub async fn run(dashboard: Dashboard) -> io::Result<Left> {
    let client = Client::new(dashboard.discover).map_err(io::Error::other)?;
    let mut signals = Signals::listen()?;
    let mut screen = Screen::open()?;
    let mut model = Model::new(dashboard.nonce);
    dashboard.goal.into_iter().for_each(|goal| model.open_goal(goal));
    let (inputs, mut arriving) = channel(INPUTS);
    let mut work = Work { client, inputs, requests: JoinSet::new(), log: JoinSet::new() };
    work.follow_pool();
    let mut keys = EventStream::new();
    loop {
        let now = (dashboard.now)();
        for request in model.requests() {
            match request {
                Request::Leave => return Ok(Left::Person),
                Request::Redraw => screen.redraw()?,
                Request::Suspend => {
                    // The stream of keys stays: one that is made again sometimes hears nothing. The whole process rests meanwhile.
                    screen.suspend(dashboard.suspend)?;
                }
                request => work.start(request),
            }
        }
        screen.name(title(&model, now))?;
        screen.terminal.draw(|frame| draw(frame, &mut model, dashboard.look, now))?;
        let due = model.due(now).map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
        let next = tokio::select! {
            event = keys.next() => match event {
                Some(Ok(event)) => Next::Event(event),
                // The terminal has gone away.
                Some(Err(_)) | None => return Ok(Left::Person),
            },
            signal = signals.next() => signal,
            Some(input) = arriving.recv() => Next::Input(input),
            () = sleep(due) => Next::Input(Input::Due),
            Some(_) = work.requests.join_next() => continue,
        };
        match next {
            Next::Event(event) => {
                of_terminal(event).into_iter().for_each(|input| model.take(input, (dashboard.now)()))
            }
            Next::Suspend => screen.suspend(dashboard.suspend)?,
            Next::Leave(left) => return Ok(left),
            Next::Input(input) => {
                let now = (dashboard.now)();
                model.take(input, now);
                take_burst(&mut model, &mut arriving, now).await;
            }
        }
    }
}

/// Takes what else has arrived, so that a flood of events is drawn as one.
async fn take_burst(model: &mut Model, arriving: &mut Receiver<Input>, now: Timestamp) {
    let mut taken = 0;
    while let Ok(input) = arriving.try_recv() {
        model.take(input, now);
        taken += 1;
        if taken == BURST {
            break;
        }
    }
    if taken > 1 {
        tokio::time::sleep(STEADY).await;
    }
}

/// What the loop wakes up for.
enum Next {
    Event(Event),
    Input(Input),
    Suspend,
    Leave(Left),
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    suspend: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            suspend: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Next {
        tokio::select! {
            _ = self.interrupt.recv() => Next::Leave(Left::Person),
            _ = self.hangup.recv() => Next::Leave(Left::Person),
            _ = self.terminate.recv() => Next::Leave(Left::Terminated),
            _ = self.suspend.recv() => Next::Suspend,
        }
    }
}

async fn sleep(due: Option<Duration>) {
    match due {
        Some(due) => tokio::time::sleep(due).await,
        None => std::future::pending().await,
    }
}

/// What a terminal reports, as far as it matters.
fn of_terminal(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(key)),
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}

fn title(model: &Model, now: Timestamp) -> String {
    match model.needs(now) {
        0 => "towline".to_owned(),
        needs => format!("({needs}) towline"),
    }
}

/// Requests under way, and streams of events.
struct Work {
    client: Client,
    inputs: Sender<Input>,
    requests: JoinSet<()>,
    /// The log of the goal that is open: at most one.
    log: JoinSet<()>,
}

impl Work {
    fn follow_pool(&mut self) {
        let (client, inputs) = (self.client.clone(), self.inputs.clone());
        self.requests.spawn(follow(client, "/events".to_owned(), None, inputs, Input::Pool));
    }

    fn start(&mut self, request: Request) {
        match request {
            Request::Follow(goal, after) => {
                self.log = JoinSet::new();
                let (client, inputs) = (self.client.clone(), self.inputs.clone());
                let path = format!("/goals/{goal}/events");
                let news = move |news| Input::Goal(goal.clone(), news);
                self.log.spawn(follow(client, path, Some(after), inputs, news));
            }
            Request::Unfollow => self.log = JoinSet::new(),
            request => {
                let (client, inputs) = (self.client.clone(), self.inputs.clone());
                self.requests.spawn(async move {
                    if let Some(reply) = carry_out(&client, request).await {
                        // Nobody waits for it when the dashboard is left.
                        let _ = inputs.send(Input::Reply(reply)).await;
                    }
                });
            }
        }
    }
}

async fn carry_out(client: &Client, request: Request) -> Option<Reply> {
    Some(match request {
        Request::Goals(list, cursor) => {
            Reply::Goals(list, client.get(&goals_path(list, cursor.as_deref())).await)
        }
        Request::Goal(id) => {
            let read = client.goal(&id).await.map(Box::new);
            Reply::Goal(id, read)
        }
        Request::Questions => Reply::Questions(client.get("/questions").await),
        Request::Queue => Reply::Queue(client.get("/queue").await.map(Box::new)),
        Request::Today => Reply::Today(client.get("/cost?by=day&since=today").await),
        Request::Accounts => Reply::Accounts(client.get("/accounts").await),
        Request::Events(goal, part) => {
            let (after, limit) = match part {
                Part::Older { after, limit } => (after, limit),
                Part::Newer { after } => (after, crate::model::PAGE),
            };
            let page = client.get(&format!("/goals/{goal}/events?cursor={after}&limit={limit}")).await;
            Reply::Events(goal, part, page)
        }
        Request::Act { goal, act, key } => act_on(client, goal, act, key).await,
        Request::Follow(..) | Request::Unfollow | Request::Suspend | Request::Redraw | Request::Leave => {
            return None;
        }
    })
}

/// Where a page of a list is read.
fn goals_path(list: List, cursor: Option<&str>) -> String {
    let phases = match list {
        List::Active => ACTIVE,
        List::Failed => FAILED,
        List::Ended => ENDED,
    };
    let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
    format!("/goals?phase={phases}&limit={GOALS}{cursor}")
}

/// How long the reply to a request may take.
const fn patience(act: &Act) -> Duration {
    match act {
        Act::PlanMerge(_) | Act::Merge { .. } => PATIENCE_WITH_CHECKS,
        _ => PATIENCE,
    }
}

async fn act_on(client: &Client, goal: String, act: Act, key: String) -> Reply {
    let path = |name: &str| format!("/goals/{goal}/{name}");
    let nothing = json!({});
    let patience = patience(&act);
    let replied = match &act {
        Act::PlanMerge(proof) | Act::Merge { proof, .. } => {
            let planned = match &act {
                Act::Merge { into, candidate, .. } => Some((into.clone(), candidate.clone())),
                _ => None,
            };
            let (into, candidate) = planned.unzip();
            let sent = NewMerge {
                into,
                candidate,
                unproven: *proof == Proof::Unproven,
                dry_run: matches!(act, Act::PlanMerge(_)),
                ..NewMerge::default()
            };
            let merged = client.post(&path("merge"), &sent, &key, patience).await.map(Box::new);
            return Reply::Merged(goal, act, merged);
        }
        Act::Answer { question, text } => {
            let sent = NewAnswer { text: text.clone(), question: Some(*question) };
            client.post(&path("answer"), &sent, &key, patience).await
        }
        Act::Tell(text) => {
            client.post(&path("tell"), &NewMessage { text: text.clone() }, &key, patience).await
        }
        Act::Pause => client.post(&path("pause"), &nothing, &key, patience).await,
        Act::Resume => client.post(&path("resume"), &nothing, &key, patience).await,
        Act::Cancel => client.post(&path("cancel"), &nothing, &key, patience).await,
        Act::Retry { budget } => {
            let budget = budget.iter().map(|(axis, value)| (axis.clone(), json!(value))).collect();
            client.post(&path("retry"), &NewRetry { budget, ..NewRetry::default() }, &key, patience).await
        }
    };
    let replied: Result<_, Failure> = replied;
    Reply::Acted(goal, act, key, replied.map(Box::new))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::Place;

    /// The body of the request that this act sends.
    async fn sent(act: Act) -> Value {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let discover: Discover =
            Arc::new(move || Ok(Place { address: address.clone(), token: "t".to_owned() }));
        let client = Client::new(discover).expect("a client");
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a request");
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"}") {
                assert!(stream.read_buf(&mut bytes).await.expect("bytes") > 0, "{bytes:?}");
            }
            stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await.expect("a reply");
            let text = String::from_utf8(bytes).expect("text");
            serde_json::from_str(text.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON")
        };
        tokio::join!(act_on(&client, "1".to_owned(), act, "key".to_owned()), server).1
    }

    fn merge(proof: Proof) -> Act {
        Act::Merge { proof, into: "main".to_owned(), candidate: "1a2b".to_owned() }
    }

    #[tokio::test]
    async fn a_merge_names_the_branch_and_the_work_of_its_plan() {
        let plan = sent(Act::PlanMerge(Proof::Checked)).await;
        assert_eq!(
            (&plan["into"], &plan["candidate"], &plan["dry_run"]),
            (&Value::Null, &Value::Null, &json!(true))
        );
        let merge = sent(merge(Proof::Unproven)).await;
        assert_eq!((&merge["into"], &merge["candidate"]), (&json!("main"), &json!("1a2b")));
        assert_eq!((&merge["dry_run"], &merge["unproven"]), (&json!(false), &json!(true)));
    }

    #[test]
    fn failed_goals_have_a_list_of_their_own_and_each_phase_is_in_one_list() {
        assert_eq!(goals_path(List::Failed, Some("c")), "/goals?phase=failed&limit=100&cursor=c");
        let lists = [List::Active, List::Failed, List::Ended].map(|list| goals_path(list, None));
        for phase in towline_core::Phase::names() {
            let has_it = |path: &&String| {
                let phases = path.split(['=', '&']).nth(1).unwrap_or_default();
                phases.split(',').any(|listed| listed == *phase)
            };
            assert_eq!(lists.iter().filter(has_it).count(), 1, "{phase}");
        }
    }

    #[test]
    fn only_a_merge_may_take_hours() {
        for (act, wanted) in [
            (merge(Proof::Checked), PATIENCE_WITH_CHECKS),
            (Act::PlanMerge(Proof::Checked), PATIENCE_WITH_CHECKS),
            (Act::Tell("go on".to_owned()), PATIENCE),
            (Act::Answer { question: 1, text: "yes".to_owned() }, PATIENCE),
            (Act::Cancel, PATIENCE),
        ] {
            assert_eq!(patience(&act), wanted, "{act:?}");
        }
    }
}
