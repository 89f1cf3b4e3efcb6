//! The questions of a goal, as far as its story was printed: which are open, which one is on the screen, and what is still
//! to be printed about the next one.

use std::time::Duration;

use jiff::Timestamp;
use towline_core::{AgentEvent, Ask, Event, GoalId, GoalState, Phase, QuestionNo};

use crate::{how_to_answer, question_lines, time_left};

/// Where an answer can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBy {
    /// Only by a command.
    Command,
    /// By typing it here, too.
    Typing,
}

/// The questions of a goal, in the order of their numbers.
#[derive(Default)]
pub(crate) struct Asking {
    questions: Vec<Asked>,
    /// The question that was shown last.
    shown: Option<QuestionNo>,
    /// The last question for which the way to answer was printed.
    explained: Option<QuestionNo>,
}

struct Asked {
    ask: Ask,
    /// The time for an answer, when the story learned of the question.
    left: Option<Duration>,
    is_open: bool,
}

impl Asking {
    /// What was asked before the story begins.
    pub(crate) fn of(state: &GoalState, now: Timestamp) -> Self {
        let questions = state.questions.iter().map(|question| {
            let left = time_left(state, question, now);
            Asked { ask: question.ask.clone(), left, is_open: question.is_open() }
        });
        Self { questions: questions.collect(), ..Self::default() }
    }

    /// Takes note of what opens and closes questions.
    pub(crate) fn follow(&mut self, event: &Event) {
        match event {
            Event::Agent { event: AgentEvent::Asked(ask) } => {
                self.questions.push(Asked { ask: ask.clone(), left: ask.patience, is_open: true });
            }
            Event::Agent { event: AgentEvent::Withdrawn { request } } => {
                let is_it = |asked: &&mut Asked| asked.is_open && asked.ask.request.as_ref() == Some(request);
                if let Some(asked) = self.questions.iter_mut().find(is_it) {
                    asked.is_open = false;
                    self.forget_the_screen();
                }
            }
            // It may have been withdrawn by an agent that was cut off.
            Event::PhaseChanged { phase: Phase::Blocked { question, .. } } => {
                if let Some(asked) = index(*question).and_then(|index| self.questions.get_mut(index)) {
                    asked.is_open = true;
                }
            }
            Event::Answered { question, .. } => {
                if let Some(asked) = index(*question).and_then(|index| self.questions.get_mut(index)) {
                    asked.is_open = false;
                }
            }
            // No attempt starts while a question is open: those that are left were taken back.
            Event::PhaseChanged { phase: Phase::Queued | Phase::Preparing | Phase::Running { .. } } => {
                self.questions.iter_mut().for_each(|asked| asked.is_open = false);
            }
            _ => {}
        }
    }

    /// The question that was just asked.
    pub(crate) fn newest(&mut self, goal: GoalId) -> Vec<String> {
        let number = QuestionNo(u32::try_from(self.questions.len()).unwrap_or(u32::MAX));
        let mut lines = self.show(number);
        if let Some(first) = self.first_open().filter(|first| *first != number) {
            let command = how_to_answer(goal, Some(number));
            lines.push(format!("  question {first} comes first; to answer this one: {command}"));
        }
        lines
    }

    /// The lines to print when the goal waits for the answer to this question.
    pub(crate) fn wait_for(&mut self, question: QuestionNo, goal: GoalId, by: AnswerBy) -> Vec<String> {
        let mut lines = Vec::new();
        if self.shown != Some(question) {
            lines = self.show(question);
        } else if self.explained == Some(question) {
            return lines;
        }
        self.explained = Some(question);
        let several = self.are_several_open();
        let command = how_to_answer(goal, several.then_some(question));
        lines.push(match by {
            AnswerBy::Typing if several => format!("  type the answer to question {question}, or: {command}"),
            AnswerBy::Typing => format!("  type the answer, or: {command}"),
            AnswerBy::Command => format!("  waiting; answer with: {command}"),
        });
        lines
    }

    /// Forgets what is on the screen, because it is not visible any more.
    pub(crate) const fn forget_the_screen(&mut self) {
        self.shown = None;
        self.explained = None;
    }

    fn show(&mut self, number: QuestionNo) -> Vec<String> {
        let Some(asked) = index(number).and_then(|index| self.questions.get(index)) else {
            return Vec::new();
        };
        self.shown = Some(number);
        let is_one_of_several = number.0 > 1 || self.are_several_open();
        question_lines(&asked.ask, is_one_of_several.then_some(number), asked.left)
    }

    fn are_several_open(&self) -> bool {
        self.questions.iter().filter(|asked| asked.is_open).nth(1).is_some()
    }

    fn first_open(&self) -> Option<QuestionNo> {
        let index = self.questions.iter().position(|asked| asked.is_open)?;
        Some(QuestionNo(u32::try_from(index).ok()?.checked_add(1)?))
    }
}

fn index(number: QuestionNo) -> Option<usize> {
    usize::try_from(number.0).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_was_withdrawn_and_is_open_again_is_shown_again() {
        let goal: GoalId = "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("a goal id");
        let ask = Ask { request: Some("r1".into()), ..Ask::choice("Which colour?".into(), vec![]) };
        let question = QuestionNo(1);
        let blocked = Phase::Blocked { question, attempt: None, until: None };
        let mut asking = Asking::default();
        asking.follow(&Event::Agent { event: AgentEvent::Asked(ask) });
        let shown = [asking.newest(goal), asking.wait_for(question, goal, AnswerBy::Command)].concat();
        asking.follow(&Event::Agent { event: AgentEvent::Withdrawn { request: "r1".into() } });
        assert_eq!(asking.first_open(), None);
        asking.follow(&Event::PhaseChanged { phase: blocked });
        assert_eq!(asking.first_open(), Some(question));
        assert_eq!(asking.wait_for(question, goal, AnswerBy::Command), shown);
    }
}
