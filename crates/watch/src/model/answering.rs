//! Which request an answer is for, and when it counts: not before the person can have seen what it is.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{HomeLine, Mode, Model, Purpose};

/// How long a request must have been in its place before keys are meant for it. The page has the same time.
const STEADY_AFTER: SignedDuration = SignedDuration::from_millis(700);

/// A goal and the number of its question.
type Asked = (String, u32);

/// What is known about the requests that can be answered.
#[derive(Debug, Default)]
pub(super) struct Answering {
    /// When each open question was read for the first time.
    arrived: BTreeMap<Asked, Timestamp>,
    /// The question that an answer would be for.
    offered: Option<Asked>,
    /// When it took the place of another one without a key of the person.
    moved_at: Option<Timestamp>,
    /// From when on keys answer the question that is open for an answer.
    from: Option<Timestamp>,
    sight: Sight,
}

/// How much of the request that is open for an answer was on the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Nothing yet, or there is no room for it.
    #[default]
    None,
    /// Its first rows, without a gap, on a screen of this width.
    Rows {
        width: usize,
        seen: usize,
    },
    All,
}

/// The rows of a request that are on the screen now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    /// How many are above the screen.
    pub(crate) top: usize,
    pub(crate) shown: usize,
    pub(crate) all: usize,
}

impl Model {
    /// Takes note of requests that have appeared, and of the one that is in the place of another.
    pub(super) fn follow_offer(&mut self, is_by_person: bool, now: Timestamp) {
        let offered = self.offered(now);
        let answering = &mut self.answering;
        let open: Vec<Asked> =
            self.questions.iter().map(|line| (line.goal.clone(), line.question.id)).collect();
        answering.arrived.retain(|asked, _| open.contains(asked));
        for asked in open {
            answering.arrived.entry(asked).or_insert(now);
        }
        if answering.offered != offered {
            answering.offered = offered;
            answering.moved_at = Some(now).filter(|_| !is_by_person);
        }
    }

    /// The question that is answered next.
    fn offered(&self, now: Timestamp) -> Option<Asked> {
        if self.questions.is_empty() {
            return None;
        }
        let open = self.open.as_ref().map(|open| open.id.as_str());
        let line = match self.chosen(now) {
            Some((_, HomeLine::Question(line, _))) if open.is_none() => Some(line),
            _ => self.first_question(open),
        };
        line.map(|line| (line.goal.clone(), line.question.id))
    }

    pub(super) fn begin_answer(&mut self, now: Timestamp) {
        let Some(asked) = self.offered(now) else {
            let is_open = self.open.is_some();
            return self.warn(if is_open { "this goal has no open question" } else { "no question is open" });
        };
        let arrived = self.answering.arrived.get(&asked).copied().unwrap_or(now);
        let since = self.answering.moved_at.map_or(arrived, |moved_at| moved_at.max(arrived));
        self.answering.from = since.checked_add(STEADY_AFTER).ok();
        let (goal, question) = asked;
        self.begin_typing(Purpose::Answer { goal, question, part: 0 });
    }

    /// Whether what is typed was meant for something else: the request has just appeared. Then it is not taken, and neither is what follows
    /// before the person pauses.
    pub(super) fn is_too_soon(&mut self, now: Timestamp) -> bool {
        let Mode::Typing(Purpose::Answer { .. }, _) = self.mode else { return false };
        // A clock that was set back locks nothing.
        let is_early = |from: &Timestamp| *from > now && from.duration_since(now) <= STEADY_AFTER;
        if self.answering.from.as_ref().is_none_or(|from| !is_early(from)) {
            return false;
        }
        self.answering.from = now.checked_add(STEADY_AFTER).ok();
        self.warn("this request has just appeared: pause for a second, then type the answer");
        true
    }

    /// Nothing of the request is on the screen yet.
    pub(super) fn lose_sight(&mut self) {
        self.answering.sight = Sight::None;
    }

    /// Takes note of what is on the screen of the request that is open for an answer; none if there is no room for it.
    pub(crate) fn see(&mut self, rows: Option<Rows>, width: usize) {
        let sight = &mut self.answering.sight;
        let Some(Rows { top, shown, all }) = rows else {
            // What was seen of it stays seen only if that was all.
            if *sight != Sight::All {
                *sight = Sight::None;
            }
            return;
        };
        // A screen further down begins with the last row of this one.
        self.panel_page = shown.saturating_sub(1).max(1);
        if *sight == Sight::All {
            return;
        }
        let seen = match *sight {
            Sight::Rows { width: before, seen } if before == width => seen,
            _ => 0,
        };
        let seen = if top <= seen { seen.max(top + shown) } else { seen };
        *sight = if seen >= all { Sight::All } else { Sight::Rows { width, seen } };
    }

    /// Why a permission is not given: what it is for was not on the screen up to its end. No is always an answer.
    pub(super) fn why_not_permitted(&self, text: &str) -> Option<&'static str> {
        let first = text.split(|c: char| c.is_whitespace() || ",:;.".contains(c)).next().unwrap_or_default();
        if matches!(first.to_ascii_lowercase().as_str(), "no" | "n" | "deny" | "2") {
            return None;
        }
        match self.answering.sight {
            Sight::All => None,
            Sight::Rows { seen, .. } if self.panel_scroll > seen => {
                Some("not sent: there is more of it above; PageUp shows it, then read on to its end")
            }
            Sight::Rows { .. } => {
                Some("not sent: there is more of it below; PageDown shows it, then press Enter")
            }
            Sight::None => Some("not sent: the window has no room for the request; make it larger"),
        }
    }
}
