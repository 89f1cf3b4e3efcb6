//! All goals: what is read of them, and what events make stale. Nothing is polled.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use towline_api::{GoalPage, GoalReport, HoldReport, QueueReport};
use towline_core::{AgentEvent, Envelope, Event, Role};
use towline_terminal::{brief, short_id};

use super::{Connection, List, Mode, Model, Request, Row, with_line_ends};
use crate::client::Failure;
use crate::feed::FeedNews;

/// How long events are collected before what they changed is read.
const PAUSE: SignedDuration = SignedDuration::from_millis(150);
const GROWING_PAUSE: SignedDuration = SignedDuration::from_secs(4);
/// How long until what could not be read is read again.
const RETRY_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// How many goals are read at the same time.
const AT_ONCE: usize = 16;

/// Something that is read as a whole.
#[derive(Debug, Default)]
pub(super) struct Reading {
    is_stale: bool,
    is_under_way: bool,
}

impl Reading {
    /// It has to be read again.
    pub(super) const fn spoil(&mut self) {
        self.is_stale = true;
    }

    /// It was read, or could not be.
    pub(super) const fn landed(&mut self) {
        self.is_under_way = false;
    }

    /// Whether it is read now.
    fn start(&mut self) -> bool {
        let starts = self.is_stale && !self.is_under_way;
        if starts {
            *self = Self { is_stale: false, is_under_way: true };
        }
        starts
    }
}

/// What has to be read again.
#[derive(Debug, Default)]
pub(super) struct Stale {
    pub(super) questions: Reading,
    pub(super) queue: Reading,
    pub(super) today: Reading,
    pub(super) accounts: Reading,
    goals: BTreeSet<String>,
    under_way: BTreeSet<String>,
    due: Option<Timestamp>,
    /// Goals whose cost grows; that may take a moment.
    growing: BTreeSet<String>,
    growing_due: Option<Timestamp>,
    /// Goals that the lists which are being read have not named yet.
    unlisted: BTreeSet<String>,
    /// When the oldest goal of the list of ended goals was created.
    oldest_ended: Option<Timestamp>,
    /// What could not be read.
    failed: Vec<Request>,
    failed_due: Option<Timestamp>,
}

impl Stale {
    fn soon(&mut self, now: Timestamp) {
        self.due.get_or_insert(now.saturating_add(PAUSE).unwrap_or(now));
    }

    /// Whatever became stale while it was read is read once more.
    pub(super) fn read_again(&mut self, now: Timestamp) {
        let readings = [&self.questions, &self.queue, &self.today, &self.accounts];
        if readings.iter().any(|reading| reading.is_stale) || !self.goals.is_empty() {
            self.soon(now);
        }
    }

    fn grow(&mut self, id: &str, now: Timestamp) {
        self.growing.insert(id.to_owned());
        self.growing_due.get_or_insert(now.saturating_add(GROWING_PAUSE).unwrap_or(now));
    }

    fn take_grown(&mut self, now: Timestamp) {
        if self.growing_due.is_some_and(|due| due <= now) {
            self.growing_due = None;
            self.today.spoil();
            self.goals.append(&mut self.growing);
        }
    }

    /// Returns what could not be read and is to be read again now.
    fn take_failed(&mut self, now: Timestamp) -> Vec<Request> {
        if self.failed_due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.failed_due = None;
        std::mem::take(&mut self.failed)
    }

    /// A goal has to be read again.
    pub(super) fn spoil_goal(&mut self, id: &str, now: Timestamp) {
        self.goals.insert(id.to_owned());
        self.soon(now);
    }
}

