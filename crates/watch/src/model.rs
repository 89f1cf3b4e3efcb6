//! What the dashboard knows, and what follows from keys, replies and events. Nothing here waits, reads a clock or draws: values in,
//! requests out.

mod acting;
mod answering;
mod goal;
mod home;
mod merging;
mod pool;
mod retrying;
mod row;
mod transcript;
mod typing;

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::KeyEvent;
use jiff::Timestamp;
use towline_api::{
    AccountLine, CostReport, EventPage, GoalPage, GoalReport, HoldReport, MergeReport, QuestionLine,
    QueueReport,
};
use towline_core::Axis;
use towline_terminal::{Tone, brief};

use self::answering::Answering;
pub(crate) use self::answering::Rows;
pub(crate) use self::goal::{CheckState, GoalView};
pub(crate) use self::home::{HomeLine, More};
use self::pool::Stale;
pub(crate) use self::retrying::raising_command;
pub(crate) use self::row::{Row, dollars, left, with_line_ends};
pub(crate) use self::transcript::{PAGE, Part, Transcript};
pub(crate) use self::typing::{Line, Typed};
use crate::client::Failure;
use crate::feed::FeedNews;

/// What happens to the dashboard.
#[derive(Debug)]
pub(crate) enum Input {
    Key(KeyEvent),
    Paste(String),
    /// The screen has another size.
    Resized,
    /// From the events of all goals.
    Pool(FeedNews),
    /// From the log of the goal that is open.
    Goal(String, FeedNews),
    Reply(Reply),
    /// The time that the model waited for has come.
    Due,
}

/// A list of goals that is read page by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Active,
    /// Goals that failed. Any of them can be a new failure, however old the goal is.
    Failed,
    /// Goals that ended otherwise.
    Ended,
}

/// What a person wants of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Answer {
        question: u32,
        text: String,
    },
    Tell(String),
    Pause,
    Resume,
    Cancel,
    /// With limits to set or to raise.
    Retry {
        budget: BTreeMap<String, String>,
    },
    /// A merge that changes nothing.
    PlanMerge(Proof),
    /// A merge of the work of the plan, into the branch of the plan, which may not be checked out any more.
    Merge {
        proof: Proof,
        into: String,
        candidate: String,
    },
}

/// Whether checks have passed on the work that is to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    Checked,
    Unproven,
}

/// What the model asks of its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Goals(List, Option<String>),
    Goal(String),
    Questions,
    Queue,
    Today,
    Accounts,
    /// A part of the log of the goal that is open.
    Events(String, Part),
    /// Follows the log of a goal after this place, and no other one any more.
    Follow(String, u64),
    Unfollow,
    Act {
        goal: String,
        act: Act,
        key: String,
    },
    Suspend,
    Redraw,
    Leave,
}

/// What the server replied.
#[derive(Debug)]
pub(crate) enum Reply {
    Goals(List, Result<GoalPage, Failure>),
    /// With the last place of its log.
    Goal(String, Result<Box<(GoalReport, u64)>, Failure>),
    Questions(Result<Vec<QuestionLine>, Failure>),
    Queue(Result<Box<QueueReport>, Failure>),
    Today(Result<CostReport, Failure>),
    Accounts(Result<Vec<AccountLine>, Failure>),
    Events(String, Part, Result<EventPage, Failure>),
    Acted(String, Act, String, Result<Box<GoalReport>, Failure>),
    Merged(String, Act, Result<Box<MergeReport>, Failure>),
}

/// Whether events arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Connection {
    Connecting,
    Open,
    /// With the reason.
    Lost(String),
}

/// What the keys are for.
#[derive(Debug)]
pub(crate) enum Mode {
    Browse,
    Typing(Purpose, Line),
    /// A text cannot be typed now, for this reason. What is typed all the same is not taken for orders.
    Refused {
        text: String,
    },
    /// Something that cannot be taken back.
    Confirm {
        goal: String,
        act: Act,
        text: String,
    },
    Merge {
        goal: String,
        proof: Proof,
        plan: Option<Box<MergeReport>>,
    },
    Help,
}

