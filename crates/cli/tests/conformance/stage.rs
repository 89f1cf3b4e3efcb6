//! The stage of a case: a desk with one agent, and the model that it talks to.

use std::path::Path;
use std::process::Child;

use serde_json::Value;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{processes_with, wait_for};

use crate::subject::Subject;
use crate::support::{Desk, LIMIT, Ran};

pub(crate) const PROMPT: &str = "Write the word towline into the file motto.txt";
pub(crate) const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";

/// What writes the right motto.
pub(crate) const RIGHT: &str = "echo towline > motto.txt";
/// What writes a wrong one.
pub(crate) const WRONG: &str = "echo tugboat > motto.txt";

/// One thing that the model does: of several, the first whose text is in the conversation. An agent without a model can do
/// the same, as far as it gets the same text.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// A text that must be in the conversation; empty means always.
    pub(crate) prompted: &'static str,
    /// A command that it runs with its shell tool.
    pub(crate) runs: Option<String>,
    /// Its answer then; none if it never gets so far.
    pub(crate) answers: Option<&'static str>,
}

impl Line {
    /// Only answers with this.
    pub(crate) fn answers(answer: &'static str) -> Self {
        Self { prompted: "", runs: None, answers: Some(answer) }
    }

    /// Runs a command and reports that it is done.
    pub(crate) fn runs(command: impl Into<String>) -> Self {
        Self { prompted: "", runs: Some(command.into()), answers: Some("Written.") }
    }

    /// Runs a command that does not come to its end.
    pub(crate) fn hangs(command: impl Into<String>) -> Self {
        Self { prompted: "", runs: Some(command.into()), answers: None }
    }

    /// Does so only when this is in the conversation.
    pub(crate) fn after_prompt(self, prompted: &'static str) -> Self {
        Self { prompted, ..self }
    }

    /// The same for the scripted model.
    pub(crate) fn rule(&self, subject: &dyn Subject) -> Rule {
        let runs = self.runs.iter().map(|command| subject.shell_call(command));
        let replies = runs.chain(self.answers.map(Reply::text));
        replies.fold(Rule::when(Matcher::any_text_contains(self.prompted)), Rule::then)
    }
}

/// A desk with a sandbox, unless the subject is there to show that everything works without one.
fn desk_of(subject: &dyn Subject) -> Desk {
    if subject.facts().is_confined { Desk::new().in_sandbox() } else { Desk::new() }
}

/// A desk with one agent, and the model that it talks to.
pub(crate) struct Stage {
    pub(crate) subject: &'static dyn Subject,
    pub(crate) model: ModelServer,
    pub(crate) desk: Desk,
}

impl Stage {
    /// Where the model does this.
    pub(crate) fn of(subject: &'static dyn Subject, lines: &[Line]) -> Self {
        let rules: Vec<Rule> = lines.iter().map(|line| line.rule(subject)).collect();
        Self::set(subject, rules, lines)
    }

    /// Where the model does what only a model can do: an agent that asks none has no part in it.
    pub(crate) fn with_model(subject: &'static dyn Subject, rules: impl Into<Vec<Rule>>) -> Self {
        Self::set(subject, rules.into(), &[])
    }

    /// Where the model does what only a model can do, and an agent that asks none does the like.
    pub(crate) fn with_model_or(
        subject: &'static dyn Subject,
        rules: impl Into<Vec<Rule>>,
        lines: &[Line],
    ) -> Self {
        Self::set(subject, rules.into(), lines)
    }

    /// Where the model names files of the project.
    pub(crate) fn with_project(
        subject: &'static dyn Subject,
        rules: impl FnOnce(&Path) -> Vec<Rule>,
    ) -> Self {
        let desk = desk_of(subject);
        let rules = rules(desk.project.path());
        Self::at(desk, subject, rules, &[])
    }

    fn set(subject: &'static dyn Subject, rules: Vec<Rule>, lines: &[Line]) -> Self {
        Self::at(desk_of(subject), subject, rules, lines)
    }

    fn at(mut desk: Desk, subject: &'static dyn Subject, rules: Vec<Rule>, lines: &[Line]) -> Self {
        let model = ModelServer::start(rules);
        for (name, value) in subject.prepare(&desk.home.path(), &model.url(), lines) {
            desk.set(&name, &value);
        }
        // No program has the private homes; the check that takes the agent's memory away does.
        let homes = desk.home.towline().join("homes").display().to_string();
        desk.set("TOWLINE_SET_sandbox__write", &format!("[{homes:?}]"));
        let name = subject.name();
        desk.configure(&format!(
            "[defaults]\nagents = [{name:?}]\n\n[agents.{name}]\n{}",
            subject.settings()
        ));
        Self { subject, model, desk }
    }

    /// Adds lines to the agent's settings.
    pub(crate) fn settings(self, lines: &str) -> Self {
        self.desk.agent_settings(lines);
        self
    }

    /// Runs the usual goal to its end.
    pub(crate) fn run(&self) -> Ran {
        self.run_checked_by(CHECK)
    }

    /// Runs the usual goal with another check.
    pub(crate) fn run_checked_by(&self, check: &str) -> Ran {
        self.desk.towline(["run", PROMPT, "--check", check, "--json"])
    }

    /// Starts the usual goal, and returns its id.
    pub(crate) fn start(&self) -> (Child, String) {
        let towline = self.desk.start(["run", PROMPT, "--check", CHECK, "--json"]);
        let goal = self.desk.only_goal();
        (towline, goal)
    }

    /// Starts the usual goal, and waits until a tool of the agent is at this command.
    pub(crate) fn start_until(&self, command: &str) -> (Child, String) {
        let started = self.start();
        let marker = self.desk.home.marker();
        wait_for(LIMIT, &format!("a tool of {} to run `{command}`", self.subject.name()), || {
            processes_with(&marker).iter().any(|process| process.command.starts_with(command))
        });
        started
    }

    /// The prompts that hold these words, in the order in which the model got them, each once.
    pub(crate) fn prompts_with(&self, words: &str) -> Vec<String> {
        let heard = || self.model.turns().iter().map(|turn| turn.prompt_text()).collect();
        let mut prompts: Vec<String> = self.subject.prompts(&self.desk.home.path()).unwrap_or_else(heard);
        prompts.retain(|prompt| prompt.contains(words));
        prompts.dedup();
        prompts
    }
}

/// The report of a goal that is done, and in which every frame was understood.
pub(crate) fn done(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["phase"], "done", "{report}");
    for attempt in report["attempts"].as_array().expect("attempts") {
        assert_eq!(attempt["extras"]["unrecognised"], Value::Null, "frames that were not understood");
    }
    report
}
