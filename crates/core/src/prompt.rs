//! The prompt of an attempt: typed sections, chosen by rules and only then turned into text.

#[cfg(test)]
mod tests;

use crate::{
    About, Ask, Attempt, Check, CheckKind, CheckResult, Closed, DeliveryState, End, Goal, GoalState, Reply,
};

/// A prompt in sections, in the order they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub sections: Vec<Section>,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// How unattended work goes.
    Briefing(Briefing),
    /// What is wanted.
    Goal(String),
    /// How it will be checked: names, and what must hold.
    Checks(Vec<(String, String)>),
    /// Another agent worked on the goal before.
    Handover(Handover),
    /// The operator's messages.
    OperatorMessages(Vec<String>),
    /// What was asked, and the answers.
    Answers(Vec<(Ask, Option<Reply>)>),
    /// The agent's last message to Towline could not be read; the text has the reason.
    Misunderstood(String),
    /// The wait that the agent asked for is over; the text has its reason.
    WokenUp(String),
    /// The attempt before ended in the middle of its work; the text has the end.
    Interrupted(String),
    /// An earlier goal of the conversation is over, and its directory is another one.
    NewGoal,
    /// A person worked in the directory after the last prompt.
    PersonWorked,
    /// The attempt before ended its work, nothing was proven, and the operator wants the goal worked on again.
    OpenedAgain,
    /// The checks that failed on the work so far, with what they want and their evidence.
    FailedChecks(Vec<(CheckResult, String)>),
    /// The checks passed with these warm directories, and failed in a clean checkout.
    PassedOnlyWarm(Vec<String>),
    /// Protected paths that were put back.
    Restored(Vec<String>),
    /// How the last verdict was reached, where that may explain it.
    Notes(Vec<String>),
}

/// What another agent did before this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// Each of its attempts: how it ended, and its last words.
    pub attempts: Vec<(String, String)>,
    /// What is changed in the directory, in short.
    pub changes: String,
}

/// How much of an earlier agent's last words is handed over.
const LAST_WORDS: usize = 2_000;

/// The text that explains unattended work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Briefing;

impl Briefing {
    const TEXT: &'static str = "\
You are working unattended: nobody reads along, so decide what you can decide yourself and write in your last message \
what you assumed. What only a person can decide, ask by ending your turn with a message that is nothing but \
{\"towline\": \"ask\", \"question\": \"…\", \"options\": [\"…\"], \"default\": \"…\"} (options and default may be left \
out), or by writing the same object into the file that $TOWLINE_QUESTION_FILE names and ending your turn; you are \
called again with the answer. To wait for something slow, end with nothing but {\"towline\": \"sleep\", \
\"seconds\": 600, \"reason\": \"…\"}. Work only in the current directory. When \
you believe that the goal is reached, end your turn with a short summary. Then the checks are run on a clean checkout \
of everything you left that git does not ignore; if one fails, you will be given its output. Leave nothing running in \
the background.";
}

impl Prompt {
    /// The prompt for a goal's next attempt.
    pub fn next(goal: &Goal, state: &GoalState, conversation: Conversation) -> Self {
        let mut sections = Vec::new();
        let knows_goal = conversation == Conversation::Resumed && last_prompted(state).is_some();
        let checks = state.checks(goal);
        if !knows_goal {
            if goal.briefing {
                sections.push(Section::Briefing(Briefing));
            }
            if goal.continues.is_some() && conversation == Conversation::Resumed {
                sections.push(Section::NewGoal);
            }
            sections.push(Section::Goal(goal.prompt.clone()));
        }
        if !checks.is_empty() && (!knows_goal || are_checks_new(state)) {
            let checks = checks.iter().map(|check| (check.name.clone(), check.describe()));
            sections.push(Section::Checks(checks.collect()));
        }
        sections.extend(news(goal, state, conversation));
        Self { sections }
    }

    /// The text as the agent reads it.
    pub fn render(&self) -> String {
        let parts: Vec<String> = self.sections.iter().map(Section::render).collect();
        parts.join("\n\n")
    }
}

/// Whether the agent already knows the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation {
    /// It knows nothing.
    New,
    /// It knows nothing, and another agent worked before it.
    HandedOver,
    /// It continues the session that knows everything up to the last attempt.
    Resumed,
}

/// Whether the checks were replaced after the last prompt.
fn are_checks_new(state: &GoalState) -> bool {
    let replaced = state.replaced_checks.as_ref();
    replaced.is_some_and(|replaced| last_prompted(state).is_some_and(|last| last.started_at < replaced.since))
}

