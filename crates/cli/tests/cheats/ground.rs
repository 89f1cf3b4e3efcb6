//! Where a trick is tried: a user's home, a repository with a broken file, and a goal that a hostile agent works on.
//!
//! The agent is a shell script. Before the trick's own lines it gets these variables:
//! `home`, `state` (Towline's), `project` (the user's repository), `precious` (files of the user's), `loot` (a file for what
//! it finds), `towline` (the program), `bystander` (a process of the user's), `sleeper` (a `sleep` that is found by its path),
//! `broken` and `answer` (the file to repair, and a copy as it should be), `workspace`, `gitdir`, `common` (git directories).
//! `prelude.sh` adds functions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use towline_testkit::scratch::clean_command;

use crate::projects::Project;
use crate::support::Desk;
use crate::trick::{Level, Trick};

/// What the agent is asked to do.
pub(crate) const PROMPT: &str = "Make it add";

/// A goal of one attempt with limits of seconds ends long before this, also on a busy machine.
const RUN_LIMIT: Duration = Duration::from_secs(45);

/// The same where the checks also run on the base before any work, and once more without the change.
const RUN_LIMIT_WITH_EVIDENCE: Duration = Duration::from_secs(180);

/// The hidden check of level 3. The project's script is what it runs.
const HIDDEN_CHECK: &str = "[[checks]]\nname = \"acceptance\"\nrun = \"sh ~/acceptance/sums.sh\"\ntimeout = \"30s\"\n\
                            hidden = true\nfiles = [\"~/acceptance\"]\n";

/// A command that only reads.
const READ_LIMIT: Duration = Duration::from_secs(20);

/// Where a trick is tried.
pub(crate) struct Ground {
    pub(crate) desk: Desk,
    pub(crate) project: &'static Project,
    /// Options of `towline run`.
    pub(crate) options: &'static [&'static str],
    /// The goal's own file, where it asks for evidence.
    goal_file: Option<PathBuf>,
    /// The commit that the goal starts from.
    pub(crate) base: String,
    /// A process of the user's that has nothing to do with Towline.
    pub(crate) bystander: Child,
}

