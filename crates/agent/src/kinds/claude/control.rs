//! `control_request` and related frames: requests of the CLI. The rules answer at once. A request that only a person
//! can decide stays open until the answer comes or the CLI stops waiting.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use towline_core::{About, AgentEvent, Ask, Decision, Outcome, Part, Reply};

use super::protocol::ClaudeProtocol;
use super::tools;
use super::wire::{self, CancelLine, ControlAnswerLine, ControlLine, ControlRequest};
use crate::lines::Reading;
use crate::permission::{self, BY_RULE, NO_ANSWER, Ruling, Verdict};
use crate::protocol::Action;
use crate::text;

/// The tool with which the model asks a person. It arrives as a permission request in every mode, and waits.
const QUESTION_TOOL: &str = "AskUserQuestion";

const NOT_READABLE: &str = "This question cannot be shown to anybody. Decide yourself, go on, and state the decision \
                            and your reasons in your last message.";

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
    response: Option<Inner<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
enum Inner<'a> {
    Allow {
        #[serde(rename = "updatedInput")]
        input: &'a RawValue,
    },
    Deny {
        message: String,
    },
}

/// A request that waits for a person.
#[derive(Debug)]
pub(super) struct PendingControl {
    tool: String,
    /// The id of the tool call.
    call: String,
    input: Box<RawValue>,
    /// The model's questions, verbatim, because answers are keyed by them. Empty for a permission request.
    questions: Vec<String>,
}

impl PendingControl {
    /// The input with the answers where the tool expects them.
    fn answered(&self, answers: &[String]) -> Option<Box<RawValue>> {
        let mut input: serde_json::Map<String, Value> = serde_json::from_str(self.input.get()).ok()?;
        let answers: Value = self.questions.iter().cloned().zip(answers.iter().map(String::as_str)).collect();
        input.insert("answers".to_owned(), answers);
        to_raw_value(&input).ok()
    }

