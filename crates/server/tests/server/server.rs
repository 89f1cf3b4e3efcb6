//! A server with its state directory, a project and a store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use towline_app::{Context, Request, State, accept, draft, widening_file};
use towline_core::{
    AgentName, Caps, Envelope, Event, Goal, GoalId, GoalState, Inherited, MicroUsd, Phase, Source,
};
use towline_engine::{
    Clock, Dispatching, Engine, EngineSettings, Home, Limits, PoolRules, ProjectRules, Reads, Resolved,
    Resolver, SystemClock, Unresolved,
};
use towline_process::SupervisorProgram;
use towline_server::{OperatorToken, ServerSettings, serve};
use towline_store::{Append, GoalRecord, MemoryStore, SqliteStore, Store, WorkerName};
use towline_testkit::scratch;

use crate::client::{Ask, Client};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Sends a request from a process of its own.
const ASK: &str = r#"
exec 3<>/dev/tcp/127.0.0.1/$PORT
printf '%s\r\n' "$METHOD $REQUEST HTTP/1.1" "host: localhost" "authorization: Bearer $TOKEN" "connection: close" \
    "content-type: application/json" "content-length: $LENGTH" "" >&3
printf '%s' "$BODY" >&3
cat <&3
"#;

/// Accepts what the file of the context's project sets.
pub(crate) fn trust(context: &Context) {
    let file = widening_file(context, &context.directory).expect("readable").expect("it has an agent");
    accept(context, &file, SystemClock.now()).expect("recorded");
}

/// Nothing starts for any goal.
struct NoProject;

impl Resolver for NoProject {
    fn resolve(&self, _goal: &Goal) -> Result<Resolved, Unresolved> {
        Ok(Resolved::default())
    }
}

/// A pool in which no goal may run.
#[derive(Default)]
struct NoRoom(Reads);

impl PoolRules for NoRoom {
    fn limits(&self, now: Timestamp) -> Limits {
        let tomorrow = now.checked_add(SignedDuration::from_hours(24)).expect("in range");
        let caps = Caps { pool: 0, ..Caps::default() };
        Limits { caps, day: None, pool: None, today: (now, tomorrow), free_space: 0 }
    }

    fn project(&self, _project: &str, _agents: &BTreeSet<AgentName>) -> ProjectRules {
        ProjectRules::default()
    }

    fn last_budget(&self, _project: &str) -> Option<MicroUsd> {
        None
    }

    fn files(&self, _project: Option<&str>) -> BTreeSet<PathBuf> {
        BTreeSet::new()
    }

    fn reads(&self) -> &Reads {
        &self.0
    }

    fn problem(&self) -> Option<String> {
        None
    }

    fn inherited(&self, _goal: &Goal, _prerequisites: &[GoalRecord]) -> Result<Inherited, String> {
        Ok(Inherited::default())
    }
}

/// A running server; gone with this.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) home: Home,
    pub(crate) project: scratch::Project,
    /// An engine of another process, as far as the server can see. It drives nothing.
    /// The engine of the server.
    pub(crate) worker: WorkerName,
    neighbour: Engine,
    context: Context,
    _dirs: scratch::Home,
    stop: Option<oneshot::Sender<()>>,
    tasks: JoinSet<std::io::Result<()>>,
}

impl Server {
    /// Accepts what the file of its project sets now.
    pub(crate) fn trust(&self) {
        trust(&self.context);
    }

    /// With a store in memory.
    pub(crate) async fn start() -> Self {
        Self::start_on(|_| Arc::new(MemoryStore::default())).await
    }

    /// With the store that `towline up` has.
    pub(crate) async fn start_on_disk() -> Self {
        Self::start_on(|home| Arc::new(SqliteStore::open(&home.database()).expect("a store"))).await
    }