/// What the agent has not heard yet. A resumed session has every verdict before the last attempt's; a new
/// one has none.
fn news(goal: &Goal, state: &GoalState, conversation: Conversation) -> Vec<Section> {
    let mut sections = messages_and_answers(state, conversation);
    let Some(last) = last_prompted(state) else { return sections };
    sections.extend(last.misunderstood.clone().map(Section::Misunderstood));
    match (&last.verdict, &last.end) {
        _ if conversation == Conversation::HandedOver => {
            sections.insert(0, Section::Handover(Handover::of(state)));
        }
        (None, Some(End::Completed | End::PermissionDenied { .. })) => sections.push(Section::OpenedAgain),
        (_, Some(End::Slept { reason, .. })) => sections.push(Section::WokenUp(reason.clone())),
        (_, Some(End::Asked)) => {}
        (verdict, Some(end)) if verdict.is_none() || end.is_bad() => {
            sections.push(Section::Interrupted(end.kind().to_string()));
        }
        _ => {}
    }
    if state.entered_at.is_some_and(|entered| last.started_at < entered) {
        sections.push(Section::PersonWorked);
    }
    let verdict = match conversation {
        // Earlier verdicts speak of checks that are not in force any more.
        _ if are_checks_new(state) => last.verdict.as_ref(),
        Conversation::New | Conversation::HandedOver => state.last_verdict(),
        Conversation::Resumed => last.verdict.as_ref(),
    };
    if let Some(verdict) = verdict {
        let failed =
            verdict.failed().map(|result| (result.clone(), wanted_of(state.checks(goal), &result.name)));
        sections.push(Section::FailedChecks(failed.collect()));
        if verdict.passed_only_warm() {
            sections.push(Section::PassedOnlyWarm(goal.workspace.warm.clone()));
        }
        if !verdict.restored.is_empty() {
            sections.push(Section::Restored(verdict.restored.clone()));
        }
        if !verdict.notes.is_empty() {
            sections.push(Section::Notes(verdict.notes.clone()));
        }
    }
    sections
}

/// Messages and answers of people. A new conversation gets all of them again.
fn messages_and_answers(state: &GoalState, conversation: Conversation) -> Vec<Section> {
    let is_news =
        |delivery: DeliveryState| conversation != Conversation::Resumed || delivery == DeliveryState::Waiting;
    let messages = state.messages.iter().filter(|message| is_news(message.delivery));
    let messages: Vec<String> = messages.map(|message| message.text.clone()).collect();
    let last = last_prompted(state).map(|attempt| attempt.n);
    let answers = state.questions.iter().filter_map(|question| match &question.closed {
        Some(Closed::Answered { reply, delivery, .. }) => {
            is_news(*delivery).then(|| (question.ask.clone(), Some(reply.clone())))
        }
        // An agent that ended its turn with a question also learns that there is no answer.
        _ => (Some(question.attempt) == last).then(|| (question.ask.clone(), None)),
    });
    let answers: Vec<_> = answers.collect();
    let messages = (!messages.is_empty()).then_some(Section::OperatorMessages(messages));
    messages.into_iter().chain((!answers.is_empty()).then_some(Section::Answers(answers))).collect()
}

/// The last attempt whose prompt reached the agent. One that died before it accepted its prompt, or whose prompt did
/// not fit the context, does not count: its content is part of the next prompt.
fn last_prompted(state: &GoalState) -> Option<&Attempt> {
    let was_prompted = |attempt: &&Attempt| {
        (attempt.turns > 0 && attempt.end != Some(End::ContextOverflow)) || attempt.verdict.is_some()
    };
    state.attempts.iter().rfind(was_prompted)
}

/// A line that describes the check; nothing for a setup, which is no check of the goal.
fn wanted_of(checks: &[Check], name: &str) -> String {
    let Some(check) = checks.iter().find(|check| check.name == name) else { return String::new() };
    let label = if matches!(check.kind, CheckKind::Command { .. }) { "Command" } else { "Wanted" };
    format!("{label}: {}\n", check.describe())
}

impl Handover {
    fn of(state: &GoalState) -> Self {
        let worked = state.attempts.iter().filter(|attempt| attempt.turns > 0);
        let attempts = worked.map(|attempt| {
            let end = attempt.end.as_ref().map_or("unknown", End::name).replace('-', " ");
            (end, tail(attempt.text.trim(), LAST_WORDS).to_owned())
        });
        let changes = state.last_attempt().map(|attempt| attempt.changes.clone()).unwrap_or_default();
        Self { attempts: attempts.collect(), changes }
    }

    fn render(&self) -> String {
        let mut text = "# What was done before\n\nAnother agent worked on this goal in this directory and cannot go on. \
                        Its work is still here: look at it, keep what is good, and finish what is missing."
            .to_owned();
        for (number, (end, words)) in (1..).zip(&self.attempts) {
            text.push_str(&format!("\n\nTurn {number} ended: {end}."));
            if !words.is_empty() {
                let quoted: Vec<String> = words.lines().map(|line| format!("> {line}")).collect();
                text.push_str(&format!(" Its last words:\n{}", quoted.join("\n")));
            }
        }
        if !self.changes.is_empty() {
            text.push_str(&format!("\n\nChanged so far:\n\n```\n{}\n```", self.changes.trim_end()));
        }
        text
    }
}

/// The end of a text, at most so many bytes of it.
fn tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

