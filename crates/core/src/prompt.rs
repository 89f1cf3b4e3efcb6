//! The prompt of an attempt: sections of text, chosen by what the agent does not know yet.

#[cfg(test)]
mod tests;

use crate::{
    About, Ask, Attempt, Check, CheckKind, CheckResult, Closed, DeliveryState, End, Goal, GoalState, Reply,
    Verdict,
};

/// How much of an earlier agent's last words is handed over.
const LAST_WORDS: usize = 2_000;

/// How unattended work goes.
const BRIEFING: &str = "\
You are working unattended: nobody reads along, so decide what you can decide yourself and write in your last message \
what you assumed. What only a person can decide, ask by ending your turn with a message that is nothing but \
{\"towline\": \"ask\", \"question\": \"…\", \"options\": [\"…\"], \"default\": \"…\"} (options and default may be left \
out), or by writing the same object into the file that $TOWLINE_QUESTION_FILE names and ending your turn; you are \
called again with the answer. To wait for something slow, end with nothing but {\"towline\": \"sleep\", \
\"seconds\": 600, \"reason\": \"…\"}. Work only in the current directory. When \
you believe that the goal is reached, end your turn with a short summary. Then the checks are run on a clean checkout \
of everything you left that git does not ignore; if one fails, you will be given its output. Leave nothing running in \
the background.";

/// For a conversation of an earlier goal, whose directory is another one now.
const NEW_GOAL: &str = "\
# A new goal

The goal before is over, and this one takes its place. The files in the directory may have changed since then, so look at \
them before you rely on what you remember.";

const PERSON_WORKED: &str = "\
# A person worked here

Since your last turn a person worked in this directory, and may have continued this conversation. Look at what is there \
now, and keep what they changed.";

/// The attempt before ended its work, nothing was proven, and the operator wants the goal worked on again.
const OPENED_AGAIN: &str = "\
# Opened again

Your last turn came to its end, but it is not proven that the goal is reached, and it was opened again. Look at what is in \
the directory, then finish what is missing.";

/// Whether the agent already knows the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversation {
    /// It knows nothing.
    New,
    /// It knows nothing, and another agent worked before it.
    HandedOver,
    /// It continues the session that knows everything up to the last attempt.
    Resumed,
}

/// The prompt for a goal's next attempt.
pub(crate) fn next_prompt(goal: &Goal, state: &GoalState, conversation: Conversation) -> String {
    let mut sections = Vec::new();
    let knows_goal = conversation == Conversation::Resumed && last_prompted(state).is_some();
    let checks = state.checks(goal);
    if !knows_goal {
        if goal.briefing {
            sections.push(BRIEFING.to_owned());
        }
        if goal.continues.is_some() && conversation == Conversation::Resumed {
            sections.push(NEW_GOAL.to_owned());
        }
        sections.push(format!("# Goal\n\n{}", goal.prompt));
    }
    if !checks.is_empty() && (!knows_goal || are_checks_new(state)) {
        let lines = checks.iter().map(|check| format!("- {}: {}", check.name, check.describe_to_agents()));
        sections.push(format!("# How it will be checked\n\n{}", joined(lines, "\n")));
    }
    sections.extend(news(goal, state, conversation));
    sections.join("\n\n")
}

/// Whether the checks were replaced after the last prompt.
fn are_checks_new(state: &GoalState) -> bool {
    let replaced = state.replaced_checks.as_ref();
    replaced.is_some_and(|replaced| last_prompted(state).is_some_and(|last| last.started_at < replaced.since))
}

