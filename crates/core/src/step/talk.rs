//! Questions, answers and the operator's messages: stored first, then sent to the agent.

use super::stopping::Runs;
use super::{Illegal, Stepper};
use crate::deadlines::later;
use crate::effect::{answer_key, message_key};
use crate::{
    About, Answerer, Ask, AttemptNo, Closed, Decision, Delivered, Delivery, DeliveryState, Effect, End,
    EscalationReason, Event, LastWords, MessageNo, OperatorMessage, Outcome, Phase, Question, QuestionNo,
    Reply, StopWhy, Words, Work,
};

impl Stepper<'_> {
    /// Keeps a question. A living agent may wait for the answer; the goal is blocked in any case.
    pub(super) fn ask(&mut self, ask: &Ask) {
        let Some(attempt) = self.state.last_attempt().map(|attempt| attempt.n) else { return };
        let n = self.state.questions.last().map(|question| question.n).unwrap_or_default().next();
        let deadline = ask.patience.map(|patience| later(self.now, patience));
        self.state.questions.push(Question {
            n,
            attempt,
            ask: ask.clone(),
            asked_at: self.now,
            deadline,
            closed: None,
        });
        self.follow_rules();
    }

    /// Allows what is asked for where a person has allowed its rule for as long as the goal lasts.
    fn follow_rules(&mut self) {
        let questions = &self.state.questions;
        let is_always = |question: &&Question| matches!(question.answer(), Some((Reply::Always, _)));
        let allowed: Vec<&str> = questions.iter().filter(is_always).filter_map(Question::rule).collect();
        let is_allowed = |question: &&Question| {
            question.is_open() && question.rule().is_some_and(|rule| allowed.contains(&rule))
        };
        let granted: Vec<QuestionNo> =
            questions.iter().filter(is_allowed).map(|question| question.n).collect();
        for question in granted {
            self.answer_itself(question, Reply::Allowed, Answerer::Rule);
        }
    }

    /// The agent does not wait any more.
    pub(super) fn withdraw(&mut self, request: &str) {
        let asked =
            |question: &&mut Question| question.is_open() && question.ask.request.as_deref() == Some(request);
        if let Some(question) = self.state.questions.iter_mut().find(asked) {
            question.closed = Some(Closed::Withdrawn);
            let n = question.n;
            self.with_attempt(|attempt| attempt.withdrawn.push(n));
        }
    }

    /// The agent goes on without the answers to what it withdrew.
    pub(super) fn forget_withdrawn(&mut self) {
        self.with_attempt(|attempt| attempt.withdrawn.clear());
    }

    /// Opens again what an agent withdrew only because it was cut off. One that ends well needs no answer.
    pub(super) fn reopen_withdrawn(&mut self, end: &End) {
        let Some(last) = self.state.attempts.last_mut() else { return };
        let withdrawn = std::mem::take(&mut last.withdrawn);
        if !end.is_bad() {
            return;
        }
        let cut_off = self.state.questions.iter_mut().filter(|question| withdrawn.contains(&question.n));
        cut_off.for_each(|question| question.closed = None);
    }

    /// Closes what is open without an answer: another agent goes on, or the operator sent a message instead.
    pub(super) fn withdraw_all(&mut self) {
        for question in self.state.questions.iter_mut().filter(|question| question.is_open()) {
            question.closed = Some(Closed::Withdrawn);
        }
    }

    /// A wait is over. Work may have been checked while questions were open: they are asked before anything else.
    pub(super) fn queue_again(&mut self) {
        self.state.phase = Phase::Queued;
        self.ask_again();
    }

    /// Asks open questions again when the goal is opened again: the time for an answer starts anew.
    pub(super) fn ask_again(&mut self) {
        for question in self.state.questions.iter_mut().filter(|question| question.is_open()) {
            question.deadline = question.ask.patience.map(|patience| later(self.now, patience));
        }
        if let Some(blocked) = self.blocked(None) {
            self.state.phase = blocked;
        }
    }

    /// While the agent lives: blocked as long as a question is open, and running otherwise.
    pub(super) fn wait_or_run(&mut self, attempt: AttemptNo) {
        self.state.phase = match self.blocked(Some(attempt)) {
            Some(blocked) => blocked,
            None => Phase::Running { attempt },
        };
    }

    /// The phase for the first open question; its deadline is the earliest of all.
    fn blocked(&self, attempt: Option<AttemptNo>) -> Option<Phase> {
        let question = self.state.open_question()?.n;
        let open = self.state.questions.iter().filter(|question| question.is_open());
        let until = open.filter_map(|question| question.deadline).min();
        Some(Phase::Blocked { question, attempt, until })
    }

    /// What follows an attempt that ended with a question. It costs none as long as it is a person who answers: an
    /// agent that asks and takes its own default for the answer may not do so for ever.
    pub(super) fn after_question(&mut self) {
        self.state.errors_in_row = 0;
        let last = self.state.last_attempt().map(|attempt| attempt.n);
        let of_persons = self.state.questions.iter().any(|question| {
            let by_person = matches!(
                question.closed,
                Some(Closed::Answered { by: Answerer::Person | Answerer::Rule, .. })
            );
            Some(question.attempt) == last && (question.is_open() || by_person)
        });
        if of_persons {
            self.spend_no_attempt();
        }
        self.wait_for_answers();
    }

    /// Blocks the goal that nothing runs for, or goes on when everything is answered. What is due is decided first.
    pub(super) fn wait_for_answers(&mut self) {
        match self.take_defaults() {
            Some(question) => self.escalate(EscalationReason::Unanswered { question }),
            None => self.state.phase = self.blocked(None).unwrap_or(Phase::Queued),
        }
    }

    pub(super) fn answer(&mut self, n: QuestionNo, reply: &Reply, by: Answerer) -> Result<(), Illegal> {
        let takes_answers = self.before.takes_answers();
        let question = self.state.question(n).filter(|question| takes_answers && question.is_open());
        let question = question.ok_or(Illegal::NotAsked { question: n })?;
        let fits = match (&question.ask.about, reply) {
            (About::Choice { parts }, Reply::Chosen { answers }) => parts.len() == answers.len(),
            (About::Permission { .. }, Reply::Allowed | Reply::Always | Reply::Denied { .. }) => true,
            _ => false,
        };
        if !fits {
            return Err(Illegal::NotAsked { question: n });
        }
        let reopens = matches!(self.before, Phase::Escalated { reason: EscalationReason::Unanswered { .. } });
        if reopens {
            self.reopen(&[])?;
        }
        self.close(n, reply, by);
        self.follow_rules();
        match self.before {
            Phase::Running { attempt } | Phase::Blocked { attempt: Some(attempt), .. } => {
                self.wait_or_run(attempt);
            }
            Phase::Blocked { attempt: None, .. } => self.wait_for_answers(),
            _ if reopens => self.wait_for_answers(),
            // The next prompt has the answer.
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, n: QuestionNo, reply: &Reply, by: Answerer) {
        let living = self.before.living_attempt();
        let Some(question) = self.state.questions.iter_mut().find(|question| question.n == n) else { return };
        let waits = living.filter(|attempt| *attempt == question.attempt).zip(question.ask.request.clone());
        let delivery = match &waits {
            Some((attempt, _)) => DeliveryState::OnItsWay(*attempt),
            None => DeliveryState::Waiting,
        };
        question.closed = Some(Closed::Answered { reply: reply.clone(), by, at: self.now, delivery });
        let decision = decision(question, reply, by);
        let asked_in = question.attempt;
        if let Some(attempt) = self.state.attempts.get_mut(asked_in.index()) {
            attempt.decisions.extend(decision);
            attempt.counts |= by == Answerer::Default;
        }
        if let Some((attempt, request)) = waits {
            let what = Delivered::Answer { question: n, request, reply: reply.clone() };
            self.moved.effects.push(Effect::Deliver(Delivery { attempt, what }));
        }
    }

    /// The time for an answer is over: defaults are taken; a question without one needs a person after all.
    pub(super) fn answers_are_due(&mut self, living: Option<AttemptNo>) {
        let Some(attempt) = living else { return self.wait_for_answers() };
        match self.take_defaults() {
            Some(_) => self.stop(Runs::Agent(attempt), StopWhy::Asked),
            None => self.wait_or_run(attempt),
        }
    }

    /// Answers the questions that are due by their defaults. Gives back the title of the first that has none.
    fn take_defaults(&mut self) -> Option<String> {
        let now = self.now;
        let is_due = |question: &&Question| {
            question.is_open() && question.deadline.is_some_and(|deadline| deadline <= now)
        };
        let due = self.state.questions.iter().filter(is_due);
        let due: Vec<(QuestionNo, Ask)> = due.map(|question| (question.n, question.ask.clone())).collect();
        let mut unanswered = None;
        for (question, ask) in due {
            match ask.default.as_deref().map(|default| ask.read_answer(default)) {
                Some(Ok(reply)) => self.answer_itself(question, reply, Answerer::Default),
                _ => unanswered = unanswered.or_else(|| Some(ask.title())),
            }
        }
        unanswered
    }

    /// Closes a question that no person answers, which the log records.
    fn answer_itself(&mut self, question: QuestionNo, reply: Reply, by: Answerer) {
        self.close(question, &reply, by);
        self.moved.events.push(Event::Answered { question, reply, by });
    }

    /// The operator sends a message: a running agent gets it at once, and otherwise it is part of the next prompt.
    pub(super) fn receive_message(&mut self, text: &str) -> Result<(), Illegal> {
        match &self.before {
            Phase::Done | Phase::Unproven | Phase::Failed { .. } | Phase::Cancelled => {
                return Err(self.wrong_phase(&Event::MessageSent { text: String::new() }));
            }
            Phase::Escalated { .. } => {
                self.reopen(&[])?;
                self.withdraw_all();
            }
            Phase::Sleeping { .. } => self.state.phase = Phase::Queued,
            _ => {}
        }
        self.pass_on(text.to_owned());
        Ok(())
    }

    /// Brings the operator's words to the living agent, or keeps them for the next prompt.
    fn pass_on(&mut self, text: String) {
        let n = self.state.messages.last().map(|message| message.n).unwrap_or_default().next();
        let living = self.before.living_attempt();
        let delivery = living.map_or(DeliveryState::Waiting, DeliveryState::OnItsWay);
        self.state.messages.push(OperatorMessage { n, text: text.clone(), at: self.now, delivery });
        if let Some(attempt) = living {
            let what = Delivered::Message { n, text };
            self.moved.effects.push(Effect::Deliver(Delivery { attempt, what }));
        }
    }

    /// The answer has reached the agent that waited for it. Words of a refusal that the protocol had no place for follow
    /// as the operator's.
    pub(super) fn answer_delivered(&mut self, n: QuestionNo, words: Words) -> Result<(), Illegal> {
        let not_asked = Illegal::NotAsked { question: n };
        let question = self.state.questions.iter_mut().find(|question| question.n == n);
        let question = question.ok_or_else(|| not_asked.clone())?;
        let Some(Closed::Answered { reply, delivery, .. }) = &mut question.closed else {
            return Err(not_asked);
        };
        let DeliveryState::OnItsWay(attempt) = *delivery else { return Err(not_asked) };
        *delivery = DeliveryState::Delivered(attempt);
        let unsaid = match (&question.ask.about, reply, words) {
            (About::Permission { call, title, .. }, Reply::Denied { message }, Words::Dropped)
                if !message.is_empty() =>
            {
                Some(format!("You may not use {} for this: {title}\n{message}", call.tool))
            }
            _ => None,
        };
        self.settle(answer_key(n, attempt));
        if let Some(text) = unsaid {
            self.pass_on(text);
        }
        Ok(())
    }

    /// The operator's words have reached the model.
    pub(super) fn heard(&mut self, n: MessageNo) {
        let message = self.state.messages.iter_mut().find(|message| message.n == n);
        if let Some(OperatorMessage { delivery: delivery @ DeliveryState::OnItsWay(_), .. }) = message
            && let DeliveryState::OnItsWay(attempt) = *delivery
        {
            *delivery = DeliveryState::Delivered(attempt);
            self.settle(message_key(n, attempt));
        }
    }

    /// A goal that is done needs no more messages, but their sender should know.
    pub(super) fn report_unsent_messages(&mut self) {
        let unheard = self.state.messages.iter().filter(|message| message.delivery == DeliveryState::Waiting);
        let notices = unheard.map(|message| Event::Notice {
            text: format!("done before the agent heard this: {}", message.text),
        });
        self.moved.events.extend(notices);
    }

    /// When an attempt is over, what its agent does not know is part of the next prompt. An answer that it was given
    /// and could not use any more is sent again.
    pub(super) fn take_back_undelivered(&mut self, attempt: AttemptNo, end: &End) {
        let heard_prompt = self.state.attempt(attempt).is_some_and(|attempt| attempt.turns > 0);
        let heard_prompt = heard_prompt && *end != End::ContextOverflow;
        let mut settled = Vec::new();
        let mut take_back = |delivery: &mut DeliveryState, key: String, is_lost: bool| match *delivery {
            DeliveryState::OnItsWay(to) if to == attempt => {
                settled.push(key);
                *delivery = DeliveryState::Waiting;
            }
            DeliveryState::Delivered(to) if to == attempt && is_lost => *delivery = DeliveryState::Waiting,
            _ => {}
        };
        for question in &mut self.state.questions {
            let asked_here = question.attempt == attempt;
            if let Some(Closed::Answered { delivery, .. }) = &mut question.closed {
                let is_lost = !heard_prompt || (asked_here && end.is_bad());
                take_back(delivery, answer_key(question.n, attempt), is_lost);
            }
        }
        for message in &mut self.state.messages {
            take_back(&mut message.delivery, message_key(message.n, attempt), !heard_prompt);
        }
        self.moved.settled.extend(settled);
    }

    /// Everything that waits is part of this attempt's prompt.
    pub(super) fn mark_sent_with_prompt(&mut self, attempt: AttemptNo) {
        let answers = self.state.questions.iter_mut().filter_map(|question| match &mut question.closed {
            Some(Closed::Answered { delivery, .. }) => Some(delivery),
            _ => None,
        });
        let messages = self.state.messages.iter_mut().map(|message| &mut message.delivery);
        for delivery in answers.chain(messages).filter(|delivery| **delivery == DeliveryState::Waiting) {
            *delivery = DeliveryState::Delivered(attempt);
        }
    }

    /// The end of an attempt by the name that it deserves: an agent that comes to the end of its turn may have asked,
    /// may want to wait, or may not have been allowed to do its work.
    pub(super) fn name_end(&mut self, end: &End, work: Work) -> End {
        if *end != End::Completed {
            return end.clone();
        }
        let text = self.state.last_attempt().map(|attempt| attempt.text.clone()).unwrap_or_default();
        match LastWords::read(&text) {
            Some(Ok(LastWords::Ask(ask))) => {
                self.moved.events.push(Event::Agent { event: crate::AgentEvent::Asked(ask.clone()) });
                self.ask(&ask);
            }
            Some(Ok(LastWords::Sleep { duration, reason })) if !self.waits_for_answer() => {
                return End::Slept { duration, reason };
            }
            Some(Err(bad)) => {
                self.notice(format!("the agent's last message speaks to Towline, but cannot be read: {bad}"));
                self.with_attempt(|attempt| attempt.misunderstood = Some(bad.to_string()));
            }
            _ => {}
        }
        if self.waits_for_answer() {
            return End::Asked;
        }
        if let Some((duration, reason)) = self.state.last_attempt().and_then(|attempt| attempt.sleep.clone())
        {
            return End::Slept { duration, reason };
        }
        match (work, self.denial()) {
            (Work::Nothing, Some((tool, rule))) => End::PermissionDenied { tool, rule },
            _ => End::Completed,
        }
    }

    /// Whether the agent ended its turn for an answer: one that is still to come, or that came while it was ending.
    fn waits_for_answer(&self) -> bool {
        let last = self.state.last_attempt().map(|attempt| attempt.n);
        self.state.questions.iter().any(|question| {
            let unsent = question.answer().is_some_and(|(_, delivery)| delivery == DeliveryState::Waiting);
            question.is_open() || (unsent && Some(question.attempt) == last)
        })
    }

    /// The last tool of the attempt that was denied by a rule; a person who denies knows what they do.
    fn denial(&self) -> Option<(String, String)> {
        let decisions = &self.state.last_attempt()?.decisions;
        let denied = decisions.iter().rfind(|decision| {
            decision.outcome == Outcome::Deny && decision.by != BY_PERSON && decision.by != BY_DEFAULT
        })?;
        let rule = denied.rule.clone().unwrap_or_else(|| "the agent's own".to_owned());
        Some((denied.tool.clone(), rule))
    }
}

/// How decisions name a person.
const BY_PERSON: &str = "person";
/// How decisions name a rule.
const BY_RULE: &str = "rule";
/// How decisions name a deadline that nobody met.
const BY_DEFAULT: &str = "timeout";

fn decision(question: &Question, reply: &Reply, by: Answerer) -> Option<Decision> {
    let About::Permission { call, rule, .. } = &question.ask.about else { return None };
    let by = match by {
        Answerer::Person => BY_PERSON,
        Answerer::Default => BY_DEFAULT,
        Answerer::Rule => BY_RULE,
    };
    let outcome = reply.outcome()?;
    Some(Decision { tool: call.tool.clone(), outcome, by: by.to_owned(), rule: Some(rule.clone()) })
}