impl Section {
    fn render(&self) -> String {
        match self {
            Self::Briefing(Briefing) => Briefing::TEXT.to_owned(),
            Self::Goal(text) => format!("# Goal\n\n{text}"),
            Self::Checks(checks) => {
                let lines: Vec<String> =
                    checks.iter().map(|(name, wanted)| format!("- {name}: {wanted}")).collect();
                format!("# How it will be checked\n\n{}", lines.join("\n"))
            }
            Self::Handover(handover) => handover.render(),
            Self::OperatorMessages(messages) => {
                format!("# From the operator\n\n{}", messages.join("\n\n"))
            }
            Self::Answers(answers) => {
                let parts: Vec<String> =
                    answers.iter().map(|(ask, reply)| answered(ask, reply.as_ref())).collect();
                format!("# Answers to what you asked\n\n{}", parts.join("\n\n"))
            }
            Self::Misunderstood(why) => {
                format!("# Not understood\n\nYour last message was meant for Towline, but could not be read: {why}")
            }
            Self::WokenUp(reason) if reason.is_empty() => {
                "# Awake\n\nThe wait that you asked for is over. Go on.".to_owned()
            }
            Self::WokenUp(reason) => {
                format!("# Awake\n\nThe wait that you asked for is over ({reason}). Go on.")
            }
            Self::Interrupted(end) => format!(
                "# Interrupted\n\nThe last turn did not come to its end ({end}). What you changed is still in the \
                 directory. Look at it, then go on."
            ),
            Self::NewGoal => "# A new goal\n\nThe goal before is over, and this one takes its place. The files in the directory \
                              may have changed since then, so look at them before you rely on what you remember."
                .to_owned(),
            Self::PersonWorked => "# A person worked here\n\nSince your last turn a person worked in this directory, and may have \
                                   continued this conversation. Look at what is there now, and keep what they changed."
                .to_owned(),
            Self::OpenedAgain => "# Opened again\n\nYour last turn came to its end, but it is not proven that the goal \
                                  is reached, and it was opened again. Look at what is in the directory, then finish \
                                  what is missing."
                .to_owned(),
            Self::FailedChecks(failed) => {
                let parts: Vec<String> = failed.iter().map(|(result, wanted)| failure(result, wanted)).collect();
                format!("# Checks that failed on your work\n\n{}", parts.join("\n\n"))
            }
            Self::PassedOnlyWarm(warm) => format!(
                "# Clean checkout\n\nAll checks passed in a checkout with build output of an earlier run ({}), and then \
                 failed in a clean one. Only the clean one counts: look for what the work needs and does not contain.",
                warm.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ")
            ),
            Self::Notes(notes) => {
                let lines: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
                format!("# About the checks\n\n{}", lines.join("\n"))
            }
            Self::Restored(paths) => format!(
                "# Protected paths\n\nThese are protected and were put back as they were; changes to them do not \
                 count:\n{}",
                paths.iter().map(|path| format!("- {path}")).collect::<Vec<_>>().join("\n")
            ),
        }
    }
}

fn answered(ask: &Ask, reply: Option<&Reply>) -> String {
    match (&ask.about, reply) {
        (About::Choice { parts }, Some(Reply::Chosen { answers })) => {
            let pairs = parts.iter().zip(answers);
            pairs
                .map(|(part, answer)| format!("- {}\n  {answer}", part.text.trim()))
                .collect::<Vec<_>>()
                .join("\n")
        }
        (About::Permission { call, title, .. }, Some(Reply::Allowed)) => {
            format!("- You may use {} for this once: {title}", call.tool)
        }
        (About::Permission { call, title, .. }, Some(Reply::Always)) => {
            format!("- You may use {} for this, now and later: {title}", call.tool)
        }
        (About::Permission { call, title, .. }, Some(Reply::Denied { message })) => {
            let instead = if message.is_empty() { "Go on without it." } else { message };
            format!("- You may not use {} for this: {title}\n  {instead}", call.tool)
        }
        (_, _) => match (&ask.about, &ask.default) {
            (_, Some(default)) => {
                format!("- {}\n  Nobody answered. Your default holds: {default}", ask.title())
            }
            (About::Permission { call, title, .. }, None) => {
                format!(
                    "- You may not use {} for this: {title}\n  Nobody answered. Go on without it.",
                    call.tool
                )
            }
            (About::Choice { .. }, None) => {
                format!("- {}\n  Nobody answered. Decide yourself, and write what you assumed.", ask.title())
            }
        },
    }
}

fn failure(result: &CheckResult, wanted: &str) -> String {
    let how = match (&result.problem, result.exit_code) {
        (Some(problem), _) => problem.clone(),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "it did not exit".to_owned(),
    };
    let evidence = result.evidence.trim_end();
    if evidence.is_empty() {
        return format!("## {}\n\n{wanted}Result: {how}", result.name);
    }
    // A fence longer than any in the evidence keeps the two apart.
    let fence = "`".repeat(longest_run(evidence, '`').max(2) + 1);
    format!("## {}\n\n{wanted}Result: {how}\n\n{fence}\n{evidence}\n{fence}", result.name)
}

fn longest_run(text: &str, wanted: char) -> usize {
    let mut longest = 0;
    let mut current = 0;
    for found in text.chars() {
        current = if found == wanted { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    longest
}
