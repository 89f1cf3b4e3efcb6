//! `control_request` and `control_response`: what the CLI wants of us, answered at once and by rule.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use towline_core::{AgentEvent, Decision, Outcome};

use super::protocol::{ClaudeProtocol, Reading, notice};
use super::wire::{self, ControlAnswerLine, ControlLine, ControlRequest};
use crate::permission::Ruling;
use crate::protocol::Action;

/// The tool with which the model asks a person. It arrives as a permission request under every mode, and waits.
const QUESTION_TOOL: &str = "AskUserQuestion";

const NOBODY_ANSWERS: &str = "Nobody can answer now: this is unattended work. Decide yourself, go on, and state the \
                              decision and your reasons in your last message.";

#[derive(Serialize)]
struct Answer<'a> {
    r#type: &'static str,
    response: Outer<'a>,
}

#[derive(Serialize)]
struct Outer<'a> {
    subtype: &'static str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Verdict<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
enum Verdict<'a> {
    Allow {
        #[serde(rename = "updatedInput")]
        input: &'a RawValue,
    },
    Deny {
        message: String,
    },
}

impl ClaudeProtocol {
    pub(super) fn on_control_request(&mut self, line: ControlLine<'_>) -> Reading {
        let id = line.request_id.as_str();
        if line.request.subtype.as_str() == "can_use_tool" {
            return Ok(self.on_permission_request(id, &line.request));
        }
        let what = format!("control_request/{}", line.request.subtype.as_str());
        let error = Some(format!("Towline does not answer {}", line.request.subtype.as_str()));
        let refusal = self.answer(Outer { subtype: "error", request_id: id, response: None, error });
        Ok(refusal.into_iter().chain(self.unknown(what, id)).collect())
    }

    fn on_permission_request(&mut self, id: &str, request: &ControlRequest<'_>) -> Vec<Action> {
        let tool = wire::text(&request.tool_name);
        let raw = request.input.unwrap_or(RawValue::NULL);
        let input = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
        let mut actions = Vec::new();
        let (verdict, outcome, rule) = if tool == QUESTION_TOOL {
            actions.push(notice(unanswered(&input)));
            (Verdict::Deny { message: NOBODY_ANSWERS.to_owned() }, Outcome::Deny, None)
        } else {
            let Ruling { outcome, rule } = self.rules.ruling(tool, &input, self.directory.as_deref());
            let verdict = match outcome {
                Outcome::Allow => Verdict::Allow { input: raw },
                Outcome::Deny => Verdict::Deny { message: not_allowed(tool) },
            };
            (verdict, outcome, Some(rule))
        };
        if outcome == Outcome::Deny {
            self.denied.insert(wire::text(&request.tool_use_id).to_owned());
        }
        let answer = Outer { subtype: "success", request_id: id, response: Some(verdict), error: None };
        actions.extend(self.answer(answer));
        let decision = Decision { tool: tool.to_owned(), outcome, by: "rule".to_owned(), rule };
        actions.push(Action::emit(AgentEvent::Decided(decision)));
        actions
    }

    pub(super) fn on_control_answer(&mut self, line: ControlAnswerLine<'_>) -> Reading {
        let failed = line.response.subtype.as_str() == "error";
        let words = wire::text(&line.response.error);
        Ok(failed
            .then(|| notice(format!("the agent refused a request of Towline: {words}")))
            .into_iter()
            .collect())
    }

    fn answer(&self, response: Outer<'_>) -> Option<Action> {
        self.write(&Answer { r#type: "control_response", response })
    }
}

fn not_allowed(tool: &str) -> String {
    format!("{tool} is not permitted here in this way, and nobody can be asked. Go on without it.")
}

fn unanswered(input: &Value) -> String {
    let questions = input.get("questions").and_then(Value::as_array).into_iter().flatten();
    let asked: Vec<_> = questions.filter_map(|question| question.get("question")?.as_str()).collect();
    format!("the agent asked, and was told to decide by itself: {}", asked.join(" / "))
}
