//! A scratch home and project with the `towline` program in them.

#![allow(dead_code, reason = "each test program uses its part of this")]

pub(crate) mod earlier;
mod replaying;
pub(crate) mod server;
pub(crate) mod terminal;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use towline_app::report::goal_report;
use towline_app::{Context, Error, find};
use towline_core::Seq;
use towline_engine::{Clock, SystemClock};
use towline_store::Listing;
use towline_testkit::agents::AgentCli;
use towline_testkit::model::ModelServer;
use towline_testkit::scratch::{Home, Project, SANDBOX, clean_command, wait_for, wait_for_some};

/// Far more than anything here needs, for a machine under load.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// A person's machine: a home, a project, and towline.
pub(crate) struct Desk {
    pub(crate) home: Home,
    pub(crate) project: Project,
    variables: Vec<(String, String)>,
    /// Why what its attempts left cannot be replayed, where a test sees to that.
    not_replayed: Option<&'static str>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.not_replayed.is_none() {
            replaying::replay_all(&self.home.towline());
        }
    }
}

impl Desk {
    /// A desk with a small project and no agent. It has no sandbox: most scripted agents leave what they have seen outside their
    /// workspace, and tests look at their processes and files from outside.
    pub(crate) fn new() -> Self {
        let (home, project) = (Home::new(), Project::new());
        let mut variables = home.env();
        // So that what is printed about Claude Code does not depend on who runs the tests.
        variables.push(("IS_SANDBOX".to_owned(), "1".to_owned()));
        variables.push((SANDBOX.to_owned(), "off".to_owned()));
        Self { home, project, variables, not_replayed: None }
    }

    /// Declares that its attempts cannot be replayed when the test is over, and why.
    pub(crate) fn leaves_nothing_to_replay(&mut self, because: &'static str) {
        self.not_replayed = Some(because);
    }

    /// A desk with the real Claude Code, which talks to the scripted model.
    pub(crate) fn with_claude(model: &ModelServer) -> Self {
        Self::with_version_of_claude(AgentCli::Claude, model)
    }

    /// A desk with one of the real versions of Claude Code, which talks to the scripted model.
    pub(crate) fn with_version_of_claude(cli: AgentCli, model: &ModelServer) -> Self {
        let desk = Self::with_agents(&[cli], model);
        let program = cli.program().display().to_string();
        desk.configure(&format!("[agents.claude]\ncommand = [{program:?}]\n"));
        desk
    }

    /// A desk with some of the real agents, which talk to the scripted model, and no configuration yet.
    pub(crate) fn with_agents(clis: &[AgentCli], model: &ModelServer) -> Self {
        let mut desk = Self::new();
        let person = desk.home.path();
        for cli in clis {
            desk.variables.extend(cli.prepare(&person, &model.url()));
        }
        desk
    }

    /// A desk with a script instead of Claude Code.
    pub(crate) fn with_script(make: impl FnOnce(&Path) -> std::path::PathBuf) -> Self {
        let desk = Self::new();
        let script = make(&desk.home.path());
        desk.configure(&format!("[agents.claude]\ncommand = [{:?}]\n", script.display().to_string()));
        desk
    }

    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Adds a variable to the environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// The same desk, on which agents, setup and checks run in a sandbox or not at all.
    pub(crate) fn in_sandbox(mut self) -> Self {
        self.unset(SANDBOX);
        self.set(SANDBOX, "required");
        self
    }

    /// The same desk, on which checks do not run before any work: for checks that wait for something that comes later.
    pub(crate) fn without_baseline(mut self) -> Self {
        self.set("TOWLINE_SET_baseline__mode", "off");
        self
    }

    /// Takes a variable out of the environment.
    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// Adds lines to the agent's settings in the user's configuration, which they end.
    pub(crate) fn agent_settings(&self, lines: &str) {
        let file = self.home.config().join("towline/config.toml");
        let text = std::fs::read_to_string(file).expect("a configuration with an agent");
        self.configure(&format!("{text}{lines}\n"));
    }