    async fn start_on(store: impl FnOnce(&Home) -> Arc<dyn Store>) -> Self {
        let (dirs, project) = (scratch::Home::new(), scratch::Project::new());
        project.write(
            "towline.toml",
            "[defaults]\nagents = [\"own\"]\n[agents.own]\nkind = \"script\"\ncommand = [\"/bin/sh\"]\n",
        );
        project.commit("the first one");
        dirs.without_sandbox();
        let environment: BTreeMap<String, String> = dirs.env().into_iter().collect();
        let context = Context::new(environment, project.path().to_path_buf(), PathBuf::from("/bin/true"));
        let home = Home::create(dirs.towline()).expect("a state directory");
        trust(&context);
        let store = store(&home);
        let open = |dispatch| {
            Engine::open(EngineSettings {
                home: home.clone(),
                store: Arc::clone(&store),
                clock: Arc::new(SystemClock),
                supervisor: SupervisorProgram { path: PathBuf::from("none"), args: Vec::new(), shown: None },
                resolver: Arc::new(NoProject),
                dispatch,
            })
            .expect("an engine")
        };
        let neighbour = open(Dispatching::Given { slots: 1 });
        let engine = open(Dispatching::Pool(Arc::new(NoRoom::default())));
        let worker = engine.worker().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = Client::of(listener.local_addr().expect("an address"));
        let settings = ServerSettings {
            context: context.clone(),
            engine: Arc::new(engine),
            state: State { home: home.clone(), store: Arc::clone(&store) },
            listener,
            hosts: vec!["towline.example".to_owned()],
            operator_token: OperatorToken::new(TOKEN),
            version: "0.0.0-test".to_owned(),
        };
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(settings, async move { drop(stopped.await) }));
        Self {
            client,
            store,
            home,
            project,
            worker,
            neighbour,
            context,
            _dirs: dirs,
            stop: Some(stop),
            tasks,
        }
    }

    /// Ends the server and waits for it.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.tasks.join_next().await.expect("a server").expect("no panic").expect("no error");
    }

    /// A goal that waits in the queue.
    pub(crate) async fn goal(&self) -> Goal {
        self.goal_as(|_| ()).await
    }

    /// A goal in the state that `change` makes.
    pub(crate) async fn goal_as(&self, change: impl FnOnce(&mut GoalState)) -> Goal {
        self.store_goal(|_| (), change).await
    }

    /// A goal that `change` makes, in the queue.
    pub(crate) async fn goal_of(&self, change: impl FnOnce(&mut Goal)) -> Goal {
        self.store_goal(change, |_| ()).await
    }

    async fn store_goal(
        &self,
        change_goal: impl FnOnce(&mut Goal),
        change: impl FnOnce(&mut GoalState),
    ) -> Goal {
        let request = Request { prompt: Some("Fix it".to_owned()), ..Request::default() };
        let mut goal = draft(&self.context, &request, SystemClock.now()).await.expect("a draft").goal;
        change_goal(&mut goal);
        let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
        let mut state = GoalState::new(&goal);
        change(&mut state);
        self.store.create(&goal, &state, created).await.expect("stored");
        goal
    }

    /// Adds so many events to the log of a goal, as another process would.
    pub(crate) async fn write(&self, goal: GoalId, count: usize) {
        let text = |number| Event::MessageSent { text: format!("message {number}") };
        self.append(goal, (0..count).map(text).collect(), |_| ()).await;
        self.poke();
    }

    /// Adds events to the log of a goal, and puts it into the state that `change` makes.
    async fn append(&self, goal: GoalId, events: Vec<Event>, change: impl FnOnce(&mut GoalState)) {
        let now = SystemClock.now();
        let worker = self.neighbour.worker();
        let until = now.checked_add(SignedDuration::from_secs(60)).expect("in range");
        let lease = self.store.claim(goal, worker, now, until, None).await.expect("a lease");
        let record = self.store.load(goal).await.expect("a goal");
        let mut state = record.state;
        change(&mut state);
        let is_at_work = state.phase.living_attempt().is_some();
        let events = events.into_iter().map(|event| Envelope::new(goal, now, Source::Operator, event));
        let append = Append {
            goal,
            generation: lease.generation,
            expected: record.last_seq,
            events: events.collect(),
            state,
            effects: Vec::new(),
            settled: Vec::new(),
            notifies: false,
            at: now,
        };
        self.store.append(append).await.expect("appended");
        // The engine of the server would adopt what nobody holds.
        if !is_at_work {
            self.store.release(&lease).await.expect("released");
        }
    }

    /// Has the engine look at the store: the one in memory writes no file.
    fn poke(&self) {
        if !self.home.database().exists() {
            std::fs::write(self.home.root().join("towline.db-wal"), "x").expect("written");
        }
    }

    /// A goal whose first attempt is alive, and the token of that attempt.
    pub(crate) async fn goal_at_work(&self) -> (Goal, String) {
        let goal = self.goal_as(|_| ()).await;
        let attempt = towline_core::AttemptNo::FIRST;
        let id = towline_core::AttemptId::of(goal.id, attempt);
        self.set_state(goal.id, |state| {
            let agent = AgentName::new("own");
            state.attempts.push(towline_core::Attempt::begun(
                goal.id,
                attempt,
                agent,
                None,
                SystemClock.now(),
            ));
            state.phase = Phase::Running { attempt };
        })
        .await;
        let secret = std::fs::read_to_string(self.home.root().join("token")).expect("a secret");
        let token = sha(&format!("{secret}:{id}"));
        (goal, token)
    }

    /// Has the project's directory not answer, until the sender is dropped.
    pub(crate) async fn silence_project(&self) -> std::sync::mpsc::Sender<()> {
        let (release, silent) = std::sync::mpsc::channel::<()>();
        let directory = self.project.path().display().to_string();
        let read = self.context.reads.read(&directory, move || silent.recv().is_ok()).await;
        assert_eq!(read, Err(towline_engine::NoAnswer::Silent));
        release
    }

    /// Puts a goal into the state that `change` makes.
    pub(crate) async fn set_state(&self, goal: GoalId, change: impl FnOnce(&mut GoalState)) {
        self.append(goal, vec![Event::MessageSent { text: "a change".to_owned() }], change).await;
    }

    /// Sends a request with the operator's token from a process that this one has started, and returns the whole reply.
    pub(crate) async fn ask_from_below(&self, method: &str, path: &str, body: &str) -> String {
        let mut command = scratch::clean_command("bash");
        command.args(["-c", ASK]).env("PORT", self.client.address.port().to_string());
        command.env("TOKEN", TOKEN).env("METHOD", method).env("REQUEST", format!("/api/v1{path}"));
        command.env("BODY", body).env("LENGTH", body.len().to_string());
        let output = tokio::task::spawn_blocking(move || command.output().expect("bash starts"));
        String::from_utf8_lossy(&output.await.expect("no panic").stdout).into_owned()
    }

    /// A request with the operator's token.
    pub(crate) fn get(&self, path: &str) -> Ask {
        self.client.ask("GET", path).token(TOKEN)
    }

    pub(crate) fn post(&self, path: &str) -> Ask {
        self.client.ask("POST", path).token(TOKEN)
    }
}

fn sha(text: &str) -> String {
    use sha2::{Digest, Sha256};
    towline_core::hexadecimal(&Sha256::digest(text))
}
