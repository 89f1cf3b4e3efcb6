//! What a case needs to know of an agent: how it is set up, which tool calls it understands, and the facts about it. A case
//! asks for facts and never for a name, so that a further subject is one more in `subjects` and nothing else.

use std::path::Path;

use towline_testkit::model::Reply;

use crate::stage::Line;
use crate::support::Desk;

/// An agent in one way of driving it.
pub(crate) trait Subject: Sync {
    /// What the agent is called in the configuration, in messages and in the table of cases.
    fn name(&self) -> &'static str;

    /// Its table in the configuration without the header, which further settings may follow.
    fn settings(&self) -> String;

    /// Prepares `home` for it, and returns the environment in which it talks to the scripted model at `server_url` and to
    /// nothing else. One that asks no model plays `lines` instead.
    fn prepare(&self, home: &Path, server_url: &str, lines: &[Line]) -> Vec<(String, String)>;

    /// Whether this command line is a process of the agent itself, rather than of a tool of it.
    fn is_it(&self, command: &str) -> bool;

    /// A call of its shell tool.
    fn shell_call(&self, command: &str) -> Reply;

    /// A call of the tool that it edits with, which creates a file at this absolute path.
    fn write_call(&self, path: &Path, content: &str) -> Reply;

    /// The name under which it offers the tool `ask` of Towline's MCP server.
    fn ask_tool(&self) -> &'static str;

    /// A call of its own tool for questions, where it has one: one question with these answers to choose from.
    fn question_call(&self, _question: &str, _options: &[&str]) -> Option<Reply> {
        None
    }

    /// The model's answer after which its quota counts as used up, at once.
    fn used_up_quota(&self) -> Reply;

    /// The prompts that it was given so far, in their order, where no model heard them.
    fn prompts(&self, _home: &Path) -> Option<Vec<String>> {
        None
    }

    /// Waits until a text of the running turn is in its stored conversation, where it writes that later than it acts.
    fn wait_until_stored(&self, _desk: &Desk, _text: &str) {}

    /// Takes its conversations away from it.
    fn forget_conversations(&self) -> &'static str;

    /// What is known about it.
    fn facts(&self) -> Facts;
}

/// Whether this command line is one of what starts agents: a supervisor, or a sandbox.
pub(crate) fn is_around(command: &str) -> bool {
    command.contains(" shim ") || command.contains(" sandboxed ")
}

/// What is known about an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Whether its conversations outlive its process.
    pub(crate) conversations: Conversations,
    /// What happens to a turn in which the model failed.
    pub(crate) failed_turn: FailedTurn,
    /// The unit in which it reports usage.
    pub(crate) reports_usage_in: Unit,
    /// When it reports usage.
    pub(crate) reports_usage: When,
    /// What it does with a call that is not permitted.
    pub(crate) refusal: Refusal,
    /// Whether it runs in a sandbox.
    pub(crate) is_confined: bool,
    /// An idle timeout in seconds that it does not reach as long as the model answers.
    pub(crate) patience: u32,
}

/// How long conversations live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversations {
    /// A later process continues them.
    AreStored,
    /// They end with the process; the next one gets everything again.
    EndWithTheProcess,
    /// It has none that Towline knows of.
    AreNone,
}

/// What happens to a first turn in which the model never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedTurn {
    /// It is in the conversation like any other.
    IsStored,
    /// There is no conversation of it.
    IsLost,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The tokens of all answers.
    Tokens,
    /// Dollars, at the prices of the scripted model.
    Dollars,
}

/// When something is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// While the turn goes on.
    WithinTheTurn,
    /// When it is over.
    AtItsEnd,
}

/// What follows a call that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The model gets the refusal, and continues.
    IsReported,
    /// The turn is over; the model finds it in the conversation when that goes on.
    EndsTheTurn,
}

impl Facts {
    /// It stores its conversations, reports tokens as they are used, and reports a refusal to the model.
    pub(crate) const USUAL: Self = Self {
        conversations: Conversations::AreStored,
        failed_turn: FailedTurn::IsStored,
        reports_usage_in: Unit::Tokens,
        reports_usage: When::WithinTheTurn,
        refusal: Refusal::IsReported,
        is_confined: true,
        patience: 3,
    };

    /// Whether its conversations outlive its process.
    pub(crate) fn resumes(&self) -> bool {
        self.conversations == Conversations::AreStored
    }

    /// Whether a conversation in which the model has only failed is continued.
    pub(crate) fn resumes_failed_turns(&self) -> bool {
        self.resumes() && self.failed_turn == FailedTurn::IsStored
    }
}