/// What a text is typed for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// A part of the answer to a question.
    Answer {
        goal: String,
        question: u32,
        part: usize,
    },
    Tell {
        goal: String,
    },
    /// Limits for a retry.
    Retry {
        goal: String,
    },
    Search,
}

/// A text that was sent and whose reply is not there yet, or whose request was lost.
#[derive(Debug)]
struct Flight {
    purpose: Purpose,
    text: String,
    /// The same text is sent again with the same key.
    key: String,
}

/// What the dashboard knows.
pub(crate) struct Model {
    /// How many rows of the list or the log are on the screen.
    pub(crate) rows_shown: usize,
    pub(crate) rows: BTreeMap<String, Row>,
    pub(crate) questions: Vec<QuestionLine>,
    /// Goals with an open question.
    asking: BTreeSet<String>,
    pub(crate) holds: BTreeMap<String, HoldReport>,
    /// The order of goals that wait for their start.
    waiting: Vec<String>,
    /// What was spent today; empty if that is not known.
    pub(crate) today: String,
    /// Accounts whose credentials were refused.
    pub(crate) closed: Vec<AccountLine>,
    /// What is wrong with the configuration.
    pub(crate) problem: Option<String>,
    /// What each goal did last.
    pub(crate) doing: BTreeMap<String, String>,
    /// Where lists go on that were not read to their end.
    cursors: BTreeMap<List, String>,
    loading: BTreeSet<List>,
    /// Whether open questions were read once.
    has_questions: bool,
    /// Whether all that can need a person was read once.
    pub(crate) is_loaded: bool,
    pub(crate) selected: Option<String>,
    /// The place of the selected line, for when it goes away.
    selected_at: usize,
    pub(crate) filter: String,
    pub(crate) open: Option<GoalView>,
    pub(crate) mode: Mode,
    /// How many rows of a long question are above its panel.
    pub(crate) panel_scroll: usize,
    /// How many rows PageDown moves it.
    pub(crate) panel_page: usize,
    answering: Answering,
    pub(crate) notice: Option<(Tone, String)>,
    pub(crate) connection: Connection,
    drafts: BTreeMap<Purpose, String>,
    /// Budgets that a refused retry has named.
    spent: BTreeMap<String, Axis>,
    flights: Vec<Flight>,
    /// Failures that somebody has looked at.
    seen: BTreeSet<String>,
    stale: Stale,
    requests: Vec<Request>,
    /// Makes keys of requests that no other dashboard has.
    nonce: String,
    sent: u64,
}

impl Model {
    /// A dashboard that knows nothing yet.
    pub(crate) fn new(nonce: String) -> Self {
        Self {
            rows_shown: 1,
            rows: BTreeMap::new(),
            questions: Vec::new(),
            asking: BTreeSet::new(),
            holds: BTreeMap::new(),
            waiting: Vec::new(),
            today: String::new(),
            closed: Vec::new(),
            problem: None,
            doing: BTreeMap::new(),
            cursors: BTreeMap::new(),
            loading: BTreeSet::new(),
            has_questions: false,
            is_loaded: false,
            selected: None,
            selected_at: 0,
            filter: String::new(),
            open: None,
            mode: Mode::Browse,
            panel_scroll: 0,
            panel_page: 1,
            answering: Answering::default(),
            notice: None,
            connection: Connection::Connecting,
            drafts: BTreeMap::new(),
            spent: BTreeMap::new(),
            flights: Vec::new(),
            seen: BTreeSet::new(),
            stale: Stale::default(),
            requests: Vec::new(),
            nonce,
            sent: 0,
        }
    }

    /// What is to be done next, once.
    pub(crate) fn requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    fn want(&mut self, request: Request) {
        self.requests.push(request);
    }

    pub(crate) fn warn(&mut self, text: &str) {
        self.notice = Some((Tone::Warn, brief(text)));
    }

    fn report(&mut self, text: &str) {
        self.notice = Some((Tone::Good, brief(text)));
    }