/// What the agent has not heard yet. A resumed session has every verdict before the last attempt's; a new
/// one has none.
fn news(goal: &Goal, state: &GoalState, conversation: Conversation) -> Vec<String> {
    let mut sections = messages_and_answers(state, conversation);
    let Some(last) = last_prompted(state) else { return sections };
    sections.extend(last.misunderstood.as_ref().map(|why| {
        format!("# Not understood\n\nYour last message was meant for Towline, but could not be read: {why}")
    }));
    match (&last.verdict, &last.end) {
        _ if conversation == Conversation::HandedOver => sections.insert(0, handover(state)),
        (None, Some(End::Completed | End::PermissionDenied { .. })) => sections.push(OPENED_AGAIN.to_owned()),
        (_, Some(End::Slept { reason, .. })) => {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            sections.push(format!("# Awake\n\nThe wait that you asked for is over{reason}. Go on."));
        }
        (_, Some(End::Asked)) => {}
        (verdict, Some(end)) if verdict.is_none() || end.is_bad() => sections.push(format!(
            "# Interrupted\n\nThe last turn did not come to its end ({}). What you changed is still in the directory. \
             Look at it, then go on.",
            end.kind()
        )),
        _ => {}
    }
    if state.entered_at.is_some_and(|entered| last.started_at < entered) {
        sections.push(PERSON_WORKED.to_owned());
    }
    let verdict = match conversation {
        // Earlier verdicts speak of checks that are not in force any more.
        _ if are_checks_new(state) => last.verdict.as_ref(),
        Conversation::New | Conversation::HandedOver => state.last_verdict(),
        Conversation::Resumed => last.verdict.as_ref(),
    };
    sections.extend(verdict.into_iter().flat_map(|verdict| about_verdict(goal, state, verdict)));
    sections
}

/// What failed, and how the verdict was reached where that may explain it.
fn about_verdict(goal: &Goal, state: &GoalState, verdict: &Verdict) -> Vec<String> {
    let checks = state.checks(goal);
    let failures = verdict.failed().map(|result| match hidden_in(checks, result) {
        Some(hidden) if hidden.name == result.name => {
            format!("## {}\n\nThis check is hidden. Result: it failed", result.name)
        }
        Some(_) => failure(&CheckResult { evidence: String::new(), ..result.clone() }, ""),
        None => failure(result, &wanted_of(checks, &result.name)),
    });
    let mut sections = vec![format!("# Checks that failed on your work\n\n{}", joined(failures, "\n\n"))];
    if verdict.passed_only_warm() {
        let warm = goal.workspace.warm.iter().map(|path| format!("`{path}`"));
        sections.push(format!(
            "# Clean checkout\n\nAll checks passed in a checkout with build output of an earlier run ({}), and then \
             failed in a clean one. Only the clean one counts: look for what the work needs and does not contain.",
            joined(warm, ", ")
        ));
    }
    if !verdict.restored.is_empty() {
        sections.push(format!(
            "# Protected paths\n\nThese are protected and were put back as they were; changes to them do not \
             count:\n{}",
            listed(&verdict.restored)
        ));
    }
    let is_shown = |note: &&String| !checks.iter().any(|check| is_hidden_in(check, note));
    let notes: Vec<String> = verdict.notes.iter().filter(is_shown).cloned().collect();
    if !notes.is_empty() {
        sections.push(format!("# About the checks\n\n{}", listed(&notes)));
    }
    sections
}

/// The hidden check that a result is of, or that its problem names.
fn hidden_in<'a>(checks: &'a [Check], result: &CheckResult) -> Option<&'a Check> {
    let is_of = |check: &&Check| !check.hidden.is_shown() && check.name == result.name;
    let is_named =
        |check: &&Check| result.problem.as_ref().is_some_and(|problem| is_hidden_in(check, problem));
    checks.iter().find(is_of).or_else(|| checks.iter().find(is_named))
}

/// Whether a text is about this check, which is hidden.
fn is_hidden_in(check: &Check, text: &str) -> bool {
    !check.hidden.is_shown() && text.contains(&format!("`{}`", check.name))
}

fn listed(items: &[String]) -> String {
    joined(items.iter().map(|item| format!("- {item}")), "\n")
}

fn joined(parts: impl Iterator<Item = String>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}