    /// Writes the user's configuration.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.home.config().join("towline");
        std::fs::create_dir_all(&folder).expect("a folder for the configuration");
        std::fs::write(folder.join("config.toml"), text).expect("a configuration");
    }

    /// A `towline` command in the project.
    pub(crate) fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = clean_command(env!("CARGO_BIN_EXE_towline"));
        command.args(args).env_clear().envs(self.variables.clone()).current_dir(self.project.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `towline` to its end.
    pub(crate) fn towline(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        finish(self.start(args))
    }

    /// Starts `towline` and lets it run.
    pub(crate) fn start(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
        self.command(args).spawn().expect("towline starts")
    }

    /// The only goal, once there is one.
    pub(crate) fn only_goal(&self) -> String {
        wait_for_some(LIMIT, "a goal", || {
            let context = self.context();
            looked(async {
                let Some(state) = context.existing_state()? else { return Ok(None) };
                let listed = state.store.list(&Listing::first(1)).await?;
                Ok(listed.first().map(|goal| goal.id().to_string()))
            })
        })
    }

    /// Everything about a goal, as `show --json` prints it.
    pub(crate) fn show(&self, goal: &str) -> Value {
        let context = self.context();
        let report = looked(async {
            let found = find::goal(&context, goal).await?;
            Ok(goal_report(&found.record, &found.state.home, SystemClock.now()))
        });
        printed(&context, &report)
    }

    /// Everything about a goal, once it is in this phase.
    pub(crate) fn wait_for_phase(&self, goal: &str, phase: &str) -> Value {
        self.wait_for(goal, &format!("the goal to be {phase}"), |report| report["phase"] == phase)
    }

    /// Everything about a goal, once this holds.
    pub(crate) fn wait_for(&self, goal: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_for_some(LIMIT, what, || Some(self.show(goal)).filter(&holds))
    }

    /// The events of a goal, as `logs --json` prints them.
    pub(crate) fn events(&self, goal: &str) -> Vec<Value> {
        let context = self.context();
        let events = looked(async {
            let found = find::goal(&context, goal).await?;
            Ok(found.state.store.events(found.record.goal.id, Seq(0), usize::MAX).await?)
        });
        events.iter().map(|event| printed(&context, event)).collect()
    }

    /// Waits until Claude Code has stored this text in a conversation. It writes in batches: a tool call may run up to a tenth
    /// of a second before it is in the file. Claude Code that is killed earlier finds no conversation to resume.
    pub(crate) fn wait_until_claude_stored(&self, text: &str) {
        let own = self.home.path().join(".claude/projects");
        let in_sandboxes = self.home.towline().join("homes");
        wait_for(LIMIT, &format!("Claude Code to store {text:?}"), || {
            is_in_files(&own, text) || is_in_files(&in_sandboxes, text)
        });
    }

    /// What the program knows here. A look in this process shows the same as a command that prints it, and costs far less.
    fn context(&self) -> Context {
        let environment = self.variables.iter().cloned().collect();
        Context::new(environment, self.project.path().to_path_buf(), env!("CARGO_BIN_EXE_towline").into())
    }

    /// What is in the state directory.
    pub(crate) fn state(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.towline()).expect("the state directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

/// Whether a file below this folder has this text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    let mut paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.any(|path| {
        is_in_files(&path, text) || std::fs::read_to_string(&path).is_ok_and(|stored| stored.contains(text))
    })
}

/// What a use case that only reads gives.
fn looked<T>(look: impl Future<Output = Result<T, Error>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(look).unwrap_or_else(|error| panic!("{error}"))
}

/// A value as the program prints it, without secrets.
fn printed(context: &Context, value: &impl serde::Serialize) -> Value {
    let json = serde_json::to_string(value).expect("JSON");
    serde_json::from_str(&context.secrets.json(&json)).expect("JSON")
}

/// One field of each attempt in a report.
pub(crate) fn of_attempts(report: &Value, field: &str) -> Vec<Value> {
    let attempts = report["attempts"].as_array().expect("attempts");
    attempts.iter().map(|attempt| attempt[field].clone()).collect()
}

/// How a run of `towline` ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Its output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Waits for a program, with a limit, and reads what it prints meanwhile.
pub(crate) fn finish(child: Child) -> Ran {
    let (ended, ending) = mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    let output = ending.recv_timeout(LIMIT);
    Ran::from(output.expect("towline does not come to its end").expect("its output"))
}