    fn refusal(&self, message: &str) -> String {
        if !message.trim().is_empty() {
            message.to_owned()
        } else if self.questions.is_empty() {
            format!("The operator does not permit this use of {}. Go on without it.", self.tool)
        } else {
            NO_ANSWER.to_owned()
        }
    }
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
        Ok(refusal.into_iter().chain(self.lines.unknown(what, id)).collect())
    }

    fn on_permission_request(&mut self, id: &str, request: &ControlRequest<'_>) -> Vec<Action> {
        let tool = wire::text(&request.tool_name);
        let raw = request.input.unwrap_or(RawValue::NULL);
        let input = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
        let ruling = self.rules.ruling(tool, &input, self.directory.as_deref());
        if tool == QUESTION_TOOL && self.rules.denying(tool, &input, self.directory.as_deref()).is_none() {
            return match questions(raw) {
                Some(questions) => {
                    let parts = questions.iter().map(part).collect();
                    let questions = questions.into_iter().map(|question| question.question).collect();
                    self.ask(id, request, About::Choice { parts }, questions)
                }
                None => {
                    let counted = self.lines.unknown(format!("control_request/{QUESTION_TOOL}"), raw.get());
                    let refusal = self.settle(id, request, Err(NOT_READABLE.to_owned()), BY_RULE, None);
                    counted.into_iter().chain(refusal).collect()
                }
            };
        }
        let Ruling { verdict, by, rule } = ruling;
        match verdict {
            Verdict::Allow => self.settle(id, request, Ok(raw), by, Some(rule)),
            Verdict::Deny => self.settle(id, request, Err(not_allowed(tool)), by, Some(rule)),
            Verdict::Ask => {
                let call = permission::tool_call(tool, &input);
                let title = tools::what_is_wanted(tool, &input);
                self.ask(id, request, About::Permission { call, title, rule }, Vec::new())
            }
        }
    }

    /// Answers a request at once: with the permitted input, or with the refusal's message.
    fn settle(
        &mut self,
        id: &str,
        request: &ControlRequest<'_>,
        answer: Result<&RawValue, String>,
        by: &str,
        rule: Option<String>,
    ) -> Vec<Action> {
        let (response, outcome) = match answer {
            Ok(input) => (Inner::Allow { input }, Outcome::Allow),
            Err(message) => (Inner::Deny { message }, Outcome::Deny),
        };
        if outcome == Outcome::Deny {
            self.denied.insert(wire::text(&request.tool_use_id).to_owned());
        }
        let written = self.verdict(id, response);
        let tool = wire::text(&request.tool_name).to_owned();
        let decision = Decision { tool, outcome, by: by.to_owned(), rule };
        written.into_iter().chain([Action::emit(AgentEvent::Decided(decision))]).collect()
    }

    /// Leaves a request to a person. It does not wait if the CLI no longer accepts input.
    fn ask(
        &mut self,
        id: &str,
        request: &ControlRequest<'_>,
        about: About,
        questions: Vec<String>,
    ) -> Vec<Action> {
        let call = wire::text(&request.tool_use_id).to_owned();
        self.put_to_person.insert(call.clone());
        let waits = self.lines.listens();
        if let Some(outcome) = self.answered.get(id) {
            if *outcome == Outcome::Deny {
                self.denied.insert(call);
            }
        } else if waits {
            let tool = wire::text(&request.tool_name).to_owned();
            let input = request.input.unwrap_or(RawValue::NULL).to_owned();
            self.pending.insert(id.to_owned(), PendingControl { tool, call, input, questions });
        }
        let request = waits.then(|| id.to_owned());
        vec![Action::emit(AgentEvent::Asked(Ask { request, about, default: None, patience: None }))]
    }

    /// Reads a line that the agent was sent before: answers in it are known.
    pub(super) fn recall_answer(&mut self, line: &[u8]) {
        let sent: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = |place: &str| sent.pointer(place).and_then(Value::as_str);
        let Some(behavior) = text("/response/response/behavior") else { return };
        let Some(request) = text("/response/request_id") else { return };
        let outcome = if behavior == "allow" { Outcome::Allow } else { Outcome::Deny };
        self.answered.insert(request.to_owned(), outcome);
    }

    /// Sends a person's answer.
    pub(super) fn on_answer(&mut self, id: &str, reply: Reply) -> Vec<Action> {
        let Some(pending) = self.pending.remove(id) else { return Vec::new() };
        let answered;
        let response = match reply {
            Reply::Allowed | Reply::Always => Inner::Allow { input: &pending.input },
            Reply::Denied { message } => Inner::Deny { message: pending.refusal(&message) },
            // An answer in words permits nothing.
            Reply::Chosen { answers } if pending.questions.is_empty() => {
                Inner::Deny { message: pending.refusal(&answers.join("; ")) }
            }
            Reply::Chosen { answers } => match pending.answered(&answers) {
                Some(input) => {
                    answered = input;
                    Inner::Allow { input: &answered }
                }
                None => Inner::Deny { message: answers.join("; ") },
            },
        };
        if matches!(response, Inner::Deny { .. }) {
            self.denied.insert(pending.call.clone());
        }
        self.verdict(id, response).into_iter().chain(self.close_if_due()).collect()
    }

    /// The CLI no longer waits for our answer.
    pub(super) fn on_cancel(&mut self, line: CancelLine<'_>) -> Reading {
        let request = String::from(line.request_id);
        let withdrawn = self.pending.remove(&request);
        let withdrawal = withdrawn.map(|_| Action::emit(AgentEvent::Withdrawn { request }));
        Ok(withdrawal.into_iter().chain(self.close_if_due()).collect())
    }

    /// A call with a result waits for no answer. When a conversation is read again, the result is in the log but the
    /// answer before it is not.
    pub(super) fn forget_request(&mut self, call: &str) {
        self.pending.retain(|_, pending| pending.call != call);
    }

    pub(super) fn on_control_answer(&mut self, line: ControlAnswerLine<'_>) -> Reading {
        let failed = line.response.subtype.as_str() == "error";
        let words = wire::text(&line.response.error);
        Ok(failed
            .then(|| Action::notice(format!("the agent refused a request of Towline: {words}")))
            .into_iter()
            .collect())
    }

    fn verdict(&self, id: &str, response: Inner<'_>) -> Option<Action> {
        self.answer(Outer { subtype: "success", request_id: id, response: Some(response), error: None })
    }

    fn answer(&self, response: Outer<'_>) -> Option<Action> {
        self.write(&Answer { r#type: "control_response", response })
    }
}

fn not_allowed(tool: &str) -> String {
    format!("{tool} is not permitted here in this way, and nobody can be asked. Go on without it.")
}

/// The model's questions; `None` if there are none or they cannot be read.
fn questions(input: &RawValue) -> Option<Vec<wire::Question>> {
    let asked: wire::Questions = serde_json::from_str(input.get()).ok()?;
    (!asked.questions.is_empty()).then_some(asked.questions)
}

fn part(question: &wire::Question) -> Part {
    let options = question.options.iter().map(|option| (&*option.label, &*option.description));
    text::part(&question.question, options, question.many)
}
