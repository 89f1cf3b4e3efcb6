//! Answering on the spot: what a person types while a goal that runs in the foreground waits for an answer.

use std::io::BufRead;
use std::sync::Arc;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;
use towline_core::{Answerer, Ask, Event, GoalId, Phase, QuestionNo};
use towline_engine::Steerer;
use towline_store::Store;

use crate::output;

/// Somebody at a keyboard, as far as there is one.
pub(crate) struct Typing {
    goal: GoalId,
    store: Arc<dyn Store>,
    steerer: Steerer,
    /// What they are asked now.
    asked: Option<(QuestionNo, Ask)>,
    /// What they type. Read only from the first question on, so that nothing else is ever taken from them.
    lines: Option<mpsc::UnboundedReceiver<String>>,
}

impl Typing {
    /// Nobody is asked yet.
    pub(crate) const fn new(goal: GoalId, store: Arc<dyn Store>, steerer: Steerer) -> Self {
        Self { goal, store, steerer, asked: None, lines: None }
    }

    /// Takes note of the phase: whether a person is asked, and what. Says whether they may type now.
    pub(crate) async fn follow(&mut self, phase: &Phase) -> bool {
        let asked = match phase {
            Phase::Blocked { question, .. } if is_at_keyboard() => self.load(*question).await,
            _ => None,
        };
        let number = |asked: &Option<(QuestionNo, Ask)>| asked.as_ref().map(|(number, _)| *number);
        let is_another = number(&asked) != number(&self.asked);
        self.asked = asked;
        if self.asked.is_some() && is_another {
            self.forget_what_was_typed();
        }
        self.asked.is_some()
    }

    /// What was typed before a question is no answer to it: a `yes` that came too late for one permission must not
    /// give the next.
    fn forget_what_was_typed(&mut self) {
        // What cannot be forgotten here has been read by the thread below.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        let lines = self.lines.get_or_insert_with(read_lines);
        while lines.try_recv().is_ok() {}
    }

    async fn load(&self, question: QuestionNo) -> Option<(QuestionNo, Ask)> {
        let record = self.store.load(self.goal).await.ok()?;
        record.state.question(question).map(|question| (question.n, question.ask.clone()))
    }

    /// The next line that they type while they are asked.
    pub(crate) async fn next(&mut self) -> String {
        match (&self.asked, &mut self.lines) {
            (Some(_), Some(lines)) => match lines.recv().await {
                Some(line) => line,
                None => {
                    self.lines = None;
                    std::future::pending().await
                }
            },
            _ => std::future::pending().await,
        }
    }

    /// Takes a line for the answer; gives back what is wrong with it.
    pub(crate) async fn answer(&self, line: &str) -> Result<(), String> {
        let Some((question, ask)) = &self.asked else { return Ok(()) };
        if line.trim().is_empty() {
            return Ok(());
        }
        let reply = ask.read_answer(line).map_err(|bad| bad.to_string())?;
        let event = Event::Answered { question: *question, reply, by: Answerer::Person };
        match self.steerer.wish(event).await {
            Some(Err(illegal)) => Err(illegal.to_string()),
            // A goal that has ended meanwhile needs no answer.
            Some(Ok(())) | None => Ok(()),
        }
    }
}

/// Whether this process may read from a terminal: one in the background would be stopped for it.
fn is_at_keyboard() -> bool {
    let stdin = std::io::stdin();
    let in_front = rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp());
    in_front && output::is_terminal()
}

/// Lines of standard input. Read by a thread of their own, which nobody waits for at the end.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