    /// Takes what has happened.
    pub(crate) fn take(&mut self, input: Input, now: Timestamp) {
        // Entries of logs change no line of the list, and there can be thousands of both.
        let keeps_list = matches!(input, Input::Goal(..) | Input::Pool(FeedNews::Logged(_)));
        let is_by_person = matches!(input, Input::Key(_) | Input::Paste(_));
        match input {
            Input::Key(key) => self.press(key, now),
            Input::Paste(text) => self.paste(&text, now),
            Input::Resized => {
                // Its rows are other ones now.
                self.panel_scroll = 0;
                self.want(Request::Redraw);
            }
            Input::Pool(news) => self.take_pool(news, now),
            Input::Goal(id, news) => {
                if let Some(open) = self.open.as_mut().filter(|open| open.id == id) {
                    open.take(news, now);
                }
                // After a page that could not be read, this reads it again.
                self.in_log(Transcript::catch_up);
            }
            Input::Reply(reply) => self.take_reply(reply, now),
            Input::Due => self.refresh(now),
        }
        if !keeps_list {
            self.keep_selection(now);
            self.follow_offer(is_by_person, now);
        }
    }

    fn take_reply(&mut self, reply: Reply, now: Timestamp) {
        match reply {
            Reply::Goals(list, page) => self.take_goals(list, page, now),
            Reply::Goal(id, reply) => self.take_goal(&id, reply, now),
            Reply::Questions(reply) => {
                self.stale.questions.landed();
                if let Some(questions) = self.take_or_retry(reply, Request::Questions, now) {
                    self.take_questions(questions);
                }
            }
            Reply::Queue(reply) => {
                self.stale.queue.landed();
                if let Some(queue) = self.take_or_retry(reply, Request::Queue, now) {
                    self.take_queue(*queue);
                }
            }
            Reply::Today(reply) => {
                self.stale.today.landed();
                if let Some(cost) = self.take_or_retry(reply, Request::Today, now) {
                    self.today = dollars(&cost.total);
                }
            }
            Reply::Accounts(reply) => {
                self.stale.accounts.landed();
                if let Some(accounts) = self.take_or_retry(reply, Request::Accounts, now) {
                    let closed = accounts.into_iter().filter(|account| account.state == "closed");
                    self.closed = closed.collect();
                }
            }
            Reply::Events(id, part, reply) => {
                let page = self.take_or_warn(reply);
                if self.open.as_ref().is_some_and(|open| open.id == id) {
                    self.in_log(|transcript| match page {
                        Some(page) => transcript.take_page(part, &page.events, now),
                        None => {
                            transcript.give_up_page(part);
                            None
                        }
                    });
                }
            }
            Reply::Acted(goal, act, key, reply) => self.take_acted(&goal, &act, &key, reply, now),
            Reply::Merged(goal, act, reply) => self.take_merged(&goal, &act, reply, now),
        }
        self.stale.read_again(now);
    }

    fn take_questions(&mut self, mut questions: Vec<QuestionLine>) {
        questions.sort_by_key(|line| {
            let question = &line.question;
            (question.deadline.unwrap_or(Timestamp::MAX), question.asked_at, question.id)
        });
        self.asking = questions.iter().map(|line| line.goal.clone()).collect();
        self.questions = questions;
        self.has_questions = true;
        self.note_loaded();
    }

    /// What was read; a lost connection is shown by the stream of events.
    fn take_or_warn<T>(&mut self, reply: Result<T, Failure>) -> Option<T> {
        match reply {
            Ok(read) => Some(read),
            Err(Failure::Lost(_)) => None,
            Err(failure) => {
                self.warn(&failure.text());
                None
            }
        }
    }

    /// The first question that waits for an answer: of this goal, or of any.
    pub(crate) fn first_question(&self, goal: Option<&str>) -> Option<&QuestionLine> {
        self.questions.iter().find(|line| goal.is_none_or(|goal| line.goal == goal))
    }

    /// The question that is being answered.
    pub(crate) fn asked(&self, goal: &str, number: u32) -> Option<&QuestionLine> {
        self.questions.iter().find(|line| line.goal == goal && line.question.id == number)
    }
}

#[cfg(test)]
pub(crate) mod tests;