/// How a command of the user's ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ground {
    /// A repository with this project, and an agent that does nothing yet.
    pub(crate) fn new(project: &'static Project, level: Level) -> Self {
        let mut desk = match level {
            Level::One => Desk::new(),
            Level::Two | Level::Three => Desk::new().in_sandbox(),
        };
        // What a trick needs of its own, and what it brings home.
        let path = |name: &str| desk.home.path().join(name).display().to_string();
        let (tools, loot) = ([path("answer"), path("sleeper"), path("upstream")], [path("loot")]);
        desk.set("TOWLINE_SET_sandbox__read", &format!("{tools:?}"));
        desk.set("TOWLINE_SET_sandbox__write", &format!("{loot:?}"));
        desk.leaves_nothing_to_replay("a hostile agent may have removed or forged its logs");
        // The user's own git settings are part of what a trick may attack.
        desk.unset("GIT_CONFIG_GLOBAL");
        let tools = project.tools.map(|tools| format!("{}:", tools().display())).unwrap_or_default();
        let path = std::env::var("PATH").expect("a PATH");
        let own = desk.home.path().join("bin");
        fs::create_dir(&own).expect("a folder");
        desk.unset("PATH");
        desk.set("PATH", &format!("{}:{tools}{path}", own.display()));
        for (name, value) in shared_tools() {
            desk.set(&name, &value);
        }
        let bystander = bystander();
        let ground = Self { desk, project, options: &[], goal_file: None, base: String::new(), bystander };
        ground.furnish();
        ground
    }

    /// Files of the user's that are in no repository.
    pub(crate) fn precious(&self) -> PathBuf {
        self.desk.home.path().join("precious")
    }

    /// Where an agent writes what it found out.
    pub(crate) fn loot(&self) -> String {
        fs::read_to_string(self.loot_file()).unwrap_or_default()
    }

    fn loot_file(&self) -> PathBuf {
        self.desk.home.path().join("loot")
    }

    /// The user's home and the base of the repository, without settings of Towline's.
    fn furnish(&self) {
        let home = self.desk.home.path();
        fs::write(home.join(".gitconfig"), "[user]\n\tname = User\n\temail = user@example.org\n")
            .expect("written");
        fs::create_dir(self.precious()).expect("a folder");
        fs::write(self.precious().join("letter.txt"), "dear\n").expect("written");
        fs::write(home.join("answer"), self.project.repaired).expect("written");
        fs::write(self.loot_file(), "").expect("written");
        let sleep = std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))
            .map(|folder| folder.join("sleep"))
            .find(|file| file.is_file());
        fs::copy(sleep.expect("sleep is installed"), home.join("sleeper")).expect("copied");
        for (path, text) in self.project.files {
            self.desk.project.write(path, text);
        }
    }

    /// Commits the base with these settings, with some history, branches and a stash around it.
    pub(crate) fn commit(&mut self, settings: &str) {
        let project = &self.desk.project;
        project.write("towline.toml", settings);
        self.base = project.commit("a project with a broken file");
        if settings.contains("base = \"start\"") {
            project.git(["branch", "start"]);
            project.write("later.txt", "the user's own work\n");
            project.write("data/table.txt", "ONE\ntwo\n");
            project.commit("later work");
        }
        project.git(["branch", "side", "HEAD~1"]);
        project.git(["tag", "v1", "HEAD~1"]);
        project.write("README.md", "stashed\n");
        project.git(["stash", "--quiet"]);
        project.write("notes.txt", "untracked\n");
    }

    /// The settings of a trick.
    pub(crate) fn settings(&self, trick: &Trick) -> String {
        // The count of tests is evidence of level 3.
        let usual = format!("{}floor = false\n", usual_check(trick.project));
        let paths = trick.project.protect.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
        let protect: Vec<String> = paths.unwrap_or_else(|| self.protected_by_init());
        format!(
            "{}\n[protect]\npaths = {protect:?}\n\n[workspace]\n{}\n",
            trick.checks.unwrap_or(&usual),
            trick.workspace
        )
    }

    /// Has the goal ask for evidence: in a file of its own outside the repository, with a hidden check that no agent can read.
    pub(crate) fn ask_for_evidence(&mut self, trick: &Trick) {
        let home = self.desk.home.path();
        fs::create_dir(home.join("acceptance")).expect("a folder");
        for (name, text) in self.project.acceptance {
            fs::write(home.join("acceptance").join(name), text).expect("written");
        }
        let visible = trick.checks.map_or_else(|| usual_check(self.project), str::to_owned);
        let text = format!(
            "+++\nbaseline = \"red\"\n\n{visible}probe = \"revert\"\n\n{HIDDEN_CHECK}+++\n{PROMPT}\n"
        );
        let file = home.join("goal.md");
        fs::write(&file, text).expect("written");
        self.goal_file = Some(file);
    }

    /// What `towline init` protects in this project.
    fn protected_by_init(&self) -> Vec<String> {
        let printed = self.ask(["init", "--print"]).expect("it ends");
        let file: toml::Table = printed.stdout.parse().unwrap_or_else(|error| panic!("{error}: {printed:?}"));
        let paths = file["protect"]["paths"].as_array().expect("a list");
        paths.iter().map(|path| path.as_str().expect("a path").to_owned()).collect()
    }

    /// Makes the script the only agent, with limits of seconds and a single attempt.
    pub(crate) fn employ(&self, script: &str) {
        let home = self.desk.home.path();
        let file = home.join("agent.sh");
        fs::write(&file, format!("{}{script}\n", self.preamble())).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
        self.desk.configure(&format!(
            "defaults.agents = [\"hostile\"]\n\
             [budget]\nattempts = 1\nerrors = 1\n\
             [agents.hostile]\nkind = \"command\"\ncommand = [\"sh\", {:?}]\n\
             idle_timeout = \"8s\"\nturn_timeout = \"8s\"\nstop_grace = \"1s\"\n",
            file.display().to_string()
        ));
    }

    fn preamble(&self) -> String {
        let home = self.desk.home.path();
        format!(
            "home='{}'\nstate='{}'\nproject='{}'\nprecious='{}'\nloot='{}'\ntowline='{}'\nbystander={}\n\
             sleeper='{}'\nbroken='{}'\nanswer='{}'\n{PRELUDE}",
            home.display(),
            self.desk.home.towline().display(),
            self.desk.project.path().display(),
            self.precious().display(),
            self.loot_file().display(),
            env!("CARGO_BIN_EXE_towline"),
            self.bystander.id(),
            home.join("sleeper").display(),
            self.project.broken,
            home.join("answer").display(),
        )
    }

    /// Whether the agent works in the user's own directory.
    pub(crate) fn is_in_place(&self) -> bool {
        self.options.contains(&"--in-place")
    }

    /// Runs the goal to its end; nothing when it does not come to one.
    pub(crate) fn run(&self) -> Option<Ended> {
        let file = self.goal_file.as_ref().map(|file| file.display().to_string());
        let (goal, limit) = match &file {
            Some(file) => (vec!["--file", file], RUN_LIMIT_WITH_EVIDENCE),
            None => (vec![PROMPT], RUN_LIMIT),
        };
        let options = self.options.iter().copied();
        self.towline(["run", "--json"].into_iter().chain(goal).chain(options), limit)
    }

    /// Runs a command of the user's that only reads.
    pub(crate) fn ask<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Option<Ended> {
        self.towline(words, READ_LIMIT)
    }

    /// All goals, as the user sees them.
    pub(crate) fn goals(&self) -> Vec<Value> {
        let listed = self.ask(["ls", "--all", "--json"]).map(|ended| ended.stdout).unwrap_or_default();
        serde_json::from_str(&listed).unwrap_or_default()
    }

    /// Everything about a goal.
    pub(crate) fn report(&self, goal: &str) -> Option<Value> {
        serde_json::from_str(&self.ask(["show", goal, "--json"])?.stdout).ok()
    }

    fn towline<'a>(&self, words: impl IntoIterator<Item = &'a str>, limit: Duration) -> Option<Ended> {
        let child = self.desk.start(words);
        let pid = child.id();
        let (ended, ending) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output()));
        let Ok(output) = ending.recv_timeout(limit) else {
            kill(pid);
            return None;
        };
        let output = output.expect("its output");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // It may have been killed by the trick.
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

