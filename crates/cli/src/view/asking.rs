//! The questions of a goal, as far as its story was printed: which are open, which one is on the screen, and what is still
//! to be printed about the next one.

use towline_core::{AgentEvent, Ask, Event, GoalId, GoalState, Phase, QuestionNo};

use super::{how_to_answer, question_lines};

/// Where an answer can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerBy {
    /// Only by a command.
    Command,
    /// By typing it here, too.
    Typing,
}

/// The questions of a goal, in the order of their numbers.
#[derive(Default)]
pub(super) struct Asking {
    questions: Vec<Asked>,
    /// The question that was shown last.
    shown: Option<QuestionNo>,
    /// The last question for which the way to answer was printed.
    explained: Option<QuestionNo>,
}

struct Asked {
    ask: Ask,
    is_open: bool,
}

impl Asking {
    /// What was asked before the story begins.
    pub(super) fn of(state: &GoalState) -> Self {
        let questions = state
            .questions
            .iter()
            .map(|question| Asked { ask: question.ask.clone(), is_open: question.is_open() });
        Self { questions: questions.collect(), ..Self::default() }
    }

    /// Takes note of what opens and closes questions.
    pub(super) fn follow(&mut self, event: &Event) {
        match event {
            Event::Agent { event: AgentEvent::Asked(ask) } => {
                self.questions.push(Asked { ask: ask.clone(), is_open: true });
            }
            Event::Agent { event: AgentEvent::Withdrawn { request } } => {
                let is_it = |asked: &&mut Asked| asked.is_open && asked.ask.request.as_ref() == Some(request);
                if let Some(asked) = self.questions.iter_mut().find(is_it) {
                    asked.is_open = false;
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
    pub(super) fn newest(&mut self, goal: GoalId) -> Vec<String> {
        let number = QuestionNo(u32::try_from(self.questions.len()).unwrap_or(u32::MAX));
        let mut lines = self.show(number);
        if let Some(first) = self.first_open().filter(|first| *first != number) {
            let command = how_to_answer(goal, Some(number));
            lines.push(format!("  question {first} comes first; to answer this one: {command}"));
        }
        lines
    }

    /// The lines to print when the goal waits for the answer to this question.
    pub(super) fn wait_for(&mut self, question: QuestionNo, goal: GoalId, by: AnswerBy) -> Vec<String> {
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
    pub(super) const fn forget_the_screen(&mut self) {
        self.shown = None;
        self.explained = None;
    }

    fn show(&mut self, number: QuestionNo) -> Vec<String> {
        let Some(asked) = index(number).and_then(|index| self.questions.get(index)) else {
            return Vec::new();
        };
        self.shown = Some(number);
        let is_one_of_several = number.0 > 1 || self.are_several_open();
        question_lines(&asked.ask, is_one_of_several.then_some(number))
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