impl Model {
    /// When something has to be done without a key or an event: what is stale is read, or a countdown goes on.
    pub(crate) fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let next_second = now.saturating_add(SignedDuration::from_secs(1)).unwrap_or(now);
        let counts = self.shows_countdown().then_some(next_second);
        [self.stale.due, self.stale.growing_due, self.stale.failed_due, counts].into_iter().flatten().min()
    }

    /// Whether something on the screen changes with time.
    fn shows_countdown(&self) -> bool {
        let has_deadline = |goal: Option<&str>| {
            let mut questions =
                self.questions.iter().filter(|line| goal.is_none_or(|goal| line.goal == goal));
            questions.any(|line| line.question.deadline.is_some())
        };
        match &self.open {
            Some(open) => {
                let row = self.rows.get(&open.id);
                row.is_some_and(Row::counts_down) || has_deadline(Some(&open.id))
            }
            None => self.rows.values().any(Row::counts_down) || has_deadline(None),
        }
    }

    pub(super) fn take_pool(&mut self, news: FeedNews, now: Timestamp) {
        match news {
            FeedNews::Opened => {
                if matches!(self.connection, Connection::Lost(_)) {
                    self.report("connected again");
                }
                self.connection = Connection::Open;
                self.read_all(now);
            }
            FeedNews::Lost(why) => self.connection = Connection::Lost(brief(&why)),
            FeedNews::Logged(json) => {
                if let Ok(envelope) = serde_json::from_str::<Envelope>(&json) {
                    self.follow(&envelope, now);
                }
            }
            // The server knows whether it is there.
            FeedNews::Removed(goal) => self.stale.spoil_goal(&goal, now),
            FeedNews::Restarted => {
                self.rows.clear();
                self.read_all(now);
            }
            FeedNews::Writing(_) => {}
        }
    }

    /// Reads everything: events may have been missed, or requests have failed.
    pub(super) fn read_all(&mut self, now: Timestamp) {
        for list in [List::Active, List::Failed, List::Ended] {
            self.cursors.remove(&list);
            self.loading.insert(list);
            self.want(Request::Goals(list, None));
        }
        // What was under way is lost with the connection.
        self.stale = Stale { unlisted: self.rows.keys().cloned().collect(), ..Stale::default() };
        let Stale { questions, queue, today, accounts, .. } = &mut self.stale;
        [questions, queue, today, accounts].into_iter().for_each(Reading::spoil);
        if let Some(open) = &self.open {
            self.stale.goals.insert(open.id.clone());
        }
        self.refresh(now);
    }

    /// Reads what is stale.
    pub(super) fn refresh(&mut self, now: Timestamp) {
        self.stale.take_grown(now);
        for request in self.stale.take_failed(now) {
            match request {
                Request::Questions => self.stale.questions.spoil(),
                Request::Queue => self.stale.queue.spoil(),
                Request::Today => self.stale.today.spoil(),
                Request::Accounts => self.stale.accounts.spoil(),
                Request::Goal(id) => _ = self.stale.goals.insert(id),
                request => self.want(request),
            }
        }
        if self.stale.due.is_some_and(|due| due > now) {
            return;
        }
        self.stale.due = None;
        let wanted = [
            (self.stale.questions.start(), Request::Questions),
            (self.stale.queue.start(), Request::Queue),
            (self.stale.today.start(), Request::Today),
            (self.stale.accounts.start(), Request::Accounts),
        ];
        wanted.into_iter().filter(|(starts, _)| *starts).for_each(|(_, request)| self.want(request));
        let ready = self.stale.goals.difference(&self.stale.under_way).take(AT_ONCE).cloned();
        for id in ready.collect::<Vec<_>>() {
            self.stale.goals.remove(&id);
            self.stale.under_way.insert(id.clone());
            self.want(Request::Goal(id));
        }
    }

    /// Takes note of what has become stale.
    fn follow(&mut self, envelope: &Envelope, now: Timestamp) {
        let id = envelope.goal.to_string();
        if let Some(doing) = doing(&envelope.event) {
            self.doing.insert(id.clone(), doing);
        }
        let stale = &mut self.stale;
        match &envelope.event {
            Event::PhaseChanged { .. } | Event::AttemptEnded { .. } | Event::AttemptStarted { .. } => {
                stale.questions.spoil();
                stale.queue.spoil();
                stale.today.spoil();
                stale.accounts.spoil();
                self.doing.remove(&id);
            }
            Event::Agent { event: AgentEvent::Asked(_) | AgentEvent::Withdrawn { .. } }
            | Event::Answered { .. } => {
                stale.questions.spoil();
            }
            Event::AccountUnavailable { .. } => {
                stale.accounts.spoil();
                stale.queue.spoil();
            }
            Event::Agent { event: AgentEvent::Usage { .. } } => return stale.grow(&id, now),
            Event::Created
            | Event::Merged { .. }
            | Event::Published { .. }
            | Event::RetryRequested { .. }
            | Event::HandedOver { .. }
            | Event::VerdictReached { .. }
            | Event::AgentUnavailable { .. } => stale.queue.spoil(),
            _ => return,
        }
        stale.spoil_goal(&id, now);
    }

    pub(super) fn take_goals(&mut self, list: List, page: Result<GoalPage, Failure>, now: Timestamp) {
        let again = Request::Goals(list, self.cursors.get(&list).cloned());
        let Some(GoalPage { goals, cursor }) = self.take_or_retry(page, again, now) else { return };
        self.loading.remove(&list);
        match cursor {
            Some(cursor) => self.cursors.insert(list, cursor),
            None => self.cursors.remove(&list),
        };
        if list == List::Ended {
            self.stale.oldest_ended = goals.iter().map(|line| line.created_at).min();
        }
        for line in goals {
            self.stale.unlisted.remove(&line.id);
            self.put(line.into());
        }
        // The oldest goals may need a person, so all that have not ended and all that failed are read at once.
        if list != List::Ended {
            self.read_on(list);
        }
        if self.loading.is_empty() {
            self.check_unlisted(now);
        }
        self.note_loaded();
    }

    /// Reads goals again that were known and are in no list: they were removed, or have just moved from one to the other. The list of
    /// ended goals is read from its newest one, so older ones are not expected in it.
    fn check_unlisted(&mut self, now: Timestamp) {
        let oldest = self.stale.oldest_ended.filter(|_| self.has_more(List::Ended));
        let is_expected = |row: &Row| {
            let has_ended = matches!(row.phase.as_str(), "done" | "unproven" | "cancelled");
            !has_ended || oldest.is_none_or(|oldest| row.created_at >= oldest)
        };
        for id in std::mem::take(&mut self.stale.unlisted) {
            if self.rows.get(&id).is_some_and(is_expected) {
                self.stale.spoil_goal(&id, now);
            }
        }
    }

    /// Before all of this is read, nobody knows how many goals need a person.
    pub(super) fn note_loaded(&mut self) {
        self.is_loaded |= self.loading.is_empty() && self.has_questions;
    }

    /// What was read. What could not be read is read again later; after a lost connection, everything is.
    pub(super) fn take_or_retry<T>(
        &mut self,
        reply: Result<T, Failure>,
        request: Request,
        now: Timestamp,
    ) -> Option<T> {
        if reply.is_err() {
            self.retry(request, now);
        }
        self.take_or_warn(reply)
    }

    fn retry(&mut self, request: Request, now: Timestamp) {
        if self.connection == Connection::Open {
            self.stale.failed.push(request);
            self.stale.failed_due.get_or_insert(now.saturating_add(RETRY_PAUSE).unwrap_or(now));
        }
    }

    /// Takes over what was read of a goal, unless something newer is known.
    pub(super) fn put(&mut self, row: Row) {
        if self.rows.get(&row.id).is_none_or(|known| known.updated_at <= row.updated_at) {
            let id = row.id.clone();
            self.rows.insert(id.clone(), row);
            if self.open.as_ref().is_some_and(|open| open.id == id) {
                self.mark_seen(&id);
            }
        }
    }

    pub(super) fn take_goal(
        &mut self,
        id: &str,
        reply: Result<Box<(GoalReport, u64)>, Failure>,
        now: Timestamp,
    ) {
        self.stale.under_way.remove(id);
        match reply {
            Ok(read) => self.take_report(&read.0, Some(read.1)),
            Err(failure) => {
                if matches!(failure, Failure::Missing(_)) {
                    return self.forget(id);
                }
                self.retry(Request::Goal(id.to_owned()), now);
                if self.open.as_ref().is_some_and(|open| open.id == id) {
                    self.warn(&failure.text());
                }
            }
        }
    }

    /// Takes a goal off the screen that does not exist any more.
    pub(super) fn forget(&mut self, id: &str) {
        self.rows.remove(id);
        self.doing.remove(id);
        self.questions.retain(|line| line.goal != id);
        self.asking.remove(id);
        self.waiting.retain(|waiting| waiting != id);
        self.spent.remove(id);
        if self.open.take_if(|open| open.id == id).is_some() {
            self.want(Request::Unfollow);
            self.mode = Mode::Browse;
            self.warn(&format!("goal {} was removed", short_id(id)));
        }
    }

    /// Takes over a report, and follows the log of the goal that is open once it is known how long it is.
    pub(super) fn take_report(&mut self, report: &GoalReport, last: Option<u64>) {
        self.put(report.into());
        if let Some(open) = self.open.as_mut().filter(|open| open.id == report.id)
            && let Some(after) = open.know(report, last)
        {
            self.want(Request::Follow(report.id.clone(), after));
        }
    }

    pub(super) fn take_queue(&mut self, queue: QueueReport) {
        self.problem = queue.problem;
        self.waiting = queue.waiting.iter().map(|line| line.id.clone()).collect();
        let holds = queue.waiting.into_iter().filter_map(|line| Some((line.id, line.hold?)));
        self.holds = holds.collect::<std::collections::BTreeMap<String, HoldReport>>();
    }

    /// Reads the next page of a list of which the end is on the screen.
    pub(super) fn read_on(&mut self, list: List) {
        if let Some(cursor) = self.cursors.get(&list).cloned()
            && self.loading.insert(list)
        {
            self.want(Request::Goals(list, Some(cursor)));
        }
    }

    /// Whether a list goes on.
    pub(crate) fn has_more(&self, list: List) -> bool {
        self.cursors.contains_key(&list)
    }
}

/// What a goal does, in a few words; none where the event does not say it.
fn doing(event: &Event) -> Option<String> {
    Some(match event {
        Event::Agent { event } => match event {
            AgentEvent::Tool(tool) => {
                brief(&with_line_ends(if tool.title.is_empty() { &tool.name } else { &tool.title }))
            }
            AgentEvent::Message { role: Role::Assistant, text } => brief(text),
            AgentEvent::Progress { text, .. } => brief(text),
            _ => return None,
        },
        Event::CheckStarted { name, .. } => format!("check {}", brief(name)),
        _ => return None,
    })
}
