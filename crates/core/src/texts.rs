//! The words in events: every text that somebody else may have put a secret into, for whoever hides it.
//!
//! Left out are ids that must be given back as they came (of a session, of a request that waits for its answer), hashes,
//! and the workspace, which the agent is started in.

use serde_json::Value;

use crate::{
    About, AgentEvent, Ask, CheckResult, End, EscalationReason, Event, FailureReason, LaunchProblem,
    MissingProgram, NoOpinion, Phase, Reply, StopWhy, ToolUse, TurnEnd, TurnStop, Verdict,
};

/// What is done with each text.
type Each<'a> = &'a mut dyn FnMut(&mut String);

impl Event {
    /// Does something with every text in it.
    pub fn for_each_text(&mut self, each: Each<'_>) {
        match self {
            Self::Agent { event } => event.for_each_text(each),
            Self::Prepared { warnings, .. } => warnings.iter_mut().for_each(&mut *each),
            Self::BaselineReached { checks, missing, .. } => {
                checks.iter_mut().for_each(|check| of_check(check, each));
                missing.iter_mut().for_each(|missing| of_missing(missing, each));
            }
            Self::BaselineUnknown { reason, .. } => each(reason),
            Self::PrepareFailed { error } | Self::ChecksFailed { error } | Self::Unconfigured { error } => {
                each(error)
            }
            Self::RepositoryGone { path } => each(path),
            Self::AttemptEnded { end, exit, changes, .. } => {
                end.for_each_text(each);
                [&mut exit.stderr_tail, changes].into_iter().for_each(each);
            }
            Self::HandedOver { why, .. } | Self::AgentUnavailable { why, .. } => each(why),
            Self::CheckStarted { name, .. } => each(name),
            Self::CheckFinished { result } => of_check(result, each),
            Self::JudgeStarted { check, model, .. } => {
                each(check);
                model.iter_mut().for_each(each);
            }
            Self::JudgeUsed { model, .. } => model.iter_mut().for_each(each),
            Self::JudgeEnded { end, .. } => end.for_each_text(each),
            Self::JudgeUnavailable { check, reason, .. } => {
                each(check);
                of_no_opinion(reason, each);
            }
            Self::VerdictReached { verdict } | Self::Verified { verdict } => verdict.for_each_text(each),
            Self::Answered { reply, .. } => of_reply(reply, each),
            Self::Merged { into, .. } => each(into),
            Self::Published { branch, .. } => each(branch),
            Self::MessageSent { text } | Self::Notice { text } => each(text),
            Self::CompactRequested { focus } => focus.iter_mut().for_each(each),
            Self::PhaseChanged { phase } => of_phase(phase, each),
            Self::PrerequisitesMet { inherited } => inherited.prompt.iter_mut().for_each(each),
            Self::Created
            | Self::Claimed { .. }
            | Self::Dispatched { .. }
            | Self::AccountUnavailable { .. }
            | Self::SharedBudgetSpent { .. }
            | Self::AttemptStarted { .. }
            | Self::TimeoutReached { .. }
            | Self::Stopped
            | Self::Woken
            | Self::CancelRequested
            | Self::PauseRequested { .. }
            | Self::ResumeRequested
            | Self::Entered { .. }
            | Self::Left { .. }
            | Self::Restored { .. }
            | Self::Continued { .. }
            | Self::AnswerDelivered { .. }
            | Self::ChecksReplaced { .. }
            | Self::RetryRequested { .. }
            | Self::ClockMoved { .. } => {}
        }
    }
}

impl AgentEvent {
    /// Does something with every text in it.
    pub fn for_each_text(&mut self, each: Each<'_>) {
        match self {
            Self::Message { text, .. }
            | Self::MessageDelta { text }
            | Self::Thought { text }
            | Self::Progress { text, .. }
            | Self::Notice { text } => each(text),
            Self::Tool(tool) => of_tool(tool, each),
            Self::Plan { entries } => entries.iter_mut().for_each(|entry| each(&mut entry.text)),
            Self::Retrying { error, .. } => each(error),
            Self::NotCompacted { reason } | Self::SleepAsked { reason, .. } => each(reason),
            Self::Asked(ask) => of_ask(ask, each),
            Self::Submitted { summary } => each(summary),
            Self::Decided(decision) => {
                each(&mut decision.tool);
                decision.rule.iter_mut().for_each(each);
            }
            Self::TurnEnded(end) => of_turn_end(end, each),
            Self::Unrecognised { what, raw, .. } => {
                each(what);
                each(raw);
            }
            Self::RateLimit(limit) => limit.scope.iter_mut().for_each(each),
            Self::SessionStarted(session) => {
                session.model.iter_mut().for_each(&mut *each);
                session.agent_version.iter_mut().for_each(each);
            }
            Self::Usage { model, .. } => model.iter_mut().for_each(each),
            Self::TurnStarted | Self::Compacted { .. } | Self::Withdrawn { .. } | Self::Heard { .. } => {}
        }
    }
}

