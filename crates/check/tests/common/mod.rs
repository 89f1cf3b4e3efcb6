//! A project, a goal's workspace in it, and verdicts on what is in that workspace.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::future::{Future, pending};
use std::path::{Path, PathBuf};
use std::time::Duration;

use towline_check::{CheckError, CheckRun, Environment, Interrupted, Judge, Judges, Progress};
use towline_core::{
    BaselineCheck, BaselineMode, Budget, Check, CheckKind, CheckResult, Goal, Origin, Reuse, Verdict,
    WorkspaceMode, WorkspaceSpec,
};
use towline_process::{Priority, SupervisorProgram};
use towline_testkit::scratch::{Home, Project, supervisor_program};
use towline_workspace::{Candidate, Protect, Repository, Workspace, WorkspacePlan};

/// Longer than anything here takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) home: Home,
    pub(crate) project: Project,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) goal: Goal,
    pub(crate) protect: Vec<String>,
    pub(crate) setup_changes: BTreeMap<String, Option<String>>,
    pub(crate) reuse: Reuse,
    pub(crate) priority: Priority,
    pub(crate) interrupted: Option<Interrupted>,
    pub(crate) base: Vec<BaselineCheck>,
    /// Asked about the work; none of the goal's judges is without it.
    pub(crate) judge: Option<Box<dyn Judge>>,
    /// What judges found before, who are then not asked.
    pub(crate) recorded: Option<Vec<CheckResult>>,
    repository: Repository,
    workspace: Workspace,
}

impl Bench {
    /// A workspace of a project with these files committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let project = Project::new();
        for (path, text) in files {
            project.write(path, text);
        }
        if !files.is_empty() {
            project.commit("files");
        }
        Self::on(project)
    }

    /// A workspace of a project as it is.
    pub(crate) fn on(project: Project) -> Self {
        let home = Home::new();
        let users = Repository::discover(project.path()).unwrap();
        let goal = goal(&users);
        let plan = WorkspacePlan {
            goal: goal.id.to_string(),
            branch: "towline/test".into(),
            path: home.towline().join("workspaces/goal"),
            own: home.towline().join("workspaces/goal.git"),
            base: goal.workspace.base.clone(),
            copy: Vec::new(),
            settings: users.git_settings(&goal.workspace.base).unwrap(),
        };
        let workspace = towline_workspace::create(&users, &plan).unwrap();
        let repository = users.own(&plan.own, &plan.base, &plan.settings).unwrap();
        let environment = home.env().into_iter().collect();
        Self {
            home,
            project,
            environment,
            goal,
            protect: Vec::new(),
            setup_changes: BTreeMap::new(),
            reuse: Reuse::Never,
            priority: Priority::Normal,
            interrupted: None,
            base: Vec::new(),
            judge: None,
            recorded: None,
            repository,
            workspace,
        }
    }

    /// The goal's checks are these commands, named `1`, `2`, ….
    pub(crate) fn with_checks(mut self, commands: &[&str]) -> Self {
        let named = commands.iter().zip(1..);
        self.goal.checks = named.map(|(run, number)| check(&number.to_string(), run)).collect();
        self
    }

    /// The agent's workspace.
    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// Does what an agent would do to a file.
    pub(crate) fn work(&self, path: &str, text: &str) {
        fs::write(self.workspace().join(path), text).unwrap();
    }

    /// Commits everything in the workspace, as an agent would.
    pub(crate) fn commit(&self) {
        for args in [&["add", "--all"][..], &["commit", "--quiet", "--message", "work"]] {
            self.project.git([&["-C", self.workspace().to_str().unwrap()], args].concat());
        }
    }

    pub(crate) fn candidate(&self) -> Candidate {
        self.workspace.candidate(1, &Protect::of(&self.protect, &[]).unwrap()).unwrap()
    }

    pub(crate) fn verify_dir(&self) -> PathBuf {
        self.home.towline().join("verify/goal")
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.home.towline().join("attempts/1/checks")
    }

    /// The directories of the runs of a command, whose names nobody can know.
    pub(crate) fn run_dirs(&self, name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.log_dir()).unwrap().map(|entry| entry.unwrap().path());
        let is_of = |path: &PathBuf| {
            let random = path.file_name().unwrap().to_str().unwrap().strip_prefix(name);
            random.is_some_and(|random| random.len() == 33)
        };
        entries.filter(is_of).collect()
    }

    pub(crate) fn supervisor(&self) -> SupervisorProgram {
        SupervisorProgram { path: supervisor_program(), args: Vec::new(), shown: None }
    }

    /// A file outside every checkout that commands and the test can both see.
    pub(crate) fn flag(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The verdict on what is in the workspace now.
    pub(crate) async fn verdict(&self) -> Verdict {
        self.run(pending(), |_| ()).await.unwrap()
    }

    /// The results of that verdict, without the times.
    pub(crate) async fn results(&self) -> Vec<CheckResult> {
        self.verdict().await.checks.into_iter().map(timeless).collect()
    }

    pub(crate) async fn run(
        &self,
        stop: impl Future<Output = ()>,
        on_progress: impl FnMut(Progress),
    ) -> Result<Verdict, CheckError> {
        let run = CheckRun {
            goal: &self.goal,
            candidate: &self.candidate(),
            base: &self.base,
            repository: &self.repository,
            verify_dir: &self.verify_dir(),
            reuse: self.reuse,
            log_dir: &self.log_dir(),
            supervisor: &self.supervisor(),
            environment: &self.given(),
            setup_changes: &self.setup_changes,
            priority: self.priority,
            judges: self.judges(),
        };
        let Some(interrupted) = &self.interrupted else {
            return towline_check::run(run, stop, on_progress).await;
        };
        let mut stop = std::pin::pin!(stop);
        let mut on_progress = on_progress;
        match towline_check::resume(run, interrupted, &mut stop, &mut on_progress).await {
            Ok(Some(verdict)) => Ok(verdict),
            Err(CheckError::Stopped) => Err(CheckError::Stopped),
            _ => towline_check::run(run, stop, on_progress).await,
        }
    }

    fn judges(&self) -> Judges<'_> {
        match (&self.recorded, &self.judge) {
            (Some(recorded), _) => Judges::Recorded(recorded),
            (None, Some(judge)) => Judges::Asked(judge.as_ref()),
            (None, None) => Judges::LeftOut,
        }
    }

    /// What its commands get.
    pub(crate) fn given(&self) -> Environment {
        Environment::new(&self.environment, &self.goal.workspace.pass_env, |_| false)
    }

    /// Fails the test when a checkout is left.
    pub(crate) fn assert_no_checkout(&self) {
        assert!(!self.verify_dir().exists(), "the checkout is left");
    }
}