/// Messages and answers of people. A new conversation gets all of them again.
fn messages_and_answers(state: &GoalState, conversation: Conversation) -> Vec<String> {
    let is_news =
        |delivery: DeliveryState| conversation != Conversation::Resumed || delivery == DeliveryState::Waiting;
    let messages = state.messages.iter().filter(|message| is_news(message.delivery));
    let messages = joined(messages.map(|message| message.text.clone()), "\n\n");
    let last = last_prompted(state).map(|attempt| attempt.n);
    let answers = state.questions.iter().filter_map(|question| match &question.closed {
        Some(Closed::Answered { reply, delivery, .. }) => {
            is_news(*delivery).then(|| answered(&question.ask, Some(reply)))
        }
        // An agent that ended its turn with a question also learns that there is no answer.
        _ => (Some(question.attempt) == last).then(|| answered(&question.ask, None)),
    });
    let answers = joined(answers, "\n\n");
    let sections = [("From the operator", messages), ("Answers to what you asked", answers)];
    let sections = sections.into_iter().filter(|(_, text)| !text.is_empty());
    sections.map(|(title, text)| format!("# {title}\n\n{text}")).collect()
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

/// What another agent did before this one: how each of its attempts ended, its last words, and what is changed.
fn handover(state: &GoalState) -> String {
    let mut text =
        "# What was done before\n\nAnother agent worked on this goal in this directory and cannot go on. \
                    Its work is still here: look at it, keep what is good, and finish what is missing."
            .to_owned();
    for (number, attempt) in (1..).zip(state.attempts.iter().filter(|attempt| attempt.turns > 0)) {
        let end = attempt.end.as_ref().map_or("unknown", End::name);
        text.push_str(&format!("\n\nTurn {number} ended: {end}."));
        let words = attempt.text.trim();
        let words = &words[words.ceil_char_boundary(words.len().saturating_sub(LAST_WORDS))..];
        if !words.is_empty() {
            let quoted = joined(words.lines().map(|line| format!("> {line}")), "\n");
            text.push_str(&format!(" Its last words:\n{quoted}"));
        }
    }
    let changes = state.last_attempt().map(|attempt| attempt.changes.trim_end()).unwrap_or_default();
    if !changes.is_empty() {
        text.push_str(&format!("\n\nChanged so far:\n\n```\n{changes}\n```"));
    }
    text
}

fn answered(ask: &Ask, reply: Option<&Reply>) -> String {
    let short = |title: &str| title.chars().take(About::SHOWN).collect::<String>();
    match (&ask.about, reply, &ask.default) {
        (About::Choice { parts }, Some(Reply::Chosen { answers }), _) => {
            let pairs = parts.iter().zip(answers);
            joined(pairs.map(|(part, answer)| format!("- {}\n  {answer}", part.text.trim())), "\n")
        }
        (About::Permission { call, title, .. }, Some(Reply::Allowed), _) => {
            format!("- You may use {} for this once: {}", call.tool, short(title))
        }
        (About::Permission { call, title, .. }, Some(Reply::Always), _) => {
            format!("- You may use {} for this, now and later: {}", call.tool, short(title))
        }
        (About::Permission { call, title, .. }, Some(Reply::Denied { message }), _) => {
            let instead = if message.is_empty() { "Go on without it." } else { message };
            format!("- You may not use {} for this: {}\n  {instead}", call.tool, short(title))
        }
        (_, _, Some(default)) => {
            format!("- {}\n  Nobody answered. Your default holds: {default}", ask.title())
        }
        (About::Permission { call, title, .. }, _, None) => {
            let title = short(title);
            format!("- You may not use {} for this: {title}\n  Nobody answered. Go on without it.", call.tool)
        }
        (About::Choice { .. }, _, None) => {
            format!("- {}\n  Nobody answered. Decide yourself, and write what you assumed.", ask.title())
        }
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
    let longest = evidence.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("## {}\n\n{wanted}Result: {how}\n\n{fence}\n{evidence}\n{fence}", result.name)
}