fn of_tool(tool: &mut ToolUse, each: Each<'_>) {
    let ToolUse { id, name, title, input, output, paths, .. } = tool;
    [id, name, title].into_iter().for_each(&mut *each);
    input.iter_mut().for_each(|input| of_value(input, each));
    output.iter_mut().chain(paths).for_each(each);
}

fn of_value(value: &mut Value, each: Each<'_>) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter_mut().for_each(|item| of_value(item, each)),
        Value::Object(fields) => {
            let named = std::mem::take(fields).into_iter();
            fields.extend(named.map(|(mut name, mut value)| {
                each(&mut name);
                of_value(&mut value, each);
                (name, value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn of_ask(ask: &mut Ask, each: Each<'_>) {
    match &mut ask.about {
        About::Choice { parts } => {
            for part in parts {
                each(&mut part.text);
                for option in &mut part.options {
                    each(&mut option.label);
                    each(&mut option.description);
                }
            }
        }
        About::Permission { title, rule, .. } => {
            each(title);
            each(rule);
        }
    }
    ask.default.iter_mut().for_each(each);
}

fn of_reply(reply: &mut Reply, each: Each<'_>) {
    match reply {
        Reply::Chosen { answers } => answers.iter_mut().for_each(each),
        Reply::Denied { message } => each(message),
        Reply::Allowed | Reply::Always => {}
    }
}

fn of_turn_end(end: &mut TurnEnd, each: Each<'_>) {
    each(&mut end.text);
    end.structured.iter_mut().for_each(|structured| of_value(structured, each));
    if let TurnStop::Failed { reason, .. } = &mut end.stop {
        each(reason);
    }
}

fn of_check(result: &mut CheckResult, each: Each<'_>) {
    each(&mut result.name);
    each(&mut result.evidence);
    result.problem.iter_mut().for_each(each);
}

impl Verdict {
    /// Does something with every text in it.
    pub fn for_each_text(&mut self, each: Each<'_>) {
        self.restored.iter_mut().chain(&mut self.notes).for_each(&mut *each);
        self.checks.iter_mut().for_each(|check| of_check(check, each));
    }
}

impl End {
    /// Does something with every text in it.
    pub fn for_each_text(&mut self, each: Each<'_>) {
        match self {
            Self::Slept { reason, .. } => each(reason),
            Self::ServerError { message, .. }
            | Self::Refused { message, .. }
            | Self::Auth { message }
            | Self::Declined { message }
            | Self::Crashed { message } => each(message),
            Self::PermissionDenied { tool, rule } => {
                each(tool);
                each(rule);
            }
            Self::SpawnFailed { problem } => match problem {
                LaunchProblem::NotFound { program } | LaunchProblem::NotExecutable { program } => {
                    each(program)
                }
                LaunchProblem::NoDirectory { path } | LaunchProblem::NoRepository { path } => each(path),
                LaunchProblem::Configuration { message } | LaunchProblem::Other { message } => each(message),
            },
            Self::Completed
            | Self::Asked
            | Self::RateLimited { .. }
            | Self::ContextOverflow
            | Self::ResumeRefused { .. }
            | Self::MaxTurns
            | Self::MaxBudget
            | Self::TimedOut { .. }
            | Self::Lost
            | Self::Cancelled
            | Self::OverBudget
            | Self::Interrupted
            | Self::OutputLimit => {}
        }
    }
}

fn of_phase(phase: &mut Phase, each: Each<'_>) {
    match phase {
        Phase::Sleeping { reason, .. } => each(reason),
        Phase::Stopping(stopping) => {
            if let StopWhy::Auth { message } = &mut stopping.why {
                each(message);
            }
        }
        Phase::Escalated { reason } => of_escalation(reason, each),
        Phase::Failed { reason: FailureReason::Setup { error } } => each(error),
        Phase::Failed { reason: FailureReason::MissingProgram(missing) } => of_missing(missing, each),
        Phase::Failed { .. }
        | Phase::Queued
        | Phase::Preparing
        | Phase::Running { .. }
        | Phase::Checking { .. }
        | Phase::Limited { .. }
        | Phase::Blocked { .. }
        | Phase::Paused { .. }
        | Phase::Done
        | Phase::Unproven
        | Phase::Cancelled => {}
    }
}

fn of_no_opinion(reason: &mut NoOpinion, each: Each<'_>) {
    match reason {
        NoOpinion::Unreachable { message } | NoOpinion::Unusable { message } => each(message),
        NoOpinion::Limited { .. } | NoOpinion::Budget { .. } => {}
    }
}

fn of_missing(missing: &mut MissingProgram, each: Each<'_>) {
    each(&mut missing.check);
    each(&mut missing.program);
}

fn of_escalation(reason: &mut EscalationReason, each: Each<'_>) {
    match reason {
        EscalationReason::Auth { message, .. }
        | EscalationReason::NeverStarted { message }
        | EscalationReason::Unreachable { message }
        | EscalationReason::Declined { message } => each(message),
        EscalationReason::SpawnFailed { problem } => each(problem),
        EscalationReason::ChecksFailed { error } | EscalationReason::Configuration { error } => each(error),
        EscalationReason::RepositoryGone { path } => each(path),
        EscalationReason::PermissionDenied { tool, rule } => {
            each(tool);
            each(rule);
        }
        EscalationReason::Unanswered { question } => each(question),
        EscalationReason::JudgeUnavailable { check, problem, .. } => {
            each(check);
            each(problem);
        }
        EscalationReason::NoAgent | EscalationReason::NoProgress { .. } | EscalationReason::OutputLimit => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events with `WORD` in every text that somebody else may have written, one of each kind that has such texts.
    const AGENT: [&str; 19] = [
        r#"{"kind":"session_started","native_id":"s","resumed":false,"model":"WORD","agent_version":"WORD"}"#,
        r#"{"kind":"message","role":"assistant","text":"WORD"}"#,
        r#"{"kind":"message_delta","text":"WORD"}"#,
        r#"{"kind":"thought","text":"WORD"}"#,
        r#"{"kind":"tool","id":"WORD","tool":"execute","name":"WORD","title":"WORD","status":"ok",
            "input":{"WORD":["WORD",{"a":"WORD"}]},"output":"WORD","exit_code":1,"paths":["WORD"]}"#,
        r#"{"kind":"plan","entries":[{"text":"WORD","done":false}]}"#,
        r#"{"kind":"usage","model":"WORD","used":{"input":0,"output":0,"cache_read":0,"cache_write":0,"cost":0},
            "context_used":null,"context_size":null}"#,
        r#"{"kind":"rate_limit","scope":"WORD","status":"warning","utilization":null,"resets_at":null}"#,
        r#"{"kind":"retrying","status":500,"attempt":1,"delay_ms":1,"error":"WORD"}"#,
        r#"{"kind":"not_compacted","reason":"WORD"}"#,
        r#"{"kind":"asked","request":"r","about":{"about":"choice","parts":[{"text":"WORD","options":[
            {"label":"WORD","description":"WORD"}],"many":false}]},"default":"WORD","patience":null}"#,
        r#"{"kind":"asked","request":"r","about":{"about":"permission","call":{"tool":"Bash","input":"hash"},
            "title":"WORD","rule":"WORD"},"default":null,"patience":null}"#,
        r#"{"kind":"sleep_asked","duration":{"secs":1,"nanos":0},"reason":"WORD"}"#,
        r#"{"kind":"progress","text":"WORD","percent":1}"#,
        r#"{"kind":"submitted","summary":"WORD"}"#,
        r#"{"kind":"decided","tool":"WORD","outcome":"deny","by":"rule","rule":"WORD"}"#,
        r#"{"kind":"notice","text":"WORD"}"#,
        r#"{"kind":"turn_ended","stop":{"why":"failed","status":null,"reason":"WORD"},"text":"WORD",
            "structured":{"a":["WORD"]},"inner_turns":null,"reported_cost":null}"#,
        r#"{"kind":"unrecognised","what":"WORD","raw":"WORD","count":1}"#,
    ];
    const OTHERS: [&str; 35] = [
        r#"{"kind":"prepared","workspace":{"path":"p","branch":"b","base":"c"},"warnings":["WORD"]}"#,
        r#"{"kind":"baseline_reached","round":1,"checks":[CHECK],"missing":{"check":"WORD","program":"WORD"}}"#,
        r#"{"kind":"baseline_unknown","round":1,"reason":"WORD"}"#,
        r#"{"kind":"prepare_failed","error":"WORD"}"#,
        r#"{"kind":"repository_gone","path":"WORD"}"#,
        r#"{"kind":"checks_failed","error":"WORD"}"#,
        r#"{"kind":"check_started","name":"WORD"}"#,
        r#"{"kind":"check_finished","result":CHECK}"#,
        r#"{"kind":"judge_started","n":1,"check":"WORD","agent":"a","account":"a","model":"WORD","directory":"d"}"#,
        r#"{"kind":"judge_used","n":1,"model":"WORD","used":{"input":0,"output":0,"cache_read":0,"cache_write":0,"cost":0}}"#,
        r#"{"kind":"judge_ended","n":1,"end":{"end":"crashed","message":"WORD"}}"#,
        r#"{"kind":"judge_unavailable","check":"WORD","agent":"a","account":"a",
            "reason":{"why":"unreachable","message":"WORD"}}"#,
        r#"{"kind":"judge_unavailable","check":"WORD","agent":"a","account":"a",
            "reason":{"why":"unusable","message":"WORD"}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":
            {"why":"judge_unavailable","check":"WORD","agent":"a","problem":"WORD"}}}"#,
        r#"{"kind":"verdict_reached","verdict":VERDICT}"#,
        r#"{"kind":"verified","verdict":VERDICT}"#,
        r#"{"kind":"merged","into":"WORD","commit":"c","candidate":"c"}"#,
        r#"{"kind":"handed_over","from":"a","to":"b","why":"WORD"}"#,
        r#"{"kind":"answered","question":1,"reply":{"reply":"chosen","answers":["WORD"]},"by":"person"}"#,
        r#"{"kind":"answered","question":1,"reply":{"reply":"denied","message":"WORD"},"by":"person"}"#,
        r#"{"kind":"told","text":"WORD"}"#,
        r#"{"kind":"compact_requested","focus":"WORD"}"#,
        r#"{"kind":"notice","text":"WORD"}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"sleeping","until":"2030-01-01T00:00:00Z","reason":"WORD"}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"stopping","attempt":1,"why":{"why":"auth","message":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"failed","reason":{"why":"setup","error":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"failed","reason":
            {"why":"missing_program","check":"WORD","program":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"auth","agent":"a","message":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"spawn_failed","problem":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"never_started","message":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"declined","message":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"checks_failed","error":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"repository_gone","path":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":
            {"why":"permission_denied","tool":"WORD","rule":"WORD"}}}"#,
        r#"{"kind":"phase_changed","phase":{"phase":"escalated","reason":{"why":"unanswered","question":"WORD"}}}"#,
    ];
    const ENDS: [&str; 10] = [
        r#"{"end":"slept","duration":{"secs":1,"nanos":0},"reason":"WORD"}"#,
        r#"{"end":"server_error","status":500,"message":"WORD"}"#,
        r#"{"end":"auth","message":"WORD"}"#,
        r#"{"end":"declined","message":"WORD"}"#,
        r#"{"end":"crashed","message":"WORD"}"#,
        r#"{"end":"permission_denied","tool":"WORD","rule":"WORD"}"#,
        r#"{"end":"spawn_failed","problem":{"problem":"not_found","program":"WORD"}}"#,
        r#"{"end":"spawn_failed","problem":{"problem":"not_executable","program":"WORD"}}"#,
        r#"{"end":"spawn_failed","problem":{"problem":"no_directory","path":"WORD"}}"#,
        r#"{"end":"spawn_failed","problem":{"problem":"other","message":"WORD"}}"#,
    ];
    const CHECK: &str = r#"{"name":"WORD","met":false,"exit_code":1,"problem":"WORD","evidence":"WORD",
        "took":{"secs":1,"nanos":0}}"#;

    fn samples() -> Vec<String> {
        let verdict = format!(r#"{{"candidate":"c","tree":"t","restored":["WORD"],"checks":[{CHECK}]}}"#);
        let agent = AGENT.iter().map(|event| format!(r#"{{"kind":"agent","event":{event}}}"#));
        let others = OTHERS.iter().map(|event| event.replace("VERDICT", &verdict).replace("CHECK", CHECK));
        let ends = ENDS.iter().map(|end| {
            format!(
                r#"{{"kind":"attempt_ended","end":{end},"exit":{{"code":1,"signal":null,"stderr_tail":"WORD"}},
                    "work":"nothing","changes":"WORD"}}"#
            )
        });
        agent.chain(others).chain(ends).collect()
    }

    #[test]
    fn every_text_of_every_event_is_seen() {
        for sample in samples() {
            let mut event: Event =
                serde_json::from_str(&sample).unwrap_or_else(|error| panic!("{error}: {sample}"));
            let expected = serde_json::to_string(&event).expect("JSON").replace("WORD", "changed");
            event.for_each_text(&mut |text| *text = text.replace("WORD", "changed"));
            assert_eq!(serde_json::to_string(&event).expect("JSON"), expected);
        }
    }
}