fn goal(repository: &Repository) -> Goal {
    Goal {
        id: "01932f6e-7c00-7abc-8def-0123456789ab".parse().unwrap(),
        title: "Goal".into(),
        prompt: "Do it.".into(),
        checks: Vec::new(),
        budget: Budget::default(),
        agents: Vec::new(),
        model: None,
        agent_settings: BTreeMap::new(),
        protect: Vec::new(),
        unprotect: Vec::new(),
        workspace: WorkspaceSpec {
            repository: repository.root().display().to_string(),
            mode: WorkspaceMode::Clone,
            base: repository.resolve("HEAD").unwrap(),
            setup: Vec::new(),
            copy: Vec::new(),
            generated: Vec::new(),
            pass_env: Vec::new(),
            warm: Vec::new(),
            confirm: towline_core::Confirm::Clean,
            git: None,
        },
        briefing: false,
        baseline: BaselineMode::Off,
        sessions: BTreeMap::new(),
        accounts: BTreeMap::new(),
        continues: None,
        scheduling: towline_core::Scheduling::default(),
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        origin: Origin { channel: "test".into(), thread: None, by: None },
        created_at: jiff::Timestamp::UNIX_EPOCH,
    }
}

pub(crate) fn check(name: &str, run: &str) -> Check {
    Check::new(name, CheckKind::Command { run: run.into(), stdout: None }, PATIENCE)
}

pub(crate) fn result(name: &str, exit_code: i32, evidence: &str) -> CheckResult {
    CheckResult {
        name: name.into(),
        met: exit_code == 0,
        exit_code: Some(exit_code),
        problem: None,
        evidence: evidence.into(),
        took: Duration::ZERO,
        output: None,
        tests: None,
    }
}

/// The result without the time it took, which no test can know, and without the hashes of its output.
pub(crate) fn timeless(result: CheckResult) -> CheckResult {
    CheckResult { took: Duration::ZERO, output: None, ..result }
}

/// Comes to its end when the file is there.
pub(crate) async fn file_is_there(path: PathBuf) {
    let waiting = async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let message = format!("{} never came", path.display());
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{message}"));
}