/// What every script begins with.
const PRELUDE: &str = include_str!("prelude.sh");

/// The check of a project, without settings for evidence.
fn usual_check(project: &Project) -> String {
    format!("[[checks]]\nname = \"tests\"\nrun = {:?}\ntimeout = \"30s\"\n", project.check)
}

/// Neither its environment nor its command line has anything to do with this test.
fn bystander() -> Child {
    let mut command = clean_command("sleep");
    command.arg("600").current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("sleep starts")
}

/// A cache for the compilers that need one to be fast; the scratch home has none. And the toolchain, which may be found
/// through the real home.
fn shared_tools() -> Vec<(String, String)> {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go-cache");
    let real_home = std::env::var("HOME").unwrap_or_default();
    let or_below_home = |name: &str, folder: &str| {
        let path = std::env::var(name).unwrap_or_else(|_| format!("{real_home}/{folder}"));
        (name.to_owned(), path)
    };
    fs::create_dir_all(&cache).expect("a folder");
    vec![
        ("GOCACHE".to_owned(), cache.display().to_string()),
        ("GOTOOLCHAIN".to_owned(), "local".to_owned()),
        or_below_home("RUSTUP_HOME", ".rustup"),
    ]
}

/// Kills a `towline` that this test started and that does not end.
fn kill(pid: u32) {
    let killed = clean_command("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()), "towline could not be killed");
}
